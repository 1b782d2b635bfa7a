# SPDX-License-Identifier: BSD-2-Clause
"""What gbpf says and leaves when something is wrong, and that the target does not notice."""

import contextlib
import errno
import os
import subprocess

import gbpf
import pytest
import sandbox
from runs import NOBODY, SOME, STEADY, busy, fails, leaves, trace

pytestmark = [pytest.mark.root, pytest.mark.parallel]


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
        with gbpf.job(tmp_path, *STEADY, name="truth") as job:
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


# ---- which processes ----


def test_several_pids_in_every_way(tmp_path):
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(gbpf.job(tmp_path, *STEADY, name=f"t{i}")) for i in range(3)]
        a, b, c = (job.pid for job in jobs)
        for args in (["-p", f"{a},{b}"], ["-p", a, "-p", b], ["-p", f"{a},{b}", "-p", a]):
            recording = tmp_path / "t.gbpf"
            done = trace("-q", *args, "-d", "0.3", "-o", recording, *SOME)
            assert done.returncode == 0, done.stderr
            assert {r["pid"] for r in gbpf.view(recording, "proc_sum")["rows"]} == {a, b}
            assert c not in {x["pid"] for x in gbpf.calls(recording)}


@pytest.mark.parametrize("follow", [True, False])
def test_a_launcher_and_its_children(tmp_path, follow):
    with gbpf.job(tmp_path, "--pattern", "train", "--duration", 1, "--children", 2, *STEADY[4:],
                  "--start-delay", 0.5) as job:
        recording = tmp_path / "t.gbpf"
        done = trace("-q", "-p", job.pid, "-d", "1.3", "-o", recording, *SOME,
                     *([] if follow else ["--no-follow"]))
    assert done.returncode == 0, done.stderr
    pids = {c["pid"] for c in gbpf.calls(recording)}
    assert job.pid in pids and len(pids) == (3 if follow else 1)


def test_no_end_but_ctrl_c(tmp_path):
    with busy(tmp_path) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", "0", *SOME) as tracer:
            gbpf.wait_until(lambda: (tmp_path / "t.gbpf.part").stat().st_size > 20000)
    assert tracer.returncode == 0 and "\nRecording " in tracer.out
