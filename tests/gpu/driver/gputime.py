# SPDX-License-Identifier: BSD-2-Clause
"""gbpf trace --gpu-time on real jobs: what it says of the GPU's own time, what it does to them."""
import collections
import os
import re
import shutil
import statistics
import time

import compare
import kineto
import stats
from jobs import Trouble

LIBRARY = "libgbpf-cupti"
SETTLE_S = 0.8          # from the library's being there to records of everything
CLOCK_NS = 1000         # the most that a time may be off
STOP_NS = 2_000_000     # the longest stop of a thread
HICCUP_NS = 25_000_000  # the longest step while records are switched on
MATCHED = 0.9999
MEDIAN = 0.03           # kernel times against torch.profiler's
TICKS_NS = 64           # two ticks of the GPU's clock


def options(check):
    s = check.setting
    return ["--gpu-time"] + (["--cupti", os.path.join(s.simulated, "libcupti.so.13")]
                             if s.simulated else [])


def carries_library(job):
    with open(f"/proc/{job.pid}/maps", encoding="utf-8", errors="replace") as f:
        return LIBRARY in f.read()


def attach(check, *jobs, must=True, settle=SETTLE_S):
    """Records jobs that step freely; returns when the GPU's records are on, too."""
    pids = ",".join(str(j.pid) for j in jobs)
    recording = check.record("-p", pids, "-d", "0", *options(check))
    until = time.monotonic() + 12
    while must and not all(carries_library(j) for j in jobs) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(settle)
    return recording


def said(recording):
    with open(recording.said, encoding="utf-8", errors="replace") as f:
        return f.read()


def stopped_ns(text):
    """By the summary's line, which leaves it out where nobody was stopped."""
    found = re.search(r"stopped ([\d.,]+) (ns|µs|us|ms|s)\b", text)
    unit = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
    return float(found[1].replace(",", "")) * unit[found[2]] if found else None


def lines_about(recording):
    return [l for l in said(recording).splitlines()
            if re.search(r"GPU time|Sidecar|warning|CUPTI|profiler|inject", l, re.IGNORECASE)]


def verify_join(check, recording, pids):
    """Everything recorded has its call, and nothing was lost; the quality."""
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note("gpu quality", gpu)
    check.note("gbpf said", lines_about(recording))
    told = {w["pid"] for w in gpu["windows"]}
    if not check.expect("the GPU's time was recorded", set(pids) <= told and gpu["works"],
                        gpu["not_recorded"] or gpu["reason"] or sorted(told)):
        raise Trouble(f"no GPU time: {said(recording)[-1500:]}")
    check.expect("works matched with their calls ≥ 99.99 %",
                 gpu["matched"] >= MATCHED * gpu["works"], f"{gpu['matched']} of {gpu['works']}")
    check.expect("launches matched with their work ≥ 99.99 %",
                 gpu["launches_without"] <= (1 - MATCHED) * gpu["launches"],
                 f"{gpu['launches_without']} of {gpu['launches']} without")
    check.expect("no work before its call, none lost or senseless",
                 not (gpu["before_entry"] or gpu["contradicted"] or gpu["dropped"] or gpu["bad"]),
                 {k: gpu[k] for k in ("before_entry", "contradicted", "dropped", "bad")})
    check.measure("clock bound", gpu["clock_error_ns"], "ns")
    check.expect("clock bound ≤ 1 µs", 0 <= gpu["clock_error_ns"] <= CLOCK_NS or
                 check.setting.simulated, gpu["clock_error_ns"])
    return gpu


def works_between(recording, pid, begin, end):
    """Rows of gpu_trace, with both names, that began between two instants."""
    report = recording.report("gpu_trace")
    mangled = recording.report("gpu_trace", "--names", "mangled")["rows"]
    zero = report["quality"]["windows"][0]["begin_ns"]
    found = []
    for row, other in zip(report["rows"], mangled):
        if row["pid"] == pid and begin <= zero + row["start_ns"] < end:
            row["mangled"] = other["name"]
            found.append(row)
    return sorted(found, key=lambda r: r["start_ns"])


def kernels_of(rows):
    return [r for r in rows if r["grid"] is not None]


def same_kernel(row, name):
    return compare.plain(name) in (compare.plain(row["name"]), compare.plain(row["mangled"]))


