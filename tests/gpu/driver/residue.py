# SPDX-License-Identifier: BSD-2-Clause
"""Whether a job is slower after gbpf has detached than before.

Two identical jobs take turns and never run at once; only one is traced in between. What the
machine does to both cancels out. The kernel puts a probe into every process that maps the probed
file, so each job gets a copy of the driver library of its own: the other is not even touched.
"""
import os
import random
import re
import statistics
import time

import lanes
import measure
import stats
from jobs import Trouble

SECONDS = 120       # for all of it once the jobs are there
FIRST_S = 55        # of that, for what comes before tracing
LAST_S = 12         # and for reading the recordings
PAIRS = 20
LEAST_PAIRS = 3
SLICE_S = 0.5       # a window is two slices
TIMES = 5
TRACED_S = 0.5
WIDE_PCT = 2.5      # half an interval wider than this excludes little


def prepare_two(check, start):
    """Jobs a and b by start(name, directory of their driver library)."""
    path = lanes.driver_library(check)
    for name in "ab":
        check.jobs.append(start(name, lanes.own_library(check, path, name)))


def prepare(check):
    prepare_two(check, lambda name, library: check.torch("train", name, library=library))


def changed_kib(smaps):
    """KiB of the code of libcuda and its like that is no longer the file's: where probes are."""
    total, counted = 0, False
    for line in smaps.splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+\s*(.*)", line)
        if head:
            name = os.path.basename(head.group(2))
            counted = "x" in head.group(1) and name.startswith("libcuda")
        elif counted and line.startswith("Anonymous:"):
            total += int(line.split()[1])
    return total


def changed(job):
    with open(f"/proc/{job.pid}/smaps", encoding="utf-8", errors="replace") as f:
        return changed_kib(f.read())


def order_of(rng):
    """Whose slices: either job is as early as it is late, so a steady drift cancels out."""
    return rng.choice(("abba", "baab"))


def pair(jobs, steps, rng):
    """Median step of b over that of a, of one window of each."""
    found = {"a": [], "b": []}
    for name in order_of(rng):
        found[name].append(jobs[name].ask(f"steps {steps}")["step_p50_ns"])
    return statistics.fmean(found["b"]) / statistics.fmean(found["a"])


def phase(jobs, steps, count, until):
    """The ratios of up to count pairs; the pair that warms up is not one of them."""
    rng = random.Random(time.time_ns())
    pair(jobs, steps, rng)
    ratios = []
    while len(ratios) < count and time.monotonic() < until:
        ratios.append(pair(jobs, steps, rng))
    if len(ratios) < LEAST_PAIRS:
        raise Trouble(f"time for {len(ratios)} pairs only")
    return ratios


def trace_b(check, jobs, seconds, arguments):
    """gbpf comes and goes while b steps; the code that was changed meanwhile, of each job."""
    during = {"a": [], "b": []}
    jobs["b"].free()
    for _ in range(TIMES):
        recording = check.record("-p", str(jobs["b"].pid), "-d", "0", "--quiet", *arguments,
                                 settle=0.1)
        time.sleep(seconds)
        for name, job in jobs.items():
            during[name].append(changed(job))
        recording.stop()
    jobs["b"].end_free()
    return during


def slice_steps(check, jobs):
    """How many steps last a slice, by the slower job; also warms both up."""
    count = check.setting.steps(100)
    p50 = max(job.ask(f"steps {count}")["step_p50_ns"] for job in jobs.values())
    return max(3, round(check.setting.seconds(SLICE_S) * 1e9 / p50))


def verify_control(check, before, during, after):
    text = f"KiB of changed code: before {before}, while traced {during}, after {after}"
    check.expect("the traced job had probes each time", min(during["b"]) > before["b"], text)
    check.expect("the other job never had any",
                 set(during["a"]) | {after["a"]} == {before["a"]}, text)
    check.measure("code of the traced job still changed after detaching",
                  after["b"] - before["b"], "KiB")


def report(check, first, second):
    for label, ratios in (("before", first), ("after", second)):
        low, high = stats.interval(ratios, statistics.median)
        check.measure(f"training step, traced job / other job, {label} tracing",
                      round(statistics.median(ratios), 4), "×", low=round(low, 4),
                      high=round(high, 4), n=len(ratios))
    result = stats.ratio_of_groups(second, first)
    check.measure(f"training step after {TIMES} detachings / before, against a job never traced",
                  round(result["ratio"], 4), "×", low=round(result["low"], 4),
                  high=round(result["high"], 4), n=result["n"],
                  half_width_pct=round(100 * stats.half_width(result), 2))
    return result


def run(check, arguments=(), seconds=TRACED_S):
    jobs = dict(zip("ab", check.jobs))
    for job in jobs.values():
        job.ready(60)
    begin = time.monotonic()
    end = begin + min(SECONDS, check.setting.left() - 25)
    count = check.setting.steps(PAIRS)
    steps = slice_steps(check, jobs)
    before = {name: changed(job) for name, job in jobs.items()}
    first = phase(jobs, steps, count, begin + (end - begin) * FIRST_S / SECONDS)
    during = trace_b(check, jobs, seconds, arguments)
    second = phase(jobs, steps, count, end - LAST_S)
    after = {name: changed(job) for name, job in jobs.items()}
    check.note("steps a window", 2 * steps)
    result = report(check, first, second)
    verify_control(check, before, during, after)
    events, lost = measure.settled_loss(check)
    check.expect("attached windows recorded events, and lost none", events > 0 and not lost,
                 f"{events} events, lost {lost or 'none'}")
    check.expect("both jobs run on", all(job.alive() for job in jobs.values()))
    if not check.setting.simulated:
        if 100 * stats.half_width(result) > WIDE_PCT:
            check.note("interval", "too wide to exclude a residue of a few percent")
        check.expect("the interval does not show the step slower after detaching",
                     result["low"] <= 1, result)
