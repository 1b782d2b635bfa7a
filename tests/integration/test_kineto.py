# SPDX-License-Identifier: BSD-2-Clause
"""gbpf export --format kineto against what PyTorch wrote, and against what was recorded."""
import collections
import gzip
import json
import re
import subprocess

import gbpf
import pytest
import recordings as rec

pytestmark = pytest.mark.parallel

FACTS = json.loads((gbpf.ROOT / "tests/data/kineto-fields.json").read_text())
API_CATEGORIES = {"cuda_driver", "cuda_runtime", "user_annotation"}
GPU_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}
LANE = 10_000_000


def export(recording, path, *options):
    done = gbpf.gbpf("export", recording, "-o", path, "--format", "kineto", *options)
    assert done.returncode == 0, done.stderr
    return done


def load(path):
    """The file as an independent reader sees it; a key twice or a NaN is an error."""
    def pairs(items):
        assert len({k for k, _ in items}) == len(items), items
        return dict(items)

    def refuse(word):
        raise AssertionError(word)

    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as f:
        return json.loads(f.read(), object_pairs_hook=pairs, parse_constant=refuse)


def ns(value):
    return round(value * 1000)


def made(tmp_path, recording, name="t"):
    recording.write(tmp_path / f"{name}.gbpf")
    export(tmp_path / f"{name}.gbpf", tmp_path / f"{name}.json")
    return load(tmp_path / f"{name}.json")


def events(trace, *categories):
    return [e for e in trace["traceEvents"] if e.get("cat") in categories and e["ph"] == "X"]


def kind_of(event):
    kind = event.get("cat") or f"{event['ph']} {event['name']}"
    return kind + (f" {event['ph']}" if kind == "ac2g" else "")


def type_of(value):
    return {bool: "bool", int: "int", float: "number", str: "string", list: "array",
            dict: "object"}[type(value)]


def check_fields(expected, got, where):
    """All that PyTorch writes, in its order and types; more may lie between and behind."""
    assert [k for k in got if k in expected] == list(expected), where
    for key, kind in expected.items():
        assert type_of(got[key]) in (kind, "int" if kind == "number" else kind), (where, key)


def test_every_field_that_pytorch_writes(tmp_path):
    job = rec.training(steps=6, runtime=True, rank=0)
    job.add("overhead", job.start + 100, 5000, 422, 422, 7 << 16)
    trace = made(tmp_path, job)
    known = [k for k in FACTS["top"] if k not in ("cuda_driver_version", "cuda_runtime_version")]
    assert [k for k in trace if k in known] == known
    assert list(trace["deviceProperties"][0]) == FACTS["device"]
    assert trace["deviceProperties"][0]["sharedMemPerBlockOptin"] == 232448
    assert trace["cupti_version"] == 130001 and trace["schemaVersion"] == 1
    seen = collections.Counter()
    for event in trace["traceEvents"]:
        facts = FACTS["events"].get(kind_of(event))
        if facts:
            seen[kind_of(event)] += 1
            check_fields(facts["fields"], event, event)
            check_fields(facts["args"], event.get("args", {}), event)
    assert set(seen) == set(FACTS["events"])
    text = (tmp_path / "t.json").read_text()
    assert len(re.findall(r'"(?:ts|dur)": -?\d+\.\d{3}[,}]', text)) == len(
        re.findall(r'"(?:ts|dur)": ', text))
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == "0"  # as HTA looks for it


