# SPDX-License-Identifier: BSD-2-Clause
"""gbpf's file for TensorBoard and HTA against the one that PyTorch wrote of the same program."""
import json
import os

import compare

NOT_OURS = {"External id"}  # which Python operator it belongs to
EQUAL = ("grid", "block", "registers per thread", "shared memory", "blocks per SM",
         "warps per SM", "est. achieved occupancy %", "device", "context", "stream")


def kernels(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        events = json.load(f, strict=False)["traceEvents"]
    return sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])


def same(ours, theirs):
    return compare.plain(ours["name"]) == compare.plain(theirs["name"]) and all(
        ours["args"].get(k) == theirs["args"].get(k) for k in EQUAL)


def keys_and_types(rows):
    found = {(None, k, type(v).__name__) for r in rows for k, v in r.items() if k != "args"}
    return found | {("args", k, type(v).__name__) for r in rows for k, v in r["args"].items()}


def verify(check, recording, profile, steps):
    """profile: PyTorch's file of that many steps."""
    path = recording.path + ".json"
    status, text = check.run(check.setting.gbpf, "export", recording.path, "--format", "kineto",
                             "-o", path)
    if not check.expect("gbpf export writes the Kineto file", status == 0, text[-500:]):
        return
    ours, theirs = kernels(path), kernels(profile)
    os.unlink(path)
    missing = {k for k in keys_and_types(theirs) - keys_and_types(ours) if k[1] not in NOT_OURS}
    check.expect("each field of a kernel that PyTorch writes is there, in its type", not missing,
                 sorted(map(str, missing)))
    step = theirs[:len(theirs) // steps]
    whole = [i for i in range(len(ours) - len(step) + 1) if same(ours[i], step[0]) and
             all(same(a, b) for a, b in zip(ours[i:], step))]
    check.expect("steps of the same kernels, with equal fields, as in PyTorch's file",
                 len(whole) >= 0.99 * (len(ours) // len(step)),
                 f"{len(whole)} of {len(ours) // len(step)}, {len(step)} kernels each")
