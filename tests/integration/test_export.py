# SPDX-License-Identifier: BSD-2-Clause
"""gbpf export: what of a recording is in the files, and what happens when it cannot be."""
import csv
import os
import resource
import signal
import tempfile

import gbpf
import perfetto_trace
import pytest
import recordings

SWITCHES = ((), ("--perfetto-compat",))


def export(recording, out, *args):
    done = gbpf.gbpf("export", "-q", recording, "-o", out, *args)
    assert done.returncode == 0, done.stderr
    return out


def perfetto(recording, out, *args):
    return perfetto_trace.Trace(export(recording, out, *args))


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    """Two ranks: (what is in the recording, its path)."""
    r = recordings.training(pid=422, steps=3, rank=0, nccl=True)
    recordings.training(pid=777, steps=3, rank=1, nccl=True, recording=r)
    r.loss(1_001_500_000, 17)
    return r, r.write(tmp_path / "job.gbpf")


def api_names(r):
    return sorted((tid, recordings.APIS[api][0], begin, end)
                  for _, tid, api, begin, end, _ in r.calls)


def calls_of(trace):
    return sorted((trace.threads[s.track]["tid"], s.name, s.begin, s.end)
                  for s in trace.slices if s.track in trace.threads)


def linked(r):
    """(call's pid and begin, work's begin) of each pair, of what the test put in."""
    begins = {(pid, c): begin for pid, _, _, begin, _, c in r.calls if c}
    return sorted((w[0], begins[w[0], w[6]], w[4]) for w in r.works)


@pytest.mark.parametrize("switches", SWITCHES)
def test_every_call_and_kernel_is_there_with_its_arrow(job, tmp_path, switches):
    r, recording = job
    trace = perfetto(recording, tmp_path / "t.pftrace", *switches)
    assert calls_of(trace) == api_names(r)
    work = trace.stages or [s for s in trace.slices if s.categories == ("gpu",)]
    assert sorted((s.begin, s.end) for s in work) == sorted((w[4], w[5]) for w in r.works)
    assert sorted((trace.threads[a.track]["pid"], a.begin, b.begin)
                  for a, b in trace.arrows) == linked(r)
    assert bool(trace.stages) == (not switches)


def test_a_kernel_says_what_it_was(job, tmp_path):
    _, recording = job
    trace = perfetto(recording, tmp_path / "t.pftrace")
    kernel = min((s for s in trace.stages if s.pid == 422), key=lambda s: s.begin)
    assert (kernel.name, kernel.stage, kernel.queue) == ("kernel", "Kernel",
                                                         "python3 422 stream 7")
    assert (kernel.grid, kernel.block, kernel.context) == ((4, 1, 1), (128, 1, 1), 1)
    assert kernel.kernel["demangled_name"] == "kernel(float*)"
    want = {"device": 0, "stream": 7, "registers_per_thread": 32, "shared_mem_static": 0,
            "shared_mem_dynamic": 0, "thread_count": 512, "launch_to_start_ns": 20_000,
            "queue_delay_ns": 0, "occupancy_limiter": "registers, warps",
            "occupancy_limit_warps": 16, "occupancy_limit_registers": 16,
            "occupancy_limit_blocks": 32}
    assert {k: kernel.args.get(k) for k in want} == want
    gpu = trace.gpus[0]
    assert (gpu["name"], gpu["vendor"], gpu["architecture"]) == ("NVIDIA H200", "NVIDIA", "sm_90")


def test_a_launch_says_what_it_launched_and_waits_are_marked(job, tmp_path):
    trace = perfetto(job[1], tmp_path / "t.pftrace")
    by_name = {s.name: s for s in trace.slices}
    launch = min((s for s in trace.slices if s.name == "cuLaunchKernel"), key=lambda s: s.begin)
    assert launch.categories == ("launch",)
    assert launch.args == {"grid": (4, 1, 1), "block": (128, 1, 1), "stream_handle": 0x77,
                           "kernel": "kernel(float*)"}
    assert by_name["cuStreamSynchronize"].categories == ("sync", "wait")
    assert by_name["cuMemcpyDtoHAsync_v2"].args["bytes"] == 4096
    nested = [s for s in trace.slices if s.parent and s.parent.name == "ncclAllReduce"]
    assert len(nested) == 6 and {s.name for s in nested} == {"cuLaunchKernel"}


