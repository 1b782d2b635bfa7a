# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so where another profiler uses CUPTI, too: nothing of it may be lost."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sidecar_loader as wire  # noqa: E402
from sidecar_target import left, target  # noqa: E402, F401

pytestmark = pytest.mark.parallel

MEMCPY, MEMSET, CONCURRENT = 1, 2, 10



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
    refused(t, "another profiler holds CUPTI").close()
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


def test_there_are_two(target):
    """Who uses the other libcupti would not be seen."""
    t = target()
    loader = t.attach()
    other = t.sim.parent / "lib-cupti128/libcupti.so.12"
    assert loader.hello(text=str(other)).type == wire.READY
    answer = loader.start()
    assert answer.type == wire.REFUSED and "more than one libcupti" in answer.text
    assert changes(t) == []


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


def test_it_enables_first_and_registers_later(target):
    """What is on by then stays on."""
    t = target()
    loader = t.started()
    assert t.tell("other", "subscribe") == 0
    assert loader.stop(wire.FOREIGN).type == wire.WITHDREW
    assert t.tell("other", "enable") == 0
    loader.wait(0.2)
    assert t.tell("other", "register") == 0
    loader.close()
    left(t)
    t.tell("launch", 20)
    assert t.tell("other", "flush") == t.tell("other", "disable") == 0
    assert t.tell("other", "received") >= 20
    assert t.end() == ""


def test_its_records_do_not_lie_in_our_buffers_for_long(target):
    """It cannot read what it did not lend; CUPTI would go on to fill it."""
    t = target()
    loader = t.started()
    loader.wait(0.25)
    t.tell("launch", 10)
    loader.wait(0.05)
    for word in ("strict", "subscribe", "register", "enable"):
        assert t.tell("other", word) == 0
    assert loader.answer().type == wire.WITHDREW
    t.tell("launch", 20)
    assert t.tell("other", "flush") == t.tell("other", "disable") == 0
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
