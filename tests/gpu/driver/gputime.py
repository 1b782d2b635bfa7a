# SPDX-License-Identifier: BSD-2-Clause
"""gbpf trace --gpu-time on real jobs: what it says of the GPU's own time, what it does to them."""
import collections
import os
import re
import shutil
import socket
import statistics
import time

import checks
import compare
import kineto
import measure
import residue
import stats
from check import Skip
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


def verify_times(check, kernels, profile):
    """Median times of each kernel, against torch.profiler's, whose clock ticks in 32 ns."""
    ours = by_kernel((r["name"], r["duration_ns"]) for r in kernels)
    long_names = by_kernel((r["mangled"], r["duration_ns"]) for r in kernels)
    rows = []
    for name, theirs in by_kernel(profile["sequence"]).items():
        a = statistics.median(ours.get(name) or long_names.get(name) or [0])
        b = statistics.median(theirs)
        rows.append((round(a / b - 1, 4), int(a), int(b), len(theirs), name[:60]))
    total = sum(r[1] * r[3] for r in rows) / sum(r[2] * r[3] for r in rows) - 1
    check.measure("median kernel times / torch.profiler's, all together", round(1 + total, 4), "×",
                  n=len(rows))
    check.note("kernel times: off, gbpf ns, torch.profiler ns", sorted(rows, reverse=True)[:12])
    if not check.setting.simulated:
        check.expect("median kernel times within 3 % of torch.profiler's, or two ticks",
                     all(abs(r[0]) <= MEDIAN or abs(r[1] - r[2]) <= TICKS_NS for r in rows),
                     max(rows, key=lambda r: abs(r[0])))


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


def keep(check, recording, profile_of=None):
    """For a look at both files afterwards."""
    if check.setting.simulated:
        return
    shutil.copyfile(recording.path, os.path.join(check.setting.out, f"{check.name}-kept.gbpf"))
    if profile_of:
        target = os.path.join(check.setting.out, f"{check.name}-profile.json")
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
            verify_times(check, kernels, profile)
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
        if not check.setting.simulated:
            after = traced.ask("profile 5", 60)
            check.expect("torch.profiler is whole afterwards, in the job that was recorded",
                         len(after["sequence"]) * profile["steps"] ==
                         len(profile["sequence"]) * 5, len(after["sequence"]))
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
    verify_join(check, recording, pids)
    log_views(check, recording)


# ---- other profilers, forks, neighbours ----

def whole(profile, reference):
    return len(profile["sequence"]) * reference["steps"] == \
        len(reference["sequence"]) * profile["steps"]


def profiler_before(check):
    """torch.profiler was used before gbpf comes."""
    job = check.jobs[0].ready()
    reference = job.ask("profile 20")
    job.free()
    recording = attach(check, job, must=False)
    time.sleep(1)
    job.end_free()
    recording.stop()
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note("what gbpf made of it", [gpu, lines_about(recording)])
    check.expect("recorded whole, or refused with a reason",
                 gpu["works"] or gpu["not_recorded"], gpu)
    check.expect("a profile afterwards is whole", whole(job.ask("profile_once 20"), reference))
    check.expect("the job runs on", job.alive())
    job.close()
    check.expect("the job ends as it should", job.process.returncode == 0,
                 job.process.returncode)


def profiler_on(check):
    """torch.profiler records while gbpf comes and goes."""
    job = check.jobs[0].ready()
    reference = job.ask("profile 20")
    job.order("profile_once 1500")
    time.sleep(1.5)
    recording = attach(check, job, must=False)
    recording.stop()
    profile = job.wait_for("profile_once", 120)
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note("what gbpf made of it", [gpu, lines_about(recording)])
    check.expect("refused with a reason", not gpu["works"] and gpu["not_recorded"], gpu)
    check.expect("the profile that was on is whole", whole(profile, reference),
                 len(profile["sequence"]))
    check.expect("the job runs on", job.alive())
    job.close()
    check.expect("the job ends as it should", job.process.returncode == 0,
                 job.process.returncode)


