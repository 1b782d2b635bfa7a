# SPDX-License-Identifier: BSD-2-Clause
"""What gbpf says and leaves when something is wrong, and that the target does not notice."""

import contextlib
import csv
import errno
import io
import json
import os
import pathlib
import pty
import signal
import stat
import subprocess

import gbpf
import pytest
import sandbox

pytestmark = pytest.mark.root
NOBODY = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]
TIGHT = ["--pattern", "train", "--duration", 0, "--dispatch-ns", 20000, "--cpu-ns", 50000,
         "--truth-mib", 0]
SOME = ["--api", "cuLaunchKernel,cuStreamSynchronize"]


def trace(*args, before=(), **kwargs):
    return gbpf.run(*before, gbpf.GBPF, "trace", *args, **kwargs)


def fails(done, status, first_line):
    """Exactly this status and first line, and nothing on stdout."""
    assert done.returncode == status, done
    assert done.stdout == "", done
    assert done.stderr.split("\n")[0] == first_line, done.stderr


def leaves(folder, *names):
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


@contextlib.contextmanager
def busy(tmp_path, **kwargs):
    """A job that must come to its end by SIGTERM, whatever was done to it."""
    with gbpf.job(tmp_path, *TIGHT, name="truth", **kwargs) as job:
        yield job
        assert job.poll() is None, "the target is gone"
    assert job.returncode == 0
    assert "output" in job.output


def no_such_pid():
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


# ---- targets that are not what was meant ----


def test_an_unknown_pid(tmp_path):
    pid = no_such_pid()
    done = trace("-p", pid, "-o", tmp_path / "t.gbpf")
    fails(done, 1, f"gbpf: no process {pid}; gbpf list shows those that use CUDA")
    leaves(tmp_path)


@pytest.mark.parametrize("text", ["x", "12x", "-1", "1,,2", "", " 1"])
def test_no_pid_at_all(tmp_path, text):
    done = trace("-p", text, "-o", tmp_path / "t.gbpf")
    fails(done, 2, f"gbpf: '{text}' is not a list of process ids")
    leaves(tmp_path)


@pytest.mark.parametrize("number", ["0", "4194305", "99999999999999999999"])
def test_numbers_that_no_process_has(tmp_path, number):
    done = trace("-p", number, "-o", tmp_path / "t.gbpf")
    assert done.returncode == 2 and done.stderr.startswith("gbpf: ")
    leaves(tmp_path)


@pytest.mark.parametrize("args,line", [
    ([], "gbpf: say what to trace: -p PID, --cgroup PATH, --all, or -- COMMAND"),
    (["-p", "1", "-a"], "gbpf: -p, --cgroup, --all and -- COMMAND exclude each other"),
    (["-a", "--", "true"], "gbpf: -p, --cgroup, --all and -- COMMAND exclude each other"),
])
def test_forms(tmp_path, args, line):
    done = trace(*args, cwd=tmp_path)
    assert done.returncode == 2, done
    assert done.stderr.split("\n")[0] == line
    leaves(tmp_path)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15, 0.3, 0.5])
def test_a_pid_that_dies_now(tmp_path, delay):
    with subprocess.Popen(["sleep", str(delay)]) as target:
        done = trace("-p", target.pid, "-o", tmp_path / "t.gbpf", timeout=30)
    assert done.returncode == 1
    assert done.stderr.split("\n")[0] in (
        f"gbpf: no process {target.pid}; gbpf list shows those that use CUDA",
        "gbpf: no CUDA library in the target yet; waiting for it (Ctrl-C ends)",
        "gbpf: no CUDA call was seen, and no CUDA library in the target; nothing was written")
    leaves(tmp_path)


