# SPDX-License-Identifier: BSD-2-Clause
"""
Random sessions in every format: what readers that know nothing of ours find in the files
is what is in the session, and the rules of the formats hold (perfetto_trace asserts them).
"""
import collections
import csv
import json
import pathlib

import gbpf
import perfetto_official
import perfetto_trace
import perfetto_wire
import pytest
import recordings

GOLDEN = pathlib.Path(__file__).with_name("golden")
EXPORT = gbpf.BUILD / "tests" / "integration" / "export_random"
KNOWN, OPEN = 0, 1
FILES = ("native.pftrace.gz", "compat.pftrace")
# seed, processes, threads, streams, devices, calls of a thread, hostile, window
QUICK = [
    (1, 2, 3, 5, 2, 40, 0, ()),
    (2, 3, 1, 12, 3, 60, 1, ()),
    (3, 1, 4, 3, 1, 60, 0, (1_100_000, 1_300_000)),
    (4, 2, 2, 4, 2, 60, 1, (1_050_000, 1_050_001)),
]
LONG = [(seed, 1 + seed % 4, 1 + seed % 7, 4 + seed % 9, 1 + seed % 4, 20 + seed % 90, seed & 1,
         (1_000_000 + seed * 1000, 1_200_000 + seed * 3000) if seed % 3 == 0 else ())
        for seed in range(10, 130)]



def session(case, place):
    done = gbpf.run(EXPORT, place, *case[:-1], *case[-1])
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    calls = {e["call"]: e for e in lines if "call" in e}
    works = {e["work"]: e for e in lines if "work" in e}
    return calls, works


def identity(call):
    return call["pid"], call["tid"], call["begin"], call["name"]


def check_calls(trace, calls):
    def found(events):
        return sorted((trace.threads[e.track]["pid"], trace.threads[e.track]["tid"], e.begin,
                       e.name, e.end) for e in events if e.track in trace.threads)

    want = [c for c in calls.values() if c["wanted"]]
    assert found(trace.slices) == sorted(
        (*identity(c), c["end"]) for c in want if c["how"] in (KNOWN, OPEN))
    assert found(trace.instants) == sorted(
        (*identity(c), c["begin"]) for c in want if c["how"] not in (KNOWN, OPEN))


def check_works(trace, works):
    want = [w for w in works.values() if w["wanted"]]
    if trace.stages:
        found = [(s.pid, s.args["stream"], s.context, s.begin, s.end, s.event_id - 1)
                 for s in trace.stages]
        assert sorted(found) == sorted(
            (w["pid"], w["stream"], w["context"], w["begin"], w["end"], w["work"]) for w in want)
        return
    found = [(s.args["stream"], s.args["context"], s.begin, s.end) for s in trace.slices
             if s.categories == ("gpu",)]
    assert sorted(found) == sorted((w["stream"], w["context"], w["begin"], w["end"])
                                   for w in want)


def check_arrows(trace, calls, works):
    found = sorted((trace.threads[a.track]["tid"], a.begin, b.begin, b.end)
                   for a, b in trace.arrows)
    want = sorted((calls[w["cause"]]["tid"], calls[w["cause"]]["begin"], w["begin"], w["end"])
                  for w in works.values() if w["cause"] >= 0)
    assert found == want


