# SPDX-License-Identifier: BSD-2-Clause
"""Containers, namespaces, cgroups, reused pids: what is recorded there, and nobody is harmed."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import compare
import gbpf
import memory
import overlay
import pytest
import sandbox
from gbpf import RUNGS

pytestmark = [pytest.mark.root, pytest.mark.parallel]
# the last rung takes its time to let go of each function
QUICK_RUNGS = [*RUNGS[:-1], pytest.param(RUNGS[-1], marks=pytest.mark.long)]
SOME = ["--api", "cuLaunchKernel,cuLaunchKernelEx,cuStreamSynchronize"]
STEADY = ["--pattern", "train", "--dispatch-ns", 20000, "--cpu-ns", 50000]
ASLEEP = ["--pattern", "train", "--kernel-ns", 20000, "--wait", "sleep"]  # most of the time


@contextlib.contextmanager
def waiting(truth, *args, before=(), job=gbpf.JOB, lib=gbpf.SIM / "lib", **kwargs):
    """A job that has mapped everything, called nothing, and waits for SIGUSR1."""
    line = [*before, job, "--lib", lib, "--truth", truth, "--wait-usr1", *args]
    process = subprocess.Popen([str(a) for a in line], stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, **kwargs)
    try:
        ready = process.stdout.readline()
        assert ready.startswith("ready"), ready
        process.inside = int(ready.split()[1])
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.output = process.communicate(timeout=60)[0]


def go(*processes):
    for process in processes:
        process.send_signal(signal.SIGUSR1)
    for process in processes:
        process.wait(timeout=60)


def check_exact(recording, truths, pids=None):
    """Call by call, and times; truths by the host's pid."""
    calls = gbpf.calls(recording)
    for truth, call in compare.pairs(truths, calls, gbpf.hooked(recording)):
        compare.check_arguments(truth, call)
        compare.check_time(truth, call)
    seen = {call["pid"] for call in calls}
    assert seen == (set(truths) if pids is None else pids)


def truth_of(path, process):
    """The truth as the host's numbers have it; a job knows those of its own namespace."""
    one = gbpf.truth.load(str(path))
    if one.pid == process.pid:
        return {process.pid: one}
    shift = process.pid - one.pid
    return {process.pid: Renumbered(one, shift)}


class Renumbered:
    def __init__(self, one, shift):
        self.calls = [call._replace(pid=call.pid + shift, tid=call.tid + shift)
                      if hasattr(call, "_replace") else renumber(call, shift)
                      for call in one.calls]


def renumber(call, shift):
    call.pid += shift
    call.tid += shift
    return call


# ---- one file under several names ----


@pytest.mark.parametrize("first", [0, 1])
def test_two_overlay_mounts_of_one_layer(tmp_path, first):
    files = {f"lib/{name}": gbpf.SIM / "lib" / name
             for name in ("libcuda.so.1", "libcudart.so.13", "libnccl.so.2")}
    with overlay.two_overlays(files) as mounts, contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(waiting(
            tmp_path / f"truth{i}", *STEADY, "--iterations", 12, before=m.enter,
            lib=m.root / "lib")) for i, m in enumerate(mounts)]
        order = [jobs[first], jobs[1 - first]]
        recording = tmp_path / "t.gbpf"
        with gbpf.tracing(recording, "-q", "-p", f"{order[0].pid},{order[1].pid}", *SOME) as tracer:
            go(*order)
            tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err
    truths = {**truth_of(tmp_path / "truth0", jobs[0]), **truth_of(tmp_path / "truth1", jobs[1])}
    assert len(truths) == 2
    check_exact(recording, truths)


def test_a_library_that_was_deleted(tmp_path):
    lib = tmp_path / "lib"
    shutil.copytree(gbpf.SIM / "lib", lib)
    with waiting(tmp_path / "truth", *STEADY, "--iterations", 4, lib=lib) as job:
        mapped = pathlib.Path(f"/proc/{job.pid}/maps")
        gbpf.wait_until(lambda: str(lib) in mapped.read_text())
        shutil.rmtree(lib)
        with gbpf.tracing(tmp_path / "t.gbpf", "-q", "-p", job.pid, *SOME) as tracer:
            go(job)
            tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err
    check_exact(tmp_path / "t.gbpf", truth_of(tmp_path / "truth", job))


