# SPDX-License-Identifier: BSD-2-Clause
"""gbpf trace --gpu-time: what the GPU did is in the recording, whole and at the right times,
in each way to get there; and who is in the way of it is respected."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import gbpf
import pytest
import works
from gbpf import GBPF, JOB, SIM

pytestmark = pytest.mark.root


def command(tmp_path, *job, options=(), env=(), **kwargs):
    """gbpf trace --gpu-time -- simjob …"""
    done = gbpf.run(GBPF, "trace", "-o", tmp_path / "t.gbpf", *works.OPTIONS, *options, "--",
                    JOB, "--quiet", "--lib", SIM / "lib", "--truth", tmp_path / "truth.%p", *job,
                    env={**gbpf.sim_env(), **dict(env)}, **kwargs)
    return done, works.Recorded(tmp_path / "t.gbpf"), gbpf.truths(tmp_path)


def happened(recording, *events):
    """Does the recording, not finished yet, tell of one of these?"""
    part = pathlib.Path(f"{recording}.part")
    return part.exists() and any(works.Recorded(part).of(event) for event in events)


BEGUN = ("began", "refused", "failed")


def attach(tmp_path, *how, seconds=0.7, until=BEGUN):
    """Recorded until something has happened, and so long after that."""
    recording = tmp_path / "t.gbpf"
    with gbpf.tracing(recording, *how, "-d", "0", *works.OPTIONS) as tracing:
        gbpf.wait_until(lambda: happened(recording, *until) or tracing.poll() is not None)
        time.sleep(seconds)
    done = subprocess.CompletedProcess(how, tracing.returncode, tracing.out, tracing.err)
    return done, works.Recorded(recording)


def alone_with_its_directory():
    return {p for d in ("/tmp", "/dev/shm") for p in pathlib.Path(d).glob("gbpf-??????")
            if (p / "libgbpf-cupti.so").exists()}


# ---- a command ----


@pytest.mark.parametrize("options", [(), ("--cupti-calls",)], ids=["numbers", "calls"])
def test_a_command_with_threads_and_children(tmp_path, options):
    before = alone_with_its_directory()
    done, rec, truths = command(tmp_path, "--iterations", "3", "--threads", "3", "--children", "2",
                                options=options)
    assert done.returncode == 0, done.stderr
    assert len(truths) == 3
    for one in truths.values():
        assert works.check_process(rec, one) == len(one.work) > 200
        assert bool(works.check_calls(rec, one)) == bool(options)
    assert bool(rec.calls) == bool(options)
    assert not rec.of("refused") and not rec.of("dropped") and not rec.of("bad")
    assert {d["name"] for d in rec.devices} == {"Simulated H200"}
    assert "Sidecar            3 processes" in done.stdout
    assert alone_with_its_directory() == before


@pytest.mark.parametrize("pattern", [
    "graph", pytest.param("copy", marks=pytest.mark.long),
    pytest.param("train", marks=pytest.mark.long)])
@pytest.mark.parametrize("api", [
    "runtime", pytest.param("driver", marks=pytest.mark.long)])
def test_every_form_of_work(tmp_path, pattern, api):
    done, rec, truths = command(tmp_path, "--pattern", pattern, "--iterations", "3", "--api", api,
                                options=("--cupti-calls",))
    assert done.returncode == 0, done.stderr
    (one,) = truths.values()
    assert works.check_process(rec, one) == len(one.work) > 30
    assert works.check_calls(rec, one)


def test_a_forked_child_is_left_alone(tmp_path):
    done, rec, truths = command(tmp_path, "--pattern", "fork", "--iterations", "2")
    assert done.returncode == 0
    child = next(pid for pid in truths if rec.of("refused", pid))
    parent = next(pid for pid in truths if pid != child)
    assert works.check_process(rec, truths[parent]) == len(truths[parent].work)
    assert not [w for w in rec.works if w["pid"] == child]
    assert f"no GPU time of process {child}: it uses CUDA and has not loaded" in done.stderr


def test_an_injection_library_of_the_users_own_stays(tmp_path):
    out = tmp_path / "theirs"
    done, rec, _ = command(tmp_path, "--iterations", "2", env={
        "CUDA_INJECTION64_PATH": str(SIM / "cupti_client.so"), "SIMCLIENT_OUT": str(out)})
    assert done.returncode == 0
    assert "no GPU time: CUDA_INJECTION64_PATH is set" in done.stderr
    assert [e["pid"] for e in rec.of("refused")] == [0] and not rec.works
    assert '"kind": "kernel"' in out.read_text()


@pytest.mark.long
def test_a_window_ends_by_itself(tmp_path):
    done, rec, truths = command(tmp_path, "--pattern", "steady", "--rate", "1000", "--duration",
                                "2", options=("--gpu-window", "0.3"))
    assert done.returncode == 0
    (one,) = truths.values()
    begin, end = rec.window(one.pid)
    assert 0.3e9 <= end - begin < 1.2e9
    assert 0 < works.check_process(rec, one) < len(one.work)


@pytest.mark.long
def test_who_comes_after_the_end_does_not_wait(tmp_path):
    """The command goes on when the recording is over; its next processes begin at once."""
    late = " ".join(map(str, [JOB, "--quiet", "--lib", SIM / "lib", "--truth",
                              tmp_path / "truth.%p", "--iterations", "2"]))
    done = gbpf.run(GBPF, "trace", "-d", "2", "-o", tmp_path / "t.gbpf", *works.OPTIONS, "--",
                    "sh", "-c", f"{late}; sleep 3; {late}", env=gbpf.sim_env())
    assert done.returncode == 0, done.stderr
    first, last = sorted(gbpf.truths(tmp_path).values(), key=lambda one: one.calls[0].entry)
    assert first.work[0].correlation and not any(w.correlation for w in last.work)
    assert next(c for c in last.calls if c.api == "cuInit").ns < 500_000_000


def test_no_gpu_process_is_said(tmp_path):
    done = gbpf.run(GBPF, "trace", "-o", tmp_path / "t.gbpf", "--gpu-time", "--", "true")
    assert done.returncode == 0
    assert "no GPU time: no process called CUDA while it was recorded" in done.stderr


# ---- a process that runs ----

STEADY = ("--pattern", "steady", "--rate", "2000", "--duration", "0")


def test_a_running_process(tmp_path):
    with gbpf.job(tmp_path, *STEADY, "--threads", "2") as job:
        done, rec = attach(tmp_path, "-p", job.pid, "--cupti-calls")
        assert job.poll() is None
    assert job.returncode == 0
    assert done.returncode == 0, done.stderr
    one = gbpf.truths(tmp_path)[job.pid]
    assert works.check_process(rec, one) > 500
    assert 0 < works.check_calls(rec, one) < len(one.work)
    assert rec.of("attached")[0]["count"] > 0
    assert "stopped" in done.stdout


@pytest.mark.long
def test_a_process_is_visited_again(tmp_path):
    with gbpf.job(tmp_path, *STEADY) as job:
        for _ in range(2):
            done, rec = attach(tmp_path, "-p", job.pid, seconds=0.5)
            assert done.returncode == 0, done.stderr
            assert len(rec.of("ended", job.pid)) == 1, (rec.events, done.stderr)
            time.sleep(1)  # for its sidecar to leave CUPTI
    assert job.returncode == 0
    assert works.check_process(rec, gbpf.truths(tmp_path)[job.pid]) > 100


def test_doctor_says_whether_it_can_be_had(tmp_path):
    def said(job):
        done = gbpf.gbpf("doctor", "-f", "json", "--no-attach", "-p", job.pid)
        return json.loads(done.stdout)["process"]["gpu_time"]

    with gbpf.job(tmp_path, *STEADY, "--profiler", "idle") as job:
        found = said(job)
    assert found["possible"] and found["libcupti"] == str(works.CUPTI)
    assert found["libcupti_soname"] == "libcupti.so.13"
    env = {**gbpf.sim_env(), "CUDA_INJECTION64_PATH": "/theirs.so"}
    with gbpf.job(tmp_path, *STEADY, env=env) as job:
        found = said(job)
        done, rec = attach(tmp_path, "-p", job.pid, seconds=0)
    assert not found["possible"] and "CUDA_INJECTION64_PATH=/theirs.so" in found["text"]
    assert "/theirs.so: another profiler is in it" in done.stderr
    assert len(rec.of("refused", job.pid)) == 1


# ---- other profilers ----


def profiled(tmp_path, *how, after, until=BEGUN):
    """A job with a profiler of its own, that gbpf is attached to."""
    with gbpf.job(tmp_path, *STEADY, "--profiler", *how) as job:
        time.sleep(after)
        done, rec = attach(tmp_path, "-p", job.pid, until=until)
    assert job.returncode == 0, "the guard of the simulated CUPTI aborts who was harmed"
    assert done.returncode == 0, done.stderr
    one = gbpf.truths(tmp_path)[job.pid]
    return done, rec, {n.what: n for n in one.notes}


@pytest.mark.parametrize("kind", [
    "old", pytest.param("new", marks=pytest.mark.long),
    pytest.param("slot", marks=pytest.mark.long)])
def test_another_profiler_was_first(tmp_path, kind):
    done, rec, notes = profiled(tmp_path, kind, after=0.3)
    assert len(rec.of("refused")) == 1 and not rec.works
    assert "no GPU time of process" in done.stderr
    if kind != "slot":
        assert notes["profiled"].value > 500


@pytest.mark.parametrize("kind", [pytest.param("old", marks=pytest.mark.long), "new"])
def test_another_profiler_begins(tmp_path, kind):
    done, rec, notes = profiled(tmp_path, kind, "--profiler-start", "3", after=0,
                                until=("withdrew", "refused", "failed"))
    assert len(rec.of("withdrew")) == 1, (rec.events, done.stderr)
    assert "another profiler has begun" in done.stderr and "called cupti" in done.stderr
    assert rec.works, "what came before is kept"
    assert "profiled" in notes, "theirs ran to its end"
    withdrew = rec.of("withdrew")[0]["ts"]
    assert not [w for w in rec.works if w["begin"] > withdrew]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["old", "new"])
def test_a_profile_taken_after_the_window_is_whole(tmp_path, kind):
    begin = time.monotonic()
    with gbpf.job(tmp_path, *STEADY, "--profiler", kind, "--profiler-start", "6") as job:
        done, rec = attach(tmp_path, "-p", job.pid)
        time.sleep(max(0, begin + 8 - time.monotonic()))
    assert job.returncode == 0 and done.returncode == 0, done.stderr
    assert len(rec.of("ended")) == 1
    one = gbpf.truths(tmp_path)[job.pid]
    note = next(n for n in one.notes if n.what == "profiled")
    within = [w for w in one.work if w.enqueued > note.begin + 10_000_000 and w.end < note.end]
    assert note.value >= len(within) > 500, (note, len(within))


# ---- ends ----


def test_gbpf_is_killed(tmp_path):
    """The job goes on, its sidecar stops, and nothing stays in the file system."""
    before = alone_with_its_directory()
    log = tmp_path / "cupti.log"
    trace = subprocess.Popen(
        [GBPF, "trace", "-q", "-o", tmp_path / "t.gbpf", *map(str, works.OPTIONS), "--", JOB,
         "--quiet", "--lib", SIM / "lib", *STEADY[:-1], "2"],
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**gbpf.sim_env(), "SIMCUPTI_LOG": str(log)})
    gbpf.wait_until(lambda: log.exists() and "cuptiActivityFlushAll" in log.read_text())
    assert alone_with_its_directory() - before
    trace.kill()
    trace.wait()
    gbpf.wait_until(lambda: not alone_with_its_directory() - before)
    lines = log.read_text().splitlines()
    on = {line.split()[3] for line in lines if " cuptiActivityEnable " in line}
    off = {line.split()[3] for line in lines if " cuptiActivityDisable " in line}
    assert on and on == off


def test_the_job_is_killed(tmp_path):
    """What was in the ring by then is in the file."""
    with contextlib.ExitStack() as stack:
        job = stack.enter_context(gbpf.job(tmp_path, *STEADY))
        tracing = stack.enter_context(
            gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", "0", *works.OPTIONS))
        gbpf.wait_until(lambda: happened(tmp_path / "t.gbpf", *BEGUN))
        time.sleep(0.7)
        os.kill(job.pid, signal.SIGKILL)
        gbpf.wait_until(lambda: tracing.poll() is not None)
    assert tracing.returncode == 0, tracing.err
    rec = works.Recorded(tmp_path / "t.gbpf")
    assert len(rec.of("gone", job.pid)) == 1
    truth = {(w.told, w.begin) for w in gbpf.truths(tmp_path)[job.pid].work}
    assert len(rec.works) > 300
    ids = {c for c, _ in truth}
    assert all(w["correlation"] in ids for w in rec.works)


# ---- what can be odd ----


@pytest.mark.long
@pytest.mark.parametrize("ppm, offset", [(50, 0), (-20, 10**9), (0, 7000), (400, 0)])
def test_a_clock_of_cuptis_own(tmp_path, ppm, offset):
    """Times are within the stated bound, whatever that clock does."""
    done, rec, truths = command(tmp_path, "--pattern", "steady", "--rate", "1000", "--duration",
                                "1.5", env={"SIMCUPTI_DRIFT_PPM": str(ppm),
                                            "SIMCUPTI_OFFSET_NS": str(offset)})
    assert done.returncode == 0
    (one,) = truths.values()
    assert works.check_process(rec, one) == len(one.work) > 500
    assert rec.error(one.pid) < 1_000_000


@pytest.mark.long
@pytest.mark.parametrize("fault, event, text", [
    ("START0", "bad", "a time was zero"), ("END0", "bad", "a time was zero"),
    ("NEGATIVE", "bad", "the end came before the beginning"),
    ("DROP", "dropped", "CUPTI's own buffers were full")])
def test_what_is_lost_is_counted(tmp_path, fault, event, text):
    done, rec, truths = command(tmp_path, "--pattern", "steady", "--rate", "1000", "--duration",
                                "1", env={f"SIMCUPTI_{fault}": "50"})
    assert done.returncode == 0
    (one,) = truths.values()
    seen = [w for w in one.work if w.correlation]
    assert len(seen) > 300
    assert rec.counted(event) == len(seen) // 50
    assert len(rec.works) + rec.counted(event) == len(seen)
    assert {e["text"] for e in rec.of(event)} == {text}
    assert f"{len(seen) // 50} lost" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("fault", ["cuptiActivityEnable=1@1", "cuptiSubscribe=15@1",
                                   "cuptiGetTimestamp=999@3", "cuptiActivityFlushAll=999@1"])
def test_cupti_fails(tmp_path, fault):
    done, rec, truths = command(tmp_path, "--iterations", "3", env={"SIMCUPTI_FAIL": fault})
    assert done.returncode == 0, "that is the job's own affair no more than ours"
    (failed,) = rec.of("failed")
    assert "CUPTI_ERROR" in failed["text"] and failed["count"] == int(fault.split("=")[1][:-2])
    assert failed["text"] in done.stderr
    (one,) = truths.values()
    launches = [c["api"] for c in gbpf.calls(tmp_path / "t.gbpf") if "Launch" in c["api"]]
    assert len(launches) == len([c for c in one.calls if "Launch" in c.api]) > 100


@pytest.fixture
def everybodys():
    """A directory that other users can get to, too."""
    with tempfile.TemporaryDirectory(prefix="gbpf-test-") as path:
        os.chmod(path, 0o777)
        yield pathlib.Path(path)


def unshared(tmp_path, *how):
    """A job below unshare(1) or the like, and what is recorded of it."""
    process = subprocess.Popen(
        [*how, JOB, "--quiet", "--lib", SIM / "lib", "--truth", tmp_path / "truth.%p", *STEADY[:-1],
         "6", "--threads", "2"], stdin=subprocess.DEVNULL, env=gbpf.sim_env())
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    gbpf.wait_until(lambda: list(tmp_path.glob("truth.*")))
    time.sleep(0.3)
    pid = int((children.read_text().split() or [process.pid])[0])
    done, rec = attach(tmp_path, "-p", pid, "--cupti-calls")
    assert process.wait() == 0
    return done, rec, pid, next(iter(gbpf.truths(tmp_path).values()))


@pytest.mark.long
def test_a_pid_namespace(tmp_path):
    """Threads in the recording are the host's, whatever they are called inside."""
    done, rec, pid, one = unshared(tmp_path, "unshare", "--pid", "--fork", "--mount-proc")
    assert done.returncode == 0, done.stderr
    assert one.pid == 1 and len(rec.of("ended", pid)) == 1
    inside, outside = {w.tid for w in one.work}, {c["tid"] for c in rec.calls.values()}
    assert len(inside) == len(outside) == 2
    assert not inside & outside and pid in outside


