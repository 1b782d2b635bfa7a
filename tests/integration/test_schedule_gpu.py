# SPDX-License-Identifier: BSD-2-Clause
"""GPU time in the windows of a schedule: what is told of each window, call by call and work by
work, against what the job and the simulated device know; what lies around them is left out."""

import bisect
import json
import time

import gbpf
import pytest
import works
from test_gpu_time import happened
from gbpf import GBPF, JOB, SIM

pytestmark = pytest.mark.root

TIMES = ("--wait", "150ms", "--warmup", "250ms", "--active", "200ms", "--repeat", 3)


def view(path, name, *options):
    done = gbpf.run(GBPF, "report", path, "--view", name, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Recording:
    def __init__(self, path, truths):
        self.path, self.truths = path, truths
        told = view(path, "gpu_trace", "--names", "mangled")
        self.rows, self.gpu = told["rows"], told["quality"]["gpu"]
        self.windows = [(w["begin_ns"], w["end_ns"]) for w in told["quality"]["windows"]]
        self.error = self.gpu["clock_error_ns"] + 1

    def window(self, begin, end):
        """The one that it has a part of."""
        for w in self.windows:
            if begin < w[1] and end > w[0]:
                return w
        return None

    def near_edge(self, begin, end):
        return any(begin - self.error <= edge <= end + self.error
                   for w in self.windows for edge in w)


def check_calls(rec, pid):
    """All calls of the windows are there, and no other's; their times are the true ones."""
    seen = sorted((c["begin"], c["end"], c["api"]) for c in gbpf.calls(rec.path)
                  if c["pid"] == pid and not c["flags"] & (gbpf.OPEN | gbpf.NO_END | gbpf.NO_BEGIN))
    told = [c for c in rec.truths[pid].calls if c.depth == 0
            and not rec.near_edge(c.entry, c.leave) and rec.window(c.entry, c.leave)]
    assert len(told) > 200
    assert all(rec.window(begin, end) for begin, end, _ in seen)
    at = {}
    for begin, end, api in seen:
        at.setdefault(api, []).append((begin, end))
    for api in {c.api for c in told}:
        true = sorted((c.entry, c.leave) for c in told if c.api == api)
        got = [one for one in at.get(api, []) if not rec.near_edge(*one)]
        assert abs(len(got) - len(true)) <= 2 * len(rec.windows), (api, len(got), len(true))
    return len(told)


def check_works(rec, pid):
    """
    (launched in a window, launched before the one that they run in): each with its own call, or
    with none.
    """
    rows = works.grouped((r for r in rec.rows if r["pid"] == pid),
                         lambda r: (r["device"], r["context"], r["stream"]))
    true = works.grouped((w for w in rec.truths[pid].work if w.correlation),
                         lambda w: (w.device, w.context, w.stream))
    base = rec.windows[0][0]
    inside = earlier = 0
    for key, of in true.items():
        left = {round((r["start_ns"] + base)): r for r in rows.pop(key, [])}
        starts = sorted(left)
        for work in of:
            call = work.call
            edge = rec.near_edge(call.entry, call.leave) or rec.near_edge(work.begin, work.end)
            launched, ran = rec.window(call.entry, call.leave), rec.window(work.begin, work.end)
            row = take(left, starts, work, rec.error)
            if edge:
                continue
            assert bool(row) == bool(launched or ran), (work, call, rec.windows)
            if not row:
                continue
            assert row["duration_ns"] == pytest.approx(work.ns, abs=1)
            if not launched:
                assert row["api"] is None and row["launch_to_start_ns"] is None, (row, work)
                earlier += 1
                continue
            entry = row["start_ns"] + base - row["launch_to_start_ns"]
            assert (row["tid"], row["api"]) == (work.tid, call.api), (row, work, call)
            assert call.entry <= entry <= call.leave, (row, work, call)
            inside += 1
        assert not left, f"works that never were: {list(left.values())[:3]}"
    assert not rows, f"streams that never were: {list(rows)}"
    return inside, earlier


def take(left, starts, work, error):
    at = bisect.bisect_left(starts, work.begin - error)
    while at < len(starts) and starts[at] <= work.begin + error:
        row = left.get(starts[at])
        if row and abs(row["duration_ns"] - work.ns) <= 1:
            return left.pop(starts[at])
        at += 1
    return None


def check(rec, count):
    assert len(rec.windows) == count
    gpu = rec.gpu
    covers = sorted((w["begin_ns"], w["end_ns"], w["whole"]) for w in gpu["windows"])
    sums = []
    for pid in rec.truths:
        check_calls(rec, pid)
        sums.append(check_works(rec, pid))
    assert covers and all(rec.window(b, e) for b, e, _ in covers)
    assert all(rec.windows[0][0] <= b < e <= rec.windows[-1][1] for b, e, _ in covers)
    assert gpu["matched"] == gpu["works"] and gpu["launches_without"] == 0, gpu
    without = sum(r["api"] is None for r in rec.rows)
    assert (gpu["works"], gpu["earlier"]) == (len(rec.rows) - without, without)
    assert not gpu["dropped"] and not gpu["bad"] and not gpu["contradicted"]
    kernels = sum(r["instances"] for r in view(rec.path, "kern_sum")["rows"])
    assert kernels == sum(r["api"] is not None and bool(r["grid"]) for r in rec.rows)
    return sum(s[0] for s in sums), sum(s[1] for s in sums)


def command(tmp_path, *job, options=TIMES):
    path = tmp_path / "t.gbpf"
    done = gbpf.gbpf("trace", "-o", path, *works.OPTIONS, *options, "--", JOB, "--quiet", "--lib",
                     SIM / "lib", "--truth", tmp_path / "truth.%p", *job, env=gbpf.sim_env())
    assert done.returncode == 0, done.stderr
    return Recording(path, gbpf.truths(tmp_path)), done


TRAIN = ("--pattern", "train", "--dispatch-ns", 10_000, "--wait", "sleep")


@pytest.mark.long
def test_windows_of_a_command(tmp_path):
    rec, done = command(tmp_path, *TRAIN, "--duration", "2.2")
    inside, _ = check(rec, 3)
    assert inside > 1000
    assert "3 windows" in done.stdout and "each with its call" in done.stdout, done.stdout


def test_a_full_queue_reaches_into_its_windows(tmp_path):
    """Work launched in the warm-up runs in the window: the GPU was busy with it."""
    rec, _ = command(tmp_path, "--pattern", "nosync", "--rate", 0, "--dispatch-ns", 20_000,
                     "--kernel-ns", 60_000, "--duration", "2.2",
                     options=(*TIMES, "--cupti-calls"))
    inside, earlier = check(rec, 3)
    assert inside > 200 and earlier > 200, (inside, earlier)
    (stream,) = view(rec.path, "stream_sum")["rows"]
    (truth,) = rec.truths.values()
    # Of a warm-up shorter than the queue, as on a busy machine, not all of a window is known.
    covers = [(w["begin_ns"], w["end_ns"]) for w in rec.gpu["windows"]]
    busy = sum(max(0, min(w.end, end) - max(w.begin, begin))
               for begin, end in covers for w in truth.work)
    true = 100 * busy / sum(end - begin for begin, end in covers)
    assert stream["busy_pct"] == pytest.approx(true, abs=1), (stream, true)
    assert stream["depth_max"] > 500, stream


def test_windows_of_a_running_process(tmp_path):
    path = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, *TRAIN, "--duration", 0) as job:
        done = gbpf.gbpf("trace", "-p", job.pid, "-o", path, *works.OPTIONS, *TIMES)
    assert done.returncode == 0, done.stderr
    inside, _ = check(Recording(path, gbpf.truths(tmp_path)), 3)
    assert inside > 1000


