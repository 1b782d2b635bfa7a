# SPDX-License-Identifier: BSD-2-Clause
"""A real Prometheus as reader; TLS and passwords."""

import base64
import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import urllib.parse
import urllib.request

import pytest
from gbpf import wait_until
from serving import COMM, GPU, refused, serving

pytestmark = pytest.mark.parallel


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


def hashed(password):
    return subprocess.run(
        ["openssl", "passwd", "-6", password], check=True, capture_output=True, text=True,
        timeout=60).stdout.strip()


def basic(user, password):
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


# ---- Prometheus ----


@contextlib.contextmanager
def prometheus(tmp_path, *jobs):
    """A Prometheus with these scrape jobs: its API's URL."""
    config = tmp_path / "prometheus.yml"
    config.write_text(json.dumps({  # which is YAML too
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": jobs,
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


def test_prometheus_scrapes_native_histograms(tmp_path, certificate):
    cert, key = certificate
    users = tmp_path / "users"
    users.write_text(f"scraper:{hashed('right')}\n")
    users.chmod(0o600)
    with serving() as server, serving("-c", cert, "-k", key, "-a", users) as secure, prometheus(
        tmp_path,
        {"job_name": "gbpf", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]},
        {"job_name": "secure", "static_configs": [{"targets": [f"127.0.0.1:{secure.port}"]}],
         "scheme": "https", "tls_config": {"ca_file": str(cert)},
         "basic_auth": {"username": "scraper", "password": "right"}},
    ) as api:
        name = 'gbpf_launch_dispatch_seconds{job="gbpf",rank="1"}'
        wait_until(lambda: len(query(api, "gbpf_build_info")) == 2, timeout=60)
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
        [(_, calls)] = query(api, 'gbpf_calls_total{job="gbpf",rank="1",api="cuLaunchKernel"}')
        assert calls == "10"
        assert query(api, "gbpf_gpu_info")[0][0]["name"] == "Made-up GPU"
        sums = query(api, "sum by (job) (gbpf_launches_per_second)")
        assert [total for _, total in sums] == ["3001.5", "3001.5"]
        assert [value for _, value in query(api, "up")] == ["1", "1"]


# ---- TLS and passwords ----


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


# Of "bcrypt", as htpasswd -B writes it.
BCRYPT = "$2y$05$abcdefghijklmnopqrstuu5acT4ov6iE6mckZaDOgu6HcQbsLpqDG"


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
