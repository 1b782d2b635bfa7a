# SPDX-License-Identifier: BSD-2-Clause
"""What a simulated job writes down by time, against what it writes down call by call."""
import collections
import math
import pathlib
import random
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
import truth as truthfile  # noqa: E402
import truth_line  # noqa: E402

pytestmark = pytest.mark.parallel

MS = 1_000_000
FIELDS = {
    "calls": lambda c: 1,
    "errors": lambda c: c.ret not in (0, 600),
    "bytes": lambda c: 0 if c.ret else c.bytes,
}


@pytest.fixture
def job(build, tmp_path):
    """Runs a job to its end; its truth comes back."""

    def run(pattern, *options, signalled=None):
        path = tmp_path / "truth"
        process = subprocess.Popen(
            [build / "sim/simjob", "--pattern", pattern, "--truth", path, "--timeline", "20",
             *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == f"ready {process.pid}\n"
        if signalled:
            signalled(process)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return truthfile.load(path)

    return run


def of_group(truth, group, tid=None):
    group_of = truth.lines[0].group_of
    return [c for c in truth.calls if group_of[c.api] == group and c.leave
            and tid in (None, c.tid)]


def clipped(call, begin, end):
    return max(0, min(call.leave, end) - max(call.entry, begin))


def spans(truth, count=12):
    """Spans of time between edges of bins, and the whole."""
    start, step = truth.lines[0].start, truth.lines[0].bin_ns
    bins = truth.lines[0].used
    picked = random.Random(7)
    for _ in range(count):
        a, b = sorted((picked.randrange(bins), picked.randrange(bins)))
        yield start + a * step, start + b * step
    yield truth.opened, truth.closed


@pytest.mark.parametrize("pattern, options", [
    ("many", ["--threads", 2, "--fail", "cuMemcpyHtoDAsync_v2=1@3"]),
    ("burst", ["--random", 1, "--gap-us", 2000]),
    ("train", ["--api", "runtime", "--timeline-bin-us", 100]),
    ("copy", ["--threads", 3, "--timeline-bin-us", 50000]),
])
def test_bins_are_the_calls(job, pattern, options):
    truth = job(pattern, "--iterations", 60, *options)
    groups = truth.lines[0].groups
    assert truth.unwritten == truth.unlined == 0 and len(truth.calls) > 1000
    assert sum(bool(of_group(truth, g)) for g in groups) >= 3
    for begin, end in spans(truth):
        for group in groups:
            calls = of_group(truth, group)
            inside = [c for c in calls if begin <= c.leave < end]
            for what, value in FIELDS.items():
                assert truth.between(group, begin, end, what) == sum(map(value, inside))
            assert truth.between(group, begin, end, "ns") == sum(
                clipped(c, begin, end) for c in calls)


def test_threads_are_apart(job):
    truth = job("train", "--iterations", 20, "--threads", 3)
    tids = {c.tid for c in truth.calls}
    assert len(tids) == 3
    for tid in tids:
        assert truth.between("launch", truth.opened, truth.closed, tid=tid) == len(
            of_group(truth, "launch", tid)) == 20 * 79


def test_durations_by_quantile(job):
    truth = job("burst", "--iterations", 40, "--launches", 300, "--gap-us", 1000)
    qs = [0.01, 0.5, 0.9, 0.99, 1.0]
    times = sorted(max(64, c.ns) for c in of_group(truth, "launch"))
    found = truth.quantiles("launch", truth.opened, truth.closed, qs)
    for q, ns in zip(qs, found):
        exact = times[math.ceil(q * len(times)) - 1]
        assert abs(max(64, ns) - exact) <= exact / 32 + 1, (q, ns, exact)


@pytest.mark.parametrize("ns", [0, 63, 64, 65, 66, 100, 127, 128, 5000, 123456789, 2**38 - 1])
def test_a_bucket_holds_what_it_says(ns):
    octave = max(6, ns.bit_length() - 1)
    bucket = (octave - 6) * 32 + (ns >> (octave - 5) & 31) if ns >= 64 else 0
    low, high = truth_line.bucket_bounds(bucket)
    assert low <= ns < high
    assert bucket == 0 or high / low <= 1.032


def test_within_a_bin_in_proportion(job):
    truth = job("steady", "--iterations", 100, "--timeline-bin-us", 10_000_000)
    line = truth.lines[0]
    whole = truth.between("launch", line.start, truth.closed)
    assert whole == 100 * 64
    half = truth.between("launch", line.start, line.start + line.bin_ns // 2)
    assert half == whole / 2 or line.start + line.bin_ns // 2 >= truth.closed


def test_only_lines(job):
    truth = job("steady", "--iterations", 500, "--truth-mib", 0)
    assert truth.calls == []
    total = truth.total("cuLaunchKernel")
    assert total.calls == 500 * 64
    assert truth.between("launch", truth.opened, truth.closed) == total.calls
    assert truth.between("launch", truth.opened, truth.closed, "ns") == total.ns


def test_a_long_wait_is_in_every_bin_of_it(job):
    truth = job("longsync", "--iterations", 2, "--wait-us", 300000, "--launches", 10, "--wait",
                "sleep")
    for sync in sorted(of_group(truth, "sync"), key=lambda c: c.ns)[-2:]:
        assert sync.ns > 290 * MS
        middle = (sync.entry + sync.leave) // 2
        assert truth.between("sync", middle - 50 * MS, middle + 50 * MS, "ns") == 100 * MS


def test_after_its_end_a_line_says_nothing(build, tmp_path):
    path = tmp_path / "truth"
    done = subprocess.run(
        [build / "sim/simjob", "--pattern", "steady", "--rate", "2000", "--duration", "0.5",
         "--timeline", "0.2", "--truth", path, "--quiet"], timeout=60, check=False)
    assert done.returncode == 0
    truth = truthfile.load(path)
    begin, end = truth.opened, truth.lines[0].end
    assert truth.between("launch", begin, end) == sum(
        begin <= c.leave < end for c in of_group(truth, "launch"))
    with pytest.raises(ValueError):
        truth.between("launch", begin, end + 1)


def test_what_is_kept_is_live(job):
    truth = job("leak", "--iterations", 200, "--keep-every", 10, "--rate", 2000)
    made, freed = of_group(truth, "alloc"), of_group(truth, "free")
    for _, when in spans(truth):
        assert truth.live(when) == (sum(c.leave < when for c in made)
                                    - sum(c.leave < when for c in freed))
    assert truth.live(truth.closed) == 200 // 10
    assert {c.bytes for c in made[4:]} == {4096}


def test_twenty_functions(job):
    truth = job("many", "--iterations", 30)
    counts = collections.Counter(truth.count())
    often = [api for api, calls in counts.items() if calls >= 30]
    assert len(often) == 20, often


def test_a_period_begins_at_whole_periods(job):
    truth = job("periodic", "--iterations", 12, "--period-us", 20000, "--launches", 50)
    steps = [n for n in truth.notes if n.what == "step"]
    assert len(steps) == 12 and {n.value for n in steps} == {50}
    numbers = [(n.begin - steps[0].begin + 100_000) // (20 * MS) for n in steps]
    assert numbers == sorted(set(numbers)), "one period, two steps"
    late = sorted((n.begin - steps[0].begin) % (20 * MS) for n in steps[1:])
    assert late[0] < 2 * MS, "never near a whole period"


def test_bursts_are_random_and_the_same_again(job):
    def lengths(*options):
        return [n.value for n in job("burst", "--iterations", 20, "--gap-us", 100,
                                     *options).notes if n.what == "step"]
    once = lengths("--random", 1, "--seed", 3)
    assert once == lengths("--random", 1, "--seed", 3) != lengths("--random", 1, "--seed", 4)
    assert len(set(once)) > 10 and set(lengths()) == {100}


def test_idle_until_the_signal(job):
    def jump(process):
        process.send_signal(signal.SIGUSR1)

    truth = job("idle-jump", "--duration", 1, "--truth-mib", 0, signalled=jump)
    (mark,) = [n for n in truth.notes if n.what == "mark"]
    edge = truth.lines[0].start + (mark.begin - truth.lines[0].start) // MS * MS
    assert truth.between("launch", truth.opened, edge) == 0
    assert truth.between("launch", edge, truth.closed) > 1000


@pytest.mark.parametrize("what, noted", [
    ("sleep", "sleep"), ("pipe", "pipe"), ("poll", "pipe"), ("disk", "disk"), ("lock", "lock"),
    ("running", "running"), ("runnable", "runnable")])
def test_waits_are_noted(job, what, noted):
    truth = job("waits", "--what", what, "--iterations", 10, "--work-us", 2000, "--wait-us", 5000,
                "--truth-mib", 0)
    (worker,) = {n.tid for n in truth.notes if n.what == noted and n.tid == truth.pid}
    mine = [n for n in truth.notes if n.tid == worker]
    assert len(mine) == 10 and all(n.end - n.begin >= 5 * MS for n in mine)
    assert truth.noted(noted, truth.opened, truth.closed, worker) == sum(
        n.end - n.begin for n in mine)
    if what == "disk":
        assert all(n.value for n in mine)
    if what == "runnable":  # a slice of time may be longer than one wait
        assert sum(n.value for n in mine) > 1000
    if what == "lock":
        others = [n for n in truth.notes if n.tid != worker]
        assert {n.what for n in others} == {"running"} and len(others) == 10
        for lock, run in zip(mine, others):
            assert lock.begin <= run.begin and run.end <= lock.end
            assert run.end - run.begin >= 5 * MS
