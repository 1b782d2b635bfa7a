# SPDX-License-Identifier: BSD-2-Clause
"""What gbpf records against what simulated jobs did: every call, argument and time."""

import collections
import signal
import statistics

import compare
import gbpf
import pytest
from gbpf import NO_BEGIN, NO_END, OPEN, POLL, RUNGS

pytestmark = pytest.mark.parallel
DRIVER = ["train", "sync", "copy", "graph", "allocs", "errors", "names", "unload", "nccl",
          "nested64", "exception", "fork", "churn", "dlopen-late"]
RUNTIME = ["train", "sync", "copy", "graph", "nccl", "fork", "churn"]


def checked(tmp_path, *job, pattern, **kwargs):
    """Traces a job and compares call by call; (pairs, calls, recording, truths)."""
    done, recording, truths = gbpf.trace_job(tmp_path, "--pattern", pattern, *job, **kwargs)
    assert done.returncode == 0, done.stderr
    calls = gbpf.calls(recording)
    pairs = compare.pairs(truths, calls, gbpf.hooked(recording))
    assert pairs, "nothing was recorded"
    for truth, call in pairs:
        compare.check_arguments(truth, call)
        compare.check_time(truth, call)
    quality = gbpf.view(recording, "api_sum")["quality"]
    if pattern == "errors":  # it launches an invalid handle, which has no name
        quality["losses"].pop("name")
    assert not any(quality["losses"].values()), quality
    return pairs, calls, recording, truths


@pytest.mark.parametrize("pattern", DRIVER)
def test_driver_calls(tmp_path, pattern):
    checked(tmp_path, "--iterations", 3, pattern=pattern)


@pytest.mark.parametrize("pattern", RUNTIME)
def test_runtime_calls_and_the_driver_calls_inside(tmp_path, pattern):
    pairs, calls, _, _ = checked(tmp_path, "--iterations", 3, "--api", "runtime",
                                 pattern=pattern, api="runtime")
    by_id = {c["id"]: c for c in calls}
    nested = 0
    for truth, call in pairs:
        assert (call["parent"] >= 0) == (truth.depth > 0), (truth, call)
        if call["parent"] < 0:
            continue
        nested += 1
        parent = by_id[call["parent"]]
        assert parent["begin"] <= call["begin"] and call["end"] <= parent["end"]
    assert nested
    children = collections.defaultdict(int)
    for call in calls:
        if call["parent"] >= 0:
            children[call["parent"]] += call["duration"]
    for call in calls:
        if not call["flags"] & POLL:
            assert call["self"] == call["duration"] - children[call["id"]], call


@pytest.mark.parametrize("rung, pattern", [
    # the last rung takes seconds to let go: of the quick tests, one is on it
    pytest.param(rung, pattern,
                 marks=[pytest.mark.long] * (rung == "single" and pattern != "train"))
    for rung in RUNGS for pattern in ("train", "allocs", "copy", "poll")])
def test_every_rung_records_the_same(tmp_path, rung, pattern):
    _, calls, recording, truths = checked(tmp_path, "--iterations", 2, pattern=pattern, rung=rung,
                                          api=ONE_OF_EACH if rung == "single" else None)
    if pattern == "poll":
        check_polls(calls, truths, gbpf.hooked(recording))


# the last rung takes a tenth of a second to let go of each function
ONE_OF_EACH = ",".join([
    "cuLaunchKernel", "cuLaunchKernelEx", "cuStreamSynchronize", "cuEventQuery", "cuStreamQuery",
    "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemcpy2D_v2",
    "cuMemsetD32Async", "cuModuleGetFunction", "cuEventRecord", "cuCtxSynchronize"])


@pytest.mark.parametrize("lib", ["lib-endbr", "lib-stripped"])
def test_other_builds_of_the_libraries(tmp_path, lib):
    checked(tmp_path, "--iterations", 3, pattern="train", lib=lib)


def test_single_stepped_entries_only_when_allowed(tmp_path):
    (tmp_path / "refused").mkdir()
    done, _, _ = gbpf.trace_job(tmp_path / "refused", "--pattern", "train", lib="lib-sub")
    assert "no function begins with an instruction that is safe" in done.stderr
    checked(tmp_path, "--iterations", 2, pattern="train", lib="lib-sub",
            options=["--allow-slow-probes"])


@pytest.mark.parametrize("threads", [4, 64])
def test_threads(tmp_path, threads):
    pairs, _, _, _ = checked(tmp_path, "--threads", threads, "--iterations", 5, pattern="train")
    assert len({truth.tid for truth, _ in pairs}) >= threads


def test_per_thread_default_stream(tmp_path):
    pairs, _, _, _ = checked(tmp_path, "--per-thread", "--iterations", 3, pattern="train")
    assert any(call["api"].endswith("_ptsz") for _, call in pairs)


def names_of(pairs):
    return [(truth, call) for truth, call in pairs if truth.kernel is not None and "grid" in call]


