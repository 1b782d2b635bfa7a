# SPDX-License-Identifier: BSD-2-Clause
"""What the views of GPU work add up to, against the sums of what the simulated device did."""

import collections

import pytest
import test_gpu_join as joining
from test_gpu_join import Joined

pytestmark = pytest.mark.root


def union(spans):
    """Sorted, disjoint."""
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        elif end > begin:
            out.append([begin, end])
    return out


def length(spans):
    return sum(end - begin for begin, end in spans)


def clipped(spans, window):
    return [(max(b, window["begin_ns"]), min(e, window["end_ns"])) for b, e in spans]


def recorded(joined):
    return [w for one in joined.truths.values() for w in one.work if w.correlation]


def check_gaps(joined, slack):
    """Busy is the union of the device's work in the window; gaps are the rest of it."""
    (window,) = joined.gpu["windows"]
    rows, _, _ = joining.report(joined.path, "gap_sum")
    watched = window["end_ns"] - window["begin_ns"]
    busy = length(union(clipped([(w.begin, w.end) for w in recorded(joined)], window)))
    assert {r["window_ns"] for r in rows} == {watched}
    share = 100 * busy / watched
    assert rows[0]["busy_pct"] == pytest.approx(share, abs=0.001 + 100 * slack / watched)
    assert sum(r["total_ns"] for r in rows) == pytest.approx(watched - busy, abs=slack)
    return share


def check_kernels(joined):
    """Each kernel's instances, sum, least and most."""
    truth = collections.defaultdict(list)
    for w in recorded(joined):
        if w.kind == "kernel":
            truth[w.kernel.decode()].append(w.ns)
    rows, _, _ = joining.report(joined.path, "kern_sum", "--names", "mangled")
    assert {r["kernel"] for r in rows} == set(truth)
    for row in rows:
        ns = truth[row["kernel"]]
        assert row["instances"] == len(ns)
        assert row["total_ns"] == pytest.approx(sum(ns), abs=len(ns))
        assert row["min_ns"] == pytest.approx(min(ns), abs=1)
        assert row["max_ns"] == pytest.approx(max(ns), abs=1)
        assert row["p50_ns"] == pytest.approx(sorted(ns)[(len(ns) - 1) // 2], abs=1)
    assert sum(r["listed_pct"] for r in rows) == pytest.approx(100, abs=0.001 * len(rows))


def error(joined):
    """What all the clocks' errors together may come to."""
    return 2 * (joined.gpu["clock_error_ns"] + 1) * len(recorded(joined))


def test_two_streams_overlap(tmp_path):
    """Kernels of 1 ms on two streams at a time: the sum is twice the union."""
    joined = Joined(tmp_path, "--pattern", "overlap", "--iterations", "12")
    share = check_gaps(joined, error(joined))
    check_kernels(joined)
    rows, _, _ = joining.report(joined.path, "stream_sum")
    busy = sum(r["busy_ns"] for r in rows)
    (window,) = joined.gpu["windows"]
    assert busy / (window["end_ns"] - window["begin_ns"]) * 100 > 1.5 * share
    assert len([r for r in rows if r["kernels"] > 10]) == 2


def test_a_large_matmul(tmp_path):
    """The device is behind: what is launched waits for what was."""
    joined = Joined(tmp_path, "--pattern", "matmul4096", "--iterations", "60")
    check_kernels(joined)
    works = recorded(joined)
    check_gaps(joined, error(joined))
    rows, _, _ = joining.report(joined.path, "kern_exec_sum", "--names", "mangled")
    assert sum(r["count"] for r in rows) == len([w for w in works if w.kind == "kernel"])
    assert max(r["depth_max"] for r in rows) >= 5, "launched ahead"
    assert all(r["t_max_ns"] >= r["k_max_ns"] for r in rows)


def test_copies_and_sets(tmp_path):
    joined = Joined(tmp_path, "--pattern", "pageable", "--iterations", "4")
    truth = collections.Counter()
    kinds = collections.Counter()
    memory = {0: None, 1: "pageable", 2: "pinned", 3: "device"}
    for w in recorded(joined):
        if w.kind != "kernel":
            key = (memory.get(w.source) if w.kind == "copy" else None, memory.get(w.target))
            truth[key] += w.bytes
            kinds[key] += 1
    rows, _, _ = joining.report(joined.path, "gpu_mem_sum")
    assert {(r["source"], r["target"]): r["bytes"] for r in rows} == dict(truth)
    assert {(r["source"], r["target"]): r["count"] for r in rows} == dict(kinds)
    assert {r["pageable"] for r in rows if "pageable" in (r["source"], r["target"])} == {"yes"}


@pytest.mark.long
def test_a_full_queue(tmp_path):
    """3000 launches the device cannot keep up with: blocked launches are back-pressured, and
    their kernels are not short for that."""
    joined = Joined(tmp_path, "--pattern", "backpressure", "--iterations", "1",
                    "--kernel-ns", "200000")
    works = sorted((w for w in recorded(joined) if w.kind == "kernel"), key=lambda w: w.begin)
    traced = [r for r in joined.rows if r["grid"]]
    assert len(works) == len(traced) >= 3000
    blocked = near = 0
    otherwise = []
    for i, (row, work) in enumerate(zip(traced, works)):
        took = work.call.leave - work.call.entry
        before = sum(w.call.entry < work.call.entry for w in works[:i])
        begun = sum(w.begin <= work.call.entry for w in works[:i])
        # A job that loses its CPU between its clock and the probe is seen later, not after all.
        until = sum(w.begin <= work.call.leave for w in works[:i])
        assert before - until - 1 <= row["depth"] <= before - begun + 1
        near += abs(row["depth"] - (before - begun)) <= 1
        if abs(took - 50_000) > 10_000 and abs(before - begun - 1000) > 1:
            full = took > 50_000 and before - begun > 1000
            if (row["flags"] == "back-pressured") != full:
                otherwise.append((row, took, before - begun))
            blocked += full
    # Where it lost its CPU between the two, its clock says "blocked", and the probe does not.
    assert len(otherwise) < len(works) / 100, otherwise
    assert blocked > 100 and near > 0.99 * len(works)
    rows, _, _ = joining.report(joined.path, "kern_exec_sum")
    assert sum(r["back_pressured"] for r in rows) >= blocked
    rows, _, _ = joining.report(joined.path, "kern_sum")
    assert all(r["short_pct"] < 5 for r in rows), rows
    check_gaps(joined, error(joined))


@pytest.mark.long
def test_two_processes_on_one_device(tmp_path):
    """Busy is of both, and only where both were recorded."""
    joined = Joined(tmp_path, "--pattern", "overlap", "--iterations", "60", "--children", "1")
    rows, gpu, _ = joining.report(joined.path, "gap_sum")
    assert len(gpu["windows"]) == 2
    (watched,) = {r["window_ns"] for r in rows}
    assert 0 < watched <= max(w["end_ns"] - w["begin_ns"] for w in gpu["windows"])
    assert rows[0]["busy_pct"] <= 100
    busy = rows[0]["busy_pct"] / 100 * watched
    assert busy + sum(r["total_ns"] for r in rows) == pytest.approx(watched, abs=watched * 1e-4)
