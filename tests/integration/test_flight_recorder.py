# SPDX-License-Identifier: BSD-2-Clause
"""--keep and --trigger: what the files hold, against what the jobs wrote down."""
import contextlib
import json
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import compare
import gbpf
import pytest
import recordings
from gbpf import NO_BEGIN, NO_END, OPEN

pytestmark = [pytest.mark.root, pytest.mark.parallel]
SECOND = 1_000_000_000
SLOW = "max(cuStreamSynchronize) > 10ms over 1s"
STEADY = ["--rate", 1000, "--sync-every", 5, "--wait-us", 20000, "--wait", "sleep"]


@contextlib.contextmanager
def hiccup(tmp_path, *args):
    """A job with short syncs, and a long one whenever it gets SIGUSR1."""
    with gbpf.job(tmp_path, "--pattern", "hiccup", "--duration", 0, *STEADY, *args) as process:
        yield process


@contextlib.contextmanager
def recording(tmp_path, *args):
    with gbpf.tracing(tmp_path / "t.gbpf", "--keep", "1s", *args) as process:
        yield process


def files(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("t."))


def wait_for(path, timeout=30):
    gbpf.wait_until(path.exists, timeout)


def quality(path):
    done = gbpf.gbpf("report", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["quality"]


def window(path):
    (one,) = quality(path)["windows"]
    return one["begin_ns"], one["end_ns"]


def check_calls(path, truths):
    """Each call within the window is there, one by one, and is what happened; nothing else is."""
    begin, end = window(path)
    names, calls = gbpf.hooked(path), gbpf.calls(path)
    want, got = compare.expected(truths, names), compare.recorded(calls)
    assert want and not set(got) - set(want)
    checked = 0
    for thread, sequence in want.items():
        inside = [t for t in sequence if t.entry >= begin and t.leave and t.leave <= end]
        if not inside:
            continue
        # at the edges a call may be inside by our clock and not by the job's
        mine = [c for c in got.get(thread, ()) if not c["flags"] & (NO_BEGIN | OPEN)
                and inside[0].entry <= c["begin"] and c["end"] <= inside[-1].leave]
        assert not compare.same_sequence(inside, mine), compare.same_sequence(inside, mine)
        for truth, call in zip(inside, mine):
            compare.check_arguments(truth, call)
            compare.check_time(truth, call)
        assert len(got[thread]) <= len(inside) + 2
        checked += len(inside)
    for call in calls:
        assert begin <= call["begin"] and (call["flags"] & (OPEN | NO_END) or call["end"] <= end)
        if "grid" in call and not call["flags"] & NO_BEGIN:
            assert call["kernel"] and "@0x" not in call["kernel"], call
    assert not any(quality(path)["losses"].values())
    return checked


@pytest.mark.parametrize("rung", [
    pytest.param(rung, marks=[pytest.mark.long] * (rung != "auto"))
    for rung in ("auto", *gbpf.RUNGS)])
def test_a_slow_sync_is_caught_with_what_came_before(tmp_path, rung):
    with hiccup(tmp_path, "--threads", 2) as job:
        args = ["-p", job.pid, "--trigger", SLOW, "--trigger-after", "300ms", "--trigger-max", 1,
                "--rung", rung]
        if rung == "single":  # which takes a tenth of a second a function
            args += ["--api", "cuLaunchKernel,cuStreamSynchronize,cuModuleGetFunction"]
        with recording(tmp_path, *args) as tracer:
            time.sleep(1.7)  # what is loaded and named now is long gone from the rings
            job.send_signal(signal.SIGUSR1)
            tracer.wait(timeout=30)
        assert tracer.returncode == 0, tracer.err
        assert "holds" in tracer.err and SLOW in tracer.err
    assert files(tmp_path) == ["t.1.gbpf"]
    path, truths = tmp_path / "t.1.gbpf", gbpf.truths(tmp_path)
    begin, end = window(path)
    assert end - begin == 1_300_000_000
    (truth,) = truths.values()
    (mark,) = [n.begin for n in truth.notes if n.what == "mark"]
    assert begin < mark < end - 300_000_000
    assert check_calls(path, truths) > 1000
    # why it was written: the longest of the syncs within the trigger's time
    (why,) = quality(path)["triggers"]
    assert why["cause"] == "fired" and why["text"] == SLOW
    assert why["ts_ns"] == end - 300_000_000 and why["begin_ns"] >= why["ts_ns"] - SECOND
    inside = [c for c in gbpf.calls(path) if c["api"] == "cuStreamSynchronize"
              and not c["flags"] & (NO_BEGIN | OPEN)
              and why["begin_ns"] <= c["end"] < why["ts_ns"]]
    assert why["value"] == max(c["end"] - c["begin"] for c in inside) > 10_000_000
    assert why["calls"] == len(inside)
    shown = gbpf.gbpf("report", path).stdout
    assert re.search(r"Written because +" + re.escape(SLOW) + r": [\d.]+ ms", shown)
    assert "simjob" in shown
    assert gbpf.gbpf("diagnose", path).returncode == 0
    assert gbpf.gbpf("export", path, "-o", tmp_path / "t.pftrace").returncode == 0
    exported = (tmp_path / "t.pftrace").read_bytes()
    assert b"why this was written" in exported and SLOW.encode() in exported


def test_nothing_happens_and_nothing_is_written(tmp_path):
    starving = "p99(cuCtxSynchronize) > 1ns"
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid, "--trigger", "max(sync) > 10s", "--trigger",
                       starving, "-d", 1) as tracer:
            tracer.wait(timeout=30)
    assert tracer.returncode == 1
    assert "no trigger fired; nothing was written" in tracer.err
    assert f"'{starving}' needs 100 calls" in tracer.err
    assert tracer.out == "" and files(tmp_path) == []


