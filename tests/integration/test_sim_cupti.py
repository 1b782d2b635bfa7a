# SPDX-License-Identifier: BSD-2-Clause
"""The simulated CUPTI: every record against what the simulated device did, and every fault."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
import truth as truthfile  # noqa: E402

pytestmark = pytest.mark.parallel

# directory, library, version number
VERSIONS = [("lib", "libcupti.so.13", 130001), ("lib-cupti128", "libcupti.so.12", 26),
            ("lib-cupti12", "libcupti.so.12", 22), ("lib-cupti11", "libcupti.so.11.8", 18)]
LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchKernel_ptsz", "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel", "cuGraphLaunch"}
CBIDS = {int(number): name for name, number in
         re.findall(r"C\((\w+), (\d+)\)", (ROOT / "tests/sim/cbid.h").read_text())}


class Run:
    """What a job did, and what the client of CUPTI in it received."""

    def __init__(self, done, truth, lines):
        self.done = done
        self.truth = truth
        self.lines = lines
        self.calls = [r for r in lines if r.get("kind") == "call"]
        self.records = [r for r in lines if r.get("kind") in ("kernel", "copy", "set")]
        self.offsets = [r["offset"] for r in lines if "offset" in r]

    def said(self, word):
        """The values that the client told under that word."""
        return [r[word] for r in self.lines if word in r]

    def works(self):
        """Work by what no two pieces have in common."""
        out = {(w.begin, w.stream, w.node): w for w in self.truth.work}
        assert len(out) == len(self.truth.work)
        return out

    def shift(self):
        """By how much records' times differ from CLOCK_MONOTONIC: exact from one record's."""
        record = self.records[0]
        starts = [w.begin for w in self.truth.work
                  if (w.stream, w.node) == (record["stream"], record["node"])]
        shift = record["start"] - min(
            starts, key=lambda begin: abs(record["start"] - self.offsets[0] - begin))
        assert abs(shift - self.offsets[0]) < 100000
        return shift

    def pairs(self):
        """[(record, work)]; fails if a record is of no work, or of another's."""
        works, shift = self.works(), self.shift()
        return [(r, works.pop((r["start"] - shift, r["stream"], r["node"])))
                for r in self.records]


@pytest.fixture
def run(build, tmp_path):
    """Runs a job with the client in it."""
    sim = build / "sim"
    assert (sim / "cupti_client.so").exists(), "not built: make sim"
    count = iter(range(100))

    def go(*options, lib=VERSIONS[0], client="system", status=0, inject=True, **env):
        path = tmp_path / f"{next(count)}.truth"
        out = path.with_suffix(".json")
        more = {"SIMCLIENT": client, "SIMCLIENT_OUT": str(out),
                "SIMCLIENT_CUPTI": str(sim / lib[0] / lib[1])}
        if inject:
            more["CUDA_INJECTION64_PATH"] = str(sim / "cupti_client.so")
        done = subprocess.run(
            [sim / "simjob", "--lib", sim / lib[0], "--cupti", lib[1], "--truth", path,
             *map(str, options)], env={**os.environ, **more, **env}, capture_output=True, text=True,
            timeout=120, check=False)
        assert done.returncode == status, done
        lines = out.read_text().splitlines() if out.exists() else []
        return Run(done, truthfile.load(path), [json.loads(line) for line in lines])

    return go


def check_record(record, work):
    assert record["kind"] == work.kind
    assert record["end"] - record["start"] == work.end - work.begin
    for field in ("device", "context", "stream", "graph", "node"):
        assert record[field] == getattr(work, field), (field, record, work)
    if work.kind == "kernel":
        assert bytes.fromhex(record["name"]) == work.kernel
        assert tuple(record["grid"]) == work.grid and tuple(record["block"]) == work.block
        assert (record["smem"], record["registers"]) == (work.smem, work.registers)
        return
    assert (record["bytes"], record["to"]) == (work.bytes, work.target)
    assert record["async"] == work.is_async
    if work.kind == "copy":
        assert (record["copy"], record["from"]) == (work.copy, work.source)
    else:
        assert record["value"] == work.value


def check_calls(run, every=False):
    """Records of calls lie within what the caller measured, and name the work's call."""
    caused = collections.defaultdict(list)
    for work in run.truth.work:
        caused[work.correlation].append(work)
    shift = run.shift()
    seen = set()
    for record in run.calls:
        assert record["correlation"] not in seen, record
        seen.add(record["correlation"])
        assert CBIDS[record["cbid"]] in LAUNCHES or every
        for work in caused.get(record["correlation"], []):
            call = work.call
            assert CBIDS[record["cbid"]] == call.api and record["ret"] == call.ret
            assert (record["process"], record["thread"]) == (run.truth.pid, call.tid)
            assert call.entry <= record["start"] - shift <= work.enqueued
            assert work.enqueued <= record["end"] - shift <= call.leave
    launches = {w.correlation for w in run.truth.work if w.call.api in LAUNCHES}
    assert launches <= seen


