# SPDX-License-Identifier: BSD-2-Clause
"""What CUPTI costs by itself, and leaves behind, beside what gbpf makes of it."""
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import time

import gputime
import stats
from check import JOBS, Skip
from jobs import Trouble, die_with_parent

WORKS = "10,1,2"    # kernels, copies, sets; "+": calls in moments, as the sidecar records them
NOTHING = "nothing"
VARIANTS = {        # what happens to each process, after it was measured alone
    NOTHING: ["rest", "rest", "rest"],
    "opened": ["open", "rest", "rest"],
    "subscribed": ["open", "subscribe", "rest"],
    "works": ["open", f"on={WORKS}", "off"],
    "kernels": ["open", "on=10", "off"],
    "copies and sets": ["open", "on=1,2", "off"],
    "calls": ["open", "on=4,5", "off"],
    "works and moments": ["open", f"on={WORKS}+", "off"],
    "finalized": [f"open on={WORKS}", "off", "finalize"],
}
ROUNDS = 8


def libcupti(check):
    """The one that PyTorch loads, or the toolkit's."""
    if check.setting.simulated:
        return os.path.join(check.setting.simulated, "libcupti.so.13")
    status, text = check.run(
        "sh", "-c", "find / -xdev -name 'libcupti.so.1[23]*' -not -type d 2>/dev/null | sort")
    found = text.split() if status is not None else []
    if not found:
        raise Skip("no libcupti")
    return ([f for f in found if "/nvidia/" in f] or found)[0]


def built(check, name, *flags):
    path = os.path.join(check.setting.scratch, name)
    user = os.path.join(JOBS, "..", "..", "..", "user")
    source = [os.path.join(JOBS, "cupti_alone.c"), os.path.join(user, "sidecar/lib/layout.c")]
    if not os.path.exists(path):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise Skip("no C compiler")
        if name == "cupti_cost":
            source.append(os.path.join(JOBS, "cupti_cost.c"))
        status, text = check.run(
            compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-pthread", f"-I{user}",
            *flags, "-o", path, *source, "-ldl")
        check.expect(f"{name} builds", status == 0, text[-1500:] if status else "")
    return path