# ---- containers ----


def children(pid):
    return map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


NUMBER = 3141592  # no process of the host has one as high


def namespaced(number):
    """For a command in a new pid namespace, in which its process has this number."""
    return ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c",
            f'echo {number - 1} > /proc/sys/kernel/ns_last_pid; "$@" & trap "kill -TERM $!" TERM; '
            "wait; wait", "sh"]


def host_pid(number):
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == str(number):
                    return int(path.parent.name)
    raise AssertionError(f"no process is {number} in its namespace")


@pytest.mark.xdist_group("number")
def test_a_container_s_own_pid(tmp_path):
    with waiting(tmp_path / "truth", *STEADY, "--iterations", 4,
                 before=namespaced(NUMBER)) as container:
        assert container.inside == NUMBER
        pid = host_pid(NUMBER)
        with gbpf.tracing(tmp_path / "t.gbpf", "-q", "-p", NUMBER, *SOME) as tracer:
            os.kill(pid, signal.SIGUSR1)
            tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err
    assert tracer.err.split("\n")[0] == f"gbpf: {NUMBER} in its container is pid {pid} here"
    happened = gbpf.truth.load(str(tmp_path / "truth"))
    hooked = gbpf.hooked(tmp_path / "t.gbpf")
    calls = gbpf.calls(tmp_path / "t.gbpf")
    assert {(c["pid"], c["tid"]) for c in calls} == {(pid, pid)}
    assert len(calls) == sum(c.api in hooked for c in happened.calls)
    row, = gbpf.view(tmp_path / "t.gbpf", "proc_sum")["rows"]
    assert (row["pid"], row["ns_pid"]) == (pid, NUMBER)


@pytest.mark.xdist_group("number")
def test_a_number_of_several_containers(tmp_path):
    with waiting(tmp_path / "a", before=namespaced(NUMBER)) as first, \
            waiting(tmp_path / "b", before=namespaced(NUMBER)) as second:
        assert first.inside == second.inside == NUMBER
        done = gbpf.gbpf("trace", "-p", NUMBER, "-o", tmp_path / "t.gbpf")
        for process in (first, second):
            os.kill(*children(process.pid), signal.SIGTERM)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"gbpf: {NUMBER} is the number of several processes in containers: host pids ")


def root_with(path, *binaries):
    """A directory to change the root to: these files and the libraries they need."""
    for binary in binaries:
        shutil.copy(binary, path / pathlib.Path(binary).name)
        listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
        for word in listed.stdout.split():
            if word.startswith("/"):
                target = path / word.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, target)
    shutil.copytree(gbpf.SIM / "lib", path / "cuda")


def test_a_container_with_its_own_files(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    root_with(root, gbpf.JOB)
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "chroot", root]
    with waiting("/truth", *STEADY, "--iterations", 4, before=enter, job="/simjob",
                 lib="/cuda") as container:
        with gbpf.tracing(tmp_path / "t.gbpf", "-q", "-p", container.pid, *SOME) as tracer:
            pid, = children(container.pid)
            os.kill(pid, signal.SIGUSR1)
            tracer.wait(timeout=60)
    assert tracer.returncode == 0, tracer.err
    happened = gbpf.truth.load(str(root / "truth"))
    hooked = gbpf.hooked(tmp_path / "t.gbpf")
    calls = gbpf.calls(tmp_path / "t.gbpf")
    assert {c["pid"] for c in calls} == {pid}
    assert len(calls) == sum(c.api in hooked for c in happened.calls) > 0