def test_processes_and_ranks_are_told_apart(job, tmp_path):
    trace = perfetto(job[1], tmp_path / "t.pftrace")
    told = {p["pid"]: (p["process_name"], p["process_labels"][0])
            for p in trace.processes.values()}
    assert told == {422: ("python3", "rank 0"), 777: ("python3", "rank 1")}
    assert {s.queue for s in trace.stages} == {
        f"python3 {pid} stream {stream}" for pid in (422, 777) for stream in (7, 21)}


def test_counters_tell_what_can_be_counted_by_hand(tmp_path):
    """Launches at 100 and 200 us; work in 300..400 and 400..700 us; 1 ms in all."""
    r = recordings.Recording(start=1_000_000)
    r.process(9)
    r.device(9)
    r.shape(9, 1, "k")
    for begin, start, end in ((1_100_000, 1_300_000, 1_400_000), (1_200_000, 1_400_000, 1_700_000)):
        c = r.call(9, 9, recordings.LAUNCH, begin, begin + 5_000)
        r.work(9, recordings.KERNEL, start, end, c)
    r.sidecar(9, 1_000_000, 2_000_000)
    recording = r.write(tmp_path / "t.gbpf", window=(1_000_000, 2_000_000))
    trace = perfetto(recording, tmp_path / "t.pftrace")
    assert trace.counter("queue depth, stream 7 of context 1") == [
        (1_000_000, 0), (1_100_000, 1), (1_200_000, 2), (1_300_000, 1), (1_400_000, 0)]
    # the first work had to wait, for something that was not recorded
    assert trace.counter("GPU busy") == [(1_300_000, 100), (1_700_000, 0)]
    assert trace.counter("launches/s") == [(1_000_000, 0), (1_100_000, 10_000), (1_300_000, 0)]


def test_busy_is_a_share_of_what_was_watched(tmp_path):
    """Watched from the middle of a step of 0.1 ms to that of another."""
    r = recordings.Recording(start=1_000_000)
    r.process(9)
    r.device(9)
    r.shape(9, 1, "k")
    for begin, end in ((1_070_000, 1_120_000), (1_940_000, 1_960_000)):
        c = r.call(9, 9, recordings.LAUNCH, begin - 10_000, begin - 5_000)
        r.work(9, recordings.KERNEL, begin, end, c)
    r.sidecar(9, 1_050_000, 1_950_000)
    recording = r.write(tmp_path / "t.gbpf", window=(1_000_000, 2_000_000))
    # 30 us of the 50 of the first step, 20 of the next one's 100, 10 of the last one's 50
    assert perfetto(recording, tmp_path / "t.pftrace").counter("GPU busy") == [
        (1_000_000, 60), (1_100_000, 20), (1_200_000, 0), (1_900_000, 20), (2_000_000, 0)]


def test_marks_say_what_was_lost_and_when_gbpf_watched(job, tmp_path):
    trace = perfetto(job[1], tmp_path / "t.pftrace")
    marks = {(m.name, trace.track_name(m.track)): m for m in trace.instants}
    lost = marks["events were lost here", "losses"]
    assert (lost.begin, lost.args) == (1_001_500_000, {"count": 17, "reason": "the ring was full"})
    assert ("sidecar began to record", "GPU recording") in marks
    (window,) = [s for s in trace.slices if s.name == "probes attached"]
    assert trace.track_name(window.track) == "probes" and window.begin == 1_000_000_000


