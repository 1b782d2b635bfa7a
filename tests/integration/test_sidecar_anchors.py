# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so: the moments in which calls are recorded, too."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gbpf  # noqa: E402
import sidecar_loader as wire  # noqa: E402
from sidecar_target import left, target  # noqa: E402, F401

pytestmark = pytest.mark.parallel

DRIVER, RUNTIME, CONCURRENT = 4, 5, 10
CALLS = {DRIVER, RUNTIME}
LAUNCH_KERNEL = 307
FIRST = 32  # calls that launch, for which the first moment waits


def moments(t):
    """What was asked of CUPTI from each moment's beginning on, until it was over."""
    out = []
    for function, argument, _ in t.calls():
        if (function, argument) == ("cuptiActivityEnable", DRIVER):
            out.append([])
        if out and ("cuptiActivityDisable", RUNTIME) not in out[-1]:
            out[-1].append((function, argument))
    return out


def over(t, count):
    """Have so many moments been, and is the last one over?"""
    seen = moments(t)
    return len(seen) >= count and ("cuptiActivityDisable", RUNTIME) in seen[count - 1]


def wait_until(t, loader, count):
    gbpf.wait_until(lambda: loader.wait(0.01) or over(t, count))
    assert over(t, count)


def clusters(calls):
    """Calls between which others, of which there are no records, went on for 0.3 s."""
    out = []
    for call in sorted(calls):
        if not out or call.begin - out[-1][-1].begin > 300_000_000:
            out.append([])
        out[-1].append(call)
    return out


@pytest.mark.parametrize("lib, cupti", [
    ("lib", "libcupti.so.13"), ("lib-cupti11", "libcupti.so.11.8"),
    ("lib-cupti133", "libcupti.so.13")])
def test_now_and_then_calls_are_recorded(target, lib, cupti):
    t = target(lib=lib, cupti=cupti)
    t.tell("busy", 1)
    loader = t.started(flags=wire.WITH_CALLS)
    wait_until(t, loader, 3)
    assert loader.stop().type == wire.ENDED
    t.tell("busy", 0)
    assert t.still_on() == set()
    kernels = {w.correlation: w for w in loader.works(wire.KERNEL)}
    calls = loader.took(wire.CALL)
    assert {(c.cbid, c.domain) for c in calls} == {(LAUNCH_KERNEL, 1)}
    groups = clusters(calls)
    assert len(groups) >= 3
    assert loader.counters() == (0, [0, 0, 0, 0])
    for group in groups[1:]:
        of = [kernels[c.correlation] for c in group if c.correlation in kernels]
        assert len(of) > 0.5 * len(group) > 0, "anchors are calls whose works were recorded"
    between = [w for w in loader.works(wire.KERNEL)
               if groups[0][-1].end < w.begin < groups[1][0].begin]
    assert len(between) > 10, "works have records all the time"
    assert groups[0][0].correlation <= min(kernels), "the first work has a call"


def test_the_first_moment_waits_for_a_launch(target):
    """Not for any call."""
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    t.tell("sync")
    loader.wait(0.15)
    t.tell("sync")
    assert len(moments(t)) == 1 and CALLS <= t.still_on()
    assert [f for f, _ in moments(t)[0]].count("cuptiActivityFlushAll") >= 2
    assert not loader.took(wire.CALL)
    t.tell("launch", FIRST - 1)
    loader.wait(0.1)
    assert len(moments(t)) == 1 and CALLS <= t.still_on(), "one more"
    t.tell("launch", 1)
    wait_until(t, loader, 1)
    assert [c.cbid for c in loader.took(wire.CALL)] == [LAUNCH_KERNEL] * FIRST
    t.tell("launch", 4)
    only = len(moments(t)) == 1
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == FIRST + 4
    assert len(loader.took(wire.CALL)) == FIRST or not only


def test_a_later_moment_ends_without_a_call(target):
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    t.tell("launch", FIRST)
    wait_until(t, loader, 3)
    for moment in moments(t)[1:3]:
        assert [f for f, _ in moment if f != "cuptiGetTimestamp"][:2] == ["cuptiActivityEnable"] * 2
        assert 1 <= [f for f, _ in moment].count("cuptiActivityFlushAll") <= 3
    assert not CALLS & t.still_on() or len(moments(t)) > 3
    assert len(loader.took(wire.CALL)) == FIRST
    assert loader.stop().type == wire.ENDED and t.still_on() == set()