@pytest.mark.parametrize("held", [True, False])
def test_a_process_that_enters_a_container_late(tmp_path, held):
    """First the host's, then another mount namespace, where its libraries are."""
    files = {"lib/libcuda.so.1": gbpf.SIM / "lib" / "libcuda.so.1"}
    recording = tmp_path / "t.gbpf"
    with overlay.two_overlays(files) as mounts:
        inside = [*mounts[0].enter, gbpf.JOB, "--lib", mounts[0].root / "lib", "--quiet",
                  "--truth", tmp_path / "truth", *STEADY, "--iterations", "4",
                  "--start-delay", "0" if held else "0.7"]
        line = ["sh", "-c", 'sleep 0.3; exec "$@"', "sh", *map(str, inside)]
        if held:
            done = gbpf.gbpf("trace", "-q", "-o", recording, *SOME, "--", *line)
        else:
            with subprocess.Popen(line) as job:
                done = gbpf.gbpf("trace", "-q", "-p", job.pid, "-o", recording, *SOME)
    assert done.returncode == 0, done.stderr
    one = gbpf.truth.load(str(tmp_path / "truth"))
    check_exact(recording, {one.pid: one})


# ---- cgroups ----


@contextlib.contextmanager
def hierarchy(kind):
    """A directory of a cgroup hierarchy, and how processes get in; gone afterwards."""
    with contextlib.ExitStack() as stack:
        top = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gbpf-")))
        options = ["-t", "cgroup2"] if kind == 2 else ["-t", "cgroup", "-o", "none,name=gbpftest"]
        subprocess.run(["mount", *options, "none", top], check=True)
        stack.callback(subprocess.run, ["umount", top], check=True)
        group = top / f"gbpf-test-{os.getpid()}"
        group.mkdir()
        stack.callback(remove_when_empty, group)
        yield group


def remove_when_empty(group):
    gbpf.wait_until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def enter(group, pid):
    (group / "cgroup.procs").write_text(str(pid))


@pytest.mark.parametrize("kind", [1, 2])
def test_those_in_a_cgroup(tmp_path, kind):
    with hierarchy(kind) as group, contextlib.ExitStack() as stack:
        inside, below, outside, late = (
            stack.enter_context(waiting(tmp_path / f"truth{i}", *STEADY, "--iterations", 6))
            for i in range(4))
        enter(group, inside.pid)
        (group / "below").mkdir()
        stack.callback(remove_when_empty, group / "below")
        enter(group / "below", below.pid)
        recording = tmp_path / "t.gbpf"
        with gbpf.tracing(recording, "-q", "--cgroup", group, "-d", 0, *SOME):
            enter(group, late.pid)
            go(inside, below, outside, late)
        recorded = [(0, inside), (1, below)] + ([(3, late)] if kind == 2 else [])
        truths = {}
        for number, process in recorded:
            truths.update(truth_of(tmp_path / f"truth{number}", process))
    check_exact(recording, truths)


def test_a_directory_that_is_no_cgroup(tmp_path):
    for path in (tmp_path, tmp_path / "gone", "/proc/self/status"):
        done = gbpf.gbpf("trace", "--cgroup", path, "-o", tmp_path / "t.gbpf")
        assert done.returncode == 1
        assert done.stderr == (
            f"gbpf: {path} is not a cgroup's directory; see /proc/PID/cgroup\n")
    assert not list(tmp_path.iterdir())


# ---- which processes ----


@pytest.mark.quiet
def test_everybody_but_gbpf_itself(tmp_path):
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(waiting(tmp_path / f"truth{i}", *STEADY, "--iterations", 6))
                for i in range(2)]
        recording = tmp_path / "t.gbpf"
        with gbpf.tracing(recording, "-q", "-a", "-d", 0, *SOME) as tracer:
            late = stack.enter_context(waiting(tmp_path / "truth2", *STEADY, "--iterations", 6))
            go(*jobs, late)
    calls = gbpf.calls(recording)
    names = gbpf.hooked(recording)
    assert tracer.pid not in {call["pid"] for call in calls}
    for number, job in enumerate([*jobs, late]):
        truths = truth_of(tmp_path / f"truth{number}", job)
        mine = [call for call in calls if call["pid"] == job.pid]
        assert compare.pairs(truths, mine, names)


def with_pid(pid, line, **kwargs):
    """Starts line with this very pid, which nobody has."""
    for _ in range(200):
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        process = subprocess.Popen([str(a) for a in line], **kwargs)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    raise AssertionError("somebody else always comes first")