def test_every_kernel_is_named(tmp_path):
    pairs, _, _, _ = checked(tmp_path, "--iterations", 3, pattern="train")
    launches = names_of(pairs)
    assert launches
    for truth, call in launches:
        assert bytes.fromhex(call["kernel"]) == truth.kernel, (truth, call)


def test_hostile_names_arrive_byte_for_byte(tmp_path):
    pairs, _, _, _ = checked(tmp_path, "--iterations", 2, pattern="names")
    seen = set()
    for truth, call in names_of(pairs):
        name = bytes.fromhex(call["kernel"])
        if truth.kernel:
            assert name == truth.kernel[:8191], (truth.kernel[:80], name[:80])
        else:
            assert name.startswith(b"kernel@0x"), name
        seen.add(len(truth.kernel))
    assert max(seen) > 8191, "one name is too long, and was cut"


def test_a_handle_that_comes_again_has_its_new_name(tmp_path):
    pairs, _, _, _ = checked(tmp_path, "--iterations", 6, pattern="unload")
    named = collections.defaultdict(set)
    for truth, call in names_of(pairs):
        assert bytes.fromhex(call["kernel"]) == truth.kernel
        named[truth.func].add(truth.kernel)
    assert any(len(names) > 1 for names in named.values()), "no handle came twice"


@pytest.mark.parametrize("offset", [16, 40])
def test_the_place_of_names_is_learnt(tmp_path, offset):
    pairs, _, _, _ = checked(tmp_path, "--iterations", 4, "--name-offset", offset, pattern="train")
    for truth, call in names_of(pairs):
        assert bytes.fromhex(call["kernel"]) == truth.kernel


@pytest.mark.parametrize("kind", ["cold", "unreadable", "garbage"])
def test_names_that_cannot_be_read_are_not_made_up(tmp_path, kind):
    with gbpf.job(tmp_path, "--pattern", "train", "--duration", 0, "--name", kind,
                  "--dispatch-ns", 20000, "--cpu-ns", 100000) as job:
        recording = tmp_path / "t.gbpf"
        done = gbpf.gbpf("trace", "-p", job.pid, "-d", "0.5", "-o", recording)
        assert done.returncode == 0, done.stderr
    kernels = {bytes.fromhex(c["kernel"]) for c in gbpf.calls(recording) if "grid" in c}
    truth = {c.kernel for t in gbpf.truths(tmp_path).values() for c in t.calls if c.kernel}
    assert kernels
    for name in kernels:
        assert name in truth if kind == "cold" else name.startswith(b"kernel@0x"), name


def check_polls(calls, truths, names):
    """Polls stand for all queries: in number, in time inside, and as one wait each."""
    polls = [c for c in calls if c["flags"] & POLL]
    queries = [c for t in truths.values() for c in t.calls
               if c.api in compare.QUERIES and c.api in names]
    assert queries and sum(p["count"] for p in polls) == len(queries)
    for poll in polls:
        inside = [q for q in queries if q.tid == poll["tid"] and q.api == poll["api"]
                  and poll["begin"] >= q.entry and q.leave and poll["begin"] <= q.leave
                  or q.tid == poll["tid"] and q.api == poll["api"]
                  and poll["begin"] <= q.entry and q.leave <= poll["end"] + 2000000]
        assert inside, poll
    not_ready = sum(q.ret == 600 for q in queries)
    if not_ready > 50:
        assert len(polls) < len(queries) / 4, "loops were not collapsed"


@pytest.mark.parametrize("api", ["driver", "runtime"])
def test_a_poll_loop_is_one_wait(tmp_path, api):
    job = ["--iterations", 4, "--kernel-ns", 2000000] + (["--api", "runtime"] * (api == "runtime"))
    _, calls, recording, truths = checked(tmp_path, *job, pattern="poll", api=api)
    check_polls(calls, truths, gbpf.hooked(recording))
    rows = {r["name"]: r for r in gbpf.view(recording, "api_sum")["rows"]}
    queries = [r for name, r in rows.items() if name in compare.QUERIES]
    assert queries and all(r["errors"] == 0 for r in queries), "not ready is not an error"


def test_a_call_that_never_returns_is_open(tmp_path):
    with gbpf.job(tmp_path, "--pattern", "opencall", "--start-delay", 0.7) as job:
        recording = tmp_path / "t.gbpf"
        done = gbpf.gbpf("trace", "-p", job.pid, "-d", "1.5", "-o", recording)
        assert done.returncode == 0, done.stderr
    open_calls = [c for c in gbpf.calls(recording) if c["flags"] & OPEN]
    assert [c["api"] for c in open_calls] == ["cuStreamSynchronize"]
    rows = gbpf.view(recording, "open_sum")["rows"]
    assert any(r["name"] == "cuStreamSynchronize" and r["state"] == "open" for r in rows), rows


