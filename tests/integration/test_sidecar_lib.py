# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so in a program on the simulated CUDA and CUPTI: what it records."""
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
from cupti_runs import name_of  # noqa: E402
from sidecar_target import left, target  # noqa: E402, F401

pytestmark = pytest.mark.parallel

KINDS = {"kernel": wire.KERNEL, "copy": wire.COPY, "set": wire.SET}
DOMAINS = {"driver": 1, "runtime": 2}

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
        return (KINDS[w.kind], w.told, w.node, w.graph, w.device, w.context, w.stream,
                w.kernel if kernel else None, tuple(w.grid) if kernel else None,
                tuple(w.block) if kernel else None, w.registers, w.smem if kernel else 0, w.bytes,
                w.copy if copy else 0, w.source if copy else 0, w.target, w.end - w.begin)

    assert sorted(map(seen, loader.took(wire.WORK)), key=str) == sorted(
        map(true, truth.work), key=str)


@pytest.mark.parametrize("pattern, api, lib, cupti", [
    ("train", "driver", "lib", "libcupti.so.13"),
    ("copy", "driver", "lib", "libcupti.so.13"),
    ("graph", "driver", "lib", "libcupti.so.13"),
    ("train", "runtime", "lib", "libcupti.so.13"),
    ("copy", "driver", "lib-cupti11", "libcupti.so.11.8"),
    ("train", "runtime", "lib-cupti12", "libcupti.so.12"),
    ("graph", "runtime", "lib-cupti128", "libcupti.so.12"),
])
def test_every_piece_of_work_is_recorded_once(build, tmp_path, pattern, api, lib, cupti):
    job = Job(build, tmp_path, "--pattern", pattern, "--threads", 3, "--iterations", 5, "--api",
              api, lib=lib, cupti=cupti)
    loader, truth, last = job.record(wire.ALL_API)
    assert last.type == wire.ENDED and last.dropped == 0
    assert loader.counters() == (0, [0, 0, 0, 0])
    assert len(truth.work) > 20
    compare_work(loader, truth)
    calls = {c.correlation: c for c in loader.took(wire.CALL)}
    assert len(calls) == len(loader.took(wire.CALL))
    for work in truth.work:
        call = calls[work.correlation]
        recorded = truth.recorded(work.call)
        assert (call.tid, call.domain, call.ret) == (work.tid, DOMAINS[recorded.library], 0)
        assert name_of({"runtime": call.domain == 2, "cbid": call.cbid}) == recorded.api


@pytest.mark.parametrize("api", ["driver", "runtime"])
def test_of_calls_those_that_launch_are_told(build, tmp_path, api):
    """Here as long as the first flush takes to come; all others stay with CUPTI."""
    job = Job(build, tmp_path, "--pattern", "train", "--iterations", 3, "--api", api)
    loader, truth, _ = job.record(wire.WITH_CALLS)
    compare_work(loader, truth)
    told = {c.correlation for c in loader.took(wire.CALL)}
    assert told and told <= {w.correlation for w in truth.work}
    assert min(truth.work, key=lambda w: w.enqueued).correlation in told


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
    assert t.still_on() == set()
    names = [c[0] for c in t.calls()]
    assert not [n for n in names if n.endswith("Api")]
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
    assert t.still_on() == set()
    loader = t.started()
    t.tell("launch", 4)
    loader.stop()
    assert len(loader.works(wire.KERNEL)) == 4


def finalized(t):
    return sum(c[0] == "cuptiFinalize" for c in t.calls())


def test_attaching_again_and_again(target):
    t = target()
    for cycle in range(4):
        loader = t.started()
        t.tell("launch", 2)
        assert loader.stop().type == wire.ENDED
        assert len(loader.works(wire.KERNEL)) == 2, cycle
        loader.close()
        left(t)
    assert not finalized(t)


def held(process):
    """What may not grow: kB in memory, mappings, threads."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    values = dict(line.split(":", 1) for line in status.splitlines())
    maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8").count("\n")
    return int(values["VmRSS"].split()[0]), maps, int(values["Threads"])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("busy", [0, 2])
def test_a_thousand_visits(target, tmp_path, busy):
    t = target(SIMCUPTI_LOG="/dev/null")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp_path / "visits"))
    listener.listen(1)
    t.tell("busy", busy)
    for visit in range(1000 if busy else 200):
        assert t.tell("visit", tmp_path / "visits") == 0
        loader = wire.Loader(listener.accept()[0])
        assert loader.hello().type == wire.READY
        assert loader.start().type == wire.BEGAN, visit
        t.tell("launch", 20)
        assert loader.stop().type == wire.ENDED
        assert len(loader.works(wire.KERNEL)) >= 20
        loader.close()
        if visit == 50:
            left(t)
            before = t.tell("files"), held(t.process)
    left(t)
    files, (memory, maps, threads) = t.tell("files"), held(t.process)
    assert files <= before[0] and threads <= before[1][2] and maps <= before[1][1] + 8
    assert memory < before[1][0] + 8192
    t.tell("busy", 0)
    assert t.end() == ""


@pytest.mark.parametrize("lib, cupti", [
    ("lib", "libcupti.so.13"), ("lib-cupti12", "libcupti.so.12")])
def test_a_busy_job_keeps_cupti(target, lib, cupti):
    """Taking it away harms graphs; it begins anew all the same."""
    t = target(lib=lib, cupti=cupti)
    assert t.tell("busy", 3) == 0
    for cycle in range(3):
        loader = t.started()
        loader.wait(0.05)
        last = loader.stop()
        assert last.type == wire.ENDED and len(loader.works(wire.KERNEL)) > 100, cycle
        loader.close()
        left(t)
    assert not finalized(t)
    assert t.tell("busy", 0) == 0
    for word in ("subscribe", "register", "enable"):
        assert t.tell("other", word) == 0
    assert t.tell("launch", 9) == 0
    assert t.tell("other", "disable") == t.tell("other", "flush") == 0
    assert 9 <= t.tell("other", "received") <= 9 + 3, "a call may have ended as all went off"
    assert t.end() == ""


def test_the_next_loader_may_come_while_the_last_one_ends(target):
    t = target()
    for cycle in range(4):
        loader = t.started()
        t.tell("launch", 2)
        loader.close()
    loader = t.started()
    t.tell("launch", 3)
    assert loader.stop().type == wire.ENDED and len(loader.works(wire.KERNEL)) == 3


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


@pytest.mark.parametrize("knob, index", [("START0", 0), ("END0", 0), ("NEGATIVE", 1)])
def test_records_that_make_no_sense_are_counted(target, knob, index):
    t = target(**{f"SIMCUPTI_{knob}": 5})
    loader = t.started()
    t.tell("launch", 50)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 40
    assert loader.counters()[1][index] == 10 and not loader.running()


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
    assert got + dropped >= 1000
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
