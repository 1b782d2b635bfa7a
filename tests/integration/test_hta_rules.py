# SPDX-License-Identifier: BSD-2-Clause
"""
A reader that goes by the rules of Holistic Trace Analysis 0.5 (docs/traces-hta.md), over files
of a two-rank job, against gbpf's own reports: what is defined alike agrees within 0.1 %.
"""
import collections
import statistics

import gbpf
import pytest
import recordings as rec
from test_kineto import export, load

pytestmark = pytest.mark.parallel

LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaMemcpyAsync",
            "cudaMemsetAsync"}
SAME = {"rel": 0.001}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """(recording, kineto file by rank); the rank is found as HTA does."""
    folder = tmp_path_factory.mktemp("hta")
    recording = rec.Recording()
    for rank, pid in enumerate((422, 423)):
        rec.uneven(pid, rank + 1, rank, recording)
    recording.write(folder / "job.gbpf")
    export(folder / "job.gbpf", folder / "job.json.gz")
    traces = [load(path) for path in folder.glob("*.gz")]
    return folder / "job.gbpf", {t["distributedInfo"]["rank"]: t for t in traces}


class Rank:
    """Events with dur and cat; GPU events are those whose stream is not -1."""

    def __init__(self, trace):
        events = [e for e in trace["traceEvents"] if "dur" in e and e.get("cat") != "Trace"]
        steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
        assert len(steps) >= 2
        self.gpu = [e for e in events if "stream" in e.get("args", {})]
        self.by_id = {e["args"]["correlation"]: e for e in events
                      if e["name"] in LAUNCHES and e["args"]["correlation"] > 0}
        assert all(e["args"]["stream"] >= 0 and e["args"]["correlation"] > 0 for e in self.gpu)

    def of(self, *kinds):
        return [(e["ts"], e["ts"] + e["dur"]) for e in self.gpu if kind_of(e) in kinds]


def kind_of(event):
    if event["name"].startswith("nccl") and "Kernel" in event["name"]:
        return "communication"
    return "memory" if event["name"].startswith(("Memcpy", "Memset")) else "computation"


def united(spans):
    total, end = 0.0, float("-inf")
    for a, b in sorted(spans):
        total += max(0.0, b - max(a, end))
        end = max(end, b)
    return total


def test_temporal_breakdown(job):
    """Busy and idle time between the first and the last GPU event, and compute time."""
    recording, traces = job
    gaps = {row["uuid"]: row for row in gbpf.view(recording, "gap_sum")["rows"]}
    streams = gbpf.view(recording, "stream_sum")["rows"]
    for rank, trace in traces.items():
        r = Rank(trace)
        every = r.of("computation", "communication", "memory")
        busy, span = united(every), max(b for _, b in every) - min(a for a, _ in every)
        row = gaps[f"GPU-{rank}"]
        assert busy == pytest.approx(row["window_ns"] * row["busy_pct"] / 1e5, **SAME)
        ours = [s for s in streams if s["pid"] == 422 + rank]
        first, last = min(s["begin_ns"] for s in ours), max(s["end_ns"] for s in ours)
        assert span == pytest.approx((last - first) / 1000, **SAME)


def test_kernel_breakdown(job):
    recording, traces = job
    rows = {(r["pid"], r["kernel"]): r for r in gbpf.view(recording, "kern_sum")["rows"]}
    for rank, trace in traces.items():
        times = collections.defaultdict(list)
        for e in Rank(trace).gpu:
            if kind_of(e) != "memory":
                times[e["name"]].append(e["dur"])
        assert {k for p, k in rows if p == 422 + rank} == set(times)
        for name, durations in times.items():
            row = rows[422 + rank, name]
            assert row["instances"] == len(durations)
            for ours, theirs in (("total_ns", sum), ("min_ns", min), ("max_ns", max),
                                 ("avg_ns", statistics.mean)):
                assert theirs(durations) == pytest.approx(row[ours] / 1000, **SAME)


def test_launch_statistics(job):
    """Launch delay: from the call's return to the kernel's begin, 0 if it began before."""
    recording, traces = job
    rows = gbpf.view(recording, "kern_exec_sum")["rows"]
    for rank, trace in traces.items():
        r = Rank(trace)
        pairs = [(r.by_id[e["args"]["correlation"]], e) for e in r.gpu]
        assert len({c["args"]["correlation"] for c, _ in pairs}) == len(r.gpu)
        kernels = [(c, g) for c, g in pairs if kind_of(g) != "memory"]
        ours = [row for row in rows if row["pid"] == 422 + rank]
        assert sum(row["count"] for row in ours) == len(kernels)
        assert sum(g["dur"] for _, g in kernels) == pytest.approx(
            sum(row["total_ns"] for row in ours) / 1000, **SAME)
        # gbpf's queue time counts from the driver's return, 0.3 us before the runtime's
        late = [max(0, g["ts"] - c["ts"] - c["dur"] + 0.3) for c, g in kernels]
        queued = [q for q in late if q > 0.0005]
        assert len(queued) == sum(row["queued"] for row in ours)
        assert sum(queued) == pytest.approx(
            sum(row["q_avg_ns"] * row["queued"] for row in ours) / 1000, **SAME)


def test_queue_length(job):
    """Launches less begins of their kernels, by stream: never negative, and gbpf's depth."""
    recording, traces = job
    rows = {(row["pid"], row["stream"]): row for row in gbpf.view(recording, "stream_sum")["rows"]}
    for rank, trace in traces.items():
        r = Rank(trace)
        changes = collections.defaultdict(list)
        for e in r.gpu:
            changes[e["args"]["stream"]] += [(r.by_id[e["args"]["correlation"]]["ts"], 1),
                                             (e["ts"], -1)]
        for stream, events in changes.items():
            depth = peak = 0
            for _, change in sorted(events):
                depth += change
                peak = max(peak, depth)
                assert depth >= 0
            assert depth == 0 and peak - 1 == rows[422 + rank, stream]["depth_max"]
