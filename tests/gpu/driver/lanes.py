# SPDX-License-Identifier: BSD-2-Clause
"""Several jobs that are measured at once, none of which sees what is done to another.

A step drifts by some percent from one second to the next, and no less from one tenth to the
next: only many comparisons of neighbours help, and lanes make more of them in the same time.
The kernel puts a probe into every process that maps the probed file, so each lane's jobs have a
copy of the driver library of their own.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time

from check import JOBS
from jobs import Job, Trouble, die_with_parent, end

WHERE_IS = ("import ctypes; ctypes.CDLL('libcuda.so.1'); "
            "print(next(l.split(None, 5)[5].strip() for l in open('/proc/self/maps') "
            "if '/libcuda.so' in l))")


def driver_library(check):
    status, path = check.run(sys.executable, "-c", WHERE_IS, env=check.setting.env())
    if status != 0:
        raise Trouble(f"where libcuda.so.1 is: {path[-500:]}")
    return path.strip()


def own_library(check, path, name):
    """A directory with a copy of the driver library that no other process maps."""
    directory = check.setting.directory(f"{check.name}-lib-{name}")
    os.makedirs(directory)
    shutil.copyfile(path, os.path.join(directory, "libcuda.so.1"))
    os.chmod(os.path.join(directory, "libcuda.so.1"), 0o755)
    return directory


class Nursery:
    """Starts jobs by fork from a process that has all its modules, but no CUDA, already."""

    def __init__(self, check, library, name):
        self.check = check
        self.name = name
        self.count = 0
        command = [sys.executable, os.path.join(JOBS, "nursery.py")]
        if check.setting.simulated:
            command.append("--simulated")
        self.process = check.own(subprocess.Popen(
            command, env=check.setting.env(library), stdin=subprocess.PIPE,
            preexec_fn=die_with_parent(9)))

    def start(self, mode):
        self.count += 1
        job = Job(self.check.setting.directory(f"{self.check.name}-{self.name}-{self.count}"))
        self.process.stdin.write(f"{mode} {job.directory}\n".encode())
        self.process.stdin.flush()
        return job

    def close(self):
        self.process.stdin.close()
        end(self.process)


def prepare(count, make):
    """A check's prepare(): check.lanes gets make(check, library, name) for each lane.

    Fewer of them where they would not have CPUs enough: a job, what is done to it, the next job.
    """
    count = max(1, min(count, os.cpu_count() // 3))

    def run(check):
        path = driver_library(check)
        check.lanes = [make(check, own_library(check, path, str(i)), str(i))
                       for i in range(count)]
    return run


def together(check, work, *arguments):
    """work(lane, …) for each lane at once; what each returned."""
    with concurrent.futures.ThreadPoolExecutor(len(check.lanes)) as pool:
        return [f.result() for f in [pool.submit(work, lane, *arguments)
                                     for lane in check.lanes]]


def span(seconds):
    begin = time.monotonic_ns()
    time.sleep(seconds)
    return begin, time.monotonic_ns()
