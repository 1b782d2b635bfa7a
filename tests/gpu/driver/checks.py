# SPDX-License-Identifier: BSD-2-Clause
"""What must be true of a recording of a real job, whatever the job."""
import json
import re
import subprocess
import sys
import os

import compare
from check import JOBS
from jobs import Job, Trouble, die_with_parent

KERNEL_API = re.compile(r"^cu(da)?Launch(Cooperative)?Kernel")


def verify_whole(check, recording, answers):
    """Nothing lost, and the recording holds all steps."""
    report = recording.report("launch_sum")
    quality = report["quality"]
    check.expect("nothing lost", not compare.losses(quality), compare.losses(quality) or "")
    check.expect("file is whole", quality["file_end"] == "whole", quality["file_end"])
    for a in answers:
        check.expect(
            "all steps lie in the recording",
            compare.covers(quality, a["begin_ns"], a["end_ns"]),
            f"{quality['windows']}, steps {a['begin_ns']}..{a['end_ns']}")
    check.note("hooked", {
        "functions, files": recording.hooked(), "attach_s": round(recording.attach_s or 0, 3),
        "stop_s": round(recording.stop_s, 3),
        **{k: quality[k] for k in ("events", "unpaired", "probe_cost", "unseen")}})
    check.note("not hooked", summarised(quality["not_hooked"]))
    return report


def summarised(not_hooked):
    """Reason → how many functions, and a few of them."""
    found = {}
    for n in not_hooked:
        key = f"{os.path.basename(n['image'] or '?')}: {n['reason']}"
        found.setdefault(key, []).append(n["api"])
    return {k: [len(v), [a for a in v if a][:5]] for k, v in found.items()}


def verify_count(check, report, pid, kernels, graphs=0):
    seen = compare.launch_counts(report, pid)
    check.expect("kernel launches equal to the job's own count", seen["kernels"] == kernels,
                 f"{kernels} launched, {seen['kernels']} reported")
    if graphs or seen["graphs"]:
        check.expect("graph launches equal to the job's own count", seen["graphs"] == graphs,
                     f"{graphs} launched, {seen['graphs']} reported")


def verify_names(check, recording, report, pid, expected):
    nameless = compare.unnamed(report, pid)
    check.expect("every kernel is named", not nameless,
                 [(r["kernel"], r["name"], r["calls"]) for r in nameless[:8]] or "")
    alias = compare.aliases(report, recording.report("launch_sum", "--names", "mangled"), pid)
    missing, extra = compare.names_differ(expected, report, pid, alias)
    check.expect("kernel names equal to the job's", not missing and not extra,
                 {"not reported": missing[:6], "not launched": extra[:6]}
                 if missing or extra else f"{len(set(expected))} names")
    return alias


def verify_shapes(check, report, pid, expected, what="grids and blocks equal to those given",
                  alias=None):
    lines = compare.shapes_differ(expected, report, pid, alias)
    check.expect(what, not lines, "; ".join(lines[:6]) or f"{len(expected)} shapes")


def verify_sync(check, recording, answer, pid, must):
    ns, waits = compare.sync_ns(recording.report("sync_sum"), pid)
    off = ns / answer["sync_ns"] - 1 if answer["sync_ns"] else 0.0
    text = (f"job {answer['sync_ns']} ns in {answer['syncs']}, gbpf {ns} ns in {waits}, "
            f"{off * 100:+.2f} %")
    if must:
        check.expect("sync time equal to the job's clock within 2 %",
                     abs(off) <= check.setting.sync_tolerance, text)
        check.expect("number of syncs equal", waits == answer["syncs"], text)
    else:
        check.note("sync", text)


SMI = ("uuid", "name", "memory.total", "enforced.power.limit", "clocks.max.sm")


def verify_gpus(check, recording):
    """What gpu_sum says of each GPU is what nvidia-smi says."""
    if check.setting.simulated:
        return
    code, text = check.run("nvidia-smi", "--query-gpu=" + ",".join(SMI),
                           "--format=csv,noheader,nounits")
    rows = {r["uuid"]: r for r in recording.report("gpu_sum")["rows"] if not r["mig_parent"]}
    check.note("gpu_sum", list(rows.values()))
    if code != 0:
        check.note("nvidia-smi", text)
        return
    for line in text.strip().split("\n"):
        uuid, name, memory, limit, clock = line.split(", ")
        row = rows.get(uuid)
        if not check.expect("the GPU was sampled", row and row["samples"] >= 2, uuid):
            continue
        check.expect("GPU's name, memory and power limit as nvidia-smi says",
                     row["name"] == name and row["memory_total_bytes"] >> 20 == int(memory)
                     and row["power_limit_w"] == float(limit), f"{line}; {row}")
        check.expect("GPU's clocks, power and temperature are possible ones",
                     0 < row["sm_clock_min_mhz"] <= row["sm_clock_max_mhz"] <= int(clock)
                     and 0 < row["power_avg_w"] <= row["power_max_w"] < 2 * float(limit)
                     and 0 < row["temperature_max_c"] < 120, row)


