# SPDX-License-Identifier: BSD-2-Clause
"""Holds a recording against what a simulated job wrote down, call by call."""

from collections import defaultdict

import gbpf
from gbpf import ENTRY_ONLY, NO_END, OPEN, POLL

QUERIES = {
    name + twin
    for name in ("cuEventQuery", "cuStreamQuery", "cudaEventQuery", "cudaStreamQuery")
    for twin in ("", "_ptsz")
}


def by_thread(items, key=lambda c: c):
    out = defaultdict(list)
    for item in items:
        c = key(item)
        out[c["tid"] if isinstance(c, dict) else c.tid].append(item)
    return out


def expected(truths, names):
    """The truth's calls of hooked functions, without queries, by thread, in order of entry."""
    out = defaultdict(list)
    for one in truths.values():
        for call in one.calls:
            if call.api in names and call.api not in QUERIES:
                out[call.pid, call.tid].append(call)
    return out


def recorded(calls):
    out = defaultdict(list)
    for call in calls:
        if not call["flags"] & POLL:
            out[call["pid"], call["tid"]].append(call)
    return out


def same_sequence(want, got):
    """Equal APIs in equal order, or the first place where they part."""
    for i, (w, g) in enumerate(zip(want, got)):
        if w.api != g["api"]:
            return f"call {i}: {w.api} happened, {g['api']} was recorded"
    if len(want) != len(got):
        extra = want[len(got):] or got[len(want):]
        first = extra[0].api if want[len(got):] else extra[0]["api"]
        return f"{len(want)} calls happened, {len(got)} were recorded; the first over is {first}"
    return ""


def pairs(truths, calls, names):
    """[(truth's call, recorded call)], every one of them, or an assertion."""
    want, got = expected(truths, names), recorded(calls)
    assert set(want) == set(got), f"threads: {set(want) ^ set(got)}"
    out = []
    for thread, sequence in want.items():
        assert not same_sequence(sequence, got[thread]), (
            thread, same_sequence(sequence, got[thread]))
        out += zip(sequence, got[thread])
    return out


def check_arguments(truth, call):
    """Whatever the record carries equals what the job passed."""
    where = (truth.api, call)
    assert call["ret"] == truth.ret or call["flags"] & (OPEN | NO_END | ENTRY_ONLY), where
    if "grid" in call:
        assert tuple(call["grid"]) == truth.grid, where
        assert tuple(call["block"]) == truth.block, where
        assert call["smem"] == truth.smem, where
        assert call["stream"] == truth.stream, where
        assert call["func"] == truth.func, where
    elif "bytes" in call and truth.bytes:
        assert call["bytes"] == truth.bytes, where
    if call.get("stream") and "grid" not in call:
        assert call["stream"] == truth.stream, where
    if "out" in call and truth.pointer:
        assert call["out"] == truth.pointer, where


def check_time(truth, call, slack=0):
    """The recorded call lies around... the probe sits inside the job's own clock readings."""
    if call["flags"] & (OPEN | NO_END | ENTRY_ONLY) or not truth.leave:
        return
    assert truth.entry <= call["begin"] <= call["end"] <= truth.leave + slack, (truth, call)


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def probe_cost(recording):
    return gbpf.view(recording, "api_sum")["quality"]["probe_cost"]
