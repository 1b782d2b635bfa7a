# SPDX-License-Identifier: BSD-2-Clause
"""--gpu-time beside other profilers, forks and neighbours; what it costs and leaves behind."""
import os
import random
import re
import socket
import statistics
import time

import checks
import gputime
import gputime_windows
import measure
import residue
import stats
from check import Skip
from gputime import (MATCHED, attach, keep, lines_about, log_views, options, verify_join,
                     window_covers)

LEFT_S = 0.25       # a stretch of empty launches
LEFT_PAIRS = 12


def whole(profile, reference):
    return len(profile["sequence"]) * reference["steps"] == \
        len(reference["sequence"]) * profile["steps"]


def made_of_it(check, recording):
    gpu = recording.report("summary")["quality"]["gpu"]
    check.note("what gbpf made of it", [gpu, lines_about(recording)])
    return gpu


def ends_well(check, job):
    check.expect("the job runs on", job.alive())
    job.close()
    check.expect("the job ends as it should", job.process.returncode == 0,
                 job.process.returncode)


def profiler_before(check):
    """torch.profiler was used before gbpf comes."""
    job = check.jobs[0].ready()
    reference = job.ask("profile 20")
    job.free()
    recording = attach(check, job, must=False)
    time.sleep(1)
    job.end_free()
    recording.stop()
    gpu = made_of_it(check, recording)
    check.expect("recorded whole, or refused with a reason",
                 gpu["works"] or gpu["not_recorded"], gpu)
    check.expect("a profile afterwards is whole", whole(job.ask("profile_once 20"), reference))
    ends_well(check, job)


def profiler_on(check):
    """torch.profiler records while gbpf comes and goes."""
    job = check.jobs[0].ready()
    reference = job.ask("profile 20")
    job.order("profile_once 1500")
    time.sleep(1.5)
    recording = attach(check, job, must=False)
    recording.stop()
    profile = job.wait_for("profile_once", 120)
    gpu = made_of_it(check, recording)
    check.expect("refused with a reason", not gpu["works"] and gpu["not_recorded"], gpu)
    check.expect("the profile that was on is whole", whole(profile, reference),
                 len(profile["sequence"]))
    ends_well(check, job)


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
    gpu = made_of_it(check, recording)
    check.measure("kernels in the profile that was begun inside a window",
                  len(inside["sequence"]), "", of=len(reference["sequence"]) * 10,
                  first_profile_of_another_process=first)
    check.expect("they have their calls", gpu["matched"] >= MATCHED * gpu["works"], gpu)
    check.expect("gbpf's records before it are kept", gpu["works"] > 0, gpu)
    check.expect("gbpf says that it withdrew",
                 re.search("profiler|withdr", " ".join(lines_about(recording))),
                 lines_about(recording))
    check.expect("a profile afterwards is whole", whole(job.ask("profile_once 20"), reference))
    ends_well(check, job)


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


def cycles(check, times=50):
    """gbpf comes and goes while a job steps."""
    job = check.jobs[0].ready()
    job.free()
    time.sleep(1)
    wanted, done, lost = (5 if check.setting.simulated else times), 0, []
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


def prepare_left(check):
    residue.prepare_two(check, lambda name, library: check.job(
        check.setting.cuda_command("static"), name, library))


def launches_of(check, job):
    """The median of one stretch of empty launches."""
    job.free()
    begin = time.monotonic_ns()
    time.sleep(check.setting.seconds(LEFT_S))
    end = time.monotonic_ns()
    job.end_free()
    return statistics.median(stats.within(stats.steps_read(job.steps_path()), begin, end))


def left_pairs(check, jobs, rng):
    """Ratios b / a: one of them is never traced, and what the machine does to both cancels out."""
    ratios = []
    for _ in range(check.setting.steps(LEFT_PAIRS)):
        found = {"a": [], "b": []}
        for name in residue.order_of(rng):
            found[name].append(launches_of(check, jobs[name]))
        ratios.append(statistics.fmean(found["b"]) / statistics.fmean(found["a"]))
    return ratios


