# SPDX-License-Identifier: BSD-2-Clause
"""Where probes are seen from outside: in the memory of those who are probed."""

import os
import pathlib
import subprocess


def tool(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def place_in_file(library, function):
    value = next(int(line.split()[0], 16) for line in tool("nm", "-D", library).splitlines()
                 if line.split()[-1].split("@")[0] == function)
    code = next(line.split() for line in tool("readelf", "-lW", library).splitlines()
                if line.split()[:1] == ["LOAD"] and "R E" in line)
    return value - int(code[2], 16) + int(code[1], 16)


def mapping(pid, library):
    """(address, offset in the file) of its code."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split()
        if fields[-1] == library and "x" in fields[1]:
            return int(fields[0].split("-")[0], 16), int(fields[2], 16)
    raise AssertionError(f"{library} is not mapped")


def probed(pid, library, function):
    """Does the memory of pid differ from the file where this function begins?"""
    library = os.path.realpath(library)
    place = place_in_file(library, function)
    address, offset = mapping(pid, library)
    with open(f"/proc/{pid}/mem", "rb") as memory, open(library, "rb") as file:
        memory.seek(address + place - offset)
        file.seek(place)
        return memory.read(1) != file.read(1)
