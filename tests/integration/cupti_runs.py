# SPDX-License-Identifier: BSD-2-Clause
"""Runs simulated jobs with a client of the simulated CUPTI in them."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
import truth as truthfile  # noqa: E402

# directory, library, version number
VERSIONS = [("lib", "libcupti.so.13", 130001), ("lib-cupti128", "libcupti.so.12", 26),
            ("lib-cupti12", "libcupti.so.12", 22), ("lib-cupti11", "libcupti.so.11.8", 18),
            ("lib-cupti133", "libcupti.so.13", 130301)]
LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchKernel_ptsz", "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel", "cuGraphLaunch"}
RUNTIME_LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernel_ptsz", "cudaLaunchKernelExC",
                    "cudaLaunchKernelExC_ptsz", "cudaLaunchCooperativeKernel", "cudaGraphLaunch"}
CBIDS, RUNTIME_CBIDS = (
    {int(number): name for name, number in re.findall(r"C\((\w+), (\d+)\)", table)}
    for table in (ROOT / "tests/sim/cbid.h").read_text().split("#define SIM_RUNTIME_CBIDS"))


def name_of(record):
    """The function that the record of a call is of."""
    return (RUNTIME_CBIDS if record["runtime"] else CBIDS)[record["cbid"]]


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
        lines = out.read_text().split("\n")[:-1] if out.exists() else []
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
        assert (work.copy == 10) == ("devices" in record)
        assert record.get("devices", [0, 0]) == [work.source_device, work.target_device]
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
        assert record["runtime"] or name_of(record) in LAUNCHES or every
        for work in caused.get(record["correlation"], []):
            call = run.truth.recorded(work.call)
            assert name_of(record) == call.api and record["ret"] == call.ret
            assert (record["process"], record["thread"]) == (run.truth.pid, call.tid)
            assert call.entry <= record["start"] - shift <= work.enqueued
            assert work.enqueued <= record["end"] - shift <= call.leave
    launches = {w.correlation for w in run.truth.work
                if run.truth.recorded(w.call).api in LAUNCHES | RUNTIME_LAUNCHES}
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