def test_kernels_as_pytorch_saw_them_on_an_h200(tmp_path):
    r = rec.Recording()
    r.process(422)
    r.device(422)
    for i, row in enumerate(FACTS["kernels"]):
        grid, block, registers, shared = row[:3], row[3:6], row[6], row[7]
        r.shape(422, i + 1, f"k{i}", grid, block, registers, 0, shared)
        r.work(422, rec.KERNEL, r.start + i * 100, r.start + i * 100 + 50, 1 + i, shape=i + 1)
    r.sidecar(422, r.start, r.end)
    kernels = events(made(tmp_path, r), "kernel")
    assert len(kernels) == len(FACTS["kernels"])
    for event, row in zip(kernels, FACTS["kernels"]):
        args = event["args"]
        assert args["grid"] + args["block"] == row[:6]
        assert (args["registers per thread"], args["shared memory"]) == (row[6], row[7])
        assert args["blocks per SM"] == pytest.approx(row[8], rel=1e-6, abs=1e-6)
        assert args["warps per SM"] == pytest.approx(row[9], rel=1e-6, abs=1e-6)
        assert args["est. achieved occupancy %"] == row[10], row
        assert list(args["occupancy"]) == [
            "activeBlocksPerMultiprocessor", "limitingFactors", "blockLimitRegs",
            "blockLimitSharedMem", "blockLimitWarps", "blockLimitBlocks", "blockLimitBarriers",
            "allocatedRegistersPerBlock", "allocatedSharedMemPerBlock"]


def test_copies_and_sets_as_pytorch_wrote_them(tmp_path):
    r = rec.Recording()
    r.process(422)
    r.device(422)
    for i, (name, size, took, _) in enumerate(FACTS["copies"]):
        begin = r.start + i * 10_000
        if name.startswith("Memset"):
            r.work(422, rec.SET, begin, begin + took, 1 + i, size=size, target=3)
        else:
            r.work(422, rec.COPY, begin, begin + took, 1 + i, size=size, source=3, target=2)
    r.sidecar(422, r.start, r.end)
    for event, (name, size, took, rate) in zip(
            events(made(tmp_path, r), "gpu_memcpy", "gpu_memset"), FACTS["copies"]):
        assert (event["name"], event["args"]["bytes"], ns(event["dur"])) == (name, size, took)
        assert event["args"]["memory bandwidth (GB/s)"] == pytest.approx(rate, rel=1e-13)


def test_numbers_of_functions_as_pytorch_wrote_them(tmp_path):
    r = rec.Recording()
    getters = {"cudaFuncGetAttributes", "cudaDeviceGetAttribute", "cudaStreamIsCapturing"}
    known = {n: c for n, c in FACTS["cbids"].items() if n not in getters}  # never recorded
    for number, name in enumerate([*known, "cudaLaunchKernel_ptsz", "cudaNewInX_v14000"]):
        library = "driver" if name.startswith("cuL") else "runtime"
        r.add("api", 100 + number, *map(rec.text, (name, library, "other")))
        at = r.start + 100 * number
        r.add("begin", at, 5, 5, 0x7000, 100 + number)
        r.add("end", at + 50, 5, 5, 0x7000, 100 + number, 0)
        r.see(at + 50)
    got = {e["name"]: e for e in events(made(tmp_path, r), "cuda_driver", "cuda_runtime")}
    assert {n: got[n]["args"]["cbid"] for n in known} == known
    assert got["cuLaunchKernel"]["cat"] == "cuda_driver"
    assert got["cudaLaunchKernel_ptsz"]["args"]["cbid"] == 214
    assert "cbid" not in got["cudaNewInX"]["args"]  # the suffix is gone, the number not known


# ---- what holds of every file ----


def check_order(trace):
    times = [ns(e["ts"]) for e in trace["traceEvents"]]
    assert times == sorted(times) and min(times) >= 0


def check_rows(trace):
    """On every row of threads and streams what overlaps nests."""
    rows = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X" and e["cat"] != "Trace":
            rows[(e["pid"], e["tid"])].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    for slices in rows.values():
        stack = []
        for begin, end in slices:
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1]
            stack.append(end)
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {row for row in rows if row[0] != -1} <= named


