# SPDX-License-Identifier: BSD-2-Clause
"""gbpf export to SQLite: what nsys' documentation asks of its tables, asked of ours."""
import collections
import sqlite3

import gbpf
import pytest
import recordings as rec

pytestmark = pytest.mark.parallel

CLASSES = {"runtime": 0, "driver": 1}


def exported(tmp_path, recording, *options):
    recording.write(tmp_path / "t.gbpf")
    done = gbpf.gbpf("export", tmp_path / "t.gbpf", "-o", tmp_path / "t.sqlite", *options)
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(tmp_path / "t.sqlite")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.row_factory = sqlite3.Row
    return db


def two_ranks():
    r = rec.training(pid=422, steps=3, rank=0, nccl=True, runtime=True)
    rec.training(pid=500, steps=3, rank=1, nccl=True, recording=r)
    return r


# ---- the columns and joins that scripts for nsys use ----

COLUMNS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId "
                                   "returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId streamId correlationId globalPid "
                                  "demangledName shortName mangledName registersPerThread gridX "
                                  "gridY gridZ blockX blockY blockZ staticSharedMemory "
                                  "dynamicSharedMemory localMemoryPerThread graphNodeId graphId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId correlationId globalPid "
                                  "bytes copyKind srcKind dstKind srcDeviceId dstDeviceId",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId contextId streamId correlationId globalPid "
                                  "value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start end deviceId contextId streamId correlationId "
                                           "globalPid syncType eventId",
    "StringIds": "id value",
    "TARGET_INFO_GPU": "id name busLocation totalMemory smCount uuid cuDevice computeMajor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid numMultiprocessors",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime",
    "META_DATA_CAPTURE": "name value",
    "META_DATA_EXPORT": "name value",
    "ThreadNames": "nameId priority globalTid",
    "PROCESSES": "globalPid pid name",
    "NVTX_EVENTS": "start end eventType text globalTid textId domainId",
}


def test_tables_and_columns(tmp_path):
    db = exported(tmp_path, two_ranks())
    for table, columns in COLUMNS.items():
        there = [row["name"] for row in db.execute(f"PRAGMA table_info({table})")]
        assert [c for c in there if c in columns.split()] == columns.split(), table
        assert db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0], table


