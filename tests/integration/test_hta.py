# SPDX-License-Identifier: BSD-2-Clause
"""
Holistic Trace Analysis itself, over files of a two-rank job, against gbpf's reports and against
what was recorded: equal where both mean the same, and by the named difference where not
(docs/traces-hta.md). tools/install-deps long gets it; without it nothing here is collected.
"""
import collections
import gzip
import json
import statistics

import gbpf
import pytest
import recordings as rec
from pytest import approx
from readers import EXACT, SAME, ask, united
from test_kineto import export, load

pytestmark = [pytest.mark.long, pytest.mark.parallel, pytest.mark.xdist_group("readers")]

KERNEL_WAIT = 30  # us: HTA's default, and gbpf's
NCCL_STREAM = 21
COPY_NAME = "Memcpy DtoH (Device -> Pageable)"
Work = collections.namedtuple("Work", "begin end kind stream called returned")


def hta(folder, wanted="all", rounding=False):
    return ask("ask_hta.py", folder, wanted, HTA_DISABLE_NS_ROUNDING="" if rounding else "1")


def recorded(recording, pid):
    """Its works by time, in us, each with the runtime's call that led to it."""
    calls = {}
    for outer, inner in zip(recording.calls, recording.calls[1:]):
        calls[inner[5]] = outer
    works = []
    for p, _, stream, kind, begin, end, correlation, _ in recording.works:
        if p == pid:
            call = calls[correlation]
            what = ("memory" if kind == rec.COPY else
                    "communication" if stream == NCCL_STREAM else "computation")
            works.append(Work(begin / 1000, end / 1000, what, stream, call[3] / 1000,
                              call[4] / 1000))
    return sorted(works)


def spans(works, *kinds):
    return [(w.begin, w.end) for w in works if w.kind in kinds]


def by_stream(works):
    out = collections.defaultdict(list)
    for w in works:
        out[w.stream].append(w)
    return out


class Job:
    def __init__(self, folder, **how):
        self.path, self.files = folder / "job.gbpf", folder / "files"
        self.files.mkdir()
        recording = rec.Recording()
        for rank in (0, 1):
            rec.uneven(422 + rank, rank + 1, rank, recording, **how)
        recording.write(self.path)
        export(self.path, self.files / "job.json.gz")
        self.works = {rank: recorded(recording, 422 + rank) for rank in (0, 1)}
        self.said = hta(self.files)

    def of(self, what):
        """(rank, HTA's answer, what was recorded) of each rank"""
        assert set(self.said[what]) == {"0", "1"}
        return [(rank, self.said[what][str(rank)], self.works[rank]) for rank in (0, 1)]

    def rows(self, view, rank):
        """gbpf's rows of a rank: one process, one GPU"""
        return [row for row in gbpf.view(self.path, view)["rows"]
                if row.get("pid", 422 + rank) == 422 + rank
                and row.get("uuid", f"GPU-{rank}") == f"GPU-{rank}"]

    def gaps(self, rank):
        """us of each class of gap, and of what lies before the first and after the last work"""
        rows, streams = self.rows("gap_sum", rank), self.rows("stream_sum", rank)
        classes = collections.Counter({row["class"]: row["total_ns"] / 1000 for row in rows})
        first, last = min(s["begin_ns"] for s in streams), max(s["end_ns"] for s in streams)
        return classes, (rows[0]["window_ns"] - last + first) / 1000


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return Job(tmp_path_factory.mktemp("hta"))


def test_what_docs_say_of_its_versions(job):
    text = (gbpf.ROOT / "docs/traces-hta.md").read_text()
    assert "{hta} with pandas {pandas} and numpy {numpy},".format(**job.said["versions"]) in text


