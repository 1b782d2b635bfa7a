# SPDX-License-Identifier: BSD-2-Clause
"""The simulated CUPTI: every record against what the simulated device did, and every fault."""
import collections
import os
import pathlib
import re
import signal
import subprocess

import cupti_runs
import pytest
from cupti_runs import (CBIDS, LAUNCHES, ROOT, RUNTIME_CBIDS, VERSIONS, check_all, check_calls,
                        check_record, name_of, truthfile)

pytestmark = pytest.mark.parallel
run = cupti_runs.run


@pytest.mark.parametrize("pattern, options", [
    ("train", ["--threads", 2, "--iterations", 2]), ("copy", ["--iterations", 2]),
    ("graph", ["--threads", 2]), ("streams", ["--threads", 4, "--iterations", 4]),
    ("names", []), ("unload", ["--iterations", 4]), ("nccl", []), ("pageable", []),
    ("train", ["--per-thread"]), ("train", ["--api", "runtime"]), ("mix", ["--threads", 2]),
    ("streams", ["--devices", 3, "--threads", 3]), ("peer", ["--devices", 3, "--threads", 3]),
    ("peer", [])])
def test_every_record_is_true(run, pattern, options):
    done = run("--pattern", pattern, *options)
    assert done.said("version") == [130001]
    check_all(done)
    check_calls(done)


@pytest.mark.long
@pytest.mark.parametrize("client", ["system", "system,buffer=3000", "system,period=5,monotonic"])
def test_many_threads_and_streams(run, client):
    done = run("--pattern", "streams", "--threads", 16, "--iterations", 50, client=client)
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


def test_of_a_call_through_the_runtime_that_of_the_runtime_is_recorded(run):
    """And none of the driver's that it makes, as the real one does."""
    done = run("--pattern", "train", "--api", "runtime", client="system,all")
    check_all(done)
    records = {r["correlation"]: r for r in done.calls}
    assert {records[w.correlation]["runtime"] for w in done.truth.work} == {1}
    # but for how a thread begins, which here comes before its first call of the runtime
    assert {name_of(r) for r in done.calls if not r["runtime"]} <= {
        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"}
    inner = {c.api for c in done.truth.calls if done.truth.recorded(c) is not c}
    assert {"cuLaunchKernel", "cuMemcpyHtoDAsync_v2"} <= inner


@pytest.mark.parametrize("api", ["driver", "runtime"])
def test_each_call_has_an_id_whether_recorded_or_not(run, api):
    done = run("--pattern", "train", "--iterations", 3, "--api", api)
    calls = [c for c in done.truth.calls
             if c.library != "nccl" and done.truth.recorded(c) is c]
    at = {id(c): n for n, c in enumerate(calls)}
    steps = {w.correlation - at[id(done.truth.recorded(w.call))] for w in done.truth.work}
    assert len(steps) == 1 and len(done.truth.work) > 50


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


def test_what_asking_for_buffers_took(run):
    done = run("--pattern", "train", "--iterations", 5, client="system,buffer=2048")
    took = [r for r in done.lines if r.get("kind") == "overhead"]
    requests = [r for r in done.lines if "request" in r and r["thread"] == done.truth.pid]
    assert len(took) > 5 and {r["what"] for r in took} == {7 << 16}
    assert {r["thread"] for r in took} == {done.truth.pid} and len(took) <= len(requests)
    assert all(0 < r["end"] - r["start"] for r in took)


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
    done = run("--pattern", "graph", "--iterations", 50,
               client="system,subscribe,callbacks,turn=100", **env)
    begins = [r["at"] for r in done.lines if "begins" in r]
    assert len(begins) >= 3
    seen = collections.Counter()
    ids = {w.correlation for w in done.truth.work}
    for record, work in done.pairs():
        if not work.node or work.call.entry < begins[1]:
            assert record["correlation"] == work.correlation
            continue
        seen[record["correlation"] == work.correlation] += 1
        assert record["correlation"] in ids and record["correlation"] <= work.correlation
    assert set(seen) == {"SIMCUPTI_VERSION" in env}


def test_a_call_of_which_the_end_is_not_seen(run):
    """Recording of calls goes off while the thread is in a sync: until it makes a call that is
    recorded again, its works have the sync's id."""
    done = run("--pattern", "longsync", "--launches", 20, "--rate", 40000, "--wait-us", 3000,
               "--iterations", 40, client="system,all,calls,on=13,off=11")
    truth, shift = done.truth, done.shift()
    calls = [c for c in truth.calls if c.library == "driver"]
    at = {id(c): n for n, c in enumerate(calls)}
    first = truth.work[0].correlation - at[id(truth.work[0].call)]
    records = {r["correlation"]: r for r in done.calls}
    ids = {r["start"] - shift: r["correlation"] for r in done.records}
    offs = list(zip(*([r["at"] for r in done.lines if w in r] for w in ("stops", "stopped"))))
    stuck, clear, seen = 0, True, collections.Counter()
    for n, call in enumerate(calls):
        own = n + first
        if own in records:
            assert name_of(records[own]) == call.api
            stuck, clear = 0, True
        elif any(call.entry < a and b < call.leave for a, b in offs):
            stuck = stuck or own
        elif any(a <= call.leave and call.entry <= b for a, b in offs):
            clear = False  # which came first is not known
        for work in (w for w in truth.work if clear and w.call is call):
            assert work.correlation == own
            assert work.told == ids[work.begin] == (stuck or own)
            seen[bool(stuck), own in records] += 1
    assert seen[True, False] > 20 and seen[False, True] > 100 and not seen[True, True]
    assert len(done.pairs()) == len(truth.work)


def test_work_that_has_not_ended(run):
    done = run("--pattern", "midexit", client="system")
    assert not done.records and done.said("outstanding") == [1], "one buffer has all"
    done = run("--pattern", "midexit", client="system,buffer=2000")
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
        ["cuptiActivityEnable", "10", "0"], ["cuptiActivityEnable", "1", "35"],
        ["cuptiActivityEnable", "4", "0"], ["cuptiActivityEnable", "5", "35"]]
    assert ["cuptiSubscribe", "0", "0"] in [line[2:] for line in lines]