JOB_LINE = [gbpf.JOB, "--lib", gbpf.SIM / "lib", "--quiet", *STEADY]


@pytest.mark.quiet
def test_a_pid_that_is_used_again_is_another_process(tmp_path):
    """A named one has ended: who comes after it under its number is nobody's target."""
    recording = tmp_path / "t.gbpf"
    with waiting(tmp_path / "stays", *ASLEEP, "--duration", 0) as stays:
        with waiting(tmp_path / "truth", *STEADY, "--iterations", 6) as first:
            with gbpf.tracing(recording, "-q", "-p", f"{first.pid},{stays.pid}", "-d", 0,
                              *SOME):
                go(first)
                again = with_pid(first.pid, [*JOB_LINE, "--truth", tmp_path / "again",
                                             "--iterations", 6])
                assert again.wait(timeout=60) == 0
    assert len(gbpf.truth.load(str(tmp_path / "again")).calls) > 100
    check_exact(recording, truth_of(tmp_path / "truth", first))


@pytest.mark.quiet
def test_a_pid_that_is_used_again_is_recorded_apart(tmp_path):
    recording = tmp_path / "t.gbpf"
    with waiting(tmp_path / "truth", *STEADY, "--iterations", 6) as first:
        with gbpf.tracing(recording, "-q", "-a", "-d", 0, *SOME):
            go(first)
            time.sleep(0.02)  # start times are told apart by clock ticks of 10 ms
            again = with_pid(first.pid, [*JOB_LINE, "--truth", tmp_path / "again",
                                         "--iterations", 3])
            assert again.wait(timeout=60) == 0
    names = gbpf.hooked(recording)
    happened = [sum(c.api in names for c in gbpf.truth.load(str(tmp_path / name)).calls)
                for name in ("truth", "again")]
    rows = [r for r in gbpf.view(recording, "proc_sum")["rows"] if r["pid"] == first.pid]
    assert sorted(r["calls"] for r in rows) == sorted(happened), rows


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.long)])
def test_many_short_processes(tmp_path, count):
    done, recording, truths = gbpf.trace_job(
        tmp_path, "--pattern", "churn", "--iterations", count, "--parallel", 4,
        options=["-q"])
    assert done.returncode == 0, done.stderr
    assert len(truths) >= count
    check_exact(recording, {pid: t for pid, t in truths.items() if t.calls})


# ---- never harm ----


@pytest.mark.parametrize("rung", QUICK_RUNGS)
def test_a_job_under_a_filter_that_kills(tmp_path, rung):
    """Docker's kills whoever uses the system call that return probes need."""
    with waiting(tmp_path / "truth", *STEADY, "--iterations", 6,
                 preexec_fn=sandbox.killing(sandbox.URETPROBE)) as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-q", "-p", job.pid, "--rung", rung,
                          *SOME) as tracer:
            go(job)
            tracer.wait(timeout=60)
    assert job.returncode == 0 and "output" in job.output
    assert tracer.returncode == 0, tracer.err
    check_exact(tmp_path / "t.gbpf", truth_of(tmp_path / "truth", job))


def test_entry_only_counts_and_knows_no_durations(tmp_path):
    done, recording, truths = gbpf.trace_job(tmp_path, "--iterations", 3, *STEADY,
                                             options=["-q", "--entry-only"])
    assert done.returncode == 0, done.stderr
    pairs = compare.pairs(truths, gbpf.calls(recording), gbpf.hooked(recording))
    for truth, call in pairs:
        compare.check_arguments(truth, call)
    happened = collections.Counter(truth.api for truth, _ in pairs)
    for view in ("api_sum", "launch_sum", "sync_sum", "copy_sum"):
        rows = gbpf.view(recording, view)["rows"]
        assert rows
        for row in rows:
            assert {row[key] for key in row if key.endswith("_ns")} == {None}, row
            assert row["errors"] is None, row
            if view == "api_sum":
                assert row["calls"] == happened[row["name"]]
    row, = gbpf.view(recording, "proc_sum")["rows"]
    assert "entry-only" in row["notes"]
    assert row["errors"] is None
    assert "returns were not recorded" in gbpf.gbpf("report", recording).stdout
    for text in (gbpf.gbpf("report", recording).stdout,
                 gbpf.gbpf("report", recording, "--view", "api_sum").stdout):
        assert "n/a" in text or "no durations are known" in text


