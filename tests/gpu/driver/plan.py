# SPDX-License-Identifier: BSD-2-Clause
"""The checks in their order: name, what it needs, how long it may take."""
import collections
import concurrent.futures
import json
import os
import re
import shutil

import checks
import cupti
import diagnosis
import experiments
import gputime_others
import leaving
import measure
import monitor
import numbering
import residue
import residue_many
from check import JOBS, Skip

# prepare starts the jobs, while the check before still runs unless that one is quiet:
# alone on the machine. limit: seconds after which it is given up.
Entry = collections.namedtuple("Entry", "name prepare run limit quiet about")

VARIANTS = {
    "static": [],
    "shared": ["-cudart", "shared"],
    "per-thread": ["--default-stream", "per-thread"],
}


def nothing(check):
    del check


def find_nvcc():
    for path in (shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc", "/usr/local/cuda-13.0/bin/nvcc"):
        if path and os.path.exists(path):
            return path
    return None


def build_variant(check, nvcc, variant, flags):
    binary = os.path.join(check.setting.scratch, f"launches-{variant}")
    lib = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib64")
    status, text = check.run(
        nvcc, "-std=c++17", "-O2", "-arch=sm_90", *flags, "-Xcompiler", "-Wall,-pthread",
        "-Xlinker", f"-rpath={lib}", os.path.join(JOBS, "launches.cu"), "-o", binary, seconds=120)
    if check.expect(f"nvcc builds launches-{variant}", status == 0, text[-1500:] if status else ""):
        check.setting.binaries[variant] = binary


def run_build(check):
    nvcc = find_nvcc()
    if not nvcc:
        raise Skip("no nvcc")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for work in [pool.submit(build_variant, check, nvcc, *v) for v in VARIANTS.items()]:
            work.result()


def calibrated(text):
    """Every whole number under a key that ends in _ns, wherever doctor puts it."""
    found = {}

    def walk(value, key):
        if isinstance(value, dict):
            for k, v in value.items():
                walk(v, f"{key}.{k}" if key else k)
        elif isinstance(value, (int, float)) and re.search(r"_ns$", key):
            found[key] = value

    try:
        walk(json.loads(text[text.index("{"):text.rindex("}") + 1]), "")
    except ValueError:
        pass
    return found


def run_env(check):
    gbpf = check.setting.gbpf
    for command in ([gbpf, "--version"], ["uname", "-a"], ["nvidia-smi"], [gbpf, "list"],
                    [gbpf, "doctor"]):
        status, text = check.run(*command)
        check.note(" ".join([os.path.basename(command[0]), *command[1:]]),
                   f"status {status}\n{text[:8000]}")
    status, text = check.run(gbpf, "--version")
    check.expect("gbpf runs here", status == 0, text[:300])
    status, text = check.run(gbpf, "doctor")
    check.expect("gbpf doctor finds nothing missing", status == 0, text[-600:] if status else "")
    status, text = check.run(gbpf, "doctor", "--format", "json")
    for key, value in calibrated(text).items():
        check.measure(f"doctor: {key}", value, "ns")


def run_cost(check):
    """The calibrated cost, as a recording carries it."""
    job = check.jobs[0].ready(60)
    for rung in ("session", "multi"):
        recording = check.record("-p", str(job.pid), "-d", "0", "--rung", rung)
        job.ask(f"steps {check.setting.steps(50)}")
        recording.stop()
        for key, value in recording.report("summary")["quality"]["probe_cost"].items():
            check.measure(f"calibrated cost on {rung}: {key.removesuffix('_ns')}", value, "ns")
        check.expect(f"rung {rung} calibrates itself", value and value > 0, value)


def one_cuda(check):
    check.jobs = [check.cuda("static")]


def one_train(check):
    check.jobs = [check.torch("train")]


def cuda_entry(name, variant, run, about, limit=90, **kwargs):
    return Entry(name, checks.prepare_cuda(variant, **kwargs), run, limit, False, about)


def torch_entry(name, run, about):
    return Entry(name, checks.prepare_torch(name), run, 150, False, about)


PLAN = [
    Entry("env", nothing, run_env, 120, False, "machine, doctor, list"),
    Entry("build", nothing, run_build, 240, False, "launches.cu, three ways"),
    cuda_entry("cuda-static", "static", checks.cuda(), "CUDA C, static runtime"),
    cuda_entry("cuda-shared", "shared", checks.cuda(), "CUDA C, shared runtime"),
    cuda_entry("cuda-threads", "static", checks.cuda(), "8 threads, each its own stream",
               threads=8),
    cuda_entry("cuda-per-thread", "per-thread", checks.cuda(),
               "per-thread default streams, 4 threads", threads=4, stream="default"),
    cuda_entry("rung-session", "static", checks.cuda("--rung", "session"), "uprobe.session"),
    cuda_entry("rung-multi", "static", checks.cuda("--rung", "multi"), "uprobe.multi"),
    cuda_entry("api-runtime-shared", "shared",
               checks.cuda("--api", "runtime", called="cudaLaunchKernel"),
               "libcudart's calls on top"),
    cuda_entry("api-runtime-static", "static", checks.cuda("--api", "runtime"),
               "the same with the runtime inside the program"),
    cuda_entry("api-all", "static", checks.cuda("--api", "all"), "every function there is"),
    Entry("command", nothing, checks.run_command, 90, False, "gbpf trace -- COMMAND"),
    torch_entry("mm64", checks.torch(1000), "PyTorch, 64² matmul"),
    torch_entry("mm4096", checks.torch(200, must_sync=True), "PyTorch, 4096² matmul"),
    torch_entry("train", checks.torch(200, late=True), "PyTorch, a training step"),
    torch_entry("graph", checks.torch(500), "PyTorch, replay of a CUDA graph"),
    torch_entry("triton", checks.torch(500), "two Triton kernels"),
    Entry("two", checks.prepare_two, checks.run_two, 150, False, "two PyTorch processes"),
    Entry("launcher", checks.prepare_launcher, checks.run_launcher, 150, False,
          "two PyTorch processes, by the pid of their launcher"),
    cuda_entry("rung-single", "static",
               checks.cuda("--rung", "single", seconds=90, settle=3.0),
               "one perf event a site", limit=200),
    *gputime_others.entries(Entry),
    *diagnosis.entries(Entry),
    *cupti.entries(Entry),
    *experiments.entries(Entry),
    Entry("cost", one_cuda, run_cost, 60, True, "calibrated cost a call"),
    Entry("kill", one_cuda, measure.run_kill, 90, True, "SIGKILL of gbpf"),
    Entry("empty", one_cuda, measure.run_empty, 180, True, "cost on empty launches"),
    Entry("residue", residue.prepare, residue.run, 160, True,
          "training step after detaching / before, against a job never traced"),
    *residue_many.entries(Entry),
    *numbering.entries(Entry),
    *leaving.entries(Entry),
    *monitor.entries(Entry),
    Entry("slowdown", one_train, measure.run_slowdown, 600, True,
          "slowdown of the training step while traced"),
]
