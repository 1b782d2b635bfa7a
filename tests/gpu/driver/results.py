# SPDX-License-Identifier: BSD-2-Clause
"""What goes to files: results.json, report.md."""
import datetime
import json
import os
import platform
import subprocess


def output_of(*command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip()


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            names = [l.split(":", 1)[1].strip() for l in f if l.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} CPUs"


def machine(gbpf, command, simulated):
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    name, _, driver = (gpu.splitlines() or [""])[0].partition(",")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": "simulated" if simulated else name.strip() or "none",
        "driver": driver.strip() or "none", "kernel": platform.release(), "cpu": cpu_name(),
        "python": platform.python_version(),
        "gbpf": output_of(gbpf, "--version").replace("\n", " "), "command": command,
    }


def count(done):
    """(passed, failed, skipped): each expectation counts; a skipped check is one."""
    passed = sum(ok for c in done for _, ok, _ in c.results)
    failed = sum(not ok for c in done for _, ok, _ in c.results)
    return passed, failed, sum(c.skipped is not None for c in done)


def cell(text):
    """Into one cell of a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ").replace("`", "'")[:300]


def interval_text(m):
    if m.get("low") is not None:
        return f"{m['low']} – {m['high']}"
    if m.get("p10") is not None:
        return f"p10 {m['p10']}, p90 {m['p90']}"
    return ""


def hooked_table(done):
    """How the recordings of the checks went."""
    lines = ["", "| check | functions, files hooked | attach s | stop s | events | not hooked |",
             "|-|-|-:|-:|-:|-|"]
    for c in done:
        h = c.notes.get("hooked")
        if h:
            reasons = "; ".join(f"{n} {why}" for why, (n, _) in
                                c.notes.get("not hooked", {}).items())
            lines.append(f"| {c.name} | {h['functions, files']} | {h['attach_s']} | "
                         f"{h['stop_s']} | {h['events']} | {cell(reasons)} |")
    return lines


def markdown(where, done):
    lines = ["", "| | |", "|-|-|"]
    lines += [f"| {k} | {cell(v)} |" for k, v in where.items()]
    lines += ["", "| measured | value | 95 % interval or spread | n |", "|-|-:|-|-:|"]
    for c in done:
        for m in c.measures:
            lines.append(f"| {cell(m['what'])} | {m['value']} {m['unit']} | {interval_text(m)} "
                         f"| {m.get('n', '')} |")
    lines += hooked_table(done)
    lines += ["", "| check | expectation | result | detail |", "|-|-|-|-|"]
    for c in done:
        if c.skipped is not None:
            lines.append(f"| {c.name} | | skipped | {cell(c.skipped)} |")
        for what, ok, detail in c.results:
            lines.append(f"| {c.name} | {cell(what)} | {'pass' if ok else '**FAIL**'} "
                         f"| {cell(detail)} |")
    passed, failed, skipped = count(done)
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped", ""]
    return "\n".join(lines)


def replace(path, text):
    """The file is whole at any time."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def write(out, where, done):
    passed, failed, skipped = count(done)
    whole = {
        "machine": where, "passed": passed, "failed": failed, "skipped": skipped,
        "checks": [c.as_json() for c in done],
    }
    replace(os.path.join(out, "results.json"), json.dumps(whole, indent=1, ensure_ascii=False))
    replace(os.path.join(out, "report.md"), markdown(where, done))
