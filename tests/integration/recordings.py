# SPDX-License-Identifier: BSD-2-Clause
"""Recordings whose content the test itself made up: lines for write_recording.c."""
import random

import gbpf

WRITE = gbpf.BUILD / "tests" / "integration" / "write_recording"
REALTIME = 1_790_000_000_000_000_000  # of the first instant of every recording
NO_PEER = 0xFFFFFFFF
KERNEL, COPY, SET = 1, 2, 3
DRIVER, RUNTIME = 1, 2

# id: name, library, kind, CUPTI's number (as in the headers of CUDA 13)
APIS = {
    1: ("cuLaunchKernel", "driver", "launch", 307),
    2: ("cuStreamSynchronize", "driver", "sync", 126),
    3: ("cuMemcpyDtoHAsync_v2", "driver", "copy", 279),
    4: ("cuMemsetD8Async", "driver", "set", 216),
    5: ("cuGraphLaunch", "driver", "graph", 514),
    6: ("cuEventQuery", "driver", "query", 120),
    7: ("cudaLaunchKernel", "runtime", "launch", 211),
    8: ("ncclAllReduce", "nccl", "collective", 0),
    9: ("cuMemAlloc_v2", "driver", "alloc", 243),
    10: ("cuCtxSynchronize", "driver", "sync", 17),
    11: ("cudaMemcpyAsync", "runtime", "copy", 41),
    12: ("cudaMemsetAsync", "runtime", "set", 51),
    13: ("cudaGraphLaunch", "runtime", "graph", 311),
    14: ("cudaStreamSynchronize", "runtime", "sync", 131),
    15: ("cudaDeviceSynchronize", "runtime", "sync", 165),
}
LAUNCH, SYNC, DTOH, MEMSET, GRAPH, QUERY, RT_LAUNCH, NCCL, ALLOC, CTX_SYNC = range(1, 11)
RT_COPY, RT_SET, RT_GRAPH, RT_SYNC, DEVICE_SYNC = range(11, 16)
RUNTIME_OF = {LAUNCH: RT_LAUNCH, DTOH: RT_COPY, MEMSET: RT_SET, GRAPH: RT_GRAPH, SYNC: RT_SYNC,
              CTX_SYNC: DEVICE_SYNC}

# compute capability … reserved shared memory, as a real H200 says
H200 = (9, 0, 132, 32, 1024, 2048, 32, 65536, 65536, 49152, 232448, 233472, 1024)

HOSTILE = (
    'quo"te', "back\\slash", "new\nline", "nul\x01", "\x1b[31m", "</script>", "ünïcödé", "'; DROP",
    b"\xff\xfe", b"cut \xe2\x82", "\u2028", '{"rank": 7}', "", "a" * 300,
)


def text(value):
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return "x" + raw.hex()


