# SPDX-License-Identifier: BSD-2-Clause
"""Starts the program that serves made-up snapshots, and asks it."""

import contextlib
import http.client
import subprocess
import urllib.parse

from gbpf import BUILD
from prometheus_client.openmetrics import parser as openmetrics_parser

SERVER = BUILD / "tests" / "integration" / "serve_metrics"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
    "encoding=delimited"
)
COMM = 'job "\\\ufffd\ufffd'
GPU = "GPU-11111111-2222-3333-4444-555555555555"


class Server:
    """A serve_metrics that listens."""

    def __init__(self, process, url):
        self.process = process
        self.url = url
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().startswith("done")

    def ask(self, path="/metrics", method="GET", headers=(), context=None):
        """(status, headers, body) of one request."""
        if context:
            connection = http.client.HTTPSConnection(
                self.host, self.port, timeout=20, context=context)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, headers=dict(headers))
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def page(self, accept="*/*"):
        status, headers, body = self.ask(headers={"Accept": accept})
        assert status == 200
        return headers["Content-Type"], body

    def families(self):
        kind, body = self.page(OPENMETRICS)
        assert kind == OPENMETRICS + "; charset=utf-8"
        parsed = openmetrics_parser.text_string_to_metric_families(body.decode())
        return {family.name: family for family in parsed}


@contextlib.contextmanager
def serving(*options):
    process = subprocess.Popen(
        [SERVER, *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("ready "), process.stderr.read()
        yield Server(process, line.split()[1])
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        process.err = process.stderr.read()
    assert process.returncode == 0, process.err


def refused(*options):
    """What a server says that does not start."""
    done = subprocess.run(
        [SERVER, *map(str, options)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=20, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr.strip()
