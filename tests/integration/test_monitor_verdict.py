# SPDX-License-Identifier: BSD-2-Clause
"""The live verdict on simulated jobs whose nature is known: right, or inconclusive."""
import contextlib

import gbpf
import monitored
import pytest

pytestmark = [pytest.mark.root]

JOBS = {
    # CPU time of a launch, GPU time of its kernel, launches between two waits.
    "overhead_bound": ["--pattern", "steady", "--dispatch-ns", 8000, "--kernel-ns", 1000,
                       "--sync-every", 40],
    "gpu_bound": ["--pattern", "steady", "--dispatch-ns", 4000, "--kernel-ns", 400_000,
                  "--sync-every", 10, "--wait", "sleep"],
    "starved": ["--pattern", "waits", "--what", "pipe", "--work-us", 1000, "--wait-us", 20_000,
                "--dispatch-ns", 4000],
    "idle": ["--pattern", "idle-jump", "--rate", 0],
}
NOT_WRONG = {"inconclusive", "mixed"}
# What can be told without GPU time.
TOLD = {"gpu", "comm", "copy", "overhead", "starved", "back_pressured", "cold"}


def watched(budget, count):
    """Of each job: [what was told of it in an interval, the interval], and its truth."""
    with monitored.memory_dir() as folder:
        with contextlib.ExitStack() as stack:
            jobs = {name: stack.enter_context(
                monitored.job(folder, "--duration", 0, *options, name=name))
                for name, options in JOBS.items()}
            with monitored.monitoring(*jobs.values(),
                                      options=["--max-overhead", budget]) as monitor:
                monitor.wait(1)  # probes come in the first
                told = monitor.wait(count)
        return {name: ([(p, i) for i in told for p in i["processes"] if p["pid"] == job.pid],
                       monitored.truth_of(job)) for name, job in jobs.items()}


def check_sync_share(told, interval, truth):
    """The truth is in the range that is told, or it is said that nobody knows."""
    begin, end = monitored.span(interval)
    if told["sync_share"] is None or not truth.closed or end > truth.closed:
        return
    low, high = told["sync_share_ci"]
    share = truth.between("sync", begin, end, "ns") / (end - begin)
    assert low - 0.25 <= share <= high + 0.25, (share, told)


@pytest.mark.parametrize("budget", ["100%", "1%"])
def test_jobs_whose_nature_is_known(budget):
    told = watched(budget, 3)
    for name, (pairs, truth) in told.items():
        for p, interval in pairs:
            check_sync_share(p, interval, truth)
        intervals = [p for p, _ in pairs]
        verdicts = [p["verdict"] for p in intervals]
        assert len(verdicts) == 3
        for p in intervals:
            assert p["verdict_basis"] in ("cpu", "cpu+nvml")
            assert (p["verdict_why"] is None) == (p["verdict"] != "inconclusive")
        if name == "idle":
            assert set(verdicts) == {"inconclusive"}
            assert all("launched nothing" in p["verdict_why"] for p in intervals)
            continue
        assert set(verdicts) <= {name} | NOT_WRONG, (name, intervals)
        if budget == "100%":
            assert name in verdicts, (name, intervals)
            shares = next(p for p in intervals if p["verdict"] == name)["verdict_shares"]
            assert {k for k in shares if not k.endswith("_ci")} == TOLD
            known = [v for k, v in shares.items() if not k.endswith("_ci")]
            assert sum(known) == pytest.approx(1, abs=0.03)


def test_table_says_so():
    with monitored.memory_dir() as folder:
        with monitored.job(folder, "--duration", 0, *JOBS["gpu_bound"]) as job:
            done = gbpf.gbpf("monitor", "-p", job.pid, "--once", "--max-overhead", "100%")
    assert done.returncode == 0, done.stderr
    header, row = [line for line in done.stdout.split("\n") if "SUSPECTED" in line or
                   line.startswith(f"{job.pid:7} ")]
    word = row[header.index("SUSPECTED"):].split()[0]
    assert word in ("gpu-bound", "inconclusive"), done.stdout
