# SPDX-License-Identifier: BSD-2-Clause
"""gbpf monitor beside real jobs: what it costs them, and whether what it tells is so."""
import bisect
import collections
import json
import os
import signal
import statistics
import subprocess
import time

import lanes
import stats
from jobs import Trouble, die_with_parent, end

LANES = 4
WINDOW_S = 0.6      # some intervals long; longer ones drift further apart, and there are fewer
INTERVAL = "250ms"
SETTLE_S = 0.1
LEAST_TURNS = 3     # of each budget, in each lane
START_S = 15

# Two windows without a monitor, the one with it between them, and what it told in that.
Turn = collections.namedtuple("Turn", "budget before on after told")


class Monitor:
    """gbpf monitor on one job, from its first interval on."""

    def __init__(self, check, job, budget, name):
        self.path = check.setting.directory(f"{check.name}-{name}") + ".jsonl"
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

    def forget(self):
        for path in (self.path, self.path + ".err"):
            os.unlink(path)


def began(interval):
    return interval["mono_ns"] - interval["window_ns"]


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


class Lane:
    """One job, and the gbpf monitors that come and go beside it."""

    def __init__(self, check, mode, library, name):
        self.check = check
        self.name = name
        self.job = check.cuda("static", name=name, library=library) if mode == "cuda" \
            else check.torch(mode, name, library)
        self.turns = []

    def turn(self, budget, off):
        """One window with a monitor, and one without after it, which is returned."""
        monitor = Monitor(self.check, self.job, budget, self.name)
        _, ended = lanes.span(WINDOW_S)
        monitor.stop()
        # From its beginning: the first window costs most, and later ones pay that back.
        told = [t for t in monitor.intervals() if t[0]["mono_ns"] <= ended]
        on = (began(told[0][0]), told[-1][0]["mono_ns"])
        monitor.forget()
        time.sleep(SETTLE_S)
        following = lanes.span(WINDOW_S)
        self.turns.append(Turn(budget, off, on, following, told))
        return following

    def work(self, budgets, until):
        """Turns, a budget after the other, of a job that steps freely."""
        self.job.free()
        time.sleep(self.check.setting.seconds(2))
        off = lanes.span(WINDOW_S)
        while len(self.turns) < LEAST_TURNS * len(budgets) or time.monotonic() < until:
            off = self.turn(budgets[len(self.turns) % len(budgets)], off)
        self.job.end_free()
        return stats.steps_read(self.job.steps_path())


def report_truth(check, label, rows, p50, p99):
    """rows: (launches that there were, interval, the job's process in it)."""
    errors, inside, total, real = [], 0, 0.0, 0.0
    for launched, interval, process in rows:
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
        values = [p[name] for _, _, p in rows if p[name] is not None]
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

    check.measure(f"{label}: overhead that it tells, mean",
                  round(statistics.fmean(i["self"]["overhead_pct"] for i, _ in told), 3), "%",
                  n=len(told))
    check.measure(f"{label}: coverage", round(median("coverage"), 3), "")
    check.measure(f"{label}: gbpf's own CPU", round(median("cpu_pct"), 2), "% of a core")
    check.measure(f"{label}: gbpf's memory", round(median("rss_bytes") / 2**20, 1), "MiB")


def report_slowdown(check, label, judged):
    """judged: (turn, steps of its job) of one budget. What counts is the mean step: throughput."""
    ratios = []
    for turn, steps in judged:
        on, before, after = (stats.within(steps, *w) for w in (turn.on, turn.before, turn.after))
        if on and before and after:
            off = (statistics.fmean(before) + statistics.fmean(after)) / 2
            ratios.append(statistics.fmean(on) / off)
    low, high = stats.interval(ratios, stats.geometric_mean)
    check.measure(f"{label}: step while monitored / not", round(stats.geometric_mean(ratios), 4),
                  "×", low=round(low, 4), high=round(high, 4), n=len(ratios))
    check.note(f"{label}: each turn", [round(r, 4) for r in ratios])


def report(check, label, judged, each, recorded):
    report_slowdown(check, label, judged)
    report_self(check, label, [t for turn, _ in judged for t in turn.told])
    rows = []
    for turn, steps in judged:
        truth = Truth(steps, each)
        rows += [(truth.launches(began(i), i["mono_ns"]), i, p)
                 for i, p in turn.told]
    report_truth(check, label, rows, *recorded)


def monitored(label, budgets, seconds, launches=None):
    """launches: a step's, where a free one is unlike an ordered one (real, simulated)."""
    def run(check):
        for lane in check.lanes:
            lane.job.ready()
        each, *recorded = reference(check, check.lanes[0].job,
                                    launches and launches[bool(check.setting.simulated)])
        until = time.monotonic() + check.setting.budget(seconds)
        steps = lanes.together(check, lambda lane: lane.work(budgets, until))
        check.measure(f"{label}: step, whatever was done",
                      round(statistics.median(n for some in steps for _, n in some)), "ns",
                      lanes=len(steps))
        for budget in budgets:
            report(check, f"{label}, {budget}",
                   [(turn, of) for lane, of in zip(check.lanes, steps) for turn in lane.turns
                    if turn.budget == budget], each, recorded)
        check.expect("the jobs run on", all(lane.job.alive() for lane in check.lanes))
    return run


def entries(entry):
    def jobs(count, mode):
        return lanes.prepare(count, lambda check, library, name: Lane(check, mode, library, name))

    return [
        entry("monitor-gpu-bound", jobs(1, "mm4096"), monitored("4096² products", ["1%"], 45),
              200, True, "gbpf monitor beside a job that waits for the GPU"),
        entry("monitor-empty", jobs(1, "cuda"),
              monitored("empty launches", ["1%", "5%"], 60, (500, 200)),
              200, True, "gbpf monitor beside a tight loop of empty launches"),
        entry("monitor-step", jobs(LANES, "train"), monitored("training step", ["1%", "5%"], 470),
              600, True, "gbpf monitor beside training steps"),
    ]
