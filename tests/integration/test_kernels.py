# SPDX-License-Identifier: BSD-2-Clause
"""The same comparisons on other kernels, which run under emulation (tests/qemu).

One boot a machine runs all its cases; each test then looks at what one of them
left behind. Times are not compared with anything but the job's own.
"""
import dataclasses
import json
import re
import sys

import pytest

import compare
import gbpf
from gbpf import BUILD, NO_END, OPEN, POLL, ROOT, SIM

sys.path.insert(0, str(ROOT / "tests/qemu"))
import vm  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.parallel, pytest.mark.xdist_group("kernels"),
              pytest.mark.timeout(900)]

# Taking one perf event away takes a tenth of a second, on these kernels too.
FEW = "cuLaunchKernel,cuStreamSynchronize,cuModuleGetFunction,cuMemcpyHtoDAsync_v2"
NAMED = "cuLaunchKernel,cuModuleGetFunction,cuModuleUnload"
SINGLE_APIS = {
    "copy": "cuMemcpyHtoDAsync_v2,cuMemcpyDtoH_v2,cuMemcpy2D_v2,cuMemcpy3D_v2,cuMemsetD32Async",
    "allocs": "cuMemAlloc_v2,cuMemFree_v2,cuMemAllocAsync,cuMemAllocPitch_v2",
    "poll": "cuEventQuery,cuStreamQuery,cuEventRecord",
    "names": NAMED, "unload": NAMED, "longjmp": "cuLaunchKernel,cuLaunchHostFunc",
    "sync": "cuLaunchKernel,cuStreamSynchronize,cuEventSynchronize,cuCtxSynchronize",
}
PATTERNS = {
    "train": "--iterations 3", "sync": "--iterations 3", "copy": "--iterations 3",
    "allocs": "--iterations 3", "poll": "--iterations 2 --kernel-ns 2000000",
    "unload": "--iterations 6", "fork": "--iterations 3", "names": "--iterations 2",
    "longjmp": "--iterations 4", "opencall": "--start-delay 10", "threads": "--threads 8",
}


@dataclasses.dataclass(frozen=True)
class Machine:
    version: str
    chosen: str  # the rung that gbpf takes by itself
    refused: tuple  # those that can be loaded or not, but never attached
    rungs: tuple
    arguments: str = ""
    patterns: tuple = tuple(PATTERNS)
    options: str = ""

    def cases(self):
        """(name, rung, pattern, line for tests/qemu/init)"""
        for rung in self.rungs:
            for pattern in self.patterns:
                api = SINGLE_APIS.get(pattern, FEW) if rung == "single" else "driver"
                form = "attach" if pattern == "opencall" else "command"
                job = f"--pattern {'train' if pattern == 'threads' else pattern}"
                name = f"{pattern}-{rung}"
                line = f"case {name} {rung} {api} {form} {job} {PATTERNS[pattern]} {self.options}"
                yield name, rung, pattern, line


MACHINES = {
    "6.1": Machine("6.1", "perf_event", ("uprobe.session", "uprobe.multi"), ("single",)),
    "6.12": Machine("6.12", "uprobe.multi", ("uprobe.session",), ("multi", "single")),
    "6.12-preempt": Machine("6.12", "uprobe.multi", ("uprobe.session",), ("multi",),
                            arguments="preempt=full", patterns=("threads", "poll", "fork"),
                            options="--threads 16 --iterations 12"),
}
RUNG_NAMES = ("uprobe.session", "uprobe.multi", "perf_event")


def programs():
    found = {f"bin/{n}": BUILD / "tests/integration" / n
             for n in ("dump_rungs", "dump_stacks", "hold_target")}
    found["bin/gbpf"] = gbpf.GBPF
    found["sim/simjob"] = gbpf.JOB
    for path in (SIM / "lib").iterdir():
        found[f"sim/lib/{path.name}"] = path
    return found