def left_on_launches(check):
    """A tight loop of empty launches: at first, after three traces, after three --gpu-time."""
    jobs = {name: job.ready(60) for name, job in zip("ab", check.jobs)}
    rng = random.Random(time.time_ns())
    left_pairs(check, jobs, rng)
    first = left_pairs(check, jobs, rng)
    jobs["b"].free()
    for _ in range(3):
        check.record("-p", str(jobs["b"].pid), "-d", "0", "--quiet").stop()
    jobs["b"].end_free()
    traced = left_pairs(check, jobs, rng)
    jobs["b"].free()
    for _ in range(3):
        attach(check, jobs["b"], settle=0.5).stop()
    jobs["b"].end_free()
    timed = left_pairs(check, jobs, rng)
    for what, ratio in (("after traces / before", stats.ratio_of_groups(traced, first)),
                        ("after --gpu-time / before", stats.ratio_of_groups(timed, first))):
        check.measure(f"an empty launch {what}, against a job never traced",
                      round(ratio["ratio"], 4), "×", low=round(ratio["low"], 4),
                      high=round(ratio["high"], 4), n=ratio["n"])
        if not check.setting.simulated:
            check.expect(f"an empty launch is no slower {what} (3 %)", ratio["low"] <= 1.03,
                         ratio)
    check.expect("both jobs run on", all(j.alive() for j in jobs.values()))


def why_left(check):
    """What of a trace makes launches dearer afterwards, against a job never traced."""
    if check.setting.simulated:
        raise Skip("the stand-in's code fits into a cache")
    jobs = {name: job.ready(60) for name, job in zip("ab", check.jobs)}
    rng, b = random.Random(time.time_ns()), jobs["b"]

    def trace(*arguments):
        b.free()
        check.record("-p", str(b.pid), "-d", "0", "--quiet", *arguments).stop()
        b.end_free()

    left_pairs(check, jobs, rng)
    base = left_pairs(check, jobs, rng)
    for what, do in (("nothing", lambda: None),
                     ("a trace of one function that is not called",
                      lambda: trace("--api", "cuMemAllocPitch_v2")),
                     ("a trace", trace), ("and 4 s", lambda: time.sleep(4)),
                     ("and its code from the file again", lambda: b.ask("refault")),
                     ("another trace", trace)):
        do()
        ratio = stats.ratio_of_groups(left_pairs(check, jobs, rng), base)
        check.measure(f"an empty launch after {what}", round(ratio["ratio"], 4), "×",
                      low=round(ratio["low"], 4), high=round(ratio["high"], 4), n=ratio["n"])
        check.note(f"after {what}: code changed, KiB", residue.changed(b))
    check.expect("both jobs run on", all(j.alive() for j in jobs.values()))


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
        pair("gpu-train", gputime.torch(200, kept=True, exported=True),
             "--gpu-time: a training step", "train"),
        pair("gpu-mm64", gputime.torch(500, kept=True), "--gpu-time: 64² matmul", "mm64"),
        pair("gpu-mm4096", gputime.torch(100, kept=True), "--gpu-time: 4096² matmul", "mm4096"),
        pair("gpu-graph", gputime.torch(300, kept=True, graph=True), "--gpu-time: a graph",
             "graph"),
        pair("gpu-triton", gputime.torch(300), "--gpu-time: Triton", "triton"),
        entry("gpu-cuda", checks.prepare_cuda("static", threads=8), gputime.cuda(), 90, False,
              "--gpu-time: CUDA C, 8 threads, each its own stream"),
        entry("gpu-command", lambda check: None, gputime.command, 90, False,
              "--gpu-time: gbpf trace -- COMMAND"),
        one("gpu-two", two, "--gpu-time: two processes on one GPU", "mm64", 2),
        one("gpu-fork", fork, "--gpu-time: a fork inside the window"),
        one("gpu-profiler-before", profiler_before, "torch.profiler was used before"),
        one("gpu-profiler-on", profiler_on, "torch.profiler is on already"),
        one("gpu-profiler-inside", profiler_inside, "torch.profiler starts in a window", jobs=2),
        entry("gpu-ranks", prepare_ranks, ranks, 150, False,
              "--gpu-time: two ranks with NCCL, a GPU each"),
        *gputime_windows.entries(one),
        one("gpu-cycles", cycles, "--gpu-time comes and goes 50 times", limit=200),
        one("gpu-cycles-graph", lambda check: cycles(check, 15),
            "--gpu-time comes and goes 15 times while a graph is launched", "graph"),
        entry("gpu-cost", one_train, cost, 240, True,
              "slowdown of the training step with --gpu-time"),
        entry("gpu-left", prepare_left, left_on_launches, 120, True,
              "empty launches after --gpu-time / before"),
        entry("left-why", prepare_left, why_left, 120, True,
              "empty launches after parts of a trace / before"),
        entry("gpu-residue", residue.prepare, left_behind, 180, True,
              "training step after --gpu-time / before, against a job never traced"),
    ]