@pytest.mark.long
def test_a_time_namespace(tmp_path):
    done, rec, pid, _ = unshared(tmp_path, "unshare", "--time", "--fork", "--monotonic", "1000")
    assert done.returncode == 0
    assert "cannot be compared" in rec.of("failed", pid)[0]["text"] and not rec.works


@pytest.mark.long
def test_another_users_process(everybodys):
    done, rec, _, one = unshared(everybodys, "setpriv", "--reuid=65534", "--regid=65533",
                                 "--clear-groups")
    assert done.returncode == 0, done.stderr
    assert works.check_process(rec, one) > 500


@pytest.mark.long
def test_a_command_of_the_user_who_called_sudo(everybodys):
    done, rec, truths = command(everybodys, "--iterations", "3",
                                env={"SUDO_UID": "65534", "SUDO_GID": "65534"})
    assert done.returncode == 0, done.stderr
    (one,) = truths.values()
    assert works.check_process(rec, one) == len(one.work)


@pytest.mark.long
@pytest.mark.quiet
def test_every_process_of_the_machine(tmp_path):
    with gbpf.job(tmp_path, *STEADY[:-1], "7", "--children", "3") as job:
        gbpf.wait_until(lambda: len(list(tmp_path.glob("truth.*"))) == 4)
        done, rec = attach(tmp_path, "-a", seconds=2)
    assert job.returncode == 0 and done.returncode == 0, done.stderr
    for one in gbpf.truths(tmp_path).values():
        assert works.check_process(rec, one) > 300


@pytest.mark.long
@pytest.mark.parametrize("owner, caps", [
    (31001, "+bpf,+perfmon"), (31002, "+bpf,+perfmon,+sys_ptrace")])
def test_the_least_rights(everybodys, owner, caps):
    """Those of docs/rights.md, of one's own process and of another's."""
    def as_user(user, names):
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                f"--inh-caps={names}", f"--ambient-caps={names}"]

    for name in (GBPF, JOB):
        shutil.copy(name, everybodys)
    shutil.copytree(SIM / "lib", everybodys / "lib")
    job = subprocess.Popen(
        [*as_user(owner, "-all"), everybodys / "simjob", "--quiet", "--truth-mib", "0",
         *STEADY[:-1], "6"], stdin=subprocess.DEVNULL, env=gbpf.sim_env())
    time.sleep(0.5)
    done = gbpf.run(*as_user(31001, caps), everybodys / "gbpf", "trace", "-o",
                    everybodys / "t.gbpf", "-d", "4", "-p", job.pid, "--gpu-time", "--cupti",
                    everybodys / "lib/libcupti.so.13")
    assert job.wait() == 0
    assert done.returncode == 0, done.stderr
    assert len(works.Recorded(everybodys / "t.gbpf").works) > 300, done.stderr