@pytest.fixture(scope="module")
def booted(tmp_path_factory):
    """A function: what a machine's one boot left behind."""
    done = {}

    def run(name):
        if name not in done:
            machine = MACHINES[name]
            lines = [case[3] for case in machine.cases()]
            lines.append(f"case auto auto {FEW} command --pattern train --iterations 2")
            lines += [f"hold hold-{rung} {rung} cuLaunchKernel" for rung in machine.rungs]
            lines += [f"monitor monitor-{rung} {rung}" for rung in machine.rungs]
            place = tmp_path_factory.mktemp(name)
            done[name] = None  # a boot that failed is not tried again
            done[name] = vm.boot(place, machine.version, BUILD, programs(), lines,
                                 machine.arguments)
        assert done[name], "the boot failed before"
        return done[name]

    return run


def text(path):
    return path.read_text(errors="replace")


@pytest.mark.parametrize("name", MACHINES)
def test_the_kernel_is_the_one_meant_and_complains_of_nothing(booted, name):
    out, console = booted(name)
    machine = MACHINES[name]
    assert text(out / "release").startswith(machine.version + ".")
    assert machine.arguments in text(out / "cmdline")
    assert (out / "end").exists(), console[-4000:]
    log = text(out / "dmesg")
    assert "Linux version " + machine.version in log
    trouble = re.compile(r"BUG:|WARNING:|Oops|Call Trace|general protection|stall|"
                         r"scheduling while atomic|hung task|lockup")
    bad = [line for line in (log + console).splitlines() if trouble.search(line)]
    assert not bad, "\n".join(bad[:20])


@pytest.mark.parametrize("name", MACHINES)
def test_rungs(booted, name):
    """What is refused, what is chosen, and that return probes kill nobody there."""
    out, _ = booted(name)
    machine = MACHINES[name]
    rows = [line.split("\t") for line in text(out / "rungs").splitlines()]
    rungs = {row[0]: [int(n) for n in row[1:]] for row in rows[:-1]}
    assert tuple(rungs) == RUNG_NAMES
    for rung, (load, attach, seccomp) in rungs.items():
        if rung in machine.refused:
            assert load < 0 or attach < 0, (rung, load, attach)
        else:
            assert (load, attach, seccomp) == (0, 0, 0), (rung, load, attach, seccomp)
    assert rows[-1] == ["auto", "0", machine.chosen]


@pytest.mark.parametrize("name", MACHINES)
def test_doctor_says_the_same(booted, name):
    out, _ = booted(name)
    machine = MACHINES[name]
    rungs = {r["rung"]: r for r in json.loads(text(out / "doctor"))["rungs"]}
    assert tuple(rungs) == RUNG_NAMES
    for rung, said in rungs.items():
        assert said["used"] == (rung == machine.chosen), said
        assert said["result"] == ("no" if rung in machine.refused else "ok"), said


@pytest.mark.parametrize("name", MACHINES)
def test_every_program_loads(booted, name):
    out, _ = booted(name)
    rows = [line.split("\t") for line in text(out / "stacks").splitlines()]
    assert len(rows) == 20 and all(depths for _, depths in rows), text(out / "stacks.stderr")


def compared(place, pattern):
    """Call by call, as on the machine of the tests; (pairs, calls, recording, truths)."""
    assert text(place / "status") == "0\n", text(place / "stderr")
    truths = gbpf.truths(place)
    recording = place / "t.gbpf"
    calls = gbpf.calls(recording)
    pairs = compare.pairs(truths, calls, gbpf.hooked(recording))
    for truth, call in pairs:
        if pattern != "longjmp":
            compare.check_arguments(truth, call)
        compare.check_time(truth, call)
    quality = gbpf.view(recording, "api_sum")["quality"]
    assert not any(quality["losses"].values()), quality
    return pairs, calls, recording, truths


def check_open(place):
    calls = gbpf.calls(place / "t.gbpf")
    assert [c["api"] for c in calls if c["flags"] & OPEN] == ["cuStreamSynchronize"]
    assert text(place / "job-status") == "0\n"