def check_all(run):
    assert run.truth.work and run.truth.unworked == 0
    assert all(w.call.entry <= w.enqueued <= w.begin <= w.end for w in run.truth.work)
    assert all(w.enqueued <= w.call.leave for w in run.truth.work)
    pairs = run.pairs()
    for record, work in pairs:
        check_record(record, work)
        assert record["correlation"] == work.correlation
    assert len(pairs) == len(run.truth.work), "work without a record"
    assert run.said("dropped") == [0] and run.said("outstanding") == [0]


@pytest.mark.parametrize("pattern, options", [
    ("train", ["--threads", 2, "--iterations", 2]), ("copy", ["--iterations", 2]),
    ("graph", ["--threads", 2]), ("streams", ["--threads", 4, "--iterations", 4]),
    ("names", []), ("unload", ["--iterations", 4]), ("nccl", []), ("pageable", []),
    ("train", ["--per-thread"]), ("train", ["--api", "runtime"]), ("mix", ["--threads", 2]),
    ("streams", ["--devices", 3, "--threads", 3])])
def test_every_record_is_true(run, pattern, options):
    done = run("--pattern", pattern, *options)
    assert done.said("version") == [130001]
    check_all(done)
    check_calls(done)


@pytest.mark.parametrize("lib", VERSIONS[1:], ids=lambda lib: lib[0])
def test_every_version(run, lib):
    done = run("--pattern", "train", "--threads", 2, lib=lib, client="system,buffer=2000")
    assert done.said("version") == [lib[2]]
    check_all(done)
    check_calls(done, every=lib[2] < 24)  # it cannot ask for launches alone


@pytest.mark.parametrize("version", ["12.0", "12.6", "12.9", "13.1", "13.1u1"])
def test_versions_by_environment(run, version):
    done = run("--pattern", "train", SIMCUPTI_VERSION=version)
    numbers = {"12.0": 18, "12.6": 24, "12.9": 28, "13.1": 130100, "13.1u1": 130101}
    assert done.said("version") == [numbers[version]]
    check_all(done)


def test_all_calls_and_their_errors(run):
    done = run("--pattern", "errors", client="system,all")
    check_calls(done, every=True)
    # all but what was called before CUPTI listened, and the call that loaded the client
    calls = [c for c in done.truth.calls if c.library == "driver"][1:]
    assert [(CBIDS[r["cbid"]], r["ret"]) for r in done.calls] == [(c.api, c.ret) for c in calls]


def test_small_buffers_are_asked_for_by_those_who_call(run):
    done = run("--pattern", "train", "--threads", 2, "--iterations", 5,
               client="system,buffer=4096")
    check_all(done)
    requests = [r["thread"] for r in done.lines if "request" in r]
    workers = {c.tid for c in done.truth.calls}
    assert set(requests) & workers, "no thread of the program asked"
    completes = [r for r in done.lines if "complete" in r]
    assert len(completes) == len(requests) and {r["ends"] for r in completes} == {12}
    assert max(r["complete"] for r in completes) <= 4096
    done = run("--pattern", "train", client="system,records=3")
    check_all(done)


def test_order_is_each_streams_only(run):
    done = run("--pattern", "streams", "--threads", 2, "--iterations", 3)
    starts = [r["start"] for r in done.records]
    assert starts != sorted(starts)
    by_stream = collections.defaultdict(list)
    for record in done.records:
        by_stream[record["stream"]].append(record["start"])
    assert all(times == sorted(times) for times in by_stream.values())


def test_threads_have_pthreads_ids_by_default(run):
    done = run("--pattern", "train", client="x")
    assert {r["thread"] for r in done.calls} != {done.truth.pid}


@pytest.mark.parametrize("client, env", [
    ("monotonic", {}), ("system", {"SIMCUPTI_OFFSET_NS": "-5000000000"})])
def test_clocks(run, client, env):
    done = run("--pattern", "train", client=client, **env)
    check_all(done)
    if client == "monotonic":
        assert done.shift() == 0


def test_a_clock_that_drifts(run):
    done = run("--pattern", "overlap", "--iterations", 10, client="system",
               SIMCUPTI_DRIFT_PPM="200")
    works = sorted(done.truth.work, key=lambda w: (w.begin, w.stream))
    records = sorted(done.records, key=lambda r: (r["start"], r["stream"]))
    shifts = [r["start"] - w.begin for r, w in zip(records, works)]
    assert shifts == sorted(shifts) and shifts[-1] > shifts[0]
    passed = works[-1].begin - works[0].begin
    assert shifts[-1] - shifts[0] == pytest.approx(passed * 200e-6, abs=2)


