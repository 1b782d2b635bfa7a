# SPDX-License-Identifier: BSD-2-Clause
"""Runs the checks of plan.py one after another, each on its own and within its time."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

import results
from check import Check, Setting, Skip
from plan import PLAN

KEEP_FILES = 4          # recordings of failed checks that are kept beside the results
KEEP_BYTES = 12 << 20
BUILT = ("command", "cost", "kill", "empty", "gpu-cuda", "gpu-command", "gpu-left", "left-why",
         "monitor-empty")
RESERVE_S = 20          # what writing down and cleaning up may take


class TimeUp(BaseException):
    """The check took too long. Not an Exception, so that nobody mistakes it for his own."""


class Timer:
    """with Timer(seconds): TimeUp is raised inside, and never after."""

    def __init__(self, seconds):
        self.seconds = max(1.0, seconds)
        self.on = False

    def alarm(self, *_):
        if self.on:
            raise TimeUp()

    def __enter__(self):
        self.on = True
        signal.signal(signal.SIGALRM, self.alarm)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        self.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def terminate(*_):
    sys.exit("told to end")


def guarded(check, step, seconds):
    """One step of a check; whatever happens is a result, and never the end of the others."""
    try:
        with Timer(seconds):
            step(check)
    except Skip as why:
        check.skipped = str(why)
    except TimeUp:
        check.expect("ends in time", False, f"given up after {seconds:.0f} s")
    except Exception as error:  # pylint: disable=broad-except
        check.expect("runs to its end", False, f"{type(error).__name__}: {error}")
        traceback.print_exc(file=sys.stdout)


def keep_recordings(check, out):
    for r in check.recordings:
        kept = [n for n in os.listdir(out) if n.endswith(".gbpf")]
        for path in (r.path, r.path + ".part"):
            if len(kept) < KEEP_FILES and os.path.exists(path) \
                    and os.path.getsize(path) < KEEP_BYTES:
                shutil.copyfile(path, os.path.join(out, f"{check.name}.gbpf"))
                return


def close(check, out):
    try:
        with Timer(40):
            check.close()
    except TimeUp:
        print(f"  note {check.name}: cleaning up took too long", flush=True)
    if check.failed():
        print(check.trails(), flush=True)
        keep_recordings(check, out)
    for r in check.recordings:
        for path in (r.path, r.path + ".part"):
            if os.path.exists(path):
                os.unlink(path)


class Runner:
    def __init__(self, setting, entries, where):
        self.setting = setting
        self.entries = entries
        self.where = where
        self.done = []
        self.prepared = {}

    def prepare(self, entry):
        """Its jobs start now; loading PyTorch takes longer than many a check."""
        if entry.name not in self.prepared:
            check = Check(entry.name, self.setting)
            self.prepared[entry.name] = check
            guarded(check, entry.prepare, 30)
        return self.prepared[entry.name]

    def ahead(self, index):
        following = self.entries[index + 1:index + 2]
        # What is built only now cannot be started yet; what is quiet has the machine alone.
        if following and not self.entries[index].quiet and self.entries[index].name != "build":
            self.prepare(following[0])

    def one(self, index):
        entry = self.entries[index]
        check = self.prepare(entry)
        print(f"\n=== {entry.name}: {entry.about} ({self.setting.left():.0f} s left)", flush=True)
        begin = time.monotonic()
        if check.skipped is None and not check.failed():
            self.ahead(index)
            guarded(check, entry.run, min(entry.limit, self.setting.left()))
        close(check, self.setting.out)
        check.seconds = time.monotonic() - begin
        return check

    def step(self, index):
        entry = self.entries[index]
        if self.setting.left() >= RESERVE_S:
            return self.one(index)
        check = self.prepared.get(entry.name) or Check(entry.name, self.setting)
        check.skipped = "no time left"
        check.close()
        return check

    def run(self):
        try:
            for index in range(len(self.entries)):
                self.done.append(self.step(index))
                results.write(self.setting.out, self.where, self.done)
        except SystemExit as why:
            print(f"ended early: {why}", flush=True)
            for entry in self.entries[len(self.done):]:
                check = Check(entry.name, self.setting)
                check.skipped = str(why)
                self.done.append(check)
            results.write(self.setting.out, self.where, self.done)
        finally:
            for check in self.prepared.values():
                check.close()


def parse():
    names = [e.name for e in PLAN]
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("--only", metavar="NAME,…", help="only these checks")
    parser.add_argument("--skip", metavar="NAME,…", default="", help="all but these checks")
    parser.add_argument("--list", action="store_true", help="name the checks and end")
    parser.add_argument("--out", default="gpu-results", help="directory for the results")
    parser.add_argument("--minutes", type=float, default=9.0, help="what it may take in all")
    parser.add_argument("--gbpf", required=True, help="the binary under test")
    parser.add_argument("--command", default=" ".join(sys.argv),
                        help="what the results say was run")
    parser.add_argument("--simulated", metavar="DIR",
                        help="stand-in libraries to use instead of a GPU")
    args = parser.parse_args()
    chosen = args.only.split(",") if args.only else names
    skipped = args.skip.split(",") if args.skip else []
    unknown = [n for n in chosen + skipped if n not in names]
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; --list names them")
    if any(n.startswith(("cuda-", "rung-", "api-")) or n in BUILT for n in chosen):
        chosen.append("build")
    entries = [e for e in PLAN if e.name in chosen and e.name not in skipped]
    if args.simulated:
        entries = [e for e in entries if e.name != "build"]
    return args, entries


def main():
    begin = time.monotonic()
    args, entries = parse()
    if args.list:
        for e in PLAN:
            print(f"{e.name:20} {e.about}")
        return 0
    signal.signal(signal.SIGTERM, terminate)
    out = os.path.abspath(args.out)
    os.makedirs(out, exist_ok=True)
    gbpf = os.path.abspath(args.gbpf)
    where = results.machine(gbpf, args.command, args.simulated)
    print("\n".join(f"{k}: {v}" for k, v in where.items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="gbpf-gpu-") as scratch:
        setting = Setting(gbpf, scratch, out, args.simulated, begin + args.minutes * 60)
        runner = Runner(setting, entries, where)
        runner.run()
    print(results.markdown(where, runner.done))
    passed, failed, skipped = results.count(runner.done)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
