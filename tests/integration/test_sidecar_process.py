# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so in processes that fork, exit and die, and where something is amiss."""
import os
import pathlib
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sidecar_loader as wire  # noqa: E402
from sidecar_target import target  # noqa: E402, F401

pytestmark = pytest.mark.parallel

# ---- the life of the process ----


@pytest.mark.parametrize("own", [False, True])
def test_exit_ends_the_window(target, own):
    """Also of a CUPTI that came with us."""
    t = target(cupti=None if own else "libcupti.so.13")
    loader = t.started(text=str(t.sim / "libcupti.so.13"))
    t.tell("launch", 5)
    t.process.stdin.write("exit 0\n")
    t.process.stdin.flush()
    assert loader.answer().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 5
    assert loader.answer() is None
    assert t.end() == ""
    assert t.still_on() == set()


def test_exit_in_the_middle_of_calls(target):
    t = target()
    t.tell("busy", 3)
    loader = t.started()
    t.tell("launch", 1)
    t.process.stdin.write("exit 0\n")
    t.process.stdin.flush()
    assert loader.answer().type == wire.ENDED
    assert loader.answer() is None
    t.process.wait(timeout=10)
    assert len(loader.works(wire.KERNEL)) > 0
    assert t.end() == ""


def test_a_killed_process_leaves_what_it_had_told(target):
    t = target()
    loader = t.started()
    t.tell("launch", 5)
    until = time.monotonic() + 10
    while not loader.works(wire.KERNEL):  # it is told now and then
        assert not loader.wait(0.1) and time.monotonic() < until
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
    child = t.tell("fork-and-stay", -1)
    try:
        t.process.kill()
        assert loader.answer(2) is None
        assert "memfd:ring" not in open(f"/proc/{child}/maps", encoding="utf-8").read()
    finally:
        os.kill(child, signal.SIGKILL)


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


# ---- when CUPTI or the loader does not do as it should ----


@pytest.mark.parametrize("function, nth, kind", [
    ("cuptiSubscribe", 1, "start"),
    ("cuptiActivityRegisterCallbacks", 1, "start"),
    ("cuptiSetThreadIdType", 1, "start"),
    ("cuptiActivityEnable", 1, "start"),
    ("cuptiActivityEnable", 2, "start"),
    ("cuptiActivityEnable", 3, "start"),
    ("cuptiActivityEnable", 5, "start"),
    ("cuptiGetTimestamp", 1, "start"),
    ("cuptiGetTimestamp", 5, "start"),
    ("cuptiGetVersion", 1, "hello"),
    ("cuptiActivityFlushAll", 1, "stop"),
])
def test_errors_of_cupti(target, function, nth, kind):
    """What it says is passed on, nothing stays switched on, and the job goes on."""
    t = target(SIMCUPTI_FAIL=f"{function}=8@{nth}")
    loader = t.attach()
    answer = loader.hello(wire.WITH_CALLS)
    if kind == "hello":
        assert answer.type == wire.REFUSED and "version" in answer.text
        return
    answer = loader.start()
    if kind == "stop":
        assert answer.type == wire.BEGAN
        answer = loader.stop()
    assert (answer.type, answer.code) == (wire.FAILED, 8), answer
    assert t.still_on() == set()
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