def check_arrows(trace, works):
    """One start a call, one end a matched work, each in its slice; none backwards."""
    slices = {(e["pid"], e["tid"], ns(e["ts"])) for e in trace["traceEvents"] if e["ph"] == "X"}
    by_id = {e["args"]["correlation"]: e for e in events(trace, *API_CATEGORIES)
             if "correlation" in e["args"]}
    starts = [e for e in trace["traceEvents"] if e["ph"] == "s"]
    ends = [e for e in trace["traceEvents"] if e["ph"] == "f"]
    assert len({e["id"] for e in starts}) == len(starts)
    assert {e["id"] for e in starts} == {e["id"] for e in ends}
    assert len(ends) == sum(linked for *_, linked in works)
    at = {}
    for e in starts:
        call = by_id[e["id"]]
        begin, end = ns(call["ts"]), ns(call["ts"]) + ns(call["dur"])
        first = min(ns(f["ts"]) for f in ends if f["id"] == e["id"])
        inside = begin < ns(e["ts"]) < end or end - begin < 2 or first == begin
        assert inside and begin <= ns(e["ts"]) <= end and e["tid"] == call["tid"], (e, call)
        at[e["id"]] = ns(e["ts"])
    for e in ends:
        assert e["bp"] == "e" and (e["pid"], e["tid"], ns(e["ts"])) in slices
        assert at[e["id"]] <= ns(e["ts"])


def check_content(trace, recording, pid):
    base = trace["baseTimeNanoseconds"] - recording.realtime + recording.start
    names = {number: name for number, (name, *_) in rec.APIS.items()}
    wanted = collections.Counter(
        (tid, names[api], begin, (end or recording.end + 1000) - begin)
        for p, tid, api, begin, end, _ in recording.calls if p == pid)
    got = collections.Counter(
        (e["tid"] % LANE, e["name"], ns(e["ts"]) + base, ns(e["dur"]))
        for e in events(trace, *API_CATEGORIES) if not e["name"].startswith("ProfilerStep#"))
    assert got == wanted
    wanted = collections.Counter((s, b, e - b, link) for p, _, s, _, b, e, _, link
                                 in recording.works if p == pid)
    got = collections.Counter(
        (e["tid"] % LANE, ns(e["ts"]) + base, ns(e["dur"]), "unmatched" not in e["args"])
        for e in events(trace, *GPU_CATEGORIES))
    assert got == wanted
    for e in events(trace, *GPU_CATEGORIES):
        assert e["args"]["stream"] == e["tid"] % LANE and e["args"]["device"] == e["pid"]
    assert trace["gbpf"]["losses"].get("ring_full", 0) == recording.losses
    assert recording.losses == sum(e["args"]["count"] for e in trace["traceEvents"]
                                   if e["name"] == "events were lost before here")


def check_file(trace, recording, pid):
    check_order(trace)
    check_rows(trace)
    check_arrows(trace, [w for w in recording.works if w[0] == pid])
    check_content(trace, recording, pid)


@pytest.mark.parametrize("runtime", [False, True])
def test_a_job(tmp_path, runtime):
    job = rec.training(steps=5, runtime=runtime, nccl=True)
    trace = made(tmp_path, job)
    check_file(trace, job, 422)
    steps = [e for e in events(trace, "user_annotation") if e["name"].startswith("ProfilerStep#")]
    assert len(steps) >= 2
    launches = {e["args"]["correlation"]: e["name"]
                for e in events(trace, "cuda_driver", "cuda_runtime")}
    causes = {launches[e["args"]["correlation"]] for e in events(trace, *GPU_CATEGORIES)}
    assert causes == ({"cudaLaunchKernel", "cudaGraphLaunch", "cudaMemsetAsync", "cudaMemcpyAsync"}
                      if runtime else {"cuLaunchKernel", "cuGraphLaunch", "cuMemsetD8Async",
                                       "cuMemcpyDtoHAsync_v2"})


def random_session(tmp_path, seed):
    recording = rec.anything(seed)
    recording.write(tmp_path / "any.gbpf")
    pids = {c[0] for c in recording.calls}
    done = export(tmp_path / "any.gbpf", tmp_path / "any.json.gz")
    if len(pids) == 1:
        files = {pids.pop(): tmp_path / "any.json.gz"}
    else:
        files = {pid: tmp_path / f"any.{pid}.json.gz" for pid in pids}
    assert {p.name for p in tmp_path.glob("any*.gz")} == {p.name for p in files.values()}
    for pid, path in files.items():
        check_file(load(path), recording, pid)
    assert ("17 events were lost" in done.stderr) == bool(recording.losses)


