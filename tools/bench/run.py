#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the documentation claims; `make bench` runs it (root)."""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import stats
from export import export
from monitor import monitor
from scrape import scrape

VIEWS = ("summary", "api_sum", "launch_sum", "sync_sum", "copy_sum", "thread_sum", "cold_sum",
         "open_sum", "proc_sum")
MIB = 1 << 20


class Bench:
    def __init__(self, build, scratch, long):
        self.build = pathlib.Path(build).resolve()
        self.gbpf = self.build / "gbpf"
        self.sim = self.build / "sim"
        self.scratch = pathlib.Path(scratch)
        self.long = long
        self.results = []
        self.extra = {}

    def program(self, name, *arguments):
        """Runs a program of tools/bench, gives what it printed."""
        done = subprocess.run(
            [str(self.build / "bench" / f"bench_{name}"), *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True,
        )
        return json.loads(done.stdout)

    def add(self, name, value, unit, *, n=1, interval=None, target=None, what=""):
        """target: ("<=", number) or (">=", number)."""
        met = None
        if target:
            met = value <= target[1] if target[0] == "<=" else value >= target[1]
        self.results.append({
            "name": name, "value": rounded(value), "unit": unit, "n": n,
            "interval": [rounded(v) for v in interval] if interval else None,
            "target": f"{target[0]} {target[1]:g}" if target else None,
            "met": met, "what": what,
        })
        mark = {None: "", True: " (met)", False: " (MISSED)"}[met]
        say(f"  {name}: {rounded(value):g} {unit}{mark}")

    @contextlib.contextmanager
    def job(self, *options):
        """A simulated job that has begun."""
        command = [str(self.sim / "simjob"), "--truth-mib", "0", "--duration", "0", *options]
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            job.stdout.readline()
            time.sleep(0.3)
            yield job
        finally:
            job.send_signal(signal.SIGTERM)
            job.wait()
            job.stdout.close()

    def trace(self, pid, seconds, name, *options):
        """gbpf at work on a process: (Popen, recording)."""
        path = self.scratch / name
        command = [self.gbpf, "trace", "-q", "-p", pid, "-d", seconds, "-o", path, *options]
        child = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        return child, path

    def quality(self, path):
        done = subprocess.run(
            [str(self.gbpf), "report", str(path), "--view", "proc_sum", "--format", "json"],
            stdout=subprocess.PIPE, check=True,
        )
        return json.loads(done.stdout)["quality"]


def rounded(value):
    return float(f"{value:.5g}")


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- what a probe costs ----

def cost(b):
    out = b.program("cost", 40 if not b.long else 120, 10)
    size = out["samples_per_turn"]
    turns = {name: stats.turns(values, size) for name, values in out["ns"].items()}
    lowest = {name: min(values) for name, values in out["ns"].items()}
    bare = statistics.median(turns["bare"])
    targets = {"session.sync": ("<=", 1.3), "session.launch": ("<=", 1.45)}
    for name, values in turns.items():
        if name == "bare":
            continue
        n = len(out["ns"][name])
        added = [value - bare for value in values]
        b.add(f"cost.{name}", statistics.median(added), "ns", n=n,
              interval=stats.median_interval(added), what="added to a call, median")
        floor = floor_of(name)
        if floor == name:
            continue
        of, spread = stats.ratio(values, turns[floor], bare)
        b.add(f"cost.{name}.ratio", of, "x", n=n, interval=spread, target=targets.get(name),
              what=f"of {floor}, medians")
        b.add(f"cost.{name}.ratio_min", (lowest[name] - lowest["bare"]) /
              (lowest[floor] - lowest["bare"]), "x", n=n, what=f"of {floor}, minima")
    b.extra["cost"] = {"records_per_call": out["records_per_call"], "lost": out["lost"]}


def floor_of(name):
    if name.startswith("two."):
        return "two.floor.pair"
    return "single.floor" if name.startswith("single.") else "floor.pair"


# ---- the loader: draining, sleeping, remembering ----

def drain(b):
    rates, lost = [], 0
    for _ in range(3):
        out = b.program("drain", 0, 2, b.scratch / "drain.gbpf")
        rates.append(out["events"] / out["cpu_s"])
        lost += out["lost"]
    b.add("drain.speed", statistics.median(rates), "events/s of CPU time", n=3,
          interval=[min(rates), max(rates)], target=(">=", 2e6),
          what="rings never empty; decoded, compressed and written; interval: min and max")
    lost, share = [], []
    for _ in range(3):
        out = b.program("drain", 2000000, 3, b.scratch / "drain.gbpf")
        lost.append(out["refused"] + out["lost"])
        share.append(out["cpu_s"] / out["wall_s"] * 100)
    b.add("drain.lost_at_2M", sum(lost), "events", n=3, target=("<=", 0),
          what="of 18 million, at 2 million events/s from two CPUs")
    b.add("drain.cpu_at_2M", statistics.median(share), "% of a core", n=3,
          interval=[min(share), max(share)], what="interval: min and max")


def job_at_rate(b, events_per_s):
    """Options of a job that makes about so many events a second under gbpf."""
    cpu = 50000.0
    for _ in range(3):
        options = ("--kernel-ns", "1000", "--wait", "sleep", "--cpu-ns", str(int(cpu)))
        with b.job(*options) as job:
            child, path = b.trace(job.pid, 1, "rate.gbpf")
            child.wait()
        rate = b.quality(path)["events"]
        cpu *= rate / events_per_s
    return options


def idle(b):
    options = job_at_rate(b, 50000)
    with b.job(*options) as job:
        child, path = b.trace(job.pid, 8, "idle.gbpf")
        time.sleep(2)
        begin, at = machine.cpu_ns(child.pid), time.monotonic_ns()
        time.sleep(5)
        used = (machine.cpu_ns(child.pid) - begin) / (time.monotonic_ns() - at) * 100
        child.wait()
    rate = b.quality(path)["events"] / 8
    b.add("loader.cpu_at_50k", used, "% of a core", target=("<=", 2),
          what=f"over 5 s, at {rate:.0f} events/s")


def first_event(b):
    delays = []
    with b.job("--wait", "sleep") as job:
        for _ in range(15):
            begin = time.monotonic_ns()
            child, path = b.trace(job.pid, 0.3, "first.gbpf")
            child.wait()
            delays.append((b.program("file", "stat", path)["first_ns"] - begin) * 1e-6)
    b.add("trace.first_event", statistics.median(delays), "ms", n=15,
          interval=stats.median_interval(delays), target=("<=", 200),
          what="from starting gbpf trace -p to the first recorded event")


def memory(b):
    seconds = 180 if b.long else 24
    samples = []
    with b.job("--threads", "2", "--wait", "sleep") as job:
        child, path = b.trace(job.pid, seconds, "memory.gbpf")
        for _ in range(6):
            time.sleep(seconds / 6 - 0.2)
            samples.append(machine.rss_bytes(child.pid) / MIB)
        child.wait()
    quality = b.quality(path)
    b.add("loader.rss", samples[-1], "MiB", n=len(samples),
          what=f"at the end of {seconds} s with {quality['events']} events")
    b.add("loader.rss_growth", samples[-1] - samples[1], "MiB", target=("<=", 1),
          what="from a third of that time to its end")
    b.extra["memory"] = {"seconds": seconds, "rss_mib": [rounded(s) for s in samples]}
    path.unlink()


def churn(b):
    count = 20000 if b.long else 3000
    path = b.scratch / "churn.gbpf"
    command = [b.gbpf, "trace", "-q", "-o", path, "--", b.sim / "simjob", "--pattern", "churn",
               "--iterations", count, "--truth-mib", "0", "--quiet"]
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples, begin = [], time.monotonic()
    while child.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            samples.append((time.monotonic() - begin, machine.rss_bytes(child.pid) / MIB))
        time.sleep(0.5)
    later = [rss for _, rss in samples[len(samples) // 2:-1]]
    b.add("loader.rss_growth_churn", max(later) - later[0], "MiB", n=len(later),
          target=("<=", 1), what=f"{count} short-lived processes, the second half of them")
    b.extra["churn"] = {"processes": count, "seconds": rounded(samples[-1][0]),
                        "rss_mib_end": rounded(samples[-2 if len(samples) > 1 else -1][1])}


# ---- the file ----

def file(b):
    with b.job("--wait", "sleep", "--threads", "2") as job:
        child, path = b.trace(job.pid, 3, "file.gbpf")
        child.wait()
    events = b.program("file", "stat", path)["events"]
    b.add("file.bytes_per_event", path.stat().st_size / events, "bytes", n=events,
          target=("<=", 12), what="a simulated training job with two threads")
    b.extra["record"] = b.program("record")["results"]
    report(b, path)
    path.unlink()
    diagnose_gpu(b)


def diagnose_gpu(b):
    """With GPU time, which also joins; as recorded, told for 10 million."""
    cupti = b.sim / "lib" / "libcupti.so.13"
    with b.job("--wait", "sleep", "--threads", "2") as job:
        child, path = b.trace(job.pid, 10, "gpu.gbpf", "--gpu-time", "--cupti", cupti)
        child.wait()
    quality = b.quality(path)
    count = quality["events"] + quality["gpu"]["works"]
    runs = [machine.run_measured(b.gbpf, "diagnose", path, "--format", "json") for _ in range(5)]
    walls = [wall * 10_000_000 / count for wall, _, _ in runs]
    b.add("diagnose.gpu", statistics.median(walls), "s", n=len(runs),
          interval=[min(walls), max(walls)], target=("<=", 3),
          what=f"{count} events and works, {quality['gpu']['works']} of them works, told for "
               "10 million; interval: min and max")
    b.add("diagnose.gpu_memory", max(rss for _, _, rss in runs) / MIB, "MiB",
          target=("<=", 1024), what=f"{count} events and works")
    path.unlink()


def report(b, path):
    big = b.scratch / "big.gbpf"
    b.program("file", "grow", path, big, 10_000_000)
    times = {view: [] for view in VIEWS}
    for _ in range(3):
        for view in VIEWS:
            times[view].append(machine.run_measured(
                b.gbpf, "report", big, "--view", view, "--format", "json"))
    for view, runs in times.items():
        walls = [wall for wall, _, _ in runs]
        b.add(f"report.{view}", statistics.median(walls), "s", n=len(runs),
              interval=[min(walls), max(walls)], target=("<=", 2),
              what=f"10 million events, {statistics.median(c for _, c, _ in runs):.2f} s of CPU "
                   "time; interval: min and max")
    peak = max(rss for runs in times.values() for _, _, rss in runs)
    runs = [machine.run_measured(b.gbpf, "diagnose", big, "--format", "json") for _ in range(3)]
    walls = [wall for wall, _, _ in runs]
    b.add("diagnose", statistics.median(walls), "s", n=len(runs), interval=[min(walls), max(walls)],
          target=("<=", 3), what="10 million events; interval: min and max")
    b.add("diagnose.memory", max(rss for _, _, rss in runs) / MIB, "MiB", target=("<=", 1024),
          what="10 million events")
    b.add("report.memory", peak / MIB, "MiB", target=("<=", 1024), what="10 million events")
    big.unlink()


# ---- GPU work ----

def join(b):
    out = b.program("join", 10_000_000)
    what = f"{out['works']} works, one a launch, CPU time"
    b.add("join", out["join_s"], "s", target=("<=", 10),
          what=f"{what}; {out['calls_s']:.1f} s more for the calls themselves")
    b.add("join.times", out["times_s"], "s", what=what)
    b.add("join.gaps", out["gaps_s"], "s", what=what)
    b.add("join.memory", out["rss_mib"], "MiB", what=what)


# ---- attaching ----

def attach(b):
    library = b.sim / "lib" / "libcuda.so.1"
    plan = [(rung, sites, 9) for sites in (1, 100, 600) for rung in ("session", "multi")]
    plan += [("single", 1, 5), ("single", 10, 2)] + ([("single", 100, 1)] if b.long else [])
    for rung, sites, repeat in plan:
        pairs = b.program("attach", library, rung, sites, repeat)["attach_detach_ms"]
        for at, what in enumerate(("attach", "detach")):
            values = [pair[at] for pair in pairs]
            b.add(f"{what}.{rung}.{sites}", statistics.median(values), "ms", n=repeat,
                  interval=[min(values), max(values)], what="interval: min and max")


PARTS = {"cost": cost, "drain": drain, "idle": idle, "first_event": first_event, "file": file,
         "join": join, "attach": attach, "memory": memory, "churn": churn, "scrape": scrape,
         "monitor": monitor, "export": export}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="where make built")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, joined by commas")
    parser.add_argument("--long", action="store_true", help="longer runs, about ten minutes")
    options = parser.parse_args()
    if os.geteuid():
        parser.error("probes need root")
    begin = time.monotonic()
    document = {"bench": "gbpf", "date": datetime.datetime.now().isoformat(timespec="seconds"),
                "machine": machine.describe()}
    with tempfile.TemporaryDirectory(prefix="gbpf-bench-") as scratch:
        b = Bench(options.build, scratch, options.long)
        for name in options.only.split(","):
            say(f"{name}:")
            try:
                PARTS[name](b)
            except (subprocess.CalledProcessError, OSError, RuntimeError, ValueError) as e:
                say(f"  failed: {e}")
                b.extra.setdefault("failed", {})[name] = str(e)
    document["seconds"] = rounded(time.monotonic() - begin)
    document["measurements"] = b.results
    document["details"] = b.extra
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