class Recording:
    """Collects records and what is to be found of them; times are ns of CLOCK_MONOTONIC."""

    def __init__(self, start=1_000_000_000, host="n1", boot="boot-1", realtime=REALTIME):
        self.lines = []
        self.start = start
        self.realtime = realtime
        self.calls = []  # (pid, tid, api, begin, end or None, correlation or None)
        self.works = []  # (pid, device, stream, kind, begin, end, correlation, linked)
        self.losses = 0
        self.runtime = False  # driver calls are inside of the runtime's
        self.end = start
        self.correlation = 100
        for number, (name, library, kind, _) in APIS.items():
            self.add("api", number, text(name), text(library), text(kind))
        self.add("clock", start, realtime, start + 5, 40)
        self.info("host", host)
        self.info("host_boot_id", boot)
        self.info("gbpf_version", "test")

    def add(self, kind, *fields):
        self.lines.append(" ".join([kind, *map(str, fields)]))

    def info(self, key, value):
        self.add("info", text(key), text(value))

    def label(self, pid, key, value):
        self.add("label", self.start, pid, text(key), text(value))

    def trigger(self, ts, why, begin, value, threshold=0, unit=2, samples=1, cause=1):
        """Why a flight recorder wrote this; unit 2 is ns."""
        self.add("trigger", ts, cause, text(why), begin, value, threshold, unit, samples)

    def process(self, pid, comm="python3", rank=None, event=1, ts=None):
        self.add("process", ts or self.start, event, pid, 1, pid, 1000, 0, 0, 5_000_000_000 + pid,
                 text(comm), text(""), text(""), text(""))
        if rank is not None:
            self.label(pid, "rank", str(rank))

    def thread(self, pid, tid, comm="python3"):
        self.add("thread", pid, tid, tid, text(comm))

    def device(self, pid, ordinal=0, uuid="GPU-0", name="NVIDIA H200"):
        self.add("device", pid, ordinal, text(uuid), text(name), 150109880320, *H200)

    def shape(self, pid, number, kernel, grid=(4, 1, 1), block=(128, 1, 1), registers=32,
              static=0, dynamic=0):
        self.add("shape", pid, number, text(kernel), *grid, *block, registers, static, dynamic, 0)

    def sidecar(self, pid, begin, end, error=1):
        """A window of the sidecar, without losses; error of its clock, ns."""
        self.add("sidecar", begin, pid, 2, 0, 130001, text(""))
        self.add("sidecar", end, pid, 3, 0, 130001, text(""))
        self.add("sidecar", end, pid, 9, error, 130001, text(""))

    def see(self, *times):
        self.end = max(self.end, *times)

    def call(self, pid, tid, api, begin, end, depth=0, grid=None, block=128, ret=0, stream=0,
             record=True, size=0):
        """One call; end None: it never returns. Gives its correlation."""
        if self.runtime and api in RUNTIME_OF:
            outer = RUNTIME_OF[api]
            self.add("begin", begin, pid, tid, 0x7000 - 0x100 * depth, outer)
            depth += 1
        stack = 0x7000 - 0x100 * depth
        inside = 200 if self.runtime and api in RUNTIME_OF else 0
        where = (begin + inside, pid, tid, stack, api)
        if APIS[api][2] == "launch":
            self.add("launch", *where, 0x5000 + (grid or (4, 1, 1))[0], stream, 0,
                     *(grid or (4, 1, 1)), block, 1, 1)
        elif api in (DTOH, MEMSET, SYNC, GRAPH):
            self.add("call", *where, 0xD000, stream, 0, size, 0)
        else:
            self.add("begin", *where)
        if end is not None:
            self.add("end", end, pid, tid, stack, api, ret)
        if self.runtime and api in RUNTIME_OF:
            if end is not None:
                self.add("end", end + 300, pid, tid, stack + 0x100, outer, ret)
            self.calls.append((pid, tid, outer, begin, end and end + 300, None))
        self.see(begin, end or begin)
        correlation = None
        if record and end is not None and APIS[api][1] != "nccl":
            self.correlation += 1
            correlation = self.correlation
            library = DRIVER if APIS[api][1] == "driver" else RUNTIME
            inset = min(20, (end - begin) // 4)
            inset += inside
            self.add("work_call", begin + inset, end - begin - 2 * inset, pid, tid, library,
                     APIS[api][3], correlation, ret)
        self.calls.append((pid, tid, api, begin + inside, end, correlation))
        return correlation

    def poll(self, pid, tid, begin, end, count, inside):
        self.add("poll", begin, pid, tid, 0x7000, QUERY, 0xE000, end, inside, 1, 100, count, 0)
        self.calls.append((pid, tid, QUERY, begin, end, None))
        self.see(end)

    def work(self, pid, kind, begin, end, correlation, device=0, stream=7, context=1, shape=1,
             graph=0, node=0, size=0, linked=True, direction=2, source=3, target=1):
        copy = kind == COPY
        self.add("work", begin, end - begin, pid, kind, device, context, stream, correlation,
                 shape if kind == KERNEL else 0, graph, node, size, direction if copy else 0,
                 source if copy else 0, target if kind != KERNEL else 0, 8, 1, 0, NO_PEER)
        self.works.append((pid, device, stream, kind, begin, end, correlation, linked))
        self.see(end)

    def loss(self, ts, count):
        self.add("loss", ts, 1, count)
        self.losses += count

    def write(self, path, window=None):
        begin, end = window or (self.start, self.end + 1000)
        self.add("window", begin, end)
        done = gbpf.subprocess.run(
            [str(WRITE), str(path), str(self.realtime)], input="\n".join(self.lines) + "\n",
            text=True, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return path


def training(pid=422, steps=4, rank=None, start=1_000_000_000, step=1_000_000, recording=None,
             nccl=False, runtime=False, **kwargs):
    """
    A job of one thread: a step is a copy to the host, five launches, a set, a graph of three
    kernels and a wait; with NCCL, a collective.
    """
    r = recording or Recording(start, **kwargs)
    r.runtime = runtime
    r.process(pid, rank=rank)
    r.thread(pid, pid)
    r.device(pid)
    r.shape(pid, 1, "_Z6kernelPf")
    r.shape(pid, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", grid=(24, 1, 1), block=(512, 1, 1),
            registers=96, static=27000)
    for i in range(steps):
        now = start + 10_000 + i * step
        busy = now + 20_000  # when the GPU is free
        for k in range(5):
            c = r.call(pid, pid, LAUNCH, now, now + 6_000, stream=0x77)
            busy = max(busy, now + 9_000)
            r.work(pid, KERNEL, busy, busy + 30_000, c)
            busy += 31_000
            now += 8_000
        if nccl:
            r.call(pid, pid, NCCL, now, now + 20_000)
            c = r.call(pid, pid, LAUNCH, now + 2_000, now + 9_000, depth=1, grid=(24, 1, 1),
                       block=512, stream=0x99)
            r.work(pid, KERNEL, busy, busy + 120_000, c, stream=21, shape=2)
            busy += 121_000
            now += 25_000
        c = r.call(pid, pid, MEMSET, now, now + 4_000, stream=0x77, size=1 << 16)
        r.work(pid, SET, busy, busy + 2_000, c, size=1 << 16, target=3)
        busy += 3_000
        now += 5_000
        c = r.call(pid, pid, GRAPH, now, now + 15_000, stream=0x77)
        for k in range(3):
            r.work(pid, KERNEL, busy, busy + 10_000, c, graph=9, node=100 + k)
            busy += 10_500
        now += 16_000
        c = r.call(pid, pid, DTOH, now, now + 5_000, stream=0x77, size=4096)
        r.work(pid, COPY, busy, busy + 3_000, c, size=4096)
        busy += 4_000
        now += 6_000
        r.call(pid, pid, SYNC, now, max(now + 1_000, busy + 3_000), stream=0x77)
    r.see(start + steps * step)
    r.sidecar(pid, start, r.end + 500)
    return r


def rng(seed):
    return random.Random(seed)


def _busy_thread(r, random, pid, tid, streams, hostile, now):
    """Calls of one thread, some inside others, with the work that they lead to."""
    free = dict.fromkeys(streams, now)
    for _ in range(random.randint(3, 25)):
        now += random.choice([5, 6, 700, 5_000])
        took = random.choice([0, 1, 2, 900, 4_000, 60_000])
        kind = random.choice([LAUNCH, LAUNCH, LAUNCH, GRAPH, DTOH, MEMSET, ALLOC, SYNC, NCCL])
        if random.random() < 0.1:
            r.poll(pid, tid, now, now + took + 10, random.randint(1, 9), took)
            now += took + 11
            continue
        if kind == NCCL:
            r.call(pid, tid, NCCL, now, now + took + 200)
            c = r.call(pid, tid, LAUNCH, now + 50, now + 150, depth=1, stream=0x77)
            r.work(pid, KERNEL, now + 150, now + 9_000, c, stream=streams[0])
            now += took + 201
            continue
        stream = random.choice(streams)
        c = r.call(pid, tid, kind, now, now + took, stream=0x70 + stream,
                   ret=2 if kind in (ALLOC, SYNC) and random.random() < 0.3 else 0,
                   size=random.choice([0, 1, 4096, 1 << 40]))
        begin = max(free[stream], now + random.choice([0, 1, took, took + 30_000]))
        if random.random() < 0.2:
            begin = now + took  # overlaps what is still running there
        if kind in (LAUNCH, GRAPH):
            for node in range(random.randint(2, 5) if kind == GRAPH else 1):
                end = begin + random.choice([1, 2, 1_000, 50_000])
                r.work(pid, KERNEL, begin, end, c, stream=stream, graph=5 * (kind == GRAPH),
                       node=node, shape=1 + random.randrange(len(hostile)))
                begin += random.choice([0, 500])
                free[stream] = max(free[stream], end)
        elif kind in (DTOH, MEMSET):
            end = begin + random.choice([1, 2, 3_000])
            r.work(pid, COPY if kind == DTOH else SET, begin, end, c, stream=stream, size=1 << 20)
        now += took + 1
    return now


def anything(seed):
    """Processes, threads and streams at random; names that want to break files."""
    random = rng(seed)
    r = Recording(start=random.choice([1_000, 10**12, 10**16]))
    hostile = random.sample(HOSTILE, 5)
    for pid in random.sample(range(100, 4_000_000), random.randint(1, 3)):
        r.process(pid, comm=random.choice(hostile), rank=random.choice([None, 0, 7, "local 1"]))
        r.device(pid, name=random.choice(HOSTILE))
        for number, name in enumerate(hostile):
            r.shape(pid, number + 1, name)
        tids = [pid + i for i in range(random.randint(1, 3))]
        for tid in tids:
            r.thread(pid, tid, random.choice(hostile))
            streams = random.sample(range(1, 40), random.randint(1, 3))
            end = _busy_thread(r, random, pid, tid, streams, hostile, r.start + 10)
            if random.random() < 0.3:
                r.call(pid, tid, SYNC, end + 5, None, stream=0x77)
        if random.random() < 0.5:
            r.work(pid, KERNEL, r.end, r.end + 100, 99_999_999, linked=False)
        r.sidecar(pid, r.start, r.end + 10)
    if random.random() < 0.3:
        r.loss(r.end, 17)
    return r


def uneven(pid, seed, rank, recording, steps=24, side_stream=True):
    """
    A training job with uneven times: a side stream with collectives that overlap, drained once
    a step. Everything the GPU did lies within whole steps, and nothing in the first call after.
    """
    r, random = recording, rng(seed)
    r.runtime = True
    r.process(pid, rank=rank)
    r.thread(pid, pid)
    r.device(pid, uuid=f"GPU-{rank}")
    r.shape(pid, 1, "_Z6kernelPf")
    r.shape(pid, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", grid=(24, 1, 1), block=(512, 1, 1))
    now, free, side = r.start + 10_000, 0, 0
    for _ in range(steps):
        for k in range(12):
            took = random.randrange(3_000, 9_000)
            c = r.call(pid, pid, LAUNCH, now, now + took, stream=0x77)
            begin = max(free + 1_000, now + random.randrange(4_000, 12_000))
            free = begin + random.randrange(1_000, 40_000)
            r.work(pid, KERNEL, begin, free, c)
            now += took + random.randrange(500, 30_000)
            if side_stream and k % 4 == 3:
                c = r.call(pid, pid, LAUNCH, now, now + 5_000, grid=(24, 1, 1), block=512,
                           stream=0x99)
                begin = max(side + 1_000, free, now + 6_000)
                side = begin + random.randrange(20_000, 90_000)
                r.work(pid, KERNEL, begin, side, c, stream=21, shape=2)
                now += 6_000
        c = r.call(pid, pid, DTOH, now, now + 5_000, stream=0x77, size=4096)
        begin = max(free + 1_000, now + 6_000)
        free = begin + 3_000
        r.work(pid, COPY, begin, free, c, size=4096)
        now += 6_000
        drained = max(free, side, now) + 3_000
        r.call(pid, pid, SYNC, now, drained, stream=0x77)
        now = drained + random.randrange(20_000, 200_000)
    for k in range(12):  # the step after the last one; it never gets to the GPU
        r.call(pid, pid, LAUNCH, now + k * 10_000, now + k * 10_000 + 4_000, stream=0x77, ret=700)
    r.sidecar(pid, r.start, r.end + 500)
    return r
