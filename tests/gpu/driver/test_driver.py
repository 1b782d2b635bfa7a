# SPDX-License-Identifier: BSD-2-Clause
"""The harness's own arithmetic and comparisons, on values whose answers are known."""
import os
import struct
import sys
import tempfile
import unittest

import checks
import compare
import lanes
import leaving
import monitor
import plan
import residue
import residue_many
import results
import stats
from check import JOBS, Check, Setting

sys.path.insert(0, JOBS)
import profile_counts  # noqa: E402  pylint: disable=wrong-import-position


def row(kernel, calls, grid=(1, 1, 1), block=(32, 1, 1), **more):
    """A row as `gbpf report --view launch_sum --format json` writes it."""
    return {"kernel": kernel, "calls": calls, "grid": list(grid), "block": list(block), "pid": 7,
            "name": "cuLaunchKernel", "smem_bytes": 0, "stream": "0x10", "total_ns": 5, **more}


def report(*rows):
    return {"view": "launch_sum", "rows": list(rows), "quality": {
        "losses": {"ring_full": 0, "name": 2}, "windows": [{"begin_ns": 10, "end_ns": 90}]}}


class Stats(unittest.TestCase):
    def test_steps_are_read_and_a_torn_one_left_out(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(struct.pack("qqqq", 100, 10, 120, 20) + b"torn")
            f.flush()
            self.assertEqual(stats.steps_read(f.name), [(100, 10), (120, 20)])

    def test_only_whole_steps_are_within(self):
        steps = [(100, 10), (110, 10), (120, 10), (130, 10)]
        self.assertEqual(stats.within(steps, 100, 120), [10, 10])
        self.assertEqual(stats.within(steps, 101, 120), [10])
        self.assertEqual(stats.within(steps, 131, 200), [])

    def test_quantiles(self):
        self.assertEqual(stats.quantile([5, 1, 3, 2, 4], 0.5), 3)
        self.assertEqual(stats.quantile(range(1, 101), 0.9), 90)
        self.assertEqual(stats.quantile([4], 0.1), 4)

    def test_ratio_of_equal_pairs_has_no_width(self):
        result = stats.ratio_of_pairs([(110, 100)] * 6)
        self.assertAlmostEqual(result["ratio"], 1.1)
        self.assertAlmostEqual(result["low"], 1.1)
        self.assertAlmostEqual(stats.half_width(result), 0.0)

    def test_ratio_of_means_is_of_groups_that_have_no_pairs(self):
        low, high = stats.ratio_of_means([2.2] * 9, [2.0] * 4)
        self.assertAlmostEqual(low, 1.1)
        self.assertAlmostEqual(high, 1.1)
        low, high = stats.ratio_of_means([1.0, 1.2] * 40, [0.9, 1.1] * 40)
        self.assertTrue(1.06 < low < 1.101 < high < 1.16, (low, high))

    def test_interval_holds_the_truth_and_narrows(self):
        few = [(100 + i % 7, 100) for i in range(7)]
        many = few * 20
        a, b = stats.ratio_of_pairs(few), stats.ratio_of_pairs(many)
        for r in (a, b):
            self.assertTrue(r["low"] < 1.03 < r["high"], r)
        self.assertLess(stats.half_width(b), stats.half_width(a) / 3)

    def test_one_pair_has_no_interval(self):
        self.assertIsNone(stats.ratio_of_pairs([(3, 2)])["low"])
        self.assertEqual(stats.half_width(stats.ratio_of_pairs([(3, 2)])), float("inf"))

    def test_geometric_mean(self):
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2.0]), 1.0)

    def test_ratio_of_groups(self):
        r = stats.ratio_of_groups([20, 22, 21], [10, 11, 10.5])
        self.assertAlmostEqual(r["ratio"], 2.0)
        self.assertLessEqual(r["low"], 2.0)
        self.assertGreaterEqual(r["high"], 2.0)

    def test_back_to_full_speed(self):
        steps = [(t, 15 if t < 300 else 10) for t in range(10, 1000, 10)]
        found = stats.buckets(steps, 0, 1000, 100)
        self.assertEqual(stats.back_to(found, 10.3), 300)
        self.assertIsNone(stats.back_to(found, 9))


