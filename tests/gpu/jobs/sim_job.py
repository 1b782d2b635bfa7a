# SPDX-License-Identifier: BSD-2-Clause
"""The orders of gate.py on the simulated CUDA: what the harness is tried on without a GPU.

sim_job.py --mode NAME --dir DIR | --auto K [--threads N], with the stand-in
libcuda.so.1 of tests/sim in LD_LIBRARY_PATH.
"""
import argparse
import collections
import ctypes
import json
import statistics
import sys
import threading
import time

import gate

MAGIC = 0x314741494D4953
FREE_LAUNCHES = 200


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("duration_ns", ctypes.c_uint64)]


class Image(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("kernels", ctypes.POINTER(Kernel))]


class Driver:
    """libcuda, every call checked."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.enter()

    def enter(self):
        self("cuCtxSetCurrent", self.context)

    def __call__(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def functions(self, kernels):
        table = (Kernel * len(kernels))(*(Kernel(n.encode(), ns) for n, ns in kernels))
        image = Image(MAGIC, len(kernels), table)
        module = ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), ctypes.byref(image))
        found = []
        for name, _ in kernels:
            f = ctypes.c_void_p()
            self("cuModuleGetFunction", ctypes.byref(f), module, name.encode())
            found.append(f)
        return found

    def memory(self, size):
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address


def matmul(ns):
    return [("sim_gemm_kernel", ns, (4, 4, 1), (128, 1, 1), 4096),
            ("_ZN2at6native15elementwise_addILi4EEEvifPf", 4000, (16, 1, 1), (64, 1, 1), 0)]


def train():
    work = [(f"_ZN3sim11train_layerILi{i}EEEvPfi", 3000, (2, 1, 1), (256, 1, 1), 0)
            for i in range(8)]
    return work * 10


def triton():
    return [("gbpf_triton_add", 2000, (98, 1, 1), (128, 1, 1), 0),
            ("gbpf_triton_scale", 2000, (98, 1, 1), (256, 1, 1), 0)]


WORK = {
    "mm64": lambda t: matmul(2000), "mm4096": lambda t: matmul(2_700_000),
    "train": lambda t: train(), "graph": lambda t: matmul(2000), "triton": lambda t: triton(),
    "cuda": lambda t: [
        ("gbpf_empty", 1000, (1 + t, 1, 1), (32, 1, 1), 0),
        ("_Z8gbpf_addPjj", 2000, (4 + t, 2, 3), (32, 4, 2), 1024),
        ("_Z10gbpf_scaleIiEvPT_S0_i", 2000, (7 + t, 1, 1), (64, 1, 1), 0),
        ("_Z9gbpf_spinx", 2_000_000, (1 + t, 1, 1), (1, 1, 1), 0)],
}
DEMANGLED = {
    "_ZN2at6native15elementwise_addILi4EEEvifPf":
        "void at::native::elementwise_add<4>(int, float, float*)",
    "_Z8gbpf_addPjj": "gbpf_add(unsigned int*, unsigned int)",
    "_Z10gbpf_scaleIiEvPT_S0_i": "void gbpf_scale<int>(int*, int, int)",
    "_Z9gbpf_spinx": "gbpf_spin(long long)",
    **{f"_ZN3sim11train_layerILi{i}EEEvPfi": f"void sim::train_layer<{i}>(float*, int)"
       for i in range(8)},
}


def plain(name):
    return DEMANGLED.get(name, name)


class Lane:
    """One thread's stream, memory and launches."""

    def __init__(self, driver, mode, index):
        self.driver = driver
        self.work = WORK.get(mode, WORK["mm64"])(index)
        self.stream = ctypes.c_void_p()
        driver("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.memory = driver.memory(4096)
        self.host = ctypes.create_string_buffer(4096)
        driver("cuMemsetD8_v2", self.memory, 0, ctypes.c_size_t(4096))
        names = sorted({(w[0], w[1]) for w in self.work})
        self.functions = dict(zip(names, driver.functions(names)))
        self.params = (ctypes.c_void_p * 2)(
            ctypes.cast(ctypes.pointer(self.memory), ctypes.c_void_p), None)

    def launch(self, work):
        name, ns, grid, block, smem = work
        self.driver("cuLaunchKernel", self.functions[(name, ns)], *grid, *block, smem,
                    self.stream, self.params, None)

    def wait(self):
        self.driver("cuStreamSynchronize", self.stream)


class SimJob:
    def __init__(self, mode, threads):
        self.mode = mode
        self.driver = Driver()
        self.lanes = [Lane(self.driver, mode, i) for i in range(threads)]
        self.scratch = self.driver.memory(4096)
        self.graph = ctypes.c_void_p()
        if mode == "graph":
            self.capture()

    def capture(self):
        lane, graph = self.lanes[0], ctypes.c_void_p()
        self.driver("cuStreamBeginCapture_v2", lane.stream, 0)
        for work in lane.work:
            lane.launch(work)
        self.driver("cuStreamEndCapture", lane.stream, ctypes.byref(graph))
        self.driver("cuGraphInstantiateWithFlags", ctypes.byref(self.graph), graph,
                    ctypes.c_ulonglong(0))

    def about(self):
        return {"torch": "simulated", "device": "simulated"}

    def lane_step(self, lane, clock):
        if self.graph:
            self.driver("cuGraphLaunch", self.graph, lane.stream)
        else:
            for work in lane.work:
                lane.launch(work)
        if self.mode == "cuda":
            self.driver("cuMemcpyHtoDAsync_v2", self.scratch, lane.host, ctypes.c_size_t(4096),
                        lane.stream)
            self.driver("cuMemcpyDtoHAsync_v2", lane.host, self.scratch, ctypes.c_size_t(512),
                        lane.stream)
        clock.wait(lane.wait)

    def step(self, clock):
        """A free step; in mode cuda many empty launches, to see what one costs."""
        lane = self.lanes[0]
        if self.mode != "cuda":
            self.lane_step(lane, clock)
            return
        for _ in range(FREE_LAUNCHES):
            lane.launch(lane.work[0])

    def run_steps(self, count):
        clocks = [gate.Clock() for _ in self.lanes]
        lengths = []

        def run(lane, clock):
            self.driver.enter()
            for _ in range(count):
                begin = time.monotonic_ns()
                self.lane_step(lane, clock)
                lengths.append(time.monotonic_ns() - begin)

        threads = [threading.Thread(target=run, args=a) for a in zip(self.lanes, clocks)]
        begin = time.monotonic_ns()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return {
            "say": "steps", "steps": count, "begin_ns": begin, "end_ns": time.monotonic_ns(),
            "sync_ns": sum(c.ns for c in clocks), "syncs": sum(c.count for c in clocks),
            "step_p50_ns": int(statistics.median(lengths)), "expected": self.expected(count),
            "h2d_bytes": 4096 * count * len(self.lanes), "d2h_bytes": 512 * count * len(self.lanes),
        }

    def expected(self, steps):
        if self.mode == "graph":
            return []
        rows = collections.Counter()
        for lane in self.lanes:
            for name, _, grid, block, smem in lane.work:
                row = {"kernel": plain(name), "grid": grid, "block": block}
                if self.mode == "cuda":
                    row.update(smem=smem, stream=hex(lane.stream.value))
                rows[json.dumps(row)] += steps
        return [dict(json.loads(k), calls=n) for k, n in rows.items()]

    def checksum(self):
        words = []
        for lane in self.lanes:
            out = ctypes.c_uint64()
            self.driver("cuMemcpyDtoH_v2", ctypes.byref(out), lane.memory, ctypes.c_size_t(8))
            words.append(f"{out.value:016x}")
        return " ".join(words)

    def profile(self, steps):
        kernels, shapes = collections.Counter(), []
        for name, _, grid, block, _ in self.lanes[0].work:
            kernels[plain(name)] += steps
            shapes.append([plain(name), grid, block, steps])
        apis = {"cuGraphLaunch" if self.graph else "cuLaunchKernel":
                steps if self.graph else sum(kernels.values())}
        sequence = [[plain(name), ns] for name, ns, *_ in self.lanes[0].work] * steps
        return {"kernels": kernels, "apis": apis, "shapes": shapes, "sequence": sequence,
                "busy_ns": sum(ns for _, ns in sequence), "step_p50_ns": 0, "all_ns": 1}

    def profile_once(self, steps):
        return self.profile(steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", required=True)
    parser.add_argument("--dir")
    parser.add_argument("--auto", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--stream", default="own")
    args = parser.parse_args()
    if args.auto:
        print(json.dumps(SimJob(args.mode, args.threads).run_steps(args.auto)))
        return 7
    return gate.serve(lambda: SimJob(args.mode, args.threads), args.dir)


if __name__ == "__main__":
    sys.exit(main())
