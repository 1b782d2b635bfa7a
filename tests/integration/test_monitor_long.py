# SPDX-License-Identifier: BSD-2-Clause
"""gbpf monitor over minutes: how good its numbers are, what it costs, what it leaves behind."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import gbpf
import monitored
import pytest
from monitored import SECOND, job, monitoring, truth_of

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.quiet]

MIB = 1 << 20
FULL_SPEED = ["--duration", 0, "--dispatch-ns", 4500, "--kernel-ns", 0]
PATTERNS = {
    "steady": ["--pattern", "steady"],
    "bursty": ["--pattern", "burst", "--random", 1, "--launches", 300, "--gap-us", 6000],
    "periodic": ["--pattern", "periodic", "--period-us", 100_000, "--launches", 3000],
}
INTERVALS = 200


@pytest.fixture
def memory():
    with monitored.memory_dir() as path:
        yield path


class Resources:
    """What a monitor holds at one moment."""

    def __init__(self, monitor):
        self.resident, self.descriptors = monitor.resident(), monitor.descriptors()
        self.kernel, self.cpu = monitor.kernel_bytes(), monitor.cpu()
        self.at = time.monotonic_ns()

    def __repr__(self):
        return (f"{self.resident / MIB:.1f} MiB resident, {self.kernel / MIB:.1f} MiB in the "
                f"kernel, {self.descriptors} descriptors")


def own_library(tmp_path, name):
    """A driver that no other job maps, so that its windows are this job's."""
    shutil.copytree(gbpf.SIM / "lib", tmp_path / name)
    return tmp_path / name


# Of the launches of all intervals. A host that takes its CPUs away meanwhile makes launches in
# windows seem slower, so these find gross faults only; docs/measurements.md has what was reached.
TOTAL_ERROR = {"steady": 0.1, "bursty": 0.2, "periodic": 0.2}
INSIDE = {"steady": 0.6, "bursty": 0.5, "periodic": 0.5}


def good(pattern, result):
    """Over all intervals, at a budget of 1 %."""
    if result["intervals"] < INTERVALS or result["known"] < 0.9 * result["intervals"]:
        return False
    if result["inside"] < INSIDE[pattern] or result["total_error"] > TOTAL_ERROR[pattern]:
        return False
    if pattern == "steady" and result["rate_median"] > 0.1:
        return False
    return result["p50_median"] <= 0.15


def worst_second(intervals):
    """The overhead told of the worst second; an interval is half of one."""
    told = [i["self"]["overhead_pct"] for i in intervals]
    return max((a + b) / 2 for a, b in zip(told, told[1:]))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("patterns", [["steady"], ["bursty", "periodic"]], ids="+".join)
def test_two_hundred_intervals(memory, tmp_path, patterns):
    with contextlib.ExitStack() as stack:
        jobs = {p: stack.enter_context(job(
            memory, *PATTERNS[p], *FULL_SPEED, line=300, name=p, lib=own_library(tmp_path, p)))
            for p in patterns}
        with monitoring(*jobs.values(), interval="500ms",
                        options=["--max-overhead", "1%"]) as monitor:
            monitor.wait(6)
            before = Resources(monitor)
            monitor.wait(INTERVALS, timeout=180)
            after = Resources(monitor)
    intervals = monitor.intervals[4:]
    results = {p: monitored.summary(monitored.pairs(intervals, truth_of(process)))
               for p, process in jobs.items()}
    windows = sum(i["self"]["windows"] for i in intervals)
    print(f"\n{results}\n{windows} windows; worst second {worst_second(monitor.intervals)} %; "
          f"{before}; {after}")
    assert all(process.returncode == 0 for process in jobs.values()), "a job was harmed"
    assert all(good(p, result) for p, result in results.items()), results
    assert worst_second(monitor.intervals) <= 1.0
    assert after.descriptors <= before.descriptors + 8, (before, after)
    assert after.resident <= before.resident + 4 * MIB, (before, after)


@contextlib.contextmanager
def everybody_wants_a_cpu(count):
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        yield


