# SPDX-License-Identifier: BSD-2-Clause
"""Recordings in windows, against jobs that know their steps: --wait, --warmup, --active."""

import bisect
import collections
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import time

import gbpf
import overlay
import pytest

EXECUTE = ("_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_"
           "IN2at6TensorESaIS9_EEbbbS7_")
TOOLS = gbpf.BUILD / "tests" / "integration"
MARKER = "marker"

Call = collections.namedtuple("Call", "step api enter leave")


class Steps:
    """A step_target: its process while it runs, and all of its calls afterwards."""

    def __init__(self, path, process):
        self.path, self.process, self.pid = path, process, process.pid

    def load(self):
        lines = [line.split() for line in self.path.read_text().splitlines()]
        assert not any(line[0] == "-1" for line in lines), "no room for all calls"
        self.calls = [Call(int(s), api, int(a), int(b)) for s, api, a, b in lines]
        self.firings = [c for c in self.calls if c.api == MARKER]


@contextlib.contextmanager
def stepping(tmp_path, micro=1, pause_us=1000, marker="libtorch_cpu.so", symbol=EXECUTE, other=0,
             within=None):
    place = within.root if within else tmp_path
    libcuda = place / "libcuda.so.1"
    library = place / marker if marker else "-"
    if not within:
        shutil.copy(gbpf.SIM / "lib" / "libcuda.so.1", libcuda)
    if not within and marker:
        shutil.copy(TOOLS / "step_marker.so", library)
    truth = tmp_path / "steps.txt"
    command = [str(a) for a in (TOOLS / "step_target", libcuda, library, symbol, micro, pause_us,
                                truth, other)]
    process = (within.popen if within else subprocess.Popen)(command, stdout=subprocess.PIPE,
                                                             text=True)
    steps = Steps(truth, process)
    try:
        assert process.stdout.readline().startswith("ready")
        yield steps
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
    steps.load()


def windows(recording):
    done = gbpf.gbpf("report", recording, "--format", "json")
    assert done.returncode == 0, done.stderr
    return [(w["begin_ns"], w["end_ns"])
            for w in json.loads(done.stdout)["quality"]["windows"]]


def info(recording):
    done = gbpf.run(TOOLS / "dump_info", recording)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)


def window_steps(recording):
    spans = [w.split("-") for w in info(recording)["schedule_window_steps"].split(",")]
    return [(int(a), int(b)) for a, b in spans]


def firing_at(steps, ts):
    """Which call of the marker was this? Its window begins or ends inside of it."""
    at = bisect.bisect_right([c.enter for c in steps.firings], ts) - 1
    assert steps.firings[at].enter <= ts <= steps.firings[at].leave, (at, ts)
    return at


def expect_exactly(steps, recording, active, per_step):
    """
    Each window is so many steps, from one call of the marker to another; all calls between
    are recorded, one by one and in order, and nothing else is.
    """
    recorded = sorted(gbpf.calls(recording), key=lambda c: c["begin"])
    assert all(not c["flags"] & (gbpf.OPEN | gbpf.NO_END | gbpf.NO_BEGIN) for c in recorded)
    expected, found = [], windows(recording)
    first = []
    for begin, end in found:
        a, b = firing_at(steps, begin), firing_at(steps, end)
        assert b - a == active * per_step, (a, b)
        first.append(a)
        expected += [c for c in steps.calls
                     if c.api != MARKER and steps.firings[a].leave <= c.enter
                     and c.leave <= steps.firings[b].enter]
    assert [c["api"] for c in recorded] == [c.api for c in expected]
    for seen, true in zip(recorded, expected):
        assert true.enter <= seen["begin"] <= seen["end"] <= true.leave, (seen, true)
    return first