def test_the_files_are_valid_and_a_spoilt_one_is_not(job, tmp_path):
    levels = {"minimal": True, "standard": True, "complete": True}
    found = hta(job.files, "valid")
    assert list(found.values()) == [levels, levels]
    trace = load(next(job.files.iterdir()))
    event = next(e for e in trace["traceEvents"] if e.get("cat") == "kernel")
    event["args"]["correlation"] = str(event["args"]["correlation"])
    (tmp_path / "spoilt.json").write_text(json.dumps(trace))
    assert not any(hta(tmp_path, "valid")["spoilt.json"].values())


def test_all_gpu_work_is_loaded_as_it_was_recorded(job):
    for _, kept, works in job.of("kept"):
        got = sorted((begin, took) for begin, took in kept["works"])
        assert len(got) == len(works) == 384
        for (begin, took), work in zip(got, works):
            assert begin - got[0][0] == approx(work.begin - works[0].begin, **EXACT)
            assert took == approx(work.end - work.begin, **EXACT)


def test_steps_and_the_last_one_that_has_to_be_asked_for(job):
    """HTA counts the same steps; unless it is asked for, all of the last one is left out."""
    begins = {}
    for path in job.files.iterdir():
        trace = load(path)
        steps = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
        assert job.said["steps"] == [int(e["name"].split("#")[1]) for e in steps]
        calls = {e["args"]["correlation"]: e["ts"] for e in trace["traceEvents"]
                 if e.get("cat") == "cuda_runtime"}
        begins[trace["distributedInfo"]["rank"]] = len([
            e for e in trace["traceEvents"] if "stream" in e.get("args", {})
            and e["ph"] == "X" and calls[e["args"]["correlation"]] < steps[-1]["ts"]])
    without = hta(job.files, "without-last")
    for rank in (0, 1):
        kept = len(without["kept"][str(rank)]["works"])
        assert kept == begins[rank] and 300 < kept < 384


def test_temporal_breakdown(job):
    """gbpf's windows are longer: HTA knows no time before the first and after the last work."""
    for rank, said, works in job.of("temporal"):
        classes, edges = job.gaps(rank)
        row, streams = job.rows("gap_sum", rank)[0], job.rows("stream_sum", rank)
        first, last = min(s["begin_ns"] for s in streams), max(s["end_ns"] for s in streams)
        busy = said["kernel_time(us)"] - said["idle_time(us)"]
        assert busy == approx(united((w.begin, w.end) for w in works), **EXACT)
        assert busy == approx(row["window_ns"] * row["busy_pct"] / 1e5, **SAME)
        assert said["kernel_time(us)"] == approx((last - first) / 1000, **EXACT)
        assert edges > 100 and said["idle_time(us)"] == approx(
            sum(classes.values()) - edges, **EXACT)
        compute = united(spans(works, "computation"))
        assert said["compute_time(us)"] == approx(compute, **EXACT)
        assert said["compute_time(us)"] == approx(sum(
            k["total_ns"] for k in job.rows("kern_sum", rank) if k["class"] == "compute") / 1000,
            **SAME)
        assert said["non_compute_time(us)"] == approx(busy - compute, **EXACT)
        for part in ("idle", "compute", "non_compute"):
            assert said[f"{part}_time_pctg"] == approx(
                100 * said[f"{part}_time(us)"] / said["kernel_time(us)"], abs=0.0051)


def test_overlap_of_communication_and_computation(job):
    for _, said, works in job.of("overlap"):
        inside, ours = united(spans(works, "communication")), united(spans(works, "computation"))
        both = inside + ours - united(spans(works, "communication", "computation"))
        assert 10 < said < 90 and said == approx(100 * both / inside, abs=0.0051)


