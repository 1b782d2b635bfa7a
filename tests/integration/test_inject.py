# SPDX-License-Identifier: BSD-2-Clause
"""A library gets into a running process; no call is cut short and nothing is left behind."""
import errno
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import sandbox
from gbpf import wait_until
from inject import (PAYLOAD, TARGET, WAITS, Said, compiled, inject, start_inject, target,
                    unharmed)

pytestmark = [pytest.mark.root]

MEMFD_CREATE = 319  # on x86-64


def test_no_wait_is_cut_short():
    with target(*WAITS) as t:
        before = t.state()
        said = inject(t.pid, times=8)
        assert [s.err for s in said] == [0] * 8, said
        assert [s.runs for s in said] == [1] * 8  # each is a library of its own
        threads = os.listdir(f"/proc/{t.pid}/task")
        for s in said:
            assert (s.returned, s.pid) == (42, t.pid) and str(s.tid) in threads
            assert 0 < s.longest <= s.stopped
        assert t.state(said) == before
        assert t.proc("maps").count("r-xp") >= 8
        unharmed(t)


def test_without_a_cpu_it_says_what_it_leaves():
    """The borrowed thread waits for 70 ms, then goes on by itself; its memory stays."""
    with target(*WAITS) as t:
        run = start_inject(t.pid, "lib.so", times=6)
        for n in itertools.count():
            time.sleep(n % 8 / 2000)
            run.send_signal(signal.SIGSTOP)
            if run.poll() is not None:
                break
            time.sleep(0.12)
            run.send_signal(signal.SIGCONT)
        said = [Said(line) for line in run.stdout.read().splitlines()]
        assert [(s.err, s.runs) for s in said] == [(0, 1)] * 6, said
        assert t.anonymous_code() == sum(s.left for s in said) > 0
        unharmed(t)


def test_registers_memory_and_stacks_stay_as_they_were():
    """Threads that look at every register, below their stack, and at what malloc() gave."""
    with target("regs", "deep", "malloc", "regs") as t:
        said = inject(t.pid, times=12)
        assert [s.err for s in said] == [0] * 12, said
        unharmed(t)


def test_beside_signals_dlopen_and_children():
    with target("storm", "dlopen", "spawn", "fork", "malloc", "poll") as t:
        said = inject(t.pid, times=4)
        assert [s.err for s in said] == [0] * 4, said
        unharmed(t)


def test_handler_that_interrupted_malloc():
    """The thread waits, but holds the allocator's lock: dlopen() would wait for itself."""
    with target("handler") as t:
        said = inject(t.pid, limit_ms=400)
        assert said.err == -errno.EAGAIN and "at a safe place" in said.why, said
        unharmed(t)


def test_beside_a_constructor_that_waits(tmp_path):
    """It holds the dynamic linker's lock meanwhile, which others had to wait for."""
    library = compiled(tmp_path, "#include <poll.h>\n__attribute__((constructor)) "
                       "static void wait(void) { for (int i = 0; i < 20; i++) poll(0, 0, 2); }",
                       "-shared", "-fPIC")
    with target("dlopen", "poll", "regs", env={"INJECT_TARGET_LIBRARY": str(library)}) as t:
        said = inject(t.pid, times=4)
        assert [s.err for s in said] == [0] * 4, said
        unharmed(t)


def traced_once(t):
    """Until a thread is traced; its moment is short, so look without pause."""
    files = [open(f"/proc/{t.pid}/task/{task}/status", "rb", buffering=0)
             for task in os.listdir(f"/proc/{t.pid}/task")]
    try:
        while all(b"TracerPid:\t0\n" in os.pread(f.fileno(), 400, 0) for f in files):
            pass
    finally:
        for f in files:
            f.close()


