# SPDX-License-Identifier: BSD-2-Clause
"""More jobs whose trouble is known, for the diagnosis."""
import threading
import time

import torch

from torch_base import Matmul, TorchJob, Train

SIZE = 4096


class BigGraph(TorchJob):
    """A graph of large products: one launch a step, and a GPU that never rests."""

    def prepare(self):
        self.a = torch.randn(SIZE, SIZE, device="cuda")
        self.c = torch.zeros(SIZE, SIZE, device="cuda")
        torch.mm(self.a, self.a, out=self.c)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(3):
                torch.mm(self.a, self.a, out=self.c)

    def queue(self):
        self.graph.replay()

    def output(self):
        return [self.c]


class Pinned(Matmul):
    """Its input comes from pinned memory, 64 MiB a step, and takes longer than the work."""

    def __init__(self):
        super().__init__(512)

    def prepare(self):
        super().prepare()
        self.host = torch.randn(SIZE, SIZE).pin_memory()
        self.there = torch.empty(SIZE, SIZE, device="cuda")

    def queue(self):
        self.there.copy_(self.host, non_blocking=True)
        super().queue()


class Prefetch(Pinned):
    """The same copies on a stream of their own, beside large products."""

    def prepare(self):
        super().prepare()
        self.big = torch.randn(SIZE, SIZE, device="cuda")
        self.side = torch.cuda.Stream()

    def queue(self):
        with torch.cuda.stream(self.side):
            self.there.copy_(self.host, non_blocking=True)
        for _ in range(2):
            self.c = self.big @ self.big


class Decode(TorchJob):
    """Matrix times vector, 24 times: the GPU waits for its own memory."""

    def prepare(self):
        self.weights = [torch.randn(2 * SIZE, 2 * SIZE, device="cuda") for _ in range(4)]
        self.x = torch.randn(1, 2 * SIZE, device="cuda")
        self.y = self.x

    def queue(self):
        self.y = self.x
        for i in range(24):
            self.y = torch.mm(self.y, self.weights[i % 4])
        self.y = self.y / self.y.norm()

    def output(self):
        return [self.y]


class Convolutions(TorchJob):
    """Large images through a small network."""

    def prepare(self):
        layers = []
        for before, after in ((3, 64), (64, 64), (64, 128)):
            layers += [torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers).cuda().eval()
        self.x = torch.randn(16, 3, 224, 224, device="cuda")
        self.y = None

    def queue(self):
        with torch.no_grad():
            self.y = self.model(self.x)

    def output(self):
        return [self.y]


class EmptyCache(Matmul):
    """Gives its memory back to the driver in every step, and asks for it again."""

    def __init__(self):
        super().__init__(1024)

    def queue(self):
        big = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")  # a segment of its own
        del big
        torch.cuda.empty_cache()
        super().queue()


class Polls(Matmul):
    """Asks again and again whether a large product has ended."""

    def __init__(self):
        super().__init__(SIZE)

    def step(self, clock):
        self.queue()
        done = torch.cuda.Event()
        done.record()
        clock.wait(lambda: self.poll(done))

    @staticmethod
    def poll(event):
        while not event.query():
            pass


class Locked(Matmul):
    """Each step waits for another thread of the process, which does other things."""

    def __init__(self):
        super().__init__(1024)

    def prepare(self):
        super().prepare()
        self.asked, self.given = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self.other, daemon=True).start()

    def other(self):
        while True:
            self.asked.acquire()
            time.sleep(0.004)
            self.given.release()

    def queue(self):
        self.asked.release()
        self.given.acquire()
        super().queue()


class Threads(Matmul):
    """Four threads launch at the same time, each to a stream of its own."""

    def __init__(self):
        super().__init__(256)

    def prepare(self):
        super().prepare()
        self.begin, self.done = threading.Barrier(5), threading.Barrier(5)
        for _ in range(4):
            threading.Thread(target=self.other, daemon=True).start()

    def other(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            a, b = (torch.randn(256, 256, device="cuda") for _ in "ab")
            while True:
                self.begin.wait()
                for _ in range(10):
                    a @ b
                self.done.wait()

    def queue(self):
        self.begin.wait()
        super().queue()
        self.done.wait()


class Accumulates(Train):
    """Four backward passes, then one step of the optimizer."""

    def queue(self):
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(4):
            self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()


class Alternates(Train):
    """Every second step is a longer one."""

    def prepare(self):
        super().prepare()
        self.long = False

    def queue(self):
        super().queue()
        self.long = not self.long
        if self.long:
            with torch.no_grad():
                for _ in range(12):
                    self.model(self.x)


class BigTrain(Train):
    """The same training with layers that keep the GPU busy; autograd's thread launches, too."""

    def prepare(self):
        layers = []
        for _ in range(4):
            layers += [torch.nn.Linear(SIZE, SIZE), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.x = torch.randn(2048, SIZE, device="cuda")
        self.y = torch.randn(2048, SIZE, device="cuda")
        self.loss = torch.nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def output(self):
        return list(self.model.parameters())[:2]


class HalfIdle(Matmul):
    """A large product, then three milliseconds of something else."""

    def __init__(self):
        super().__init__(SIZE)

    def step(self, clock):
        super().step(clock)
        time.sleep(0.003)


class SyncEach(Matmul):
    """Waits after each of ten products, though nobody looks at them."""

    def __init__(self):
        super().__init__(2048)

    def queue(self):
        for _ in range(10):
            self.c = self.a @ self.b
            torch.cuda.synchronize()


class Spins(Matmul):
    """Computes in Python for two milliseconds between small products."""

    def __init__(self):
        super().__init__(1024)

    def queue(self):
        until = time.monotonic_ns() + 2_000_000
        while time.monotonic_ns() < until:
            pass
        super().queue()


MODES = {
    "big-graph": BigGraph, "pinned": Pinned, "prefetch": Prefetch, "decode": Decode,
    "conv": Convolutions, "empty-cache": EmptyCache, "polls": Polls, "locked": Locked,
    "threads": Threads, "accumulates": Accumulates, "alternates": Alternates, "big-train": BigTrain,
    "half-idle": HalfIdle, "sync-each": SyncEach, "spins": Spins,
    "neighbour": lambda: Matmul(2048),
}
