# SPDX-License-Identifier: BSD-2-Clause
"""What was measured on, and how processes are watched."""
import os
import pathlib
import platform
import resource
import subprocess
import time


def describe():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(
        tuple(part.strip() for part in line.split(":", 1))
        for line in text.splitlines() if ":" in line
    )
    return {
        "cpu": fields.get("model name", "unknown"),
        "virtual": " hypervisor" in fields.get("flags", ""),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "load_1min": os.getloadavg()[0],
    }


def cpu_ns(pid):
    """CPU time of all threads of a process, as the scheduler counts it."""
    return sum(
        int((task / "schedstat").read_text(encoding="ascii").split()[0])
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
    )


def rss_bytes(pid):
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def run_measured(*command):
    """Wall and CPU seconds, and peak memory in bytes, of a command that succeeds."""
    begin = time.monotonic()
    child = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    complaint = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    if child.returncode:
        raise RuntimeError(f"{command[0]}: {complaint.decode(errors='replace').strip()}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
