# SPDX-License-Identifier: BSD-2-Clause
"""What torch.profiler's own file says was launched."""
import collections
import json


def read(path):
    """"kernels": name → GPU records; "apis": function → calls; "shapes": [name, grid, block, n];
    "sequence": [name, ns] of each kernel in the order of their starts; "busy_ns": the time in which
    a kernel, copy or set ran."""
    with open(path, encoding="utf-8", errors="replace") as f:
        return count(json.load(f, strict=False)["traceEvents"])


def union(spans):
    total, reached = 0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def count(events):
    kernels, shapes, apis = (collections.Counter() for _ in range(3))
    sequence = []
    for e in events:
        if e.get("cat") == "kernel":
            args = e.get("args", {})
            kernels[e["name"]] += 1
            sequence.append((e["ts"], e["name"], round(1000 * e["dur"])))
            shapes[json.dumps([e["name"], args.get("grid"), args.get("block")])] += 1
        elif e.get("cat") in ("cuda_runtime", "cuda_driver"):
            apis[e["name"]] += 1
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in events
             if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return {
        "busy_ns": round(1000 * union(spans)),
        "kernels": kernels, "apis": apis,
        "shapes": [json.loads(shape) + [n] for shape, n in shapes.items()],
        "sequence": [kernel[1:] for kernel in sorted(sequence)],
    }