def test_a_job_that_others_take_the_cpus_from(memory):
    """
    A window begins when the monitor gets a CPU, often the one that the job has just lost. What
    it then sees is not what the job does: it once told 2,700 launches/s, give or take 20 %, of
    100,000.
    """
    paired = []
    with job(memory, *PATTERNS["steady"], *FULL_SPEED, nice=0) as process:
        with everybody_wants_a_cpu(2 * os.cpu_count()):
            for _ in range(12):
                with monitoring(process, interval="250ms",
                                options=["--max-overhead", "1%"]) as monitor:
                    monitor.wait(5)
                paired.append(monitor.intervals)
    truth = truth_of(process)
    known = [p for intervals in paired for p in monitored.pairs(intervals, truth)
             if p.rate is not None]
    right = [p.low / 1.5 <= p.true_rate <= p.high * 1.5 for p in known]
    print(f"\n{len(known)} intervals known, {sum(right)} right; {monitored.summary(known)}")
    assert len(known) >= 15
    assert sum(right) >= 0.85 * len(right)


def test_what_is_told_of_late_is_of_late(memory):
    """First launches, which take a fifth of a second, are the longest of the first seconds only."""
    with job(memory, "--pattern", "steady", "--rate", 500, "--duration", 0, "--start-delay", 2,
             "--cold-ns", SECOND // 5) as process:
        with monitoring(process, options=["--max-overhead", "100%"]) as monitor:
            monitor.wait(15)
    longest = [max(a["max_ns"] or 0 for a in p["apis"]) for p in map(
        lambda i: monitored.process_in(i, process.pid), monitor.intervals) if p and p["apis"]]
    assert max(longest) >= SECOND // 5, longest
    assert longest[-1] < SECOND // 20, longest


@pytest.mark.timeout(240)
def test_two_thousand_windows_on_one_job(memory):
    """Several monitors at once: one alone opens a few windows a second only."""
    with job(memory, *PATTERNS["steady"], *FULL_SPEED, line=300) as process:
        with contextlib.ExitStack() as stack:
            monitors = [stack.enter_context(monitoring(
                process, options=["--max-overhead", "5%"])) for _ in range(8)]
            for monitor in monitors:
                monitor.wait(5)
            before = [Resources(monitor) for monitor in monitors]
            end = time.monotonic() + 100
            while windows_of(monitors) < 2000 and time.monotonic() < end:
                monitors[0].wait(1)
            after = [Resources(monitor) for monitor in monitors]
        assert process.poll() is None
    print(f"\n{windows_of(monitors)} windows; {before[0]}; {after[0]}")
    assert windows_of(monitors) >= 2000
    assert process.returncode == 0, "its output is not what it must be"
    for one, other in zip(before, after):
        assert other.descriptors <= one.descriptors + 8, (one, other)
        assert other.resident <= one.resident + 4 * MIB, (one, other)
        assert other.kernel <= one.kernel + MIB, (one, other)
    for monitor in monitors:
        # None knows what the others cost the job, so none tells its rate as it does alone.
        assert all(monitored.process_in(i, process.pid)["launches_seen"] > 0
                   for i in monitor.intervals[5:10])


def windows_of(monitors):
    return sum(i["self"]["windows"] for m in monitors for i in list(m.intervals))


@pytest.mark.parametrize("budget, turns", [(1, 9), (5, 5)])
def test_the_measured_slowdown_is_within_the_budget(memory, budget, turns):
    with job(memory, *PATTERNS["steady"], *FULL_SPEED, line=300) as process:
        found = monitored.slowdown(process, seconds=1.5, count=turns,
                                   options=["--max-overhead", f"{budget}%"])
    print(f"\n{budget} %: {found}")
    # make bench says by how much; beside other work on the host it is more than it is alone.
    assert found.low <= 2 * budget / 100 + 0.01, found
    assert 0 < found.told <= budget / 100, found


def throttled_ns(group):
    fields = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(fields.get("throttled_time", 0)) or int(fields.get("throttled_usec", 0)) * 1000


def test_a_quota_of_cpu_time(memory):
    """It looks every few seconds; the share it tells is that of the last of these whiles."""
    with job(memory, *PATTERNS["steady"], *FULL_SPEED) as process:
        with monitored.quota(process, 0.3) as group:
            with monitoring(process, options=["--max-overhead", "5%"]) as monitor:
                counted = []
                for _ in range(16):
                    monitor.wait(1)
                    counted.append((time.monotonic_ns(), throttled_ns(group)))
    told = monitored.process_in(monitor.intervals[-1], process.pid)["throttled_share"]
    true = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(counted, counted[5:])]
    assert max(true) > 0.1, "nothing kept it from running"
    assert told is not None
    assert min(true[5:]) - 0.1 <= told <= max(true[5:]) + 0.1, (told, true)


