# SPDX-License-Identifier: BSD-2-Clause
"""Which call caused which kernel, copy and set: what gbpf reports against what the simulated
device knows, work by work."""

import json

import gbpf
import pytest
import works
from gbpf import GBPF, JOB, SIM

pytestmark = pytest.mark.root


def report(path, view, *options):
    done = gbpf.run(GBPF, "report", path, "--view", view, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    return out["rows"], out["quality"]["gpu"], out["quality"]["windows"][0]["begin_ns"]


class Joined:
    """One recording of a job, and what the job itself wrote down."""

    def __init__(self, tmp_path, *job, options=(), env=(), lib="lib", cupti=works.CUPTI):
        self.path = tmp_path / "t.gbpf"
        done = gbpf.run(GBPF, "trace", "-o", self.path, "--gpu-time", "--cupti", cupti, *options,
                        "--", JOB, "--quiet", "--lib", SIM / lib, "--truth", tmp_path / "truth.%p",
                        *job, env={**gbpf.sim_env(), **dict(env)})
        assert done.returncode == 0, done.stderr
        self.rows, self.gpu, self.begin = report(self.path, "gpu_trace", "--names", "mangled")
        self.truths = gbpf.truths(tmp_path)

    def works(self):
        """{where and when a work ran: that work}; the clocks' error is below what tells them
        apart: works of a stream do not overlap."""
        out = {}
        for pid, one in self.truths.items():
            for w in one.work:
                if w.correlation:  # CUPTI was looking
                    out.setdefault((pid, w.device, w.context, w.stream), []).append(w)
        for of in out.values():
            of.sort(key=lambda w: w.begin)
        return out


def compare(joined):
    """(right, wrong, unmatched) of all that was recorded."""
    right, wrong, unmatched = 0, [], []
    error = joined.gpu["clock_error_ns"] + 1
    truth = joined.works()
    rows = works.grouped(joined.rows,
                         lambda r: (r["pid"], r["device"], r["context"], r["stream"]))
    assert {k: len(v) for k, v in rows.items()} == {k: len(v) for k, v in truth.items()}
    for key, of in rows.items():
        for row, work in zip(of, truth[key]):
            assert abs(row["start_ns"] + joined.begin - work.begin) <= error
            assert row["duration_ns"] == pytest.approx(work.ns, abs=1)
            assert (row["graph_node"] or 0) == work.node
            if work.kind == "kernel":
                assert row["name"] == work.kernel.decode()
                assert tuple(row["grid"]) == work.grid
            if row["launch_to_start_ns"] is None:
                unmatched.append((row, work))
                continue
            entry = row["start_ns"] + joined.begin - row["launch_to_start_ns"]
            if (row["tid"] == work.tid and row["api"] == (one := work.call).api
                    and one.entry <= entry <= one.leave):
                right += 1
            else:
                wrong.append((row, work, one))
    return right, wrong, unmatched


def left_out(joined, unmatched):
    """
    Works without a call, of processes of which each stream's calls were looked at. They are for
    the first 10 ms and then twice a second only; of a stream that came in between and did not
    live that long nobody knows the handle, and its calls may be anybody's (docs/gpu-time.md).
    """
    known = works.Recorded(joined.path).calls
    late = {key[0] for key, of in joined.works().items()
            if not any((key[0], w.correlation) in known for w in of)}
    return [work for row, work in unmatched
            if row["pid"] not in late and not doubtful(row, work, unmatched)]


def doubtful(row, work, unmatched):
    """Two threads were in such a call for the same stream at the same time: either may be it."""
    return any(other is not work and other.tid != work.tid and r["stream"] == row["stream"]
               and r["pid"] == row["pid"] and other.call.entry <= work.call.leave
               and work.call.entry <= other.call.leave for r, other in unmatched)


def test_threads_streams_graphs_and_ids_that_wrap(tmp_path):
    """16 threads of 8 streams each, which are destroyed and come again; one launch, many
    kernels; the ids begin anew in the middle. A stream can be gone before any call on it was
    recorded: its works stay without a call."""
    joined = Joined(tmp_path, "--pattern", "streams", "--threads", "16", "--iterations", "2",
                    env={"SIMCUPTI_CORRELATION": str(2**32 - 700)})
    right, wrong, unmatched = compare(joined)
    assert not wrong, wrong[:2]
    count = sum(len(one.work) for one in joined.truths.values())
    assert right + len(unmatched) == count > 3000 and right >= 30
    ids = {r["correlation"] for r in joined.rows}
    assert max(ids) > 2**32 - 700 and min(ids) < 5000
    assert len({r["stream"] for r in joined.rows}) >= 128
    gpu = joined.gpu
    assert (gpu["works"], gpu["matched"]) == (count, right)
    assert gpu["launches"] > 1000 and gpu["launches_without"] <= len(unmatched)
    assert gpu["before_entry"] == gpu["contradicted"] == gpu["dropped"] == gpu["bad"] == 0


@pytest.mark.parametrize("job", [
    ("--pattern", "copy", "--iterations", "3"),
    pytest.param(("--pattern", "train", "--iterations", "5", "--threads", "4", "--children", "2"),
                 marks=pytest.mark.long),
    pytest.param(("--pattern", "pageable", "--iterations", "5"), marks=pytest.mark.long),
    pytest.param(("--pattern", "backpressure", "--iterations", "1"), marks=pytest.mark.long),
    pytest.param(("--pattern", "unload", "--iterations", "20"), marks=pytest.mark.long),
])
def test_every_work_has_its_call(tmp_path, job):
    joined = Joined(tmp_path, *job)
    right, wrong, unmatched = compare(joined)
    assert not wrong and not left_out(joined, unmatched), (wrong[:2], unmatched[:2])
    assert right == joined.gpu["matched"] > 30
    assert right + len(unmatched) == joined.gpu["works"]
    assert joined.gpu["launches_without"] <= len(unmatched)


@pytest.mark.long
def test_through_the_runtime(tmp_path):
    """Both are probed: the driver's call is the cause, and the runtime's is around it."""
    joined = Joined(tmp_path, "--pattern", "train", "--api", "runtime", "--threads", "4",
                    "--iterations", "5", options=("--api", "runtime"))
    right, wrong, unmatched = compare(joined)
    assert not wrong and not left_out(joined, unmatched) and right > 500
    apis = [r["api"] for r in joined.rows if r["api"] is not None]
    assert len(apis) == right
    assert all(api.startswith("cu") and not api.startswith("cuda") for api in apis)


@pytest.mark.long
@pytest.mark.parametrize("lib,name", [
    ("lib-cupti11", "libcupti.so.11.8"), ("lib-cupti12", "libcupti.so.12"),
    ("lib-cupti128", "libcupti.so.12")])
@pytest.mark.parametrize("pattern", ["train", "graph", "streams"])
def test_old_cupti(tmp_path, lib, name, pattern):
    """Nothing is wrong, and with one thread nothing is left out either."""
    joined = Joined(tmp_path, "--pattern", pattern, "--iterations", "3", lib=lib,
                    cupti=SIM / lib / name)
    right, wrong, unmatched = compare(joined)
    assert not wrong, wrong[:2]
    assert right and not unmatched, (right, len(unmatched), unmatched[:2])


def test_what_is_queued_as_the_window_ends(tmp_path):
    """34 ms of kernels that the device has yet to run: all are in, each with its call."""
    joined = Joined(tmp_path, "--pattern", "nosync", "--kernel-ns", "340000", "--duration", "2",
                    options=("--gpu-window", "0.4"), env={"SIMCUDA_DEPTH": "100"})
    (window,) = joined.gpu["windows"]
    assert window["whole"] and joined.gpu["bad"] == joined.gpu["dropped"] == 0
    assert joined.gpu["works"] == joined.gpu["matched"] == len(joined.rows)
    truth, end = joined.works(), window["end_ns"]
    for key, rows in works.grouped(joined.rows, lambda r: (
            r["pid"], r["device"], r["context"], r["stream"])).items():
        assert len(rows) >= sum(w.enqueued < end for w in truth[key])
        for row, work in zip(rows, truth[key]):
            entry = row["start_ns"] + joined.begin - row["launch_to_start_ns"]
            assert work.call.entry <= entry <= work.call.leave
    queued = [w for of in truth.values() for w in of if w.enqueued < end < w.end]
    assert len(queued) > 50 and len(joined.rows) > 200, "it was so"


def test_records_that_make_no_sense(tmp_path):
    """Zero and negative times, and lost records: dropped and counted, and no work of them is
    given to another's call."""
    joined = Joined(tmp_path, "--iterations", "4", env={
        "SIMCUPTI_START0": "23", "SIMCUPTI_NEGATIVE": "29", "SIMCUPTI_DROP": "31"})
    gpu = joined.gpu
    count = sum(len(one.work) for one in joined.truths.values())
    assert gpu["bad"] > 0 and gpu["dropped"] > 0
    assert gpu["works"] + gpu["bad"] + gpu["dropped"] == count
    assert not any(w["whole"] for w in gpu["windows"])
    truth = joined.works()
    wrong = 0
    for row in joined.rows:
        if row["launch_to_start_ns"] is None:
            continue
        near = min(truth[row["pid"], row["device"], row["context"], row["stream"]],
                   key=lambda w: abs(w.begin - row["start_ns"] - joined.begin))
        entry = row["start_ns"] + joined.begin - row["launch_to_start_ns"]
        wrong += not near.call.entry <= entry <= near.call.leave
    assert wrong == 0
    assert 30 < gpu["matched"] <= gpu["works"]