def verify_sequence(check, kernels, profile, steps):
    """The same kernels in the same order as torch.profiler saw them in another run."""
    each, rest = divmod(len(profile["sequence"]), profile["steps"])
    if rest:
        raise Trouble(f"the profiler saw {len(profile['sequence'])} kernels "
                      f"in {profile['steps']} steps")
    check.expect("number of kernels as torch.profiler says", len(kernels) == each * steps,
                 f"{len(kernels)}, {each} a step in {steps} steps")
    expected = [name for name, _ in profile["sequence"][:each]]
    wrong = [(i, r["name"][:80], expected[i % each][:80]) for i, r in enumerate(kernels)
             if not same_kernel(r, expected[i % each])]
    check.expect("same kernels in the same order", not wrong, wrong[:3] or f"{each} a step")


def by_kernel(entries):
    """(name, ns) → {name: [ns]}."""
    found = collections.defaultdict(list)
    for name, ns in entries:
        found[compare.plain(name)].append(ns)
    return found


def verify_times(check, kernels, profile, again):
    """
    Median times of each kernel against torch.profiler's in another process, and again: in this
    one afterwards. Where these two differ, what lies between them is right.
    """
    ours = by_kernel((r["name"], r["duration_ns"]) for r in kernels)
    long_names = by_kernel((r["mangled"], r["duration_ns"]) for r in kernels)
    rows, second = [], by_kernel(again["sequence"])
    for name, theirs in by_kernel(profile["sequence"]).items():
        a = statistics.median(ours.get(name) or long_names.get(name) or [0])
        b = statistics.median(theirs)
        c = statistics.median(second.get(name) or theirs)
        rows.append((round(a / b - 1, 4), int(a), int(b), len(theirs), int(c), name[:60]))
    total = sum(r[1] * r[3] for r in rows) / sum(r[2] * r[3] for r in rows) - 1
    check.measure("median kernel times / torch.profiler's, all together", round(1 + total, 4), "×",
                  n=len(rows))
    check.note("kernel times: off, gbpf ns, torch.profiler ns, n, again ns",
               sorted(rows, reverse=True)[:14])
    if not check.setting.simulated:
        def apart(row):
            low, high = min(row[2], row[4]), max(row[2], row[4])
            return max(low - row[1], row[1] - high, 0)

        check.expect("median kernel times within 3 % of torch.profiler's, or two ticks",
                     all(apart(r) <= max(MEDIAN * r[2], TICKS_NS) for r in rows),
                     max(rows, key=apart))


def verify_stop(check, recording):
    ns = stopped_ns(said(recording))
    check.measure("longest stop by injection", ns, "ns")
    if not check.setting.simulated:
        check.expect("stopped ≤ 2 ms", ns is not None and ns <= STOP_NS, ns)


def hiccup(check, job, begin, end):
    """The longest step while records were switched on."""
    steps = stats.steps_read(job.steps_path())
    during, usual = stats.within(steps, begin, end), [length for _, length in steps]
    if not during:
        return
    check.measure("step, median", statistics.median(usual), "ns", n=len(usual))
    check.measure("longest step while GPU time was switched on", max(during), "ns", n=len(during))
    check.note("longest ones", sorted(during)[-6:])
    if not check.setting.simulated:
        check.expect("one hiccup ≤ 25 ms when enabling",
                     max(during) - statistics.median(usual) <= HICCUP_NS, max(during))


def keep(check, recording, profile_of=None, name=None):
    """For a look at both files afterwards."""
    if check.setting.simulated:
        return
    name = f"{check.name}-{name}" if name else check.name
    shutil.copyfile(recording.path, os.path.join(check.setting.out, f"{name}-kept.gbpf"))
    if profile_of:
        target = os.path.join(check.setting.out, f"{name}-profile.json")
        shutil.copyfile(os.path.join(profile_of.directory, "profile.json"), target)
        check.run("gzip", "-f", target)


def log_views(check, recording):
    for view in ("kern_sum", "kern_exec_sum", "api_gpu_sum", "gap_sum", "stream_sum",
                 "gpu_mem_sum"):
        _, text = check.run(check.setting.gbpf, "report", recording.path, "--view", view,
                            "--top", "8")
        print(f"--- {view}\n{text[:5000]}", flush=True)
    _, text = check.run(check.setting.gbpf, "diagnose", recording.path)
    print(f"--- diagnose\n{text[:6000]}\n--- said\n{said(recording)[-3000:]}", flush=True)


