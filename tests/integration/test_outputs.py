# SPDX-License-Identifier: BSD-2-Clause
"""Outputs that cannot be written, recordings that cannot be read, names that must not spread."""

import contextlib
import csv
import io
import json
import os
import pathlib
import stat
import subprocess

import gbpf
import pytest
from runs import NOBODY, SOME, busy, fails, leaves, trace

pytestmark = [pytest.mark.root, pytest.mark.parallel]


# ---- outputs ----


def small_tmpfs(path, kib):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", path], check=True)


@contextlib.contextmanager
def full_disk(tmp_path, kib):
    disk = tmp_path / "disk"
    small_tmpfs(disk, kib)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


FAST = ["--pattern", "tight", "--duration", 0, "--truth-mib", 0]


def test_a_disk_that_fills_up(tmp_path):
    with full_disk(tmp_path, 400) as disk:
        recording = disk / "t.gbpf"
        with gbpf.job(tmp_path, *FAST) as job:
            done = trace("-q", "-p", job.pid, "-d", "60", "-o", recording, timeout=60)
            assert job.poll() is None
        events = int(done.stderr.split()[-2])
        fails(done, 1, "gbpf: the recording ended early: No space left on device; "
                       f"{recording} holds the first {events} events")
        leaves(disk, "t.gbpf")
        answer = gbpf.view(recording, "api_sum")
        assert answer["quality"]["file_end"] == "cut"
        assert 0 < answer["quality"]["events"] <= events and answer["rows"]


def test_a_disk_that_is_full(tmp_path):
    with full_disk(tmp_path, 64) as disk:
        recording = disk / "t.gbpf"
        recording.write_bytes(b"before")
        with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as rest:
            while rest.write(b"x" * 4096):
                pass
        with busy(tmp_path) as job:
            done = trace("-q", "-p", job.pid, "-d", "3", "-o", recording, timeout=60)
        assert done.returncode == 1
        assert done.stderr.rstrip("\n") in (
            "gbpf: the recording failed: No space left on device",
            "gbpf: starting the recording failed: No space left on device"), done.stderr
        assert recording.read_bytes() == b"before"
        leaves(disk, "t.gbpf", "rest")


def test_a_full_disk_under_a_command(tmp_path):
    """gbpf's own failure is 125, but the command is not disturbed."""
    with full_disk(tmp_path, 300) as disk:
        done = trace("-q", "-o", disk / "t.gbpf", "--", gbpf.JOB, "--lib", gbpf.SIM / "lib",
                     "--pattern", "tight", "--iterations", "600", "--truth-mib", "0",
                     timeout=60, env=gbpf.sim_env())
        assert done.returncode == 125, done
        assert done.stderr.startswith("gbpf: the recording ended early: No space left on device")
        assert "output" in done.stdout, "the command had its time to end"


def test_a_limit_on_the_size_of_files(tmp_path):
    recording = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, *FAST) as job:
        done = trace("-q", "-p", job.pid, "-d", "60", "-o", recording, timeout=60,
                     before=["prlimit", "--fsize=2000000"])
        assert job.poll() is None
    assert done.returncode == 1
    assert done.stderr.startswith("gbpf: the recording ended early: File too large; "), done
    assert gbpf.view(recording, "api_sum")["rows"]


@pytest.mark.parametrize("kind", ["device", "directory", "fifo", "link to a device"])
def test_outputs_that_are_no_regular_files(tmp_path, kind):
    output = tmp_path / "out"
    if kind == "device":
        output = pathlib.Path("/dev/full")
    elif kind == "directory":
        output.mkdir()
    elif kind == "fifo":
        os.mkfifo(output)
    else:
        output.symlink_to("/dev/null")
    before = os.lstat(output)
    done = trace("-p", os.getpid(), "-o", output)
    fails(done, 1, f"gbpf: {output} is not a regular file; give another name with -o")
    after = os.lstat(output)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert not os.path.lexists(f"{output}.part")


def test_a_directory_that_is_not_there(tmp_path):
    output = tmp_path / "gone" / "t.gbpf"
    fails(trace("-p", os.getpid(), "-o", output), 1,
          f"gbpf: cannot write {output}.part: No such file or directory")
    fails(trace("-o", output, "--", "touch", tmp_path / "ran"), 125,
          f"gbpf: cannot write {output}.part: No such file or directory")
    leaves(tmp_path)


def test_a_directory_that_may_not_be_written(tmp_path):
    """Not even root may write where the file system cannot be written."""
    with full_disk(tmp_path, 64) as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        fails(trace("-p", os.getpid(), "-o", disk / "t.gbpf"), 1,
              f"gbpf: cannot write {disk}/t.gbpf.part: Read-only file system")


def test_links_in_a_sticky_directory_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name in ("t.gbpf.part", "t.gbpf.old", "t.gbpf"):
        (shared / name).symlink_to(victim)
        os.lchown(shared / name, 65534, 65534)
    with busy(tmp_path) as job:
        refused = trace("-q", "-p", job.pid, "-d", "0.3", "-o", shared / "t.gbpf", *SOME)
        (shared / "t.gbpf.part").unlink()
        done = trace("-q", "-p", job.pid, "-d", "0.3", "-o", shared / "t.gbpf", *SOME)
    fails(refused, 1, f"gbpf: cannot write {shared}/t.gbpf.part: Too many levels of symbolic "
                      "links")
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "precious" and victim.stat().st_uid == 0
    assert stat.S_ISREG(os.lstat(shared / "t.gbpf").st_mode)
    assert gbpf.view(shared / "t.gbpf", "api_sum")["rows"]