def check_left(pairs):
    for truth, call in pairs:
        assert bool(truth.leave) != bool(call["flags"] & (NO_END | OPEN)), (truth, call)
    assert any(call["flags"] & (NO_END | OPEN) for _, call in pairs)


def check_polls(calls, truths, names):
    polls = [c for c in calls if c["flags"] & POLL]
    queries = [c for t in truths.values() for c in t.calls
               if c.api in compare.QUERIES and c.api in names]
    assert queries and sum(p["count"] for p in polls) == len(queries)


def check_names(pairs):
    launches = [(t, c) for t, c in pairs if t.kernel and "grid" in c]
    assert launches
    for truth, call in launches:
        assert bytes.fromhex(call["kernel"]) == truth.kernel[:8191], (truth, call)


CASES = [(machine, *case[:3]) for machine, m in MACHINES.items() for case in m.cases()]


@pytest.mark.parametrize("machine,case,rung,pattern", CASES,
                         ids=[f"{machine}-{case}" for machine, case, *_ in CASES])
def test_calls(booted, machine, case, rung, pattern):
    place = booted(machine)[0] / case
    assert text(place / "status") == "0\n", text(place / "stderr")
    if pattern == "opencall":
        check_open(place)
        return
    pairs, calls, recording, truths = compared(place, pattern)
    if pattern == "longjmp":
        check_left(pairs)
    elif pattern == "poll":
        check_polls(calls, truths, gbpf.hooked(recording))
    elif pattern in ("train", "threads", "names", "unload"):
        check_names(pairs)
    elif pattern == "fork":
        assert len(truths) > 1, "nobody forked"
    assert pairs or pattern == "poll"


@pytest.mark.parametrize("machine", MACHINES)
def test_what_gbpf_does_by_itself(booted, machine):
    place = booted(machine)[0] / "auto"
    pairs, _, recording, _ = compared(place, "train")
    check_names(pairs)
    done = gbpf.run(BUILD / "tests/integration/dump_info", recording)
    info = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert info["rung"] == MACHINES[machine].chosen
    assert info["kernel"].startswith(MACHINES[machine].version)
    assert "return probes would kill" not in text(place / "stderr")


@pytest.mark.parametrize("machine,rung", [(n, r) for n, m in MACHINES.items() for r in m.rungs])
def test_a_library_that_nobody_knew(booted, machine, rung):
    """The command is held where it mapped it, until it is probed."""
    place = booted(machine)[0] / f"hold-{rung}"
    assert text(place / "status") == "0\n", text(place / "stderr")
    rows = [r for r in gbpf.view(place / "t.gbpf", "api_sum")["rows"]
            if r["name"] == "cuLaunchKernel"]
    assert sum(r["calls"] for r in rows) == 500


@pytest.mark.parametrize("machine,rung", [(n, r) for n, m in MACHINES.items() for r in m.rungs])
def test_a_monitor(booted, machine, rung):
    """What is always probed is counted exactly; where windows cannot be, launches are n/a."""
    place = booted(machine)[0] / f"monitor-{rung}"
    assert text(place / "status") == "0\n", text(place / "stderr")
    assert text(place / "job-status") == "0\n"
    intervals = [json.loads(line) for line in text(place / "stdout").splitlines()]
    assert intervals
    pid = int(text(place / "job").split()[1])
    truth = gbpf.truths(place)[pid]
    syncs = truth.totals[pid, "cuStreamSynchronize"].calls
    (last,) = [p for p in intervals[-1]["processes"] if p["pid"] == pid]
    seen = {a["name"]: a["calls_seen"] for a in last["apis"]}
    assert 0 < seen["cuStreamSynchronize"] <= syncs
    if rung == "single":
        assert "cuLaunchKernel" not in seen and last["launches_per_s"] is None
        assert "launches are not counted" in intervals[-1]["self"]["limit"]
    else:
        assert seen["cuLaunchKernel"] > 0 and last["launches_per_s"] > 0
        assert intervals[-1]["self"]["limit"] is None
