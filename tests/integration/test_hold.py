# SPDX-License-Identifier: BSD-2-Clause
"""`trace -- CMD` misses no call into a library that nobody knew before it was mapped."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from gbpf import BUILD, GBPF, RUNGS, SIM, gbpf, run, view, wait_until

TARGET = BUILD / "tests/integration/hold_target"
DUMP_INFO = BUILD / "tests/integration/dump_info"

pytestmark = pytest.mark.root


def fresh(directory, name="libcuda.so.1"):
    """The simulated driver where no search finds it."""
    place = directory / "nobody" / "knows"
    place.mkdir(parents=True)
    shutil.copy(SIM / "lib/libcuda.so.1", place / name)
    return place / name


def library(path, text="int nothing;"):
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def info(recording):
    done = run(DUMP_INFO, recording)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


def opening_ns(done):
    return int(re.search(r"^done \d+ in (\d+) ns$", done.stdout, re.MULTILINE)[1])


def launches(recording):
    rows = [r for r in view(recording, "api_sum")["rows"] if r["name"] == "cuLaunchKernel"]
    return sum(r["calls"] for r in rows)


def trace(recording, *command, options=()):
    """
    Ahead of others that want a CPU: a thread is held for 40 ms at most, and what it calls
    after that is not seen if gbpf has not run until then.
    """
    done = gbpf("trace", "-o", recording, *options, "--", *command,
                preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, -19))
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    return done


def test_first_calls_into_an_unknown_library(tmp_path):
    recording = tmp_path / "t.gbpf"
    trace(recording, TARGET, "calls", fresh(tmp_path), 500)
    assert launches(recording) == 500
    said = info(recording)
    assert said["hold_timeouts"] == "0"
    # none if the notice of the mapping was quicker, which it hardly ever is
    assert (int(said["hold_ns"]) > 0) == (said["hold_count"] == "1")
    assert view(recording, "api_sum")["quality"]["unseen"] == []


def test_twenty_of_them_one_after_the_other(tmp_path):
    recording = tmp_path / "t.gbpf"
    wheres = [fresh(tmp_path / str(i)) for i in range(20)]
    script = tmp_path / "all"
    script.write_text("".join(f"{TARGET} calls {where} 50\n" for where in wheres))
    trace(recording, "sh", script)
    said = info(recording)
    assert 0 < int(said["hold_count"]) <= 20
    assert said["hold_timeouts"] == "0"
    assert launches(recording) == 20 * 50
    assert view(recording, "api_sum")["quality"]["unseen"] == []


@pytest.mark.parametrize("rung", RUNGS)
def test_on_each_rung(tmp_path, rung):
    recording = tmp_path / "t.gbpf"
    # one function only: the last rung takes a tenth of a second to detach each
    trace(recording, TARGET, "calls", fresh(tmp_path), 100,
          options=["--rung", rung, "--api", "cuLaunchKernel"])
    assert launches(recording) == 100, (info(recording), view(recording, "api_sum")["quality"])


def test_in_a_child_of_the_command(tmp_path):
    recording = tmp_path / "t.gbpf"
    command = f"{TARGET} calls {fresh(tmp_path)} 100; exit $?"
    trace(recording, "sh", "-c", command)
    assert launches(recording) == 100


def test_name_longer_than_what_is_read_at_once(tmp_path):
    recording = tmp_path / "t.gbpf"
    place = tmp_path / "/".join(["d" * 120] * 5)
    trace(recording, TARGET, "calls", fresh(place), 100)
    assert launches(recording) == 100


def test_library_that_was_there_before_is_not_waited_for(tmp_path):
    """The second process maps what the first one's hold probed."""
    recording = tmp_path / "t.gbpf"
    where = fresh(tmp_path)
    command = f"{TARGET} calls {where} 50; {TARGET} calls {where} 50; exit $?"
    trace(recording, "sh", "-c", command)
    assert launches(recording) == 100
    assert int(info(recording)["hold_count"]) <= 1


def test_library_that_cannot_be_probed_is_waited_for_once(tmp_path):
    recording = tmp_path / "t.gbpf"
    empty = library(tmp_path / "libcuda.so.1")
    others = [library(tmp_path / f"libother{i}.so") for i in range(20)]
    trace(recording, TARGET, "each", empty, *others, fresh(tmp_path))
    said = info(recording)
    assert said["hold_count"] in ("1", "2")
    assert int(said["hold_timeouts"]) < 2  # one, where gbpf gets no CPU for so long


def test_other_libraries_wait_for_nobody(tmp_path):
    """How long a dlopen() takes with and without is told, not judged."""
    recording = tmp_path / "t.gbpf"
    first = library(tmp_path / "libfirst.so")
    many = [tmp_path / f"lib{i}.so" for i in range(300)]
    for path in many:
        shutil.copy(first, path)
    plain = run(TARGET, "each", *many)
    held = trace(recording, TARGET, "each", *many, fresh(tmp_path))
    said = info(recording)
    opening = opening_ns(held) - int(said["hold_ns"])
    print(f"a dlopen() takes {opening_ns(plain) // 300} ns, traced {opening // 301} ns")
    assert int(said["hold_count"]) <= 1


def status_field(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name + ":"):
                return line.split()[1]
    return None


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def child_name(pid):
    try:
        return status_field(child_of(pid), "Name")
    except (OSError, IndexError):
        return None


def stopped(pid):
    """Every thread of it: they stop one by one, and one that runs on takes whom it sees."""
    return all(status_field(task, "State") == "T" for task in os.listdir(f"/proc/{pid}/task"))


def start(tmp_path):
    tracer = subprocess.Popen(
        [GBPF, "trace", "--rung", "single", "-o", tmp_path / "t.gbpf", "--",
         TARGET, "calls", fresh(tmp_path), "300"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert tracer.stdout.readline() == "opening\n"
    return tracer, child_of(tracer.pid)


def wait_for_end(tracer, pid):
    """It printed its last line, so it ran to its end."""
    assert tracer.stdout.read().startswith("done 300 in ")
    tracer.stdout.close()
    for _ in range(1000):
        try:
            if status_field(pid, "State") == "Z":
                return
        except OSError:
            return
        time.sleep(0.01)
    pytest.fail("the target has not ended")


def test_gbpf_that_does_nothing_delays_and_no_more(tmp_path):
    """As if it had died, but it can tell afterwards."""
    recording = tmp_path / "t.gbpf"
    calls = f"{TARGET} calls {fresh(tmp_path)}"
    tracer = subprocess.Popen(
        [GBPF, "trace", "-q", "-o", recording, "--",
         "sh", "-c", f"read go; {calls} 300; read go; {calls} 100; exit $?"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        wait_until(lambda: child_name(tracer.pid) == "sh")
        tracer.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(tracer.pid))
        tracer.stdin.write("go\n")
        assert tracer.stdout.readline() == "opening\n"
        assert tracer.stdout.readline().startswith("done 300 in ")
        tracer.send_signal(signal.SIGCONT)
        tracer.stdin.write("go\n")
        assert tracer.wait(timeout=60) == 0
    finally:
        tracer.kill()
        tracer.wait()
    assert info(recording)["hold_timeouts"] == "1"
    assert launches(recording) == 100


def test_killed_while_it_holds_a_thread(tmp_path):
    tracer, pid = start(tmp_path)
    while status_field(pid, "TracerPid") == "0":
        assert tracer.poll() is None, "it ended before it was seen to hold anybody"
    tracer.send_signal(signal.SIGKILL)
    assert tracer.wait(timeout=60) == -signal.SIGKILL
    wait_for_end(tracer, pid)
