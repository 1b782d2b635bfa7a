# SPDX-License-Identifier: BSD-2-Clause
"""What a job of these tests does when: orders come through a FIFO, answers go to a file.

DIR/cmd    FIFO, one order a line: steps K, free, rest, checksum, profile K, profile_once K,
           fork, cupti open LIB LIBCUPTI | on KINDS | off | reset HOW | finalize | leave MS |
           log FILE (cupti_alone.h), quit; refault (launches.cu only)
DIR/out    one JSON object a line, an answer to each order but rest and quit
DIR/steps  while free: pairs of int64, CLOCK_MONOTONIC ns at the step's end and its length

Between orders the job sleeps in select and makes no CUDA call, so a recording
that was begun and ended between orders holds the ordered steps and nothing else.
"""
import array
import ctypes
import json
import os
import select
import signal
import statistics
import sys
import time
import traceback

IDLE_S = 900


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


class Gate:
    def __init__(self, directory):
        self.directory = directory
        self.fifo = os.open(os.path.join(directory, "cmd"), os.O_RDWR)
        self.out = open(os.path.join(directory, "out"), "a", encoding="utf-8")
        self.buffered = b""

    def say(self, **fields):
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def pending(self, seconds=0.0):
        if b"\n" in self.buffered:
            return True
        return bool(select.select([self.fifo], [], [], seconds)[0])

    def order(self):
        """The next order's words; ["quit"] when nobody asks any more."""
        while b"\n" not in self.buffered:
            if not self.pending(IDLE_S):
                return ["quit"]
            self.buffered += os.read(self.fifo, 4096)
        line, self.buffered = self.buffered.split(b"\n", 1)
        return line.decode().split()


class Clock:
    """Adds up what the job itself sees its waiting calls take."""

    def __init__(self):
        self.ns = 0
        self.count = 0

    def wait(self, call):
        begin = time.monotonic_ns()
        call()
        self.ns += time.monotonic_ns() - begin
        self.count += 1


def run_steps(job, count):
    clock = Clock()
    lengths = []
    first = before = time.monotonic_ns()
    for _ in range(count):
        job.step(clock)
        now = time.monotonic_ns()
        lengths.append(now - before)
        before = now
    return {
        "say": "steps", "steps": count, "begin_ns": first, "end_ns": before,
        "sync_ns": clock.ns, "syncs": clock.count,
        "step_p50_ns": int(statistics.median(lengths)), "expected": job.expected(count),
    }


def run_free(job, gate):
    """Steps until the next order; "rest" is one that does nothing else."""
    clock = Clock()
    count = 0
    with open(os.path.join(gate.directory, "steps"), "ab") as f:
        times = array.array("q")
        flushed = before = time.monotonic_ns()
        while not gate.pending():
            job.step(clock)
            now = time.monotonic_ns()
            times.extend((now, now - before))
            before = now
            count += 1
            if now - flushed > 250_000_000:
                f.write(times.tobytes())
                f.flush()
                times = array.array("q")
                flushed = before = time.monotonic_ns()
        f.write(times.tobytes())
    return {"say": "free", "steps": count}


def forked():
    """The exit status of a child that is not exec'd, as a data loader's worker is."""
    child = os.fork()
    if not child:
        time.sleep(0.3)
        os._exit(11)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class CuptiAlone:
    """jobs/cupti_alone.c in this process; every call checked."""

    def __init__(self, library, libcupti):
        self.lib = ctypes.CDLL(library)
        self.check(self.lib.cupti_alone_open(libcupti.encode()))

    @staticmethod
    def check(result):
        if result:
            raise OSError(f"CUPTI says {result}")

    def on(self, kinds):
        """kinds by number; at the end "+", "f" or "k": how calls are told, in moments."""
        mask = sum(1 << int(k) for k in kinds.rstrip("+fk").split(","))
        calls = {"+": 1, "f": 2, "k": 3}.get(kinds[-1], 0)
        self.check(self.lib.cupti_alone_on(ctypes.c_uint64(mask), calls))

    def reset(self, how):
        self.check(self.lib.cupti_alone_reset(how.encode()))

    def log(self, path):
        self.check(self.lib.cupti_alone_log(path.encode()))

    def finalize(self):
        self.check(self.lib.cupti_alone_finalize())

    def leave(self, ms):
        self.check(self.lib.cupti_alone_leave(ctypes.c_uint(int(ms))))

    def off(self):
        self.check(self.lib.cupti_alone_off())


def ask_cupti(job, words):
    if words[0] == "open":
        job.cupti = CuptiAlone(*words[1:])
    else:
        getattr(job.cupti, words[0])(*words[1:])
    return {"say": "cupti", "now_ns": time.monotonic_ns()}


def answer(job, gate, words):
    if words[0] == "steps":
        run = getattr(job, "run_steps", lambda count: run_steps(job, count))
        return run(int(words[1]))
    if words[0] == "checksum":
        return {"say": "checksum", "checksum": job.checksum()}
    if words[0] == "profile":
        return {"say": "profile", "steps": int(words[1]), **job.profile(int(words[1]))}
    if words[0] == "profile_once":
        return {"say": "profile_once", "steps": int(words[1]), **job.profile_once(int(words[1]))}
    if words[0] == "fork":
        return {"say": "fork", "status": forked()}
    if words[0] == "cupti":
        return ask_cupti(job, words[1:])
    raise ValueError(f"unknown order {words}")


def serve(make_job, directory):
    """Makes the job, says so, and does as ordered. A failure is an answer, too."""
    die_with_parent()
    gate = Gate(directory)
    try:
        job = make_job()
        gate.say(say="ready", pid=os.getpid(), **job.about())
        while True:
            words = gate.order()
            if words[0] == "quit":
                return 0
            if words[0] == "rest":
                continue
            if words[0] == "free":
                gate.say(say="free begins")
                gate.say(**run_free(job, gate))
            else:
                gate.say(**answer(job, gate, words))
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stderr)
        gate.say(say="error", error=f"{type(error).__name__}: {error}"[:2000])
        return 1
