# SPDX-License-Identifier: BSD-2-Clause
"""What a report says against what a job knows of itself."""
import collections
import json
import re

GRAPH = re.compile(r"GraphLaunch")
HOST = re.compile(r"LaunchHostFunc|AddCallback")
HANDLE = re.compile(r"^(kernel@)?0x[0-9a-f]+$")


def rows_of(report, pid=None):
    return [r for r in report["rows"] if pid is None or r.get("pid") == pid]


def is_graph(row):
    return bool(GRAPH.search(row.get("name") or ""))


def is_kernel(row):
    return not is_graph(row) and not HOST.search(row.get("name") or "")


def launch_counts(report, pid):
    """{"kernels": …, "graphs": …} of one process."""
    rows = rows_of(report, pid)
    return {
        "kernels": sum(r["calls"] for r in rows if is_kernel(r)),
        "graphs": sum(r["calls"] for r in rows if is_graph(r)),
    }


def unnamed(report, pid):
    """Rows of launches whose kernel has no name but its handle's."""
    return [
        r for r in rows_of(report, pid)
        if is_kernel(r) and (not r["kernel"] or HANDLE.match(r["kernel"]))
    ]


def plain(name):
    """Without what two demanglers may do differently: blanks."""
    return re.sub(r"\s+", "", name)


def aliases(report, mangled, pid):
    """Mangled name → name as reported. torch.profiler leaves very long names mangled."""
    def key(row):
        return json.dumps([row[k] for k in sorted(row) if k != "kernel"])

    names = {key(r): plain(r["kernel"] or "?") for r in rows_of(report, pid)}
    return {
        plain(r["kernel"] or "?"): names[key(r)]
        for r in rows_of(mangled, pid) if key(r) in names
    }


def names_differ(expected, report, pid, alias=None):
    """(only expected, only reported) among the names of kernels, blanks aside."""
    alias = alias or {}
    wanted = {alias.get(plain(n), plain(n)) for n in expected}
    seen = {plain(r["kernel"]) for r in rows_of(report, pid) if is_kernel(r) and r["kernel"]}
    return sorted(wanted - seen), sorted(seen - wanted)


def shape(row, alias):
    name = plain(row["kernel"] or "?")
    return (alias.get(name, name), tuple(row["grid"] or ()), tuple(row["block"] or ()))


def shapes_differ(expected, report, pid, alias=None):
    """Lines that say where calls by (kernel, grid, block), and stream and shared memory, differ."""
    alias = alias or {}
    seen, wanted, detail = collections.Counter(), collections.Counter(), {}
    for r in rows_of(report, pid):
        if is_kernel(r):
            seen[shape(r, {})] += r["calls"]
            detail[shape(r, {})] = r
    for e in expected:
        wanted[shape(e, alias)] += e["calls"]
    lines = [
        f"{k}: {wanted[k]} launched, {seen[k]} reported"
        for k in sorted(wanted.keys() | seen.keys()) if wanted[k] != seen[k]
    ]
    for e in expected:
        r = detail.get(shape(e, alias))
        for key, of in (("smem", "smem_bytes"), ("stream", "stream")):
            if r and e.get(key) not in (None, "0x0") and e[key] != r.get(of):
                lines.append(f"{shape(e, alias)}: {key} {e[key]} given, {r.get(of)} reported")
    return lines


def sync_ns(report, pid):
    """ns and number of waits in synchronising calls, without blocking copies."""
    rows = [r for r in rows_of(report, pid) if r["kind"] in ("sync", "event", "query")]
    return sum(r["total_ns"] or 0 for r in rows), sum(r["waits"] or 0 for r in rows)


def copied(report, pid, direction):
    rows = [r for r in rows_of(report, pid) if r["direction"] == direction]
    return sum(r["bytes"] or 0 for r in rows)


def losses(quality):
    return {k: v for k, v in quality["losses"].items() if v}


def covers(quality, begin, end):
    return any(w["begin_ns"] <= begin and end <= w["end_ns"] for w in quality["windows"])