def recorded_steps(check, job, count):
    """Attaches while the job steps freely, then a number of steps; (recording, answer)."""
    job.free()
    time.sleep(1.0)
    begin = time.monotonic_ns()
    recording = attach(check, job)
    end = time.monotonic_ns()
    job.end_free()
    answer = job.ask(f"steps {count}")
    time.sleep(0.4)
    recording.stop()
    hiccup(check, job, begin, end)
    return recording, answer


def window_covers(gpu, pid, answer):
    return any(w["pid"] == pid and w["begin_ns"] <= answer["begin_ns"]
               and answer["end_ns"] <= w["end_ns"] for w in gpu["windows"])


def torch(steps, kept=False, graph=False, exported=False):
    """Against torch.profiler in another process of the same program."""
    def run(check):
        plain, traced = check.jobs
        count = check.setting.steps(steps)
        plain.ready()
        plain.ask(f"steps {count}")
        output = plain.ask("checksum")["checksum"]
        profile = plain.ask("profile 50")
        traced.ready()
        recording, answer = recorded_steps(check, traced, count)
        try:
            gpu = verify_join(check, recording, [traced.pid])
            check.expect("the window holds the steps", window_covers(gpu, traced.pid, answer))
            rows = works_between(recording, traced.pid, answer["begin_ns"], answer["end_ns"])
            kernels = kernels_of(rows)
            verify_sequence(check, kernels, profile, count)
            again = profile if check.setting.simulated else traced.ask("profile 50", 60)
            verify_times(check, kernels, profile, again)
            check.expect("torch.profiler is whole afterwards, in the job that was recorded",
                         len(again["sequence"]) == len(profile["sequence"]),
                         len(again["sequence"]))
            if graph:
                check.expect("each kernel of a graph tells its node",
                             all(r["graph_node"] is not None for r in kernels))
            verify_stop(check, recording)
            if exported and not check.setting.simulated:
                kineto.verify(check, recording, os.path.join(plain.directory, "profile.json"),
                              profile["steps"])
        finally:
            log_views(check, recording)
            if kept:
                keep(check, recording, plain)
        plain.close()
        check.note("output", [traced.ask("checksum")["checksum"], output])
        check.expect("the job runs on", traced.alive())
    return run


def cuda(steps=300):
    def run(check):
        _, traced = check.jobs
        traced.ready(60)
        recording, answer = recorded_steps(check, traced, check.setting.steps(steps))
        try:
            gpu = verify_join(check, recording, [traced.pid])
            check.expect("the window holds the steps", window_covers(gpu, traced.pid, answer))
            rows = works_between(recording, traced.pid, answer["begin_ns"], answer["end_ns"])
            kernels = kernels_of(rows)
            wanted = sum(e["calls"] for e in answer["expected"])
            check.expect("one kernel for each launch that the job counted",
                         len(kernels) == wanted, f"{wanted} launched, {len(kernels)} recorded")
            seen = collections.Counter(
                (compare.plain(r["name"]), tuple(r["grid"]), tuple(r["block"])) for r in kernels)
            expected = collections.Counter()
            for e in answer["expected"]:
                key = (compare.plain(e["kernel"]), tuple(e["grid"]), tuple(e["block"]))
                expected[key] += e["calls"]
            check.expect("kernels, grids and blocks as launched", seen == expected,
                         list((seen - expected).items())[:3] + list((expected - seen).items())[:3])
            verify_stop(check, recording)
        finally:
            log_views(check, recording)
            keep(check, recording)
        check.expect("the job runs on", traced.alive())
    return run


def command(check):
    """A command from its first call on."""
    s = check.setting
    line = s.cuda_command("static", 2) + ["--auto", str(s.steps(100))]
    recording = check.start(*options(check), env=s.env(), command=line)
    recording.process.wait(60)
    recording.status = recording.process.returncode
    check.expect("exit status is the command's", recording.status == 7, said(recording)[-1500:])
    pids = {r["pid"] for r in recording.report("api_sum")["rows"]}
    keep(check, recording)
    verify_join(check, recording, pids)
    log_views(check, recording)
