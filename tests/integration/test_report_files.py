# SPDX-License-Identifier: BSD-2-Clause
"""gbpf report and the files it is given: none, foreign, cut, not its own."""
import json
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import time

import pytest


# together: they share a recording
pytestmark = [pytest.mark.parallel, pytest.mark.xdist_group("report_files")]


@pytest.fixture(scope="module")
def recording(gbpf, build):
    """A short recording of the simulated job."""
    folder = tempfile.mkdtemp(prefix="gbpf-test-")
    file = pathlib.Path(folder) / "made.gbpf"
    done = subprocess.run(
        [gbpf, "trace", "-o", file, "--", build / "sim/simjob", "--iterations", "3",
         "--truth-mib", "0", "--quiet"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )
    assert done.returncode == 0, done.stderr
    yield file
    shutil.rmtree(folder)


def fails(done, *words):
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.startswith("gbpf: ")
    for word in words:
        assert word in done.stderr
    return done.stderr.rstrip("\n").split("\n")


def test_no_file_at_all(run_gbpf, tmp_path):
    lines = fails(run_gbpf("report", cwd=tmp_path), "no trace.gbpf")
    assert len(lines) == 2 and lines[1] == "  try: sudo gbpf trace -p PID"


def test_files_that_are_no_recordings(run_gbpf, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.write_bytes(os.urandom(10000))
    empty = tmp_path / "empty"
    empty.touch()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert len(fails(run_gbpf("report", foreign), str(foreign), "not a gbpf trace")) == 1
    assert len(fails(run_gbpf("report", empty), "not a gbpf trace")) == 1
    assert len(fails(run_gbpf("report", fifo), "not a regular file")) == 1
    assert len(fails(run_gbpf("report", tmp_path), "Is a directory")) == 1
    assert len(fails(run_gbpf("report", tmp_path / "gone"), "No such file")) == 1
    assert len(fails(run_gbpf("report", "/dev/zero"), "not a regular file")) == 1


def test_control_bytes_of_a_name_stay_off_the_terminal(run_gbpf, tmp_path):
    done = run_gbpf("report", tmp_path / "a\x1b[31m\nb")
    fails(done, "a\\x1b[31m\\x0ab")
    assert "\x1b" not in done.stderr


@pytest.mark.root
def test_a_whole_recording(run_gbpf, recording):
    done = run_gbpf("report", recording)
    assert done.returncode == 0, done.stderr
    assert done.stdout and done.stderr == ""
    page = run_gbpf("report", recording, "--view", "api_sum", "--format", "json")
    answer = json.loads(page.stdout)
    assert list(answer)[:2] == ["view", "rows"] and "quality" in answer
    assert answer["view"] == "api_sum"
    assert {"cuLaunchKernel", "cuStreamSynchronize"} <= {row["name"] for row in answer["rows"]}


@pytest.mark.root
def test_the_default_file_and_the_unfinished_one(run_gbpf, recording, tmp_path):
    shutil.copy(recording, tmp_path / "trace.gbpf.part")
    done = run_gbpf("report", cwd=tmp_path)
    assert done.returncode == 0
    assert "trace.gbpf.part: reading an unfinished recording" in done.stderr
    shutil.copy(recording, tmp_path / "trace.gbpf")
    done = run_gbpf("report", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.root
def test_a_cut_recording_says_so(run_gbpf, recording, tmp_path):
    cut = tmp_path / "cut.gbpf"
    whole = recording.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    done = run_gbpf("report", cut)
    assert done.returncode == 0, done.stderr
    assert "ends early" in done.stderr and str(cut) in done.stderr


@pytest.mark.root
def test_wrong_views_columns_and_filters(run_gbpf, recording):
    for option, value in (("--view", "nosuch"), ("--sort", "nosuch"), ("--filter", "a <> ((")):
        done = run_gbpf("report", recording, option, value)
        assert done.returncode == 2 and done.stdout == "", done
        lines = done.stderr.rstrip("\n").split("\n")
        assert len(lines) == 2 and lines[1] == "  try: gbpf report --help"


@pytest.mark.root
def test_help_names_every_view(run_gbpf, recording):
    text = run_gbpf("report", "--help").stdout
    for name in (
        "summary", "api_sum", "launch_sum", "sync_sum", "copy_sum", "thread_sum", "cold_sum",
        "open_sum", "proc_sum", "gpu_sum", "kern_sum", "kern_gb_sum", "kern_exec_sum",
        "gpu_mem_sum", "api_gpu_sum", "gpu_trace", "gap_sum", "stream_sum",
        "step_sum", "variation_sum", "sync_sites", "mem_sum", "leak_sum",
    ):
        assert name in text
        assert run_gbpf("report", recording, "--view", name).returncode == 0


def on_terminal(command, env):
    """What command prints to a terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.waitpid(pid, 0)
    os.close(master)
    return output


@pytest.mark.root
def test_no_color(gbpf, recording):
    command = [str(gbpf), "report", str(recording), "--view", "proc_sum"]
    env = {"PATH": os.environ["PATH"], "TERM": "xterm"}
    assert b"\x1b[" in on_terminal(command, env)
    for change in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert b"\x1b" not in on_terminal(command, {**env, **change})
    piped = subprocess.run(command, env=env, capture_output=True, check=True, timeout=60)
    assert b"\x1b" not in piped.stdout


def full_pipe():
    """A pipe whose writers have to wait."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    return read, write


def status_of(pid, field):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return next(line.split()[1:] for line in text.split("\n") if line.startswith(field + ":"))


@pytest.mark.root
def test_root_through_sudo_continues_as_the_user(gbpf, recording):
    """The file only root may read is opened; when output is due, root is gone."""
    os.chmod(recording, 0o600)
    read, write = full_pipe()
    env = dict(os.environ, SUDO_UID="65534", SUDO_GID="65533")
    process = subprocess.Popen([gbpf, "report", recording], env=env, stdout=write)
    os.close(write)
    deadline = time.monotonic() + 30
    while status_of(process.pid, "State")[0] != "S" or status_of(process.pid, "Uid")[0] == "0":
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    assert status_of(process.pid, "Uid") == ["65534"] * 4
    assert status_of(process.pid, "Gid") == ["65533"] * 4
    assert status_of(process.pid, "Groups") == ["65533"]
    assert int(status_of(process.pid, "CapEff")[0], 16) == 0
    assert status_of(process.pid, "NoNewPrivs") == ["1"]
    while os.read(read, 65536):
        pass
    os.close(read)
    assert process.wait(timeout=30) == 0


@pytest.mark.root
def test_sudo_with_nonsense_ids_refuses(run_gbpf, recording):
    done = run_gbpf("report", recording, env=dict(os.environ, SUDO_UID="65534", SUDO_GID="x"))
    fails(done, "rights")