class Alone:
    """One process of cupti_cost.c."""

    def __init__(self, check, program, library):
        self.process = check.own(subprocess.Popen(
            [program, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=die_with_parent(signal.SIGKILL)))

    def begin(self, phase):
        self.process.stdin.write(phase + "\n")
        self.process.stdin.flush()

    def ask(self, phase):
        """ns of an empty launch."""
        self.begin(phase)
        return self.told(phase)["ns"]

    def told(self, phase):
        line = self.process.stdout.readline()
        if not line:
            raise Trouble(f"cupti_cost ended at {phase}")
        told = json.loads(line)
        if told["status"]:
            raise Trouble(f"{phase}: {told['status']}")
        return told


def rounds(alone):
    """Each process in turn: {variant: [its time over that of the one that does nothing]}."""
    found = {name: [] for name in alone}
    for _ in range(ROUNDS):
        ns = {name: alone[name].ask("rest") for name in random.sample(list(alone), len(alone))}
        for name, value in ns.items():
            found[name].append(value / ns[NOTHING])
    return found


def run_alone(check):
    """An empty launch before, during and after CUPTI, without gbpf, a process each."""
    if check.setting.simulated:
        raise Skip("loads PTX")
    program, library = built(check, "cupti_cost"), libcupti(check)
    check.note("libcupti", library)
    alone = {name: Alone(check, program, library) for name in VARIANTS}
    before = rounds(alone)
    for stage in range(3):
        for name, phases in VARIANTS.items():
            for phase in phases[stage].split():
                alone[name].ask(phase)
        for name, ratios in rounds(alone).items():
            if name == NOTHING:
                continue
            result = stats.ratio_of_groups(ratios, before[name])
            check.measure(f"an empty launch, {name}: {VARIANTS[name][stage]}",
                          round(result["ratio"], 4), "× before", low=round(result["low"], 4),
                          high=round(result["high"], 4), n=ROUNDS)
    check.expect("all processes work on", all(a.ask("rest") > 0 for a in alone.values()))


def stretch(check, seconds):
    begin = time.monotonic_ns()
    time.sleep(check.setting.seconds(seconds))
    return begin, time.monotonic_ns()


def with_cupti(check, job, seconds):
    """One stretch of a job that steps freely, while CUPTI records without gbpf."""
    job.end_free()
    job.ask(f"cupti on {WORKS}+")
    job.free()
    time.sleep(check.setting.seconds(0.5))
    found = stretch(check, seconds)
    job.end_free()
    job.ask("cupti off")
    job.free()
    return found


def with_gbpf(check, job, seconds, arguments):
    recording = gputime.attach(check, job) if arguments else \
        check.record("-p", str(job.pid), "-d", "0", "--quiet", settle=1.0)
    found = stretch(check, seconds)
    recording.stop()
    os.unlink(recording.path)
    return found


def run_beside(check):
    """Two equal jobs take turns: one with CUPTI alone, one with gbpf, with and without it."""
    ours, theirs = (j.ready() for j in check.jobs)
    theirs.ask(f"cupti open {built(check, 'cupti_alone.so', '-shared', '-fPIC')} "
               f"{libcupti(check)}")
    rng, seconds = random.Random(time.time_ns()), 1.5
    rows = []
    arms = {
        "cupti": lambda job: with_cupti(check, job, seconds),
        "probes": lambda job: with_gbpf(check, job, seconds, False),
        "gpu-time": lambda job: with_gbpf(check, job, seconds, True),
        "rest": lambda job: stretch(check, seconds),
        "rest ": lambda job: stretch(check, seconds),
    }
    for job, first in ((ours, "gpu-time"), (theirs, "cupti")):  # what stays is there from now on
        job.free()
        arms[first](job)
        job.end_free()
    until = time.monotonic() + check.setting.budget(130)
    while len(rows) < 2 or time.monotonic() < until:
        row = {}
        for job, names in ((ours, ["rest", "probes", "gpu-time"]), (theirs, ["rest ", "cupti"])):
            job.free()
            time.sleep(check.setting.seconds(0.5))
            for name in rng.sample(names, len(names)):
                row[name] = arms[name](job)
                time.sleep(0.2)
            job.end_free()
        rows.append(row)
    report_beside(check, ours, theirs, rows)


def report_beside(check, ours, theirs, rows):
    steps = {"ours": stats.steps_read(ours.steps_path()),
             "theirs": stats.steps_read(theirs.steps_path())}

    def medians(name):
        whose = steps["theirs" if name in ("cupti", "rest ") else "ours"]
        return [statistics.median(stats.within(whose, *row[name])) for row in rows]

    found = {name: medians(name) for name in ("rest", "probes", "gpu-time", "rest ", "cupti")}
    for label, on, off in (
            ("CUPTI alone / nothing", "cupti", "rest "),
            ("probes / nothing", "probes", "rest"),
            ("probes and GPU time / nothing", "gpu-time", "rest"),
            ("probes and GPU time / probes", "gpu-time", "probes")):
        result = stats.ratio_of_pairs(list(zip(found[on], found[off])))
        check.measure(f"training step, {label}", round(result["ratio"], 4), "×",
                      low=round(result["low"], 4), high=round(result["high"], 4), n=result["n"])
    added = [(g - p) / (c - r) for g, p, c, r in zip(
        found["gpu-time"], found["probes"], found["cupti"], found["rest "]) if c > r]
    if added:
        check.measure("added by the sidecar / added by CUPTI alone",
                      round(statistics.median(added), 3), "×", n=len(added))
    check.expect("both jobs run on", ours.alive() and theirs.alive())


LEFT = {            # gbpf's options, while the process is busy; None: gbpf does not come
    NOTHING: None,
    "a trace": [],
    "GPU time": ["--gpu-time"],
    "GPU time with --cupti-calls": ["--gpu-time", "--cupti-calls"],
}
LEFT_PROCESSES = 4  # of each


def left_in(check, program, library, options):
    """What was told of one process before gbpf came, and after it had gone."""
    alone = Alone(check, program, library)
    told = []
    for phases in (["rest"] * 3, ["busy"], ["rest"] * 3):
        for phase in phases:
            alone.begin(phase)
            if phase == "busy" and options is not None:
                recording = check.record("-p", str(alone.process.pid), "-d", "0", "--quiet",
                                         *options)
                time.sleep(0.8)
                recording.stop()
                check.expect(f"gbpf ended as it should, {' '.join(options) or 'no option'}",
                             recording.status == 0, recording.status)
                gpu = recording.report("summary")["quality"]["gpu"]
                check.expect("its works were recorded, if they were asked for",
                             bool(gpu["works"]) == bool(options)
                             and gpu["matched"] == gpu["works"], gpu)
            told.append(alone.told(phase))
    alone.process.stdin.close()
    check.expect("the process ends as it should", alone.process.wait(10) == 0)
    return told[:3], told[4:]


def run_left(check):
    """A call that does next to nothing shows what stays: it takes 6 ns without, 90 with CUPTI."""
    if check.setting.simulated:
        raise Skip("loads PTX")
    program, library = built(check, "cupti_cost"), libcupti(check)
    found = {name: [] for name in LEFT}
    for _ in range(LEFT_PROCESSES):
        for name in random.sample(list(LEFT), len(LEFT)):
            found[name].append(left_in(check, program, library, LEFT[name]))
    for name, pairs in found.items():
        for key, what in (("call_ns", "cuCtxGetCurrent"), ("ns", "an empty launch")):
            each = [[statistics.median(t[key] for t in side) for side in pair] for pair in pairs]
            check.note(f"{what} before and after, {name}", each)
            check.measure(f"{what} after {name}",
                          round(statistics.median(after for _, after in each), 2), "ns",
                          before=round(statistics.median(before for before, _ in each), 2),
                          high=round(max(after / before for before, after in each), 3),
                          n=len(each))


def entries(entry):
    def two(check):
        check.jobs = [check.torch("train", name) for name in ("ours", "theirs")]

    return [
        entry("cupti-alone", lambda check: None, run_alone, 90, True,
              "empty launches with CUPTI and without gbpf"),
        entry("calls-left", lambda check: None, run_left, 120, True,
              "a small call and an empty launch after gbpf / before"),
        entry("gpu-beside", two, run_beside, 240, True,
              "a training step with --gpu-time, and with CUPTI alone"),
    ]
