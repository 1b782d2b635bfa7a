# SPDX-License-Identifier: BSD-2-Clause
"""What all PyTorch jobs of these tests have in common, and the two that others are made of."""
import ctypes
import hashlib
import os
import statistics
import time

import torch

import gate
import profile_counts

WARM_UP = 30


def checksum_of(tensors):
    """Of the very bits; does without numpy."""
    digest = hashlib.sha256()
    for t in tensors:
        t = t.detach().cpu().contiguous()
        digest.update(ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()))
    return digest.hexdigest()


class TorchJob:
    """One step is queue() and a wait for all of it; kinds add prepare, queue and output."""

    directory = "."  # where the profiler's file is left

    def __init__(self):
        torch.manual_seed(7)
        torch.set_num_threads(1)
        self.prepare()
        idle = gate.Clock()
        self.warm_up = []
        for _ in range(WARM_UP):
            begin = time.monotonic_ns()
            self.step(idle)
            self.warm_up.append(time.monotonic_ns() - begin)

    def step(self, clock):
        self.queue()
        clock.wait(torch.cuda.synchronize)

    def about(self):
        return {"torch": torch.__version__, "device": torch.cuda.get_device_name(0),
                "first_step_ns": self.warm_up[0],
                "warm_step_ns": int(statistics.median(self.warm_up[WARM_UP // 2:]))}

    def expected(self, steps):
        """Known by construction, beside what the profiler counts."""
        return []

    def checksum(self):
        return checksum_of(self.output())

    def profile(self, steps):
        self.profiled(1)  # the first session in a process may miss records
        return self.profiled(steps)

    def profile_once(self, steps):
        return self.profiled(steps)

    def profiled(self, steps):
        idle = gate.Clock()
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        lengths = []
        with torch.profiler.profile(activities=kinds) as p:
            for _ in range(steps):
                begin = time.monotonic_ns()
                self.step(idle)
                lengths.append(time.monotonic_ns() - begin)
        path = os.path.join(self.directory, "profile.json")
        if os.path.exists(path):
            os.unlink(path)
        p.export_chrome_trace(path)
        table = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=8,
                                       max_name_column_width=48)
        with open(os.path.join(self.directory, "table.txt"), "w", encoding="utf-8") as f:
            f.write(table)
        return {"step_p50_ns": int(statistics.median(lengths)), "all_ns": sum(lengths),
                **profile_counts.read(path)}


class Matmul(TorchJob):
    def __init__(self, size):
        self.size = size
        super().__init__()

    def prepare(self):
        self.a = torch.randn(self.size, self.size, device="cuda")
        self.b = torch.randn(self.size, self.size, device="cuda")
        self.bias = torch.randn(self.size, device="cuda")
        self.c = None

    def queue(self):
        self.c = (self.a @ self.b) + self.bias

    def output(self):
        return [self.c]


class Train(TorchJob):
    """Eight layers of 256, batch 64: the CPU is what limits it."""

    def prepare(self):
        layers = []
        for _ in range(8):
            layers += [torch.nn.Linear(256, 256), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.x = torch.randn(64, 256, device="cuda")
        self.y = torch.randn(64, 256, device="cuda")
        self.loss = torch.nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def queue(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()

    def output(self):
        return list(self.model.parameters())
