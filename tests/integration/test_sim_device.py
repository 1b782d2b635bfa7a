# SPDX-License-Identifier: BSD-2-Clause
"""The simulated device's work, and other clients of CUPTI in a simulated job."""
import collections
import signal

import cupti_runs
import pytest

pytestmark = pytest.mark.parallel
run = cupti_runs.run


def test_latency_and_the_order_of_streams(run):
    done = run("--pattern", "streams", "--latency-ns", 30000, inject=False)
    last = {}
    for work in sorted(done.truth.work, key=lambda w: w.enqueued):
        ready = max(work.enqueued + 30000, last.get(work.stream, 0))
        assert work.begin == ready or work.node & 0xffffffff > 1
        if work.node & 0xffffffff > 1:
            assert work.begin == last[work.stream]
        last[work.stream] = work.end


def test_nodes_that_begin_together(run):
    done = run("--pattern", "graph", inject=False, SIMCUDA_GRAPH="concurrent")
    launches = collections.defaultdict(list)
    for work in done.truth.work:
        launches[work.call.entry].append(work)
    launches = [works for works in launches.values() if works[0].node]
    assert len(launches) == 4 and {len(works) for works in launches} == {20}
    for works in launches:
        assert len({w.begin for w in works}) == 1 and len({w.end for w in works}) > 1
    ends = [max(w.end for w in works) for works in launches]
    assert all(later[0].begin >= end for end, later in zip(ends, launches[1:]))


def union(intervals):
    total, reached = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize("pattern, queued", [("matmul64", (0, 0.1)), ("matmul4096", (0.5, 1))])
def test_the_pair_that_is_short_of_cpu_or_not(run, pattern, queued):
    """Kernels that begin the moment the one before ends: most, or none."""
    done = run("--pattern", pattern, "--iterations", 40, "--cpu-ns", 35000, inject=False)
    kernels = [w for w in done.truth.work if w.kind == "kernel"]
    assert len(kernels) == 80
    waited = sum(later.begin == first.end for first, later in zip(kernels, kernels[1:]))
    assert queued[0] <= waited / len(kernels) <= queued[1]


def test_two_streams_overlap(run):
    done = run("--pattern", "overlap", "--iterations", 4, inject=False)
    kernels = [(w.begin, w.end) for w in done.truth.work if w.kind == "kernel"]
    assert sum(end - begin for begin, end in kernels) > 1.5 * union(kernels)


def test_memory_is_known_for_what_it_is(run):
    done = run("--pattern", "pageable", inject=False)
    kinds = collections.Counter((w.copy, w.source, w.target, w.is_async)
                                for w in done.truth.work if w.kind == "copy" and w.bytes > 8)
    assert kinds == {(1, 1, 3, True): 1, (2, 3, 1, True): 1, (1, 1, 3, False): 1,
                     (2, 3, 1, False): 1, (1, 2, 3, True): 1, (2, 3, 2, True): 1}
    (async_out,) = [w for w in done.truth.work if (w.target, w.is_async) == (1, True)]
    assert async_out.call.leave >= async_out.end, "such a copy is there when the call returns"


def test_no_room_no_work(run):
    assert run("--pattern", "train", "--truth-mib", 0, inject=False).truth.work == []


# ---- another client in the process ----

STEADY = ["--pattern", "steady", "--rate", 2000]


def noted(done, what):
    return [n for n in done.truth.notes if n.what == what]


def check_profile(done):
    """The job's own profiler got all there was while it recorded."""
    (inner,), (outer,) = noted(done, "profiled"), noted(done, "profiling")
    sure = sum(inner.begin <= w.enqueued < inner.end for w in done.truth.work)
    most = sum(outer.begin <= w.enqueued < outer.end for w in done.truth.work)
    assert sure <= inner.value <= most and sure > 20 and outer.value == 0


@pytest.mark.parametrize("how", ["old", "new"])
def test_a_profiler_alone(run, how):
    done = run(*STEADY, "--duration", 0.15, "--profiler", how, "--profiler-start", 0.02,
               "--profiler-stop", 0.12, inject=False)
    check_profile(done)


@pytest.mark.parametrize("how, got", [("slot", 39), ("old", 39), ("new", 0), ("idle", 0)])
def test_the_slot_is_one(run, how, got):
    done = run(*STEADY, "--duration", 0.01, "--profiler", how, client="wait=150,subscribe,only")
    assert done.said("subscribed") == [got]


def test_the_old_profiler_tries_once(run):
    done = run(*STEADY, "--duration", 0.3, "--profiler", "old", "--profiler-start", 0.2,
               client="subscribe,only")
    assert [n.value for n in noted(done, "refused")] == [39] and not noted(done, "profiled")


@pytest.mark.parametrize("client, why", [
    ("wait=150", "its callbacks were replaced"),
    ("wait=150,disable", "its records were switched off")])
def test_harm_to_a_profiler_ends_the_process(run, client, why):
    done = run(*STEADY, "--duration", 0.05, "--profiler", "new", client=client,
               status=-signal.SIGABRT)
    assert done.done.stderr.splitlines()[-1] == (
        f"sim: a client of CUPTI was recording when {why}")
    assert "output" in done.done.stdout


def test_a_profiler_that_comes_takes_all(run):
    """What was lent by the client before, the profiler gets, and does not know."""
    done = run(*STEADY, "--duration", 0.3, "--profiler", "new", "--profiler-start", 0.05,
               "--profiler-stop", 0.25, client="system,stay,buffer=600")
    (inner,), (outer,) = noted(done, "profiled"), noted(done, "profiling")
    assert outer.value > 0 and inner.value > 5
    assert all(r["start"] - done.offsets[0] < inner.end for r in done.records)