def test_a_signal_asks_and_the_end_writes(tmp_path, monkeypatch):
    """Without triggers: numbered files on the way, and the file itself at Ctrl-C."""
    monkeypatch.setenv("SUDO_UID", "31001")  # who may not write here: root does it, and gives it
    monkeypatch.setenv("SUDO_GID", "31002")
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid) as tracer:
            time.sleep(0.4)
            for i in (1, 2):
                tracer.send_signal(signal.SIGUSR1)
                wait_for(tmp_path / f"t.{i}.gbpf")
                assert tracer.poll() is None
            time.sleep(1.2)
    assert tracer.returncode == 0, tracer.err
    assert files(tmp_path) == ["t.1.gbpf", "t.2.gbpf", "t.gbpf"]
    owners = {((tmp_path / f).stat().st_uid, (tmp_path / f).stat().st_gid) for f in files(tmp_path)}
    assert owners == {(31001, 31002)}
    truths = gbpf.truths(tmp_path)
    begins = []
    for name in files(tmp_path):
        begin, end = window(tmp_path / name)
        begins.append(begin)
        assert check_calls(tmp_path / name, truths) > 100
        cause = "end" if name == "t.gbpf" else "signal"
        assert [t["cause"] for t in quality(tmp_path / name)["triggers"]] == [cause]
        if name == "t.gbpf":
            assert end - begin == SECOND
        else:
            assert end - begin <= SECOND  # it had not run for so long
    assert begins[0] <= begins[1] < begins[2]
    assert "Traced " in tracer.out and "t.gbpf" in tracer.out


def test_nobody_is_overwritten_and_trouble_that_lasts_is_written_once(tmp_path):
    (tmp_path / "t.1.gbpf").write_text("of yesterday")
    (tmp_path / "t.3.gbpf").symlink_to("nowhere")
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid, "--keep-last", "--trigger", SLOW,
                       "--trigger-after", "100ms") as tracer:
            job.send_signal(signal.SIGUSR1)
            wait_for(tmp_path / "t.2.gbpf")
            job.send_signal(signal.SIGUSR1)  # while no trigger counts
            time.sleep(0.5)
            assert not (tmp_path / "t.4.gbpf").exists()
            time.sleep(1)
            job.send_signal(signal.SIGUSR1)
            wait_for(tmp_path / "t.4.gbpf")
    assert tracer.returncode == 0, tracer.err
    assert (tmp_path / "t.1.gbpf").read_text() == "of yesterday"
    assert files(tmp_path) == ["t.1.gbpf", "t.2.gbpf", "t.3.gbpf", "t.4.gbpf", "t.gbpf"]
    truths = gbpf.truths(tmp_path)
    for i in (2, 4):
        assert check_calls(tmp_path / f"t.{i}.gbpf", truths)


