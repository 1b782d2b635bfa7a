# SPDX-License-Identifier: BSD-2-Clause
"""libgbpf-cupti.so: how a window ends while the GPU has work, and while it has none."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sidecar_loader as wire  # noqa: E402
from sidecar_target import left, target  # noqa: E402, F401

pytestmark = pytest.mark.parallel

CONCURRENT = 10
TURN_MS, GRACE_MS, PATIENCE_MS = 4, 20, 300


def flushes(t):
    """Of CUPTI's buffers since kernels are recorded no more: the flags of each."""
    calls = t.calls()
    off = max(n for n, c in enumerate(calls) if c[:2] == ("cuptiActivityDisable", CONCURRENT))
    return [c[1] for c in calls[off:] if c[0] == "cuptiActivityFlushAll"]


def check_end(t, most_ms):
    """No longer than that, counted in turns, which are never shorter; then by force, once."""
    seen = flushes(t)
    assert seen == [0] * (len(seen) - 1) + [1]
    assert 2 <= len(seen) <= most_ms // TURN_MS + 2, seen


@pytest.mark.parametrize("lib, cupti", [
    ("lib", "libcupti.so.13"), ("lib-cupti12", "libcupti.so.12")])
def test_a_queue_of_long_kernels_is_waited_for(target, lib, cupti):
    """34 ms of them: each has its end, and nothing is counted."""
    t = target(lib=lib, cupti=cupti)
    loader = t.started()
    assert t.tell("launch", 5) == t.tell("queue", 100) == 0
    assert loader.stop().type == wire.ENDED
    kernels = loader.works(wire.KERNEL)
    assert len(kernels) == 105 and sum(w.end - w.begin == 340000 for w in kernels) == 100
    assert loader.counters() == (0, [0] * 4) and not loader.running()
    check_end(t, PATIENCE_MS)


def test_work_that_runs_for_longer_is_counted(target):
    """It is no record that makes no sense."""
    t = target()
    loader = t.started()
    t.tell("launch", 5)
    t.tell("endless", 2)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 5
    assert loader.counters() == (0, [0] * 4) and loader.running() == 2
    check_end(t, PATIENCE_MS)


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("count", [0, 50])
def test_without_work_it_is_quick(target, spare, count):
    """Also where CUPTI has an empty buffer of ours all the time."""
    t = target(SIMCUPTI_SPARE=spare)
    loader = t.started()
    loader.wait(0.05)
    t.tell("launch", count)
    assert loader.stop().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == count and not loader.running()
    check_end(t, GRACE_MS)


def test_nobody_waits_for_what_no_loader_takes(target):
    t = target()
    loader = t.started()
    t.tell("endless", 1)
    loader.close()
    left(t)
    check_end(t, GRACE_MS)


def test_exit_with_work_under_way(target):
    t = target()
    loader = t.started()
    t.tell("launch", 3)
    t.tell("endless", 1)
    t.process.stdin.write("exit 0\n")
    t.process.stdin.flush()
    assert loader.answer().type == wire.ENDED
    assert len(loader.works(wire.KERNEL)) == 3 and loader.running() == 1
    assert t.end() == ""
    check_end(t, PATIENCE_MS)
