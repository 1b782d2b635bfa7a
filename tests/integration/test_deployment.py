# SPDX-License-Identifier: BSD-2-Clause
"""docs/monitoring: the systemd unit, the Kubernetes manifests and the image."""
import contextlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import confine
import gbpf
import pytest
import yaml

FOLDER = gbpf.ROOT / "docs/monitoring"
UNIT = FOLDER / "gbpf-monitor.service"
SERVICE = confine.settings(UNIT)
MANIFESTS = {d["kind"]: d
             for d in yaml.safe_load_all((FOLDER / "gbpf-daemonset.yaml").read_text())}
POD = MANIFESTS["DaemonSet"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]
MIB = 1 << 20


def documented():
    """The capabilities of docs/rights.md with which every process can be looked into."""
    text = (gbpf.ROOT / "docs/rights.md").read_text()
    rows = [line.strip("|").split("|") for line in text.split("\n")
            if line.startswith("|") and line.count("|") == 4 and "CAP_" in line]
    assert len(rows) == 6
    return {cap for row in rows for cap in row[1].split(", ")}


@pytest.mark.parallel
def test_the_capabilities_are_the_documented_ones():
    assert len(documented()) == 5
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        (value,) = SERVICE[key]
        assert set(value.split()) == documented()
    security = CONTAINER["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert {f"CAP_{cap}" for cap in security["capabilities"]["add"]} == documented()


@pytest.mark.parallel
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/gbpf", gbpf.GBPF))
    done = gbpf.run("systemd-analyze", "verify", "--man=no", unit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    unit.write_text(unit.read_text().replace("ProtectClock", "ProtectClocks"))
    assert gbpf.run("systemd-analyze", "verify", "--man=no", unit).stderr


@pytest.mark.parallel
def test_systemd_finds_little_exposed():
    """0.0 is nothing, 10.0 everything: in tenths."""
    done = gbpf.run("systemd-analyze", "security", "--offline=yes", "--threshold=30", UNIT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parallel
def test_it_is_reloaded_for_a_new_driver():
    assert SERVICE["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert SERVICE["Restart"] == ["on-failure"]


def options():
    """Those that the deployments give to gbpf, each as a command line."""
    (start,) = SERVICE["ExecStart"]
    words = shlex.split(start)
    assert words[0] == "/usr/local/bin/gbpf"
    entry = re.search(r'^ENTRYPOINT (\[.*\])$', DOCKERFILE, re.M)[1]
    command = re.search(r'^CMD (\[.*\])$', DOCKERFILE, re.M)[1]
    assert json.loads(entry) == [words[0]]
    return [words[1:], CONTAINER["args"], json.loads(command)]


DOCKERFILE = (FOLDER / "Dockerfile").read_text()


@pytest.mark.parallel
def test_gbpf_knows_the_options():
    page = gbpf.gbpf("monitor", "--help").stdout
    for words in options():
        assert words[0] == "monitor"
        for word in words[1:]:
            assert not word.startswith("--") or f"{word} " in page, word


@pytest.mark.parallel
def test_the_manifests_hold_together():
    spec = MANIFESTS["DaemonSet"]["spec"]
    labels = POD["metadata"]["labels"]
    monitor = yaml.safe_load((FOLDER / "gbpf-podmonitor.yaml").read_text())["spec"]
    service = MANIFESTS["Service"]["spec"]
    for selected in (spec["selector"]["matchLabels"], monitor["selector"]["matchLabels"],
                     service["selector"]):
        assert selected.items() <= labels.items()
    (port,) = CONTAINER["ports"]
    assert f":{port['containerPort']}" in CONTAINER["args"]
    assert port["name"] == service["ports"][0]["targetPort"]
    assert port["name"] == monitor["podMetricsEndpoints"][0]["port"]
    assert POD["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    assert monitor["podMetricsEndpoints"][0]["honorLabels"] is True
    name = MANIFESTS["Namespace"]["metadata"]["name"]
    assert {MANIFESTS[k]["metadata"]["namespace"] for k in ("DaemonSet", "Service")} == {name}


@pytest.mark.parallel
def test_the_container_has_no_more_than_it_needs():
    security = CONTAINER["securityContext"]
    assert POD["spec"]["hostPID"] is True
    assert not POD["spec"]["automountServiceAccountToken"]
    assert "volumes" not in POD["spec"] and "hostNetwork" not in POD["spec"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert not security["privileged"]
    assert security["seccompProfile"]["type"] == "RuntimeDefault"


@pytest.mark.parallel
def test_limits_hold_what_gbpf_may_use():
    """64 MiB of its own and 64 MiB of maps, and the same in both deployments."""
    limit = int(re.fullmatch(r"(\d+)Mi", CONTAINER["resources"]["limits"]["memory"])[1]) * MIB
    assert limit >= 128 * MIB
    assert SERVICE["MemoryMax"] == [f"{limit // MIB}M"]
    assert "cpu" not in CONTAINER["resources"]["limits"] and "CPUQuota" not in SERVICE


@pytest.mark.parallel
def test_the_image_has_what_the_binary_is_linked_with():
    """The C library, and nothing that the image would have to install."""
    linked = set(re.findall(r"^\s*(\S+?)\.so", gbpf.run("ldd", gbpf.GBPF).stdout, re.M))
    assert linked <= {"linux-vdso", "libm", "libc", "libpthread", "libdl",
                      "/lib64/ld-linux-x86-64"}, linked
    loaded = (gbpf.ROOT / "user/export/mhd.h").read_text()
    version = re.search(r'MHD_LIBRARY "libmicrohttpd\.so\.(\d+)"', loaded)[1]
    assert f" libmicrohttpd{version} " in DOCKERFILE.split("debian:12-slim")[1]


# ---- what the unit allows is enough ----


@contextlib.contextmanager
def deleted_job(folder):
    """A simulated job of another user's whose driver is not at its path any more."""
    shutil.copy(gbpf.JOB, folder)
    shutil.copytree(gbpf.SIM / "lib", folder / "lib")
    command = ["setpriv", "--reuid=31002", "--regid=31002", "--clear-groups", "env", "RANK=7",
               folder / "simjob", "--truth-mib", 0, "--iterations", 1_000_000_000, "--cpu-ns",
               20000, "--lib", folder / "lib"]
    job = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline().startswith("ready")
        maps = pathlib.Path(f"/proc/{job.pid}/maps")
        gbpf.wait_until(lambda: "libcuda.so.1" in maps.read_text())
        (folder / "lib/libcuda.so.1").unlink()
        yield job.pid
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


@pytest.fixture
def folders():
    """One for gbpf, which is not hidden by PrivateTmp=, and one for the job, which is."""
    made = [pathlib.Path(tempfile.mkdtemp(prefix="gbpf-test-", dir=at)) for at in ("/run", "/tmp")]
    for one in made:
        one.chmod(0o755)
    shutil.copy(gbpf.GBPF, made[0])
    yield made
    for one in made:
        shutil.rmtree(one)


def confined(unit, *command):
    return gbpf.run(sys.executable, gbpf.ROOT / "tests/integration/confine.py", unit, *command)


@pytest.mark.root
def test_it_sees_a_job_under_the_settings_of_the_unit(folders):
    own, other = folders
    with deleted_job(other) as pid:
        done = confined(UNIT, own / "gbpf", "monitor", "--once", "--format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (process,) = [p for p in told["processes"] if p["pid"] == pid]
    assert process["launches_seen"] > 0 and process["launches_per_s"] > 0
    assert process["rank"] == "7"
    assert told["self"]["limit"] is None


@pytest.mark.root
def test_the_settings_are_in_force(folders, tmp_path):
    """What they forbid is refused, and without one of the capabilities the job is not seen."""
    script = ("import ctypes, mmap, os, socket\n"
              "def fails(f, *a):\n"
              "    try: f(*a)\n"
              "    except OSError as e: return e.errno\n"
              "c = ctypes.CDLL(None, use_errno=True)\n"
              "print(fails(mmap.mmap, -1, 4096, 34, 7), fails(socket.socket, socket.AF_PACKET),\n"
              "      fails(open, '/usr/x', 'w'), c.unshare(0x10000000), c.swapoff(b'/x'),\n"
              "      ctypes.get_errno(), os.getuid(), os.listdir('/tmp'))\n")
    out = confined(UNIT, "/usr/bin/python3", "-c", script)
    assert out.stdout.split() == ["1", "97", "30", "-1", "-1", "1", str(confine.USER), "[]"], out
    unit = tmp_path / "less.service"
    unit.write_text(UNIT.read_text().replace(" CAP_SYS_PTRACE", ""))
    own, other = folders
    with deleted_job(other) as pid:
        done = confined(unit, own / "gbpf", "monitor", "--once", "--format", "json")
    told = json.loads(done.stdout) if done.returncode == 0 else {"processes": []}
    assert not [p for p in told["processes"] if p["pid"] == pid and p["launches_seen"]]