def profiler_inside(check):
    """The process's first torch.profiler starts in a window of gbpf's."""
    job, other = (j.ready() for j in check.jobs)
    other.ask("steps 300")
    first = len(other.ask("profile_once 200", 60)["sequence"])
    reference = other.ask("profile 20")
    job.free()
    recording = attach(check, job)
    job.end_free()
    inside = job.ask("profile_once 200", 60)
    job.ask("steps 50")
    recording.stop()
    keep(check, recording)
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note("what gbpf made of it", [gpu, lines_about(recording)])
    check.measure("kernels in the profile that was begun inside a window",
                  len(inside["sequence"]), "", of=len(reference["sequence"]) * 10,
                  first_profile_of_another_process=first)
    check.expect("they have their calls", gpu["matched"] >= MATCHED * gpu["works"], gpu)
    check.expect("gbpf's records before it are kept", gpu["works"] > 0, gpu)
    check.expect("gbpf says that it withdrew",
                 re.search("profiler|withdr", " ".join(lines_about(recording))),
                 lines_about(recording))
    check.expect("a profile afterwards is whole", whole(job.ask("profile_once 20"), reference))
    check.expect("the job runs on", job.alive())
    job.close()
    check.expect("the job ends as it should", job.process.returncode == 0,
                 job.process.returncode)


def fork(check):
    """The job forks in a window; the child is left alone, the parent goes on."""
    job = check.jobs[0].ready()
    job.free()
    recording = attach(check, job)
    job.end_free()
    status = job.ask("fork")["status"]
    answer = job.ask(f"steps {check.setting.steps(100)}")
    time.sleep(0.4)
    recording.stop()
    gpu = verify_join(check, recording, [job.pid])
    check.expect("the child ended as it should", status == 11, status)
    check.expect("the window holds the steps after the fork",
                 window_covers(gpu, job.pid, answer), gpu["windows"])
    check.expect("the job runs on", job.alive())


def two(check):
    """Two processes on one GPU, at once."""
    jobs = [j.ready() for j in check.jobs]
    for job in jobs:
        job.free()
    recording = attach(check, *jobs)
    for job in jobs:
        job.end_free()
    count = check.setting.steps(300)
    for job in jobs:
        job.order(f"steps {count}")
    answers = [job.wait_for("steps", 90) for job in jobs]
    time.sleep(0.4)
    recording.stop()
    try:
        gpu = verify_join(check, recording, [j.pid for j in jobs])
        for job, answer in zip(jobs, answers):
            check.expect("the window holds the steps", window_covers(gpu, job.pid, answer))
    finally:
        log_views(check, recording)
    check.expect("both run on", all(j.alive() for j in jobs))


