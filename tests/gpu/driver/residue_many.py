# SPDX-License-Identifier: BSD-2-Clause
"""What makes a training step slower than before for good, by many processes.

What is left cannot be taken away, so a process tells once, and one process drifts by some
percent meanwhile. Which of several things is done to it, or nothing, is drawn at random.
"""
import collections
import json
import os
import random
import re
import statistics
import time

import cupti
import gputime
import lanes
import stats
from jobs import Trouble

COUNT = 5           # lanes
SECONDS = 390       # for all of it
WARM_S = 1.2        # after the warm-up that a job makes itself
MEASURED_S = 0.8
TRACED_S = 0.6
SETTLE_S = 0.2

NOTHING = "nothing"
GPU_TIME = "GPU time"
# Orders to the job (gate.py) while it rests. Between on and off it works for TRACED_S.
ALONE = {
    NOTHING: ([], []),
    "works, never a call": ([f"on {cupti.WORKS}"], ["off"]),
    "works, all calls in moments": ([f"on {cupti.WORKS}+"], ["off"]),
    "works, launches in moments": ([f"on {cupti.WORKS}f"], ["off"]),
    "works, launches in moments, kept so": ([f"on {cupti.WORKS}k"], ["off"]),
}

Told = collections.namedtuple("Told", "arm ratio detail")


class Arms:
    """What is done to jobs; each returns what is to be known of it later."""

    def __init__(self, check, names, do):
        self.check = check
        self.names = names
        self.do = do
        self.lengths = []  # of what takes time, s

    def apply(self, lane, job, name):
        if name == NOTHING and self.do is traced:
            time.sleep(statistics.median(self.lengths) if self.lengths else 1.5)
            return None
        begin = time.monotonic()
        detail = self.do(lane, job, name)
        self.lengths.append(time.monotonic() - begin)
        return detail


def traced(lane, job, name):
    """gbpf comes and goes while the job steps; its recording's path, or what it had to say."""
    check = lane.check
    path = check.setting.directory(f"{check.name}-{lane.name}-{lane.count}") + ".gbpf"
    more = gputime.options(check) if name == GPU_TIME else []
    status, text = check.run(check.setting.gbpf, "trace", *more, "-p", str(job.pid), "-d",
                             f"{round(1000 * TRACED_S)}ms", "--quiet", "-o", path)
    return path if status == 0 and not text else text or f"status {status}"


def alone(lane, job, name):
    """A client of CUPTI comes and goes, without gbpf; the path of what it wrote down."""
    check, (on, off) = lane.check, ALONE[name]
    log = os.path.join(job.directory, "records")
    job.end_free()
    if on:
        job.ask(f"cupti open {check.client} {check.libcupti}")
        job.ask(f"cupti log {log}")
    for order in on:
        job.ask(f"cupti {order}")
    job.free()
    time.sleep(check.setting.seconds(TRACED_S))
    job.end_free()
    for order in off:
        job.ask(f"cupti {order}")
    job.free()
    return log if on else None


def one(lane, job, arms, rng):
    """Mean step after over before of one job."""
    name, wait = rng.choice(arms.names), lane.check.setting.seconds
    job.ready(60)
    job.free()
    time.sleep(wait(WARM_S))
    before = lanes.span(wait(MEASURED_S))
    detail = arms.apply(lane, job, name)
    time.sleep(SETTLE_S)
    after = lanes.span(wait(MEASURED_S))
    job.end_free()
    steps = stats.steps_read(job.steps_path())
    ratio = statistics.fmean(stats.within(steps, *after)) \
        / statistics.fmean(stats.within(steps, *before))
    return Told(name, ratio, detail)


def lane_of(lane, arms, until):
    """As many jobs as there is time for; the next one starts while one is measured."""
    rng, found = random.Random(time.time_ns()), []
    job = lane.start("train")
    while time.monotonic() < until:
        following = lane.start("train")
        try:
            found.append(one(lane, job, arms, rng))
        except Trouble as error:
            lane.check.expect("a job lives", False, str(error))
        finally:
            job.close()
            job = following
    job.ready(60)
    job.close()
    return found


