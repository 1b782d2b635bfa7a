# SPDX-License-Identifier: BSD-2-Clause
"""Which jobs live through CUPTI being taken out of them while they work.

The sidecar called cuptiFinalize() at the end of a call, within its callback, as NVIDIA's sample
does, and a job that was replaying a graph failed then (CUPTI 13.0; docs/gpu-time.md). This asks
without gbpf, and of jobs with graphs and without: each is attached to and left several times.
"""
import os
import time

import cupti
import stats
from jobs import Trouble

MODES = ("graph", "train", "streams")
JOBS_OF_A_MODE = 4
ROUNDS = 4
ON_MS = 400    # recorded that long while the job works
ROUND_S = 0.9  # leaving and what comes after it included


def told(path):
    """[(result, ns)] of each time CUPTI was finalized, and what else went wrong, of one log."""
    with open(path, encoding="utf-8") as f:
        rows = [line.split() for line in f]
    return ([(int(r[1]), int(r[4])) for r in rows if r[0] == "finalized"],
            [" ".join(r) for r in rows if r[0] == "stays"])


def rounds(check, job):
    """Comes and goes while the job steps; the path of the log."""
    log = os.path.join(job.directory, "records")
    job.ask(f"cupti open {check.client} {check.libcupti}")
    job.ask(f"cupti log {log}")
    for _ in range(ROUNDS):
        job.ask(f"cupti on {cupti.WORKS}+")
        job.ask(f"cupti leave {ON_MS}")
        job.free()
        time.sleep(ROUND_S)
        job.end_free()
    return log


def one(check, mode, number, lengths):
    job = check.torch(mode, f"{mode}-{number}").ready(60)
    name = f"{mode} {number}"
    try:
        done, stays = told(rounds(check, job))
        lengths += [ns for _, ns in done]
        check.expect(f"{name}: finalized at a call's end, {ROUNDS} times",
                     [result for result, _ in done] == [0] * ROUNDS and not stays,
                     [done, stays])
        check.expect(f"{name}: it steps on", job.ask("steps 20")["steps"] == 20)
    except (Trouble, OSError) as error:
        check.expect(f"{name}: it lives", False, str(error))
    finally:
        job.close()
    check.expect(f"{name}: it ends as it should", job.process.returncode == 0,
                 job.process.returncode)


def run(check):
    check.client = cupti.built(check, "cupti_alone.so", "-shared", "-fPIC")
    check.libcupti = cupti.libcupti(check)
    lengths = []
    # the simulated CUPTI is as this was seen last: a job with graphs does not live
    for mode in MODES[check.setting.simulated is not None:]:
        for number in range(JOBS_OF_A_MODE):
            one(check, mode, number, lengths)
    if lengths:
        check.measure("finalizing takes", round(stats.quantile(lengths, 0.5) / 1e6, 3), "ms",
                      high=round(max(lengths) / 1e6, 3), n=len(lengths))


def entries(entry):
    return [entry("cupti-leave", lambda check: None, run, 300, True,
                  "CUPTI alone, finalized at a call's end, again and again")]