def check_table(path, calls, works):
    with open(path, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    by_id = {int(row["id"]): row for row in table}
    assert len(by_id) == len(table)
    assert sorted(i - 1 for i in by_id if i <= len(calls)) == sorted(
        c for c in calls if calls[c]["wanted"])
    assert sorted(i - 1 - len(calls) for i in by_id if i > len(calls)) == sorted(
        w for w in works if works[w]["wanted"])
    for row in table:
        about = (calls[int(row["id"]) - 1] if row["kind"] == "call"
                 else works[int(row["id"]) - 1 - len(calls)])
        assert int(row["begin_ns"]) == about["begin"] and int(row["pid"]) == about["pid"]
        if row["kind"] != "call":
            assert (int(row["cause"]) - 1 if row["cause"] else -1) == about["cause"]


def check(case, place):
    calls, works = session(case, place)
    for name in FILES:
        trace = perfetto_trace.Trace(place / name)
        check_calls(trace, calls)
        check_works(trace, works)
        check_arrows(trace, calls, works)
    check_table(place / "all.csv", calls, works)


@pytest.mark.parametrize("case", QUICK)
def test_random_sessions_are_whole_in_every_format(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", LONG)
def test_many_random_sessions(case, tmp_path):
    check(case, tmp_path)


# Which list of interned names a number refers to, by the message it stands in and its field.
SPACES = {("track_event", "name_iid"): "event_names",
          ("track_event", "category_iids"): "event_categories",
          ("gpu_render_stage_event", "name_iid"): "event_names",
          ("debug_annotations", "name_iid"): "debug_annotation_names",
          ("debug_annotations", "string_value_iid"): "debug_annotation_string_values",
          ("args", "name_iid"): "compute_arg_names"}


def spelled(message, names, at="packet"):
    """The message with names for their numbers, which any new word of the program moves."""
    if isinstance(message, list):
        return [spelled(m, names, at) for m in message]
    if not isinstance(message, dict):
        return message
    if at in SPACES.values():
        names[at, message["iid"]] = text = message.get("name") or message["str"]
        return text
    known = {key: SPACES[at, key] for key in message if (at, key) in SPACES}
    return {key: [names[known[key], iid] for iid in value] if isinstance(value, list) else
            names[known[key], value] for key, value in message.items() if key in known} | {
            key: spelled(value, names, key) for key, value in message.items() if key not in known}


@pytest.mark.parametrize("name", (*FILES, "all.csv"))
def test_the_small_session_is_written_as_ever(name, tmp_path):
    """Every packet and cell; what changes on purpose is looked at, and copied to golden/."""
    session((0,) * 7 + ((),), tmp_path)
    if name.endswith(".csv"):
        text = (tmp_path / name).read_text()
    else:
        names = collections.defaultdict(dict)
        text = "".join(
            json.dumps(spelled(p, names[p["trusted_packet_sequence_id"]]), sort_keys=True,
                       default=bytes.decode) + "\n"
            for p in perfetto_wire.packets(tmp_path / name))
    (tmp_path / "new.txt").write_text(text)
    assert text == (GOLDEN / f"{name.split('.')[0]}.txt").read_text(), tmp_path / "new.txt"


def official(path):
    """As Perfetto's own definitions have it: nothing unknown, and the same as we read."""
    trace = perfetto_official.read(path)
    assert not perfetto_official.unknown(trace)
    assert [perfetto_official.plain(p) for p in trace.packet] == list(perfetto_wire.packets(path))


@pytest.mark.skipif(perfetto_official.why is not None, reason=str(perfetto_official.why))
@pytest.mark.parametrize("case", QUICK[:2])
def test_the_official_definitions_know_every_field(case, tmp_path):
    session(case, tmp_path)
    for name in FILES:
        official(tmp_path / name)


@pytest.mark.long
def test_the_official_package_is_there_and_agrees(tmp_path):
    assert perfetto_official.why is None, "tools/install-deps gets it from PyPI"
    for case in QUICK + LONG[:20]:
        session(case, tmp_path)
        for name in FILES:
            official(tmp_path / name)


# ---- threads that do everything at once ----

def tangled(seed):
    """Calls inside of calls, polls across them, lost ends, failures; times meet at their edges."""
    rng = recordings.rng(seed)
    r = recordings.Recording()
    for pid in (31, 32):
        r.process(pid, comm=rng.choice(recordings.HOSTILE))
        for tid in (pid, pid + 1000):
            r.thread(pid, tid, comm=rng.choice(recordings.HOSTILE))
            now = r.start + rng.randrange(1000)
            for _ in range(30):
                now = tangle(r, rng, pid, tid, now)
    return r


def tangle(r, rng, pid, tid, now):
    """One outer call with what is in it; gives when the next may begin."""
    end = now + rng.choice((0, 1, 500, 9000))
    ret = rng.choice((0, 0, 2, 700))
    r.call(pid, tid, rng.choice((recordings.RT_LAUNCH, recordings.NCCL)), now,
           None if rng.randrange(12) == 0 else end, ret=ret)
    inner = now
    for depth in range(1, rng.randrange(1, 4)):
        inner = rng.randint(inner, end)
        r.call(pid, tid, recordings.LAUNCH, inner, rng.randint(inner, end), depth=depth)
    if rng.randrange(4) == 0:
        r.poll(pid, tid, now, now + rng.choice((1, 20_000)), 3, 1)
    return end + rng.choice((0, 0, 300))


def check_tangled(seed, place):
    recording = tangled(seed).write(place / "t.gbpf")
    known = [c for c in gbpf.calls(recording)]
    out = place / "t.pftrace"
    done = gbpf.gbpf("export", "-q", recording, "-o", out)
    assert done.returncode == 0, done.stderr
    trace = perfetto_trace.Trace(out)
    rows = [e for e in trace.slices + trace.instants if e.categories[0] not in ("mark", "gpu")]
    assert len(rows) == len(known)
    wholes = [c for c in known if not c["flags"] & (gbpf.OPEN | gbpf.NO_END | gbpf.NO_BEGIN)]
    ended = [s for s in trace.slices if "state" not in s.args and s.categories[0] != "mark"]
    assert sorted((s.begin, s.end, s.name) for s in ended) == sorted(
        (c["begin"], c["end"], c["api"]) for c in wholes)


@pytest.mark.parametrize("seed", (1, 2))
def test_tangled_threads_nest_or_get_rows(seed, tmp_path):
    check_tangled(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 100))
def test_many_tangled_threads(seed, tmp_path):
    check_tangled(seed, tmp_path)
