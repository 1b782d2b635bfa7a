# SPDX-License-Identifier: BSD-2-Clause
"""Each fuzzer gets the same few thousand inputs every time; longer in check-long."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = [p.stem.removeprefix("fuzz_") for p in sorted((ROOT / "tests/fuzz").glob("fuzz_*.c"))]


def fuzz(build, target, **kwargs):
    done = subprocess.run(
        ["make", "--no-print-directory", f"BUILD={build}", target],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False, **kwargs,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert "number_of_executed_units" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_smoke(build, name):
    fuzz(build, f"fuzz-smoke-{name}")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_long(build, name):
    fuzz(build, f"fuzz-long-{name}")
