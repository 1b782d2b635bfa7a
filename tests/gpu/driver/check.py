# SPDX-License-Identifier: BSD-2-Clause
"""One named check: what it expects, measures and notes, and what it must clean up."""
import os
import subprocess
import sys
import time

from jobs import Job, Recording, Trouble, end, tail

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = os.path.join(os.path.dirname(HERE), "jobs")


class Skip(Exception):
    """A check that cannot be made here; the text says why."""


class Setting:
    """What all checks share: where things are, and whether CUDA is real."""

    def __init__(self, gbpf, scratch, out, simulated=None, deadline=None):
        self.gbpf = gbpf
        self.scratch = scratch
        self.out = out
        self.simulated = simulated  # directory of the stand-in libraries, or None
        self.deadline = deadline if deadline is not None else time.monotonic() + 3600
        self.binaries = {}
        self.count = 0
        # Python threads of the stand-in job disturb each other's clocks.
        self.sync_tolerance = 0.25 if simulated else 0.02

    def left(self):
        return self.deadline - time.monotonic()

    def directory(self, name):
        self.count += 1
        return os.path.join(self.scratch, f"{self.count:02d}-{name}")

    def steps(self, count):
        return max(3, count // 10) if self.simulated else count

    def seconds(self, count):
        return count / 4 if self.simulated else count

    def budget(self, seconds):
        """Of a measurement that goes on until it is exact enough."""
        return min(6 if self.simulated else seconds, self.left() - 70)

    def env(self, library=None):
        """library: a directory whose libraries come before all others."""
        env = dict(os.environ, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1",
                   TRITON_CACHE_DIR=os.path.join(self.scratch, "triton"))
        if self.simulated:
            env["LD_LIBRARY_PATH"] = self.simulated
        if library:
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, [library, env.get("LD_LIBRARY_PATH")]))
        return env

    def simulated_command(self, mode, threads=1):
        return [sys.executable, os.path.join(JOBS, "sim_job.py"), "--mode", mode,
                "--threads", str(threads)]

    def torch_command(self, mode):
        if self.simulated:
            return self.simulated_command(mode)
        return [sys.executable, os.path.join(JOBS, "torch_job.py"), "--mode", mode]

    def cuda_command(self, variant, threads=1, stream="own"):
        if self.simulated:
            return self.simulated_command("cuda", threads)
        if variant not in self.binaries:
            raise Skip(f"launches-{variant} was not built")
        return [self.binaries[variant], "--threads", str(threads), "--stream", stream]


class Check:
    def __init__(self, name, setting):
        self.name = name
        self.setting = setting
        self.results = []   # (what, ok, detail)
        self.measures = []
        self.notes = {}
        self.skipped = None
        self.jobs = []      # of prepare(), for run()
        self.lanes = []
        self.owned = []
        self.recordings = []
        self.seconds = 0.0

    def expect(self, what, ok, detail=""):
        self.results.append((what, bool(ok), str(detail)[:4000]))
        print(f"  {'ok  ' if ok else 'FAIL'} {self.name}: {what}"
              f"{': ' + str(detail)[:600] if detail else ''}", flush=True)
        return bool(ok)

    def note(self, key, value):
        self.notes[key] = value
        print(f"  note {self.name}: {key}: {str(value)[:4000]}", flush=True)

    def measure(self, what, value, unit, **more):
        self.measures.append(dict(what=what, value=value, unit=unit, **more))
        print(f"  meas {self.name}: {what}: {value} {unit} {more}", flush=True)

    def own(self, thing):
        """Is closed when the check ends, however it ends."""
        self.owned.append(thing)
        return thing

    def job(self, command, name="job", library=None, env=None):
        directory = self.setting.directory(f"{self.name}-{name}")
        return self.own(Job(directory, command, self.setting.env(library) | (env or {})))

    def torch(self, mode, name="job", library=None, env=None):
        return self.job(self.setting.torch_command(mode), name, library, env)

    def cuda(self, variant, threads=1, stream="own", name="job", library=None):
        return self.job(self.setting.cuda_command(variant, threads, stream), name, library)

    def start(self, *arguments, **kwargs):
        path = self.setting.directory(self.name) + ".gbpf"
        recording = self.own(Recording(self.setting.gbpf, path, list(arguments), **kwargs))
        self.recordings.append(recording)
        return recording

    def record(self, *arguments, seconds=20, settle=0.4):
        return self.start(*arguments).attached(seconds, settle)

    def run(self, *command, seconds=60, **kwargs):
        """Runs a command to its end and notes what it said."""
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=seconds, check=False, **kwargs)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
        return done.returncode, done.stdout.decode(errors="replace")

    def close(self):
        for thing in reversed(self.owned):
            try:
                if isinstance(thing, subprocess.Popen):
                    end(thing)
                else:
                    thing.close()
            except (OSError, Trouble, subprocess.SubprocessError) as error:
                print(f"  note {self.name}: cleaning up: {error}", flush=True)
        self.owned = []

    def failed(self):
        return sum(not ok for _, ok, _ in self.results)

    def trails(self):
        """What recordings said, for the log of a failed check."""
        return "\n".join(
            f"$ {' '.join(r.command)}\n{tail(r.said)}" for r in self.recordings)

    def as_json(self):
        return {
            "check": self.name, "seconds": round(self.seconds, 1), "skipped": self.skipped,
            "expectations": [
                {"what": w, "ok": ok, "detail": d} for w, ok, d in self.results],
            "measurements": self.measures, "notes": self.notes,
        }