def test_errors_and_cold_starts_are_on_rows_of_their_own(tmp_path):
    r = recordings.Recording()
    r.process(5, event=2, ts=r.start + 100)  # forked inside of the trace: nothing was missed
    r.call(5, 5, recordings.ALLOC, r.start + 1000, r.start + 2000, ret=2)
    r.call(5, 5, recordings.SYNC, r.start + 3000, r.start + 4000)
    trace = perfetto(r.write(tmp_path / "t.gbpf"), tmp_path / "t.pftrace")
    marks = {(trace.track_name(m.track), m.args["name"]): m for m in trace.instants}
    error = marks["errors", "cuMemAlloc_v2"]
    assert error.begin == r.start + 2000
    assert error.args == {"name": "cuMemAlloc_v2", "tid": 5, "result": 2,
                          "error": "CUDA_ERROR_OUT_OF_MEMORY"}
    assert marks["cold starts", "cuStreamSynchronize"].args["cold"] == "first_api"
    (failed,) = [s for s in trace.slices if s.name == "cuMemAlloc_v2"]
    assert failed.args["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_what_did_not_return_is_not_given_an_end(tmp_path):
    r = recordings.Recording()
    r.process(5)
    r.call(5, 5, recordings.SYNC, r.start + 1000, None, depth=1)
    r.call(5, 5, recordings.LAUNCH, r.start + 5000, r.start + 6000)  # so the one before is lost
    r.call(5, 6, recordings.CTX_SYNC, r.start + 7000, None)
    recording = r.write(tmp_path / "t.gbpf", window=(r.start, r.start + 9000))
    trace = perfetto(recording, tmp_path / "t.pftrace")
    (lost,) = [i for i in trace.instants if i.name == "cuStreamSynchronize"]
    assert lost.begin == r.start + 1000 and "not seen" in lost.args["state"]
    (waits,) = [s for s in trace.slices if s.name == "cuCtxSynchronize"]
    assert (waits.begin, waits.end) == (r.start + 7000, r.start + 9000)
    assert "had not returned" in waits.args["state"]
    table = {t["name"]: t for t in rows(export(recording, tmp_path / "t.csv"))}
    assert table["cuStreamSynchronize"]["duration_ns"] == ""
    assert table["cuLaunchKernel"]["duration_ns"] == "1000"


def test_polls_between_other_calls_get_a_row_of_their_own(tmp_path):
    r = recordings.Recording()
    r.process(5)
    r.poll(5, 5, r.start + 1000, r.start + 5000, 40, 900)
    r.call(5, 5, recordings.LAUNCH, r.start + 4000, r.start + 7000)
    trace = perfetto(r.write(tmp_path / "t.gbpf"), tmp_path / "t.pftrace")
    poll, launch = sorted((s for s in trace.slices if s.name.startswith("cu")),
                          key=lambda s: s.begin)
    assert (poll.begin, poll.end, poll.args["polls"]) == (r.start + 1000, r.start + 5000, 40)
    assert (launch.begin, launch.end) == (r.start + 4000, r.start + 7000)
    assert trace.tracks[launch.track]["parent_uuid"] == poll.track


def test_samples_of_the_gpu_are_counters_and_xids_marks(tmp_path):
    r = recordings.Recording()
    r.process(5)
    r.call(5, 5, recordings.SYNC, r.start, r.start + 100)
    r.add("gpu", 3, 2, recordings.text("GPU-0a0b0c0d-0102-0304-0506-0708090a0b0c"),
          recordings.text("NVIDIA H200"), recordings.text("0000:1b:00.0"))
    clock, power, temperature, memory, xid = 1, 4, 16, 128, 2048
    known = clock | power | temperature | memory | xid
    for at, has, mhz, xids in ((10, known, 345, 0), (20, known & ~clock, 1980, 0),
                               (30, known, 1980, 3)):
        r.add("gpu_sample", r.start + at, 3, has, mhz, 70_000 + at, 40, 1 << 33, xids, 79)
    r.see(r.start + 1000)
    trace = perfetto(r.write(tmp_path / "t.gbpf"), tmp_path / "t.pftrace")
    assert trace.counter("SM clock") == [(r.start + 10, 345), (r.start + 30, 1980)]
    assert [v for _, v in trace.counter("power")] == [70_010, 70_020, 70_030]
    assert [v for _, v in trace.counter("temperature")] == [40] * 3
    assert trace.counter("memory used (NVML)")[0] == (r.start + 10, 1 << 33)
    (mark,) = [m for m in trace.instants if m.name == "XID"]
    assert (mark.begin, mark.args) == (r.start + 30, {"result": 79, "count": 3})
    (power_track,) = trace.named("power")
    parent = trace.tracks[trace.tracks[power_track]["parent_uuid"]]
    assert parent["name"] == "GPU 2: NVIDIA H200"
    assert trace.gpus[2]["uuid"].hex() == "0a0b0c0d0102030405060708090a0b0c"
    assert trace.gpus[2]["pci_bdf"] == "0000:1b:00.0" and len(trace.gpus) == 3


# ---- the table ----

def test_the_table_holds_the_same(job, tmp_path):
    r, recording = job
    table = rows(export(recording, tmp_path / "t.csv"))
    calls = [t for t in table if t["kind"] == "call"]
    assert sorted((int(t["tid"]), t["name"], int(t["begin_ns"]),
                   int(t["begin_ns"]) + int(t["duration_ns"])) for t in calls) == api_names(r)
    by_id = {t["id"]: t for t in table}
    assert len(by_id) == len(table) == len(r.calls) + len(r.works)
    assert sorted((int(t["pid"]), int(by_id[t["cause"]]["begin_ns"]), int(t["begin_ns"]))
                  for t in table if t["cause"]) == linked(r)
    assert [int(t["begin_ns"]) for t in table] == sorted(int(t["begin_ns"]) for t in table)
    copy = next(t for t in table if t["kind"] == "copy")
    assert (copy["bytes"], copy["direction"], copy["source"], copy["target"],
            copy["bandwidth_gbps"]) == ("4096", "DtoH", "Device", "Pageable", "1.365")


# ---- parts of it ----

def test_a_window_keeps_what_touches_it_whole(job, tmp_path):
    r, recording = job
    low, high = r.start + 1_000_000, r.start + 1_500_000
    for how in (("--from", "1ms", "--to", "0.0015"), ("--from", f"@{low}", "--to", f"@{high}")):
        trace = perfetto(recording, tmp_path / "t.pftrace", *how)
        assert calls_of(trace) == [c for c in api_names(r) if c[2] < high and c[3] > low]
        assert sorted((s.begin, s.end) for s in trace.stages) == sorted(
            (w[4], w[5]) for w in r.works if w[4] < high and w[5] > low)
        ends = {(pid, begin): end for pid, _, _, begin, end, _ in r.calls}
        assert sorted((trace.threads[a.track]["pid"], a.begin, b.begin)
                      for a, b in trace.arrows) == [
            p for p in linked(r) if p[1] < high and ends[p[0], p[1]] > low and p[2] < high
            and any(w[4] == p[2] and w[5] > low for w in r.works)]


def test_one_process_and_a_file_for_each(job, tmp_path):
    r, recording = job
    trace = perfetto(recording, tmp_path / "t.pftrace", "--pid", "777")
    assert {p["pid"] for p in trace.processes.values()} == {777}
    assert len(trace.stages) == len([w for w in r.works if w[0] == 777])
    done = gbpf.gbpf("export", recording, "--split-by-process", "-o", tmp_path / "s.pftrace.gz")
    assert done.returncode == 0, done.stderr
    for pid in (422, 777):
        trace = perfetto_trace.Trace(tmp_path / f"s.{pid}.pftrace.gz")
        assert {p["pid"] for p in trace.processes.values()} == {pid}
        assert len(trace.stages) == len([w for w in r.works if w[0] == pid])
    assert not (tmp_path / "s.pftrace.gz").exists()


def test_the_name_of_the_file_says_the_format(job, tmp_path):
    _, recording = job
    assert gbpf.gbpf("export", "-q", recording).returncode == 0
    assert len(perfetto_trace.Trace(tmp_path / "job.pftrace").stages) > 0
    export(recording, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().startswith("kind,id,")
    export(recording, tmp_path / "x.data", "--format", "csv")
    assert (tmp_path / "x.data").read_text() == (tmp_path / "x.csv").read_text()
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"job.gbpf", "job.pftrace", "x.csv", "x.data"}


# ---- bad input ----

def refused(tmp_path, recording, *args, status=1, before=()):
    left = {p.name for p in tmp_path.iterdir()}
    done = gbpf.gbpf("export", recording, "-o", tmp_path / "none.pftrace", *args)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert {p.name for p in tmp_path.iterdir()} == left and not done.stdout
    return done.stderr


def test_nothing_is_written_of_nothing(job, tmp_path):
    _, recording = job
    assert "the trace covers 0 to 0.003 s" in refused(tmp_path, recording, "--from", "5")
    assert "no process 5 in" in refused(tmp_path, recording, "--pid", "5")
    empty = recordings.Recording().write(tmp_path / "empty.gbpf")
    assert "holds no calls" in refused(tmp_path, empty)
    for args in (("--from", "2", "--to", "1"), ("--from", "soon"), ("--to", "1h"),
                 ("--pid", "python"), ("--format", "xml"), ("--from", "@x")):
        assert "--help" in refused(tmp_path, recording, *args, status=2)


def test_a_recording_is_not_overwritten_by_itself(job):
    _, recording = job
    before = recording.read_bytes()
    done = gbpf.gbpf("export", recording, "-o", recording)
    assert done.returncode == 2 and "recording itself" in done.stderr
    assert recording.read_bytes() == before
    done = gbpf.gbpf("export", recording, "-o", "/dev/null", "-f", "csv")
    assert done.returncode == 1 and "not a regular file" in done.stderr


@pytest.mark.parametrize("name", ("t.pftrace", "t.pftrace.gz", "t.csv"))
def test_a_full_disk_leaves_no_file(job, tmp_path, name):
    _, recording = job
    (tmp_path / name).write_text("before")
    done = gbpf.gbpf("export", recording, "-o", tmp_path / name, preexec_fn=lambda: (
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))))
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert (tmp_path / name).read_text() == "before"
    assert {p.name for p in tmp_path.iterdir()} == {"job.gbpf", name}


