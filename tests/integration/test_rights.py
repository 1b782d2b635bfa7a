# SPDX-License-Identifier: BSD-2-Clause
"""docs/rights.md: the least sets of capabilities are enough, and are the least."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import gbpf
import pytest

pytestmark = [pytest.mark.root, pytest.mark.parallel]
TEXT = (gbpf.ROOT / "docs/rights.md").read_text()
USER, OTHER = 31001, 31002


def table():
    rows = [line.strip("|").split("|") for line in TEXT.split("\n") if line.startswith("|")]
    first = rows.index(["Target", "uprobe.session, uprobe.multi", "perf_event"])
    for row in rows[first + 2:]:
        if len(row) != 3:
            return
        yield row[0], {"upper": row[1].split(", "), "single": row[2].split(", ")}


ROWS = dict(table())


@pytest.fixture
def folder():
    """A folder that every user may enter and write to, with gbpf and the job in it."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="gbpf-test-"))
    made.chmod(0o1777)
    shutil.copy(gbpf.GBPF, made)
    shutil.copy(gbpf.JOB, made)
    shutil.copytree(gbpf.SIM / "lib", made / "lib")
    yield made
    shutil.rmtree(made)


def as_user(user, caps=()):
    names = ",".join(f"+{cap[4:].lower()}" for cap in caps) or "-all"
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
            f"--inh-caps={names}", f"--ambient-caps={names}"]


JOB = "--truth-mib 0 --iterations 1000000000 --kernel-ns 20000 --wait sleep"


@contextlib.contextmanager
def target(folder, row):
    """The job of a row of the table, running."""
    user = OTHER if "another user" in row else USER
    lib = folder / "lib"
    command = [*as_user(user), folder / "simjob", *JOB.split(), "--lib", lib]
    if "mount namespace" in row:
        where = folder / "mnt"
        where.mkdir()
        command[command.index(lib)] = where / "lib"
        script = 'mount -t tmpfs none "$1" && cp -r "$2" "$1/" && shift 2 && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", where, lib, *command]
    elif "closed to others" in row:
        closed = folder / "closed"
        closed.mkdir()
        shutil.copytree(lib, closed / "lib")
        shutil.chown(closed, OTHER)
        closed.chmod(0o700)
        command[command.index(lib)] = closed / "lib"
    job = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline().startswith("ready")
        gbpf.wait_until(lambda: "libcuda.so.1" in maps(job.pid))
        if "deleted" in row:
            (lib / "libcuda.so.1").unlink()
        yield job.pid
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


def maps(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


def records(folder, pid, rung, caps):
    """Does gbpf trace with these capabilities record calls of the process?"""
    out = folder / "t.gbpf"
    done = gbpf.run(*as_user(USER, caps), folder / "gbpf", "trace", "-q", "-d", "0.1",
                    "--api", "cuLaunchKernel", "--no-wait", "--rung", rung, "-p", pid, "-o", out)
    if done.returncode:
        return False
    rows = gbpf.view(out, "api_sum")["rows"]
    return any(row["calls"] > 0 for row in rows)


def test_the_table_is_there():
    assert len(ROWS) == 6 and all(caps for row in ROWS.values() for caps in row.values())


@pytest.fixture(scope="module")
def upper():
    """The best rung above the last, None if this kernel has neither."""
    found = json.loads(gbpf.gbpf("doctor", "-f", "json").stdout)
    works = {r["rung"]: r["result"] == "ok" for r in found["rungs"]}
    return next((r for r in ("session", "multi") if works[f"uprobe.{r}"]), None)


def cases():
    for number, row in enumerate(ROWS):
        yield pytest.param(row, "upper")
        slow = number not in (0, len(ROWS) - 1)
        yield pytest.param(row, "single", marks=[pytest.mark.long] if slow else [])


@pytest.mark.parametrize("row, column", cases())
def test_the_least_is_enough_and_the_least(folder, upper, row, column):
    caps = ROWS[row][column]
    rung = upper if column == "upper" else "single"
    with target(folder, row) as pid:
        if rung is None:  # then it takes more than rights
            assert not records(folder, pid, "multi", caps + ["CAP_SYS_ADMIN"])
            return
        assert records(folder, pid, rung, caps)
        for one in caps:
            assert not records(folder, pid, rung, [c for c in caps if c != one]), one


@pytest.mark.parametrize("row", ROWS)
def test_doctor_names_what_is_missing(folder, upper, row):
    """Starting from what is enough for one's own, what doctor names is what the table has."""
    caps = ROWS["a process of one's own"]["upper"]
    wanted = set(ROWS[row]["upper"])
    with target(folder, row) as pid:
        while True:
            done = gbpf.run(*as_user(USER, caps), folder / "gbpf", "doctor", "--no-attach",
                            "--rung", upper or "auto", "-f", "json", "-p", pid)
            found = json.loads(done.stdout)
            assert done.returncode == (0 if found["ok"] else 1)
            if found["ok"]:
                break
            trouble = " ".join(image["trouble"] or "" for image in found["process"]["images"])
            named = set(re.findall(r"CAP_\w+", trouble))
            assert named - set(caps), found["process"]
            caps = sorted(set(caps) | named)
        assert wanted <= set(caps)
        images = found["process"]["images"]
        assert [i for i in images if i["kind"] == "driver" and i["hooked"]]


def test_without_any_right(folder):
    done = gbpf.run(*as_user(USER), folder / "gbpf", "doctor", "-f", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and done.stderr == "" and not found["ok"]
    missing = {m["capability"]: m for m in found["capabilities"]["missing"]}
    assert found["capabilities"]["effective"] == []
    assert {name for name, m in missing.items() if m["needed"]} == {"CAP_BPF", "CAP_PERFMON"}
    assert len(missing) == 6 and all(m["needed_for"] for m in missing.values())
    assert {r["result"] for r in found["rungs"]} == {"no"}
    assert {r["reason"] for r in found["rungs"]} == {"not permitted"}
    assert found["cost"]["pair_ns"] is None
    assert found["trouble"] == "probes on functions"


def test_the_capabilities_it_says_it_has(folder):
    for caps in (["CAP_BPF"], ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]):
        done = gbpf.run(*as_user(USER, caps), folder / "gbpf", "doctor", "-f", "json")
        found = json.loads(done.stdout)
        assert sorted(found["capabilities"]["effective"]) == caps
        assert found["ok"] == ("CAP_SYS_ADMIN" in caps) == (done.returncode == 0)
    admin = {m["capability"] for m in found["capabilities"]["missing"]}
    assert admin == {"CAP_DAC_READ_SEARCH"}