def test_a_job_that_dies_while_it_is_attached_to(tmp_path):
    for delay in (0.02, 0.1, 0.2):
        with gbpf.job(tmp_path, *TIGHT, name="truth") as job:
            with subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {job.pid}"]):
                done = trace("-p", job.pid, "-o", tmp_path / "t.gbpf", *SOME, timeout=60)
            if done.returncode:
                assert done.stderr.startswith("gbpf: no "), done.stderr
            else:
                assert gbpf.view(tmp_path / "t.gbpf", "api_sum")["quality"]["file_end"] != "cut"
    assert not (tmp_path / "t.gbpf.part").exists()


def test_no_cuda_and_no_wait(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as target:
        done = trace("-p", target.pid, "--no-wait", "-o", tmp_path / "t.gbpf", timeout=30)
        assert target.poll() is None
        target.kill()
    fails(done, 1, "gbpf: no CUDA call was seen, and no CUDA library in the target; nothing was "
                   "written")
    leaves(tmp_path)


def test_no_cuda_yet(tmp_path):
    recording = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, "--late", 1, "--duration", 1, "--pattern", "train", "--dispatch-ns",
                  20000) as job:
        done = trace("-p", job.pid, "-o", recording, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.split("\n")[0] == (
        "gbpf: no CUDA library in the target yet; waiting for it (Ctrl-C ends)")
    rows = {r["name"]: r["calls"] for r in gbpf.view(recording, "api_sum")["rows"]}
    happened = [c.api for t in gbpf.truths(tmp_path).values() for c in t.calls]
    # not those before the unknown library was probed, which the file says
    assert happened.count("cuLaunchKernel") / 2 < rows["cuLaunchKernel"]
    assert rows["cuLaunchKernel"] <= happened.count("cuLaunchKernel")


def test_cuda_that_came_and_went(tmp_path):
    with gbpf.job(tmp_path, "--late", 1, "--iterations", 1, "--pattern", "train") as job:
        done = trace("-p", job.pid, "-o", tmp_path / "t.gbpf", timeout=60)
    assert done.returncode == 0 and "no CUDA library in the target; " not in done.stderr, done


def test_waiting_ends_at_ctrl_c(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as target:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", target.pid) as tracer:
            pass
        target.kill()
    assert tracer.returncode == 1
    assert tracer.err.split("\n")[-2] == (
        "gbpf: no CUDA call was seen, and no CUDA library in the target; nothing was written")
    leaves(tmp_path)


# ---- rights and kernels ----

NOT_PERMITTED = ("gbpf: not permitted: run it with sudo (gbpf doctor says which rights are "
                 "missing)")
TOO_OLD = ("gbpf: this kernel offers no way to attach: 5.15 or later with BTF and uprobes is "
           "needed (gbpf doctor says what was tried)")


@pytest.mark.parametrize("command", [True, False])
def test_without_rights(tmp_path, command):
    tmp_path.chmod(0o777)
    where = tmp_path / "out"
    where.mkdir()
    where.chmod(0o777)
    with busy(tmp_path) as job:
        what = ["--", "touch", where / "ran"] if command else ["-p", job.pid]
        done = trace("-o", where / "t.gbpf", *what, before=NOBODY)
    fails(done, 125 if command else 1, NOT_PERMITTED)
    leaves(where)


@pytest.mark.parametrize("missing", [
    ["sys_admin", "bpf"], ["sys_admin", "perfmon"], ["sys_admin", "bpf", "perfmon"]])
def test_without_what_attaching_needs(tmp_path, missing):
    drop = ",".join(f"-{name}" for name in missing)
    done = trace("-p", os.getpid(), "-o", tmp_path / "t.gbpf",
                 before=["setpriv", f"--bounding-set={drop}"])
    fails(done, 1, NOT_PERMITTED)
    leaves(tmp_path)


@pytest.mark.parametrize("kept", [["bpf", "perfmon"], ["sys_admin"]])
def test_without_what_looking_into_others_needs(tmp_path, kept):
    keep = ",".join(f"+{name}" for name in kept)
    with busy(tmp_path) as job:
        done = trace("-p", job.pid, "-o", tmp_path / "t.gbpf",
                     before=["setpriv", f"--bounding-set=-all,{keep}"])
        fails(done, 1, f"gbpf: not permitted to look into process {job.pid}: run it with sudo "
                       "(gbpf doctor says which rights are missing)")
    leaves(tmp_path, "truth")


@pytest.mark.parametrize("kept", [
    ["bpf", "perfmon", "sys_ptrace"],
    ["bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore"],
    ["sys_admin", "sys_ptrace"]])
def test_with_just_these_rights(tmp_path, kept):
    keep = ",".join(f"+{name}" for name in kept)
    recording = tmp_path / "t.gbpf"
    with busy(tmp_path) as job:
        done = trace("-q", "-p", job.pid, "-d", "0.3", "-o", recording, *SOME,
                     before=["setpriv", f"--bounding-set=-all,{keep}"])
    assert done.returncode == 0, done.stderr
    assert gbpf.view(recording, "api_sum")["rows"]


@pytest.mark.parametrize("number,line", [
    (errno.EPERM, NOT_PERMITTED), (errno.EINVAL, TOO_OLD), (errno.ENOSYS, TOO_OLD)])
@pytest.mark.parametrize("command", [True, False])
def test_a_kernel_that_answers_bpf_with(tmp_path, number, line, command):
    what = ["--", "touch", tmp_path / "ran"] if command else ["-p", os.getpid()]
    done = trace("-o", tmp_path / "t.gbpf", *what,
                 preexec_fn=sandbox.answering(sandbox.BPF, number))
    fails(done, 125 if command else 1, line)
    leaves(tmp_path)


def test_no_perf_events(tmp_path):
    done = trace("-p", os.getpid(), "-o", tmp_path / "t.gbpf",
                 preexec_fn=sandbox.answering(sandbox.PERF_EVENT_OPEN, errno.EACCES))
    fails(done, 1, NOT_PERMITTED)
    leaves(tmp_path)


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
                     before=["prlimit", "--fsize=200000"])
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


def test_a_file_that_may_not_be_read(recording, tmp_path):
    secret = tmp_path / "secret.gbpf"
    secret.write_bytes(recording.read_bytes())
    secret.chmod(0o600)
    tmp_path.chmod(0o755)
    done = gbpf.run(*NOBODY, gbpf.GBPF, "report", secret)
    assert done.returncode == 1 and done.stdout == ""
    assert "Permission denied" in done.stderr


VIEWS = ("summary", "api_sum", "launch_sum", "sync_sum", "copy_sum", "thread_sum", "cold_sum",
         "open_sum", "proc_sum")


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


# ---- damaged libraries ----

MAPPER = """
import mmap, sys, time
f = open(sys.argv[1], "rb")
m = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
sys.stdin.read()
print("fine")
"""


def damaged(kind):
    image = bytearray((gbpf.SIM / "lib" / "libcuda.so.1").read_bytes())
    if kind == "cut in half":
        return image[:len(image) // 2]
    if kind == "cut in its header":
        return image[:40]
    if kind == "section table beyond the end":
        image[40:48] = (1 << 62).to_bytes(8, "little")
    elif kind == "program table beyond the end":
        image[32:40] = (1 << 62).to_bytes(8, "little")
    elif kind == "65535 of everything":
        image[56:58] = image[60:62] = b"\xff\xff"
    elif kind == "symbols point anywhere":
        at = image.find(b"\x12\x00")  # a global function's info and other
        while at >= 0:
            image[at + 4:at + 12] = b"\xff" * 8
            at = image.find(b"\x12\x00", at + 24)
    elif kind == "noise":
        return bytearray(b"\x7fELF\x02\x01\x01" + os.urandom(20000))
    return image


@pytest.mark.parametrize("kind", [
    "cut in half", "cut in its header", "section table beyond the end",
    "program table beyond the end", "65535 of everything", "symbols point anywhere", "noise"])
def test_a_library_that_is_damaged(tmp_path, kind):
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(damaged(kind))
    before = library.read_bytes()
    with subprocess.Popen(["/usr/bin/python3", "-c", MAPPER, library], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout.readline() == "mapped\n"
        done = trace("-q", "-p", target.pid, "-d", "0.2", "-o", tmp_path / "t.gbpf", timeout=30)
        assert target.poll() is None
        assert target.communicate()[0] == "fine\n"
    assert done.returncode in (0, 1), done
    assert all(line.startswith("gbpf: ") for line in done.stderr.splitlines()), done.stderr
    assert library.read_bytes() == before
    assert not (tmp_path / "t.gbpf.part").exists()


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
            "--dispatch-ns", "20000", "--cpu-ns", "50000", *args]


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
        gbpf.wait_until(lambda: not probed(child, "cuLaunchKernel"))
        assert tracer.poll() is None
        tracer.terminate()
        tracer.wait(timeout=60)
    assert tracer.returncode == 0 and "output" in tracer.out


def probed(pid, function):
    """Does the memory of pid hold a breakpoint where this function begins?"""
    library = os.path.realpath(gbpf.SIM / "lib" / "libcuda.so.1")
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split()
        if fields[-1] == library and "x" in fields[1]:
            start, offset = int(fields[0].split("-")[0], 16), int(fields[2], 16)
            break
    else:
        return False
    symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    value = next(int(s.split()[0], 16) for s in symbols.stdout.splitlines()
                 if s.split()[-1].split("@")[0] == function)
    loads = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True,
                           check=True).stdout
    code = next(s.split() for s in loads.splitlines() if s.split()[:1] == ["LOAD"] and "R E" in s)
    place = value - int(code[2], 16) + int(code[1], 16)
    with open(f"/proc/{pid}/mem", "rb") as memory, open(library, "rb") as file:
        memory.seek(start + place - offset)
        file.seek(place)
        return memory.read(1) != file.read(1)


# ---- which processes ----


def test_several_pids_in_every_way(tmp_path):
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(gbpf.job(tmp_path, *TIGHT, name=f"t{i}")) for i in range(3)]
        a, b, c = (job.pid for job in jobs)
        for args in (["-p", f"{a},{b}"], ["-p", a, "-p", b], ["-p", f"{a},{b}", "-p", a]):
            recording = tmp_path / "t.gbpf"
            done = trace("-q", *args, "-d", "0.3", "-o", recording, *SOME)
            assert done.returncode == 0, done.stderr
            assert {r["pid"] for r in gbpf.view(recording, "proc_sum")["rows"]} == {a, b}
            assert c not in {x["pid"] for x in gbpf.calls(recording)}


