# SPDX-License-Identifier: BSD-2-Clause
"""The pages that `--listen` serves, and the server that does."""

import contextlib
import gzip
import http.client
import os
import socket
import subprocess
import threading

import pytest
from gbpf import wait_until
from prometheus_client import parser as text_parser
from serving import COMM, GPU, OPENMETRICS, PROTOBUF, refused, serving

pytestmark = pytest.mark.parallel


@pytest.fixture(name="server", scope="module")
def one_server():
    with serving() as server:
        yield server


def value(families, name, sample=None, **labels):
    """Of the one sample that has these labels."""
    found = [
        s.value for s in families[name].samples
        if s.name == (sample or name) and all(s.labels.get(k) == v for k, v in labels.items())
    ]
    assert len(found) == 1, found
    return found[0]


# ---- what is in the pages ----


def test_openmetrics_is_parsed(server):
    families = server.families()
    labels = {"comm": COMM, "namespace": "ml", "pod": "pod-1", "rank": "1", "gpu": GPU}
    calls = [s for s in families["gbpf_calls"].samples if s.labels["rank"] == "1"]
    assert len(calls) == 5
    assert calls[0].labels == dict(labels, api="cuLaunchKernel", kind="launch")
    assert calls[0].value == 10
    assert families["gbpf_calls"].type == "counter"
    assert families["gbpf_gpu"].type == "info"
    assert families["gbpf_launch_dispatch_seconds"].unit == "seconds"
    assert value(families, "gbpf_call_seconds", "gbpf_call_seconds_total",
                 api="cuLaunchKernel", rank="0") == 0.000015
    assert value(families, "gbpf_launches_per_second", rank="2") == 1000.5
    assert value(families, "gbpf_launches_per_second_low", rank="2") == 900.25
    assert value(families, "gbpf_thread_state_ratio", rank="2", state="lock") == 0.125
    assert value(families, "gbpf_launch_dispatch_seconds",
                 "gbpf_launch_dispatch_seconds_bucket", rank="0", le="1e-05") == 4
    assert value(families, "gbpf_gpu_power_watts") == 123.5
    # what nobody knows is not there
    assert "gbpf_tree_cpu_ratio" not in families
    assert "gbpf_gpu_temperature_celsius" not in families


def test_both_texts_say_the_same(server):
    kind, body = server.page()
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    old = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_parser.text_string_to_metric_families(body.decode())
        for s in family.samples
    }
    new = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in server.families().values()
        for s in family.samples
    }
    assert old == new and len(old) > 100


def test_promtool_finds_no_fault(server):
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=server.page()[1], capture_output=True,
        timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_no_page_has_a_command_line(server):
    for accept in ("*/*", OPENMETRICS, PROTOBUF):
        kind, body = server.page(accept)
        assert b"job" in body and b"secret" not in body and b"token" not in body
        assert (kind == PROTOBUF) == (accept == PROTOBUF)


def test_gzip_has_the_same(server):
    for accept in ("*/*", OPENMETRICS, PROTOBUF):
        plain = server.page(accept)[1]
        status, headers, body = server.ask(headers={"Accept": accept, "Accept-Encoding": "gzip"})
        assert status == 200 and headers["Content-Encoding"] == "gzip"
        assert headers["Vary"] == "Accept, Accept-Encoding"
        assert len(body) < len(plain) / 4
        assert gzip.decompress(body) == plain


def test_counters_go_on_and_ends_are_kept():
    with serving("-n", 2) as server:
        assert value(server.families(), "gbpf_calls", "gbpf_calls_total",
                     rank="0", api="cuLaunchKernel") == 10
        server.tell("next")
        server.tell("end")
        families = server.families()
        assert value(families, "gbpf_calls", "gbpf_calls_total",
                     rank="0", api="cuLaunchKernel") == 20
        assert value(families, "gbpf_calls", "gbpf_calls_total",
                     rank="1", api="cuLaunchKernel") == 30
        assert len(families["gbpf_processes"].samples) == 1
        assert value(families, "gbpf_self_windows", "gbpf_self_windows_total") == 9


def test_the_number_of_sets_is_bounded():
    with serving("-n", 40, "-m", 7, "-p") as server:
        families = server.families()
        assert len(families["gbpf_processes"].samples) == 7
        assert all(s.labels["pid"].startswith("10") for s in families["gbpf_processes"].samples)
        assert value(families, "gbpf_processes_left_out") == 33


# ---- the server ----


