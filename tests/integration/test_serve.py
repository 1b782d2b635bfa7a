# SPDX-License-Identifier: BSD-2-Clause
"""The pages that `--listen` serves, read by what reads such pages."""

import base64
import contextlib
import gzip
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest
from gbpf import BUILD, wait_until
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client import parser as text_parser

pytestmark = pytest.mark.parallel

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


@contextlib.contextmanager
def prometheus(tmp_path, target):
    """A Prometheus that scrapes target: its API's URL."""
    config = tmp_path / "prometheus.yml"
    config.write_text(json.dumps({
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": [
            {"job_name": "gbpf", "static_configs": [{"targets": [target]}]},
        ],
    }))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address={address}", "--enable-feature=native-histograms"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield f"http://{address}/api/v1/query?query="
    finally:
        process.terminate()
        process.wait(timeout=30)


def query(api, text):
    """The result's [(labels, value)]; no answer: nothing."""
    try:
        with urllib.request.urlopen(api + urllib.parse.quote(text), timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return [(r["metric"], r.get("histogram", r.get("value"))[1]) for r in result]


def test_prometheus_scrapes_native_histograms(tmp_path):
    with serving() as server, prometheus(tmp_path, f"127.0.0.1:{server.port}") as api:
        name = 'gbpf_launch_dispatch_seconds{rank="1"}'
        wait_until(lambda: query(api, name), timeout=60)
        [(labels, histogram)] = query(api, name)
        assert labels["comm"] == COMM and labels["gpu"] == GPU
        assert histogram["count"] == "10" and float(histogram["sum"]) == 0.001023
        # one duration a bucket: 1 us, 2 us, 4 us …, none off by more than the bound
        buckets = [tuple(map(float, b[1:])) for b in histogram["buckets"]]
        assert len(buckets) == 10
        for i, (low, high, count) in enumerate(buckets):
            assert count == 1
            assert low / 1.16 < 1e-6 * 2**i < high * 1.16
        [(_, p50)] = query(api, f"histogram_quantile(0.5, {name})")
        assert 16e-6 / 1.16 < float(p50) < 32e-6 * 1.16
        [(_, calls)] = query(api, 'gbpf_calls_total{rank="1",api="cuLaunchKernel"}')
        assert calls == "10"
        [(info, _)] = query(api, "gbpf_gpu_info")
        assert info["name"] == "Made-up GPU"
        assert query(api, 'sum(gbpf_launches_per_second)')[0][1] == "3001.5"
        assert query(api, 'up')[0][1] == "1"


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


# ---- TLS and passwords ----


@pytest.fixture(name="certificate", scope="module")
def throwaway_certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True, timeout=60)
    key.chmod(0o600)
    return cert, key


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_tls(certificate):
    cert, key = certificate
    trusting = ssl.create_default_context(cafile=cert)
    with serving("-c", cert, "-k", key) as server:
        assert server.url.startswith("https://")
        status, _, body = server.ask(context=trusting)
        assert status == 200 and b"gbpf_calls_total" in body
        with pytest.raises(ssl.SSLCertVerificationError):
            server.ask(context=ssl.create_default_context())
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.ask(context=old)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            server.ask()
        assert server.ask(context=trusting)[0] == 200


def test_tls_files_that_do_not_fit(certificate, tmp_path):
    cert, key = certificate
    assert refused("-c", cert) == "TLS needs both a certificate and its key"
    assert "No such file" in refused("-c", cert, "-k", tmp_path / "none")
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("no key\n")
    rubbish.chmod(0o600)
    assert refused("-c", cert, "-k", rubbish).startswith("cannot serve https://127.0.0.1:")
    assert refused("-c", rubbish, "-k", key).startswith("cannot serve https://127.0.0.1:")
    readable = tmp_path / "key.pem"
    readable.write_bytes(key.read_bytes())
    readable.chmod(0o644)
    assert refused("-c", cert, "-k", readable) == (
        f"{readable}: can be read or changed by others: chmod 600 it")
    assert "is not a regular file" in refused("-c", cert, "-k", tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    assert "is not a regular file" in refused("-c", cert, "-k", fifo)


def hashed(password):
    return subprocess.run(
        ["openssl", "passwd", "-6", password], check=True, capture_output=True, text=True,
        timeout=60).stdout.strip()


def basic(user, password):
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


BCRYPT = "$2y$05$abcdefghijklmnopqrstuu5acT4ov6iE6mckZaDOgu6HcQbsLpqDG"  # of "bcrypt", as htpasswd -B has it


def test_passwords(tmp_path):
    users = tmp_path / "users"
    users.write_text(f"# who may\nscraper:{hashed('right')}\r\n\nother:{hashed('pass:word')}\n"
                     f"third:{BCRYPT}")
    users.chmod(0o600)
    with serving("-a", users, "-l", ":0") as server:
        server.host = "127.0.0.1"
        for headers in ({}, basic("scraper", "wrong"), basic("scraper", ""), basic("", "right"),
                        basic("nobody", "right"), basic("scraper", "right2"),
                        basic("scraper", "pass:word"), {"Authorization": "Basic !"},
                        {"Authorization": "Bearer right"}):
            status, got, body = server.ask(headers=headers)
            assert status == 401 and b"gbpf_" not in body
            assert got["WWW-Authenticate"].startswith('Basic realm="gbpf"')
            assert server.ask("/", headers=headers)[0] == 401
        assert server.ask(headers=basic("scraper", "right"))[0] == 200
        assert server.ask(headers=basic("other", "pass:word"))[0] == 200
        assert server.ask(headers=basic("third", "bcrypt"))[0] == 200
        assert server.ask("/-/healthy")[0] == 200
    assert server.process.err == ""  # no warning: a password is needed


def test_password_files_that_do_not_fit(tmp_path):
    users = tmp_path / "users"
    for text in ("scraper:plain\n", "scraper\n", ":$6$salt$hash\n", "scraper:$apr1$a$b\n"):
        users.write_text(text)
        users.chmod(0o600)
        said = refused("-a", users)
        assert "line 1: want user:hash" in said and "plain" not in said
    users.write_text("# nobody\n")
    assert "has no user in it" in refused("-a", users)
    users.write_text(f"a:{hashed('b')}\n")
    users.chmod(0o640)
    with serving("-a", users) as server:
        assert server.ask()[0] == 401
    for mode in (0o644, 0o660, 0o602):
        users.chmod(mode)
        assert "can be read or changed by others" in refused("-a", users)
    users.chmod(0o600)
    os.chown(users, 12345, 0)
    assert "belongs to another user" in refused("-a", users)
