# SPDX-License-Identifier: BSD-2-Clause
"""
Asks Holistic Trace Analysis itself, in a process of its own: it and what it imports lie in a
folder of their own (PYTHONPATH), and it has its settings from the environment.

  ask_hta.py FOLDER-OF-FILES valid              are they what HTA's own check wants?
  ask_hta.py FOLDER-OF-FILES all|without-last   what HTA finds; the last step is in it, or not

Writes JSON; times are in us, as HTA has them.
"""
import contextlib
import importlib.metadata
import json
import pathlib
import sys

import numpy
import pandas
from hta.trace_analysis import TraceAnalysis
from hta.utils.validate_trace import validate_trace_format

LEVELS = ("minimal", "standard", "complete")


def valid(folder):
    return {path.name: {level: validate_trace_format(str(path), level)[0] for level in LEVELS}
            for path in folder.iterdir()}


def kept(frame):
    """What HTA loaded: GPU work as (begin, duration), counted from its first event; all else."""
    gpu = frame[frame["stream"].ne(-1)].sort_values("ts")
    return {"works": gpu[["ts", "dur"]].values.tolist(),
            "durations": sorted(frame["dur"].tolist())}


def idle(analysis, rank):
    rows, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    out = {}
    for row in rows.to_dict("records"):
        out.setdefault(str(row["stream"]), {})[row["idle_category"]] = row["idle_time"]
    return out


def launches(analysis, ranks, copies):
    frames = analysis.get_cuda_kernel_launch_stats(
        ranks=ranks, include_memory_events=copies, visualize=False)
    return {rank: frame.to_dict("records") for rank, frame in frames.items()}


def queues(analysis, ranks):
    """({rank: {stream: [length]}}, {rank: {stream: statistics}})"""
    series = {rank: {str(stream): of["queue_length"].tolist()
                     for stream, of in frame.groupby("stream")}
              for rank, frame in analysis.get_queue_length_time_series(ranks=ranks).items()}
    summary = {}
    for (rank, stream), row in analysis.get_queue_length_summary(ranks=ranks).iterrows():
        summary.setdefault(rank, {})[str(stream)] = row["queue_length"].to_dict()
    return series, summary


def answers(folder, last):
    analysis = TraceAnalysis(trace_dir=str(folder), include_last_profiler_step=last)
    ranks = sorted(analysis.t.traces)
    types, kernels = analysis.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=1000, include_memory_kernels=True)
    series, summary = queues(analysis, ranks)
    return {
        "versions": {"hta": importlib.metadata.version("HolisticTraceAnalysis"),
                     "pandas": pandas.__version__, "numpy": numpy.__version__},
        "steps": list(map(int, analysis.get_profiler_steps())),
        "kept": {rank: kept(analysis.t.traces[rank]) for rank in ranks},
        "temporal": {row["rank"]: row for row in
                     analysis.get_temporal_breakdown(visualize=False).to_dict("records")},
        "overlap": {row["rank"]: row["comp_comm_overlap_pctg"] for row in
                    analysis.get_comm_comp_overlap(visualize=False).to_dict("records")},
        "idle": {rank: idle(analysis, rank) for rank in ranks},
        "types": {row["kernel_type"]: row["sum"] for row in types.to_dict("records")},
        "kernels": kernels.to_dict("records"),
        "kernels_by_default": analysis.get_gpu_kernel_breakdown(
            visualize=False)[1]["name"].tolist(),
        "launches": launches(analysis, ranks, True),
        "kernel_launches": launches(analysis, ranks, False),
        "queue": series,
        "queue_summary": summary,
    }


def number(value):
    return value.item()


if __name__ == "__main__":
    place, wanted = pathlib.Path(sys.argv[1]), sys.argv[2]
    with contextlib.redirect_stdout(sys.stderr):
        found = valid(place) if wanted == "valid" else answers(place, wanted == "all")
    json.dump(found, sys.stdout, default=number)