def code(pid, library, symbol):
    """The first bytes of a function, as the process would run them."""
    done = gbpf.run("nm", "-D", library)
    offset = [int(line.split()[0], 16) for line in done.stdout.splitlines()
              if line.split()[-1].split("@")[0] == symbol][0]
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = min(int(m.split("-")[0], 16) for m in maps if m.endswith(str(library)))
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(base + offset)
        return memory.read(8)


def trace(steps, recording, *options, **kwargs):
    return gbpf.gbpf("trace", "-p", steps.pid, "-o", recording, *options, **kwargs)


@pytest.mark.parametrize("rung", ["session", pytest.param("multi", marks=pytest.mark.long)])
def test_backward_passes(tmp_path, rung):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path) as steps:
        done = trace(steps, recording, "--wait", 150, "--warmup", 40, "--active", 7, "--repeat",
                     3, "--rung", rung)
        assert done.returncode == 0, done.stderr
    first = expect_exactly(steps, recording, 7, 1)
    assert len(first) == 3
    about = info(recording)
    assert about["schedule_marker"] == "torch::autograd::Engine::execute"
    assert about["schedule_marker_per_step"] == "1"
    spans = window_steps(recording)
    assert all(b - a == 6 for a, b in spans)
    # the steps' numbers are those of the firings, counted from when the marker was probed
    assert {f - a for f, (a, _) in zip(first, spans)} == {first[0] - spans[0][0]}
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        assert begin - end - 1 >= 190


def test_the_outermost_period_is_the_step(tmp_path):
    """Gradient accumulation: four backward passes a step."""
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path, micro=4) as steps:
        done = trace(steps, recording, "--wait", 60, "--warmup", 20, "--active", 5, "--repeat", 2)
        assert done.returncode == 0, done.stderr
        assert "fires the marker 4 times" in done.stderr
    first = expect_exactly(steps, recording, 5, 4)
    # a window begins with the first backward pass of a step
    assert all(steps.firings[f].step != steps.firings[f - 1].step for f in first)
    assert info(recording)["schedule_marker_per_step"] == "4"


@pytest.mark.parametrize("name", [
    "step_begins", pytest.param("libjob:step_begins", marks=pytest.mark.long)])
def test_a_marker_by_name(tmp_path, name):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path, marker="libjob.so", symbol="step_begins") as steps:
        done = trace(steps, recording, "--warmup", 60, "--active", 9, "--step-marker", name)
        assert done.returncode == 0, done.stderr
    assert len(expect_exactly(steps, recording, 9, 1)) == 1
    assert info(recording)["schedule_marker"] == name


def test_nothing_of_the_target_is_changed_while_waiting(tmp_path):
    recording = tmp_path / "t.gbpf"
    hooked, marker = "cuLaunchKernel", EXECUTE
    with stepping(tmp_path) as steps:
        cuda, torch = tmp_path / "libcuda.so.1", tmp_path / "libtorch_cpu.so"
        clean = code(steps.pid, cuda, hooked)
        unmarked = code(steps.pid, torch, marker)
        with gbpf.tracing(recording, "-p", steps.pid, "--wait", 300, "--warmup", 60, "--active",
                          50, "--repeat", 2) as tracer:
            seen = []
            while tracer.poll() is None:
                seen.append((code(steps.pid, cuda, hooked) != clean,
                             code(steps.pid, torch, marker) != unmarked))
                time.sleep(0.005)
        # Who looks seldom may miss a window; that the calls were probed in it, the recording says.
        assert any(calls for calls, _ in seen) and (False, True) in seen, seen
        gbpf.wait_until(lambda: code(steps.pid, torch, marker) == unmarked)
        assert code(steps.pid, cuda, hooked) == clean
    assert tracer.returncode == 0, tracer.err
    assert len(expect_exactly(steps, recording, 50, 1)) == 2


