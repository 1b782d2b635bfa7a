# SPDX-License-Identifier: BSD-2-Clause
"""Tries the harness where there is no GPU: its files, its arithmetic, and all of it at work on
the simulated CUDA."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import plan

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, what, ok, detail=""):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {what}{': ' + detail if detail and not ok else ''}",
              flush=True)

    def skip(self, what, why):
        self.skipped += 1
        print(f"skip {what}: {why}", flush=True)


def run(*command, seconds=300):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def sources(tally):
    for folder in ("driver", "jobs"):
        base = os.path.join(TOP, folder)
        for name in sorted(os.listdir(base)):
            if not name.endswith(".py"):
                continue
            path = os.path.join(base, name)
            try:
                with open(path, encoding="utf-8") as f:
                    compile(f.read(), path, "exec")
                tally.add(f"{folder}/{name} compiles", True)
            except SyntaxError as error:
                tally.add(f"{folder}/{name} compiles", False, str(error))
    if shutil.which("shellcheck"):
        status, text = run("shellcheck", os.path.join(TOP, "run.sh"))
        tally.add("shellcheck run.sh", status == 0, text)
    else:
        tally.skip("shellcheck run.sh", "no shellcheck")


def units(tally):
    suite = unittest.defaultTestLoader.discover(HERE, "test_*.py")
    done = unittest.TextTestRunner(verbosity=1).run(suite)
    bad = len(done.failures) + len(done.errors)
    tally.passed += done.testsRun - bad - len(done.skipped)
    tally.failed += bad
    tally.skipped += len(done.skipped)


def programs(tally, scratch):
    nvcc = plan.find_nvcc()
    for variant, flags in plan.VARIANTS.items():
        what = f"nvcc builds launches-{variant}"
        if not nvcc:
            tally.skip(what, "no nvcc")
            continue
        status, text = run(nvcc, "-std=c++17", "-O2", "-arch=sm_90", *flags, "-Xcompiler",
                           "-Wall,-Wextra,-Werror,-pthread", os.path.join(TOP, "jobs/launches.cu"),
                           "-o", os.path.join(scratch, variant))
        tally.add(what, status == 0, text)


def dry_run(tally, gbpf, scratch):
    """Every check but the one that takes long, on the stand-ins beside the binary."""
    libraries = os.path.join(os.path.dirname(os.path.abspath(gbpf)), "sim", "lib")
    if os.geteuid() or not os.path.exists(gbpf) \
            or not os.path.exists(os.path.join(libraries, "libcuda.so.1")):
        tally.skip("dry run", f"needs root, {gbpf} and {libraries} (make all sim)")
        return
    out = os.path.join(scratch, "out")
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "main.py"), "--gbpf", gbpf, "--simulated", libraries,
         "--out", out, "--minutes", "5", "--skip", "rung-single"],
        stdin=subprocess.DEVNULL, check=False, timeout=400)
    tally.add("dry run on the simulated CUDA", done.returncode == 0,
              f"exit status {done.returncode}")
    tally.add("files for the results", sorted(os.listdir(out)) == ["report.md", "results.json"],
              str(os.listdir(out)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gbpf", required=True)
    args = parser.parse_args()
    tally = Tally()
    sources(tally)
    units(tally)
    with tempfile.TemporaryDirectory(prefix="gbpf-gpu-self-") as scratch:
        programs(tally, scratch)
        dry_run(tally, args.gbpf, scratch)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