class Monitored(unittest.TestCase):
    """A job of 1 ms steps with ten launches each, but of 1.1 ms while it is monitored."""

    def setUp(self):
        self.check = Check("monitor", Setting("gbpf", "/nowhere", "/nowhere"))
        ends, self.steps = 0, []
        for _ in range(3):
            for length in [1000] * 10 + [1100] * 10:
                ends += length
                self.steps.append((ends, length))

    def test_slowdown_is_of_the_mean_step_against_both_neighbours(self):
        turn = monitor.Turn("1%", (0, 10_000), (10_000, 21_000), (21_000, 31_000), [])
        monitor.report_slowdown(self.check, "x", [(turn, self.steps)] * 4)
        self.assertEqual(self.check.measures[0]["value"], 1.1)
        self.assertEqual(self.check.measures[0]["n"], 4)

    def test_truth_counts_launches_between_two_instants(self):
        truth = monitor.Truth(self.steps, 10)
        self.assertAlmostEqual(truth.launches(2000, 7000), 50)
        self.assertAlmostEqual(truth.launches(2500, 3000), 5)
        self.assertAlmostEqual(truth.launches(9000, 11_100), 20)
        self.assertIsNone(truth.launches(0, 10 ** 9))

    def test_an_estimate_is_held_against_the_truth(self):
        def told(rate, low, high):
            return {"window_ns": 10 ** 9}, {
                "launches_per_s": rate, "launches_per_s_ci": [low, high],
                "dispatch_p50_ns": 50, "dispatch_p99_ns": None}

        rows = [(100, *told(110, 90, 130)), (100, *told(95, 94, 96)), (None, *told(1, 1, 1))]
        monitor.report_truth(self.check, "x", rows, 100, 100)
        found = {m["what"]: m["value"] for m in self.check.measures}
        self.assertEqual(found["x: launches told / launched"], 1.025)
        self.assertEqual(found["x: median error of an interval"], 7.5)
        self.assertEqual(found["x: true rate inside the interval told"], 50.0)
        self.assertEqual(found["x: dispatch_p50 told / recorded by trace"], 0.5)
        self.assertNotIn("x: dispatch_p99 told / recorded by trace", found)