def test_paths_and_methods(server):
    assert server.ask("/-/healthy")[::2] == (200, b"gbpf is up\n")
    status, headers, body = server.ask("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert b'href="/metrics"' in body
    for path in ("/nothing", "/metrics/", "/metrics/../../etc/passwd", "//", "/" + "x" * 4000):
        assert server.ask(path)[0] == 404
    status, headers, body = server.ask(method="HEAD")
    assert status == 200 and body == b""
    assert int(headers["Content-Length"]) == len(server.page()[1])
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        status, headers, _ = server.ask(method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD"


def test_connections_are_kept(server):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    with contextlib.closing(connection):
        connection.connect()
        first = connection.sock
        for path in ("/metrics", "/", "/metrics"):
            connection.request("GET", path)
            assert connection.getresponse().read()
            assert connection.sock is first


def test_rubbish_harms_nobody():
    with serving("-t", 1) as server:
        for rubbish in (b"\0" * 100, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                        b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n",
                        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200)):
            with socket.create_connection((server.host, server.port), timeout=20) as sock:
                with contextlib.suppress(OSError):
                    sock.sendall(rubbish)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
        assert server.ask("/-/healthy")[0] == 200


def test_fifty_at_once():
    with serving("-n", 50, "-i", 20) as server:
        want = server.page()[1]
        got = []

        def scrape():
            got.append(server.page()[1])

        threads = [threading.Thread(target=scrape) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 50 and set(got) == {want}


def test_no_page_shows_half_an_update():
    """In every snapshot all processes and APIs have made the same number of calls."""
    with serving("-n", 50, "-i", 10) as server:
        seen = [[], [], []]
        over = threading.Event()

        def scrape(mine):
            while not over.is_set():
                _, body = server.page()
                counts = {
                    line.rsplit(b" ", 1)[1] for line in body.split(b"\n")
                    if line.startswith((b"gbpf_calls_total{", b"gbpf_sync_seconds_count{"))
                }
                mine.append(sorted(map(int, counts)))

        threads = [threading.Thread(target=scrape, args=(mine,)) for mine in seen]
        for thread in threads:
            thread.start()
        try:
            for _ in range(60):
                server.tell("next")
            wait_until(lambda: all(mine and mine[-1] == [610] for mine in seen))
        finally:
            over.set()
            for thread in threads:
                thread.join()
        for mine in seen:
            assert all(len(counts) == 1 for counts in mine)
            assert mine == sorted(mine)


def test_slow_readers_hold_nobody_up():
    with serving("-t", 1, "-n", 200, "-i", 20) as server:
        slow = [socket.create_connection((server.host, server.port)) for _ in range(8)]
        for i, sock in enumerate(slow):
            # half of them do not finish asking, half do not read
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"\r\n" * (i % 2))
        assert server.ask()[0] == 200
        for sock in slow[::2]:
            sock.settimeout(20)
            assert sock.recv(1 << 20) == b""  # closed for being idle
        # connections beyond the bound wait for their turn, and get it
        idle = [socket.create_connection((server.host, server.port)) for _ in range(30)]
        assert server.ask()[0] == 200
        for sock in slow + idle:
            sock.close()


def test_stopped_twice():
    with serving() as server:
        server.tell("stop")
        with pytest.raises(ConnectionRefusedError):
            server.ask()


def test_the_thread_has_no_rights_and_takes_no_signals(server):
    tasks = f"/proc/{server.process.pid}/task"
    [tid] = [tid for tid in os.listdir(tasks) if int(tid) != server.process.pid]
    with open(f"{tasks}/{tid}/status", encoding="utf-8") as status:
        http_thread = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff"):
        assert int(http_thread[name], 16) == 0
    assert http_thread["NoNewPrivs"] == "1\n"
    terminating = 1 << (15 - 1) | 1 << (2 - 1) | 1 << (1 - 1)
    assert int(http_thread["SigBlk"], 16) & terminating == terminating


# ---- where it listens ----


def test_ports_and_addresses(server):
    address = f"127.0.0.1:{server.port}"
    assert refused("-l", address) == (
        f"{address} is in use by another program: choose another with --listen")
    for bad in ("", "9477", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1",
                "127.0.0.1:1x", "[::1:9477", "::1:9477", "example.org:1", "x" * 300 + ":1"):
        assert "is no address to listen on: write 127.0.0.1:9477" in refused("-l", bad)
    assert "\\x1b" in refused("-l", "\x1b[31m")
    assert "192.0.2.1:9477 is no address of this machine" in refused("-l", "192.0.2.1:9477")
    with serving("-l", "localhost:0") as other:
        assert other.host == "127.0.0.1" and other.ask()[0] == 200


def test_other_addresses_are_warned_of():
    with serving("-l", "[::1]:0") as server:
        assert server.url.startswith("http://[::1]:") and server.ask()[0] == 200
    assert server.process.err == ""
    with serving("-l", ":0") as server:
        server.host = "127.0.0.1"
        assert server.ask()[0] == 200
        server.host = "::1"
        assert server.ask()[0] == 200
    assert "can be read by whoever reaches this machine" in server.process.err


def test_without_libmicrohttpd():
    said = refused("-L", "libmicrohttpd.so.none")
    assert "install libmicrohttpd12" in said
    assert refused("-L", "libc.so.6") == "libmicrohttpd is too old: 0.9.71 or newer is needed"