def test_seconds(tmp_path):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path) as steps:
        done = trace(steps, recording, "--wait", "300ms", "--warmup", "50ms", "--active", "80ms",
                     "--repeat", 2)
        assert done.returncode == 0, done.stderr
    found = windows(recording)
    assert len(found) == 2
    assert all(end - begin >= 80e6 for begin, end in found)
    assert found[1][0] - found[0][1] >= 350e6
    recorded = gbpf.calls(recording)
    inside = [c for c in steps.calls
              if c.api != MARKER and any(a <= c.enter and c.leave <= b for a, b in found)]
    whole = [c for c in recorded if not c["flags"] & (gbpf.OPEN | gbpf.NO_END | gbpf.NO_BEGIN)]
    # the calls at the edges may be seen in part
    assert len(inside) <= len(whole) <= len(inside) + 2 * len(found)
    assert all(any(a <= c["begin"] <= c["end"] <= b for a, b in found) for c in recorded)
    assert "schedule_marker" not in info(recording)


@pytest.mark.long
def test_ctrl_c_ends_a_window(tmp_path):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path) as steps:
        with gbpf.tracing(recording, "-p", steps.pid, "--active", 1000000, "--repeat", 0) as tracer:
            time.sleep(2)
        assert tracer.returncode == 0, tracer.err
    (begin, end), = windows(recording)
    firing_at(steps, begin)
    recorded = gbpf.calls(recording)
    inside = [c for c in steps.calls if c.api != MARKER and begin <= c.enter and c.leave <= end]
    assert len(inside) > 100
    assert len(inside) <= len(recorded) <= len(inside) + 1


def test_the_target_ends(tmp_path):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path) as steps:
        with gbpf.tracing(recording, "-p", steps.pid, "--active", 1000000) as tracer:
            time.sleep(2)
            steps.process.send_signal(signal.SIGTERM)
            tracer.wait(timeout=30)
        assert tracer.returncode == 0, tracer.err
    (begin, _), = windows(recording)
    inside = [c for c in steps.calls if c.api != MARKER and begin <= c.enter]
    assert [c["api"] for c in sorted(gbpf.calls(recording), key=lambda c: c["begin"])] == \
        [c.api for c in inside]


@pytest.mark.long
def test_ended_before_the_first_window(tmp_path):
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path) as steps:
        done = trace(steps, recording, "--wait", 1000000, "--active", 1, "-d", 2)
    assert done.returncode == 1
    assert done.stderr.endswith("the recording ended before the first window began; nothing was "
                                "written\n"), done.stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".gbpf") == []


def expect_between(calls, recording, marks, active):
    """
    Each window goes from one of the job's calls that mark a step to another, so many steps
    later; the first of these is recorded and the last is not.
    """
    recorded = sorted(gbpf.calls(recording), key=lambda c: c["begin"])
    hooked = gbpf.hooked(recording)
    calls = [c for c in calls if c.api in hooked]
    marks = [c for c in calls if marks(c)]
    expected, found = [], windows(recording)
    for begin, end in found:
        first, last = ([i for i, c in enumerate(marks) if c.entry <= ts <= c.leave]
                       for ts in (begin, end))
        assert len(first) == 1 and len(last) == 1
        assert last[0] - first[0] == active
        expected += [c for c in calls if c.leave >= begin and c.entry < marks[last[0]].entry]
    assert [c["api"] for c in recorded] == [c.api for c in expected]
    for seen, true in zip(recorded, expected):
        assert true.entry <= seen["begin"] <= seen["end"] <= true.leave
    return len(found)


