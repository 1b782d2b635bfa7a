# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command as systemd would under the settings of a unit file, as far as gbpf can tell.

    confine.py UNIT COMMAND…

as root: capabilities, user, no new privileges, system calls, memory that is written and
executed, namespaces, address families, what is mounted read-only or hidden, number of files.
Not done here: the devices, limits on memory and tasks, addresses.
"""
import ctypes
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys

import sandbox

USER = 62001  # as DynamicUser= picks them
LD, JEQ, JSET, AND, RET = 0x20, 0x15, 0x45, 0x54, 0x06
ARGUMENT = 16  # offset of the first argument in struct seccomp_data; low half first
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18


def settings(path):
    """{key: [values]} of the [Service] section; "%%" is a percent sign."""
    found, section = {}, None
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value.replace("%%", "%"))
    return found


def numbers():
    """System calls of this machine by name, as its headers have them."""
    text = "#include <sys/syscall.h>\n"
    done = subprocess.run(["gcc", "-E", "-dM", "-"], input=text, text=True, check=True,
                          stdout=subprocess.PIPE)
    return {n: int(v) for n, v in re.findall(r"^#define __NR_(\w+) (\d+)$", done.stdout, re.M)}


def members(group):
    """Names of the system calls of a group of systemd's, those of its groups included."""
    done = subprocess.run(["systemd-analyze", "syscall-filter", group], text=True, check=True,
                          stdout=subprocess.PIPE)
    for line in done.stdout.split("\n")[1:]:
        word = line.strip()
        if word.startswith("@"):
            yield from members(word)
        elif word and not word.startswith("#"):
            yield word


def denied(unit):
    """Numbers of the system calls that SystemCallFilter= denies."""
    known = numbers()
    (value,) = unit["SystemCallFilter"]
    assert value.startswith("~"), "what is allowed is listed, and uretprobe is not among it"
    names = set()
    for word in value[1:].split():
        names |= set(members(word)) if word.startswith("@") else {word}
    return sorted(known[n] for n in names if n in known)


def filter_of(unit):
    """The lines of a seccomp filter, each an instruction."""
    nr = numbers()

    def refuse(code):
        return (RET, 0, 0, sandbox.ERRNO | code)

    def when(name, *lines):  # after the last of them nothing goes on
        return [(JEQ, 0, len(lines), nr[name]), *lines]

    allow = (RET, 0, 0, sandbox.ALLOW)
    program = [(LD, 0, 0, 0)]
    for call in denied(unit):
        program += [(JEQ, 0, 1, call), refuse(EPERM)]
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        program += when("mmap", (LD, 0, 0, ARGUMENT + 16), (AND, 0, 0, 6), (JEQ, 0, 1, 6),
                        refuse(EPERM), allow)
        for name in ("mprotect", "pkey_mprotect"):
            program += when(name, (LD, 0, 0, ARGUMENT + 16), (JSET, 0, 1, 4), refuse(EPERM), allow)
    if unit["RestrictNamespaces"] == ["yes"]:
        program += when("clone3", refuse(ENOSYS))
        program += when("unshare", refuse(EPERM)) + when("setns", refuse(EPERM))
        program += when("clone", (LD, 0, 0, ARGUMENT), (JSET, 0, 1, 0x7E020000), refuse(EPERM),
                        allow)
    families = [int(getattr(socket, f)) for f in unit["RestrictAddressFamilies"][0].split()]
    lines = [line for f in families for line in ((JEQ, 0, 1, f), allow)]
    program += when("socket", (LD, 0, 0, ARGUMENT), *lines, refuse(EAFNOSUPPORT))
    return program + [allow]


def install(program):
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    text = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(text)))
    if sandbox.LIBC.prctl(sandbox.PR_SET_SECCOMP, sandbox.FILTER, ctypes.addressof(header), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def mount(source, target, flags):
    if sandbox.LIBC.mount(source.encode(), target.encode(), b"none", flags, None):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def hide(unit):
    """A mount namespace in which little can be written and some things are not seen."""
    if sandbox.LIBC.unshare(0x20000):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", MS_REC | MS_PRIVATE)
    if unit["PrivateTmp"] == ["yes"]:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
    if unit["ProtectKernelTunables"] == ["yes"]:
        mount("/dev/null", "/proc/kallsyms", MS_BIND)
        mount("none", "/sys", MS_REMOUNT | MS_BIND | MS_RDONLY)
    if unit["ProtectSystem"] == ["strict"]:
        mount("none", "/", MS_REMOUNT | MS_BIND | MS_RDONLY)


def main(path, *command):
    unit = settings(path)
    caps = ",".join(f"+{cap[4:].lower()}" for cap in unit["AmbientCapabilities"][0].split())
    bound = ",".join(f"+{cap[4:].lower()}" for cap in unit["CapabilityBoundingSet"][0].split())
    lines = filter_of(unit)
    files = int(unit["LimitNOFILE"][0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    setpriv = shutil.which("setpriv")
    hide(unit)
    install(lines)
    os.execv(setpriv, [
        setpriv, f"--reuid={USER}", f"--regid={USER}", "--clear-groups", f"--inh-caps=-all,{caps}",
        f"--ambient-caps=-all,{caps}", f"--bounding-set=-all,{bound}", "--no-new-privs",
        *command])


if __name__ == "__main__":
    main(*sys.argv[1:])
