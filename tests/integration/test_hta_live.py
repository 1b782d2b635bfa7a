# SPDX-License-Identifier: BSD-2-Clause
"""
Holistic Trace Analysis over two ranks that ran on the simulated GPU: against gbpf's reports and
against what that device did. Collected where tools/install-deps long got it.
"""
import collections

import gbpf
import pytest
from pytest import approx
from readers import SAME, ask, united
from test_gpu_join import Joined
from test_kineto import export

pytestmark = [pytest.mark.long, pytest.mark.root]

KNOWN = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync")


class Ranks:
    """A recording for each, as of two hosts, and a folder with both files."""

    def __init__(self, folder):
        self.files = folder / "files"
        self.files.mkdir()
        self.joined = []
        for rank in ("0", "1"):
            place = folder / rank
            place.mkdir()
            self.joined.append(Joined(
                place, "--iterations", "12", "--api", "runtime", "--seed", rank,
                options=("--api", "runtime"), env={"RANK": rank}))
            export(self.joined[-1].path, self.files / f"{rank}.json.gz")
        self.said = ask("ask_hta.py", self.files, "all", HTA_DISABLE_NS_ROUNDING="1")

    def of(self, what):
        """(recording, HTA's answer, what the device did) of each rank"""
        assert set(self.said[what]) == {"0", "1"}
        for rank, joined in enumerate(self.joined):
            done = [w for one in joined.truths.values() for w in one.work]
            yield joined, self.said[what][str(rank)], sorted(done, key=lambda w: w.begin)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return Ranks(tmp_path_factory.mktemp("live"))


def rows(joined, view):
    return gbpf.view(joined.path, view)["rows"]


def test_what_ran_is_what_hta_loads(ranks):
    levels = {"minimal": True, "standard": True, "complete": True}
    assert list(ask("ask_hta.py", ranks.files, "valid").values()) == [levels, levels]
    assert len(ranks.said["steps"]) >= 10
    for joined, kept, works in ranks.of("kept"):
        error = (2 * joined.gpu["clock_error_ns"] + 2) / 1000
        assert len(kept["works"]) == len(works) > 900
        for (begin, took), work in zip(kept["works"], works):
            since = begin - kept["works"][0][0]
            assert since == approx((work.begin - works[0].begin) / 1000, abs=error)
            assert took == approx(work.ns / 1000, abs=0.0011)


def test_temporal_breakdown(ranks):
    for joined, said, works in ranks.of("temporal"):
        busy = said["kernel_time(us)"] - said["idle_time(us)"]
        gaps, streams = rows(joined, "gap_sum"), rows(joined, "stream_sum")
        first, last = min(s["begin_ns"] for s in streams), max(s["end_ns"] for s in streams)
        edges = gaps[0]["window_ns"] - (last - first)
        assert busy == approx(united((w.begin, w.end) for w in works) / 1000, **SAME)
        assert busy == approx(gaps[0]["window_ns"] * gaps[0]["busy_pct"] / 1e5, **SAME)
        assert said["kernel_time(us)"] == approx((last - first) / 1000, **SAME)
        assert said["idle_time(us)"] == approx(
            (sum(row["total_ns"] for row in gaps) - edges) / 1000, **SAME)
        assert said["compute_time(us)"] == approx(
            sum(w.ns for w in works if w.kind == "kernel") / 1000, **SAME)


def test_kernel_breakdown(ranks):
    """All of it has to be asked for: HTA names ten kernels at most, the others together."""
    assert "others" in ranks.said["kernels_by_default"]
    said = {(row["rank"], row["name"]): row for row in ranks.said["kernels"]}
    for rank, joined in enumerate(ranks.joined):
        ours = {row["kernel"]: row for row in rows(joined, "kern_sum")}
        assert {name for of, name in said if of == rank
                and not name.startswith(("Memcpy", "Memset"))} == set(ours)
        for name, row in ours.items():
            for column, key in (("sum (us)", "total_ns"), ("mean (us)", "avg_ns"),
                                ("max (us)", "max_ns"), ("min (us)", "min_ns")):
                assert said[rank, name][column] == approx(row[key] / 1000, **SAME)
        memory = sum(row["sum (us)"] for (of, _), row in said.items()
                     if of == rank and row["kernel_type"] == "MEMORY")
        assert memory == approx(
            sum(row["total_ns"] for row in rows(joined, "gpu_mem_sum")) / 1000, **SAME)


def test_launch_statistics(ranks):
    """Of the calls that HTA knows: a copy that waits, cudaMemcpy, is not among them."""
    for joined, said, works in ranks.of("launches"):
        calls = collections.defaultdict(list)
        for row in rows(joined, "api_gpu_sum"):
            calls[row["operation"]].append(row)
        ours = [row for name in KNOWN for row in calls[name]]
        assert len(ours) == 4 and len(works) - len(said) == 2 == sum(
            row["instances"] for row in calls["cudaMemcpy"])
        assert sum(row["instances"] for row in ours) == len(said)
        assert sum(row["cpu_duration"] for row in said) == approx(
            sum(row["total_ns"] for row in ours) / 1000, **SAME)
    for joined, said, works in ranks.of("kernel_launches"):
        ours = rows(joined, "kern_exec_sum")
        assert len(said) == sum(row["count"] for row in ours)
        assert sum(row["gpu_duration"] for row in said) == approx(
            sum(row["total_ns"] for row in ours) / 1000, **SAME)


def test_queue_length(ranks):
    """HTA counts from the runtime's entry, so it may see one launch more than gbpf."""
    for joined, said, _ in ranks.of("queue"):
        ours = {str(row["stream"]): row for row in rows(joined, "stream_sum")}
        assert said and set(said) <= set(ours)
        for stream, lengths in said.items():
            assert len(lengths) == 2 * ours[stream]["works"]
            assert min(lengths) == lengths[-1] == 0
            assert ours[stream]["depth_max"] + 1 <= max(lengths) <= ours[stream]["depth_max"] + 2


def test_idle_time_by_stream(ranks):
    for joined, said, _ in ranks.of("idle"):
        for row in rows(joined, "stream_sum"):
            assert sum(said[str(row["stream"])].values()) == approx(
                (row["end_ns"] - row["begin_ns"] - row["busy_ns"]) / 1000, **SAME)