def report(check, told, names):
    """{name: (low, high) of its ratio over that of nothing}."""
    groups = {name: [t.ratio for t in told if t.arm == name] for name in names}
    found = {}
    for name, ratios in groups.items():
        if len(ratios) < 2:
            continue
        low, high = stats.interval(ratios, stats.geometric_mean)
        check.measure(f"training step later / before, {name} in between",
                      round(stats.geometric_mean(ratios), 4), "×", low=round(low, 4),
                      high=round(high, 4), n=len(ratios))
        check.note(f"each, {name}", [round(r, 4) for r in ratios])
        if name == NOTHING or len(groups[NOTHING]) < 2:
            continue
        low, high = found[name] = stats.ratio_of_means(ratios, groups[NOTHING])
        ratio = stats.geometric_mean(ratios) / stats.geometric_mean(groups[NOTHING])
        check.measure(f"what {name} leaves", round(ratio, 4), "×", low=round(low, 4),
                      high=round(high, 4), half_width_pct=round(50 * (high - low) / ratio, 2))
    return found


def measure(check, names, do, seconds):
    until = time.monotonic() + check.setting.budget(seconds)
    return [t for lane in lanes.together(check, lane_of, Arms(check, names, do), until)
            for t in lane]


def joined(check, path):
    """What the recording says of the join; None: it is none."""
    status, text = check.run(check.setting.gbpf, "report", path, "--view", "summary", "--format",
                             "json")
    return json.loads(text)["quality"]["gpu"] if status == 0 else None


def run_gbpf(check):
    names = [NOTHING, GPU_TIME]
    told = measure(check, names, traced, SECONDS)
    left = report(check, told, names)
    recordings = {t.detail: joined(check, t.detail) for t in told if t.arm == GPU_TIME}
    check.expect("each recording has the GPU's time, each work with its call",
                 recordings and all(g and g["works"] and g["matched"] >= gputime.MATCHED *
                                    g["works"] for g in recordings.values()),
                 [(path, g) for path, g in recordings.items() if not g or not g["works"] or
                  g["matched"] < g["works"]][:3])
    for name, (low, high) in left.items():
        if not check.setting.simulated:
            check.expect(f"{name} leaves nothing that can be told from nothing", low <= 1,
                         f"{low:.4f} to {high:.4f}")


def ids(path):
    """How CUPTI numbered works while it did not record calls, of one log."""
    with open(path, encoding="utf-8") as f:
        rows = [line.split() for line in f]
    called = {r[2] for r in rows if r[0] == "call"}
    works = collections.Counter(r[2] for r in rows if r[0] == "work")
    others = sorted(int(i) for i in works if i not in called)
    return {"calls": len(called), "works": sum(works.values()),
            "works with a call's id": sum(n for i, n in works.items() if i in called),
            "most works of one id": max(works.values(), default=0),
            "other ids": len(others), "from, to": others[:1] + others[-1:]}


def run_cupti(check):
    check.client = cupti.built(check, "cupti_alone.so", "-shared", "-fPIC")
    check.libcupti = cupti.libcupti(check)
    told = measure(check, list(ALONE), alone, SECONDS)
    report(check, told, ALONE)
    logs = {t.arm: t.detail for t in told if t.detail and os.path.exists(t.detail)}
    for name, path in logs.items():
        check.note(f"ids, {name}", ids(path))
        os.replace(path, os.path.join(check.setting.out, re.sub(r"\W+", "-", name) + ".ids"))
    check.expect("jobs were measured", len(told) >= 2)


def entries(entry):
    prepare = lanes.prepare(COUNT, lanes.Nursery)
    return [
        entry("residue-many", prepare, run_gbpf, 600, True,
              "training step after GPU time / before, by many processes"),
        entry("cupti-left", prepare, run_cupti, 600, True,
              "training step after CUPTI alone / before, by many processes"),
    ]