# On a busy machine a window may begin or end amid a graph's launch, and its launches then cannot
# always be told apart (model/join_nodes.c): these need the CPUs.
@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.parametrize("wait", ["0", "60"])
def test_windows_of_steps(tmp_path, wait):
    """Each of 20 steps that launch a graph four times; with and without a rest between."""
    rec, done = command(tmp_path, "--pattern", "graph", "--dispatch-ns", 50_000, "--duration", 4,
                        options=("--wait", wait, "--warmup", 200, "--active", 20, "--repeat", 3,
                                 "--step-marker", "cuGraphLaunch"))
    inside, _ = check(rec, 3)
    launches = [c["begin"] for c in gbpf.calls(rec.path) if c["api"] == "cuGraphLaunch"]
    for begin, end in rec.windows:
        assert sum(begin <= ts < end for ts in launches) == 80, (begin, end, done.stdout)
    assert inside >= 3 * 78 * 20


@pytest.mark.long
def test_another_profiler_does_not_hold_up_the_windows(tmp_path):
    """It is refused at once, so that no window waits for it; the CPU's side is as ever."""
    path = tmp_path / "t.gbpf"
    done = gbpf.gbpf("trace", "-o", path, *works.OPTIONS, *TIMES, "--", JOB, "--quiet", "--lib",
                     SIM / "lib", "--truth", tmp_path / "truth.%p", *TRAIN, "--duration", "2.2",
                     "--profiler", "old", "--cupti", works.CUPTI, env=gbpf.sim_env())
    assert done.returncode == 0 and "no GPU time of process" in done.stderr, done.stderr
    rec = Recording(path, gbpf.truths(tmp_path))
    (pid,) = rec.truths
    assert len(rec.windows) == 3 and not rec.rows and not rec.gpu["windows"]
    check_calls(rec, pid)
    begins = [b for b, _ in rec.windows]
    assert all(b - a < 1_200_000_000 for a, b in zip(begins, begins[1:])), begins


