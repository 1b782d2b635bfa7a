# SPDX-License-Identifier: BSD-2-Clause
"""Whether GPU time leaves a training step slower than before, by many processes.

What it leaves cannot be taken away, so a process tells once, and one process drifts by some
percent meanwhile. In half of them, drawn at random, nothing is done.
"""
import collections
import json
import random
import statistics
import time

import gputime
import lanes
import stats

COUNT = 4           # lanes
SECONDS = 390       # for all of it
WARM_S = 1.2        # after the warm-up that a job makes itself
MEASURED_S = 0.8
TRACED_S = 0.4
SETTLE_S = 0.2
WANTED_PCT = 1.5

Told = collections.namedtuple("Told", "traced ratio recording")


def traced(lane, job):
    """Its recording's path, or what gbpf had to say instead."""
    check = lane.check
    path = check.setting.directory(f"{check.name}-{lane.name}-{lane.count}") + ".gbpf"
    status, text = check.run(
        check.setting.gbpf, "trace", *gputime.options(check), "-p", str(job.pid), "-d",
        f"{round(1000 * TRACED_S)}ms", "--quiet", "-o", path)
    return path if status == 0 and not text else text or f"status {status}"


def one(lane, job, rng, lengths):
    """Mean step after over before of one job; lengths: how long tracing took this lane."""
    check, is_traced, found = lane.check, rng.random() < 0.5, None
    wait = check.setting.seconds
    job.ready(60)
    job.free()
    time.sleep(wait(WARM_S))
    before = lanes.span(wait(MEASURED_S))
    if is_traced:
        begin = time.monotonic()
        found = traced(lane, job)
        lengths.append(time.monotonic() - begin)
    else:
        time.sleep(statistics.median(lengths) if lengths else 1.5)
    time.sleep(SETTLE_S)
    after = lanes.span(wait(MEASURED_S))
    job.end_free()
    steps = stats.steps_read(job.steps_path())
    ratio = statistics.fmean(stats.within(steps, *after)) \
        / statistics.fmean(stats.within(steps, *before))
    return Told(is_traced, ratio, found)


def lane_of(lane, until):
    """As many jobs as there is time for; the next one starts while one is measured."""
    rng, found, lengths = random.Random(time.time_ns()), [], []
    job = lane.start("train")
    while time.monotonic() < until:
        following = lane.start("train")
        try:
            found.append(one(lane, job, rng, lengths))
        finally:
            job.close()
            job = following
    job.ready(60)
    job.close()
    return found


def works_of(check, path):
    status, text = check.run(check.setting.gbpf, "report", path, "--view", "summary", "--format",
                             "json")
    return json.loads(text)["quality"]["gpu"]["works"] if status == 0 else 0


def run(check):
    until = time.monotonic() + check.setting.budget(SECONDS)
    told = [t for lane in lanes.together(check, lane_of, until) for t in lane]
    groups = {name: [t.ratio for t in told if t.traced == is_traced]
              for name, is_traced in (("with", True), ("without", False))}
    results = {}
    for name, ratios in groups.items():
        low, high = stats.interval(ratios, stats.geometric_mean)
        results[name] = stats.geometric_mean(ratios)
        check.measure(f"training step later / before, {name} GPU time in between",
                      round(results[name], 4), "×", low=round(low, 4), high=round(high, 4),
                      n=len(ratios), half_width_pct=round(50 * (high - low) / results[name], 2))
        check.note(f"each, {name}", [round(r, 4) for r in ratios])
    low, high = stats.ratio_of_means(groups["with"], groups["without"])
    ratio = results["with"] / results["without"]
    check.measure("the one over the other: what is left", round(ratio, 4), "×",
                  low=round(low, 4), high=round(high, 4),
                  half_width_pct=round(50 * (high - low) / ratio, 2))
    works = [works_of(check, t.recording) for t in told if t.traced]
    check.expect("each recording has the GPU's time", works and min(works) > 0,
                 [t.recording for t in told if t.traced and not works_of(check, t.recording)][:3])
    if not check.setting.simulated:
        check.expect("nothing is left that can be told from nothing",
                     low <= 1, f"{low:.4f} to {high:.4f}")


def entries(entry):
    return [entry("residue-many", lanes.prepare(COUNT, lanes.Nursery), run, 600, True,
                  "training step after GPU time / before, by many processes")]
