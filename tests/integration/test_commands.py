# SPDX-License-Identifier: BSD-2-Clause
"""What -- COMMAND runs as, what it returns, and what gbpf may do itself meanwhile."""

import contextlib
import os
import pathlib
import pty
import signal

import gbpf
import memory
import pytest
from runs import SOME, busy, fails, leaves, trace

pytestmark = [pytest.mark.root, pytest.mark.parallel]


# ---- commands ----


def command(tmp_path, *args, **kwargs):
    return trace("-q", "-o", tmp_path / "t.gbpf", *SOME, "--", *args, **kwargs)


@pytest.mark.parametrize("script,status", [
    ("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143),
    ("kill -SEGV $$", 139)])
def test_the_status_is_the_command_s(tmp_path, script, status):
    assert command(tmp_path, "sh", "-c", script).returncode == status


def test_commands_that_cannot_run(tmp_path):
    missing = tmp_path / "missing"
    fails(command(tmp_path, missing), 127,
          f"gbpf: cannot run {missing}: No such file or directory")
    plain = tmp_path / "plain"
    plain.write_text("text")
    fails(command(tmp_path, plain), 126, f"gbpf: cannot run {plain}: Permission denied")
    fails(command(tmp_path, tmp_path), 126, f"gbpf: cannot run {tmp_path}: Permission denied")
    leaves(tmp_path, "plain")


def test_the_command_runs_as_who_called_sudo(tmp_path):
    tmp_path.chmod(0o777)
    env = dict(gbpf.sim_env(), SUDO_UID="65534", SUDO_GID="65533", SUDO_USER="nobody")
    recording = tmp_path / "t.gbpf"
    script = ("id -u; id -g; echo $HOME; echo $USER; grep NoNewPrivs /proc/self/status; "
              f"exec {gbpf.JOB} --lib {gbpf.SIM / 'lib'} --truth-mib 0 --iterations 2 --quiet")
    for _ in range(2):
        done = command(tmp_path, "sh", "-c", script, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["65534", "65533", "/nonexistent", "nobody",
                                       "NoNewPrivs:", "0"]
        assert (recording.stat().st_uid, recording.stat().st_gid) == (65534, 65533)
    old = (tmp_path / "t.gbpf.old").stat()
    assert (old.st_uid, old.st_gid) == (65534, 65533)


def test_root_s_directory_is_written_for_who_called_sudo(tmp_path):
    tmp_path.chmod(0o755)
    with busy(tmp_path) as job:
        done = trace("-q", "-p", job.pid, "-d", "0.2", "-o", tmp_path / "t.gbpf", *SOME,
                     env=dict(os.environ, SUDO_UID="65534", SUDO_GID="65533"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.gbpf").stat().st_uid == 65534


@pytest.mark.parametrize("uid,gid", [("x", "0"), ("65534", ""), ("-1", "1"), ("65534", "1x"),
                                     ("99999999999", "5")])
def test_sudo_variables_that_are_no_numbers(tmp_path, uid, gid):
    done = command(tmp_path, "true", env=dict(os.environ, SUDO_UID=uid, SUDO_GID=gid))
    fails(done, 125, "gbpf: SUDO_UID and SUDO_GID are not numbers; unset them or use sudo")
    leaves(tmp_path)


def job_line(*args):
    return [gbpf.JOB, "--lib", gbpf.SIM / "lib", "--truth-mib", "0", "--duration", "0",
            "--kernel-ns", "20000", "--wait", "sleep", *args]


def test_ctrl_c_in_a_terminal(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(gbpf.GBPF, [str(a) for a in [
            "gbpf", "trace", "-o", tmp_path / "t.gbpf", *SOME, "--", *job_line()]],
            gbpf.sim_env())
    part = tmp_path / "t.gbpf.part"
    gbpf.wait_until(lambda: part.exists() and part.stat().st_size > 20000)
    os.write(terminal, b"\x03")
    output = b""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65536):
            output += piece
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, output
    assert b"output " in output and b"\r\nRecording " in output
    assert gbpf.view(tmp_path / "t.gbpf", "api_sum")["rows"]


def test_ctrl_c_ends_what_does_not_know_it(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(gbpf.GBPF, ["gbpf", "trace", "-o", str(tmp_path / "t.gbpf"), *SOME, "--", "sh",
                              "-c", "echo ready; exec sleep 60"], gbpf.sim_env())
    while b"ready" not in os.read(terminal, 65536):
        pass
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 128 + signal.SIGINT
    leaves(tmp_path)


def test_sigterm_is_handed_to_the_command(tmp_path):
    recording = tmp_path / "t.gbpf"
    with gbpf.tracing(recording, *SOME, "--", *job_line()) as tracer:
        gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").stat().st_size > 20000)
        tracer.terminate()
        tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err  # the job ends well at SIGTERM
    assert "output" in tracer.out
    assert gbpf.view(recording, "api_sum")["rows"]


def test_a_command_runs_on_after_the_recording(tmp_path):
    """Without probes, with signals, and its status is still the answer."""
    recording = tmp_path / "t.gbpf"
    with gbpf.tracing(recording, "-d", "0.5", *SOME, "--", *job_line()) as tracer:
        gbpf.wait_until(recording.exists)
        child = int(pathlib.Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text())
        library = gbpf.SIM / "lib" / "libcuda.so.1"
        gbpf.wait_until(lambda: not memory.probed(child, library, "cuLaunchKernel"))
        assert tracer.poll() is None
        tracer.terminate()
        tracer.wait(timeout=60)
    assert tracer.returncode == 0 and "output" in tracer.out


# ---- what gbpf itself may do ----

CAPS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5, "setgid": 6,
        "setuid": 7, "sys_ptrace": 19, "sys_admin": 21, "perfmon": 38, "bpf": 39,
        "checkpoint_restore": 40}
RECORDING = {"dac_override", "dac_read_search", "fowner", "setgid", "setuid", "sys_ptrace",
             "perfmon", "bpf", "checkpoint_restore"}


def other_threads(pid):
    """Those without the first, by name, none of which can get rights back. One asks the GPUs:
    it has no rights at all as soon as it knows whether there are any."""
    tasks = set(os.listdir(f"/proc/{pid}/task")) - {str(pid)}
    assert all(status_of(task, "NoNewPrivs") == "1" for task in tasks)
    gbpf.wait_until(lambda: "gbpf-gpu" in [status_of(task, "Name") for task in tasks])
    found = {status_of(task, "Name"): task for task in tasks}
    assert len(found) == len(tasks)
    gbpf.wait_until(lambda: int(status_of(found["gbpf-gpu"], "CapPrm"), 16) == 0)
    return found


def test_rights_while_a_command_runs(tmp_path):
    """Besides, signals are handed on; the thread that holds it does nothing else."""
    want = sum(1 << CAPS[name] for name in RECORDING | {"kill"})
    with gbpf.tracing(tmp_path / "t.gbpf", *SOME, "--", *job_line()) as tracer:
        assert int(status_of(tracer.pid, "CapEff"), 16) == want
        tasks = other_threads(tracer.pid)
        del tasks["gbpf-gpu"]
        holder, = tasks.values()
        assert int(status_of(holder, "CapPrm"), 16) == 1 << CAPS["sys_ptrace"]
        gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").stat().st_size > 20000)
        tracer.terminate()
        tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err


def status_of(pid, field):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(line.split()[1] for line in text.split("\n") if line.startswith(field + ":"))


@pytest.mark.parametrize("rung,more", [("session", set()), ("single", {"sys_admin"})])
def test_rights_are_given_up(tmp_path, rung, more):
    want = sum(1 << CAPS[name] for name in RECORDING | more)
    with busy(tmp_path) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", 0, "--rung", rung,
                          *SOME) as tracer:
            gbpf.wait_until(lambda: int(status_of(tracer.pid, "CapEff"), 16) == want)
            assert int(status_of(tracer.pid, "CapPrm"), 16) == want
            assert status_of(tracer.pid, "NoNewPrivs") == "1"
            tasks = other_threads(tracer.pid)
            assert list(tasks) == ["gbpf-gpu"], "others keep theirs"
    assert tracer.returncode == 0, tracer.err