@pytest.mark.long
def test_a_window_ends_with_its_recording(tmp_path):
    """Ctrl-C in a window: it counts up to then, and so does what the GPU did."""
    path = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, *TRAIN, "--duration", 0) as job:
        with gbpf.tracing(path, "-p", job.pid, *works.OPTIONS, "--warmup", "400ms", "--active",
                          "60s") as tracing:
            gbpf.wait_until(lambda: happened(path, "began") or tracing.poll() is not None)
            time.sleep(0.8)
    assert tracing.returncode == 0, tracing.err
    inside, _ = check(Recording(path, gbpf.truths(tmp_path)), 1)
    assert inside > 1000


@pytest.mark.long
def test_the_job_ends_in_a_window(tmp_path):
    rec, _ = command(tmp_path, *TRAIN, "--duration", "1.2",
                     options=("--warmup", "300ms", "--active", "60s"))
    inside, _ = check(rec, 1)
    assert inside > 1000


@pytest.mark.long
@pytest.mark.parametrize("after", [0.05, 0.6], ids=["warmup", "window"])
def test_the_leader_ends(tmp_path, after):
    """
    In its warm-up or its window, of 0.6 and 1.4 s, or near by: that it has begun is heard of
    within a second. Who leads next has windows with GPU time all the same.
    """
    path = tmp_path / "t.gbpf"
    steps = ("--pattern", "graph", "--wait", "sleep", "--duration", 0)
    with gbpf.job(tmp_path, *steps, "--dispatch-ns", 400_000) as slow:
        with gbpf.job(tmp_path, *steps, "--dispatch-ns", 200_000) as leader:
            with gbpf.tracing(path, "-p", f"{leader.pid},{slow.pid}", *works.OPTIONS, "--warmup",
                              700, "--active", 1500, "--repeat", 2, "--step-marker",
                              "cuGraphLaunch") as tracing:
                gbpf.wait_until(lambda: happened(path, "began") or tracing.poll() is not None)
                time.sleep(after)
                leader.terminate()
                leader.wait(timeout=30)
                tracing.wait(timeout=60)
    assert tracing.returncode == 0, tracing.err
    rec = Recording(path, gbpf.truths(tmp_path))
    begin, end = rec.windows[-1]
    assert end - begin > 1_500_000_000 and len(rec.windows) <= 2
    inside, _ = check_works(rec, slow.pid)
    assert inside > 2000 and rec.gpu["matched"] == rec.gpu["works"]
    assert any(w["pid"] == slow.pid and w["whole"] and w["begin_ns"] == begin
               and w["end_ns"] == end for w in rec.gpu["windows"])
