# SPDX-License-Identifier: BSD-2-Clause
"""gbpf trace --gpu-time in the windows of a schedule, on real jobs that step all the time."""
import gputime
from check import Skip

REPEAT = 4


def follow(check, *schedule):
    """Records the job until its last window has ended; that recording."""
    job, = check.jobs
    job.ready()
    job.free()
    recording = check.start("-p", str(job.pid), *gputime.options(check), *schedule)
    recording.process.wait(100)
    recording.status = recording.process.returncode
    job.end_free()
    check.expect("gbpf ended by itself", recording.status == 0, gputime.said(recording)[-1500:])
    return recording


def windows(*schedule, steps=False):
    """Each window has GPU time from its first moment to its last, and every work its call."""
    def run(check):
        if steps and check.setting.simulated:
            raise Skip("the simulated job has no backward pass that marks steps")
        recording = follow(check, *schedule, "--repeat", str(REPEAT))
        job, = check.jobs
        gpu = gputime.verify_join(check, recording, [job.pid])
        told = [(w["begin_ns"], w["end_ns"])
                for w in recording.report("summary")["quality"]["windows"]]
        check.expect("as many windows as were asked for", len(told) == REPEAT, told)
        check.expect("each is covered to its ends, and all of it is in",
                     [(w["begin_ns"], w["end_ns"]) for w in gpu["windows"]] == told
                     and all(w["whole"] for w in gpu["windows"]), gpu["windows"])
        check.note("works launched before their windows", gpu["earlier"])
        check.note("longest and shortest window", [max(e - b for b, e in told),
                                                   min(e - b for b, e in told)])
        if steps:
            found = recording.report("step_sum")["rows"]
            check.note("steps", found[:3])
            check.expect("steps were found", bool(found))
        gputime.verify_stop(check, recording)
        gputime.log_views(check, recording)
        gputime.keep(check, recording)
        check.expect("the job runs on", job.alive())
    return run


def entries(one):
    """The checks, by gputime_others.entries()' own maker of them."""
    seconds = ("--wait", "500ms", "--warmup", "700ms", "--active", "600ms")
    by_steps = ("--wait", "20", "--warmup", "20", "--active", "10")
    return [
        one("gpu-windows", windows(*seconds), "--gpu-time in windows of time"),
        one("gpu-windows-graph", windows(*seconds),
            "--gpu-time in windows of time, of a graph launched again and again", "graph"),
        one("gpu-windows-steps", windows(*by_steps, steps=True),
            "--gpu-time in windows of steps"),
        one("gpu-windows-mm4096", windows("--wait", "0", *seconds[2:]),
            "--gpu-time in windows of time without rest, a full queue", "mm4096"),
    ]
