# SPDX-License-Identifier: BSD-2-Clause
"""What libgbpf-cupti.so asks of the process it comes into."""
import pathlib
import re
import socket
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import sidecar_loader as wire  # noqa: E402

pytestmark = pytest.mark.parallel

FLOOR = (2, 17)


@pytest.fixture
def library(build):
    return build / "libgbpf-cupti.so"


def readelf(library, *options):
    return subprocess.run(["readelf", "-W", *options, library], capture_output=True, text=True,
                          check=True).stdout


def test_no_function_newer_than_the_floor(library):
    versions = {tuple(map(int, v.split("."))) for v in
                re.findall(r"@GLIBC_([\d.]+)", readelf(library, "--dyn-syms"))}
    assert versions and max(versions) <= FLOOR, sorted(versions)


def test_nothing_but_the_c_library(library):
    text = readelf(library, "--dynamic")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", text))
    assert needed == {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    assert "NODELETE" in text and "TEXTREL" not in text
    assert "[libgbpf-cupti.so]" in text


def test_it_exports_the_two_entries(library):
    defined = [line.split() for line in readelf(library, "--dyn-syms").splitlines()
               if " UND " not in line and " GLOBAL " in line]
    assert {w[7] for w in defined} == {"InitializeInjection", "gbpf_sidecar_begin"}


def test_no_thread_local_storage_and_no_executable_stack(library):
    segments = readelf(library, "--program-headers")
    assert " TLS " not in segments
    assert re.search(r"GNU_STACK .* RW ", segments)
    assert not re.search(r"LOAD .* RWE ", segments)


def test_gbpf_carries_it(library, gbpf):
    assert library.read_bytes() in gbpf.read_bytes()


@pytest.mark.long
def test_it_works_with_an_older_glibc(library, build, tmp_path):
    """Of before 2.34, in which dlopen() and threads moved."""
    subprocess.run([ROOT / "tests/integration/glibc/fetch", build / "glibc"], check=True)
    old = next((build / "glibc/lib").iterdir())
    program = tmp_path / "old"
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-O1", "-fno-stack-protector", "-nostartfiles",
         "-include", ROOT / "user/sidecar/lib/compat.h", ROOT / "tests/integration/glibc/old.c",
         "-Wl,--no-as-needed", "-l:libdl.so.2", "-l:libpthread.so.0", "-o", program], check=True)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [old / "ld-linux-x86-64.so.2", "--library-path", old, program, library,
         str(its.fileno())], pass_fds=[its.fileno()], stdin=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    its.close()
    loader = wire.Loader(ours)
    answer = loader.hello()
    assert answer is not None, process.communicate()
    assert answer.type == wire.REFUSED and "CUDA is not loaded" in answer.text
    maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    assert f"{old}/libc" in maps and "/libgbpf-cupti.so" in maps
    assert process.communicate(timeout=10)[1] == "" and process.returncode == 0
