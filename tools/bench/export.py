# SPDX-License-Identifier: BSD-2-Clause
"""Writing trace files: how fast, how large, and with how much memory."""
import statistics

MIB = 1 << 20
JOBS = {"full": 10, "waiting": 1}  # the GPU's queue is full, or the GPU waits


def once(b, recording, form, name):
    out = b.scratch / name
    result = b.program("export", "write", recording, form, out)
    out.unlink()
    return result


def events(result):
    return result["calls"] + result["works"]


def speed(b, recording, form, name, target, what):
    runs = [once(b, recording, form, name) for _ in range(5)]
    rates = [events(r) / r["cpu_s"] for r in runs]
    b.add(f"export.speed.{name[2:]}", statistics.median(rates), "events/s", n=len(rates),
          interval=[min(rates), max(rates)], target=target, what=what)
    return runs[0]


def export(b):
    for job, scale in JOBS.items():
        recording = b.scratch / "export.gbpf"
        b.program("export", "make", recording, 6000, scale)
        packed = once(b, recording, "perfetto", "t.pftrace.gz")
        b.add(f"export.bytes.{job}", packed["bytes"] / events(packed), "bytes",
              n=events(packed), target=("<=", 12),
              what="an event (call or piece of GPU work) of a .pftrace.gz")
    speed(b, recording, "perfetto", "t.pftrace", (">=", 2e6), "CPU time, one core")
    speed(b, recording, "perfetto", "t.pftrace.gz", None, "CPU time, one core")
    speed(b, recording, "csv", "t.csv", None, "CPU time, one core")
    speed(b, recording, "kineto", "t.json.gz", (">=", 0.5e6), "CPU time, one core")
    steps = 300_000 if b.long else 60_000
    b.program("export", "make", recording, steps, 10)
    for form, name in (("perfetto", "t.pftrace"), ("kineto", "t.json")):
        big = once(b, recording, form, name)
        b.add(f"export.memory.{form}", big["memory"] / MIB, "MiB", n=events(big),
              target=("<=", 200), what="beyond the session, at most")
    recording.unlink()