def kill_at_random(t, rounds):
    """Kills injectors: every other one when it has just got hold of a thread, or a bit later."""
    for i in range(rounds):
        injector = start_inject(t.pid, f"lib{i}.so", times=100)
        injector.stdout.readline()  # from here on it injects all the time
        if i % 2:
            time.sleep(random.uniform(0, 0.02))
        else:
            traced_once(t)
            end = time.monotonic() + random.uniform(0, 0.001)
            while time.monotonic() < end:
                pass
        injector.kill()
        injector.communicate()
        assert os.path.exists(f"/proc/{t.pid}"), f"died after {i} rounds"


def test_gbpf_killed_in_the_middle():
    with target("regs", "poll", "epoll", "deep") as t:
        masks = t.threads("SigBlk")
        kill_at_random(t, 8)
        wait_until(lambda: t.threads("SigBlk") == masks)
        assert set(t.threads("TracerPid")) == {"0"}
        assert inject(t.pid, name="after.so").err == 0
        unharmed(t)


def test_twice_is_once():
    with target("poll") as t:
        first = inject(t.pid, name="lib.so", entry="entry_keep")
        assert first.err == 0
        # entry() got its end of the socket, and nothing else is left of it
        assert os.readlink(f"/proc/{t.pid}/fd/{first.returned}").startswith("socket:")
        second = inject(t.pid, name="lib.so")
        assert second.err == -errno.EALREADY and "lib.so is loaded" in second.why
        unharmed(t)


@pytest.mark.parametrize("wrapper", [
    "unshare -m -p -f --mount-proc -n -i -u".split(),
    "unshare -U -r -m -p -f --mount-proc -n".split(),
], ids=["root", "user"])
def test_in_other_namespaces(wrapper):
    with target("poll", "regs", wrapper=wrapper) as t:
        said = inject(t.pid)
        assert said.err == 0, said
        assert said.pid in (1, 2)  # as the process itself sees it
        unharmed(t)


# ---- what cannot be loaded, and what does not return ----

def test_library_that_is_none(tmp_path):
    broken = tmp_path / "broken.so"
    broken.write_bytes(PAYLOAD.read_bytes()[:100])
    with target("poll", "regs") as t:
        before = t.state()
        cut = inject(t.pid, library=broken)
        assert cut.err == -errno.ELIBACC and "cannot read file data" in cut.why, cut
        said = inject(t.pid, entry="nothing")
        assert said.err == -errno.ELIBACC and "undefined symbol: nothing" in said.why, said
        assert t.state([cut, said]) == before
        unharmed(t)


def test_entry_that_crashes():
    with target("poll", "regs") as t:
        said = inject(t.pid, entry="entry_crash")
        assert said.err == -errno.EFAULT and "crashed" in said.why, said
        unharmed(t)


def test_entry_that_does_not_return():
    """It is not waited for; when it returns the thread goes on as if nothing had been."""
    with target("regs") as t:
        said = inject(t.pid, entry="entry_slow")
        assert said.err == -errno.ETIMEDOUT and "goes on by itself" in said.why, said
        time.sleep(1.5)
        rounds, complaints, status = t.finish()
        assert (complaints, status) == ("", 0) and rounds["regs"] > 10


def test_injector_without_a_cpu():
    """While it cannot look on, the borrowed thread goes on by itself: then it is tried again."""
    with target("regs", "poll") as t:
        injector = start_inject(t.pid, "lib.so", times=12)
        while injector.poll() is None:
            time.sleep(random.uniform(0.001, 0.015))
            injector.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            injector.send_signal(signal.SIGCONT)
        said = [Said(line) for line in injector.communicate()[0].splitlines()]
        assert [s.err for s in said] == [0] * 12, said
        unharmed(t)


def test_target_that_ends_in_the_middle():
    for wait in (0.2, 0.35):
        with target("poll", "epoll") as t:
            injector = start_inject(t.pid, "lib.so", times=1000)
            injector.stdout.readline()
            time.sleep(wait)
            t.process.kill()
            lines = injector.communicate(timeout=30)[0].splitlines()
            assert lines[-1].startswith("err=-3 "), lines[-1]


