# SPDX-License-Identifier: BSD-2-Clause
"""A trace of a command ends: by itself when all are gone, or when it is told to."""

import os
import pathlib
import signal
import subprocess
import time

from gbpf import GBPF, JOB, gbpf

QUIET = ("--truth-mib", "0", "--quiet")


def test_processes_seen_while_they_die_keep_no_trace_alive(tmp_path):
    done = gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", "--", JOB, "--pattern", "churn",
                "--iterations", "400", *QUIET, timeout=100)
    assert done.returncode == 0, done.stderr


def reaped(pid):
    """Has a process, which had children, none any more?"""
    return not pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")


def test_a_signal_ends_the_trace_of_what_a_command_left_behind(tmp_path):
    script = f"{JOB} --duration 0 {' '.join(QUIET)} >/dev/null & echo $!"
    trace = subprocess.Popen(
        [GBPF, "trace", "-q", "-o", str(tmp_path / "t.gbpf"), "--", "sh", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )
    left = int(trace.stdout.readline())
    try:
        while not reaped(trace.pid):
            time.sleep(0.05)
        time.sleep(1)
        assert trace.poll() is None, "it follows what runs on"
        trace.send_signal(signal.SIGINT)
        trace.wait(timeout=60)
        os.kill(left, 0)  # it still runs
    finally:
        trace.kill()
        trace.wait()
        trace.stdout.close()
        os.kill(left, signal.SIGKILL)
