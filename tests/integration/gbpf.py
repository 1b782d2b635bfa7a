# SPDX-License-Identifier: BSD-2-Clause
"""Runs gbpf and simulated jobs, and reads both sides of the story."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
if not BUILD.is_absolute():
    BUILD = ROOT / BUILD


def own_copies():
    """
    (gbpf, sim) of this worker of pytest: probes are in files, so that whoever has files of
    its own meets nobody else's.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if not worker:
        return BUILD / "gbpf", BUILD / "sim"
    place = BUILD / "tests" / "workers" / worker
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(BUILD / "sim", place / "sim", ignore=shutil.ignore_patterns("obj"))
    shutil.copy2(BUILD / "gbpf", place)
    return place / "gbpf", place / "sim"


_gbpf, SIM = own_copies()
GBPF = str(_gbpf)
JOB = str(SIM / "simjob")
DUMP = str(BUILD / "tests" / "integration" / "dump_calls")

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import truth  # noqa: E402  (the simulator's own reader)

OPEN, NO_END, NO_BEGIN, ERROR, POLL, NESTED, ENTRY_ONLY = 1, 2, 4, 8, 16, 32, 128
RUNGS = ("session", "multi", "single")


def sim_env(lib="lib"):
    """The environment in which the stand-ins are known before they are mapped."""
    env = dict(os.environ)
    env["LD_LIBRARY_PATH"] = str(SIM / lib)
    return env


def run(*args, timeout=120, **kwargs):
    return subprocess.run(
        [str(a) for a in args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="surrogateescape",
        timeout=timeout,
        check=False,
        **kwargs,
    )


def gbpf(*args, **kwargs):
    return run(GBPF, *args, **kwargs)


def calls(path):
    """Every call of a recording, in the model's terms."""
    done = run(DUMP, path)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def hooked(path):
    """Names of the functions that were hooked."""
    done = run(DUMP, "--sites", path)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def view(path, name, *options):
    """One view of a recording as its JSON contract says."""
    done = gbpf("report", path, "--view", name, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trace_job(tmp_path, *job, rung=None, api=None, lib="lib", options=(), name="t.gbpf", nice=0):
    """
    gbpf trace -- simjob …: (finished gbpf, recording, truths by pid). nice: of both, where what
    the job is found to do would be another on a machine that has no CPU for it.
    """
    recording = tmp_path / name
    args = ["trace", "-o", recording]
    if rung:
        args += ["--rung", rung]
    if api:
        args += ["--api", api]
    args += list(options)
    args += ["--", JOB, "--quiet", "--lib", SIM / lib, "--truth", tmp_path / "truth.%p", *job]
    done = gbpf(*args, env=sim_env(lib), preexec_fn=lambda: os.nice(nice))
    return done, recording, truths(tmp_path)


def truths(tmp_path):
    found = {}
    for path in sorted(tmp_path.glob("truth.*")):
        one = truth.load(str(path))
        found[one.pid] = one
    return found


@contextlib.contextmanager
def job(tmp_path, *args, lib="lib", env=None, name="truth.%p"):
    """A simulated job that has said "ready"; ended by SIGTERM if it still runs."""
    process = subprocess.Popen(
        [JOB, "--lib", str(SIM / lib), "--truth", str(tmp_path / name), *map(str, args)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=env or sim_env(lib),
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("ready"), line
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.output = process.communicate(timeout=60)[0]


@contextlib.contextmanager
def tracing(recording, *args, settle=True):
    """gbpf trace in the background, attached; ended by SIGINT."""
    process = subprocess.Popen(
        [GBPF, "trace", "-o", str(recording), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        if settle:
            wait_until(lambda: attached(process.pid) or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.out, process.err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def attached(pid):
    """Does this gbpf record, with everything attached before? Then it gives up CAP_IPC_LOCK."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return fields.get("NoNewPrivs") == "1" and not int(fields["CapEff"], 16) & 1 << 14


def wait_until(true, timeout=30):
    end = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