def test_an_output_that_another_gbpf_writes(tmp_path):
    recording = tmp_path / "t.gbpf"
    with busy(tmp_path) as job:
        with gbpf.tracing(recording, "-p", job.pid, "-d", 0, *SOME):
            done = trace("-p", job.pid, "-d", "0.3", "-o", recording)
            fails(done, 1, f"gbpf: another gbpf is writing {recording}; give another name with "
                           "-o")
    assert gbpf.view(recording, "api_sum")["quality"]["file_end"] != "cut"
    leaves(tmp_path, "t.gbpf", "truth")


def test_what_a_crash_left_is_kept(tmp_path):
    recording = tmp_path / "t.gbpf"
    (tmp_path / "t.gbpf.part").write_bytes(b"left by a crash")
    with busy(tmp_path) as job:
        done = trace("-q", "-p", job.pid, "-d", "0.3", "-o", recording, *SOME)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.gbpf.old").read_bytes() == b"left by a crash"
    leaves(tmp_path, "t.gbpf", "t.gbpf.old", "truth")


def test_a_name_that_cannot_be_taken_loses_nothing(tmp_path):
    """The old one cannot be set aside: the new one stays beside, and is said to."""
    recording = tmp_path / "t.gbpf"
    recording.write_bytes(b"before")
    (tmp_path / "t.gbpf.old").mkdir()
    with busy(tmp_path) as job:
        done = trace("-q", "-p", job.pid, "-d", "0.3", "-o", recording, *SOME)
    fails(done, 1, f"gbpf: cannot rename the recording to {recording}: Is a directory; it is "
                   f"{recording}.part")
    assert recording.read_bytes() == b"before"
    assert gbpf.view(tmp_path / "t.gbpf.part", "api_sum")["rows"]


def test_the_default_name_and_the_one_before(tmp_path):
    ids = []
    with busy(tmp_path) as job:
        for _ in range(3):
            done = trace("-q", "-p", job.pid, "-d", "0.2", *SOME, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            ids.append((tmp_path / "trace.gbpf").stat().st_ino)
    leaves(tmp_path, "trace.gbpf", "trace.gbpf.old", "truth")
    assert (tmp_path / "trace.gbpf.old").stat().st_ino == ids[1]


# ---- report ----


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    done, file, _ = gbpf.trace_job(folder, "--pattern", "names", "--iterations", 1)
    assert done.returncode == 0, done.stderr
    return file


@pytest.mark.xdist_group("names")
def test_every_prefix_is_read_or_refused(recording, tmp_path):
    whole = recording.read_bytes()
    cut = tmp_path / "cut"
    for size in (0, 1, 7, 8, 15, 31, 100, 1000, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:size])
        done = gbpf.gbpf("report", cut)
        if done.returncode == 0:
            assert "ends early" in done.stderr, (size, done)
        else:
            assert done.returncode == 1 and done.stdout == "", (size, done)
            assert len(done.stderr.splitlines()) == 1 and str(cut) in done.stderr, (size, done)


@pytest.mark.xdist_group("names")
def test_a_file_that_may_not_be_read(recording, tmp_path):
    secret = tmp_path / "secret.gbpf"
    secret.write_bytes(recording.read_bytes())
    secret.chmod(0o600)
    tmp_path.chmod(0o755)
    done = gbpf.run(*NOBODY, gbpf.GBPF, "report", secret)
    assert done.returncode == 1 and done.stdout == ""
    assert "Permission denied" in done.stderr


VIEWS = ("summary", "api_sum", "launch_sum", "sync_sum", "copy_sum", "thread_sum", "cold_sum",
         "open_sum", "proc_sum", "gpu_sum", "api_gpu_sum")


@pytest.mark.xdist_group("names")
@pytest.mark.parametrize("name", VIEWS)
def test_hostile_names_in_every_format(recording, name):
    run = [gbpf.GBPF, "report", recording, "--view", name, "--format"]
    as_json = subprocess.run([*run, "json"], capture_output=True, check=True).stdout
    rows = json.loads(as_json.decode("utf-8"))["rows"]
    as_csv = subprocess.run([*run, "csv"], capture_output=True, check=True).stdout.decode("utf-8")
    lines = list(csv.reader(io.StringIO(as_csv, newline=""), strict=True))
    if name != "summary":
        assert len(lines) == len(rows) + 1
        assert {len(line) for line in lines} == {len(lines[0])}
    table = subprocess.run([*run, "table"], capture_output=True, check=True).stdout
    for text in (as_json, table):
        assert not [c for c in text if c < 32 and c != 10 or c == 127]
    table.decode("utf-8")
    assert "\u202e" not in table.decode("utf-8"), "text that turns what follows it around"
    if name == "launch_sum":
        assert any(len(row["kernel"]) >= 8191 for row in rows)
