# SPDX-License-Identifier: BSD-2-Clause
"""What the verifier says of the programs as gbpf loads them."""
import re

import pytest

from gbpf import BUILD, ROOT, run

DUMP_STACKS = BUILD / "tests/integration/dump_stacks"
PRIVATE_STACK = 64  # kernels from 6.13 give a function of that size a stack of its own, a CPU's
ROUNDED_TO = 16

pytestmark = pytest.mark.root


def depths(text):
    """{program: [bytes of its own stack, of each function it calls]}"""
    found = {}
    for line in text.splitlines():
        name, numbers = line.split("\t")
        found[name] = [int(n) for n in numbers.split("+")]
    return found


def sources(kinds="uprobe|uretprobe|raw_tp"):
    pattern = re.compile(rf'^SEC\("(?:{kinds})[^"]*"\)\nint (\w+)\(', re.MULTILINE)
    benchmarks = {"bench.bpf.c"}
    return {n for f in (ROOT / "bpf").iterdir() if f.name not in benchmarks
            for n in pattern.findall(f.read_text())}


def test_no_program_gets_a_private_stack():
    """
    Two hits on one CPU would share it, because uprobes can be preempted. A program on a raw
    tracepoint may have one: the kernel counts who is in it, CPU by CPU, and leaves a second hit
    out (prog->active in kernel/trace/bpf_trace.c).
    """
    done = run(DUMP_STACKS)
    assert done.returncode == 0, done.stderr
    found = depths(done.stdout)
    assert found.keys() == sources()
    for name in sources("uprobe|uretprobe"):
        numbers = found[name]
        rounded = [-(-n // ROUNDED_TO) * ROUNDED_TO for n in numbers]
        assert all(n < PRIVATE_STACK for n in rounded), (name, numbers)
