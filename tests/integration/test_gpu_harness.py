# SPDX-License-Identifier: BSD-2-Clause
"""What runs gbpf on a real GPU (tests/gpu) has arithmetic of its own, which needs none."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.parallel

DRIVER = pathlib.Path(__file__).parents[1] / "gpu" / "driver"


def test_its_own_tests():
    done = subprocess.run([sys.executable, "-m", "unittest", "test_driver"], cwd=DRIVER,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
    assert done.returncode == 0, done.stdout
    ran = re.search(r"^Ran (\d+) tests", done.stdout, re.MULTILINE)
    assert ran and int(ran[1]) >= 36 and done.stdout.rstrip().endswith("\nOK"), done.stdout
