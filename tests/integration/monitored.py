# SPDX-License-Identifier: BSD-2-Clause
"""Runs gbpf monitor on simulated jobs, and holds every interval it tells against the truth."""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from typing import List, Optional

import gbpf
from gbpf import truth as truthfile

MS = 1_000_000
SECOND = 1_000_000_000


@contextlib.contextmanager
def memory_dir():
    """A directory in memory: truth files are written to without waiting for a disk."""
    path = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="gbpf-test-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def job(folder, *options, name="truth", line=120, nice=-19, **kwargs):
    """
    A simulated job whose calls are counted by time; see truth_of(). It comes before others
    that want a CPU, so that what it does next to other tests is what it does alone.
    """
    with gbpf.job(folder, "--truth-mib", 0, "--timeline", line, *options, name=name,
                  **kwargs) as process:
        for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), nice)
        process.truth_path = folder / name
        yield process


@contextlib.contextmanager
def quota(process, share):
    """Lets a process use no more than this share of a CPU, by a cgroup of either version."""
    version1 = pathlib.Path("/sys/fs/cgroup/cpu")
    root = version1 if version1.exists() else pathlib.Path("/sys/fs/cgroup")
    group = root / f"gbpf-test-{process.pid}"
    group.mkdir()
    try:
        if version1.exists():
            (group / "cpu.cfs_quota_us").write_text(str(int(share * 100_000)))
            (group / "cpu.shares").write_text("262144")  # others must not keep it below that
        else:
            (group / "cpu.max").write_text(f"{int(share * 100_000)} 100000")
            (group / "cpu.weight").write_text("10000")
        (group / "cgroup.procs").write_text(str(process.pid))
        yield group
    finally:
        if process.poll() is None:
            (root / "cgroup.procs").write_text(str(process.pid))
        group.rmdir()


def truth_of(process):
    return truthfile.load(str(process.truth_path))


def truths_of(process):
    """That of the job and those of its children."""
    return truthfile.load_all(str(process.truth_path))


