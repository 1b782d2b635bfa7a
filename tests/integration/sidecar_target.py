# SPDX-License-Identifier: BSD-2-Clause
"""sidecar_target: a program on the simulated CUDA that does what a test tells it."""
import os
import socket
import subprocess
import time

import pytest

from sidecar_loader import BEGAN, READY, Loader


class Target:
    def __init__(self, build, lib="lib", cupti="libcupti.so.13", late=False, **environment):
        self.build = build
        self.sim = build / "sim" / lib
        self.library = build / "libgbpf-cupti.so"
        self.cupti = self.sim / cupti if cupti else "-"
        self.log = environment.get("SIMCUPTI_LOG")
        self.theirs = []
        self.loaders = []
        program = build / "tests/integration/sidecar_target"
        assert program.exists(), "not built: make integration"
        self.process = subprocess.Popen(
            [program, self.sim, self.library, self.cupti] + ["late"] * late,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, **{k: str(v) for k, v in environment.items()}),
            pass_fds=self.sockets())
        for end in self.theirs:
            end.close()
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def sockets(self):
        """Eight connections that it may be told to serve."""
        for _ in range(8):
            ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.loaders.append(ours)
            self.theirs.append(its)
        self.numbers = [end.fileno() for end in self.theirs]
        return self.numbers

    def tell(self, *words):
        """Its answer, a number."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return int(line)

    def connection(self):
        """The loader's end, and the number of the target's."""
        return self.loaders.pop(0), self.numbers.pop(0)

    def attach(self, **how):
        """A loader whose sidecar has begun."""
        end, number = self.connection()
        loader = Loader(end, **how)
        assert self.tell("begin", number) == 0
        return loader

    def started(self, seconds=60.0, **hello):
        """A loader in the middle of a window."""
        loader = self.attach()
        answer = loader.hello(**hello)
        assert answer.type == READY, answer
        answer = loader.start(seconds)
        assert answer.type == BEGAN, answer
        return loader

    def calls(self):
        """What CUPTI was asked: (function, argument, result)."""
        lines = open(self.log, encoding="ascii").read().splitlines()
        return [(w[2], int(w[3]), int(w[4])) for w in map(str.split, lines)]

    def still_on(self):
        """Kinds of records that were switched on, and not off again."""
        on = set()
        for function, kind, result in self.calls():
            if function == "cuptiActivityEnable" and not result:
                on.add(kind)
            if function == "cuptiActivityDisable" and not result:
                on.discard(kind)
        return on

    def end(self):
        """It exits by itself, unharmed; what it wrote to stderr comes back."""
        out, err = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, (self.process.returncode, err)
        assert out == ""
        return err

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for end in self.loaders:
            end.close()


@pytest.fixture
def target(build, tmp_path):
    """Makes targets; what they asked of CUPTI is written down."""
    made = []

    def make(**how):
        how.setdefault("SIMCUPTI_LOG", str(tmp_path / "cupti.log"))
        made.append(Target(build, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


def left(t):
    """Waits until no thread of the sidecar's is there; in the middle of a message one has
    another name."""
    none, until = 0, time.monotonic() + 5
    while none < 2:
        assert time.monotonic() < until, "it stays"
        none = 0 if t.tell("threads") else none + 1
        time.sleep(0.005)