@pytest.mark.parametrize("pattern, marker, per_step, kernel", [
    ("graph", "cuGraphLaunch", 4, None),
    ("train", "kernel:softmax_warp_forward", 1, b"softmax_warp_forward"),
    pytest.param("train", "kernel:cutlass::Kernel2<cutlass_80_simt_sgemm_64x64", 8, b"sgemm_64x64",
                 marks=pytest.mark.long),
])
def test_cuda_calls_as_markers(tmp_path, pattern, marker, per_step, kernel):
    recording = tmp_path / "t.gbpf"
    with gbpf.job(tmp_path, "--pattern", pattern, "--duration", 0, "--kernel-ns", 10000,
                  "--wait", "sleep", "--cpu-ns", 20000) as job:
        done = gbpf.gbpf("trace", "-p", job.pid, "-o", recording, "--wait", 50, "--warmup", 50,
                         "--active", 3, "--repeat", 2, "--step-marker", marker)
    assert done.returncode == 0, done.stderr
    assert info(recording)["schedule_marker_per_step"] == str(per_step)
    truth, = gbpf.truths(tmp_path).values()

    def marks(call):
        if kernel:
            return call.api.startswith("cuLaunch") and kernel in (call.kernel or b"")
        return call.api == marker

    assert expect_between(truth.calls, recording, marks, 3 * per_step) == 2


def test_another_rank_leads_when_the_first_ends(tmp_path):
    recording = tmp_path / "t.gbpf"
    for name in "ab":
        (tmp_path / name).mkdir()
    with stepping(tmp_path / "b", pause_us=2000) as b, contextlib.ExitStack() as stack:
        a = stack.enter_context(stepping(tmp_path / "a", pause_us=1000))
        with gbpf.tracing(recording, "-p", f"{a.pid},{b.pid}", "--wait", 100, "--warmup", 60,
                          "--active", 20, "--repeat", 6) as tracer:
            cuda = tmp_path / "a" / "libcuda.so.1"
            probed = code(a.pid, cuda, "cuLaunchKernel")
            for _ in range(2):  # steps are known, the first window comes
                gbpf.wait_until(lambda: code(a.pid, cuda, "cuLaunchKernel") != probed)
                gbpf.wait_until(lambda: code(a.pid, cuda, "cuLaunchKernel") == probed)
            stack.close()
            tracer.wait(timeout=60)
        assert tracer.returncode == 0, tracer.err
    found = windows(recording)
    end = a.calls[-1].leave
    before = [w for w in found if w[1] < end]
    after = [w for w in found if w[0] > end]
    assert before and after and len(found) == 6
    for leader, its in ((a, before), (b, after)):
        for begin, last in its:
            assert firing_at(leader, last) - firing_at(leader, begin) == 20


@pytest.mark.long
def test_the_leader_ends_in_a_window(tmp_path):
    """It ends the window that it began; the other one begins the next."""
    recording = tmp_path / "t.gbpf"
    for name in "ab":
        (tmp_path / name).mkdir()
    with stepping(tmp_path / "b", pause_us=2000) as b, contextlib.ExitStack() as stack:
        a = stack.enter_context(stepping(tmp_path / "a", pause_us=1000))
        with gbpf.tracing(recording, "-p", f"{a.pid},{b.pid}", "--warmup", 60, "--active", 700,
                          "--repeat", 2) as tracer:
            time.sleep(1.6)  # a second to look, and some steps
            stack.close()
            tracer.wait(timeout=60)
        assert tracer.returncode == 0, tracer.err
    first, second = windows(recording)
    assert firing_at(a, first[0]) is not None
    assert first[0] < a.calls[-1].leave < first[1] < second[0]
    assert firing_at(b, second[1]) - firing_at(b, second[0]) == 700
    recorded = gbpf.calls(recording)
    for steps, found in ((a, [first]), (b, [first, second])):
        inside = [c for c in steps.calls if c.api != MARKER and
                  any(x <= c.enter and c.leave <= y for x, y in found)]
        seen = [c for c in recorded if c["pid"] == steps.pid]
        assert len(inside) <= len(seen) <= len(inside) + 2 * len(found)