@pytest.mark.parametrize("seed", range(6))
def test_random_sessions(tmp_path, seed):
    random_session(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_sessions(tmp_path, seed):
    random_session(tmp_path, seed)


def test_numbers_that_cupti_used_twice(tmp_path):
    r = rec.Recording()
    r.process(7)
    r.device(7)
    r.shape(7, 1, "k")
    for i in range(6):
        at = r.start + i * 100_000
        if i == 3:
            r.correlation -= 3  # a second session of CUPTI counts from the beginning again
        c = r.call(7, 7, rec.LAUNCH, at, at + 5_000, stream=0x77)
        r.work(7, rec.KERNEL, at + 6_000, at + 9_000, c)
    r.sidecar(7, r.start, r.end)
    trace = made(tmp_path, r)
    check_file(trace, r, 7)
    assert all(e["args"]["correlation"] > 0xFFFFFFFF for e in events(trace, "kernel"))


# ---- bad input ----


def test_without_gpu_time(tmp_path):
    r = rec.Recording()
    r.process(9, rank=2)
    for i in range(4):
        r.call(9, 9, rec.LAUNCH, r.start + 1000 * i, r.start + 1000 * i + 500, record=False)
    trace = made(tmp_path, r)
    assert trace["gbpf"]["gpu"]["recorded"] is False and trace["gbpf"]["gpu"]["why_not"]
    assert not [e for e in trace["traceEvents"] if e["ph"] in "sf"]
    assert trace["distributedInfo"] == {"rank": 2}
    launch = events(trace, "cuda_driver")[0]["args"]
    assert launch["grid"] == [4, 1, 1] and launch["correlation"] > 0xFFFFFFFF


def test_nothing_to_write(tmp_path):
    rec.Recording().write(tmp_path / "empty.gbpf")
    rec.training().write(tmp_path / "job.gbpf")
    for name, options in (("empty.gbpf", ()), ("job.gbpf", ("--from", "100"))):
        done = gbpf.gbpf("export", tmp_path / name, "-o", tmp_path / "x.json", *options)
        assert done.returncode == 1 and "was not written" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty.gbpf", "job.gbpf"]


def test_a_window_of_it(tmp_path):
    job = rec.training(steps=6)
    job.write(tmp_path / "t.gbpf")
    export(tmp_path / "t.gbpf", tmp_path / "t.json", "--from", "1ms", "--to", "2500us")
    trace = load(tmp_path / "t.json")
    check_order(trace)
    first, last = job.start + 1_000_000, job.start + 2_500_000
    inside = [w for w in job.works if w[4] < last and w[5] > first]
    assert len(events(trace, *GPU_CATEGORIES)) == len(inside)
    check_arrows(trace, inside)


def test_a_cut_recording_is_still_a_valid_file(tmp_path):
    rec.training(steps=60).write(tmp_path / "t.gbpf")
    whole = (tmp_path / "t.gbpf").read_bytes()
    (tmp_path / "cut.gbpf").write_bytes(whole[:-40])
    done = export(tmp_path / "cut.gbpf", tmp_path / "cut.json")
    assert "ends early" in done.stderr
    trace = load(tmp_path / "cut.json")
    assert trace["gbpf"]["losses"]["file"] == "cut"
    check_order(trace)


@pytest.mark.root
@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.sqlite"])
def test_a_full_disk(tmp_path, name):
    rec.training(steps=300).write(tmp_path / "t.gbpf")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", str(disk)], check=True)
    try:
        done = gbpf.gbpf("export", tmp_path / "t.gbpf", "-o", disk / name)
        assert done.returncode == 1 and "was not written" in done.stderr
        assert "No space" in done.stderr or "full" in done.stderr
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_processes_of_one_rank(tmp_path):
    r = rec.training(pid=422, steps=2, rank=3)
    rec.training(pid=500, steps=2, rank=3, recording=r)
    r.process(501, rank=3)  # a helper of the last one
    r.write(tmp_path / "t.gbpf")
    done = gbpf.gbpf("export", tmp_path / "t.gbpf", "--format", "kineto")  # names it itself
    assert done.returncode == 0
    assert done.stderr.count("both say that they are rank 3") == 1
    assert sorted(p.name for p in tmp_path.glob("*.gz")) == [
        "t.422.pt.trace.json.gz", "t.500.pt.trace.json.gz"]
