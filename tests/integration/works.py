# SPDX-License-Identifier: BSD-2-Clause
"""Holds what a sidecar brought into a recording against what the simulated device did."""

import json
from collections import defaultdict

import gbpf

DUMP = gbpf.BUILD / "tests/integration/dump_works"
CUPTI = gbpf.SIM / "lib/libcupti.so.13"
OPTIONS = ("--gpu-time", "--cupti", CUPTI)
KINDS = ("", "kernel", "copy", "set")


class Recorded:
    """The records of one file."""

    def __init__(self, path):
        done = gbpf.run(DUMP, path)
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.events = [r for r in rows if r["is"] == "sidecar"]
        self.works = [r for r in rows if r["is"] == "work"]
        self.calls = {(r["pid"], r["correlation"]): r for r in rows if r["is"] == "call"}
        self.shapes = {(r["pid"], r["id"]): r for r in rows if r["is"] == "shape"}
        self.devices = [r for r in rows if r["is"] == "device"]

    def of(self, event, pid=None):
        return [e for e in self.events
                if e["event"] == event and (pid is None or e["pid"] == pid)]

    def counted(self, event):
        return sum(e["count"] for e in self.of(event))

    def error(self, pid):
        """The bound of this process's times, ns."""
        return max(e["count"] for e in self.of("clock", pid))

    def window(self, pid):
        began, ended = self.of("began", pid), self.of("ended", pid)
        assert len(began) == len(ended) == 1, self.events
        return began[0]["ts"], ended[0]["ts"]


def alike(row, work, shapes, error):
    """Is this record of that work? What differs, or nothing."""
    wrong = [
        name for name, got, want in (
            ("kind", KINDS[row["kind"]], work.kind),
            ("device", row["device"], work.device),
            ("context", row["context"], work.context),
            ("stream", row["stream"], work.stream),
            ("node", row["node"], work.node),
            ("graph", row["graph"], work.graph),
        ) if got != want
    ]
    if abs(row["begin"] - work.begin) > error:
        wrong.append(f"begin {row['begin'] - work.begin} off, bound {error}")
    if abs(row["duration"] - work.ns) > 1:
        wrong.append(f"duration {row['duration']}, not {work.ns}")
    if work.kind == "kernel":
        shape = shapes[row["pid"], row["shape"]]
        if (shape["kernel"].encode(), tuple(shape["grid"]), tuple(shape["block"])) != (
                work.kernel, work.grid, work.block):
            wrong.append(f"shape {shape}")
        if (shape["smem"], shape["registers"]) != (work.smem, work.registers):
            wrong.append(f"shape {shape}")
    elif row["bytes"] != work.bytes or row["target"] != work.target:
        wrong.append("bytes or memory")
    return wrong


def grouped(items, key):
    out = defaultdict(list)
    for item in items:
        out[key(item)].append(item)
    return out


def check_process(rec, one):
    """Everything that the device did within the window is there, once, and nothing else."""
    begin, end = rec.window(one.pid)
    error = rec.error(one.pid)
    rows = grouped((r for r in rec.works if r["pid"] == one.pid),
                   lambda r: (r["correlation"], r["node"]))
    seen = grouped((w for w in one.work if w.told), lambda w: (w.told, w.node))
    missing = []
    for key, works in seen.items():
        got = sorted(rows.pop(key, []), key=lambda r: r["begin"])
        if len(got) < len(works):
            missing += works[len(got):]
            continue
        assert len(got) == len(works), (key, got, works)
        for row, work in zip(got, sorted(works, key=lambda w: w.begin)):
            wrong = alike(row, work, rec.shapes, error)
            assert not wrong, (wrong, row, work)
    assert not rows, f"works that never were: {list(rows.values())[:3]}"
    lost = [w for w in missing if w.enqueued >= begin and w.end <= end]
    assert not lost, (len(lost), lost[:3], begin, end)
    return sum(map(len, seen.values())) - len(missing)


def check_calls(rec, one):
    """
    Of works whose calls have records, and some must have: they are of the right thread, inside of
    what the job saw of the call. How many.
    """
    error = rec.error(one.pid)
    checked = 0
    for work in one.work:
        row = rec.calls.get((one.pid, work.correlation))
        if not work.correlation or not row or not work.call:
            continue
        assert row["tid"] == work.tid, (row, work)
        call = one.recorded(work.call)
        assert row["domain"] == (2 if call.library == "runtime" else 1)
        assert call.entry - error <= row["begin"], (row, call)
        assert row["begin"] + row["duration"] <= call.leave + error, (row, call)
        checked += 1
    return checked