@pytest.mark.parametrize("pattern,lost", [("longjmp", True), ("cancel", True)])
def test_calls_left_without_return(tmp_path, pattern, lost):
    done, recording, truths = gbpf.trace_job(tmp_path, "--pattern", pattern, "--iterations", 4)
    assert done.returncode == 0, done.stderr
    calls = gbpf.calls(recording)
    for truth, call in compare.pairs(truths, calls, gbpf.hooked(recording)):
        compare.check_time(truth, call)
        assert bool(truth.leave) != bool(call["flags"] & (NO_END | OPEN)), (truth, call)
    assert any(c["flags"] & (NO_END | OPEN) for c in calls) == lost


def test_exec_keeps_the_number_and_forgets_the_rest(tmp_path):
    done, recording, truths = gbpf.trace_job(tmp_path, "--pattern", "exec", "--iterations", 3)
    assert done.returncode == 0, done.stderr
    calls = [c for c in gbpf.calls(recording) if not c["flags"] & POLL]
    names = gbpf.hooked(recording)
    happened = sum(c.api in names for t in truths.values() for c in t.calls)
    assert len(calls) >= happened > 0


def attach(tmp_path, *job, seconds=1, trace=()):
    with gbpf.job(tmp_path, *job) as process:
        recording = tmp_path / "t.gbpf"
        done = gbpf.gbpf("trace", "-p", process.pid, "-d", seconds, "-o", recording, *trace)
        assert done.returncode == 0, done.stderr
    return recording, gbpf.truths(tmp_path)


@pytest.mark.parametrize("threads", [1, 4])
def test_late_attach_misses_nothing_inside_its_window(tmp_path, threads):
    recording, truths = attach(tmp_path, "--pattern", "train", "--duration", 0, "--threads",
                               threads, "--dispatch-ns", 10000, "--cpu-ns", 20000)
    names = gbpf.hooked(recording)
    window = gbpf.view(recording, "api_sum")["quality"]["windows"][0]
    got = compare.recorded(gbpf.calls(recording))
    margin = 300_000_000  # attaching and the first look at the rings
    for (pid, tid), sequence in got.items():
        want = [c for c in truths[pid].within(window["begin_ns"] + margin,
                                              window["end_ns"] - margin)
                if c.tid == tid and c.api in names and c.api not in compare.QUERIES]
        assert want
        mine = [c for c in sequence if not c["flags"] & (NO_BEGIN | NO_END)
                and want[0].entry <= c["begin"] <= want[-1].leave]
        assert not compare.same_sequence(want, mine)
        for truth, call in zip(want, mine):
            compare.check_arguments(truth, call)
            compare.check_time(truth, call)
            if truth.kernel is not None and "grid" in call:
                assert bytes.fromhex(call["kernel"]) == truth.kernel


@pytest.mark.quiet
@pytest.mark.parametrize("rung", RUNGS)
def test_times_are_right_within_the_cost_of_a_probe(tmp_path, rung):
    """What the probes see lies inside what the job sees; the difference is the probe's cost."""
    pairs, _, recording, _ = checked(
        tmp_path, "--iterations", 60, "--dispatch-ns", 5000, pattern="train", rung=rung,
        api="cuLaunchKernel,cuStreamSynchronize,cuModuleGetFunction")
    cost = compare.probe_cost(recording)["launch_ns"]
    apart = [truth.ns - call["duration"] for truth, call in pairs
             if truth.api == "cuLaunchKernel"]
    assert len(apart) > 1000
    assert statistics.median(apart) <= 1.5 * cost + 500
    for q in (0.5, 0.9):
        mine = compare.quantile([c["duration"] for t, c in pairs if t.api == "cuLaunchKernel"], q)
        theirs = compare.quantile([t.ns for t, c in pairs if t.api == "cuLaunchKernel"], q)
        assert 0 <= theirs - mine <= 2 * cost + 1000, (q, theirs, mine, cost)


def test_output_of_a_traced_job_is_unchanged(tmp_path):
    alone = gbpf.run(gbpf.JOB, "--pattern", "train", "--iterations", 20, "--truth",
                     tmp_path / "alone.%p", env=gbpf.sim_env())
    traced = gbpf.gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", "--", gbpf.JOB, "--pattern",
                       "train", "--iterations", 20, "--truth", tmp_path / "traced.%p",
                       env=gbpf.sim_env())
    outputs = [[line for line in done.stdout.splitlines() if line.startswith("output")]
               for done in (alone, traced)]
    assert outputs[0] and outputs[0] == outputs[1]


@pytest.mark.parametrize("rung", RUNGS)
def test_killing_gbpf_leaves_the_target_running(tmp_path, rung):
    with gbpf.job(tmp_path, "--pattern", "train", "--duration", 0, "--dispatch-ns", 10000,
                  "--cpu-ns", 20000) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", 0, "--rung", rung, "--api",
                          "cuLaunchKernel,cuStreamSynchronize") as tracer:
            gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").stat().st_size > 100_000)
            tracer.send_signal(signal.SIGKILL)
            tracer.wait()
        assert job.poll() is None
        rows = gbpf.view(tmp_path / "t.gbpf.part", "api_sum")
        assert rows["rows"] and rows["quality"]["file_end"] == "cut", rows["quality"]
    assert job.returncode == 0
