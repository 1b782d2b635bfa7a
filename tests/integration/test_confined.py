# SPDX-License-Identifier: BSD-2-Clause
"""The settings of the systemd unit are enough for gbpf monitor, and what it serves then is all
that dashboard and alerts ask for."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import confine
import gbpf
import metrics_doc
import monitored
import pytest
import test_monitoring_files
import test_serve_secure

pytestmark = [pytest.mark.root, pytest.mark.quiet]  # it watches every process

UNIT = gbpf.ROOT / "docs/monitoring/gbpf-monitor.service"
PAGE = (gbpf.ROOT / "docs/monitoring.md").read_text()
GPU = """\
gpu GPU-22222222-2222-3333-4444-555555555555
name Made-up
pci 00000000:65:00.0
sm 1980
memory_clock 3201
power 650500
power_limit 700000
energy 1000000
temperature 71
throttle 4
utilisation 99 60
memory 8589934592 150323855360
gpm 90 45 30 60
processes {pid}
"""


@pytest.fixture
def folders():
    """One for gbpf, which is not hidden by PrivateTmp=, and one for the job, which is."""
    made = [pathlib.Path(tempfile.mkdtemp(prefix="gbpf-test-", dir=at)) for at in ("/run", "/tmp")]
    for one in made:
        one.chmod(0o755)
    shutil.copy(gbpf.GBPF, made[0])
    shutil.copy(gbpf.SIM / "nvml/libnvidia-ml.so.1", made[0])
    yield made
    for one in made:
        shutil.rmtree(one)


@contextlib.contextmanager
def deleted_job(folder):
    """A simulated job of another user's whose driver is not at its path any more."""
    shutil.copy(gbpf.JOB, folder)
    shutil.copytree(gbpf.SIM / "lib", folder / "lib")
    command = ["setpriv", "--reuid=31002", "--regid=31002", "--clear-groups", "env", "RANK=7",
               "POD_NAME=x", "SECRET=hidden", folder / "simjob", "--truth-mib", 0, "--iterations",
               1_000_000_000, "--cpu-ns", 20000, "--lib", folder / "lib"]
    job = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline().startswith("ready")
        maps = pathlib.Path(f"/proc/{job.pid}/maps")
        gbpf.wait_until(lambda: "libcuda.so.1" in maps.read_text())
        (folder / "lib/libcuda.so.1").unlink()
        yield job
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


def command(unit, *words):
    return [sys.executable, str(gbpf.ROOT / "tests/integration/confine.py"), str(unit),
            *map(str, words)]


def with_gpu(own, pid):
    (own / "nvml.txt").write_text(GPU.format(pid=pid))
    return dict(os.environ, GBPF_NVML=str(own / "libnvidia-ml.so.1"),
                SIMNVML=str(own / "nvml.txt"))


def test_the_settings_are_in_force():
    """What they forbid is refused."""
    script = ("import ctypes, mmap, os, socket\n"
              "def fails(f, *a):\n"
              "    try: f(*a)\n"
              "    except OSError as e: return e.errno\n"
              "c = ctypes.CDLL(None, use_errno=True)\n"
              "print(fails(mmap.mmap, -1, 4096, 34, 7), fails(socket.socket, socket.AF_PACKET),\n"
              "      fails(open, '/usr/x', 'w'), c.unshare(0x10000000), c.swapoff(b'/x'),\n"
              "      ctypes.get_errno(), os.getuid(), os.listdir('/tmp'))\n")
    out = gbpf.run(*command(UNIT, "/usr/bin/python3", "-c", script))
    assert out.stdout.split() == ["1", "97", "30", "-1", "-1", "1", str(confine.USER), "[]"], out


@pytest.mark.long
def test_without_a_capability_the_job_is_not_seen(folders, tmp_path):
    unit = tmp_path / "less.service"
    unit.write_text(UNIT.read_text().replace(" CAP_SYS_PTRACE", ""))
    own, other = folders
    with deleted_job(other) as job:
        done = gbpf.run(*command(unit, own / "gbpf", "monitor", "--once", "--format", "json"))
    told = json.loads(done.stdout) if done.returncode == 0 else {"processes": []}
    assert not [p for p in told["processes"] if p["pid"] == job.pid and p["launches_seen"]]


# ---- JSON ----


