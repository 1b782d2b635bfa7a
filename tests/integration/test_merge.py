# SPDX-License-Identifier: BSD-2-Clause
"""gbpf merge: recordings of known content and known clocks, as one."""
import collections
import json
import re
import subprocess

import gbpf
import pytest
import recordings as rec

pytestmark = pytest.mark.parallel

STEP = 4194304


def merge(tmp_path, *names, out="job.gbpf", options=()):
    return gbpf.gbpf("merge", *(tmp_path / n for n in names), "-o", tmp_path / out, *options)


def infos(path):
    done = gbpf.run(gbpf.BUILD / "tests/integration/dump_info", path)
    assert done.returncode == 0
    return dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)




def rows(tmp_path, path):
    """Every call and piece of work: (kind, pid, tid or stream, name, begin, duration)."""
    import sqlite3
    done = gbpf.gbpf("export", path, "-o", tmp_path / "rows.sqlite")
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(tmp_path / "rows.sqlite")
    start = int(db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0])
    out = collections.Counter()
    for row in db.execute(
            "SELECT globalTid >> 56, globalTid / 0x1000000 % 0x1000000, globalTid % 0x1000000, "
            "value, start, end - start FROM CUPTI_ACTIVITY_KIND_RUNTIME "
            "JOIN StringIds ON id = nameId"):
        out["call", *row[:4], row[4] + start, row[5]] += 1
    for row in db.execute(
            "SELECT globalPid >> 56, globalPid / 0x1000000 % 0x1000000, streamId, start, "
            "end - start FROM CUPTI_ACTIVITY_KIND_KERNEL"):
        out["kernel", *row[:3], row[3] + start, row[4]] += 1
    return out


def expected(recording, host, shift=0):
    """What rows() gives of it; shift: of its CLOCK_MONOTONIC to that of the result."""
    out = collections.Counter()
    epoch = rec.REALTIME - 1_000_000_000 + shift
    for _, tid, api, begin, end, _ in recording.calls:
        pid = next(p for p, t, *_ in recording.calls if t == tid)
        if api != rec.NCCL:
            out["call", host, pid, tid, rec.APIS[api][0], begin + epoch,
                (end or recording.end + 1000) - begin] += 1
    for pid, _, stream, kind, begin, end, *_ in recording.works:
        if kind == rec.KERNEL:
            out["kernel", host, pid, stream, begin + epoch, end - begin] += 1
    return out