def test_target_that_becomes_another_program(tmp_path):
    """Each execve() puts everything elsewhere; what was known is of no use then."""
    program = compiled(tmp_path, r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char left[16];
	int i, n = argc > 1 ? atoi(argv[1]) : 30;

	if (argc < 2)
		puts("ready"), fflush(stdout);
	for (i = 0; i < 8; i++)
		if (poll(NULL, 0, 2))
			return 1;
	if (!n)
		return 0;
	snprintf(left, sizeof(left), "%d", n - 1);
	return execl("/proc/self/exe", argv[0], left, NULL);
}
""")
    with target(program=program) as t:
        errors = set()
        while t.process.poll() is None:
            errors.add(inject(t.pid, limit_ms=300).err)
        assert errors <= {0, -errno.EAGAIN, -errno.ESRCH, -errno.EALREADY, -errno.EOPNOTSUPP}
        assert t.process.returncode == 0, t.process.stderr.read()


# ---- refused before anything is touched ----

def refused(pid, error, why, **options):
    said = inject(pid, **options)
    assert said.err == -error and why in said.why and said.stopped == 0, said


def test_no_thread_that_waits():
    with target("spin") as t:
        begin = time.monotonic()
        refused(t.pid, errno.EAGAIN, "No thread", limit_ms=300)
        assert time.monotonic() - begin < 30
        unharmed(t)


TRACER = """
import ctypes, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print("traces", flush=True)
sys.stdin.read()
"""


def test_traced():
    with target("poll") as t:
        with subprocess.Popen([sys.executable, "-c", TRACER, str(t.pid)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
            assert tracer.stdout.readline() == "traces\n"
            refused(t.pid, errno.EPERM, f"Process {tracer.pid} traces it")
        assert inject(t.pid).err == 0
        unharmed(t)


def test_stopped():
    with target("poll") as t:
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: t.threads("State")[0].startswith("T"))
        refused(t.pid, errno.EBUSY, "stopped by a signal")
        assert t.threads("State")[0].startswith("T")


def test_seccomp_that_is_harmless():
    """As in containers: calls that nobody needs here fail."""
    with target("poll", "regs", preexec_fn=sandbox.answering(sandbox.BPF, errno.EPERM)) as t:
        said = inject(t.pid, times=2)
        assert [s.err for s in said] == [0, 0], said
        unharmed(t)


@pytest.mark.parametrize("filter_of", [
    sandbox.answering(MEMFD_CREATE, errno.EPERM), sandbox.killing(sandbox.BPF)],
    ids=["needed", "kills"])
def test_seccomp_that_is_not(filter_of):
    with target("poll", "regs", preexec_fn=filter_of) as t:
        said = inject(t.pid)
        assert said.err == -errno.EOPNOTSUPP and "seccomp" in said.why, said
        assert re.search(rf"system call ({MEMFD_CREATE}|{sandbox.BPF})\b", said.why)
        unharmed(t)


def test_static(tmp_path):
    program = compiled(tmp_path, '#include <poll.h>\n#include <stdio.h>\n'
                       'int main() { puts("ready"); fflush(stdout); return poll(0, 0, 9000); }',
                       "-static")
    with target(program=program) as t:
        refused(t.pid, errno.EOPNOTSUPP, "linked statically")


def test_no_proc(tmp_path):
    """As in a chroot: the library could not be named."""
    with target("poll", wrapper=["unshare", "-m", "sh", "-c",
                                 f'mount -t tmpfs none /proc && exec "{TARGET}" poll']) as t:
        refused(t.process.pid, errno.EOPNOTSUPP, "no /proc")


def test_no_process():
    ended = subprocess.Popen(["true"])
    ended.wait()
    refused(ended.pid, errno.ESRCH, "no such process")
    refused(2, errno.EOPNOTSUPP, "thread of the kernel")
    with target("poll") as t:
        thread = max(map(int, os.listdir(f"/proc/{t.pid}/task")))
        refused(thread, errno.ESRCH, "no such process")