def test_an_interrupted_export_leaves_no_file(job, tmp_path):
    def interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.kill(os.getpid(), signal.SIGINT)

    done = gbpf.gbpf("export", job[1], "-o", tmp_path / "t.pftrace", preexec_fn=interrupt)
    assert done.returncode == 1 and "interrupted" in done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"job.gbpf"}


def test_what_is_missing_is_said(job, tmp_path):
    r, _ = job
    done = gbpf.gbpf("export", job[1], "-o", tmp_path / "t.pftrace")
    assert "17 events were lost" in done.stderr
    assert f"{len(r.calls)} calls, {len(r.works)} kernels" in done.stdout
    recordings.training(pid=999, rank=1, recording=r)
    done = gbpf.gbpf("export", r.write(tmp_path / "two.gbpf"), "-o", tmp_path / "t.pftrace")
    assert "processes 777 and 999 both say that they are rank 1" in done.stderr


def test_a_cut_recording_is_exported_up_to_its_end(job, tmp_path):
    _, recording = job
    cut = tmp_path / "cut.gbpf"
    cut.write_bytes(recording.read_bytes()[:-200])
    done = gbpf.gbpf("export", cut, "-o", tmp_path / "t.pftrace")
    assert done.returncode == 0 and "ends early" in done.stderr
    assert perfetto_trace.Trace(tmp_path / "t.pftrace").slices