def test_what_was_first_long_ago_is_not_first(tmp_path):
    """From the first call on, but all of that is gone: nothing in the file is a cold start."""
    done = gbpf.gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", "--keep", "300ms", "--",
                     gbpf.JOB, "--quiet", "--lib", gbpf.SIM / "lib", "--truth",
                     tmp_path / "truth.%p", "--pattern", "train", "--cpu-ns", 300000,
                     "--duration", 1.5, env=gbpf.sim_env())
    assert done.returncode == 0, done.stderr
    path = tmp_path / "t.gbpf"
    assert check_calls(path, gbpf.truths(tmp_path)) > 100
    cold = gbpf.view(path, "cold_sum")
    assert cold["rows"] == []
    assert cold["quality"]["unseen"] == []


def test_the_end_does_not_wait_for_what_comes_after(tmp_path):
    """The job dies of what went wrong: the file is written, as far as it got."""
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid, "--trigger", SLOW, "--trigger-after",
                       "60s") as tracer:
            time.sleep(0.3)
            job.send_signal(signal.SIGUSR1)
            time.sleep(0.05)
            job.terminate()
            tracer.wait(timeout=30)
    assert tracer.returncode == 0, tracer.err
    assert files(tmp_path) == ["t.1.gbpf"]
    assert check_calls(tmp_path / "t.1.gbpf", gbpf.truths(tmp_path))
    (why,) = quality(tmp_path / "t.1.gbpf")["triggers"]
    assert why["cause"] == "fired"


