# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others that read our files, from tools/install-deps, and how close is equal."""
import json
import os
import pathlib

import gbpf

PLACE = gbpf.BUILD / "python-readers"
SAME = {"rel": 0.001}  # with what gbpf reports
EXACT = {"rel": 1e-6, "abs": 0.002}  # us; with what was recorded: they count in doubles


def ask(script, *args, **env):
    """What a script beside this one writes, in a process that sees those programs."""
    done = gbpf.run("/usr/bin/python3", "-W", "ignore", pathlib.Path(__file__).with_name(script),
                    *args, env={**os.environ, "PYTHONPATH": str(PLACE), **env})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def united(spans):
    """Time that at least one of them covers."""
    total, end = 0, float("-inf")
    for a, b in sorted(spans):
        total += max(0, b - max(a, end))
        end = max(end, b)
    return total