def test_finalize_ends_all(run):
    done = run("--pattern", "train", client="system,subscribe,finalize")
    assert done.said("finalized") == [0]
    check_all(done)


def test_finalize_and_graphs(run):
    run("--pattern", "graph", client="finalize", status=-signal.SIGABRT)
    run("--pattern", "train", client="finalize")


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
    done = run("--pattern", "train", "--iterations", 3,
               client="system,subscribe,callbacks,buffer=600,detach=99")
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


def test_what_a_forked_child_does_is_not_recorded(run):
    done = run("--pattern", "fork", "--iterations", 2)
    check_all(done)
    _, child = truthfile.load_all(done.truth.path)
    assert child.parent == done.truth.pid and child.work
    assert {w.correlation for w in child.work} == {0}


def test_a_reset_of_the_device(run):
    done = run("--pattern", "reset")
    check_all(done)
    assert len({r["context"] for r in done.records}) == 3
    done = run("--pattern", "reset", SIMCUPTI_RESET="lose")
    assert {r["context"] for r in done.records} == {3}
    assert len(done.pairs()) == sum(w.context == 3 for w in done.truth.work)


# ---- the real one's layouts ----

def newest(folders, record):
    """The number of the newest form of a record that the headers of a version have."""
    (path,) = [p for f in folders for p in pathlib.Path(f).glob("cupti_activity.h")]
    return max(map(int, [1, *re.findall(rf"}} CUpti_Activity{record}(\d+);", path.read_text())]))


def check_runtime_cbids(folders):
    text = "".join(p.read_text() for f in folders
                   for p in pathlib.Path(f).glob("cupti_runtime_cbid.h"))
    known = {int(number): name for name, number in
             re.findall(r"CUPTI_RUNTIME_TRACE_CBID_(\w+?)(?:_v\d+)+ *= (\d+)", text)}
    ours = {number: name for number, name in RUNTIME_CBIDS.items() if number <= max(known)}
    assert len(ours) > 50 and ours.items() <= known.items()


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
                        f"-DOVERHEAD_N={newest(folders, 'Overhead')}",
                        ROOT / "tests/sim/cupti_layout.c"], check=True)
        check_runtime_cbids(folders)
