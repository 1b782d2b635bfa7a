# SPDX-License-Identifier: BSD-2-Clause
"""A process that is injected into, what the injector says, and what is left behind."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

from gbpf import BUILD, run

BIN = BUILD / "tests/integration"
TARGET, RUN, PAYLOAD = BIN / "inject_target", BIN / "inject_run", BIN / "inject_payload.so"
# Calls that a stop at the wrong moment cuts short, one way or another.
WAITS = ("epoll", "recv", "sigtimedwait", "poll", "select", "nanosleep", "futex", "cond", "read",
         "write")
TIMED = 1 << signal.SIGUSR2 - 1  # not held back while sigtimedwait() waits for it
LINE = re.compile(r"err=(-?\d+) returned=(-?\d+) stopped=(\d+) longest=(\d+)"
                  r"(?: pid=(\d+) tid=(\d+) runs=(\d+))? left=(\d+) why=(.*)")


class Said:
    """A line of inject_run."""

    def __init__(self, line):
        match = LINE.fullmatch(line)
        assert match, line
        numbers = [int(n) if n else None for n in match.groups()[:-1]]
        self.err, self.returned, self.stopped, self.longest = numbers[:4]
        self.pid, self.tid, self.runs, self.left = numbers[4:]
        self.why = match[9]

    def __repr__(self):
        return f"err={self.err} stopped={self.stopped} why={self.why}"


def start_inject(pid, name, entry="entry", limit_ms=20000, times=1, library=PAYLOAD):
    return subprocess.Popen(
        [RUN, str(pid), library, name, entry, str(limit_ms), str(times)],
        stdout=subprocess.PIPE, text=True)


def inject(pid, name="lib.so", **options):
    """What is said of each injection; of one, that alone."""
    injector = start_inject(pid, name, **options)
    lines = injector.communicate(timeout=150)[0].splitlines()
    assert lines, f"inject_run: {injector.returncode}"
    said = [Said(line) for line in lines]
    return said if options.get("times") else said[0]


class Target:
    """inject_target, or another command around it."""

    def __init__(self, process, pid):
        self.process, self.pid = process, pid

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.pid}/{name}").read_text()

    def threads(self, key):
        """The values of a line of status, one a thread."""
        values = []
        for task in os.listdir(f"/proc/{self.pid}/task"):
            text = self.proc(f"task/{task}/status")
            values.append(re.search(rf"^{key}:\s+(.*)$", text, re.MULTILINE)[1])
        return values

    def state(self, said=()):
        """What must be as before. Without a CPU for 70 ms gbpf leaves its memory, and says so."""
        return (sorted(os.listdir(f"/proc/{self.pid}/fd")),
                [int(mask, 16) & ~TIMED for mask in self.threads("SigBlk")],
                self.threads("TracerPid"), self.anonymous_code() - sum(s.left for s in said))

    def anonymous_code(self):
        return len(re.findall(r"^\S+ ..x. \S+ 00:00 0\s*$", self.proc("maps"), re.MULTILINE))

    def finish(self):
        """Ends it: rounds of each kind, and what it had to complain."""
        out, complaints = self.process.communicate(timeout=60)
        rounds = {line.split()[0]: int(line.split()[1]) for line in out.splitlines()
                  if line.count(" ") == 2}
        return rounds, complaints, self.process.returncode


@contextlib.contextmanager
def target(*kinds, wrapper=(), program=TARGET, **options):
    process = subprocess.Popen(
        [*map(str, wrapper), str(program), *kinds], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        yield Target(process, innermost(process.pid))
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate()


def innermost(pid):
    """The last one of a chain of children: wrappers have one each."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return innermost(children[0]) if children else pid


def unharmed(t):
    rounds, complaints, status = t.finish()
    assert complaints == "" and status == 0, (status, complaints[-2000:])
    assert rounds and all(rounds.values()), rounds


def compiled(directory, source, *flags):
    path = directory / "program"
    (directory / "program.c").write_text(source)
    done = run("gcc", *flags, "-o", path, directory / "program.c")
    assert done.returncode == 0, done.stderr
    return path
