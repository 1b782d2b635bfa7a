# SPDX-License-Identifier: BSD-2-Clause
"""What gbpf monitor tells of simulated jobs, interval by interval, against what they did."""

import contextlib
import json
import signal
import statistics
import time

import gbpf
import monitored
import pytest
from monitored import MS, SECOND, job, monitoring, process_in, truth_of

pytestmark = [pytest.mark.root, pytest.mark.parallel]

# As fast as it goes, with launches that take as long as on a real GPU's machine.
TIGHT = ["--pattern", "steady", "--duration", 0, "--dispatch-ns", 4500, "--kernel-ns", 0]
ALWAYS = ["--max-overhead", "100%"]


@pytest.fixture
def memory():
    with monitored.memory_dir() as path:
        yield path


def test_always_attached_nothing_is_estimated(memory):
    with job(memory, *TIGHT, "--rate", 5000) as process:
        with monitoring(process, interval="500ms", options=ALWAYS) as monitor:
            monitor.wait(4)
    paired = monitored.pairs(monitor.intervals[1:], truth_of(process))
    assert len(paired) >= 2
    for p in paired:
        assert p.low == p.rate == p.high, p
        # The end of an interval and its reading may lie some ms apart on a busy machine.
        assert p.rate == pytest.approx(p.true_rate, rel=0.1), p
        # What probes take is not in it, in the truth it is; buckets are 6 % wide.
        assert 4000 <= p.p50 <= 1.25 * p.true_p50, p
        assert p.told["coverage"] > 0.999


def told_costs(intervals):
    """Percent of the worst thread, an interval each."""
    return [i["self"]["overhead_pct"] for i in intervals]


def in_budget(told, budget):
    """
    Told to cost no more than this. A monitor that did not get a CPU in time closes a window
    late, and that interval costs more, which the next ones pay back: here others want the CPUs all
    the time, and there are a few intervals only. Probed all the time, each would cost twenty
    times the budget. test_monitor_long.py has the machine to itself, and no exception.
    """
    return statistics.median(told) <= 1.5 * budget and sorted(told)[-2] <= 3 * budget


def test_inside_a_budget_of_one_percent(memory):
    """That windows are kept and told; how near it comes is for test_monitor_long.py."""
    with job(memory, *TIGHT) as process:
        with monitoring(process, options=["--max-overhead", "1%"]) as monitor:
            monitor.wait(5)
    paired = monitored.pairs(monitor.intervals[1:], truth_of(process))
    assert len(paired) >= 3
    told = told_costs(monitor.intervals)
    assert in_budget(told, 1.0), told
    covered = [p.told["coverage"] for p in paired]
    # A monitor without a CPU has no window in an interval, and tells from those before.
    assert any(covered) and max(covered) < 0.2, ("it is not sampled", covered)
    # An interval in whose windows the job had no CPU tells nothing.
    known = [p for p in paired if p.rate is not None and p.p50 is not None]
    assert len(known) >= 2, paired
    for p in known:
        assert p.low < p.rate < p.high, p
    # What windows saw alone is a hundred times off, probes' time taken for the job's twice.
    # Which of its launches windows meet depends on who else wants the CPUs.
    assert 0.4 < statistics.median(p.rate / p.true_rate for p in known) < 2.5, known
    assert statistics.median(p.p50 / p.true_p50 for p in known) == pytest.approx(1, rel=0.3)


def rates(intervals):
    return [p["launches_per_s"] for i in intervals for p in i["processes"]
            if p["launches_per_s"] is not None]


def test_from_idle_to_full_speed(memory):
    with job(memory, "--pattern", "idle-jump", "--duration", 0, "--dispatch-ns", 4500,
             "--kernel-ns", 0) as process:
        with monitoring(process, options=["--max-overhead", "1%"]) as monitor:
            monitor.wait(2)
            process.send_signal(signal.SIGUSR1)
            monitor.wait(4)
            # One that got no CPU in time pays back first what the open window cost.
            for _ in range(8):
                if rates(monitor.intervals[-2:]):
                    break
                monitor.wait(1)
    truth = truth_of(process)
    (mark,) = [n for n in truth.notes if n.what == "mark"]
    near = []
    told = told_costs(monitor.intervals)
    assert in_budget(told, 1.0), told
    for interval in monitor.intervals:
        begin, end = monitored.span(interval)
        p = monitored.pair(interval, truth) if begin >= truth.opened else None
        if p and end <= mark.begin:
            assert p.rate == 0, p
        if p and begin >= mark.begin + SECOND and p.rate is not None:
            near.append(p.true_rate / 2 < p.rate < p.true_rate * 2)
    # One interval may lie where the job itself got no CPU.
    assert near and sum(near) >= len(near) - 1 and any(near), monitor.intervals


def test_a_sync_that_outlasts_intervals(memory):
    with job(memory, "--pattern", "longsync", "--wait-us", 2_200_000, "--wait", "sleep",
             "--launches", 10, "--start-delay", 1.5) as process:
        with monitoring(process, interval="500ms") as monitor:
            assert monitor.process.wait(timeout=60) == 0, monitor.trouble()
    truth = truth_of(process)
    inside = 0
    for interval in monitor.intervals[1:]:
        begin, end = monitored.span(interval)
        told = process_in(interval, process.pid)
        if not told or told["sync_share"] is None or end > truth.closed:
            continue  # before its first call, after its last
        share = truth.between("sync", begin, end, "ns") / (end - begin)
        inside += share == 1
        assert told["sync_share"] == pytest.approx(share, abs=0.1), (told, share)
    assert inside >= 2, "no interval lay inside a sync"


KIND = {"poll": "pipe"}  # the others are called as the job calls them


