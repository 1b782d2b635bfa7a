# SPDX-License-Identifier: BSD-2-Clause
"""A simulated job traced with GPU time and exported: kineto files against what really ran."""
import collections
import sqlite3

import gbpf
import pytest
from test_gpu_join import Joined
from test_kineto import GPU_CATEGORIES, check_order, check_rows, events, export, load, ns

pytestmark = pytest.mark.root

CATEGORY = {"kernel": "kernel", "copy": "gpu_memcpy", "set": "gpu_memset"}


@pytest.fixture(scope="module", params=["driver", "runtime"])
def job(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    calls = ("--api", "runtime") if request.param == "runtime" else ()
    joined = Joined(folder, "--iterations", "4", *calls, options=calls)
    export(joined.path, folder / "t.json")
    return joined, load(folder / "t.json"), request.param


def test_what_ran_on_the_gpu(job):
    joined, trace, _ = job
    got = collections.defaultdict(list)
    for e in events(trace, *GPU_CATEGORIES):
        got[e["args"]["device"], e["args"]["context"], e["args"]["stream"]].append(e)
    truth = {key[1:]: works for key, works in joined.works().items()}
    assert {k: len(v) for k, v in got.items()} == {k: len(v) for k, v in truth.items()}
    for key, works in truth.items():
        for e, work in zip(got[key], works):
            assert e["cat"] == CATEGORY[work.kind] and abs(ns(e["dur"]) - work.ns) <= 1
            if work.kind != "kernel":
                assert e["args"]["bytes"] == work.bytes
                continue
            assert (e["args"]["grid"], e["args"]["block"]) == (list(work.grid), list(work.block))
            assert e["args"]["registers per thread"] == work.registers
    check_order(trace)
    check_rows(trace)


def test_arrows_are_the_matched_pairs(job):
    joined, trace, api = job
    works = sum(len(w) for w in joined.works().values())
    ends = [e for e in trace["traceEvents"] if e["ph"] == "f"]
    starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    assert len(ends) == works and {e["id"] for e in ends} == set(starts)
    calls = {e["args"]["correlation"]: e for e in events(trace, "cuda_driver", "cuda_runtime")}
    for e in ends:
        assert ns(starts[e["id"]]["ts"]) <= ns(e["ts"])
        assert calls[e["id"]]["name"].startswith("cu")
    if api == "runtime":
        inside = {calls[i]["cat"] for i in starts}
        assert inside == {"cuda_runtime"}
    assert trace["gbpf"]["gpu"]["unmatched"] == 0 and trace["gbpf"]["gpu"]["recorded"] is True


def test_the_tables_join(job, tmp_path):
    joined, _, _ = job
    done = gbpf.gbpf("export", joined.path, "-o", tmp_path / "t.sqlite")
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(tmp_path / "t.sqlite")
    count = 0
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        count += db.execute(f"""
            SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_{table} AS g
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON g.correlationId = r.correlationId
            AND g.globalPid = r.globalTid / 0x1000000 * 0x1000000""").fetchone()[0]
    assert count == sum(len(w) for w in joined.works().values())
