# SPDX-License-Identifier: BSD-2-Clause
"""PyTorch at work: torch_job.py --mode MODE --dir DIR (see gate.py)."""
import argparse
import os
import sys
import time

import torch

import gate
import torch_scenarios
from torch_base import Matmul, TorchJob, Train


class Graph(TorchJob):
    def prepare(self):
        self.a = torch.randn(256, 256, device="cuda")
        self.b = torch.randn(256, 256, device="cuda")
        self.c = torch.zeros(256, 256, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.work()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.work()

    def work(self):
        for _ in range(5):
            self.c.copy_((self.a @ self.b) + self.c * 0.5)

    def queue(self):
        self.graph.replay()

    def output(self):
        return [self.c]


class Triton(TorchJob):
    COUNT, BLOCK = 100_000, 1024

    def prepare(self):
        from triton_kernels import gbpf_triton_add, gbpf_triton_scale
        self.add, self.scale = gbpf_triton_add, gbpf_triton_scale
        self.x = torch.randn(self.COUNT, device="cuda")
        self.y = torch.zeros(self.COUNT, device="cuda")
        self.blocks = (self.COUNT + self.BLOCK - 1) // self.BLOCK

    def queue(self):
        self.add[(self.blocks,)](self.x, self.y, self.COUNT, BLOCK=self.BLOCK, num_warps=4)
        self.scale[(self.blocks, 1, 1)](self.y, self.COUNT, BLOCK=self.BLOCK, num_warps=8)

    def expected(self, steps):
        return [
            {"kernel": "gbpf_triton_add", "grid": [self.blocks, 1, 1], "block": [128, 1, 1],
             "calls": steps},
            {"kernel": "gbpf_triton_scale", "grid": [self.blocks, 1, 1], "block": [256, 1, 1],
             "calls": steps},
        ]

    def output(self):
        return [self.y]


class Queue(Matmul):
    """Launches far ahead of the GPU; waits once in a hundred products."""

    def __init__(self):
        super().__init__(2048)

    def queue(self):
        for _ in range(100):
            self.c = self.a @ self.b


class Separate(Matmul):
    """A product and its bias as two operators."""

    def __init__(self):
        super().__init__(512)

    def queue(self):
        for _ in range(20):
            self.c = torch.mm(self.a, self.b) + self.bias


class Fused(Separate):
    """The same as one."""

    def queue(self):
        for _ in range(20):
            self.c = torch.addmm(self.bias, self.a, self.b)


class Pageable(Matmul):
    """Its input comes from pageable memory, in every step."""

    def __init__(self):
        super().__init__(1024)

    def prepare(self):
        super().prepare()
        self.host = torch.randn(4096, 4096)
        self.there = torch.empty(4096, 4096, device="cuda")

    def queue(self):
        self.there.copy_(self.host, non_blocking=True)
        super().queue()


class Streams(Matmul):
    """Two streams that keep the GPU busy at the same time."""

    def __init__(self):
        super().__init__(512)

    def prepare(self):
        super().prepare()
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.outputs = [None, None]

    def queue(self):
        for _ in range(20):
            for i, stream in enumerate(self.streams):
                with torch.cuda.stream(stream):
                    self.outputs[i] = self.a @ self.b

    def output(self):
        return self.outputs


class Items(Train):
    """Reads a number back after every layer."""

    def queue(self):
        x = self.x
        for layer in self.model:
            x = layer(x)
            if x.sum().item() != x.sum().item():
                raise ArithmeticError("not a number")


class Loader(Matmul):
    """Waits for its next batch."""

    def __init__(self):
        super().__init__(1024)

    def queue(self):
        time.sleep(0.003)
        super().queue()


class Ranked(Train):
    """Data parallel, one rank of RANK, WORLD_SIZE; gradients are summed one by one by NCCL."""

    def prepare(self):
        torch.cuda.set_device(int(os.environ["RANK"]))
        torch.distributed.init_process_group("nccl")
        super().prepare()
        for p in self.model.parameters():
            torch.distributed.broadcast(p.data, 0)

    def queue(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.x), self.y).backward()
        for p in self.model.parameters():
            torch.distributed.all_reduce(p.grad)
        self.optimizer.step()


class Compiled(Train):
    """The training step's forward and backward pass by torch.compile."""

    def prepare(self):
        super().prepare()
        self.model = torch.compile(self.model)


MODES = {
    "mm64": lambda: Matmul(64), "mm4096": lambda: Matmul(4096), "train": Train,
    "graph": Graph, "triton": Triton, "queue": Queue, "separate": Separate, "fused": Fused,
    "pageable": Pageable, "streams": Streams, "items": Items, "loader": Loader,
    "compiled": Compiled, "ranked": Ranked, **torch_scenarios.MODES,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=sorted(MODES), required=True)
    parser.add_argument("--dir", required=True)
    args = parser.parse_args()
    TorchJob.directory = args.dir
    return gate.serve(MODES[args.mode], args.dir)


if __name__ == "__main__":
    sys.exit(main())
