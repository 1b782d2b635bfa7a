# SPDX-License-Identifier: BSD-2-Clause
"""What tracing costs a job: windows with and without, in turn, in one run."""
import random
import signal
import statistics
import time

import compare
import stats
from jobs import Trouble

RELATIVE = 0.015  # half of the 95 % interval that is good enough
LEAST_PAIRS = 12


def now():
    return time.monotonic_ns()


class Windows:
    """A job that steps freely, and the windows cut out of its run."""

    def __init__(self, check, job, length, rest=0.3, arguments=(), settle=0.4):
        self.check = check
        self.arguments = arguments  # of gbpf trace, beside those that all have
        self.settle = settle
        self.job = job
        self.length = length
        self.rest = rest
        self.on, self.off = [], []
        self.recordings = []
        self.cpu = []

    def detached(self):
        begin = now()
        time.sleep(self.length)
        return begin, now()

    def attached(self):
        recording = self.check.record("-p", str(self.job.pid), "-d", "0", "--quiet",
                                      *self.arguments, settle=self.settle)
        before = recording.state_and_cpu()[1]
        begin = now()
        time.sleep(self.length)
        end = now()
        recording.stop()
        self.cpu.append((recording.cpu_s - before) / ((end - begin) / 1e9))
        self.recordings.append(recording)
        time.sleep(self.rest)
        return begin, end

    def pair(self, rng):
        """One window of each sort, in an order that nothing can be in step with."""
        order = ["on", "off"]
        rng.shuffle(order)
        for sort in order:
            if sort == "on":
                self.on.append(self.attached())
            else:
                self.off.append(self.detached())

    def lengths(self, windows):
        steps = stats.steps_read(self.job.steps_path())
        return [stats.within(steps, *w) for w in windows]

    def medians(self, windows):
        return [statistics.median(v) for v in self.lengths(windows) if v]

    def result(self):
        on, off = self.medians(self.on), self.medians(self.off)
        n = min(len(on), len(off))
        if n == 0:
            raise Trouble("no step lies in any window")
        return stats.ratio_of_pairs(list(zip(on[:n], off[:n])))


def interleave(windows, seconds):
    """Pairs until the interval is narrow or the time is spent; the result."""
    rng = random.Random(time.time_ns())
    until = time.monotonic() + seconds
    result = None
    while True:
        windows.pair(rng)
        if len(windows.on) >= LEAST_PAIRS:
            result = windows.result()
            if stats.half_width(result) <= RELATIVE:
                break
        if time.monotonic() > until:
            break
    return result or windows.result()


def settled_loss(measuring):
    """Events and losses of all its recordings, read when no window is being measured."""
    events, lost = 0, {}
    for r in measuring.recordings:
        quality = r.report("summary")["quality"]
        events += quality["events"]
        for cause, n in compare.losses(quality).items():
            lost[cause] = lost.get(cause, 0) + n
    return events, lost


def measured(check, job, length, seconds, unit, per=1, **options):
    """Slowdown while traced; options are those of Windows."""
    windows = Windows(check, job, check.setting.seconds(length), **options)
    job.free()
    time.sleep(check.setting.seconds(2))
    result = interleave(windows, seconds)
    job.end_free()
    report_slowdown(check, windows, result, unit, per)
    events, lost = settled_loss(windows)
    check.expect("attached windows recorded events, and lost none", events > 0 and not lost,
                 f"{events} events, lost {lost or 'none'}")
    check.expect("the job runs on", job.alive())


def report_slowdown(check, windows, result, unit, per):
    on, off = windows.lengths(windows.on), windows.lengths(windows.off)
    all_on = [v for w in on for v in w]
    all_off = [v for w in off for v in w]
    for label, values in (("traced", all_on), ("not traced", all_off)):
        check.measure(
            f"{unit}, {label}", round(statistics.median(values) / per, 1), "ns",
            p10=round(stats.quantile(values, 0.1) / per, 1),
            p90=round(stats.quantile(values, 0.9) / per, 1), n=len(values))
    narrow = stats.half_width(result)
    check.measure(
        f"slowdown of {unit} while traced", round(result["ratio"], 4), "×",
        low=result["low"] and round(result["low"], 4),
        high=result["high"] and round(result["high"], 4), n=result["n"],
        half_width_pct=None if result["low"] is None else round(narrow * 100, 2),
        reached=narrow <= RELATIVE)
    check.measure("added by tracing, " + unit,
                  round((statistics.median(all_on) - statistics.median(all_off)) / per, 1), "ns")
    check.measure("CPU of gbpf while tracing", round(100 * statistics.fmean(windows.cpu), 2),
                  "% of a core", n=len(windows.cpu))


def run_empty(check):
    """Empty launches in a tight loop of CUDA C: ns a launch."""
    job = check.jobs[0].ready(60)
    per = 200 if check.setting.simulated else 500
    measured(check, job, 1, check.setting.budget(50), "an empty launch", per)


def run_slowdown(check):
    """The training step, for as long as there is time."""
    job = check.jobs[0].ready()
    measured(check, job, 2, check.setting.budget(480), "a training step")


def run_kill(check):
    """gbpf dies by SIGKILL while it traces: the target goes on, and is fast again."""
    job = check.jobs[0].ready(60)
    wait = check.setting.seconds
    at = {}
    job.free()
    time.sleep(wait(1))
    at["first"] = now()
    time.sleep(wait(3))
    at["attach"] = now()
    recording = check.record("-p", str(job.pid), "-d", "0", "--quiet")
    at["traced"] = now()
    time.sleep(wait(3))
    at["killed"] = now()
    recording.stop(signal.SIGKILL)
    at["gone"] = now()
    time.sleep(wait(8))
    at["last"] = now()
    check.expect("the target runs on after SIGKILL of gbpf", job.alive())
    job.end_free()
    report_kill(check, stats.steps_read(job.steps_path()), at, int(wait(4) * 1e9))
    answer = job.ask(f"steps {check.setting.steps(100)}")
    check.expect("the target works on after SIGKILL of gbpf", answer["syncs"] > 0)


def report_kill(check, steps, at, late_ns):
    before = stats.within(steps, at["first"], at["attach"])
    during = stats.within(steps, at["traced"], at["killed"])
    after = stats.within(steps, at["last"] - late_ns, at["last"])
    base = statistics.median(before)
    back = stats.back_to(stats.buckets(steps, at["killed"], at["last"], 20_000_000), base * 1.03)
    ratio = stats.ratio_of_groups(after[:4000], before[:4000], resamples=400)
    check.measure("time per launch while traced / before", round(
        statistics.median(during) / base, 3), "×", n=len(during))
    check.measure("time per launch after SIGKILL / before", round(ratio["ratio"], 4), "×",
                  low=round(ratio["low"], 4), high=round(ratio["high"], 4), n=len(after))
    check.measure("SIGKILL until back within 3 %", None if back is None else
                  round((back - at["killed"]) / 1e6), "ms", resolution_ms=20)
    check.measure("SIGKILL until gbpf was gone", round((at["gone"] - at["killed"]) / 1e6, 1), "ms")
    if not check.setting.simulated:
        check.expect("at full speed after SIGKILL of gbpf", ratio["ratio"] < 1.05, ratio)
