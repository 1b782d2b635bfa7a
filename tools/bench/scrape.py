# SPDX-License-Identifier: BSD-2-Clause
"""How long a scrape takes, and taking a snapshot in: 200 processes with 20 APIs each."""
import http.client
import pathlib
import statistics
import subprocess
import time
import urllib.parse

import stats

ACCEPT = {
    "text": "text/plain; version=0.0.4",
    "openmetrics": "application/openmetrics-text; version=1.0.0",
    "protobuf": "application/vnd.google.protobuf; "
                "proto=io.prometheus.client.MetricFamily; encoding=delimited",
}


def cpu_ms(pid):
    """CPU time of a process's threads, precise to the ns."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(t.read_text().split()[0]) for t in threads) / 1e6


def measure(server, connection, rounds):
    """{name: [ms]}; every scrape is the first after an interval."""
    got = {"update": []}
    for turn in range(rounds):
        for name, accept in ACCEPT.items():
            server.stdin.write("next\n")
            server.stdin.flush()
            got["update"].append(int(server.stdout.readline().split()[1]) / 1e3)
            before, began = cpu_ms(server.pid), time.monotonic()
            connection.request("GET", "/metrics", headers={"Accept": accept,
                                                           "Accept-Encoding": "gzip"})
            size = len(connection.getresponse().read())
            if turn == 0:
                continue  # memory is had for the first time
            got.setdefault(f"{name}.wall", []).append((time.monotonic() - began) * 1e3)
            got.setdefault(f"{name}.cpu", []).append(cpu_ms(server.pid) - before)
            got.setdefault(f"{name}.bytes", []).append(size)
    return got


def scrape(b):
    program = b.build / "tests" / "integration" / "serve_metrics"
    server = subprocess.Popen([program, "-n", "200", "-i", "20"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        url = urllib.parse.urlsplit(server.stdout.readline().split()[1])
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        got = measure(server, connection, 21 if not b.long else 101)
        connection.close()
    finally:
        server.stdin.close()
        server.wait()
    for name, values in got.items():
        if name.endswith(".bytes"):
            continue
        b.add(f"scrape.{name}", statistics.median(values), "ms", n=len(values),
              interval=stats.median_interval(values),
              target=("<=", 50) if name.endswith(".wall") else None,
              what="200 processes with 20 APIs, compressed, loopback; median"
              if name != "update" else "taking such a snapshot in, median")
    b.extra["scrape"] = {name: values[-1] for name, values in got.items()
                         if name.endswith(".bytes")}