def prepare_ranks(check):
    if not check.setting.simulated:
        status, text = check.run("nvidia-smi", "-L")
        if status != 0 or text.count("GPU ") < 2:
            raise Skip("one GPU only")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    for rank in "01":
        check.jobs.append(check.torch("ranked", f"rank{rank}", env={
            "RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "NCCL_SOCKET_IFNAME": "lo", "NCCL_NVLS_ENABLE": "0"}))


def ranks(check):
    """Two ranks of one job, a GPU each, whose gradients NCCL sums."""
    jobs = [j.ready() for j in check.jobs]
    count = 100 if check.setting.simulated else 3000
    for job in jobs:
        job.order(f"steps {count}")
    time.sleep(0.3)
    recording = attach(check, *jobs, must=not check.setting.simulated)
    time.sleep(check.setting.seconds(1))
    recording.stop()
    answers = [job.wait_for("steps", 120) for job in jobs]
    check.note("step", [a["step_p50_ns"] for a in answers])
    keep(check, recording)
    try:
        if not check.setting.simulated:
            verify_join(check, recording, [j.pid for j in jobs])
            rows = recording.report("kern_sum")["rows"]
            check.expect("NCCL's kernels are told apart from others, on both ranks",
                         len({r["pid"] for r in rows if r["class"] != "compute"}) == 2,
                         [(r["pid"], r["class"], r["kernel"][:60]) for r in rows[:4]])
            check.expect("each rank's work is on its own GPU",
                         len({r["device"] for r in recording.report("stream_sum")["rows"]}) == 2)
    finally:
        log_views(check, recording)
    check.expect("both run on", all(j.alive() for j in jobs))


def cycles(check):
    """gbpf comes and goes while a job steps."""
    job = check.jobs[0].ready()
    job.free()
    time.sleep(1)
    wanted, done, lost = (5 if check.setting.simulated else 50), 0, []
    until = time.monotonic() + min(110, check.setting.left() - 40)
    while done < wanted and time.monotonic() < until and job.alive():
        recording = attach(check, job, must=not done, settle=0.4)
        recording.stop()
        gpu = recording.report("summary")["quality"]["gpu"]
        if not gpu["works"] or gpu["matched"] < MATCHED * gpu["works"] or gpu["bad"]:
            lost.append((done, gpu["works"], gpu["matched"], gpu["bad"], gpu["not_recorded"],
                         lines_about(recording)))
        os.unlink(recording.path)
        done += 1
    job.end_free()
    check.measure("attached and detached", done, "times", longest_step_ns=max(
        length for _, length in stats.steps_read(job.steps_path())))
    check.expect("all of the cycles", done == wanted, done)
    check.expect("each recorded the GPU", not lost, lost[:4])
    answer = job.ask("steps 50")
    check.expect("the job works on", answer["syncs"] > 0)


def cost(check):
    """A training step with probes and GPU records, against one without either."""
    job = check.jobs[0].ready()
    measure.measured(check, job, 2, check.setting.budget(80),
                     "a training step with --gpu-time", arguments=options(check), settle=1.0)


def stretch(check):
    begin = time.monotonic_ns()
    time.sleep(check.setting.seconds(3))
    return begin, time.monotonic_ns()


def left_on_launches(check):
    """A tight loop of empty launches: at first, after three traces, after three --gpu-time."""
    job = check.jobs[0].ready(60)
    job.free()
    time.sleep(check.setting.seconds(1))
    stretches = [stretch(check)]
    for _ in range(3):
        check.record("-p", str(job.pid), "-d", "0", "--quiet").stop()
    time.sleep(2)
    stretches.append(stretch(check))
    for _ in range(3):
        attach(check, job, settle=0.5).stop()
    time.sleep(1)
    stretches.append(stretch(check))
    job.end_free()
    steps = stats.steps_read(job.steps_path())
    first, traced, timed = (stats.within(steps, *s)[:2000] for s in stretches)
    for what, ratio in (("after traces / before", stats.ratio_of_groups(traced, first)),
                        ("after --gpu-time / after traces", stats.ratio_of_groups(timed, traced))):
        check.measure(f"an empty launch {what}", round(ratio["ratio"], 4), "×",
                      low=round(ratio["low"], 4), high=round(ratio["high"], 4), n=ratio["n"])
        if not check.setting.simulated:
            check.expect(f"an empty launch is no slower {what} (3 %)", ratio["ratio"] <= 1.03,
                         ratio)
    check.expect("the job runs on", job.alive())


def one_cuda(check):
    check.jobs = [check.cuda("static")]


def one_train(check):
    check.jobs = [check.torch("train")]


def left_behind(check):
    residue.run(check, arguments=options(check), seconds=1.0)


def entries(entry):
    """The checks, by plan.Entry."""
    def one(name, run, about, mode="train", jobs=1, limit=150):
        def prepare(check):
            check.jobs = [check.torch(mode, f"job{n}") for n in range(jobs)]
        return entry(name, prepare, run, limit, False, about)

    def pair(name, run, about, mode):
        return entry(name, checks.prepare_torch(mode), run, 150, False, about)

    return [
        pair("gpu-train", torch(200, kept=True, exported=True),
             "--gpu-time: a training step", "train"),
        pair("gpu-mm64", torch(500, kept=True), "--gpu-time: 64² matmul", "mm64"),
        pair("gpu-mm4096", torch(100, kept=True), "--gpu-time: 4096² matmul", "mm4096"),
        pair("gpu-graph", torch(300, kept=True, graph=True), "--gpu-time: a graph", "graph"),
        pair("gpu-triton", torch(300), "--gpu-time: Triton", "triton"),
        entry("gpu-cuda", checks.prepare_cuda("static", threads=8), cuda(), 90, False,
              "--gpu-time: CUDA C, 8 threads, each its own stream"),
        entry("gpu-command", lambda check: None, command, 90, False,
              "--gpu-time: gbpf trace -- COMMAND"),
        one("gpu-two", two, "--gpu-time: two processes on one GPU", "mm64", 2),
        one("gpu-fork", fork, "--gpu-time: a fork inside the window"),
        one("gpu-profiler-before", profiler_before, "torch.profiler was used before"),
        one("gpu-profiler-on", profiler_on, "torch.profiler is on already"),
        one("gpu-profiler-inside", profiler_inside, "torch.profiler starts in a window", jobs=2),
        entry("gpu-ranks", prepare_ranks, ranks, 150, False,
              "--gpu-time: two ranks with NCCL, a GPU each"),
        one("gpu-cycles", cycles, "--gpu-time comes and goes 50 times", limit=200),
        entry("gpu-cost", one_train, cost, 240, True,
              "slowdown of the training step with --gpu-time"),
        entry("gpu-left", one_cuda, left_on_launches, 60, True,
              "empty launches after --gpu-time / before"),
        entry("gpu-residue", residue.prepare, left_behind, 180, True,
              "training step after --gpu-time / before, against a job never traced"),
    ]