@pytest.mark.parametrize("follow", [True, False])
def test_a_launcher_and_its_children(tmp_path, follow):
    with gbpf.job(tmp_path, "--pattern", "train", "--duration", 3, "--children", 2, *TIGHT[4:],
                  "--start-delay", 1) as job:
        recording = tmp_path / "t.gbpf"
        done = trace("-q", "-p", job.pid, "-d", "1.5", "-o", recording, *SOME,
                     *([] if follow else ["--no-follow"]))
    assert done.returncode == 0, done.stderr
    pids = {c["pid"] for c in gbpf.calls(recording)}
    assert job.pid in pids and len(pids) == (3 if follow else 1)


def test_no_end_but_ctrl_c(tmp_path):
    with busy(tmp_path) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", "0", *SOME) as tracer:
            gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").stat().st_size > 20000)
    assert tracer.returncode == 0 and "\nRecording " in tracer.out


# ---- what gbpf itself may do ----

CAPS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5, "setgid": 6,
        "setuid": 7, "sys_ptrace": 19, "sys_admin": 21, "perfmon": 38, "bpf": 39,
        "checkpoint_restore": 40}
RECORDING = {"dac_override", "dac_read_search", "fowner", "setgid", "setuid", "sys_ptrace",
             "perfmon", "bpf", "checkpoint_restore"}


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
            assert len(os.listdir(f"/proc/{tracer.pid}/task")) == 1, "others keep theirs"
    assert tracer.returncode == 0, tracer.err
