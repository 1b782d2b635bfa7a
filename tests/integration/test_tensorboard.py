# SPDX-License-Identifier: BSD-2-Clause
"""
TensorBoard's plugin for torch.profiler: what its parser makes of files of a two-rank job, against
gbpf's reports. tools/install-deps long gets it; without it nothing here is collected.
"""
import re

import gbpf
import pytest
import recordings as rec
from pytest import approx
from readers import SAME, ask, united
from test_kineto import export, load

pytestmark = [pytest.mark.long, pytest.mark.parallel, pytest.mark.xdist_group("readers")]

KERNEL, COMMUNICATION, RUNTIME, TOTAL = 0, 3, 4, 8  # of the plugin's parts of a step


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """(recording, [(pid, file as gbpf wrote it, what the plugin says)], all that it says)"""
    folder = tmp_path_factory.mktemp("tensorboard")
    files = folder / "files"
    files.mkdir()
    recording = rec.Recording()
    for rank in (0, 1):
        rec.uneven(422 + rank, rank + 1, rank, recording)
    path = recording.write(folder / "job.gbpf")
    for pid in (422, 423):
        export(path, files / f"n1_{pid}.pt.trace.json.gz", "--pid", str(pid))
    said = ask("ask_tensorboard.py", files)
    return path, [(pid, load(files / f"n1_{pid}.pt.trace.json.gz"), one)
                  for pid, one in zip((422, 423), said["files"])], said


def test_what_docs_say_of_it(job):
    text = (gbpf.ROOT / "docs/traces-hta.md").read_text()
    assert f"torch-tb-profiler {job[2]['version']}," in text


def test_it_complains_of_nothing_but_steps_that_meet(job):
    """It adds in doubles: the end of one may be a fraction of a ns behind the next one's begin."""
    for line in job[2]["complaints"]:
        found = re.search(r"Father:\(ProfilerStep#\d+,[\d.]+,([\d.]+)\) "
                          r"Child:\(ProfilerStep#\d+,([\d.]+),", line)
        assert found, line
        assert 0 < float(found[1]) - float(found[2]) < 0.0001


def test_what_it_knows_of_a_file(job):
    for rank, (pid, trace, said) in enumerate(job[1]):
        assert (said["worker"], said["rank"], said["schema"]) == (f"n1_{pid}", rank, 1)
        assert said["devices"] == [0] and said["device"] == "NVIDIA H200"
        assert said["steps"] == [e["name"].split("#")[1] for e in trace["traceEvents"]
                                 if e["name"].startswith("ProfilerStep#")]


def test_names_that_gbpf_gives_are_spans_of_one_worker_to_it(job, tmp_path):
    """A number before the ending is a time to the plugin: a name a rank is for whoever exports."""
    export(job[0], tmp_path / "job.pt.trace.json.gz")
    said = ask("ask_tensorboard.py", tmp_path)["files"]
    assert [(one["worker"], one["span"]) for one in said] == [("job", ".422"), ("job", ".423")]
    assert [one["span"] for _, _, one in job[1]] == [None, None]


def test_kernels(job):
    path, ranks, _ = job
    ours = gbpf.view(path, "kern_sum")["rows"]
    for pid, trace, said in ranks:
        rows = {row["kernel"]: row for row in ours if row["pid"] == pid}
        assert len(rows) == 2 and set(said["kernels"]) == set(rows)
        for name, row in said["kernels"].items():
            assert row["count"] == rows[name]["instances"]
            for theirs, of in (("sum", "total_ns"), ("mean", "avg_ns"), ("max", "max_ns"),
                               ("min", "min_ns")):
                assert row[theirs] == approx(rows[name][of] / 1000, **SAME)
            event = next(e for e in trace["traceEvents"]
                         if e["name"] == name and e.get("cat") == "kernel")
            assert row["blocks_per_sm"] == approx(event["args"]["blocks per SM"], **SAME)
            # its occupancy is that of the whole GPU; gbpf's that of an SM with blocks enough
            assert row["occupancy"] == approx(event["args"]["est. achieved occupancy %"], **SAME)
            assert row["occupancy"] < 10
            assert rows[name]["occupancy_pct"] == 100


def test_utilization(job):
    """Of kernels alone, and of the steps' time alone: gbpf's busy time has copies, too."""
    path, ranks, _ = job
    busy = {row["uuid"]: row["busy_pct"] for row in gbpf.view(path, "gap_sum")["rows"]}
    for rank, (_, trace, said) in enumerate(ranks):
        steps = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
        first, last = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
        inside = [(max(e["ts"], first), min(e["ts"] + e["dur"], last))
                  for e in trace["traceEvents"] if e.get("cat") == "kernel"]
        used = united((a, b) for a, b in inside if a < b) / (last - first)
        assert said["utilization"] == approx(used, **SAME)
        assert 0 < abs(100 * used - busy[f"GPU-{rank}"]) < 2


def test_parts_of_a_step(job):
    """It does not know the category cuda_runtime, PyTorch's neither: no calls, no NCCL."""
    for _, trace, said in job[1]:
        assert said["runtime"] is False
        steps = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
        kernels = [(e["ts"], e["ts"] + e["dur"]) for e in trace["traceEvents"]
                   if e.get("cat") == "kernel"]
        assert len(said["step_us"]) == len(steps) > 20
        for step, parts in zip(steps, said["step_us"]):
            begin, end = step["ts"], step["ts"] + step["dur"]
            assert parts[TOTAL] == approx(step["dur"], **SAME)
            assert parts[KERNEL] == approx(united(
                (max(a, begin), min(b, end)) for a, b in kernels if a < end and b > begin), **SAME)
            assert parts[COMMUNICATION] == parts[RUNTIME] == 0
