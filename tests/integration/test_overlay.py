# SPDX-License-Identifier: BSD-2-Clause
"""The overlay helper makes what it promises, and leaves nothing."""
import os
import pathlib
import subprocess

import pytest

from overlay import two_overlays

pytestmark = [pytest.mark.parallel, pytest.mark.root]

# Maps the first page of a file executable, says so and waits for the end of its input.
MAPPER = """
import mmap, sys
f = open(sys.argv[1], "rb")
m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
sys.stdin.read()
"""


def start_mapper(overlay, name):
    mapper = overlay.popen(
        ["/usr/bin/python3", "-c", MAPPER, overlay.root / name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    assert mapper.stdout.readline() == "mapped\n"
    return mapper


def executable_mapping(pid, name):
    """(range, device) of the mapping whose path ends with name."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].endswith(name) and "x" in fields[1]:
            return fields[0], fields[3]
    raise AssertionError(f"{name} is not mapped")


def mapped_bytes(pid, address_range):
    start, end = (int(part, 16) for part in address_range.split("-"))
    canonical = f"{start:x}-{end:x}"
    return pathlib.Path(f"/proc/{pid}/map_files/{canonical}").read_bytes()


def test_one_file_shows_two_devices(tmp_path):
    source = tmp_path / "libcuda.so.1"
    source.write_bytes(os.urandom(8192))
    with two_overlays({"lib/libcuda.so.1": source}) as overlays:
        mappers = [start_mapper(overlay, "lib/libcuda.so.1") for overlay in overlays]
        ranges, devices = zip(*(executable_mapping(m.pid, "/libcuda.so.1") for m in mappers))
        assert devices[0] != devices[1]
        for mapper, address_range in zip(mappers, ranges):
            assert mapped_bytes(mapper.pid, address_range) == source.read_bytes()
        # Where the host looks, there is nothing: as with a container's files.
        assert not overlays[0].root.exists()
        for mapper in mappers:
            mapper.communicate()
            assert mapper.returncode == 0


def test_nothing_is_left_behind(tmp_path):
    source = tmp_path / "file"
    source.write_bytes(b"x")
    with two_overlays({"file": source}) as overlays:
        path = overlays[0].root.parent
        holders = [overlay.holder.pid for overlay in overlays]
        overlays[0].run(["sh", "-c", 'echo changed > "$1"', "sh", overlays[0].root / "file"])
        seen = [
            overlay.run(["cat", overlay.root / "file"], capture_output=True).stdout
            for overlay in overlays
        ]
        assert seen == [b"changed\n", b"x"]
    assert str(path) not in pathlib.Path("/proc/self/mountinfo").read_text()
    assert not path.exists()
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in holders)