@pytest.mark.parametrize("lib", ["lib", "lib-cupti133"])
def test_where_works_are_numbered_no_call_is_ever_recorded(target, lib):
    """What that would leave behind, every call of the job would pay for until it ends."""
    t = target(lib=lib)
    loader = t.started()
    for _ in range(3):
        t.tell("launch", 5)
        t.tell("sync")
    loader.wait(0.7)
    assert not moments(t) and not CALLS & t.still_on()
    assert loader.stop().type == wire.ENDED and t.still_on() == set()
    assert not CALLS & {kind for f, kind, _ in t.calls() if f == "cuptiActivityEnable"}
    assert not loader.took(wire.CALL)
    assert [w.correlation for w in loader.works(wire.KERNEL)] == list(range(1, 16))


def test_all_calls_of_a_window(target):
    t = target()
    loader = t.started(flags=wire.ALL_API)
    for _ in range(4):
        t.tell("launch", 2)
        loader.wait(0.2)
    asked = [c[:2] for c in t.calls()]
    assert asked.count(("cuptiActivityEnable", DRIVER)) == 1
    assert asked.count(("cuptiActivityEnable", RUNTIME)) == 1
    assert not [c for c in asked if c[0] == "cuptiActivityDisable"]
    assert loader.stop().type == wire.ENDED and t.still_on() == set()
    calls = [c for c in loader.took(wire.CALL) if c.tid == t.process.pid]
    assert len(calls) == 4 * (2 + 1) and len({c.correlation for c in calls}) == len(calls)
    assert {w.correlation for w in loader.works(wire.KERNEL)} < {c.correlation for c in calls}


@pytest.mark.parametrize("function, nth", [
    ("cuptiActivityEnable", 7), ("cuptiActivityEnable", 8), ("cuptiActivityDisable", 2)])
def test_what_cannot_be_switched_ends_the_window(target, function, nth):
    """Of the kinds, six are enabled first; and what could not be switched off is tried again."""
    t = target(SIMCUPTI_FAIL=f"{function}=8@{nth}")
    loader = t.started(flags=wire.WITH_CALLS)
    t.tell("launch", FIRST)
    answer = loader.answer()
    assert (answer.type, answer.code) == (wire.FAILED, 8), answer
    assert "recording of calls" in answer.text and answer.window
    assert len(loader.works(wire.KERNEL)) == FIRST, "what came before is kept"
    assert t.still_on() == set() or function.endswith("Disable") and not CALLS & t.still_on()
    assert t.tell("launch", 2) == 0


def test_the_loader_goes_within_a_moment(target):
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    assert CALLS <= t.still_on()
    loader.close()
    left(t)
    assert t.still_on() == set()


def test_exit_within_a_moment(target):
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    assert CALLS <= t.still_on()
    t.process.stdin.write("exit 0\n")
    t.process.stdin.flush()
    assert loader.answer().type == wire.ENDED
    assert t.end() == "" and t.still_on() == set()


def test_a_child_has_no_moments(target):
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    assert t.tell("fork", -1) == 0
    assert loader.stop().type == wire.ENDED and t.still_on() == set()
    pids = {line.split()[0] for line in open(t.log, encoding="ascii")}
    assert pids == {str(t.process.pid)}


def test_another_profiler_takes_over_within_a_moment(target):
    """It records calls of the runtime, and goes on to do so; the driver's are off."""
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    assert CALLS <= t.still_on()
    for word in ("subscribe", "register", "enable", "calls"):
        assert t.tell("other", word) == 0
    assert loader.answer().type == wire.WITHDREW
    assert DRIVER not in t.still_on() and {RUNTIME, CONCURRENT} <= t.still_on()
    assert t.tell("other", "flush") == t.tell("other", "disable") == 0
    assert t.end() == "", "its guard aborts who was harmed"


def test_another_profiler_may_come_within_a_moment(target):
    """Told of it before it is there: calls are off at once, the rest a little later."""
    t = target()
    loader = t.started(flags=wire.WITH_CALLS)
    assert t.tell("other", "subscribe") == 0
    assert loader.stop(wire.FOREIGN).type == wire.WITHDREW
    assert not CALLS & t.still_on() and CONCURRENT in t.still_on()
    for word in ("register", "enable"):
        assert t.tell("other", word) == 0
    loader.close()
    left(t)
    t.tell("launch", 20)
    assert t.tell("other", "disable") == t.tell("other", "flush") == 0
    assert t.tell("other", "received") >= 20
    assert t.end() == ""