def test_files_belong_to_whoever_called_sudo(job):
    with tempfile.TemporaryDirectory() as place:  # below pytest's own only root may look
        os.chown(place, 12345, 12345)
        out = os.path.join(place, "t.pftrace")
        env = dict(os.environ, SUDO_UID="12345", SUDO_GID="12345")
        done = gbpf.gbpf("export", "-q", job[1], "-o", out, env=env)
        assert done.returncode == 0, done.stderr
        assert os.stat(out).st_uid == 12345


# ---- beside a recording ----

def test_trace_writes_the_file_that_its_name_asks_for(tmp_path):
    out = tmp_path / "run.pftrace"
    done = gbpf.gbpf("trace", "-o", out, "--", gbpf.JOB, "--pattern", "train", "--iterations",
                     "2", "--truth-mib", "0", env=gbpf.sim_env(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    trace = perfetto_trace.Trace(out)
    calls = gbpf.calls(tmp_path / "run.gbpf")
    assert len(calls) == len(calls_of(trace)) > 10
    assert sorted((c["tid"], c["begin"]) for c in calls) == sorted(
        (tid, begin) for tid, _, begin, _ in calls_of(trace))
    assert {p.name for p in tmp_path.iterdir()} >= {"run.gbpf", "run.pftrace"}
    assert [v for _, v in trace.counter("live bytes")] == live_bytes(calls)


def live_bytes(calls):
    """After each allocation of device memory and each free."""
    sizes, out = {}, []
    for c in sorted(calls, key=lambda c: c["begin"]):
        if c["api"] == "cuMemAlloc_v2":
            sizes[c["out"]] = c["bytes"]
        elif c["api"] != "cuMemFree_v2" or sizes.pop(c["object"], None) is None:
            continue
        out.append(sum(sizes.values()))
    assert out and out[-1] < max(out)
    return out
