# SPDX-License-Identifier: BSD-2-Clause
"""
What Perfetto's own trace_processor, which is what its viewer asks, finds in our files: no
error, nothing lost, and the calls, works and arrows of the session. Debian has no package of
it: the environment's TRACE_PROCESSOR names one, or PATH has trace_processor_shell. Without,
these tests are not collected (tests/conftest.py) and nothing says that they passed.
"""
import csv
import os

import gbpf
import pytest
import recordings
import test_export_random as random_sessions

PROGRAM = os.environ["TRACE_PROCESSOR"]
QUESTIONS = {
    "faults": """select name, idx, value from stats
        where severity in ('error', 'data_loss') and value != 0""",
    "calls": """select p.pid, t.tid, s.ts, s.dur, s.name from slice s
        join thread_track k on s.track_id = k.id join thread t using (utid)
        join process p using (upid)""",
    "works": "select ts, dur from gpu_slice",
    "slices": "select ts, dur from slice where category = 'gpu'",
    "arrows": """select o.ts as called, i.ts as began, i.dur from flow f
        join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id""",
    "counters": """select distinct k.name from counter c join track k on c.track_id = k.id
        order by k.name""",
}


def number(cell):
    return int(cell) if cell.lstrip("-").isdigit() else cell


def answers(path):
    """{question: sorted rows}, of one start of the program, which takes longest."""
    done = gbpf.run(PROGRAM, "query", path, ";".join(QUESTIONS.values()), timeout=170)
    assert done.returncode == 0, done.stderr[-2000:]
    tables = done.stdout.strip("\n").split("\n\n")
    assert len(tables) == len(QUESTIONS), done.stdout[:2000]
    return {question: sorted(tuple(map(number, row)) for row in list(csv.reader(
        table.split("\n")))[1:]) for question, table in zip(QUESTIONS, tables)}


def check(case, place):
    calls, works = random_sessions.session(case, place)
    calls = {i: c for i, c in calls.items() if c["wanted"]}
    known = (random_sessions.KNOWN, random_sessions.OPEN)
    for name in random_sessions.FILES:
        found = answers(place / name)
        assert not found["faults"], (name, found["faults"])
        assert found["calls"] == sorted(
            (c["pid"], c["tid"], c["begin"], c["end"] - c["begin"] if c["how"] in known else 0,
             c["name"]) for c in calls.values())
        assert found["slices" if "compat" in name else "works"] == sorted(
            (w["begin"], w["end"] - w["begin"]) for w in works.values() if w["wanted"])
        assert found["arrows"] == sorted(
            (calls[w["cause"]]["begin"], w["begin"], w["end"] - w["begin"])
            for w in works.values() if w["cause"] >= 0)


@pytest.mark.parametrize("case", random_sessions.QUICK)
def test_random_sessions(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", random_sessions.LONG)
def test_many_random_sessions(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize("name", ["t.pftrace", "t.pftrace.gz"])
@pytest.mark.parametrize("switches", [(), ("--perfetto-compat",)])
def test_two_ranks_with_losses(name, switches, tmp_path):
    r = recordings.training(pid=422, steps=3, rank=0, nccl=True)
    recordings.training(pid=777, steps=3, rank=1, nccl=True, recording=r)
    r.loss(1_001_500_000, 17)
    recording = r.write(tmp_path / "job.gbpf")
    done = gbpf.gbpf("export", "-q", recording, "-o", tmp_path / name, *switches)
    assert done.returncode == 0, done.stderr
    found = answers(tmp_path / name)
    assert not found["faults"], found["faults"]
    assert len(found["calls"]) == len(r.calls)
    assert len(found["slices" if switches else "works"]) == len(r.works)
    assert len(found["arrows"]) == len([w for w in r.works if w[6]])


def test_a_recording(tmp_path):
    """As a user makes one: threads, streams, graphs, NVML's counters."""
    done = gbpf.run(
        gbpf.GBPF, "trace", "-o", tmp_path / "t.pftrace", "--gpu-time", "--cupti",
        gbpf.SIM / "lib/libcupti.so.13", "--", gbpf.JOB, "--quiet", "--lib", gbpf.SIM / "lib",
        "--pattern", "train", "--threads", "3", "--iterations", "20", env=gbpf.sim_env())
    assert done.returncode == 0, done.stderr
    gpu = gbpf.view(tmp_path / "t.gbpf", "gpu_trace")
    found = answers(tmp_path / "t.pftrace")
    assert not found["faults"], found["faults"]
    assert len(found["works"]) == len(gpu["rows"]) > 1000
    assert len(found["arrows"]) == len([row for row in gpu["rows"] if row["api"]])
    assert all(called <= began for called, began, _ in found["arrows"])
    assert {"GPU busy", "launches/s"} <= {name for name, in found["counters"]}