def noted(truth, what, begin, end):
    """The share of this time that the launching thread waited so."""
    if what == "runnable":  # its notes say how much of them it was without a CPU
        ns = sum(n.value * 1000 for n in truth.notes if begin <= n.begin and n.end <= end)
    else:
        ns = truth.noted(KIND.get(what, what), begin, end, truth.pid)
    return ns / (end - begin)


def waits_agree(what, pid, truth, interval):
    """Does an interval tell of the wait that the job noted? (that, what was told)"""
    told = process_in(interval, pid)
    (thread,) = [t for t in told["threads"] if t["tid"] == pid]
    share = noted(truth, what, *monitored.span(interval))
    waits, kind = thread["wait_share"], KIND.get(what, what)
    # When its wait is over it may have to wait for a CPU; a part of each write is work.
    also = {"disk": ("runnable", "running"), "runnable": ()}.get(what, ("runnable",))
    others = [waits[k] for k in waits if k != kind and k not in ("runnable", "running")]
    agrees = (
        sum(waits[k] for k in (kind, *also)) == pytest.approx(share, abs=0.1)
        and waits[kind] > max(0.05, *others)
        and (told["lock_sibling"] or {}).get("comm") == ("sibling" if what == "lock" else None))
    return agrees, (share, thread, told["lock_sibling"])


@pytest.mark.parametrize("whats", [["lock"], ["pipe", "poll", "sleep"], ["disk"], ["running"],
                                   ["runnable"]])
def test_what_a_thread_did_between_its_calls(memory, whats):
    with contextlib.ExitStack() as stack:
        jobs = {what: stack.enter_context(job(
            memory, "--pattern", "waits", "--what", what, "--duration", 0, "--work-us", 2000,
            "--wait-us", 18000, "--kernel-ns", 0, "--dispatch-ns", 10000, name=what))
            for what in whats}
        with monitoring(*jobs.values(), options=["--max-overhead", "5%"]) as monitor:
            monitor.wait(3)
    for what, process in jobs.items():
        found = [waits_agree(what, process.pid, truth_of(process), i)
                 for i in monitor.intervals[1:]]
        assert any(agrees for agrees, _ in found), found


@pytest.mark.quiet
def test_what_is_rare_is_counted_exactly(memory):
    with job(memory, "--pattern", "many", "--rate", 150, "--duration", 0, "--fail",
             "cuMemsetD8Async=1@5") as process:
        with monitoring(process, options=ALWAYS) as monitor:
            monitor.wait(3)
    truth = truth_of(process)
    for interval in monitor.intervals[1:]:
        begin, end = monitored.span(interval)
        told = process_in(interval, process.pid)
        seconds = (end - begin) / SECOND

        def near(value, group, what="calls", of=told):
            want = truth.between(group, begin, end, what)
            one = max(1, want / max(1, truth.between(group, begin, end)))
            told_calls, calls = of[value] * seconds / one, want / one
            # the sums of all intervals would show what is lost; a late reading moves some
            assert abs(told_calls - calls) <= 2 + 0.05 * calls, (value, of[value], want)

        near("copies_per_s", "copy")
        near("copy_bytes_per_s", "copy", "bytes")
        near("errors_per_s", "set", "errors")
        near("launches_per_s", "launch")
    names = {a["name"] for a in process_in(monitor.intervals[-1], process.pid)["apis"]}
    assert len(names) >= 20, names


def test_leaks_grow(memory):
    with job(memory, "--pattern", "leak", "--rate", 300, "--keep-every", 5, "--duration", 0,
             "--start-delay", 2.5) as process:
        with monitoring(process, options=ALWAYS) as monitor:
            monitor.wait(5)
    truth = truth_of(process)
    told = process_in(monitor.intervals[-1], process.pid)
    live = truth.live(monitored.span(monitor.intervals[-1])[1]) - 1  # one is of the host's memory
    assert live > 50
    late = 6  # this many are kept in 100 ms, so much later may a busy machine read
    assert abs(told["live_allocations"] - live) <= late, told
    buffers = 512 + 2 * (1 << 20)  # each thread's own three on the device
    assert abs(told["live_bytes"] - (live - 3) * 4096 - buffers) <= late * 4096, told


def test_once_is_one_object(memory):
    with job(memory, *TIGHT) as process:
        begin = time.monotonic_ns()
        done = gbpf.gbpf("monitor", "-p", process.pid, "--once", "--format", "json")
    assert done.returncode == 0, done.stderr
    interval = json.loads(done.stdout)
    assert 990 * MS <= interval["window_ns"] <= 3000 * MS
    assert begin < interval["mono_ns"] <= time.monotonic_ns()
    told = process_in(interval, process.pid)
    assert told["command"].startswith(gbpf.JOB)
    assert told["threads"] and told["apis"] is None and told["kernels"] is None


def test_it_ends_with_the_last_process_it_was_asked_for(memory):
    with job(memory, "--pattern", "steady", "--rate", 2000, "--duration", 2.3) as process:
        with monitoring(process, options=ALWAYS) as monitor:
            process.wait(timeout=60)
            assert monitor.process.wait(timeout=30) == 0, monitor.trouble()
    assert process.returncode == 0
    assert monitor.intervals


def test_killed_while_attached_it_harms_nobody(memory):
    with job(memory, *TIGHT, "--rate", 20000, "--sync-every", 10) as process:
        monitor = monitored.Monitor("-p", process.pid, *ALWAYS)
        monitor.wait(1)
        monitor.end(signal.SIGKILL)
        time.sleep(0.5)
        assert process.poll() is None
    assert process.returncode == 0, "its output is not what it must be"