def test_two_containers_with_one_layer(tmp_path):
    """Both map the same real files under two identities: neither is probed twice."""
    recording = tmp_path / "t.gbpf"
    files = {"libcuda.so.1": gbpf.SIM / "lib" / "libcuda.so.1",
             "libtorch_cpu.so": TOOLS / "step_marker.so"}
    for name in "ab":
        (tmp_path / name).mkdir()
    with overlay.two_overlays(files) as (one, two), \
            stepping(tmp_path / "a", within=one) as a, \
            stepping(tmp_path / "b", within=two, pause_us=3000) as b:
        done = gbpf.gbpf("trace", "-p", f"{a.pid},{b.pid}", "-o", recording, "--wait", 60,
                         "--warmup", 40, "--active", 50)
        assert done.returncode == 0, done.stderr
    assert info(recording)["schedule_marker_per_step"] == "1"
    (begin, end), = windows(recording)
    assert firing_at(a, end) - firing_at(a, begin) == 50
    recorded = sorted(gbpf.calls(recording), key=lambda c: c["begin"])
    for steps in (a, b):
        inside = [c for c in steps.calls
                  if c.api != MARKER and begin <= c.enter and c.leave <= end]
        seen = [c["api"] for c in recorded if c["pid"] == steps.pid
                and not c["flags"] & (gbpf.OPEN | gbpf.NO_END | gbpf.NO_BEGIN)]
        assert seen == [c.api for c in inside] and seen


def test_uneven_steps_are_not_guessed(tmp_path):
    """Every third step has a backward pass more: then each of them counts, and this is said."""
    recording = tmp_path / "t.gbpf"
    with stepping(tmp_path, micro=1, other=3) as steps:
        done = trace(steps, recording, "--warmup", 60, "--active", 9)
        assert done.returncode == 0, done.stderr
    per_step = int(info(recording)["schedule_marker_per_step"])
    # three steps with four passes repeat as a whole, too: that is the outermost period
    assert per_step in (1, 4)
    expect_exactly(steps, recording, 9, per_step)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["auto", "steps"])
def test_no_marker(tmp_path, unit):
    recording = tmp_path / "t.gbpf"
    options = ["--steps"] if unit == "steps" else []
    with stepping(tmp_path, marker=None) as steps:
        done = trace(steps, recording, "--wait", 1, "--active", 1, *options)
    assert "no step was seen" in done.stderr
    if unit == "steps":
        assert done.returncode == 1 and not recording.exists()
        return
    assert done.returncode == 0, done.stderr
    assert "taken for seconds" in done.stderr
    (begin, end), = windows(recording)
    assert 1e9 <= end - begin
    recorded = gbpf.calls(recording)
    inside = [c for c in steps.calls if begin <= c.enter and c.leave <= end]
    assert len(inside) <= len(recorded) <= len(inside) + 2


def test_a_command(tmp_path):
    """Its status is the answer; it ends by itself, after the last window."""
    recording = tmp_path / "t.gbpf"
    done = gbpf.gbpf("trace", "-o", recording, "--wait", 50, "--warmup", 60, "--active", 5, "--",
                     gbpf.JOB, "--pattern", "graph", "--duration", 3, "--kernel-ns", 10000,
                     "--wait", "sleep", "--cpu-ns", 20000, "--truth", tmp_path / "truth.%p",
                     env=gbpf.sim_env())
    assert done.returncode == 0, done.stderr
    truth, = gbpf.truths(tmp_path).values()
    assert expect_between(truth.calls, recording, lambda c: c.api == "cuGraphLaunch", 20) == 1
    assert truth.calls[-1].leave > windows(recording)[0][1]


@pytest.mark.parametrize("options, word", [
    (("--wait", "2"), "--active"),
    (("--active", "1", "--steps", "--seconds"), "exclude"),
    (("--active", "1s", "--steps"), "--steps"),
    (("--active", "1", "--step-marker", "kernel:("), "regular expression"),
])
def test_senseless(options, word):
    done = gbpf.gbpf("trace", "-a", *options)
    assert done.returncode == 2 and not done.stdout
    assert word in done.stderr.splitlines()[0]
