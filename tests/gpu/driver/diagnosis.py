# SPDX-License-Identifier: BSD-2-Clause
"""The reference experiments: what gbpf says of jobs whose trouble is known."""
import json
import time

import gputime
from jobs import Trouble

SECONDS = 1.5

# What limits each job, by construction: verdicts that are right with GPU time.
JOBS = {
    "mm64": ("overhead_bound",),
    "mm4096": ("gpu_bound",),
    "train": ("overhead_bound",),
    "graph": ("gpu_bound", "sync_bound", "overhead_bound", "mixed"),
    "queue": ("gpu_bound",),
    "separate": ("overhead_bound",),
    "fused": ("overhead_bound",),
    "pageable": ("copy_bound",),
    "streams": ("overhead_bound", "gpu_bound", "mixed"),
    "items": ("overhead_bound", "sync_bound", "mixed"),
    "loader": ("starved",),
}
DIFFS = (("separate", "fused"), ("train", "compiled"))


def diagnosed(check, recording):
    status, text = check.run(check.setting.gbpf, "diagnose", recording.path, "--format", "json")
    if status != 0:
        raise Trouble(f"gbpf diagnose ended with {status}: {text[-1500:]}")
    return json.loads(text)


def one(check, mode, arguments):
    """A stretch of a job that steps all the while, with and without GPU time."""
    job = check.torch(mode, mode).ready()
    job.free()
    time.sleep(check.setting.seconds(1))
    recording = gputime.attach(check, job) if arguments else \
        check.record("-p", str(job.pid), "-d", "0")
    time.sleep(check.setting.seconds(SECONDS))
    recording.stop()
    job.end_free()
    job.close()
    return recording


def run(check):
    kept = {}
    for mode, right in JOBS.items():
        recording = one(check, mode, True)
        told = diagnosed(check, recording)
        process = told["processes"][0]
        _, text = check.run(check.setting.gbpf, "diagnose", recording.path)
        print(f"--- {mode}\n{text[:3500]}", flush=True)
        rules = [f["rule"] for f in process["findings"]]
        check.note(mode, {k: process[k] for k in ("verdict", "confidence", "basis", "shares",
                                                  "step_ns", "steps")} | {"rules": rules})
        if not check.setting.simulated:
            check.expect(f"{mode}: the verdict is {' or '.join(right)}",
                         process["verdict"] in right and process["basis"] == "cpu+gpu",
                         (process["verdict"], process["basis"], process["shares"]))
        gpu = recording.report("summary")["quality"]["gpu"]
        check.expect(f"{mode}: works matched with their calls ≥ 99.99 %",
                     gpu["works"] and gpu["matched"] >= gputime.MATCHED * gpu["works"],
                     {k: gpu[k] for k in ("works", "matched", "launches", "launches_without",
                                          "bad", "dropped")})
        kept[mode] = recording.path
    compare(check, kept)


def compare(check, kept):
    """What changed from one job to another that does the same."""
    for before, after in DIFFS:
        if after not in kept:
            kept[after] = one(check, after, True).path
        status, text = check.run(check.setting.gbpf, "diff", kept[before], kept[after])
        print(f"--- diff {before} {after} ({status})\n{text[:3500]}", flush=True)
        check.expect(f"diff {before} {after} tells", status in (0, 1) and text, text[-500:])


def entries(entry):
    return [entry("diagnosis", lambda check: None, run, 300, False,
                  "reference experiments: verdicts of jobs whose trouble is known")]

