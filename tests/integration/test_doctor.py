# SPDX-License-Identifier: BSD-2-Clause
"""gbpf doctor against what binutils, /proc and the simulated job say themselves."""
import contextlib
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import gbpf
import pytest

pytestmark = [pytest.mark.root, pytest.mark.parallel]
IDLE = ["--iterations", 1, "--hold", "--truth-mib", 0]  # for who only looks
# thousands of calls a second, and most of the time asleep
STEADY = ["--pattern", "train", "--iterations", 10**9, "--kernel-ns", 20000, "--wait", "sleep"]


def doctor(*args, status=0, **kwargs):
    done = gbpf.gbpf("doctor", "--format", "json", *args, **kwargs)
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def image(found, name):
    return next(i for i in found["process"]["images"] if pathlib.Path(i["path"]).name == name)


# ---- what others say about the same files ----


def exports(lib):
    """{name: address} of the functions that a library defines and exports."""
    done = gbpf.run("nm", "-D", "--defined-only", "--without-symbol-versions", lib)
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3 and row[1] in "TW"}


def symbols(lib):
    """The same of every symbol in .symtab."""
    done = gbpf.run("nm", "--defined-only", lib)
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3 and row[1] in "tTW"}


def file_offset(lib):
    done = gbpf.run("readelf", "-lW", lib)
    loads = [
        [int(word, 16) for word in line.split()[1:5]]
        for line in done.stdout.splitlines() if line.strip().startswith("LOAD")
    ]

    def convert(address):
        for offset, start, _, size in loads:
            if start <= address < start + size:
                return address - start + offset
        raise AssertionError(hex(address))

    return convert


def build_id(lib):
    text = gbpf.run("readelf", "-nW", lib).stdout
    return re.search(r"Build ID: (\w+)", text)[1]


# ---- the machine ----


