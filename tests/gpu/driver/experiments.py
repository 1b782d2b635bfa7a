# SPDX-License-Identifier: BSD-2-Clause
"""Reference experiments that are no plain verdict: first steps, clocks, a profiler's own cost."""
import os
import time

import gputime
from check import Skip
from jobs import tail

CLOCK_S = 60
RESERVE_S = 40


def show(check, recording, view, *more):
    _, text = check.run(check.setting.gbpf, "report", recording.path, "--view", view, *more)
    print(f"--- {view} {' '.join(more)}\n{text[:4500]}", flush=True)


def show_diagnosis(check, recording):
    _, text = check.run(check.setting.gbpf, "diagnose", recording.path)
    print(f"--- diagnose\n{text[:5000]}", flush=True)


def from_the_start(check, mode, *arguments):
    """A job recorded from its first call on: (job, recording)."""
    job = check.job(None, mode)
    recording = check.start(*arguments, env=check.setting.env(), command=[
        *check.setting.torch_command(mode), "--dir", job.directory])
    job.ready()
    return job, recording


def first_step(check):
    """The first step against the rest; occupancy asked for before products."""
    job, recording = from_the_start(check, "train", *gputime.options(check))
    job.ask(f"steps {check.setting.steps(300)}")
    profile = job.about
    job.close()
    recording.process.wait(60)
    recording.status = recording.process.returncode
    check.expect("exit status is the command's", recording.status == 0, recording.status)
    check.note("first step, warm step by the job's clock",
               [profile.get("first_step_ns"), profile.get("warm_step_ns")])
    for view in ("step_sum", "cold_sum"):
        show(check, recording, view, "--top", "12")
    show_diagnosis(check, recording)
    gpu = recording.report("summary")["quality"]["gpu"]
    check.expect("works of the whole run matched ≥ 99.99 %",
                 gpu["works"] and gpu["matched"] >= gputime.MATCHED * gpu["works"],
                 {k: gpu[k] for k in ("works", "matched", "launches", "launches_without", "bad",
                                      "dropped")})


def occupancy(check):
    job, recording = from_the_start(check, "mm4096", "--api", "all")
    job.ask(f"steps {check.setting.steps(100)}")
    job.close()
    recording.process.wait(60)
    recording.status = recording.process.returncode
    rows = recording.report("api_sum")["rows"]
    check.note("occupancy asked for", [
        (r["name"], r["calls"]) for r in rows if "Occupancy" in r["name"]])
    show_diagnosis(check, recording)


def clocks(check):
    """One kernel and shape over most of a minute, beside NVML's clocks."""
    job = check.jobs[0].ready()
    seconds = min(CLOCK_S, check.setting.left() - RESERVE_S)
    if seconds < 5:
        raise Skip("no time left")
    job.free()
    recording = gputime.attach(check, job)
    time.sleep(check.setting.seconds(seconds))
    recording.stop()
    job.end_free()
    for view in ("variation_sum", "gpu_sum"):
        show(check, recording, view)
    show_diagnosis(check, recording)
    profile = job.ask("profile 50", 60)
    check.note("torch.profiler: kernels", profile["kernels"])
    print(tail(os.path.join(job.directory, "table.txt"), 6000), flush=True)


def own_cost(check):
    """A step alone, and under each profiler."""
    job = check.jobs[0].ready()
    count = check.setting.steps(500)
    found = {}

    def steps(label):
        found.setdefault(label, []).append(job.ask(f"steps {count}")["step_p50_ns"])

    for _ in range(3):
        steps("alone")
        recording = check.record("-p", str(job.pid), "-d", "0", "--quiet", settle=0.5)
        steps("gbpf trace")
        recording.stop()
    show_diagnosis(check, recording)
    for _ in range(3):
        job.free()
        recording = gputime.attach(check, job)
        job.end_free()
        steps("gbpf trace --gpu-time")
        recording.stop()
        steps("alone, after --gpu-time")
    show_diagnosis(check, recording)
    for _ in range(3):
        found.setdefault("torch.profiler", []).append(
            job.ask(f"profile_once {count}", 90)["step_p50_ns"])
        steps("alone, after torch.profiler")
    for label, lengths in found.items():
        check.measure(f"training step, {label}", lengths, "ns")


def entries(entry):
    def torch(mode):
        def prepare(check):
            check.jobs = [check.torch(mode)]
        return prepare

    return [
        entry("first-step", lambda check: None, first_step, 90, False, "first step and the rest"),
        entry("occupancy", lambda check: None, occupancy, 90, False,
              "occupancy is asked for before products"),
        entry("own-cost", torch("train"), own_cost, 120, True,
              "a step alone, and under each profiler"),
        entry("clocks", torch("mm4096"), clocks, 120, False, "one kernel over most of a minute"),
    ]
