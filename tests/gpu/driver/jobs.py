# SPDX-License-Identifier: BSD-2-Clause
"""The processes of a check: jobs that take orders, and gbpf recording them."""
import ctypes
import json
import os
import re
import signal
import subprocess
import time

PERIOD_S = 0.01
SLEEPING_PERIODS = 4


class Trouble(Exception):
    """A check cannot go on; the text says why."""


def die_with_parent(sig):
    def prepare():
        ctypes.CDLL(None).prctl(1, sig, 0, 0, 0)  # PR_SET_PDEATHSIG
    return prepare


def tail(path, size=3000):
    try:
        with open(path, "rb") as f:
            f.seek(0, os.SEEK_END)
            f.seek(max(0, f.tell() - size))
            return f.read().decode(errors="replace")
    except OSError as error:
        return str(error)


def end(process, sig=signal.SIGKILL, seconds=5):
    """Ends a child of ours by its pid; its exit status."""
    if process.poll() is None:
        process.send_signal(sig)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class Job:
    """Takes orders as jobs/gate.py says. command is None when somebody else starts it."""

    def __init__(self, directory, command=None, env=None):
        self.directory = directory
        os.makedirs(directory)
        os.mkfifo(os.path.join(directory, "cmd"))
        self.fifo = os.open(os.path.join(directory, "cmd"), os.O_RDWR | os.O_CLOEXEC)
        self.process = None
        self.pid = None
        self.offset = 0
        self.about = {}
        if command:
            with open(os.path.join(directory, "log"), "wb") as log:
                self.process = subprocess.Popen(
                    command + ["--dir", directory], env=env, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=subprocess.STDOUT, cwd=directory,
                    preexec_fn=die_with_parent(signal.SIGKILL))

    def steps_path(self):
        return os.path.join(self.directory, "steps")

    def next_answer(self):
        try:
            with open(os.path.join(self.directory, "out"), "rb") as f:
                f.seek(self.offset)
                line = f.readline()
        except FileNotFoundError:
            return None
        if not line.endswith(b"\n"):
            return None
        self.offset += len(line)
        return json.loads(line)

    def wait_for(self, say, seconds):
        until = time.monotonic() + seconds
        while True:
            ended = self.process is not None and self.process.poll() is not None
            answer = self.next_answer()
            if answer:
                if answer["say"] != say:
                    raise Trouble(f"job said {answer} and not {say}; "
                                  f"{tail(os.path.join(self.directory, 'log'))}")
                return answer
            if ended:
                raise Trouble(f"job ended with {self.process.returncode}; "
                              f"{tail(os.path.join(self.directory, 'log'))}")
            if time.monotonic() > until:
                raise Trouble(f"job did not say {say} within {seconds} s; "
                              f"{tail(os.path.join(self.directory, 'log'))}")
            time.sleep(PERIOD_S)

    def ready(self, seconds=150):
        if self.pid is None:
            self.about = self.wait_for("ready", seconds)
            self.pid = self.about["pid"]
        return self

    def order(self, text):
        os.write(self.fifo, text.encode() + b"\n")

    def ask(self, text, seconds=90):
        self.order(text)
        return self.wait_for(text.split()[0], seconds)

    def free(self):
        self.order("free")
        self.wait_for("free begins", 30)

    def end_free(self):
        self.order("rest")  # ends it, and asks for nothing
        return self.wait_for("free", 30)

    def alive(self):
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return self.process is None or self.process.poll() is None

    def close(self):
        if self.fifo < 0:
            return
        self.order("quit")
        if self.process:
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                end(self.process)
        os.close(self.fifo)
        self.fifo = -1


class Recording:
    """gbpf trace, from attached until stopped."""

    def __init__(self, gbpf, path, arguments, env=None, command=None):
        self.gbpf = gbpf
        self.path = path
        self.command = [gbpf, "trace", *arguments, "-o", path]
        if command:
            self.command += ["--", *command]
        self.said = path + ".txt"
        self.begun = time.monotonic()
        self.attach_s = None
        self.status = None
        self.cpu_s = self.stop_s = 0.0
        with open(self.said, "wb") as out:
            self.process = subprocess.Popen(
                self.command, env=env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, preexec_fn=die_with_parent(signal.SIGINT))

    def links(self):
        """How many descriptors of the process are probes; -1 when it cannot be told."""
        count = 0
        base = f"/proc/{self.process.pid}/fd"
        try:
            for name in os.listdir(base):
                try:
                    target = os.readlink(f"{base}/{name}")
                except OSError:
                    continue
                count += bool(re.search(r"bpf[-_]link|perf_event", target))
        except OSError:
            return -1
        return count

    def state_and_cpu(self):
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as f:
                words = f.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            return "?", 0.0
        return words[0], (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def attached(self, seconds=20, settle=0.4):
        """Waits until the number of probes no longer grows and gbpf sleeps, waiting for events."""
        until = time.monotonic() + seconds
        count, since, asleep = 0, time.monotonic(), 0
        while True:
            if self.process.poll() is not None:
                raise Trouble(f"gbpf trace ended with {self.process.returncode}: "
                              f"{tail(self.said)}")
            now, links = time.monotonic(), self.links()
            asleep = asleep + 1 if self.state_and_cpu()[0] == "S" else 0
            if links != count:
                count, since = links, now
                self.attach_s = now - self.begun
            elif count > 0 and now - since > settle and asleep >= SLEEPING_PERIODS:
                return self
            if now > until:
                raise Trouble(f"gbpf trace had not attached after {seconds} s: {tail(self.said)}")
            time.sleep(PERIOD_S)

    def stop(self, sig=signal.SIGINT, seconds=60):
        """Ends the recording; the exit status, which must be 0 unless it was killed."""
        if self.status is not None:
            return self.status
        self.cpu_s = self.state_and_cpu()[1]
        begin = time.monotonic()
        self.status = end(self.process, sig, seconds)
        self.stop_s = time.monotonic() - begin
        if sig == signal.SIGINT and self.status:
            raise Trouble(f"gbpf trace ended with {self.status}: {tail(self.said)}")
        return self.status

    def close(self):
        if self.process.poll() is None:
            end(self.process, signal.SIGINT, 20)

    def report(self, view, *more):
        done = subprocess.run(
            [self.gbpf, "report", self.path, "--view", view, "--format", "json", *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=60, check=False)
        if done.returncode:
            raise Trouble(f"gbpf report --view {view} ended with {done.returncode}: "
                          f"{done.stderr.decode(errors='replace')[-2000:]}")
        return json.loads(done.stdout)

    def hooked(self):
        """(functions, files) hooked, by the summary; None when it does not say."""
        found = re.search(r"([\d,]+) functions? hooked in ([\d,]+) file", tail(self.said, 20000))
        return [int(n.replace(",", "")) for n in found.groups()] if found else None
