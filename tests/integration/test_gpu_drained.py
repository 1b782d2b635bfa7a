# SPDX-License-Identifier: BSD-2-Clause
"""A GPU that is busy with what was launched before gbpf came is told as busy, or not at all."""
import json
import time

import gbpf
import pytest
import works
from gbpf import GBPF

pytestmark = pytest.mark.root
FULL = ["--pattern", "nosync", "--rate", 0, "--dispatch-ns", 20_000, "--kernel-ns", 400_000]
LONG = ["--pattern", "steady", "--sync-every", 1, "--dispatch-ns", 20_000,
        "--kernel-ns", 250_000_000]


def report(path, view):
    done = gbpf.run(GBPF, "report", path, "--view", view, "--format", "json")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    return out["rows"], out["quality"]["gpu"]


def true_busy(one, begin, end):
    """ns of [begin, end) in which the device worked; its works do not overlap here."""
    return sum(max(0, min(w.end, end) - max(w.begin, begin)) for w in one.work)


def attached(tmp_path, job, seconds):
    """(what is told of the GPU, what the job wrote down), recorded so long after it began."""
    path = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, *job, "--wait", "sleep", "--duration", 0) as process:
        time.sleep(1)
        with gbpf.tracing(path, "-p", process.pid, "-d", 0, "--cupti-calls",
                          *works.OPTIONS) as tracer:
            gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").exists() or path.exists())
            time.sleep(seconds)
    assert tracer.returncode == 0, tracer.err
    return report(path, "gap_sum"), gbpf.truths(tmp_path)[process.pid]


@pytest.mark.parametrize("job, seconds", [
    (FULL, 2.5), pytest.param(LONG, 4, marks=pytest.mark.long)], ids=["full queue", "long kernel"])
def test_what_was_launched_before(tmp_path, job, seconds):
    (rows, gpu), one = attached(tmp_path, job, seconds)
    assert gpu["matched"] == gpu["works"] > 0, gpu
    for window in gpu["windows"]:
        length = window["end_ns"] - window["begin_ns"]
        assert length > 300_000_000, gpu
        idle = length - true_busy(one, window["begin_ns"], window["end_ns"])
        assert sum(r["total_ns"] for r in rows) == pytest.approx(idle, abs=length / 200), rows
    (window,) = gpu["windows"]
    # A launch that was being made as the recording began may be recorded, too.
    first = min(w.begin - w.ns for w in one.work if w.correlation)
    assert window["begin_ns"] >= first - gpu["clock_error_ns"] - 1, "nothing is known before"