def test_kernel_breakdown(job):
    ours = {}
    for rank in (0, 1):
        ours.update({(rank, row["kernel"]): row for row in job.rows("kern_sum", rank)})
        copies, = job.rows("gpu_mem_sum", rank)
        ours[rank, COPY_NAME] = copies
    said = {(row["rank"], row["name"]): row for row in job.said["kernels"]}
    assert len(said) == 6 and set(said) == set(ours)
    for key, row in said.items():
        for column, name in (("sum (us)", "total_ns"), ("mean (us)", "avg_ns"),
                             ("max (us)", "max_ns"), ("min (us)", "min_ns"),
                             ("stddev", "stddev_ns")):
            assert row[column] == approx(ours[key][name] / 1000, **SAME), (key, column)
        assert row["kernel_type"].lower() == {
            "compute": "computation"}.get(ours[key].get("class", "memory"),
                                          ours[key].get("class", "memory"))


def stretches(works):
    """{what ran together: (us, stretches of it)}"""
    edges = sorted((t, step, w.kind) for w in works for t, step in ((w.begin, 1), (w.end, -1)))
    running, before, out = collections.Counter(), None, {}
    for at, step, kind in edges:
        what = frozenset(k for k in running if running[k])
        if what and at > before:
            total, count = out.get(what, (0, 0))
            out[what] = total + at - before, count + 1
        running[kind] += step
        before = at
    return out


def test_times_of_kinds_of_kernels_are_cut_to_whole_microseconds(job):
    """A table for all ranks together, of which HTA cuts each stretch: gbpf has none like it."""
    said = {frozenset(name.lower().split(" overlapping ")): us
            for name, us in job.said["types"].items()}
    ours = collections.Counter()
    counts = collections.Counter()
    for works in job.works.values():
        for what, (us, count) in stretches(works).items():
            ours[what] += us
            counts[what] += count
    assert set(said) == set(ours)
    for what, us in ours.items():
        assert us - counts[what] < said[what] < us
    assert sum(said.values()) < 0.99 * sum(ours.values())


def test_launch_statistics(job):
    """HTA's delay counts from the runtime's return; gbpf's queue time from the driver's."""
    for rank, said, works in job.of("launches"):
        said = sorted(said, key=lambda row: row["correlation"])
        works = sorted(works, key=lambda w: w.called)
        assert len(said) == len(works)
        for row, work in zip(said, works):
            assert row["gpu_duration"] == approx(work.end - work.begin, **EXACT)
            assert row["cpu_duration"] == approx(work.returned - work.called, **EXACT)
            assert row["launch_delay"] == approx(max(0, work.begin - work.returned), **EXACT)
        ours = {row["operation"]: row for row in job.rows("api_gpu_sum", rank)}
        copies = [row["cpu_duration"] for row, w in zip(said, works) if w.kind == "memory"]
        assert sum(copies) == approx(ours["cudaMemcpyAsync"]["total_ns"] / 1000, **SAME)
        assert statistics.mean(copies) == approx(ours["cudaMemcpyAsync"]["avg_ns"] / 1000, **SAME)


def test_launch_statistics_of_kernels(job):
    for rank, said, works in job.of("kernel_launches"):
        ours = job.rows("kern_exec_sum", rank)
        assert len(said) == sum(row["count"] for row in ours) == 360
        assert sum(row["gpu_duration"] for row in said) == approx(
            sum(row["total_ns"] for row in ours) / 1000, **SAME)
        # the driver's call begins 0.2 us after the runtime's and ends 0.3 us before it
        inside = sum(row["a_avg_ns"] * row["count"] for row in ours) / 1000
        assert sum(row["cpu_duration"] - 0.5 for row in said) == approx(inside, **SAME)
        assert sum(row["cpu_duration"] for row in said) > 1.05 * inside
        queued = [late for w in works if w.kind != "memory"
                  if (late := w.begin - w.returned + 0.3) > 0.0005]
        assert len(queued) == sum(row["queued"] for row in ours)
        assert sum(queued) == approx(
            sum(row["q_avg_ns"] * row["queued"] for row in ours) / 1000, **SAME)
        # so the sum of HTA's delays is that less at most 0.3 us a launch
        delays = sum(row["launch_delay"] for row in said)
        assert sum(queued) - 0.3 * len(queued) - 0.01 <= delays < sum(queued)