class Monitor:
    """A running gbpf monitor and what it has told so far: one object an interval."""

    def __init__(self, *args):
        self.intervals: List[dict] = []
        self._ended = False
        self._lines = threading.Condition()
        self.process = subprocess.Popen(
            [gbpf.GBPF, "monitor", "--format", "json", "--apis", *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.err = ""
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._hear)]
        for reader in self._readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._lines:
                self.intervals.append(json.loads(line))
                self._lines.notify_all()
        with self._lines:
            self._ended = True
            self._lines.notify_all()

    def _hear(self):
        self.err = self.process.stderr.read()

    def wait(self, count, timeout=60):
        """Waits until it has told count intervals more; those."""
        with self._lines:
            seen = len(self.intervals)
            self._lines.wait_for(
                lambda: len(self.intervals) >= seen + count or self._ended, timeout)
            assert len(self.intervals) >= seen + count, self.trouble()
            return self.intervals[seen:seen + count]

    def resident(self):
        """bytes"""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1]) * 1024

    def cpu(self):
        """ns since it began, of all its threads"""
        return cpu_ns(self.pid)

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def kernel_bytes(self):
        """What the kernel accounts its maps and programs with."""
        total = 0
        for info in pathlib.Path(f"/proc/{self.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                total += sum(map(int, re.findall(r"^memlock:\s+(\d+)", info.read_text(), re.M)))
        return total

    def trouble(self):
        return f"status {self.process.poll()}, {len(self.intervals)} intervals; {self.err}"

    def end(self, sig=signal.SIGINT):
        """Ends it and waits; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            for reader in self._readers:
                reader.join()
            self.process.stdout.close()
            self.process.stderr.close()
        return status


@contextlib.contextmanager
def monitoring(*pids, interval="1s", options=()):
    """gbpf monitor on these processes and no others; it must end well."""
    args = [arg for pid in pids for arg in ("-p", getattr(pid, "pid", pid))]
    monitor = Monitor(*args, "--interval", interval, *options)
    try:
        yield monitor
    finally:
        status = monitor.end()
    assert status == 0, monitor.trouble()
    for api in (a for i in monitor.intervals for p in i["processes"] for a in p["apis"]):
        known = [api[key] for key in ("p50_ns", "p99_ns", "max_ns") if api[key] is not None]
        assert known == sorted(known), api


# ---- an interval and the truth of the same time ----

@dataclasses.dataclass
class Pair:
    """What was told of one process in one interval, beside what was so. Rates are a second."""

    told: dict
    begin: int  # ns, CLOCK_MONOTONIC
    end: int
    rate: float
    true_rate: float
    low: float
    high: float
    p50: Optional[float]
    p99: Optional[float]
    true_p50: Optional[float]
    true_p99: Optional[float]

    @property
    def error(self):
        """of the rate, relative"""
        return relative(self.rate, self.true_rate)

    @property
    def inside(self):
        """The truth lies in the 95 % interval; one call is what edges of intervals blur."""
        if self.low is None:
            return False
        blur = 1.0 * SECOND / (self.end - self.begin)
        return self.low - blur <= self.true_rate <= self.high + blur


def relative(told, true):
    if told is None:
        return float("inf")
    return abs(told - true) / true if true else float(told != 0)


def span(interval):
    """(begin, end) of an interval, ns of CLOCK_MONOTONIC."""
    return interval["mono_ns"] - interval["window_ns"], interval["mono_ns"]


def process_in(interval, pid):
    """What an interval tells of a process, or None."""
    return next((p for p in interval["processes"] if p["pid"] == pid), None)


def pair(interval, truth, least=200):
    """An interval beside the truth of a job; durations only where there were enough calls."""
    begin, end = span(interval)
    told = process_in(interval, truth.pid)
    assert told, f"process {truth.pid} is not in {interval}"
    calls = truth.between("launch", begin, end)
    low, high = told["launches_per_s_ci"] or (None, None)
    recent = max(end - told.get("recent_ns", end - begin), truth.opened)
    p50 = p99 = None
    if truth.between("launch", recent, end) >= least:
        p50, p99 = truth.quantiles("launch", recent, end, [0.5, 0.99])
    return Pair(told, begin, end, told["launches_per_s"], calls * SECOND / (end - begin), low, high,
                told["dispatch_p50_ns"], told["dispatch_p99_ns"], p50, p99)


def pairs(intervals, truth, **kwargs):
    """Of all intervals that lie wholly within the job's life."""
    return [pair(i, truth, **kwargs) for i in intervals
            if span(i)[0] >= truth.opened and (not truth.closed or span(i)[1] <= truth.closed)]


def summary(paired):
    """Errors in short: how far off, how often outside."""
    known = [p for p in paired if p.rate is not None and p.low is not None]
    timed = [p for p in paired if p.true_p50 and p.p50]
    out = {
        "intervals": len(paired),
        "known": len(known),
        "inside": sum(p.inside for p in known) / len(known) if known else 0,
        "total_error": relative(sum(p.rate for p in known), sum(p.true_rate for p in known)),
    }
    for name, errors in (
            ("rate", [p.error for p in known]),
            ("p50", [relative(p.p50, p.true_p50) for p in timed]),
            ("p99", [relative(p.p99, p.true_p99) for p in timed])):
        if errors:
            out[name + "_median"] = statistics.median(errors)
            out[name + "_p90"] = sorted(errors)[int(0.9 * (len(errors) - 1))]
    return {k: round(v, 4) for k, v in out.items()}


# ---- what watching really costs a job ----

@dataclasses.dataclass
class Slowdown:
    """Time a launch takes watched, over what it takes unwatched, minus 1; 95 % by bootstrap."""

    value: float  # of the job's time on a CPU
    low: float
    high: float
    pairs: List[float]
    wall: float  # the same of wall time, median: others that want the CPU are in it
    told: float  # what the monitor itself estimated


@dataclasses.dataclass
class Turn:
    """A while in which a job was watched, or was not. Times in ns."""

    begin: int
    end: int
    cpu: int


def bootstrap(values, of=statistics.median, rounds=2000, seed=1):
    """(value, low, high): a statistic and its 95 % interval."""
    rng = random.Random(seed)
    drawn = sorted(of(rng.choices(values, k=len(values))) for _ in range(rounds))
    return of(values), drawn[int(0.025 * rounds)], drawn[int(0.975 * rounds)]


def cpu_ns(pid):
    """CPU time of a process, up to this very moment (clock_getcpuclockid(3))."""
    return int(time.clock_gettime(~pid << 3 | 2) * 1e9)


def turn(pid, seconds):
    begin, cpu = time.monotonic_ns(), cpu_ns(pid)
    time.sleep(seconds)
    return Turn(begin, time.monotonic_ns(), cpu_ns(pid) - cpu)


def against_neighbours(costs):
    """Each odd one over the mean of those before and after it, minus 1: drift cancels."""
    return [2 * costs[i] / (costs[i - 1] + costs[i + 1]) - 1 for i in range(1, len(costs), 2)]


def slowdown(process, seconds=2.0, count=10, interval="500ms", options=()):
    """
    Watches a job that launches as fast as it can in turns: unwatched, watched, and so on.
    Ends the job. Each watched turn is compared with the unwatched ones around it.
    """
    turns, told = [turn(process.pid, seconds)], []
    for _ in range(count):
        with monitoring(process, interval=interval, options=options) as monitor:
            monitor.wait(1)
            turns.append(turn(process.pid, seconds))
            told += [process_in(i, process.pid)["overhead_pct"] / 100
                     for i in monitor.intervals[1:]]
        time.sleep(0.2)
        turns.append(turn(process.pid, seconds))
    process.terminate()
    process.wait(timeout=60)
    truth = truth_of(process)
    launches = [truth.between("launch", t.begin, t.end) for t in turns]
    ratios = against_neighbours([t.cpu / n for t, n in zip(turns, launches)])
    wall = against_neighbours([(t.end - t.begin) / n for t, n in zip(turns, launches)])
    return Slowdown(*bootstrap(ratios), ratios, statistics.median(wall), statistics.fmean(told))
