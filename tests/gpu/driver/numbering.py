# SPDX-License-Identifier: BSD-2-Clause
"""How CUPTI numbers works for which it records no calls, beside the calls that gbpf recorded.

CUPTI works alone in each job, as gbpf's sidecar would, while gbpf records calls by its probes. The
logs and recordings are kept, to be looked at: the numbers of works against the order of calls.
"""
import os
import time

import cupti

MODES = ("train", "threads", "graph", "streams", "pageable", "items", "prefetch", "pinned",
         "conv", "triton")
HOW = {"": "never a call", "f": "launches in moments"}
ON_S = 0.4


def numbers(path):
    """What a log says of ids: of works, and of them those that follow upon one another."""
    with open(path, encoding="utf-8") as f:
        rows = [line.split() for line in f]
    ids = sorted({int(r[2]) for r in rows if r[0] == "work"})
    steps = [b - a for a, b in zip(ids, ids[1:])]
    return {"works": sum(r[0] == "work" for r in rows), "ids": len(ids), "from, to":
            ids[:1] + ids[-1:], "next id is one more": sum(s == 1 for s in steps),
            "most": max(steps, default=0), "zero": sum(r[2] == "0" for r in rows)}


def one(check, job, mode, how):
    log = os.path.join(check.setting.out, f"{mode}-{how or 'none'}.ids")
    job.end_free()
    job.ask(f"cupti log {log}")
    recording = check.record("-p", str(job.pid), "-d", "0", "--quiet")
    real = time.clock_gettime_ns(time.CLOCK_REALTIME)
    mono = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    job.ask(f"cupti on {cupti.WORKS}{how}")
    job.free()
    time.sleep(check.setting.seconds(ON_S))
    job.end_free()
    job.ask("cupti off")
    recording.stop()
    os.replace(recording.path, log.removesuffix(".ids") + ".gbpf")
    check.note(f"{mode}, {HOW[how]}", dict(numbers(log), real_minus_mono_ns=real - mono))


def run(check):
    check.client = cupti.built(check, "cupti_alone.so", "-shared", "-fPIC")
    check.libcupti = cupti.libcupti(check)
    modes = MODES[:1] if check.setting.simulated else MODES
    jobs = {mode: check.torch(mode, mode) for mode in modes}
    for mode, job in jobs.items():
        job.ready(60)
        job.free()
        job.end_free()
        job.ask(f"cupti open {check.client} {check.libcupti}")
        for how in HOW:
            job.free()
            one(check, job, mode, how)
        check.expect(f"{mode}: it lives", job.alive())
        job.close()


def entries(entry):
    return [entry("cupti-ids", lambda check: None, run, 120, True,
                  "CUPTI alone: how works are numbered when it records no calls")]