def test_machine():
    found = doctor()
    assert found["ok"] and found["trouble"] is None and found["process"] is None
    assert found["kernel"]["release"] == os.uname().release
    assert found["kernel"]["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert found["kernel"]["ring_bytes"] >= 1 << 16
    works = [r["rung"] for r in found["rungs"] if r["result"] == "ok"]
    assert [r["rung"] for r in found["rungs"] if r["used"]] == works[:1]
    assert "perf_event" in works
    assert all((r["result"] == "ok") == (r["reason"] is None) for r in found["rungs"])
    checks = {c["check"]: c["result"] for c in found["checks"]}
    needed = {"machine", "btf", "host_pids", "attach", "events", "process_notices",
              "mapping_notices"}
    assert needed <= set(checks)
    assert {checks[c] for c in needed} == {"ok"}
    assert all(found["cost"][k] > 0 for k in ("begin_ns", "pair_ns", "launch_ns"))


def test_the_rungs_are_those_that_trace_can_use(tmp_path):
    works = {r["rung"]: r["result"] == "ok" for r in doctor()["rungs"]}
    names = {"session": "uprobe.session", "multi": "uprobe.multi", "single": "perf_event"}
    for rung in gbpf.RUNGS:
        done, *_ = gbpf.trace_job(tmp_path, "--iterations", 1, rung=rung, api="cuLaunchKernel")
        assert (done.returncode == 0) == works[names[rung]], done.stderr


def test_in_a_pid_namespace_of_its_own():
    done = gbpf.run("unshare", "--pid", "--fork", gbpf.GBPF, "doctor", "-f", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["trouble"] == "host's process ids"
    checks = {c["check"]: c for c in found["checks"]}
    assert checks["host_pids"]["result"] == "no" and "--pid=host" in checks["host_pids"]["advice"]
    # what is tried on itself says nothing there
    assert checks["return_probes"]["result"] == "not_tried"


def test_table_fits_and_says_the_same(tmp_path):
    with gbpf.job(tmp_path, *STEADY) as job:
        done = gbpf.gbpf("doctor", "-p", job.pid)
    assert done.returncode == 0 and done.stderr == ""
    for line in done.stdout.split("\n"):
        assert len(line) <= 80 or re.search(r"\S{50}$", line), line  # a path stays whole
    assert re.search(r"^  ok +perf_event +loads and attaches", done.stdout, re.M)
    assert re.search(r"^  ok +CAP_BPF ", done.stdout, re.M)
    assert re.search(r"entry and return +[\d.]+ [nµ]s\n", done.stdout)
    assert re.search(r"^  ok +hooked +(\d+) of \1 functions asked for$", done.stdout, re.M)
    measured = re.search(r"slowdown by gbpf trace +[\d.]+ % expected", done.stdout)
    assert bool(measured) == bool(re.search(r"^  ok +uprobe\.", done.stdout, re.M))
    assert done.stdout.endswith("\ngbpf trace works here.\n")


# ---- images ----


@pytest.mark.parametrize("lib", ["lib", "lib-endbr", "lib-stripped"])
@pytest.mark.parametrize("name", ["libcuda.so.1", "libcudart.so.13"])
def test_every_offset(tmp_path, lib, name):
    path = gbpf.SIM / lib / name
    with gbpf.job(tmp_path, *IDLE, "--api", "runtime", lib=lib) as job:
        gbpf.wait_until(lambda: name in pathlib.Path(f"/proc/{job.pid}/maps").read_text())
        found = image(doctor("-p", job.pid, "--api", "all", "--no-attach"), name)
    functions, convert = exports(path), file_offset(path)
    skip = 4 if lib == "lib-endbr" else 0
    assert len(found["hooked"]) > 100
    for site in found["hooked"]:
        assert site["offset"] == convert(functions[site["api"]]) + skip, site
    text = path.read_bytes()
    assert {text[s["offset"]] for s in found["hooked"]} <= set(range(0x50, 0x58)) | {0xE9}
    for site in found["not_hooked"]:
        assert site["api"] in functions and site["reason"]
    names = {s["api"] for s in found["hooked"]} | {s["api"] for s in found["not_hooked"]}
    assert {"cuLaunchKernel", "cuCtxSynchronize"} <= names or "cudaLaunchKernel" in names
    assert found["build_id"] == build_id(path)
    assert found["inode"] == path.stat().st_ino and found["device"] == path.stat().st_dev
    assert found["version"] == name.split(".so.")[1] and found["trouble"] is None
    assert found["path"] == str(path) and not found["deleted"]


@pytest.mark.parametrize("api", [
    pytest.param("driver", marks=pytest.mark.long), "runtime", "cuLaunchKernel,cuMemAlloc_v2"])
def test_it_names_what_trace_hooks(tmp_path, api):
    with gbpf.job(tmp_path, *STEADY, "--api", "runtime") as job:
        recording = tmp_path / "t.gbpf"
        args = ["-q", "-d", 0.1, "--api", api, "-p", job.pid]
        assert gbpf.gbpf("trace", *args, "-o", recording).returncode == 0
        found = doctor("-p", job.pid, "--api", api, "--no-attach")
    named = {s["api"] for i in found["process"]["images"] for s in i["hooked"]}
    mapped = set(exports(gbpf.SIM / "lib/libcuda.so.1")) | set(
        exports(gbpf.SIM / "lib/libcudart.so.13"))
    assert named == gbpf.hooked(recording) & mapped and named


def test_functions_that_would_be_stepped(tmp_path):
    with gbpf.job(tmp_path, *STEADY, lib="lib-sub") as job:
        found = doctor("-p", job.pid, status=1)
        text = gbpf.gbpf("doctor", "-p", job.pid, "-v").stdout
    driver = image(found, "libcuda.so.1")
    assert driver["hooked"] == [] and len(driver["not_hooked"]) > 100
    assert all(re.search(r"\bsub\b.*single-stepped", s["reason"]) for s in driver["not_hooked"])
    assert found["trouble"] == "hooked" and "--allow-slow-probes" in driver["trouble"]
    assert not found["process"]["rate"]["measured"]
    assert re.search(rf"not hooked +{len(driver['not_hooked'])} functions, such as cu", text)
    assert re.search(r"^ +cuLaunchKernel: not hooked, .*\bsub\b", text, re.M)


@pytest.mark.parametrize("stripped", [False, True])
def test_a_runtime_linked_in(tmp_path, monkeypatch, stripped):
    program = gbpf.SIM / ("simjob-static-stripped" if stripped else "simjob-static")
    monkeypatch.setattr(gbpf, "JOB", str(program))
    with gbpf.job(tmp_path, *IDLE, "--api", "runtime") as job:
        found = doctor("-p", job.pid, "--api", "runtime", "--no-attach")
    inside = image(found, program.name)
    assert inside["kind"] == "static_runtime"
    assert image(found, "libcuda.so.1")["hooked"]
    if stripped:
        assert inside["hooked"] == [] and "stripped" in inside["trouble"]
        return
    functions, convert = symbols(program), file_offset(program)
    assert "cudaLaunchKernel" in {s["api"] for s in inside["hooked"]}
    for site in inside["hooked"]:
        assert site["offset"] == convert(functions[site["api"]]), site


MAPPER = """
import mmap, os, sys, time
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    keep = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    globals().setdefault("kept", []).append(keep)
print("ready", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def mapping(*paths, **kwargs):
    """A process that maps these files as if they were libraries."""
    command = [sys.executable, "-c", MAPPER, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **kwargs) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_files_that_are_not_for_this_machine(tmp_path):
    real = (gbpf.SIM / "lib/libcuda.so.1").read_bytes()
    (tmp_path / "a").mkdir()
    arm, text = tmp_path / "a/libcuda.so.1", tmp_path / "libcudart.so.13"
    arm.write_bytes(real[:18] + (183).to_bytes(2, "little") + real[20:])
    text.write_bytes(b"no ELF at all" * mmap.PAGESIZE)
    with mapping(arm, text) as process:
        found = doctor("-p", process.pid, status=1)
    foreign = image(found, "libcuda.so.1")
    assert foreign["hooked"] == [] and len(foreign["not_hooked"]) > 100
    assert all("arm64" in s["reason"] for s in foreign["not_hooked"])
    assert "no x86-64 ELF" in image(found, "libcudart.so.13")["trouble"]


def test_other_tools_and_hostile_names(tmp_path):
    evil = tmp_path / "a\x1b[2J\n\"<b>\u202e"
    evil.mkdir()
    cupti, lib = evil / "libcupti.so.13", evil / "libcuda.so.1"
    cupti.write_bytes(b"x" * mmap.PAGESIZE)
    shutil.copy(gbpf.SIM / "lib/libcuda.so.1", lib)
    env = dict(os.environb)
    env.update({b"CUDA_INJECTION64_PATH": b"/x\x1b]0;\xff\x07", b"NSYS_A": b"1",
                b"SECRET": b"password"})
    with mapping(cupti, lib, env=env) as process:
        found = doctor("-p", process.pid, "--no-attach")
        table = gbpf.gbpf("doctor", "-v", "--no-attach", "-p", process.pid).stdout
    assert found["process"]["profiling_libraries"] == [str(cupti)]
    assert image(found, "libcuda.so.1")["path"] == str(lib)
    variables = {v.split("=")[0]: v.split("=", 1)[1] for v in found["process"]["environment"]}
    assert variables["CUDA_INJECTION64_PATH"].startswith("/x\x1b]0;\ufffd")
    assert variables["NSYS_A"] == "1" and "SECRET" not in variables
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", table)
    assert "password" not in table and "libcupti.so.13" in table


def test_a_deleted_library(tmp_path):
    shutil.copytree(gbpf.SIM / "lib", tmp_path / "lib")
    with gbpf.job(tmp_path, *IDLE, "--lib", tmp_path / "lib") as job:
        gbpf.wait_until(lambda: "libcuda" in pathlib.Path(f"/proc/{job.pid}/maps").read_text())
        shutil.rmtree(tmp_path / "lib")
        driver = image(doctor("-p", job.pid, "--no-attach"), "libcuda.so.1")
    assert driver["deleted"] and len(driver["hooked"]) > 100


def test_another_tracer_and_nothing_left_behind(tmp_path):
    with gbpf.job(tmp_path, *STEADY) as job:
        assert image(doctor("-p", job.pid), "libcuda.so.1")["probed_by_others"] == 0
        assert image(doctor("-p", job.pid), "libcuda.so.1")["probed_by_others"] == 0
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", 60):
            driver = image(doctor("-p", job.pid, "--no-attach"), "libcuda.so.1")
            assert driver["probed_by_others"] == len(driver["hooked"])
        assert image(doctor("-p", job.pid), "libcuda.so.1")["probed_by_others"] == 0


# ---- processes ----


def test_who_it_is(tmp_path):
    with gbpf.job(tmp_path, *IDLE) as job:
        process = doctor("-p", job.pid, "--no-attach")["process"]
        stat = pathlib.Path(f"/proc/{job.pid}/stat").read_text()
    ticks = int(stat.rsplit(")", 1)[1].split()[19])
    assert process["start_ns"] == ticks * 10**9 // os.sysconf("SC_CLK_TCK")
    assert process["pid"] == process["ns_pid"] == job.pid and process["uid"] == os.geteuid()
    assert process["comm"] == "simjob" and process["command"].startswith(gbpf.JOB)
    assert process["seccomp"] is False and process["error"] is None


def test_no_cuda_and_no_process():
    with subprocess.Popen(["sleep", "600"]) as process:
        found = doctor("-p", process.pid)
        process.kill()
    assert found["ok"] and found["process"]["images"] == []
    done = gbpf.gbpf("doctor", "-p", process.pid)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(rf"gbpf: no process {process.pid}; .*\n", done.stderr)


def ended_while_probed(tmp_path):
    """What doctor tells of a job that ends as soon as its library holds a breakpoint."""
    tmp_path.mkdir()
    shutil.copytree(gbpf.SIM / "lib", tmp_path / "lib")
    lib = tmp_path / "lib/libcuda.so.1"
    with gbpf.job(tmp_path, *STEADY, "--lib", lib.parent) as job:
        gbpf.wait_until(lambda: str(lib) in pathlib.Path(f"/proc/{job.pid}/maps").read_text())
        command = [gbpf.GBPF, "doctor", "-f", "json", "-p", str(job.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            gbpf.wait_until(lambda: probed(lib) or running.poll() is not None)
            job.terminate()
            out, err = running.communicate()
    if running.returncode == 1:  # it had not begun to measure
        assert (out, err) == ("", f"gbpf: process {job.pid} has ended\n")
        return None
    assert running.returncode == 0 and err == ""
    return json.loads(out)


def test_a_process_that_ends_meanwhile(tmp_path):
    tries = (ended_while_probed(tmp_path / str(i)) for i in range(5))
    rate = next(found for found in tries if found)["process"]["rate"]
    assert not rate["measured"] and rate["why_not"] == "the process ended meanwhile"


def probed(lib):
    """Does a function of the library hold a breakpoint in memory?"""
    offset = file_offset(lib)(exports(lib)["cuLaunchKernel"])
    page = offset & -mmap.PAGESIZE
    with open(lib, "rb") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE,
                                            mmap.PROT_READ | mmap.PROT_EXEC, offset=page) as memory:
        return memory[offset - page] == 0xCC


def test_a_launcher(tmp_path):
    script = '"$@" & echo $!; wait'
    job = [gbpf.JOB, "--lib", gbpf.SIM / "lib", *IDLE, "--quiet"]
    with subprocess.Popen(["sh", "-c", script, "sh", *map(str, job)], text=True,
                          stdout=subprocess.PIPE) as launcher:
        child = int(launcher.stdout.readline())
        gbpf.wait_until(lambda: "libcuda" in pathlib.Path(f"/proc/{child}/maps").read_text())
        found = doctor("-p", launcher.pid)
        os.kill(child, signal.SIGTERM)
    assert found["process"]["images"] == [] and found["process"]["children_with_cuda"] == [child]


@pytest.mark.parametrize("args", [["-p", "x"], ["-p", "0"], ["-p", "-1"], ["-p", "4194305"],
                                  ["-p", "1,2"], ["--api", "cuNothing"], ["something"]])
def test_wrong_usage(args):
    done = gbpf.gbpf("doctor", *args)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("gbpf: ")


# ---- the rate of calls ----


def windows(calls, begin, end, width):
    """The fewest and the most calls in any window that lies in the time of the measurement."""
    entries = sorted(c.entry for c in calls if begin <= c.entry <= end)
    counts = [
        sum(start <= e < start + width for e in entries)
        for start in range(begin, end - width + 1, width // 20)
    ]
    return min(counts), max(counts)


@pytest.mark.parametrize("rung", ["session", pytest.param("multi", marks=pytest.mark.long)])
def test_rate_and_expected_slowdown(tmp_path, rung):
    steady = ["--pattern", "train", "--iterations", 10**9, "--cpu-ns", 200000, "--threads", 2]
    works = {r["rung"]: r["result"] == "ok" for r in doctor()["rungs"]}[f"uprobe.{rung}"]
    with gbpf.job(tmp_path, *steady) as job:
        time.sleep(0.3)
        begin = time.monotonic_ns()
        found = doctor("-p", job.pid, "--rung", rung, status=0 if works else 1)
        end = time.monotonic_ns()
    rate, cost = found["process"]["rate"], found["cost"]
    if not works:
        assert not rate["measured"] and "cannot be attached" in rate["why_not"]
        return
    hooked = {s["api"] for s in image(found, "libcuda.so.1")["hooked"]}
    truth = [c for c in gbpf.truths(tmp_path)[job.pid].calls if c.api in hooked]
    assert rate["measured"] and rate["lost"] == 0 and rate["threads"] == 2
    least, most = windows(truth, begin, end, rate["elapsed_ns"])
    assert 0.8 * least <= rate["calls"] <= 1.2 * most and rate["calls"] > 1000
    assert rate["calls_per_s"] == pytest.approx(rate["calls"] / rate["elapsed_ns"] * 1e9, rel=0.01)
    own = [c for c in truth if c.tid == rate["worst_tid"]]
    worst = rate["worst_calls_per_s"] * rate["elapsed_ns"] / 1e9
    least, most = windows(own, begin, end, rate["elapsed_ns"])
    assert 0.8 * least <= worst <= 1.2 * most and worst >= rate["calls"] / 2 * 0.99
    launch = [c for c in truth if c.api.startswith(("cuLaunchKernel", "cuGraphLaunch"))]
    least, most = windows(launch, begin, end, rate["elapsed_ns"])
    assert 0.8 * least <= rate["launches"] <= 1.2 * most
    ends = sorted([cost["pair_ns"], cost["launch_ns"]])
    assert 0.99 * worst * ends[0] <= rate["worst_cost_ns"] <= 1.01 * worst * ends[1]
    rest = rate["elapsed_ns"] - rate["worst_cost_ns"]
    percent = 100 * rate["worst_cost_ns"] / rest
    assert rate["expected_slowdown_percent"] == pytest.approx(percent, abs=0.01)
