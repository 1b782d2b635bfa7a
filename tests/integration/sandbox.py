# SPDX-License-Identifier: BSD-2-Clause
"""Seccomp filters for programs under test: what they ask is answered by an error, or kills."""

import ctypes
import functools
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LD_NR, JEQ, RET = 0x20, 0x15, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
BPF, PERF_EVENT_OPEN, URETPROBE = 321, 298, 335  # system calls of x86-64

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4  # addresses are 64 bits wide


def install(call, action):
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (LD_NR, 0, 0, 0), (JEQ, 0, 1, call), (RET, 0, 0, action), (RET, 0, 0, ALLOW)))
    text = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or LIBC.prctl(
            PR_SET_SECCOMP, FILTER, ctypes.addressof(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def answering(call, errno):
    """For preexec_fn: this system call fails with errno."""
    return functools.partial(install, call, ERRNO | errno)


def killing(call):
    """For preexec_fn: this system call ends the process."""
    return functools.partial(install, call, KILL)