def test_ranks_of_one_host(tmp_path):
    a = rec.training(pid=422, rank=0, steps=3)
    b = rec.training(pid=500, rank=1, steps=3, start=1_000_700_000, realtime=rec.REALTIME + 700_000)
    a.write(tmp_path / "a.gbpf")
    b.write(tmp_path / "b.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.count("on the clock of the result") == 2
    assert rows(tmp_path, tmp_path / "job.gbpf") == expected(a, 0) + expected(b, 0)
    said = infos(tmp_path / "job.gbpf")
    assert said["merged"] == "2" and said["mode"] == "merge" and said["host"] == "n1"
    assert said["source.2.clock"] == "same" and said["source.2.id_shift"] == "0"
    assert said["source.2.windows"] == f"{b.start}-{b.end + 1000}"


def test_windows_that_alone_count(tmp_path):
    """Those of a schedule with GPU time; of the other rank, which had none, all counts."""
    a = rec.training(pid=422, rank=0, steps=3)
    b = rec.training(pid=500, rank=1, steps=3, start=1_000_700_000, realtime=rec.REALTIME + 700_000)
    whole = expected(b, 0)
    begins = sorted(begin for *_, begin, _, _ in a.calls)
    a.add("active", a.start, begins[len(begins) // 2])
    a.write(tmp_path / "a.gbpf")
    b.write(tmp_path / "b.gbpf")
    alone = rows(tmp_path, tmp_path / "a.gbpf")
    assert 0 < len(alone) < len(expected(a, 0))
    assert merge(tmp_path, "a.gbpf", "b.gbpf").returncode == 0
    (tmp_path / "rows.sqlite").unlink()
    both = rows(tmp_path, tmp_path / "job.gbpf")
    assert collections.Counter({k: v for k, v in both.items() if k[2] == 500}) == whole


def two_hosts(tmp_path, shift=5_000_000_000, error=None, jitter=7, offset=0, steps=12, **kwargs):
    """
    Host B's CLOCK_MONOTONIC is shift behind A's; its CLOCK_REALTIME is offset ahead of the
    truth. Collectives of both overlap as they have to.
    """
    a = rec.Recording(host="na", boot="boot-a")
    b = rec.Recording(start=1_000_000_000 + shift, host="nb", boot="boot-b",
                      realtime=rec.REALTIME + offset)
    random = rec.rng(jitter)
    for r in (a, b):
        if error is not None:
            r.info("clock_max_error_ns", str(error))
        r.process(422, rank=0 if r is a else 1, comm="train")
        r.device(422, uuid=f"GPU-{r.start}")
        r.shape(422, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    now = 10_000
    for _ in range(steps):
        now += 1_000_000 + random.randrange(400_000)
        begins = [now + random.randrange(60_000) for _ in range(2)]
        leave = max(begins) + 40_000
        for r, begin, late in ((a, begins[0], 0), (b, begins[1], random.randrange(3_000))):
            at = r.start + begin - 9_000
            c = r.call(422, 422, rec.LAUNCH, at, at + 5_000, stream=0x77)
            r.work(422, rec.KERNEL, r.start + begin, r.start + leave + late, c)
    for r, name in ((a, "a.gbpf"), (b, "b.gbpf")):
        r.trigger(r.start + 9_000, f"max(sync) > {name}", r.start + 2_000, 77)
        r.sidecar(422, r.start, r.end)
        r.write(tmp_path / name)
    return a, b


def shift_of(tmp_path, how):
    said = infos(tmp_path / "job.gbpf")
    assert said["source.2.clock"] == how
    return int(said["source.2.clock_shift_ns"]), said.get("source.2.clock_error_ns")


def test_hosts_whose_clocks_are_kept(tmp_path):
    """The bound of the hosts' clocks is kept, and collectives make it closer."""
    a, b = two_hosts(tmp_path, error=200_000, offset=150_000)
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert re.search(r"b.gbpf: host nb, .* aligned by 12 collectives, at most .* off", done.stdout)
    shift, error = shift_of(tmp_path, "collectives")
    assert abs(shift - -5_000_000_000) <= int(error) <= 60_000
    assert rows(tmp_path, tmp_path / "job.gbpf") == expected(a, 0) + expected(b, 1, shift)
    triggers = json.loads(gbpf.gbpf("report", tmp_path / "job.gbpf", "--format", "json").stdout)
    assert sorted((t["text"], t["ts_ns"], t["begin_ns"], t["value"])
                  for t in triggers["quality"]["triggers"]) == [
        ("max(sync) > a.gbpf", a.start + 9_000, a.start + 2_000, 77),
        ("max(sync) > b.gbpf", b.start + shift + 9_000, b.start + shift + 2_000, 77)]


def test_hosts_without_collectives(tmp_path):
    two_hosts(tmp_path, error=2_000_000, offset=1_500_000, steps=5)
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0, done.stderr
    shift, error = shift_of(tmp_path, "realtime")
    assert shift == -5_000_000_000 + 1_500_000 and int(error) >= 4_000_000
    assert "can be off by 4.000 ms" in done.stderr


def test_hosts_whose_clocks_nobody_keeps(tmp_path):
    """A second apart: only the collectives know, and there is one way to match them."""
    two_hosts(tmp_path, offset=-1_000_000_000, steps=40)
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    shift, error = shift_of(tmp_path, "collectives")
    assert abs(shift - -5_000_000_000) <= int(error) <= 60_000


def test_hosts_of_which_nothing_is_known(tmp_path):
    two_hosts(tmp_path, steps=4)
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0
    assert shift_of(tmp_path, "realtime-unsure") == (-5_000_000_000, None)
    assert "nobody says how far these are apart" in done.stderr
    assert "error not known" in done.stdout


def test_equal_collectives_are_not_guessed(tmp_path):
    """Every step takes exactly as long: they match in many ways, so none is believed."""
    for name, boot, start in (("a", "x", 1_000_000_000), ("b", "y", 3_000_000_000)):
        rec.training(steps=30, nccl=True, boot=boot, start=start).write(tmp_path / f"{name}.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0
    shift_of(tmp_path, "realtime-unsure")


def test_what_a_process_was_called_at_home(tmp_path):
    two_hosts(tmp_path, error=1000)
    merge(tmp_path, "a.gbpf", "b.gbpf")
    done = gbpf.gbpf("export", tmp_path / "job.gbpf", "-o", tmp_path / "j.json", "-f", "kineto")
    assert done.returncode == 0, done.stderr
    found = {}
    for path in tmp_path.glob("j.*.json"):
        trace = json.loads(path.read_text())
        pids = {e["pid"] for e in trace["traceEvents"] if e.get("cat") == "cuda_driver"}
        found[trace["distributedInfo"]["rank"]] = (path.name, pids)
    assert found == {0: ("j.422.json", {422}), 1: (f"j.{422 + STEP}.json", {422})}
    listed = gbpf.view(tmp_path / "job.gbpf", "proc_sum")["rows"]
    assert {r["pid"] for r in listed} == {422, 422 + STEP}


def test_losses_and_ends_are_kept(tmp_path):
    a = rec.training(pid=1, steps=2)
    b = rec.training(pid=2, steps=60)
    a.loss(a.end, 5)
    a.write(tmp_path / "a.gbpf")
    b.write(tmp_path / "b.gbpf")
    whole = (tmp_path / "b.gbpf").read_bytes()
    (tmp_path / "b.gbpf").write_bytes(whole[:-30])
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0
    assert "a.gbpf: 5 events were lost while recording" in done.stderr
    assert "b.gbpf: ends early" in done.stderr
    quality = gbpf.view(tmp_path / "job.gbpf", "api_sum")["quality"]
    assert quality["losses"]["ring_full"] == 5 if "losses" in quality else "5" in str(quality)
    assert infos(tmp_path / "job.gbpf")["source.2.end"] == "cut"


def test_ranks_that_are_claimed_twice_or_not_at_all(tmp_path):
    rec.training(pid=422, rank=3, steps=2).write(tmp_path / "a.gbpf")
    rec.training(pid=500, rank=3, steps=2).write(tmp_path / "b.gbpf")
    rec.training(pid=600, steps=2).write(tmp_path / "c.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf", "c.gbpf")
    assert done.returncode == 0
    assert "process 422 in" in done.stderr and "both say that they are rank 3" in done.stderr
    assert "1 of 3 processes do not say which rank they are" in done.stderr


def test_recordings_that_do_not_belong_together(tmp_path):
    rec.training(pid=422, steps=2).write(tmp_path / "a.gbpf")
    rec.training(pid=422, steps=2).write(tmp_path / "b.gbpf")
    rec.training(pid=422, steps=2, boot="late", start=100,
                 realtime=rec.REALTIME - 10**15).write(tmp_path / "c.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 1 and "both recorded process 422 at the same time" in done.stderr
    done = merge(tmp_path, "a.gbpf", "c.gbpf")
    assert done.returncode == 1 and "not of one job" in done.stderr
    assert not (tmp_path / "job.gbpf").exists()


def test_one_process_recorded_twice_in_turn(tmp_path):
    a = rec.training(pid=422, steps=3)
    b = rec.training(pid=422, steps=3, start=9_000_000_000, realtime=rec.REALTIME + 8_000_000_000)
    a.write(tmp_path / "a.gbpf")
    b.write(tmp_path / "b.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert rows(tmp_path, tmp_path / "job.gbpf") == expected(a, 0) + expected(b, 0)


def test_bad_files_and_wrong_usage(tmp_path):
    rec.training(steps=2).write(tmp_path / "a.gbpf")
    (tmp_path / "text").write_text("no recording")
    assert merge(tmp_path, "a.gbpf").returncode == 2
    assert merge(tmp_path, "a.gbpf", "a.gbpf", out="a.gbpf").returncode == 2
    assert gbpf.gbpf("merge", tmp_path / "a.gbpf", tmp_path / "a.gbpf").returncode == 2
    for name, word in (("text", "not a gbpf trace"), ("gone", "No such file")):
        done = merge(tmp_path, "a.gbpf", name)
        assert done.returncode == 1 and word in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gbpf", "text"]


@pytest.mark.root
def test_a_full_disk(tmp_path):
    for pid in (1, 2):
        rec.training(pid=pid, steps=400).write(tmp_path / f"{pid}.gbpf")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], check=True)
    try:
        done = merge(tmp_path, "1.gbpf", "2.gbpf", out="disk/job.gbpf")
        assert done.returncode == 1 and "No space left" in done.stderr
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("seed", range(3))
def test_random_recordings(tmp_path, seed):
    a, b = rec.anything(seed), rec.anything(seed + 1000)
    b.lines = [line.replace(rec.text("boot-1"), rec.text("boot-2")) for line in b.lines]
    a.write(tmp_path / "a.gbpf")
    b.write(tmp_path / "b.gbpf")
    done = merge(tmp_path, "a.gbpf", "b.gbpf")
    if "not of one job" in done.stderr:
        return
    assert done.returncode == 0, done.stderr
    got = rows(tmp_path, tmp_path / "job.gbpf")
    assert sum(got.values()) == sum(
        sum(c[2] != rec.NCCL for c in r.calls) + sum(w[3] == rec.KERNEL for w in r.works)
        for r in (a, b))
    assert {key[1] for key in got} == {0, 1}