def test_a_clock_registered_twice_breaks_records(run):
    done = run("--pattern", "train", client="monotonic,twice")
    begins = {w.begin for w in done.truth.work}
    assert done.records and not begins & {r["start"] for r in done.records}


@pytest.mark.parametrize("fault, of", [("START0", 3), ("END0", 5), ("NEGATIVE", 7)])
def test_bad_times(run, fault, of):
    done = run("--pattern", "train", **{f"SIMCUPTI_{fault}": str(of)})
    assert len(done.records) == len(done.truth.work)
    bad = {"START0": lambda r: r["start"] == 0, "END0": lambda r: r["end"] == 0,
           "NEGATIVE": lambda r: 0 < r["end"] < r["start"]}[fault]
    assert sum(map(bad, done.records)) == len(done.records) // of


def test_dropped_records_are_counted(run):
    done = run("--pattern", "train", SIMCUPTI_DROP="4")
    work = len(done.truth.work)
    assert done.said("dropped") == [work // 4] and len(done.records) == work - work // 4
    done = run("--pattern", "train", client="system,refuse=2,buffer=2048")
    launches = sum(c.api in LAUNCHES for c in done.truth.calls)
    lost = len(done.truth.work) - len(done.records) + launches - len(done.calls)
    assert done.said("dropped") == [lost] and lost > 0


def test_correlation_ids_wrap(run):
    done = run("--pattern", "train", SIMCUPTI_CORRELATION=str(2**32 - 50))
    check_all(done)
    ids = [w.correlation for w in sorted(done.truth.work, key=lambda w: w.enqueued)]
    assert ids[0] > 2**32 - 50 and 0 not in ids and min(ids[1:]) < 200


@pytest.mark.parametrize("env", [{}, {"SIMCUPTI_GRAPH_IDS": "shifted"},
                                 {"SIMCUPTI_VERSION": "13.1u1"}])
def test_graphs_ids_in_later_sessions(run, env):
    done = run("--pattern", "graph", "--duration", 0.12, "--kernel-ns", 50000,
               client="system,on=20,off=1", **env)
    begins = [r["at"] for r in done.lines if "begins" in r]
    begun = [r["at"] for r in done.lines if "begun" in r]
    assert len(begun) > 2
    right = collections.Counter()
    ids = {w.correlation for w in done.truth.work}
    for record, work in done.pairs():
        if work.node and work.enqueued > begun[1]:
            if any(a <= work.enqueued <= b for a, b in zip(begins, begun)):
                continue
            right[record["correlation"] == work.correlation] += 1
            assert record["correlation"] in ids and record["correlation"] <= work.correlation
        elif work.enqueued < begins[1]:
            assert record["correlation"] == work.correlation
    assert set(right) == {"SIMCUPTI_VERSION" in env}


def test_work_that_has_not_ended(run):
    done = run("--pattern", "midexit", client="system")
    ended = {r["start"] for r in done.records}
    assert ended and len(ended) < len(done.truth.work)
    for record, work in done.pairs():
        check_record(record, work)
    done = run("--pattern", "midexit", client="system,forced")
    assert len(done.records) == len(done.truth.work)
    running = [r for r in done.records if r["end"] == 0]
    assert running and sum(r["start"] == 0 for r in running) >= len(running) - 1


def test_a_period_delivers_while_it_runs(run):
    done = run("--pattern", "steady", "--rate", 2000, "--duration", 0.1, client="period=10,stay",
               SIMCUPTI_LOG="")
    assert len(done.records) > 20 and done.said("flushed") == []
    for record, work in done.pairs():
        check_record(record, work)


def test_errors_by_function(run, tmp_path):
    log = tmp_path / "log"
    done = run("--pattern", "train", client="system,subscribe", SIMCUPTI_LOG=str(log),
               SIMCUPTI_FAIL="cuptiActivityEnable=35@2,cuptiActivityFlushAll=999")
    assert done.said("begun") == [35] and done.said("flushed") == [999]
    lines = [line.split() for line in log.read_text().splitlines()]
    assert {int(line[0]) for line in lines} == {done.truth.pid}
    assert [line[2:] for line in lines if line[2] == "cuptiActivityEnable"] == [
        ["cuptiActivityEnable", "10", "0"], ["cuptiActivityEnable", "1", "35"]]
    assert ["cuptiSubscribe", "0", "0"] in [line[2:] for line in lines]


def test_finalize_ends_all(run):
    done = run("--pattern", "train", client="system,subscribe,finalize")
    assert done.said("finalized") == [0]
    check_all(done)


def test_a_subscriber_is_called_at_entry_and_exit(run):
    done = run("--pattern", "errors", client="system,subscribe,callbacks")
    # all but cuInit, in which the client was loaded
    calls = [c for c in done.truth.calls if c.library == "driver"][1:]
    seen = [r for r in done.lines if "callback" in r]
    assert [r["callback"] for r in seen] == [0, 1] * len(calls)
    assert [(CBIDS[r["cbid"]], r["ret"]) for r in seen[1::2]] == [(c.api, c.ret) for c in calls]
    assert all(a["correlation"] == b["correlation"] for a, b in zip(seen[::2], seen[1::2]))
    ids = {w.correlation: w for w in done.truth.work}
    launches = [r for r in seen if CBIDS[r["cbid"]] in LAUNCHES and r["callback"] and not r["ret"]]
    assert launches and {r["correlation"] for r in launches} <= set(ids)


def test_detached_within_a_call(run):
    """As CUPTI wants it; the program goes on, with nobody listening."""
    done = run("--pattern", "train", "--iterations", 3, client="system,subscribe,callbacks,detach=99")
    assert done.said("finalized") == [0]
    assert 0 < len(done.records) < len(done.truth.work)
    for record, work in done.pairs():
        check_record(record, work)
    assert {w.correlation for w in done.truth.work[-50:]} == {0}


@pytest.mark.parametrize("api", ["driver", "runtime"])
def test_forked_children_are_none_of_its_business(run, api):
    done = run("--pattern", "forks", "--threads", 2, "--iterations", 3, "--api", api)
    check_all(done)
    check_calls(done)


def test_a_reset_of_the_device(run):
    done = run("--pattern", "reset")
    check_all(done)
    assert len({r["context"] for r in done.records}) == 3
    done = run("--pattern", "reset", SIMCUPTI_RESET="lose")
    assert {r["context"] for r in done.records} == {3}
    assert len(done.pairs()) == sum(w.context == 3 for w in done.truth.work)


# ---- the device ----

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
    """Kernels that begin the moment the one before ends: all but the first after a wait, or none."""
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


def test_the_slot_is_one(run):
    for how, got in (("slot", [39]), ("old", [39]), ("new", [0]), ("idle", [0])):
        done = run(*STEADY, "--duration", 0.05, "--profiler", how, "--profiler-stop", 0.01,
                   client="wait=20,subscribe")
        assert done.said("subscribed") == got


def test_the_old_profiler_tries_once(run):
    done = run(*STEADY, "--duration", 0.05, "--profiler", "old", "--profiler-start", 0.03,
               client="subscribe")
    assert [n.value for n in noted(done, "refused")] == [39] and not noted(done, "profiled")


@pytest.mark.parametrize("client, why", [
    ("wait=30", "its callbacks were replaced"),
    ("wait=30,disable", "its records were switched off")])
def test_harm_to_a_profiler_ends_the_process(run, client, why):
    done = run(*STEADY, "--duration", 0.1, "--profiler", "new", client=client,
               status=-signal.SIGABRT)
    assert done.done.stderr.splitlines()[-1] == (
        f"sim: a client of CUPTI was recording when {why}")
    assert "output" in done.done.stdout


def test_a_profiler_that_comes_takes_all(run):
    """What was lent by the client before, the profiler gets, and does not know."""
    done = run(*STEADY, "--duration", 0.15, "--profiler", "new", "--profiler-start", 0.05,
               "--profiler-stop", 0.1, client="system,stay,buffer=2000")
    (inner,), (outer,) = noted(done, "profiled"), noted(done, "profiling")
    assert outer.value > 0 and inner.value > 20
    assert all(r["start"] - done.offsets[0] < inner.end for r in done.records)


# ---- the real one's layouts ----

def newest(folders, record):
    """The number of the newest form of a record that the headers of a version have."""
    (path,) = [p for f in folders for p in pathlib.Path(f).glob("cupti_activity.h")]
    return max(map(int, re.findall(rf"CUpti_Activity{record}(\d+);", path.read_text())))


# directories with the headers of CUPTI and CUDA, colons between, versions apart by semicolons
HEADERS = os.environ.get("GBPF_CUPTI_HEADERS")

if HEADERS:
    @pytest.mark.long
    @pytest.mark.parametrize("headers", HEADERS.split(";"))
    def test_layouts_against_the_real_headers(tmp_path, headers):
        folders = headers.split(":")
        subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-c", "-o", tmp_path / "layout.o",
                        *(f"-I{folder}" for folder in folders), f"-I{ROOT}/tests/sim",
                        f"-DKERNEL_N={newest(folders, 'Kernel')}",
                        f"-DMEMCPY_N={newest(folders, 'Memcpy')}",
                        ROOT / "tests/sim/cupti_layout.c"], check=True)