@contextlib.contextmanager
def churning(count):
    """A job that starts as many processes, some at a time; it writes nothing down."""
    process = subprocess.Popen(
        [gbpf.JOB, "--pattern", "churn", "--parallel", "3", "--iterations", str(count),
         "--lib", str(gbpf.SIM / "lib")], stdout=subprocess.PIPE, text=True, env=gbpf.sim_env())
    with process:
        yield process


@pytest.mark.timeout(300)
def test_thousands_of_processes_that_come_and_go(memory):
    with contextlib.ExitStack() as stack:
        churn = stack.enter_context(churning(10000))
        lasting = stack.enter_context(job(
            memory, "--pattern", "steady", "--rate", 100, "--children", 6, "--duration", 25,
            name="lasting", line=60))
        with monitoring(churn, lasting, options=["--max-overhead", "1%"]) as monitor:
            monitor.wait(4)
            early = Resources(monitor)
            while churn.poll() is None:
                monitor.wait(1)
            monitor.wait(1)
            late = Resources(monitor)
        assert "output churn 10000 failed 0" in churn.stdout.read()
    seen = {p["pid"] for i in monitor.intervals for p in i["processes"]}
    lived = {t.pid for t in monitored.truths_of(lasting)}
    print(f"\n{len(seen)} processes seen; {early}; {late}")
    assert len(lived) == 7 and lived <= seen
    assert len(monitor.intervals[-1]["processes"]) < 50, "the dead are still told of"
    assert late.descriptors <= early.descriptors + 8, (early, late)
    assert late.resident <= early.resident + 8 * MIB, (early, late)
    assert late.kernel <= early.kernel + MIB, (early, late)


@pytest.mark.timeout(240)
def test_two_hundred_processes_with_twenty_functions(memory):
    with job(memory, "--pattern", "many", "--rate", 2, "--children", 199, "--duration", 55,
             "--wait", "sleep", "--timeline-bin-us", 10000, line=120) as process:
        with serving(process) as server:
            time.sleep(12)  # until all of it is probed always
            before, begin = monitored.cpu_ns(server.pid), time.monotonic_ns()
            time.sleep(15)
            cpu = (monitored.cpu_ns(server.pid) - before) / (time.monotonic_ns() - begin)
        with monitoring(process, options=["--max-overhead", "1%"]) as monitor:
            monitor.wait(8, timeout=120)
            after = Resources(monitor)
    last = monitor.intervals[-1]
    print(f"\n{cpu:.2%} of a CPU; {after}; {last['self']}")
    assert len(last["processes"]) == 200
    assert all(len(p["apis"]) >= 20 for p in last["processes"])
    truths = monitored.truths_of(process)
    begin, end = monitored.span(last)
    told = sum(p["launches_per_s"] for p in last["processes"]) * (end - begin) / SECOND
    true = sum(t.between("launch", begin, end) for t in truths)
    assert told == pytest.approx(true, rel=0.03)
    assert cpu <= 0.03  # tools/bench/monitor.py measures it; here others may run beside
    assert after.resident <= 64 * MIB and after.kernel <= 64 * MIB
    assert last["self"]["rss_bytes"] == pytest.approx(after.resident, rel=0.2)
    assert last["self"]["maps_bytes"] <= 64 * MIB


@contextlib.contextmanager
def serving(process):
    """As on a node: nothing printed, pages served."""
    server = subprocess.Popen([gbpf.GBPF, "monitor", "-p", str(process.pid), "--quiet", "--listen",
                               "127.0.0.1:0"], stderr=subprocess.DEVNULL)
    try:
        yield server
    finally:
        server.terminate()
        assert server.wait(timeout=60) == 0