def test_queue_length(job):
    """gbpf's depth does not count the launch itself."""
    for rank, said, works in job.of("queue"):
        streams = by_stream(works)
        assert set(map(int, said)) == set(streams)
        for row in job.rows("stream_sum", rank):
            of, lengths = streams[row["stream"]], said[str(row["stream"])]
            depth, ours = 0, []
            for _, change in sorted([(w.called, 1) for w in of] + [(w.begin, -1) for w in of]):
                depth += change
                ours.append(depth)
            assert lengths == ours and min(lengths) == lengths[-1] == 0
            summary = job.said["queue_summary"][str(rank)][str(row["stream"])]
            assert summary["max"] == max(lengths) == row["depth_max"] + 1
            assert summary["count"] == 2 * row["works"]
            assert summary["mean"] == approx(statistics.mean(lengths), **EXACT)


def waits(works):
    """HTA's rule for one stream: us by class"""
    out = collections.Counter(host_wait=0, kernel_wait=0, other=0)
    for before, w in zip(works, works[1:]):
        gap = w.begin - before.end
        out["host_wait" if w.called > before.end else
            "kernel_wait" if gap < KERNEL_WAIT else "other"] += gap
    return out


def test_idle_time_by_stream(job):
    """HTA rounds to 0.01 us. gbpf's gaps are the device's: fewer, as the streams take turns."""
    for rank, said, works in job.of("idle"):
        streams = by_stream(works)
        assert set(map(int, said)) == set(streams)
        for row in job.rows("stream_sum", rank):
            classes = said[str(row["stream"])]
            assert classes == approx(waits(streams[row["stream"]]), abs=0.0051)
            assert sum(classes.values()) == approx(
                (row["end_ns"] - row["begin_ns"] - row["busy_ns"]) / 1000, **SAME)
        gaps, edges = job.gaps(rank)
        device = sum(gaps.values()) - edges
        everything = sum(sum(classes.values()) for classes in said.values())
        assert everything > 2 * device
        assert gaps["sync-drain"] > gaps["host-wait"] > 0


def test_idle_time_of_one_stream_is_that_of_the_device(tmp_path):
    """What HTA calls host wait is sync-drain where the thread was waiting for the GPU."""
    job = Job(tmp_path, side_stream=False)
    for rank, said, works in job.of("idle"):
        assert len(works) == 24 * 13
        (classes,), (gaps, edges) = said.values(), job.gaps(rank)
        assert gaps["host-wait"] > 100 and gaps["sync-drain"] > 100
        assert classes["host_wait"] == approx(
            gaps["host-wait"] + gaps["sync-drain"] - edges, **SAME)
        assert classes["kernel_wait"] == approx(gaps["kernel-wait"], **SAME)
        assert classes["other"] == approx(gaps["other"], abs=0.0051)


def test_rounding_that_has_to_be_switched_off(job, tmp_path):
    """Without the switch begins are rounded up and ends down: short calls get negative times."""
    trace = load(sorted(job.files.iterdir())[0])
    calls = [e for e in trace["traceEvents"] if e.get("cat") == "cuda_driver"]
    calls[5]["ts"], calls[5]["dur"] = int(calls[5]["ts"]) + 0.2, 0.5
    with gzip.open(tmp_path / "short.json.gz", "wt") as file:
        json.dump(trace, file)
    kept, rounded = hta(tmp_path)["kept"]["0"], hta(tmp_path, rounding=True)["kept"]["0"]
    assert min(kept["durations"]) == approx(0.5, **EXACT) and min(rounded["durations"]) == -1
    cut = [took - less for (_, took), (_, less) in zip(kept["works"], rounded["works"])]
    assert len(cut) == 384 and all(0 <= us < 2 for us in cut)
    assert sum(cut) > 0.02 * sum(took for _, took in kept["works"])