def test_processes_and_threads_of_a_global_id(tmp_path):
    db = exported(tmp_path, two_ranks())
    rows = db.execute("SELECT DISTINCT globalTid / 0x1000000 % 0x1000000 AS PID, "
                      "globalTid % 0x1000000 AS TID FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchall()
    assert {tuple(r) for r in rows} == {(422, 422), (500, 500)}
    names = db.execute("SELECT value FROM ThreadNames JOIN StringIds ON id = nameId").fetchall()
    assert {n for n, in names} == {"python3"}
    processes = db.execute("SELECT globalPid / 0x1000000 % 0x1000000, pid FROM PROCESSES")
    assert {tuple(r) for r in processes} == {(422, 422), (500, 500)}


def test_kernels_of_the_calls_that_launched_them(tmp_path):
    """The recipe of the documentation: new columns, filled by joins on correlationId."""
    job = two_ranks()
    db = exported(tmp_path, job)
    db.executescript("""
        ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT;
        ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN kernelName TEXT;
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET kernelName =
            (SELECT value FROM StringIds JOIN CUPTI_ACTIVITY_KIND_KERNEL AS gpu
             ON gpu.shortName = StringIds.id
             AND CUPTI_ACTIVITY_KIND_RUNTIME.correlationId = gpu.correlationId);
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET name =
            (SELECT value FROM StringIds WHERE nameId = StringIds.id);""")
    rows = db.execute("SELECT name, kernelName FROM CUPTI_ACTIVITY_KIND_RUNTIME "
                      "WHERE kernelName IS NOT NULL ORDER BY end - start LIMIT 100").fetchall()
    assert {n for n, _ in rows} == {"cudaLaunchKernel", "cudaGraphLaunch", "cuLaunchKernel",
                                    "cuGraphLaunch"}
    assert {k for _, k in rows} == {"kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}
    joined = db.execute("""
        SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON k.correlationId = r.correlationId
        AND k.globalPid = r.globalTid / 0x1000000 * 0x1000000""").fetchone()[0]
    assert joined == sum(w[3] == rec.KERNEL for w in job.works)


def test_what_was_copied_in_words(tmp_path):
    db = exported(tmp_path, two_ranks())
    row = db.execute("""
        SELECT oper.label, src.label, dst.label, COUNT(*), SUM(bytes)
        FROM CUPTI_ACTIVITY_KIND_MEMCPY
        JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id = copyKind
        JOIN ENUM_CUDA_MEM_KIND AS src ON src.id = srcKind
        JOIN ENUM_CUDA_MEM_KIND AS dst ON dst.id = dstKind GROUP BY 1, 2, 3""").fetchall()
    assert [tuple(r) for r in row] == [("Device-to-Host", "Device", "Pageable", 6, 6 * 4096)]
    row = db.execute("SELECT label, SUM(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET "
                     "JOIN ENUM_CUDA_MEM_KIND AS m ON m.id = memKind GROUP BY 1").fetchall()
    assert [tuple(r) for r in row] == [("Device", 6 << 16)]


def test_sums_as_the_reports_of_nsys_make_them(tmp_path):
    job = two_ranks()
    db = exported(tmp_path, job)
    rows = db.execute("""
        SELECT value AS Name, COUNT(*) AS Instances, SUM(end - start) AS Total,
               MIN(end - start), MAX(end - start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
        GROUP BY demangledName ORDER BY Total DESC""").fetchall()
    kernels = collections.Counter(w[5] - w[4] for w in job.works if w[3] == rec.KERNEL)
    assert [r["Instances"] for r in rows] == [kernels[30_000] + kernels[10_000], kernels[120_000]]
    assert rows[1]["Total"] == 120_000 * kernels[120_000]
    assert rows[0]["Name"] == "kernel(float*)"


def test_waits(tmp_path):
    job = two_ranks()
    db = exported(tmp_path, job)
    rows = db.execute("""
        SELECT label, streamId, deviceId, COUNT(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
        JOIN ENUM_CUPTI_SYNC_TYPE AS t ON t.id = syncType GROUP BY 1, 2, 3""").fetchall()
    # of the job through the runtime, the driver's calls only: they say what they wait for
    assert [tuple(r) for r in rows] == [("Stream synchronize", 7, 0, 6)]


def test_times_count_from_the_start_of_the_session(tmp_path):
    job = rec.training(steps=2)
    db = exported(tmp_path, job)
    epoch = db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0]
    first = db.execute("SELECT MIN(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
    assert epoch + first == rec.REALTIME + min(c[3] for c in job.calls) - job.start


# ---- what holds of every file ----


def check_content(db, recording):
    base = recording.start
    names = dict(tuple(r) for r in db.execute("SELECT id, value FROM StringIds"))
    got = collections.Counter(
        (r["globalTid"] % 0x1000000, names[r["nameId"]], r["eventClass"], r["start"] + base,
         r["end"] - r["start"]) for r in db.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME"))
    wanted = collections.Counter(
        (tid, rec.APIS[api][0], CLASSES[rec.APIS[api][1]], begin,
         (end or recording.end + 1000) - begin)
        for _, tid, api, begin, end, _ in recording.calls if api != rec.NCCL)
    assert got == wanted
    ranges = db.execute("SELECT COUNT(*) FROM NVTX_EVENTS WHERE text = 'ncclAllReduce'")
    assert ranges.fetchone()[0] == sum(c[2] == rec.NCCL for c in recording.calls)
    got = collections.Counter()
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        for r in db.execute(f"""
                SELECT *, (SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
                           WHERE r.correlationId = g.correlationId
                           AND r.globalTid / 0x1000000 * 0x1000000 = g.globalPid) AS calls
                FROM CUPTI_ACTIVITY_KIND_{table} AS g"""):
            got[r["globalPid"] >> 24, r["streamId"], r["start"] + base, r["end"] - r["start"],
                r["calls"]] += 1
    assert got == collections.Counter(
        (pid, stream, begin, end - begin, int(link))
        for pid, _, stream, _, begin, end, _, link in recording.works)
    texts = [t for t, in db.execute("SELECT value FROM StringIds")]
    assert len(texts) == len(set(texts)) and all(isinstance(t, str) for t in texts)


@pytest.mark.parametrize("seed", range(4))
def test_random_sessions(tmp_path, seed):
    recording = rec.anything(seed)
    check_content(exported(tmp_path, recording), recording)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(400, 600))
def test_many_random_sessions(tmp_path, seed):
    recording = rec.anything(seed)
    check_content(exported(tmp_path, recording), recording)


def test_what_is_missing_is_in_the_file(tmp_path):
    r = rec.Recording()
    r.process(9)
    r.call(9, 9, rec.LAUNCH, r.start + 10, r.start + 500, record=False)
    r.call(9, 9, rec.SYNC, r.start + 600, None)
    r.loss(r.start + 700, 17)
    db = exported(tmp_path, r)
    texts = [t for t, in db.execute("SELECT text FROM DIAGNOSTIC_EVENT WHERE severity > 1")]
    assert texts == ["17 events were lost: a ring was full"]
    texts = [t for t, in db.execute("SELECT text FROM DIAGNOSTIC_EVENT WHERE severity = 1")]
    assert texts == ["recorded without --gpu-time"]
    states = db.execute("SELECT state FROM GBPF_CALL_STATE").fetchall()
    assert [tuple(s) for s in states] == [("had not returned when the trace ended",)]


def test_one_process_of_it(tmp_path):
    db = exported(tmp_path, two_ranks(), "--pid", "500")
    for table in ("RUNTIME", "KERNEL"):
        key = "globalTid" if table == "RUNTIME" else "globalPid"
        rows = db.execute(f"SELECT DISTINCT {key} >> 24 FROM CUPTI_ACTIVITY_KIND_{table}")
        assert [tuple(r) for r in rows] == [(500,)]
    assert db.execute("SELECT pid FROM PROCESSES").fetchall()[0]["pid"] == 500
