# SPDX-License-Identifier: BSD-2-Clause
"""gbpf monitor given what it can do little with: clear words, nothing lost, nobody harmed."""
import os
import signal
import socket
import subprocess

import gbpf
import monitored
import pytest
from monitored import job, monitoring, process_in, truth_of

pytestmark = [pytest.mark.root, pytest.mark.parallel]

ALWAYS = ["--max-overhead", "100%"]


@pytest.fixture
def memory():
    with monitored.memory_dir() as path:
        yield path


@pytest.mark.parametrize("budget", ["-1", "101%", "1%%", "much", "", "nan", "1 2"])
def test_a_budget_that_is_none(budget):
    done = gbpf.gbpf("monitor", f"--max-overhead={budget}", "--once")
    assert done.returncode == 2
    assert "--max-overhead takes a percentage from 0 to 100" in done.stderr


@pytest.mark.parametrize("options,words", [
    (["--interval", "10ms"], "--interval must be 100ms or more"),
    (["-a", "-p", "1"], "-a and -p exclude each other"),
    (["--quiet"], "--quiet without --listen"),
    (["--tls-cert", "x", "--listen", "127.0.0.1:0"], "belong together"),
    (["--auth", "x"], "--listen"),
    (["--apis"], "--apis and --kernels are rows of --format json"),
    (["--kernels", "--format", "table"], "--apis and --kernels are rows of --format json"),
    (["--apis", "--format", "json", "--quiet", "--listen", "127.0.0.1:0"], "are rows of"),
    (["-p", "12x"], "'12x' is not a list of process ids"),
])
def test_options_that_do_not_go_together(options, words):
    done = gbpf.gbpf("monitor", *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_budget_of_nothing_probes_nothing(memory):
    with job(memory, "--pattern", "steady", "--rate", 1000, "--duration", 0) as process:
        with monitoring(process, options=["--max-overhead", "0"]) as monitor:
            monitor.wait(2)
    for interval in monitor.intervals:
        assert "a budget of 0 allows no probes" in interval["self"]["limit"]
        assert interval["self"]["overhead_pct"] == 0 and interval["self"]["windows"] == 0
        told = process_in(interval, process.pid)
        assert told["launches_per_s"] is None and told["coverage"] == 0
        assert told["launches_seen"] == 0 and not told["apis"]
    assert process.returncode == 0


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = gbpf.gbpf("monitor", "--listen", f"127.0.0.1:{port}", "--once")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr and "in use" in done.stderr
    assert not done.stdout


def launches_of(process):
    totals = truth_of(process).totals
    return sum(t.calls for (_, api), t in totals.items() if api == "cuLaunchKernel")


def test_a_process_that_ends_within_an_interval_is_told_to_its_last_call(memory):
    with job(memory, "--pattern", "steady", "--rate", 3000, "--duration", 2.3,
             "--wait-usr1") as process:
        with monitoring(process, options=ALWAYS) as monitor:
            monitor.wait(1)  # it is there
            process.send_signal(signal.SIGUSR1)
            process.wait(timeout=60)
            monitor.process.wait(timeout=60)
    told = [process_in(i, process.pid) for i in monitor.intervals]
    seen = sum(p["launches_seen"] for p in told if p)
    assert seen == launches_of(process) > 3000


def test_one_that_ends_beside_others_is_told_to_its_last_call(memory):
    """The other keeps the monitor going; of the dead nothing is missing."""
    with job(memory, "--pattern", "steady", "--rate", 2000, "--iterations", 3000, "--wait-usr1",
             name="short") as short, \
         job(memory, "--pattern", "steady", "--rate", 10, "--duration", 0, name="long") as long:
        with monitoring(short, long, options=ALWAYS) as monitor:
            monitor.wait(1)
            short.send_signal(signal.SIGUSR1)
            short.wait(timeout=60)
            monitor.wait(2)
    told = [p for i in monitor.intervals if (p := process_in(i, short.pid))]
    assert sum(p["launches_seen"] for p in told) == launches_of(short) > 1000
    assert process_in(monitor.intervals[-1], short.pid) is None, "it is still listed"
    assert process_in(monitor.intervals[-1], long.pid)


def test_the_reader_goes_away(memory):
    with job(memory, "--pattern", "steady", "--rate", 100, "--duration", 0) as process:
        monitor = subprocess.Popen([gbpf.GBPF, "monitor", "-p", str(process.pid)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        monitor.stdout.readline()
        monitor.stdout.close()
        assert monitor.wait(timeout=30) == 1
        assert "cannot write to stdout" in monitor.stderr.read()
        monitor.stderr.close()
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_to(memory, number):
    with job(memory, "--pattern", "steady", "--rate", 100, "--duration", 0) as process:
        monitor = monitored.Monitor("-p", process.pid)
        monitor.wait(1)
        os.kill(monitor.process.pid, number)
        assert monitor.process.wait(timeout=30) == 0
    assert process.returncode == 0
