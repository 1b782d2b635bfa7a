# SPDX-License-Identifier: BSD-2-Clause
"""gbpf monitor beside real jobs: what it costs them, and whether what it tells is so."""
import bisect
import json
import random
import signal
import statistics
import subprocess
import time

import stats
from jobs import Trouble, die_with_parent, end

WINDOW_S = 3.0
INTERVAL = "500ms"
LEAST_PAIRS = 4
START_S = 15


class Monitor:
    """gbpf monitor on one job, from its first interval on."""

    def __init__(self, check, job, budget):
        self.path = check.setting.directory(check.name) + ".jsonl"
        with open(self.path, "wb") as out, open(self.path + ".err", "wb") as err:
            self.process = check.own(subprocess.Popen(
                [check.setting.gbpf, "monitor", "-p", str(job.pid), "--max-overhead", budget,
                 "-i", INTERVAL, "--format", "json"], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, preexec_fn=die_with_parent(signal.SIGINT)))
        self.pid = job.pid
        until = time.monotonic() + START_S
        while not self.intervals():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Trouble(f"gbpf monitor told nothing: {open(self.path + '.err').read()}")
            time.sleep(0.02)

    def intervals(self):
        """(interval, the job's process) of each whole line."""
        with open(self.path, "rb") as f:
            lines = f.read().split(b"\n")[:-1]
        told = [json.loads(line) for line in lines]
        return [(i, p) for i in told for p in i["processes"] if p["pid"] == self.pid]

    def stop(self):
        if end(self.process, signal.SIGINT, 20):
            raise Trouble(f"gbpf monitor ended with {self.process.returncode}")


class Truth:
    """Launches of a job that steps freely, by the ends of its steps."""

    def __init__(self, steps, each):
        self.ends = [ended for ended, _ in steps]
        self.each = each

    def at(self, instant):
        i = bisect.bisect_left(self.ends, instant)
        if not 0 < i < len(self.ends):
            return None
        before, after = self.ends[i - 1], self.ends[i]
        return self.each * (i - 1 + (instant - before) / (after - before))

    def launches(self, begin, end_):
        first, last = self.at(begin), self.at(end_)
        return None if first is None or last is None else last - first


def reference(check, job, each):
    """Launches a step and how long they take, by a recording, which counts each."""
    count = check.setting.steps(50)
    recording = check.record("-p", str(job.pid), "-d", "0")
    if each:
        job.free()
        time.sleep(check.setting.seconds(1))
        job.end_free()
    else:
        job.ask(f"steps {count}")
    recording.stop()
    row = recording.report("summary")["rows"][0]
    return each or row["launches"] / count, row["launch_p50_ns"], row["launch_p99_ns"]


def windows(check, job, budget, seconds):
    """[(with, without, what it told)]: neighbouring stretches of a job that steps freely."""
    rng = random.Random(time.time_ns())
    found, until = [], time.monotonic() + seconds
    length = max(1.3, check.setting.seconds(WINDOW_S))  # some intervals long
    job.free()
    time.sleep(check.setting.seconds(2))
    while len(found) < LEAST_PAIRS or time.monotonic() < until:
        on = off = None
        for sort in rng.sample(["on", "off"], 2):
            if sort == "off":
                begin = time.monotonic_ns()
                time.sleep(length)
                off = (begin, time.monotonic_ns())
                continue
            monitor = Monitor(check, job, budget)
            begin = time.monotonic_ns()
            time.sleep(length)
            on = (begin, time.monotonic_ns())
            monitor.stop()
            told = [t for t in monitor.intervals()
                    if t[0]["mono_ns"] - t[0]["window_ns"] >= begin]
            time.sleep(0.3)
        found.append((on, off, told))
    job.end_free()
    return found


def report_truth(check, label, truth, told, p50, p99):
    errors, inside, total, real = [], 0, 0.0, 0.0
    for interval, process in told:
        begin = interval["mono_ns"] - interval["window_ns"]
        launched = truth.launches(begin, interval["mono_ns"])
        rate, ends = process["launches_per_s"], process["launches_per_s_ci"]
        if not launched or rate is None:
            continue
        actual = launched * 1e9 / interval["window_ns"]
        errors.append(abs(rate / actual - 1))
        inside += ends[0] <= actual * 1.0005 and actual * 0.9995 <= ends[1]
        total, real = total + rate, real + actual
    if not errors:
        raise Trouble("no interval of the monitor lies in the job's steps")
    n = len(errors)
    check.measure(f"{label}: launches told / launched", round(total / real, 4), "×", n=n)
    check.measure(f"{label}: median error of an interval",
                  round(100 * statistics.median(errors), 2), "%", n=n)
    check.measure(f"{label}: true rate inside the interval told", round(100 * inside / n, 1), "%",
                  n=n)
    for name, ns in (("dispatch_p50_ns", p50), ("dispatch_p99_ns", p99)):
        values = [p[name] for _, p in told if p[name] is not None]
        if values:
            check.measure(f"{label}: {name.removesuffix('_ns')} told / recorded by trace",
                          round(statistics.median(values) / ns, 3), "×", n=len(values),
                          recorded_ns=ns)
    if not check.setting.simulated:
        check.expect(f"{label}: launches within 10 % in total", abs(total / real - 1) < 0.1,
                     total / real)


def report_self(check, label, told):
    def median(key):
        return statistics.median(i["self"][key] for i, _ in told)

    check.measure(f"{label}: overhead that it tells", round(median("overhead_pct"), 3), "%",
                  n=len(told))
    check.measure(f"{label}: coverage", round(median("coverage"), 3), "")
    check.measure(f"{label}: gbpf's own CPU", round(median("cpu_pct"), 2), "% of a core")
    check.measure(f"{label}: gbpf's memory", round(median("rss_bytes") / 2**20, 1), "MiB")


def monitored(label, budget, seconds, launches=None):
    """launches: a step's, where a free one is unlike an ordered one (real, simulated)."""
    def run(check):
        job = check.jobs[0].ready()
        each, p50, p99 = reference(
            check, job, launches and launches[bool(check.setting.simulated)])
        found = windows(check, job, budget, check.setting.budget(seconds))
        steps = stats.steps_read(job.steps_path())
        pairs = [(stats.within(steps, *on), stats.within(steps, *off)) for on, off, _ in found]
        medians = [(statistics.median(a), statistics.median(b)) for a, b in pairs if a and b]
        result = stats.ratio_of_pairs(medians)
        check.measure(f"{label}: step while monitored / not", round(result["ratio"], 4), "×",
                      low=result["low"] and round(result["low"], 4),
                      high=result["high"] and round(result["high"], 4), n=result["n"])
        told = [t for _, _, some in found for t in some]
        report_self(check, label, told)
        report_truth(check, label, Truth(steps, each), told, p50, p99)
        check.expect("the job runs on", job.alive())
    return run


def entries(entry):
    def torch(mode):
        def prepare(check):
            check.jobs = [check.torch(mode)]
        return prepare

    def cuda(check):
        check.jobs = [check.cuda("static")]

    return [
        entry("monitor-gpu-bound", torch("mm4096"), monitored("4096² products, 1 %", "1%", 45),
              200, True, "gbpf monitor beside a job that waits for the GPU"),
        entry("monitor-empty", cuda, monitored("empty launches, 5 %", "5%", 60, (500, 200)),
              200, True, "gbpf monitor beside a tight loop of empty launches"),
        entry("monitor-step", torch("train"), monitored("training step, 1 %", "1%", 200),
              600, True, "gbpf monitor beside a training step"),
    ]
