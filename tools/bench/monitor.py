# SPDX-License-Identifier: BSD-2-Clause
"""What gbpf monitor itself uses with 200 processes that call 20 APIs each, and what it tells."""
import json
import pathlib
import statistics
import subprocess
import time

import stats
from scrape import cpu_ms

SECONDS = 20


def rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


WAYS = {
    "cpu": ("served", ("--quiet", "--listen", "127.0.0.1:0")),
    "cpu_json": ("printed as JSON each second", ("--format", "json")),
    "cpu_apis": ("printed as JSON with --apis each second", ("--format", "json", "--apis")),
}


def measured(b, pid, options):
    """([percent of a core in each of ten pieces of the time], MiB resident)"""
    monitor = subprocess.Popen([b.gbpf, "monitor", "-p", str(pid), *options],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(8)  # all of it is probed by then, or in windows
        shares = []
        for _ in range(10):
            before, began = cpu_ms(monitor.pid), time.monotonic()
            time.sleep(SECONDS / 10)
            shares.append((cpu_ms(monitor.pid) - before) / (time.monotonic() - began) / 10)
        return shares, rss_mib(monitor.pid)
    finally:
        monitor.terminate()
        monitor.wait()


def monitor(b):
    with b.job("--pattern", "many", "--rate", "2", "--children", "199", "--duration", "110",
               "--wait", "sleep", "--truth", b.scratch / "truth.%p") as job:
        time.sleep(4)  # until all of them are there
        used = {way: measured(b, job.pid, options) for way, (_, options) in WAYS.items()}
        done = subprocess.run([b.gbpf, "monitor", "-p", str(job.pid), "--once", "--format", "json",
                               "--apis"], stdout=subprocess.PIPE, check=True)
    told = json.loads(done.stdout)
    what = (f"{len(told['processes'])} processes, "
            f"{sum(len(p['apis']) for p in told['processes'])} pairs with an API")
    for way, (words, _) in WAYS.items():
        shares, rss = used[way]
        b.add(f"monitor.{way}", statistics.median(shares), "% of a core", n=len(shares),
              interval=stats.median_interval(shares), target=("<=", 1), what=f"{words}; {what}")
    b.add("monitor.rss", max(rss for _, rss in used.values()), "MiB", target=("<=", 64), what=what)
    b.add("monitor.maps", told["self"]["maps_bytes"] / (1 << 20), "MiB", target=("<=", 64),
          what="memory of the kernel's maps")
