# SPDX-License-Identifier: BSD-2-Clause
"""Jobs whose trouble is known: what gbpf says limits them, against what does."""
import collections
import json
import os
import time

import gputime
import stats
from jobs import Trouble, tail

SECONDS = 1.5
SHARE = 0.03        # busy shares may be this far from the truth
STEP = 0.01         # and lengths of steps
NEVER_RESTS = 0.94  # a busy share
AHEAD = 4           # jobs that start while others are looked at

# verdicts that are right with GPU time; rules that must fire, and that must not; period: how many
# of the job's own steps make one that repeats, 0 where that is not asked. Written before the jobs
# were first run; docs/diagnosis.md has that first score, and which labels were wrong.
Label = collections.namedtuple("Label", "verdicts fires silent period",
                               defaults=((), (), 0))
OVERHEAD, GPU, COPY = ("overhead_bound",), ("gpu_bound",), ("copy_bound",)
JOBS = {
    "mm64": Label(OVERHEAD, (), ("starved", "long_sync")),
    "mm4096": Label(GPU, ("long_sync", "heavy_kernel"), ("starved", "graph_candidate")),
    "train": Label(OVERHEAD, ("graph_candidate",), (), 1),
    "graph": Label(("gpu_bound", "sync_bound", "overhead_bound", "mixed"), (),
                   ("short_kernels", "graph_candidate")),
    "queue": Label(GPU, (), ("starved", "overhead_bound", "graph_candidate")),
    "separate": Label(OVERHEAD),
    "fused": Label(("mixed",), ("kernel_gaps",)),
    "pageable": Label(COPY, ("pageable_copy",), ("graph_candidate",)),
    "streams": Label(("overhead_bound", "gpu_bound", "mixed")),
    "items": Label(("overhead_bound", "sync_bound", "mixed"), (), ("starved",)),
    "loader": Label(("starved",), ("starved",), ("graph_candidate",)),
    "compiled": Label(OVERHEAD, (), (), 1),
    "big-graph": Label(GPU, (), ("short_kernels", "graph_candidate", "starved")),
    "pinned": Label(COPY, (), ("pageable_copy", "starved")),
    "prefetch": Label(GPU, (), ("starved", "pageable_copy")),
    "decode": Label(GPU, (), ("overhead_bound", "starved")),
    "conv": Label(GPU, (), ("starved", "graph_candidate"), 1),
    "empty-cache": Label(("overhead_bound", "sync_bound", "mixed"),
                         ("allocation_in_steady_state",)),
    "polls": Label(GPU, ("polling",), ("starved",)),
    "locked": Label(("starved",), ("starved",), ("graph_candidate",)),
    "accumulates": Label(OVERHEAD, ("graph_candidate",), (), 1),
    "alternates": Label(OVERHEAD, ("graph_candidate",), (), 2),
    "big-train": Label(GPU, (), ("starved", "overhead_bound"), 1),
    "half-idle": Label(("starved",), ("starved",), ("overhead_bound",)),
    "sync-each": Label(GPU, ("long_sync",), ("starved",)),
    "spins": Label(("starved",), ("starved",), ("graph_candidate",)),
    "neighbour": Label(GPU, ("shared_gpu",), ("starved",)),
}
TWICE = {"neighbour"}   # two of them at once
DIFFS = (("separate", "fused"), ("train", "compiled"))


def diagnosed(check, recording):
    status, text = check.run(check.setting.gbpf, "diagnose", recording.path, "--format", "json")
    if status != 0:
        raise Trouble(f"gbpf diagnose ended with {status}: {text[-1500:]}")
    return json.loads(text)


def record(check, jobs):
    """A stretch of jobs that step all the while."""
    for job in jobs:
        job.free()
    time.sleep(check.setting.seconds(1))
    recording = gputime.attach(check, *jobs)
    time.sleep(check.setting.seconds(SECONDS))
    recording.stop()
    for job in jobs:
        job.end_free()
    return recording


def lengths_within(job, begin, end):
    return stats.within(stats.steps_read(job.steps_path()), begin, end)


def busy_of(check, job, gpu):
    """
    The share of its time in which the GPU worked, by torch.profiler's records of the same
    program. A GPU that never rests changes its clock: then the steps must be the profiler's own,
    too. It makes the CPU slower, so for all others they must be those that were recorded.
    """
    window = next(w for w in gpu["windows"] if w["pid"] == job.pid)
    lengths = lengths_within(job, window["begin_ns"], window["end_ns"])
    mean = sum(lengths) / len(lengths)
    count = max(20, min(400, int(4e8 / mean)))
    job.ask(f"steps {count}")
    profile = job.ask(f"profile {count}", 60)
    profiled = profile["busy_ns"] / profile["all_ns"]
    return (profiled if profiled > NEVER_RESTS else profile["busy_ns"] / count / mean), mean