class ResidueMany(unittest.TestCase):
    def test_each_is_held_against_nothing(self):
        check = Check("c", Setting("gbpf", "/nowhere", "/nowhere"))
        told = [residue_many.Told(name, ratio, None)
                for name, ratio in (("nothing", 1.1), ("a", 1.21), ("b", 1.1)) for _ in range(5)]
        found = residue_many.report(check, told, ["nothing", "a", "b"])
        self.assertEqual(sorted(found), ["a", "b"])
        self.assertAlmostEqual(found["a"][0], 1.1)
        self.assertAlmostEqual(found["b"][1], 1.0)

    def test_ids_of_works_are_told_from_those_of_calls(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("call 1 7 100 5 307\nwork 1 7 2 6\nwork 1 7 2 7\nwork 1 9 2 8\n")
            f.flush()
            self.assertEqual(residue_many.ids(f.name), {
                "calls": 1, "works": 3, "works with a call's id": 2, "most works of one id": 2,
                "other ids": 1, "from, to": [9, 9]})


    def test_leaving_is_told_with_its_result_and_length(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("work 1 7 2 6\nfinalized 0 1 307 5000\nstays 15\nfinalized 7 2 3 10\n")
            f.flush()
            self.assertEqual(leaving.told(f.name), ([(0, 5000), (7, 10)], ["stays 15"]))


class Lanes(unittest.TestCase):
    def test_each_works_at_once_and_a_failure_is_told(self):
        check = Check("lanes", Setting("gbpf", "/nowhere", "/nowhere"))
        check.lanes = [1, 2, 3]
        self.assertEqual(lanes.together(check, lambda lane, by: lane * by, 2), [2, 4, 6])
        with self.assertRaises(ZeroDivisionError):
            lanes.together(check, lambda lane: 1 / (lane - 2))


class Compare(unittest.TestCase):
    def test_counts_by_process_and_sort(self):
        r = report(row("a", 3), row("b", 4), row(None, 9, name="cuGraphLaunch"),
                   row(None, 2, name="cuLaunchHostFunc"), dict(row("a", 100), pid=8))
        self.assertEqual(compare.launch_counts(r, 7), {"kernels": 7, "graphs": 9})

    def test_unnamed(self):
        r = report(row("a", 1), row(None, 1), row("kernel@0x7f00", 1), row("0x12", 1),
                   row(None, 1, name="cudaGraphLaunch"))
        self.assertEqual(len(compare.unnamed(r, 7)), 3)

    def test_names_blanks_aside(self):
        r = report(row("void f<int, 4> (int*)", 1))
        self.assertEqual(compare.names_differ(["void f<int,4>(int *)"], r, 7), ([], []))
        self.assertEqual(compare.names_differ(["g"], r, 7), (["g"], ["voidf<int,4>(int*)"]))

    def test_a_name_left_mangled_is_the_same_name(self):
        r, mangled = report(row("f(int)", 2), row("g", 1)), report(row("_Z1fi", 2), row("g", 1))
        alias = compare.aliases(r, mangled, 7)
        self.assertEqual(compare.names_differ(["_Z1fi", "g"], r, 7, alias), ([], []))
        self.assertEqual(compare.names_differ(["_Z1gi", "g"], r, 7, alias), (["_Z1gi"], ["f(int)"]))
        same = [{"kernel": "_Z1fi", "grid": [1, 1, 1], "block": [32, 1, 1], "calls": 2},
                {"kernel": "g", "grid": [1, 1, 1], "block": [32, 1, 1], "calls": 1}]
        self.assertEqual(compare.shapes_differ(same, r, 7, alias), [])

    def test_shapes(self):
        e = {"kernel": "a", "grid": [1, 1, 1], "block": [32, 1, 1], "calls": 3, "smem": 0,
             "stream": "0x10"}
        self.assertEqual(compare.shapes_differ([e], report(row("a", 3)), 7), [])
        self.assertEqual(len(compare.shapes_differ([e], report(row("a", 2)), 7)), 1)
        self.assertEqual(len(compare.shapes_differ([e], report(row("a", 3, (1, 1, 2))), 7)), 2)
        for wrong in ({"smem_bytes": 16}, {"stream": "0x11"}, {"stream": None}):
            self.assertEqual(len(compare.shapes_differ([e], report(row("a", 3, **wrong)), 7)), 1)

    def test_sync_leaves_copies_out(self):
        rows = [{"pid": 7, "kind": "sync", "total_ns": 30, "waits": 2},
                {"pid": 7, "kind": "copy", "total_ns": 99, "waits": 1}]
        self.assertEqual(compare.sync_ns({"rows": rows}, 7), (30, 2))

    def test_copies_by_direction(self):
        rows = [{"pid": 7, "direction": "HtoD", "bytes": 8}, {"pid": 7, "direction": "DtoH",
                                                             "bytes": None}]
        self.assertEqual(compare.copied({"rows": rows}, 7, "HtoD"), 8)
        self.assertEqual(compare.copied({"rows": rows}, 7, "DtoH"), 0)

    def test_quality(self):
        quality = report()["quality"]
        self.assertEqual(compare.losses(quality), {"name": 2})
        self.assertTrue(compare.covers(quality, 10, 90))
        self.assertFalse(compare.covers(quality, 9, 90))


class Profile(unittest.TestCase):
    def test_what_is_counted(self):
        shape = {"grid": [2, 1, 1], "block": [64, 1, 1]}
        found = profile_counts.count([
            {"cat": "kernel", "name": "f", "args": shape, "ts": 9.5, "dur": 1.504},
            {"cat": "kernel", "name": "f", "args": shape, "ts": 2.25, "dur": 2},
            {"cat": "gpu_memset", "name": "Memset", "ts": 4, "dur": 1},
            {"cat": "cuda_driver", "name": "cuLaunchKernel"},
            {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}, {"name": "no category"}])
        self.assertEqual(found["busy_ns"], 2750 + 1504)
        self.assertEqual(found["kernels"], {"f": 2})
        self.assertEqual(found["apis"], {"cuLaunchKernel": 1, "cudaLaunchKernel": 1})
        self.assertEqual(found["shapes"], [["f", [2, 1, 1], [64, 1, 1], 2]])
        self.assertEqual(found["sequence"], [("f", 2000), ("f", 1504)])


class Checks(unittest.TestCase):
    def test_a_step_by_the_profiler(self):
        profile = {"steps": 5, "kernels": {"a": 5, "b": 10}, "apis": {
            "cudaLaunchKernel": 10, "cuLaunchKernelEx": 5, "cudaMemcpyAsync": 5}}
        self.assertEqual(checks.per_step(profile), {"kernels": 3, "graphs": 0, "by_api": 3})
        profile["apis"] = {"cudaGraphLaunch": 5}
        self.assertEqual(checks.per_step(profile), {"kernels": 0, "graphs": 1, "by_api": 0})
        profile["kernels"]["b"] = 11
        profile["apis"] = {"cudaLaunchKernelExC": 15}
        self.assertEqual(checks.per_step(profile), {"kernels": 3, "graphs": 0, "by_api": 3})
        profile["apis"] = {}
        self.assertRaises(Exception, checks.per_step, profile)

    def test_reasons_are_summed_up(self):
        rows = [{"image": "/x/libcuda.so.1", "api": f"cu{i}", "reason": "slow"} for i in range(7)]
        found = checks.summarised(rows + [{"image": None, "api": None, "reason": "none"}])
        self.assertEqual(found["libcuda.so.1: slow"][0], 7)
        self.assertEqual(len(found["libcuda.so.1: slow"][1]), 5)

    def test_doctors_numbers_are_found_anywhere(self):
        text = 'gbpf: note\n{"cost": {"pair_ns": 12, "x": 3}, "launch_ns": 7}\n'
        self.assertEqual(plan.calibrated(text), {"cost.pair_ns": 12, "launch_ns": 7})
        self.assertEqual(plan.calibrated("gbpf: unknown"), {})

    def test_names_of_checks_are_unique(self):
        names = [e.name for e in plan.PLAN]
        self.assertEqual(len(names), len(set(names)))


class Stepping:
    """A job whose machine gets slower with every slice that any job runs."""

    clock = 0

    def __init__(self, base, drift):
        self.base, self.drift = base, drift

    def ask(self, text):
        assert text == "steps 9"
        Stepping.clock += 1
        return {"step_p50_ns": self.base + self.drift * Stepping.clock}


class Residue(unittest.TestCase):
    SMAPS = """\
7f00-7f10 r-xp 00000000 08:01 12   /a b/libcuda.so.1
Rss:      900 kB
Anonymous:        8 kB
7f10-7f20 rw-p 00010000 08:01 12   /a b/libcuda.so.1
Anonymous:       64 kB
7f20-7f30 r-xp 00000000 08:01 13   /a/libcudart.so.13 (deleted)
Anonymous:        4 kB
7f30-7f40 r-xp 00000000 08:01 14   /a/libtorch_cuda.so
Anonymous:       16 kB
7f40-7f50 rwxp 00000000 00:00 0
Anonymous:       32 kB
"""

    def ratios(self, a, b, drift):
        jobs = {"a": Stepping(a, drift), "b": Stepping(b, drift)}
        return residue.phase(jobs, 9, 20, float("inf"))

    def test_only_changed_code_of_cuda_counts(self):
        self.assertEqual(residue.changed_kib(self.SMAPS), 12)
        self.assertEqual(residue.changed_kib(""), 0)

    def test_drift_cancels_out_and_a_slower_job_shows(self):
        before, same = self.ratios(1000, 1000, 7), self.ratios(1000, 1000, 7)
        slower = self.ratios(1000, 1100, 0)
        self.assertEqual([set(before), set(same)], [{1.0}, {1.0}])
        check = Check("c", Setting("gbpf", "/nowhere", "/nowhere"))
        self.assertEqual(residue.report(check, before, same)["high"], 1.0)
        self.assertAlmostEqual(residue.report(check, before, slower)["low"], 1.1)
        self.assertEqual(check.measures[-1]["n"], 20)

    def test_too_few_pairs_are_no_answer(self):
        jobs = {"a": Stepping(1000, 0), "b": Stepping(1000, 0)}
        self.assertRaises(Exception, residue.phase, jobs, 9, 20, 0)

    def test_both_orders_come(self):
        rng = residue.random.Random(1)
        self.assertEqual({residue.order_of(rng) for _ in range(50)}, {"abba", "baab"})

    def control(self, during_a, during_b):
        check = Check("c", Setting("gbpf", "/nowhere", "/nowhere"))
        residue.verify_control(check, {"a": 4, "b": 4}, {"a": during_a, "b": during_b},
                               {"a": 4, "b": 4})
        return [ok for _, ok, _ in check.results]

    def test_a_control_that_was_touched_is_none(self):
        self.assertEqual(self.control([4, 4], [8, 12]), [True, True])
        self.assertEqual(self.control([4, 8], [8, 12]), [True, False])
        self.assertEqual(self.control([4, 4], [8, 4]), [False, True])


class Results(unittest.TestCase):
    def made(self):
        check = Check("c", Setting("gbpf", "/nowhere", "/nowhere"))
        check.results = [("good", True, ""), ("bad", False, "a|b\nc")]
        check.measures = [{"what": "w", "value": 1.5, "unit": "×", "low": 1, "high": 2, "n": 3}]
        check.notes = {"not hooked": {"libx: slow": [3, ["f"]]}, "hooked": {
            "functions, files": [144, 2], "attach_s": 0.5, "stop_s": 0.1, "events": 600}}
        other = Check("d", check.setting)
        other.skipped = "no nvcc"
        return [check, other]

    def test_counts(self):
        self.assertEqual(results.count(self.made()), (1, 1, 1))

    def test_files(self):
        with tempfile.TemporaryDirectory() as d:
            results.write(d, {"gpu": "none"}, self.made())
            with open(os.path.join(d, "report.md"), encoding="utf-8") as f:
                text = f.read()
            self.assertEqual(sorted(os.listdir(d)), ["report.md", "results.json"])
        self.assertIn("| w | 1.5 × | 1 – 2 | 3 |", text)
        self.assertIn("| c | bad | **FAIL** | a\\|b c |", text)
        self.assertIn("| c | [144, 2] | 0.5 | 0.1 | 600 | 3 libx: slow |", text)
        self.assertIn("| d | | skipped | no nvcc |", text)
        self.assertIn("1 passed, 1 failed, 1 skipped", text)


if __name__ == "__main__":
    unittest.main()