def test_a_command_runs_on_after_the_last_file(tmp_path):
    args = ["trace", "-o", tmp_path / "t.gbpf", "--keep", "1s", "--trigger", SLOW,
            "--trigger-max", 1, "--trigger-after", "100ms", "--", gbpf.JOB, "--quiet",
            "--lib", gbpf.SIM / "lib", "--truth", tmp_path / "truth.%p", "--pattern",
            "hiccup", *STEADY, "--jump-after", 0.5, "--duration", 1.5]
    process = subprocess.Popen([gbpf.GBPF, *map(str, args)], env=gbpf.sim_env(),
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    wait_for(tmp_path / "t.1.gbpf")
    time.sleep(0.2)
    process.send_signal(signal.SIGUSR1)  # there is nothing to write any more
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert files(tmp_path) == ["t.1.gbpf"]
    truths = gbpf.truths(tmp_path)
    assert check_calls(tmp_path / "t.1.gbpf", truths)
    (truth,) = truths.values()
    assert max(c.leave for c in truth.calls) > window(tmp_path / "t.1.gbpf")[1] + SECOND / 2


def test_a_full_disk_costs_a_file_and_no_more(tmp_path):
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid) as tracer:
            time.sleep(0.3)
            hard = resource.prlimit(tracer.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(tracer.pid, resource.RLIMIT_FSIZE, (2000, hard))
            tracer.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            assert files(tmp_path) == []
            resource.prlimit(tracer.pid, resource.RLIMIT_FSIZE, (hard, hard))
            tracer.send_signal(signal.SIGUSR1)
            wait_for(tmp_path / "t.2.gbpf")
    assert tracer.returncode == 1
    assert f"{tmp_path}/t.1.gbpf was not written: File too large" in tracer.err
    assert files(tmp_path) == ["t.2.gbpf", "t.gbpf"]
    for name in files(tmp_path):
        assert check_calls(tmp_path / name, gbpf.truths(tmp_path))


def test_a_hang_is_what_does_not_happen(tmp_path):
    with hiccup(tmp_path) as job:
        with recording(tmp_path, "-p", job.pid, "--trigger", "count(launch) < 1 over 500ms",
                       "--trigger-after", 0, "--trigger-max", 1) as tracer:
            time.sleep(1)
            assert tracer.poll() is None
            job.send_signal(signal.SIGSTOP)
            stopped = time.monotonic_ns()
            tracer.wait(timeout=30)
            job.send_signal(signal.SIGCONT)
    assert tracer.returncode == 0, tracer.err
    begin, end = window(tmp_path / "t.1.gbpf")
    last = max(c["begin"] for c in gbpf.calls(tmp_path / "t.1.gbpf") if "grid" in c)
    assert begin < last < stopped < end and end - last >= 500_000_000
    assert check_calls(tmp_path / "t.1.gbpf", gbpf.truths(tmp_path))


@pytest.mark.parametrize("number", range(len(recordings.HOSTILE)))
def test_what_a_file_claims_is_made_printable(tmp_path, number):
    """Triggers of files that others made: any text, and numbers that make no sense."""
    path, why = tmp_path / "t.gbpf", recordings.HOSTILE[number]
    r = recordings.training(steps=3)
    for ts in (r.start + 500, r.start + 5, 0, 2**63 - 1):
        r.trigger(ts, why, 2**63 - 1 - ts, 2**62 + number, unit=number % 6, samples=2**64 - 1)
    r.trigger(r.start, why, 0, 0, cause=3 + number)
    r.write(path)
    shown = gbpf.gbpf("report", path)
    assert shown.returncode == 0 and shown.stdout.count("Written because") == 5
    assert all(c == "\n" or ord(c) >= 32 for c in shown.stdout)
    assert len(quality(path)["triggers"]) == 5
    assert gbpf.gbpf("export", path, "-o", tmp_path / "t.pftrace").returncode == 0


WRONG = [
    (["--trigger", "max(sync) > 1s"], "need --keep"),
    (["--keep", "1ms"], "--keep wants"),
    (["--keep", "30s", "--keep-size", "1"], "--keep-size wants"),
    (["--keep", "30s", "--trigger-max", "0"], "--trigger-max wants"),
    (["--keep", "30s", "--trigger-after", "1h", "--trigger", "max(sync) > 1s"], "--trigger-after"),
    (["--keep", "30s", "--keep-last"], "--keep-last"),
    (["--keep", "30s", "--trigger", "p99(sync) > 5"], "a time such as 5ms"),
    (["--keep", "30s", "--trigger", "p99(cuStreamSync) > 5ms"], "neither a function"),
    (["--keep", "30s", "--trigger", "max(cudaMalloc) > 5ms"], "--api"),
    (["--keep", "30s", "--entry-only", "--trigger", "max(sync) > 5ms"], "no return probes"),
    (["--keep", "30s", "--gpu-time"], "--gpu-time"),
    (["--keep", "30s", "--active", "5"], "--keep"),
    (["--keep", "30s", "-o", "x.pftrace"], "-o wants a .gbpf file"),
    (["--keep", "30s"] + 17 * ["--trigger", "max(sync) > 1s"], "more than 16"),
]


@pytest.mark.parametrize("args, part", WRONG)
def test_what_makes_no_sense_is_refused(args, part):
    done = gbpf.gbpf("trace", "-p", 1, *args)
    assert done.returncode == 2 and done.stdout == ""
    assert part in done.stderr.split("\n")[0], done.stderr


@contextlib.contextmanager
def arguments(tmp_path):
    """Calls whose arguments no compression helps with, and whose sizes are their numbers."""
    library = tmp_path / "libcuda.so.1"
    shutil.copy(gbpf.SIM / "lib" / "libcuda.so.1", library)
    process = subprocess.Popen([gbpf.BUILD / "tests/integration/arguments_target", library],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1]) // 1024


@pytest.mark.long
@pytest.mark.timeout(400)
def test_memory_stays_where_it_was_put(tmp_path):
    """More than --keep-size holds: the file begins where it can be whole, and is."""
    with arguments(tmp_path) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "--keep", "600s", "--keep-size", 16, "-p",
                          job.pid) as tracer:
            sizes = []
            for _ in range(30):
                time.sleep(1)
                sizes.append(resident(tracer.pid))
    assert tracer.returncode == 0, tracer.err
    assert "fit into 16.0 MiB: --keep-size gives more" in tracer.err
    # chunks and their headers, of which half a MiB may be names and gaps
    assert 12 << 20 <= (tmp_path / "t.gbpf").stat().st_size <= 16 << 20
    assert sizes[-1] - sizes[19] <= 4, sizes
    begin, end = window(tmp_path / "t.gbpf")
    assert end - begin < 25 * SECOND
    assert not any(quality(tmp_path / "t.gbpf")["losses"].values())
    numbers = [c["bytes"] for c in gbpf.calls(tmp_path / "t.gbpf")
               if not c["flags"] & NO_BEGIN]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] > 100000
