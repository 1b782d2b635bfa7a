# SPDX-License-Identifier: BSD-2-Clause
"""Injection a thousand times, its death at any moment, and under other C libraries."""
import os
import subprocess

import pytest

from gbpf import BUILD, ROOT, run, wait_until
from inject import WAITS, inject, target, unharmed
from test_inject import kill_at_random

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.timeout(1800)]

EVERY = (*WAITS, "malloc", "dlopen", "spawn", "fork", "storm", "regs", "deep", "idle")
APT = BUILD / "tests/integration/apt"


@pytest.mark.parametrize("kinds", [EVERY, ("regs", "deep", "malloc", "poll")],
                         ids=["every", "few"])
def test_five_hundred_times(kinds):
    for _ in range(10):
        with target(*kinds) as t:
            before = t.state()
            said = inject(t.pid, times=50)
            assert [s.err for s in said] == [0] * 50, [s for s in said if s.err]
            assert t.proc("maps").count(".so-") and set(t.threads("TracerPid")) == {"0"}
            # gbpf got no CPU in time: the thread has gone on by itself, its stack stays
            assert t.state()[3] - before[3] <= 2
            unharmed(t)


def test_killed_three_hundred_times():
    with target("regs", "deep", "malloc", *WAITS) as t:
        masks = t.threads("SigBlk")
        kill_at_random(t, 300)
        wait_until(lambda: t.threads("SigBlk") == masks)
        assert set(t.threads("TracerPid")) == {"0"}
        unharmed(t)


def libc_of(suite):
    """The directory with the C library of another release of Debian."""
    place = APT / suite
    for part in ("lists/partial", "cache/archives/partial", "root"):
        (place / part).mkdir(parents=True, exist_ok=True)
    source = place / "sources.list"
    source.write_text("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                      f"http://deb.debian.org/debian {suite} main\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={source}",
           "-o", "Dir::Etc::sourceparts=-",
           "-o", f"Dir::State::lists={place}/lists", "-o", f"Dir::Cache={place}/cache",
           "-o", "Dir::State::status=/dev/null"]
    if not list(place.glob("*.deb")):
        assert run(*apt, "update").returncode == 0
        done = run(*apt, "download", "libc6", cwd=place)
        assert done.returncode == 0, done.stderr
    package = next(place.glob("libc6_*.deb"))
    assert run("dpkg-deb", "-x", package, place / "root").returncode == 0
    return next((place / "root").rglob("libc.so.6")).parent


def linked_with(directory, output):
    """inject_target for that C library, which also interprets it."""
    built = run("gcc", "-std=c11", "-O2", "-D_GNU_SOURCE", "-I.", "-c", "-o", f"{output}.o",
                "tests/integration/inject_target.c", cwd=ROOT)
    assert built.returncode == 0, built.stderr
    libraries = [directory / name
                 for name in ("libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")]
    built = run("gcc", "-nodefaultlibs", "-o", output, f"{output}.o", "-Wl,--no-as-needed",
                *libraries, "-lgcc", f"-Wl,--dynamic-linker={directory}/ld-linux-x86-64.so.2",
                f"-Wl,-rpath,{directory}", "-Wl,--allow-shlib-undefined")
    assert built.returncode == 0, built.stderr
    return output


@pytest.mark.parametrize("suite", ["bullseye", "trixie"])
def test_other_glibc(suite, tmp_path):
    """2.31, whose dlopen() is in libdl, and 2.41, whose cancellable calls share their code."""
    directory = libc_of(suite)
    with target(*EVERY, program=linked_with(directory, tmp_path / "program")) as t:
        assert os.path.realpath(directory / "libc.so.6") in t.proc("maps")
        said = inject(t.pid, times=20)
        assert [s.err for s in said] == [0] * 20, said
        unharmed(t)


def test_as_argument_of_the_linker():
    """The program is the dynamic linker then, and names none."""
    linker = "/lib64/ld-linux-x86-64.so.2"
    process = subprocess.run([linker, "--version"], stdout=subprocess.PIPE, check=True)
    assert process.stdout
    with target("poll", "regs", wrapper=[linker]) as t:
        assert inject(t.pid).err == 0
        unharmed(t)
