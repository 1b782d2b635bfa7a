# SPDX-License-Identifier: BSD-2-Clause
"""The simulated CUDA itself: what the other tests take for granted."""
import pathlib
import signal
import struct
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
import truth as truthfile  # noqa: E402

pytestmark = pytest.mark.parallel

LIBRARIES = {
    "libcuda.so.1": "libcuda-580.159.04",
    "libcudart.so.13": "libcudart-13.0",
    "libnccl.so.2": "libnccl-2.28.9",
}
STARTS = {
    "lib": b"\x55",
    "lib-stripped": b"\x55",
    "lib-endbr": b"\xf3\x0f\x1e\xfa\x55",
    "lib-sub": b"\x48\x83\xec\x18",
}
STEP = {"cuLaunchKernelEx": 24, "cuLaunchKernel": 55, "cuStreamSynchronize": 1}


@pytest.fixture
def sim(build):
    assert (build / "sim/simjob").exists(), "not built: make sim"
    return build / "sim"


@pytest.fixture
def job(sim, tmp_path):
    """Runs a job; its output and its truth come back."""

    def run(pattern, *options, program="simjob", fails=False):
        path = tmp_path / f"{pattern}.truth"
        done = subprocess.run(
            [sim / program, "--pattern", pattern, "--truth", path, *map(str, options)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )
        assert fails or done.returncode == 0, done.stderr
        output = [line for line in done.stdout.splitlines() if line.startswith("output ")]
        return output, truthfile.load(path)

    return run


def start(sim, *options):
    process = subprocess.Popen(
        [sim / "simjob", *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == f"ready {process.pid}\n"
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output


def readelf(option, path):
    return subprocess.run(
        ["readelf", "-W", option, path], capture_output=True, text=True, check=True
    ).stdout


def exports(path):
    """{name: (kind, address)} of the dynamic symbol table."""
    out = {}
    for line in readelf("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) == 8 and words[0].rstrip(":").isdigit() and words[6] != "UND":
            out[words[7].split("@")[0]] = words[3], int(words[1], 16)
    return out


def first_bytes(path, addresses):
    data = path.read_bytes()
    loads = []
    for line in readelf("--program-headers", path).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            loads.append([int(w, 16) for w in (words[1], words[2], words[4])])
    for name, address in addresses.items():
        offset = next(o + address - v for o, v, size in loads if v <= address < v + size)
        yield name, data[offset:offset + 8]


def listed(names):
    lines = (ROOT / f"tests/data/exports-{names}.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


@pytest.mark.parametrize("variant", STARTS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_is_exported_and_starts_right(sim, variant, library):
    path = sim / variant / library
    names, found = listed(LIBRARIES[library]), exports(path)
    assert names - set(found) == set()
    functions = {n: found[n][1] for n in names if found[n][0] == "FUNC"}
    assert {n for n in names - set(functions) if not n.startswith("cudbg")} == set()
    assert len(set(functions.values())) == len(functions), "two names at one address"
    wrong = [
        (name, code.hex()) for name, code in first_bytes(path, functions)
        if not code.startswith(STARTS[variant])
        and not (variant != "lib-sub" and name.startswith("__cudaLaunchKernel"))
    ]
    assert wrong == []


def test_what_is_stripped_and_what_is_inside(sim):
    assert ".symtab" in readelf("--sections", sim / "lib/libcuda.so.1")
    assert ".symtab" not in readelf("--sections", sim / "lib-stripped/libcuda.so.1")
    inside = readelf("--symbols", sim / "simjob-static")
    assert " cudaLaunchKernel\n" in inside
    stripped = sim / "simjob-static-stripped"
    assert "cudaLaunchKernel" not in readelf("--symbols", stripped)
    assert ".nvFatBinSegment" in readelf("--sections", stripped)
    assert "libcudart" not in readelf("--dynamic", stripped)
    assert "libcudart.so.13" in readelf("--dynamic", sim / "simjob-linked")


@pytest.mark.parametrize("threads", [1, 4, 64])
def test_train_counts(job, threads):
    output, truth = job("train", "--iterations", 10, "--threads", threads)
    for api, calls in STEP.items():
        assert truth.count()[api] == 10 * calls * threads
        assert truth.total(api).calls == 10 * calls * threads
        assert truth.total(api).ns == sum(c.ns for c in truth.calls if c.api == api)
    assert len(truth.by_thread()) == threads and truth.unwritten == 0
    assert all(c.leave >= c.entry for c in truth.calls)
    assert output == job("train", "--iterations", 10, "--threads", threads)[0]


def test_totals_go_on_without_records(job):
    _, truth = job("train", "--iterations", 10, "--truth-mib", 0)
    assert truth.calls == []
    assert {api: truth.total(api).calls for api in STEP} == {a: 10 * n for a, n in STEP.items()}


@pytest.mark.parametrize("program", ["simjob", "simjob-static", "simjob-static-stripped",
                                     "simjob-linked"])
@pytest.mark.parametrize("twins", [[], ["--per-thread"]])
def test_runtime_calls_hold_the_drivers(job, program, twins):
    output, truth = job("train", "--api", "runtime", "--iterations", 3, *twins, program=program)
    assert output == job("train", "--iterations", 3)[0]
    suffix = "_ptsz" if twins else ""
    pairs = {"cudaLaunchKernel": "cuLaunchKernel", "cudaLaunchKernelExC": "cuLaunchKernelEx"}
    outer = None
    seen = 0
    for call in truth.calls:
        if call.api in (name + suffix for name in pairs):
            outer = call
        elif call.api.startswith("cuLaunch"):
            assert call.api == pairs[outer.api.removesuffix(suffix)] + suffix
            assert (call.depth, outer.depth) == (1, 0)
            assert outer.entry <= call.entry <= call.leave <= outer.leave
            assert (call.grid, call.block, call.smem) == (outer.grid, outer.block, outer.smem)
            assert call.kernel == outer.kernel is not None and call.stream == outer.stream
            seen += 1
    assert seen == 3 * 79


@pytest.mark.parametrize("variant", STARTS)
def test_variants_do_the_same(sim, job, variant):
    for pattern in ("copy", "graph", "allocs", "nccl", "poll", "sync"):
        for api in ("driver", "runtime"):
            plain, _ = job(pattern, "--api", api, "--iterations", 2)
            assert job(pattern, "--api", api, "--iterations", 2, "--lib", sim / variant)[0] == plain


def test_a_sync_waits_for_the_kernel(job):
    _, truth = job("sync", "--kernel-ns", 300000, "--iterations", 5)
    launched = None
    for call in truth.calls:
        if call.api.startswith("cuLaunch"):
            launched = call
        elif launched and "Synchronize" in call.api and call.depth == 0:
            assert call.leave >= launched.entry + 300000


def test_a_full_queue_blocks(job):
    ns = 20000
    _, truth = job("backpressure", "--kernel-ns", ns)
    calls = [c for c in truth.calls if c.api == "cuLaunchKernel"]
    assert len(calls) == 3000
    for number, call in enumerate(calls[1021:], 1):
        assert call.leave >= calls[0].entry + number * ns


def test_1021_launches_may_be_outstanding(sim, tmp_path):
    path = tmp_path / "truth"
    hour = 3600 * 10**9
    process = start(sim, "--pattern", "backpressure", "--kernel-ns", hour, "--wait", "sleep",
                    "--truth", path)
    try:
        calls = eventually(lambda: [c for c in launches(path) if not c.leave])
        time.sleep(0.1)
        assert len(calls) == 1 and launches(path)[-1].entry == calls[0].entry
        assert len(launches(path)) == 1022
    finally:
        process.kill()
        process.communicate(timeout=60)


def launches(path):
    return [c for c in truthfile.load(path).calls if c.api == "cuLaunchKernel"]


def eventually(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.05)
    return condition()


def test_polls_are_not_ready_until_done(job):
    _, truth = job("poll", "--kernel-ns", 500000)
    answers = [c.ret for c in truth.calls if c.api == "cuEventQuery"]
    assert answers[-1] == 0 and set(answers[:-1]) == {600}


def test_errors(job):
    _, truth = job("errors")
    rets = [c.ret for c in truth.calls if c.ret]
    assert rets == [1, 500, 209, 400, 1, 1, 400, 400]
    _, truth = job("sync", "--iterations", 6, "--fail", "cuLaunchKernelEx=2@4")
    rets = [c.ret for c in truth.calls if c.api == "cuLaunchKernelEx"]
    assert rets == [0, 0, 0, 2] * 3


def test_hostile_names(job):
    _, truth = job("names")
    names = [c.kernel for c in truth.calls if c.api == "cuLaunchKernel"]
    assert len(names) == len(set(names)) == 14
    assert sorted(map(len, names))[-2:] == [8191, 9000] and b"" in names
    assert any(b"\x1b[31m" in n for n in names) and any(b"\xff" in n for n in names)


def test_handles_come_again_with_other_names(job):
    _, truth = job("unload", "--iterations", 5)
    launches = [c for c in truth.calls if c.api == "cuLaunchKernel"]
    assert len({c.func for c in launches}) == 1
    assert [c.kernel for c in launches[::3]] == [b"unload_0_%d" % i for i in range(5)]


@pytest.mark.parametrize("api", ["driver", "runtime"])
def test_seventy_nested_calls(job, api):
    _, truth = job("nested64", "--api", api)
    assert max(c.depth for c in truth.calls) == 69


def test_exceptions_and_jumps(job):
    _, truth = job("exception")
    assert truth.count()["cuLaunchKernel"] == 12 + 7 and all(c.leave for c in truth.calls)
    _, truth = job("longjmp", "--iterations", 3)
    assert [c.api for c in truth.calls if not c.leave] == ["cuLaunchHostFunc"] * 3
    assert truth.total("cuLaunchHostFunc").calls == 0


# on the lower rungs others' return probes sit in every process that maps the library
@pytest.mark.serial
def test_cancelled_threads(job):
    output, truth = job("cancel", "--iterations", 3)
    assert output == ["output cancelled 3 destructors 3"]
    assert [c.api for c in truth.calls if not c.leave] == ["cuStreamSynchronize"] * 3


def test_a_call_that_never_returns(sim, tmp_path):
    path = tmp_path / "truth"
    process = start(sim, "--pattern", "opencall", "--truth", path)
    try:
        eventually(lambda: truthfile.load(path).count()["cuStreamSynchronize"])
    finally:
        stop(process)
    (call,) = [c for c in truthfile.load(path).calls if not c.leave]
    assert (call.api, call.tid == process.pid) == ("cuStreamSynchronize", False)


@pytest.mark.parametrize("pattern, files", [("fork", 2), ("exec", 2), ("churn", 4)])
def test_other_processes_write_their_own(job, tmp_path, pattern, files):
    job(pattern, "--iterations", 3)
    truths = truthfile.load_all(str(tmp_path / f"{pattern}.truth"))
    assert len(truths) == files
    assert len({t.pid for t in truths}) == (1 if pattern == "exec" else files)
    assert all(t.closed for t in truths)
    assert all({c.pid for c in t.calls} <= {t.pid} for t in truths)
    step = truths[-1].count()
    assert step["cuStreamSynchronize"] == (20 if pattern == "churn" else 3)


def test_a_killed_job_leaves_its_calls(sim, tmp_path):
    path = tmp_path / "truth"
    process = start(sim, "--pattern", "train", "--iterations", 2, "--hold", "--truth", path)
    assert process.stdout.readline().startswith("output ")
    process.kill()
    process.communicate(timeout=60)
    truth = truthfile.load(path)
    assert truth.closed == 0 and truth.count()["cuLaunchKernel"] == 2 * STEP["cuLaunchKernel"]


def test_waits_before_the_first_call(sim, tmp_path):
    path, gate = tmp_path / "truth", tmp_path / "gate"
    process = start(sim, "--wait-file", gate, "--truth", path)
    time.sleep(0.05)
    opened = time.monotonic_ns()
    gate.touch()
    process.communicate(timeout=60)
    assert truthfile.load(path).calls[0].entry >= opened
    process = start(sim, "--wait-usr1", "--truth", path)
    time.sleep(0.05)
    opened = time.monotonic_ns()
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 0 and truthfile.load(path).calls[0].entry >= opened


def word_at(process, address):
    with open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return struct.unpack("<Q", memory.read(8))[0]


def text_at(process, address, length):
    with open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length)


def rights_at(process, address):
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as maps:
        for line in maps:
            start_, end = (int(a, 16) for a in line.split()[0].split("-"))
            if start_ <= address < end:
                return line.split()[1]
    return ""


def is_present(process, address):
    with open(f"/proc/{process.pid}/pagemap", "rb", buffering=0) as pagemap:
        pagemap.seek(address // 4096 * 8)
        return bool(struct.unpack("<Q", pagemap.read(8))[0] >> 63)


@pytest.mark.parametrize("offset", [8, 40])
@pytest.mark.parametrize("mode", ["plain", "cold", "unreadable", "garbage"])
def test_the_name_is_where_the_handle_says(sim, tmp_path, mode, offset):
    path = tmp_path / "truth"
    process = start(sim, "--hold", "--name", mode, "--name-offset", offset, "--truth", path)
    try:
        assert process.stdout.readline().startswith("output ")
        calls = {c.func: c for c in truthfile.load(path).calls if c.api.startswith("cuLaunch")}
        assert len(calls) == 12
        for call in calls.values():
            where = word_at(process, call.func + offset)
            assert rights_at(process, where)[0] == ("-" if mode == "unreadable" else "r")
            assert is_present(process, where) == (mode in ("plain", "garbage"))
            found = text_at(process, where, len(call.kernel) + 1)
            assert (found == call.kernel + b"\0") == (mode in ("plain", "cold"))
    finally:
        stop(process)