def log_views(check, recording):
    """The tables as a user sees them, into the log."""
    for view in ("summary", "api_sum", "cold_sum", "open_sum", "proc_sum", "thread_sum",
                 "gpu_sum"):
        _, text = check.run(check.setting.gbpf, "report", recording.path, "--view", view,
                            "--top", "12")
        print(f"--- {view}\n{text[:6000]}", flush=True)


# ---- PyTorch ----

def prepare_torch(mode):
    def prepare(check):
        check.jobs = [check.torch(mode, "plain"), check.torch(mode, "traced")]
    return prepare


def per_step(profile):
    """What the profiler of another run says one step launches."""
    steps = profile["steps"]
    apis = profile["apis"]
    graphs = sum(n for a, n in apis.items() if "GraphLaunch" in a)
    by_api = sum(n for a, n in apis.items() if KERNEL_API.match(a))
    kernels = sum(profile["kernels"].values())
    if graphs or (kernels % steps and by_api):
        kernels = by_api  # a graph's kernels are no launches; a record may be a step's before
    if kernels % steps or graphs % steps:
        raise Trouble(f"the profiler saw {kernels} kernels and {graphs} graphs in {steps} steps")
    return {"kernels": kernels // steps, "graphs": graphs // steps, "by_api": by_api / steps}


def as_launched(profile, steps):
    return [
        {"kernel": name, "grid": grid, "block": block, "calls": n * steps // profile["steps"]}
        for name, grid, block, n in profile["shapes"]
    ]


def torch(steps, must_sync=False, late=False):
    def run(check):
        plain, traced = check.jobs
        count = check.setting.steps(steps)
        plain.ready()
        check.note("about", plain.about)
        check.note("untraced step p50 ns", plain.ask(f"steps {count}")["step_p50_ns"])
        output = plain.ask("checksum")["checksum"]
        profile = plain.ask("profile 5")
        each = per_step(profile)
        check.note("a step, by torch.profiler", each)
        plain.close()
        traced.ready()
        if late:
            look_at(check, traced.pid)
        recording = check.record("-p", str(traced.pid), "-d", "0")
        answer = traced.ask(f"steps {count}")
        recording.stop()
        check.note("traced step p50 ns", answer["step_p50_ns"])
        pid = traced.pid
        report = verify_whole(check, recording, [answer])
        verify_count(check, report, pid, each["kernels"] * count, each["graphs"] * count)
        if not each["graphs"]:
            alias = verify_names(check, recording, report, pid, profile["kernels"])
            verify_shapes(check, report, pid, as_launched(profile, count),
                          "grids and blocks equal to torch.profiler's", alias)
        if answer["expected"] and not each["graphs"]:
            verify_shapes(check, report, pid, answer["expected"])
        verify_sync(check, recording, answer, pid, must_sync)
        check.expect("output equal to the untraced run's",
                     traced.ask("checksum")["checksum"] == output, output)
        check.expect("the job runs on", traced.alive())
        verify_gpus(check, recording)
        if late:
            log_views(check, recording)
    return run


def look_at(check, pid):
    """What doctor and list say of a process that runs PyTorch."""
    status, text = check.run(check.setting.gbpf, "doctor", "-p", str(pid))
    check.note("doctor -p", f"status {status}\n{text}")
    status, text = check.run(check.setting.gbpf, "list", "--format", "json")
    try:
        rows = [r for r in json.loads(text[text.index("{"):text.rindex("}") + 1])["rows"]
                if r["pid"] == pid]
    except ValueError:
        rows = []
    images = [i["path"] for r in rows for i in r["images"]]
    check.expect("gbpf list shows the job and its driver",
                 any("libcuda.so" in i for i in images), images or text[:500])


def prepare_two(check):
    check.jobs = [check.torch("mm64", "a"), check.torch("mm64", "b")]


def prepare_launcher(check):
    s = check.setting
    directories = [s.directory(f"{check.name}-{n}") for n in "ab"]
    jobs = [check.own(Job(d)) for d in directories]
    with open(os.path.join(directories[0], "launcher"), "wb") as log:
        launcher = check.own(subprocess.Popen(
            [sys.executable, os.path.join(JOBS, "launcher.py"), ",".join(directories), "--",
             *s.torch_command("mm64")],
            env=s.env(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(9)))
    check.jobs = [launcher, *jobs]


def record_two(check, jobs, target):
    """Both run at once, different numbers of steps; each is reported as its own."""
    counts = [check.setting.steps(400), check.setting.steps(700)]
    recording = check.record("-p", target, "-d", "0")
    for job, count in zip(jobs, counts):
        job.order(f"steps {count}")
    answers = [job.wait_for("steps", 90) for job in jobs]
    recording.stop()
    report = verify_whole(check, recording, answers)
    each = per_step(jobs[0].ask("profile 5"))
    check.note("a step, by torch.profiler", each)
    for job, count in zip(jobs, counts):
        verify_count(check, report, job.pid, each["kernels"] * count)
        check.expect("every kernel is named", not compare.unnamed(report, job.pid))
    others = {r["pid"] for r in report["rows"]} - {j.pid for j in jobs}
    check.expect("no other process is in the recording", not others, others or "")
    outputs = [job.ask("checksum")["checksum"] for job in jobs]
    check.note("output", outputs)
    log_views(check, recording)


def run_two(check):
    for job in check.jobs:
        job.ready()
    record_two(check, check.jobs, ",".join(str(j.pid) for j in check.jobs))


def run_launcher(check):
    launcher, *jobs = check.jobs
    for job in jobs:
        job.ready()
    record_two(check, jobs, str(launcher.pid))


# ---- CUDA C ----

def prepare_cuda(variant, threads=1, stream="own"):
    def prepare(check):
        check.jobs = [check.cuda(variant, threads, stream, "plain"),
                      check.cuda(variant, threads, stream, "traced")]
    return prepare


def verify_copies(check, recording, answer, pid):
    report = recording.report("copy_sum")
    for direction, key in (("HtoD", "h2d_bytes"), ("DtoH", "d2h_bytes")):
        seen = compare.copied(report, pid, direction)
        check.expect(f"bytes {direction} equal", seen == answer[key],
                     f"{answer[key]} copied, {seen} reported")


def verify_cuda(check, recording, answer, pid):
    report = verify_whole(check, recording, [answer])
    verify_count(check, report, pid, sum(e["calls"] for e in answer["expected"]))
    verify_names(check, recording, report, pid, [e["kernel"] for e in answer["expected"]])
    verify_shapes(check, report, pid, answer["expected"],
                  "grids, blocks, shared memory and streams equal to those given")
    check.note("streams", sorted({str(r["stream"]) for r in compare.rows_of(report, pid)}))
    check.note("launch functions", sorted({str(r["name"]) for r in compare.rows_of(report, pid)}))
    verify_sync(check, recording, answer, pid, True)
    verify_copies(check, recording, answer, pid)


def cuda(*arguments, steps=300, seconds=20, settle=0.4, called=None):
    """called: a function of the runtime that must be what launches, where there is a runtime."""
    def run(check):
        plain, traced = check.jobs
        count = check.setting.steps(steps)
        plain.ready(60)
        plain.ask(f"steps {count}")
        output = plain.ask("checksum")["checksum"]
        plain.close()
        traced.ready(60)
        recording = check.record("-p", str(traced.pid), "-d", "0", *arguments,
                                 seconds=seconds, settle=settle)
        answer = traced.ask(f"steps {count}", 180)
        recording.stop(seconds=90)
        verify_cuda(check, recording, answer, traced.pid)
        if called and not check.setting.simulated:
            check.expect(f"launches are {called}'s", called in check.notes["launch functions"],
                         check.notes["launch functions"])
        check.expect("output equal to the untraced run's",
                     traced.ask("checksum")["checksum"] == output, output)
        check.expect("the job runs on", traced.alive())
    return run


def run_command(check):
    """A command from its first call on; its exit status is gbpf's."""
    s = check.setting
    command = s.cuda_command("static", 2) + ["--auto", str(s.steps(100))]
    recording = check.start("--api", "all", env=s.env(), command=command)
    recording.process.wait(60)
    recording.status = recording.process.returncode
    with open(recording.said, encoding="utf-8", errors="replace") as f:
        said = f.read()
    check.expect("exit status is the command's", recording.status == 7,
                 f"{recording.status}: {said[-1500:]}")
    lines = [l for l in said.splitlines() if l.startswith('{"say"')]
    apis = recording.report("api_sum")
    if not lines or not apis["rows"]:
        raise Trouble(f"no answer of the command, or no call: {said[-1500:]}")
    answer = json.loads(lines[0])
    pid = apis["rows"][0]["pid"]
    names = {r["name"] for r in apis["rows"]}
    check.expect("the first call, cuInit, was seen", "cuInit" in names,
                 sorted(names)[:40])
    verify_cuda_of_command(check, recording, answer, pid)
    log_views(check, recording)


def verify_cuda_of_command(check, recording, answer, pid):
    report = verify_whole(check, recording, [answer])
    verify_count(check, report, pid, sum(e["calls"] for e in answer["expected"]))
    verify_names(check, recording, report, pid, [e["kernel"] for e in answer["expected"]])
    verify_shapes(check, report, pid, answer["expected"])