def verify_steps(check, mode, label, job, recording):
    """Of the whole recording: their number and their mean length."""
    traced = recording.report("summary")["quality"]["windows"][0]
    lengths = lengths_within(job, traced["begin_ns"], traced["end_ns"])
    mean, expected = sum(lengths) / len(lengths), len(lengths) / label.period
    row = next(r for r in recording.report("step_sum")["rows"] if r["pid"] == job.pid)
    # two more may begin and end outside
    check.expect(f"{mode}: number of steps ± 1, and their length within 1 %",
                 -1 <= row["steps"] - expected <= 3 and
                 abs(row["avg_ns"] / (mean * label.period) - 1) <= STEP,
                 f"told {row['steps']} of {row['avg_ns']}, true {expected:.1f} of "
                 f"{mean * label.period:.0f}")


def verify(check, mode, label, job, process, recording):
    """One process's verdict, rules, shares and steps."""
    rules = [f["rule"] for f in process["findings"]]
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note(mode, {k: process[k] for k in ("verdict", "confidence", "basis", "shares", "step_ns",
                                              "steps")} | {"rules": rules})
    check.expect(f"{mode}: works matched with their calls ≥ 99.99 %",
                 gpu["works"] and gpu["matched"] >= gputime.MATCHED * gpu["works"],
                 {k: gpu[k] for k in ("works", "matched", "launches", "launches_without", "bad",
                                      "dropped")})
    if check.setting.simulated:
        return
    check.expect(f"{mode}: the verdict is {' or '.join(label.verdicts)}",
                 process["verdict"] in label.verdicts and process["basis"] == "cpu+gpu",
                 (process["verdict"], process["basis"], process["shares"]))
    missing, wrong = set(label.fires) - set(rules), set(label.silent) & set(rules)
    check.expect(f"{mode}: rules that must fire do, and that must not do not",
                 not missing and not wrong, f"missing {sorted(missing)}, wrong {sorted(wrong)}")
    if label.period:
        verify_steps(check, mode, label, job, recording)
    busy, mean = busy_of(check, job, gpu)
    told = sum(process["shares"][c] for c in ("gpu", "copy", "comm"))
    check.measure(f"{mode}: the GPU worked, told / true", round(told, 4), "of the time",
                  true=round(busy, 4), step_us=round(mean / 1000, 1))
    if mode not in TWICE:  # the profiler would see one of them alone
        check.expect(f"{mode}: busy share within 3 points", abs(told - busy) <= SHARE,
                     f"told {told:.4f}, true {busy:.4f}")
    print(f"--- {mode}: torch.profiler's table\n"
          f"{tail(os.path.join(job.directory, 'table.txt'), 6000)}", flush=True)


def one(check, mode, jobs):
    for job in jobs:
        job.ready()
    recording = record(check, jobs)
    told = diagnosed(check, recording)
    _, text = check.run(check.setting.gbpf, "diagnose", recording.path)
    print(f"--- {mode}\n{text[:3500]}", flush=True)
    process = next(p for p in told["processes"] if p["pid"] == jobs[0].pid)
    failed = check.failed()
    verify(check, mode, JOBS[mode], jobs[0], process, recording)
    if check.failed() > failed:
        gputime.keep(check, recording, name=mode)
    for job in jobs:
        job.close()
    return recording


def start(check, mode):
    return [check.torch(mode, f"{mode}-{n}") for n in range(2 if mode in TWICE else 1)]


def judged(modes, diffs=()):
    def run(check):
        kept, waiting = {}, {}
        for i, mode in enumerate(modes):
            for ahead in modes[i:i + 1 + AHEAD]:
                if ahead not in waiting:
                    waiting[ahead] = start(check, ahead)
            try:
                kept[mode] = one(check, mode, waiting[mode]).path
            except Trouble as trouble:
                check.expect(f"{mode}: runs", False, trouble)
        for before, after in diffs:
            compare(check, kept, before, after)
    return run


def compare(check, kept, before, after):
    """What changed from one job to another that does the same."""
    if before not in kept or after not in kept:
        return
    status, text = check.run(check.setting.gbpf, "diff", kept[before], kept[after])
    print(f"--- diff {before} {after} ({status})\n{text[:3500]}", flush=True)
    check.expect(f"diff {before} {after} tells", status in (0, 1) and text, text[-500:])


def entries(entry):
    def some(name, about, wanted, diffs=()):
        modes = [mode for mode, label in JOBS.items() if wanted(label.verdicts)]
        return entry(name, lambda check: None, judged(modes, diffs), 250, False, about)

    busy = (GPU, COPY)
    return [
        some("diagnosis-cpu", "verdicts, shares and rules of jobs that the CPU holds up",
             lambda v: len(v) == 1 and v not in busy, DIFFS),
        some("diagnosis-gpu", "the same of jobs that keep the GPU busy", lambda v: v in busy),
        some("diagnosis-between", "the same of jobs that are neither", lambda v: len(v) > 1),
    ]
