# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so in a program on the simulated CUDA and CUPTI, without gbpf."""
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
sys.path.insert(0, str(ROOT / "tests/integration"))
import sidecar_loader as wire  # noqa: E402
import truth as truthfile  # noqa: E402
from sidecar_target import Target  # noqa: E402

pytestmark = pytest.mark.parallel

KINDS = {"kernel": wire.KERNEL, "copy": wire.COPY, "set": wire.SET}
LAUNCH_KERNEL = 307
MEMCPY, MEMSET, DRIVER, CONCURRENT, MEMCPY_PEER = 1, 2, 4, 10, 22
RUNTIME_RECORDS = 5


@pytest.fixture
def target(build, tmp_path):
    made = []

    def make(**how):
        how.setdefault("SIMCUPTI_LOG", str(tmp_path / "cupti.log"))
        made.append(Target(build, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


# ---- what it records is what happened ----


class Job:
    """simjob, with the library loaded the way CUDA offers."""

    def __init__(self, build, tmp_path, *options, lib="lib", cupti="libcupti.so.13", **environ):
        path = str(tmp_path / "socket")
        self.truth = tmp_path / "job.truth"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(8)
        self.cupti = str(build / "sim" / lib / cupti)
        self.process = subprocess.Popen(
            [build / "sim/simjob", "--truth", self.truth, "--quiet", "--lib", build / "sim" / lib,
             *map(str, options)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, CUDA_INJECTION64_PATH=str(build / "libgbpf-cupti.so"),
                     GBPF_SIDECAR_SOCKET=path, **environ))

    def accept(self, **how):
        self.listener.settimeout(20)
        return wire.Loader(self.listener.accept()[0], **how)

    def record(self, flags=0):
        """All of its life: the records, its truth, the last word."""
        loader = self.accept()
        ready = loader.hello(flags, self.cupti)
        assert ready.type == wire.READY, ready
        assert loader.start().type == wire.BEGAN
        last = loader.answer(60)
        loader.drain()
        err = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 0 and not err, err
        return loader, truthfile.load(self.truth), last


def compare_work(loader, truth):
    """Every piece of work, once, as the device did it."""
    shapes = {s.id: s for s in loader.took(wire.SHAPE)}
    assert len(shapes) == len(loader.took(wire.SHAPE)), "a number twice"

    def seen(w):
        s = shapes[w.shape] if w.kind == wire.KERNEL else None
        return (w.kind, w.correlation, w.graph_node, w.graph, w.device, w.context, w.stream,
                s.name if s else None, s.grid if s else None, s.block if s else None,
                s.registers if s else 0, s.smem_dynamic if s else 0, w.bytes, w.direction,
                w.source, w.target, w.end - w.begin)

    def true(w):
        kernel, copy = w.kind == "kernel", w.kind == "copy"
        return (KINDS[w.kind], w.correlation, w.node, w.graph, w.device, w.context, w.stream,
                w.kernel if kernel else None, tuple(w.grid) if kernel else None,
                tuple(w.block) if kernel else None, w.registers, w.smem if kernel else 0, w.bytes,
                w.copy if copy else 0, w.source if copy else 0, w.target, w.end - w.begin)

    assert sorted(map(seen, loader.took(wire.WORK)), key=str) == sorted(
        map(true, truth.work), key=str)


@pytest.mark.parametrize("pattern, lib, cupti", [
    ("train", "lib", "libcupti.so.13"),
    ("copy", "lib", "libcupti.so.13"),
    ("graph", "lib", "libcupti.so.13"),
    ("copy", "lib-cupti11", "libcupti.so.11.8"),
    ("train", "lib-cupti12", "libcupti.so.12"),
    ("graph", "lib-cupti128", "libcupti.so.12"),
])
def test_every_piece_of_work_is_recorded_once(build, tmp_path, pattern, lib, cupti):
    job = Job(build, tmp_path, "--pattern", pattern, "--threads", 3, "--iterations", 5,
              lib=lib, cupti=cupti)
    loader, truth, last = job.record()
    assert last.type == wire.ENDED and last.dropped == 0
    assert loader.counters() == (0, [0, 0, 0, 0])
    assert len(truth.work) > 20
    compare_work(loader, truth)
    calls = {c.correlation: c for c in loader.took(wire.CALL)}
    assert {w.correlation for w in loader.took(wire.WORK)} <= set(calls)
    assert {c.tid for c in calls.values()} <= {c.tid for c in truth.calls}
    assert {c.domain for c in calls.values()} == {1}


def test_only_launches_copies_and_sets_have_records_of_calls(build, tmp_path):
    """Also where CUPTI cannot be asked for these alone."""
    wanted = None
    for lib, cupti in (("lib", "libcupti.so.13"), ("lib-cupti12", "libcupti.so.12")):
        path = tmp_path / lib
        path.mkdir()
        job = Job(build, path, "--pattern", "train", "--iterations", 3, lib=lib, cupti=cupti)
        loader, truth, _ = job.record()
        got = sorted(c.cbid for c in loader.took(wire.CALL))
        assert LAUNCH_KERNEL in got and len(got) == sum(
            c.api.startswith(("cuLaunchKernel", "cuMemcpy", "cuMemset")) for c in truth.calls)
        assert wanted in (None, got)
        wanted = got
    every = tmp_path / "every"
    every.mkdir()
    loader, _, _ = Job(build, every, "--pattern", "train", "--iterations", 3).record(wire.ALL_API)
    assert len(loader.took(wire.CALL)) > len(wanted)


def test_it_is_in_time_for_the_first_kernel(build, tmp_path):
    job = Job(build, tmp_path, "--pattern", "train", "--iterations", 1)
    loader = job.accept()
    time.sleep(0.2)  # the job waits for that in cuInit()
    assert loader.hello(text=job.cupti).type == wire.READY
    assert loader.start().type == wire.BEGAN
    assert loader.answer().type == wire.ENDED
    job.process.communicate(timeout=20)
    compare_work(loader, truthfile.load(job.truth))


@pytest.mark.parametrize("path", ["", "/nowhere", "x" * 200])
def test_without_a_loader_it_is_silent(build, tmp_path, path):
    """The job's output is the same, and it has no thread of ours."""
    done = subprocess.run(
        [build / "sim/simjob", "--pattern", "train", "--iterations", "2"], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
        env=dict(os.environ, CUDA_INJECTION64_PATH=str(build / "libgbpf-cupti.so"),
                 GBPF_SIDECAR_SOCKET=path))
    plain = subprocess.run(
        [build / "sim/simjob", "--pattern", "train", "--iterations", "2"], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:] != []


def test_a_silent_loader_does_not_keep_the_job_waiting(build, tmp_path):
    job = Job(build, tmp_path, "--pattern", "train", "--iterations", 1)
    loader = job.accept()
    assert job.process.communicate(timeout=10)[1] == "" and job.process.returncode == 0
    assert loader.answer() is None


def test_devices(target):
    t = target()
    loader = t.started()
    assert loader.stop().type == wire.ENDED
    device, = loader.took(wire.DEVICE)
    assert (device.ordinal, device.name) == (0, "Simulated H200")
    assert device.properties == (9, 0, 132, 32, 1024, 2048, 32, 65536, 65536, 49152, 232448,
                                 233472, 1024)
    assert device.uuid != bytes(16) and device.memory > 1 << 30


def test_clock_readings_bracket(target):
    loader = target().started()
    assert not loader.wait(0.5)
    last = loader.stop()
    assert len(loader.clocks) >= 3
    for c in [*loader.clocks, last]:
        assert 0 < c.before <= c.after < c.before + 1_000_000
        assert c.stamp > c.after
    assert [c.before for c in loader.clocks] == sorted(c.before for c in loader.clocks)


# ---- windows ----


def test_a_window_ends_by_itself_and_another_begins(target):
    t = target()
    loader = t.started(0.2)
    assert t.tell("launch", 10) == 0
    assert loader.answer().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 10
    t.tell("launch", 5)
    assert loader.start().type == wire.BEGAN
    t.tell("launch", 7)
    t.tell("set")
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 17 and len(loader.works(wire.SET)) == 1
    assert len(loader.took(wire.SHAPE)) == 1, "told twice"


def test_what_was_switched_on_is_switched_off(target):
    t = target()
    before = t.tell("other", "type")
    loader = t.started(flags=wire.OVERHEAD)
    assert t.tell("other", "type") == 1
    assert loader.stop().type == wire.ENDED
    on, functions = set(), set()
    for function, argument, result in t.calls():
        if function == "cuptiActivityEnable" and result == 0:
            on.add(argument)
        if function == "cuptiActivityDisable":
            on.discard(argument)
        if function == "cuptiActivityEnableDriverApi":
            functions ^= {argument}
    assert on == functions == set()
    names = [c[0] for c in t.calls()]
    assert names.count("cuptiSubscribe") == names.count("cuptiUnsubscribe") == 1
    assert names.index("cuptiUnsubscribe") < names.index("cuptiActivityEnable")
    assert t.tell("other", "type") == before


def test_when_the_loader_goes_nothing_stays(target):
    t = target()
    files = t.tell("files")
    loader = t.started()
    t.tell("launch", 3)
    loader.wait(0.1)
    assert t.tell("threads") == 1
    loader.close()
    left(t)
    assert t.tell("files") == files - 1
    disabled = {c[1] for c in t.calls() if c[0] == "cuptiActivityDisable"}
    assert {CONCURRENT, MEMCPY, MEMSET} <= disabled
    loader = t.started()
    t.tell("launch", 4)
    loader.stop()
    assert len(loader.works(wire.KERNEL)) == 4


def left(t):
    """Waits until no thread of the sidecar's is there; in the middle of a message one has
    another name."""
    none, until = 0, time.monotonic() + 5
    while none < 2:
        assert time.monotonic() < until, "it stays"
        none = 0 if t.tell("threads") else none + 1
        time.sleep(0.005)


def attached_again(t, cycles):
    for i in range(cycles):
        end, number = t.connection()
        loader = wire.Loader(end)
        assert t.tell("begin", number) == 0
        assert loader.hello().type == wire.READY
        assert loader.start().type == wire.BEGAN
        t.tell("launch", 2)
        assert loader.stop().type == wire.ENDED
        assert len(loader.works(wire.KERNEL)) == 2, i
        loader.close()
        left(t)


def test_attaching_again_and_again(target):
    t = target()
    attached_again(t, 5)


def test_a_second_loader_is_refused(target):
    t = target()
    first = t.started()
    end, number = t.connection()
    assert t.tell("begin", number) != 0
    second = wire.Loader(end)
    answer = second.answer()
    assert answer.type == wire.REFUSED and "another gbpf" in answer.text
    assert second.answer() is None
    t.tell("launch", 3)
    assert first.stop().type == wire.ENDED and len(first.works(wire.KERNEL)) == 3


def test_a_second_copy_of_the_library_leaves_it_to_the_first(target, tmp_path):
    t = target()
    first = t.started()
    assert first.stop().type == wire.ENDED
    first.close()
    left(t)
    copy = tmp_path / "copy.so"
    copy.write_bytes(t.library.read_bytes())
    end, number = t.connection()
    assert t.tell("begin-with", copy, number) == 0
    second = wire.Loader(end)
    assert second.hello().type == wire.READY
    assert second.start().type == wire.BEGAN
    t.tell("launch", 3)
    assert second.stop().type == wire.ENDED and len(second.works(wire.KERNEL)) == 3


def test_work_that_runs_as_the_window_ends_is_counted(target):
    t = target()
    loader = t.started()
    t.tell("launch", 5)
    t.tell("slow", 2)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 5
    assert loader.counters() == (0, [2, 0, 0, 0])
    assert t.tell("sync") == 0


@pytest.mark.parametrize("knob, index", [("START0", 0), ("END0", 0), ("NEGATIVE", 1)])
def test_records_that_make_no_sense_are_counted(target, knob, index):
    t = target(**{f"SIMCUPTI_{knob}": 5})
    loader = t.started()
    t.tell("launch", 50)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 40
    assert loader.counters()[1][index] == 10


def test_what_cupti_drops_is_told(target):
    t = target(SIMCUPTI_DROP=10)
    loader = t.started()
    t.tell("launch", 100)
    last = loader.stop()
    assert (last.type, last.dropped) == (wire.ENDED, 10)
    assert len(loader.works(wire.KERNEL)) == 90


def test_a_full_ring_drops_counts_and_does_not_block(target):
    t = target()
    end, number = t.connection()
    loader = wire.Loader(end, size=wire.HEADER + 65536)
    t.tell("begin", number)
    loader.hello()
    loader.start()
    loader.pause = True
    assert t.tell("shapes", 1000) == 0
    last = loader.stop()
    got = len(loader.works(wire.KERNEL)) + len(loader.took(wire.CALL))
    dropped = loader.counters()[0]
    assert last.type == wire.ENDED and dropped > 0
    assert got + dropped == 2000
    shapes = {s.id for s in loader.took(wire.SHAPE)}
    assert {w.shape for w in loader.works(wire.KERNEL)} <= shapes


def test_more_shapes_than_the_table_holds(target):
    t = target()
    loader = t.started()
    assert t.tell("shapes", 7000) == 0
    assert loader.stop().type == wire.ENDED
    shapes = {s.id: s for s in loader.took(wire.SHAPE)}
    grids = sorted(shapes[w.shape].grid[0] for w in loader.works(wire.KERNEL))
    assert grids == list(range(1, 7001)) and loader.counters()[0] == 0


def test_a_name_whose_memory_is_used_again(target):
    """The kernel of another module, loaded where the last one was."""
    t = target()
    loader = t.started()
    names = ["_Z5firstPf", "_Z5otherPf", "_Z5thirdPf"]
    t.tell("launch", 1)
    for name in names[1:]:
        loader.wait(0.25)
        t.tell("module", name)
        t.tell("launch", 1)
    assert loader.stop().type == wire.ENDED
    shapes = {s.id: s.name.decode() for s in loader.took(wire.SHAPE)}
    assert [shapes[w.shape] for w in sorted(loader.works(wire.KERNEL))] == names


# ---- other profilers ----


def refused(t, says):
    loader = t.attach()
    assert loader.hello().type == wire.READY
    answer = loader.start()
    assert answer.type == wire.REFUSED and says in answer.text, answer
    return loader


def changes(t):
    """What was done to CUPTI other than looking at it."""
    looking = ("Version", "Subscribe", "Unsubscribe", "GetThreadIdType", "ResultString",
               "Timestamp", "NextRecord")
    return [c for c in t.calls() if not c[0].endswith(looking)]


def test_the_slot_is_taken(target):
    t = target()
    assert t.tell("other", "subscribe") == 0
    refused(t, "another profiler holds CUPTI")
    assert changes(t) == []
    assert t.tell("other", "unsubscribe") == 0
    loader = t.started()
    t.tell("launch", 3)
    assert loader.stop().type == wire.ENDED and len(loader.works(wire.KERNEL)) == 3


@pytest.mark.parametrize("recording", [True, False])
def test_somebody_registered_without_the_slot(target, recording):
    """As newer Kineto does, now or some time ago."""
    t = target()
    for word in ["register", "enable"] + ["disable", "flush"] * (not recording):
        assert t.tell("other", word) == 0
    before = changes(t)
    refused(t, "sidecar_target records with CUPTI in this process, or has done so")
    assert changes(t) == before
    t.tell("launch", 5)
    assert t.tell("other", "flush") == 0
    assert t.tell("other", "received") == 5 * recording
    assert t.tell("other", "disable") == 0
    assert t.end() == ""


def test_nsight_is_there(target):
    t = target(NSYS_PROFILING_SESSION_ID="1")
    refused(t, "Nsight Systems profiles this process")
    assert t.calls() == [] or changes(t) == []


@pytest.mark.parametrize("name, says", [
    ("libToolsInjection64.so", "Nsight"), ("libcuda-injection.so", "Nsight Compute"),
    ("libsanitizer-collection.so", "compute-sanitizer"), ("libother_tool.so", "injected")])
def test_an_injected_tool_is_there(target, build, tmp_path, name, says):
    tool = tmp_path / name
    tool.write_bytes((build / "sim/lib/libnccl.so.2").read_bytes())
    t = target(CUDA_INJECTION64_PATH=tool)
    refused(t, says)
    assert changes(t) == []


@pytest.mark.parametrize("told", [True, False])
def test_another_profiler_begins_within_the_window(target, told):
    """It is whole but for what lay in our buffers; we leave what it may use."""
    t = target()
    loader = t.started()
    t.tell("launch", 10)
    loader.wait(0.3)
    for word in ("subscribe", "register", "enable"):
        assert t.tell("other", word) == 0, "it may not be kept from recording"
    answer = loader.stop(wire.FOREIGN) if told else loader.answer()
    assert answer.type == wire.WITHDREW and "another profiler" in answer.text
    loader.close()
    left(t)
    got = t.tell("other", "received")
    t.tell("launch", 20)
    assert t.tell("other", "flush") == 0
    assert t.tell("other", "received") - got >= 20 - 1
    assert t.tell("other", "disable") == 0
    refused(t, "another profiler holds CUPTI")
    # a profile after the window
    assert t.tell("other", "enable") == 0
    got = t.tell("other", "received")
    t.tell("launch", 30)
    t.tell("set")
    assert t.tell("other", "disable") == t.tell("other", "flush") == 0
    assert t.tell("other", "received") - got == 31
    assert t.end() == ""


def test_it_begins_after_we_were_told(target):
    """The loader sees it come before it is there: nothing of it may be switched off."""
    t = target()
    loader = t.started()
    t.tell("launch", 10)
    assert t.tell("other", "subscribe") == 0
    assert loader.stop(wire.FOREIGN).type == wire.WITHDREW
    loader.close()
    for word in ("register", "enable"):
        assert t.tell("other", word) == 0
    left(t)
    t.tell("launch", 20)
    assert t.tell("other", "disable") == t.tell("other", "flush") == 0
    assert t.tell("other", "received") >= 20
    assert t.end() == ""


@pytest.mark.long
def test_it_does_not_begin_after_all(target):
    """Then what we switched on is switched off, a little later."""
    t = target()
    loader = t.started()
    assert t.tell("other", "subscribe") == 0
    assert loader.stop(wire.FOREIGN).type == wire.WITHDREW
    loader.close()
    left(t)
    disabled = {c[1] for c in t.calls() if c[0] == "cuptiActivityDisable"}
    assert {CONCURRENT, MEMCPY, MEMSET} <= disabled


# ---- the life of the process ----


def test_exit_ends_the_window(target):
    t = target()
    loader = t.started()
    t.tell("launch", 5)
    t.process.stdin.write("exit 0\n")
    t.process.stdin.flush()
    assert loader.answer().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 5
    assert loader.answer() is None
    assert t.end() == ""


def test_a_killed_process_leaves_what_it_had_told(target):
    t = target()
    loader = t.started()
    t.tell("launch", 5)
    loader.wait(0.4)
    t.process.kill()
    assert loader.answer() is None
    assert len(loader.works(wire.KERNEL)) == 5


@pytest.mark.parametrize("mode", ["flush", "lose"])
def test_a_reset_device_does_no_harm(target, mode):
    t = target(SIMCUPTI_RESET=mode)
    loader = t.started()
    t.tell("launch", 5)
    assert t.tell("reset") == 0
    last = loader.stop()
    kernels = len(loader.works(wire.KERNEL))
    assert last.type == wire.ENDED and kernels + last.dropped <= 5
    assert mode == "lose" or kernels == 5


@pytest.mark.parametrize("how", ["fork", "clone"])
def test_a_child_is_inert(target, how):
    t = target()
    loader = t.started()
    t.tell("launch", 2)
    assert t.tell(how, -1) == 0
    t.tell("launch", 2)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 4
    loader.close()


def test_a_child_does_not_keep_the_socket_open(target):
    t = target()
    loader = t.started()
    child = subprocess.Popen(["true"])
    child.wait()
    assert t.tell("fork", -1) == 0
    t.process.kill()
    assert loader.answer() is None


def test_a_child_of_a_recorded_process_is_refused(target):
    t = target()
    loader = t.started()
    end, number = t.connection()
    status = t.tell("fork", number)
    assert os.waitstatus_to_exitcode(status) != 0
    answer = wire.Loader(end).answer()
    assert answer.type == wire.REFUSED and "forked" in answer.text
    t.tell("launch", 2)
    assert loader.stop().type == wire.ENDED


# ---- what is not there ----


def test_without_cuda_it_loads_nothing(target):
    t = target(late=True, cupti=None)
    loader = t.attach()
    answer = loader.hello()
    assert answer.type == wire.REFUSED and "CUDA is not loaded" in answer.text
    assert loader.answer() is None
    assert "libcu" not in open(f"/proc/{t.process.pid}/maps", encoding="utf-8").read()


@pytest.mark.parametrize("text, says", [
    ("/nowhere/libcupti.so", "no libcupti can be opened at /nowhere/libcupti.so"),
    ("/dev/null", "no libcupti can be opened"),
])
def test_no_libcupti(target, text, says):
    loader = target(cupti=None).attach()
    answer = loader.hello(text=text)
    assert answer.type == wire.REFUSED and says in answer.text
    assert loader.answer() is None


@pytest.mark.parametrize("where", [".", "../../cuda_cupti/lib", "../extras/CUPTI/lib64"])
def test_it_finds_the_libcupti_of_the_runtime(target, build, tmp_path, where):
    """Beside libcudart, as in wheels of CUDA 13; in a wheel of its own; in a toolkit."""
    runtime = tmp_path / "nvidia/cuda_runtime/lib"
    runtime.mkdir(parents=True)
    (runtime / where).mkdir(parents=True, exist_ok=True)
    for library, to in (("libcudart.so.13", runtime), ("libcupti.so.13", runtime / where)):
        (to / library).write_bytes((build / "sim/lib" / library).read_bytes())
    t = target(cupti=None)
    assert t.tell("open", runtime / "libcudart.so.13") == 0
    loader = t.attach()
    ready = loader.hello()
    assert ready.type == wire.READY and ready.flags & wire.OWN_CUPTI, ready
    assert pathlib.Path(ready.text).samefile(runtime / where / "libcupti.so.13")
    assert loader.start().type == wire.BEGAN
    t.tell("launch", 3)
    assert loader.stop().type == wire.ENDED and len(loader.works(wire.KERNEL)) == 3


def test_the_one_that_is_named_wins(target):
    t = target()
    other = t.sim.parent / "lib-cupti128/libcupti.so.12"
    ready = t.attach().hello(text=str(other))
    assert (ready.type, ready.cupti, ready.text) == (wire.READY, 26, str(other))


def test_it_takes_the_libcupti_that_is_loaded(target):
    for lib, cupti, version in (("lib-cupti11", "libcupti.so.11.8", 18),
                                ("lib-cupti12", "libcupti.so.12", 22),
                                ("lib-cupti128", "libcupti.so.12", 26),
                                ("lib", "libcupti.so.13", 130001)):
        t = target(lib=lib, cupti=cupti)
        ready = t.attach().hello()
        assert (ready.type, ready.cupti, ready.flags & wire.OWN_CUPTI) == (wire.READY, version, 0)
        assert pathlib.Path(ready.text).samefile(t.sim / cupti)
        assert ready.pid == t.process.pid
        assert bool(ready.flags & wire.ALL_API) == (version < 23), "calls one by one"


# ---- when CUPTI or the loader does not do as it should ----


@pytest.mark.parametrize("function, kind", [
    ("cuptiSubscribe", "start"),
    ("cuptiActivityRegisterCallbacks", "start"),
    ("cuptiSetThreadIdType", "start"),
    ("cuptiActivityEnableDriverApi", "start"),
    ("cuptiActivityEnable", "start"),
    ("cuptiGetTimestamp", "start"),
    ("cuptiGetVersion", "hello"),
    ("cuptiActivityFlushAll", "stop"),
])
def test_errors_of_cupti(target, function, kind):
    """What it says is passed on, nothing stays switched on, and the job goes on."""
    t = target(SIMCUPTI_FAIL=f"{function}=8@1")
    loader = t.attach()
    answer = loader.hello()
    if kind == "hello":
        assert answer.type == wire.REFUSED and "version" in answer.text
        return
    answer = loader.start()
    if kind == "stop":
        assert answer.type == wire.BEGAN
        answer = loader.stop()
    assert (answer.type, answer.code) == (wire.FAILED, 8), answer
    on = set()
    for name, argument, result in t.calls():
        if name == "cuptiActivityEnable" and not result:
            on.add(argument)
        if name == "cuptiActivityDisable":
            on.discard(argument)
    assert not on
    assert t.tell("launch", 2) == 0


@pytest.mark.parametrize("message", [
    dict(kind=wire.START), dict(kind=wire.STOP), dict(kind=99), dict(kind=wire.HELLO, size=5),
    dict(kind=wire.HELLO, size=1 << 62, fd=True), dict(kind=wire.HELLO, size=4096, fd=True),
    dict(kind=wire.HELLO, size=12288 + 1, fd=True),
])
def test_a_strange_loader_is_left(target, message):
    loader = target().attach()
    if message.pop("fd", None):
        message["fd"] = loader.fd
    loader.send(**message)
    answer = loader.answer()
    assert answer is None or answer.type == wire.REFUSED and loader.answer() is None


def test_a_loader_of_another_version(target):
    loader = target().attach()
    loader.send(wire.HELLO, size=loader.size, fd=loader.fd, version=2)
    answer = loader.answer()
    assert answer.type == wire.REFUSED and "version" in answer.text


def test_messages_of_a_wrong_size(target):
    for data in (b"x", b"x" * 1000):
        loader = target().attach()
        loader.socket.send(data)
        assert loader.answer() is None