def outputs(done):
    return [line for line in done.stdout.splitlines() if line.startswith("output")]


@pytest.mark.parametrize("pattern,options", [
    ("exception", []), ("nested64", []), ("longjmp", []), ("fork", []),
    ("cancel", ["--entry-only"]), ("exception", ["--entry-only"])])
def test_what_the_job_says_is_the_same(tmp_path, pattern, options):
    line = [gbpf.JOB, "--lib", gbpf.SIM / "lib", "--truth-mib", 0, "--pattern", pattern,
            "--iterations", 3]
    alone = gbpf.run(*line)
    traced = gbpf.gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", *options, "--", *line)
    assert traced.returncode == alone.returncode == 0, traced.stderr
    assert outputs(alone) and outputs(traced) == outputs(alone)
    assert gbpf.view(tmp_path / "t.gbpf", "api_sum")["rows"]


@pytest.mark.parametrize("rung", QUICK_RUNGS)
def test_a_thread_that_is_cancelled_inside_a_call(tmp_path, rung):
    """The process lives and all threads end; outer cleanup is lost, as --help says."""
    done = gbpf.gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", "--rung", rung, *SOME, "--",
                     gbpf.JOB, "--lib", gbpf.SIM / "lib", "--truth-mib", 0, "--pattern",
                     "cancel", "--iterations", 3)
    assert done.returncode == 0, done
    assert outputs(done)[0].startswith("output cancelled 3 ")
    assert "--entry-only" in gbpf.gbpf("trace", "--help").stdout


@pytest.mark.parametrize("rung", RUNGS)
def test_probes_go_when_gbpf_is_killed(tmp_path, rung, capsys):
    lib = gbpf.SIM / "lib" / "libcuda.so.1"
    with waiting(tmp_path / "truth", *ASLEEP, "--duration", 0) as job:
        job.send_signal(signal.SIGUSR1)
        with gbpf.tracing(tmp_path / "t.gbpf", "-q", "-p", job.pid, "-d", 0, "--rung", rung,
                          *SOME) as tracer:
            assert memory.probed(job.pid, lib, "cuLaunchKernel")
            killed = time.monotonic()
            tracer.kill()
            tracer.wait()
        gbpf.wait_until(lambda: not any(
            memory.probed(job.pid, lib, name)
            for name in ("cuLaunchKernel", "cuLaunchKernelEx", "cuStreamSynchronize")))
        with capsys.disabled():
            print(f"\n{rung}: probes gone {time.monotonic() - killed:.3f} s after SIGKILL")
        assert job.poll() is None
    assert job.returncode == 0 and "output" in job.output


def programs():
    listed = json.loads(memory.tool("bpftool", "prog", "show", "-j"))
    return {p["id"] for p in listed if p.get("name", "").startswith("gbpf_")}


def vital(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.quiet
@pytest.mark.parametrize("cycles", [5, pytest.param(100, marks=pytest.mark.long)])
def test_attached_to_again_and_again(tmp_path, cycles):
    before = programs()
    with waiting(tmp_path / "truth", *ASLEEP, "--duration", 0, "--truth-mib", 0) as job:
        job.send_signal(signal.SIGUSR1)
        for cycle in range(cycles):
            done = gbpf.gbpf("trace", "-q", "-p", job.pid, "-d", "0.02", "-o",
                             tmp_path / "t.gbpf")
            assert done.returncode == 0, done.stderr
            if cycle == 2:
                settled = vital(job.pid)
        rss, descriptors = vital(job.pid)
        assert descriptors == settled[1] and rss <= settled[0] + 512
        assert job.poll() is None
        assert not memory.probed(job.pid, gbpf.SIM / "lib" / "libcuda.so.1", "cuLaunchKernel")
    assert job.returncode == 0 and "output" in job.output
    gbpf.wait_until(lambda: not programs() - before)
