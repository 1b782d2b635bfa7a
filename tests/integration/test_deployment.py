# SPDX-License-Identifier: BSD-2-Clause
"""docs/monitoring: the systemd unit, the Kubernetes manifests and the image."""
import json
import re
import shlex

import confine
import gbpf
import pytest
import yaml

pytestmark = pytest.mark.parallel

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


def test_the_capabilities_are_the_documented_ones():
    assert len(documented()) == 5
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        (value,) = SERVICE[key]
        assert set(value.split()) == documented()
    security = CONTAINER["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert {f"CAP_{cap}" for cap in security["capabilities"]["add"]} == documented()


def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/gbpf", gbpf.GBPF))
    done = gbpf.run("systemd-analyze", "verify", "--man=no", unit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    unit.write_text(unit.read_text().replace("ProtectClock", "ProtectClocks"))
    assert gbpf.run("systemd-analyze", "verify", "--man=no", unit).stderr


def test_systemd_finds_little_exposed():
    """0.0 is nothing, 10.0 everything: in tenths."""
    done = gbpf.run("systemd-analyze", "security", "--offline=yes", "--threshold=30", UNIT)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_gbpf_knows_the_options():
    page = gbpf.gbpf("monitor", "--help").stdout
    for words in options():
        assert words[0] == "monitor"
        for word in words[1:]:
            assert not word.startswith("--") or f"{word} " in page, word


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


def test_the_container_has_no_more_than_it_needs():
    security = CONTAINER["securityContext"]
    assert POD["spec"]["hostPID"] is True
    assert not POD["spec"]["automountServiceAccountToken"]
    assert "volumes" not in POD["spec"] and "hostNetwork" not in POD["spec"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert not security["privileged"]
    assert security["seccompProfile"]["type"] == "RuntimeDefault"


def test_limits_hold_what_gbpf_may_use():
    """64 MiB of its own and 64 MiB of maps, and the same in both deployments."""
    limit = int(re.fullmatch(r"(\d+)Mi", CONTAINER["resources"]["limits"]["memory"])[1]) * MIB
    assert limit >= 128 * MIB
    assert SERVICE["MemoryMax"] == [f"{limit // MIB}M"]
    assert "cpu" not in CONTAINER["resources"]["limits"] and "CPUQuota" not in SERVICE


def test_the_image_has_what_the_binary_is_linked_with():
    """The C library, and nothing that the image would have to install."""
    linked = set(re.findall(r"^\s*(\S+?)\.so", gbpf.run("ldd", gbpf.GBPF).stdout, re.M))
    assert linked <= {"linux-vdso", "libm", "libc", "libpthread", "libdl",
                      "/lib64/ld-linux-x86-64"}, linked
    loaded = (gbpf.ROOT / "user/export/mhd.h").read_text()
    version = re.search(r'MHD_LIBRARY "libmicrohttpd\.so\.(\d+)"', loaded)[1]
    assert f" libmicrohttpd{version} " in DOCKERFILE.split("debian:12-slim")[1]