def documented(title):
    """The keys that a section of docs/monitoring.md lists."""
    section = PAGE.split(f"### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = [line.split("|")[1] for line in section.split("\n") if line.startswith("|`")]
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def test_json_of_a_job_is_as_documented(folders):
    own, other = folders
    with deleted_job(other) as job:
        done = gbpf.run(*command(UNIT, own / "gbpf", "monitor", "--once", "--format", "json",
                                 "--apis", "--kernels", "--interval", "2s",
                                 "--max-overhead", "100%"), env=with_gpu(own, job.pid))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (process,) = [p for p in told["processes"] if p["pid"] == job.pid]
    assert process["launches_seen"] > 0 and process["launches_per_s"] > 0
    assert process["rank"] == "7" and process["pod"] is None
    assert process["gpu_uuid"] == "GPU-22222222-2222-3333-4444-555555555555"
    assert told["self"]["limit"] is None
    for title, of in (("The interval", told), ("A process", process),
                      ("A thread", process["threads"][0]), ("An API", process["apis"][0]),
                      ("A kernel", process["kernels"][0]), ("A GPU", told["gpus"][0]),
                      ("gbpf itself", told["self"])):
        assert set(of) == documented(title), title


# ---- what is served ----


def get(url):
    return urllib.request.urlopen(url, timeout=10).read().decode()


@contextlib.contextmanager
def serving(own, job):
    """The service as the unit starts it, on a port of its own: (process, URL)."""
    (start,) = confine.settings(UNIT)["ExecStart"]
    words = start.replace("/usr/local/bin/gbpf", str(own / "gbpf")).replace(":9477", ":0").split()
    process = subprocess.Popen(command(UNIT, *words), stdin=subprocess.DEVNULL, text=True,
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=with_gpu(own, job.pid))
    try:
        url = None
        while not url:
            line = process.stderr.readline()
            assert line, "it ended"
            url = line.split()[1] if line.startswith("serving ") else None
        yield process, url
    finally:
        process.kill()
        process.communicate()


def wait_for(url, condition, timeout=60):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        page = get(url)
        if condition(page):
            return page
        time.sleep(0.2)
    pytest.fail(f"never served:\n{page}")


NEEDED = re.compile(r'^gbpf_cpu_throttled_ratio\{[^}]*rank="7"', re.M)


def test_it_serves_all_that_is_asked_for(folders):
    own, other = folders
    with deleted_job(other) as job, monitored.quota(job, 0.5), serving(own, job) as (process, url):
        assert get(url.replace("/metrics", "/-/healthy"))
        page = wait_for(url, lambda page: NEEDED.search(page) and "gbpf_tree_cpu_ratio{" in page
                        and "gbpf_copies_per_second{" in page  # not while choices change
                        and "gbpf_errors_per_second{" in page
                        and "gbpf_back_pressured_launches_per_second{" in page
                        and re.search(r"^gbpf_launches_per_second\{.* [1-9]", page, re.M))
        process.send_signal(signal.SIGHUP)
        wait_for(url, lambda page: "gbpf_gpu_power_watts{" not in page)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), err
    assert "hidden" not in page and "--lib" not in page and "simjob" in page
    served = set(re.findall(r"^(gbpf_\w+)", page, re.M))
    used = {metric for _, e in test_monitoring_files.EXPRESSIONS
            for metric, _ in metrics_doc.selectors(e)}
    # native histograms are in another format; the number of an error comes with the first one
    absent = used - served - {"up"}
    assert absent == {"gbpf_launch_dispatch_seconds", "gbpf_sync_seconds", "gbpf_gpu_last_xid"}


def unanswered(api):
    """Panels of the dashboard to which Prometheus knows nothing to say."""
    for panel, target in test_monitoring_files.TARGETS:
        expression = target["expr"].replace("$__rate_interval", "1m")
        if not test_serve_secure.query(api, re.sub(r"\$\w+", ".*", expression)):
            yield f"{panel['title']} {target['refId']}"


@pytest.mark.long
def test_prometheus_answers_every_panel(folders, tmp_path):
    """Of the native histograms of a real run; that of classic ones is the other side of an "or"."""
    own, other = folders
    # there was no XID error, and nobody else uses the GPU
    expected = {"XID errors B", "Processes that share a GPU A"}
    with deleted_job(other) as job, monitored.quota(job, 0.5), serving(own, job) as (_, url), \
            test_serve_secure.prometheus(tmp_path, {
                "job_name": "gbpf", "honor_labels": True,
                "static_configs": [{"targets": [urllib.parse.urlsplit(url).netloc]}]}) as api:
        end = time.monotonic() + 40
        while set(unanswered(api)) != expected and time.monotonic() < end:
            time.sleep(1)
        assert set(unanswered(api)) == expected
