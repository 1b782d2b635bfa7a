# SPDX-License-Identifier: BSD-2-Clause
"""The example in docs/format.md is what the rules there give, byte by byte.

This is a second implementation, from the document and not from the code. The
unit tests (tests/unit/record_example.h) read the same bytes with the first.
"""
import re
import struct
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_TIME = (2**63 - 1, -(2**63))


def constant(value):
    return struct.pack("<BQ", 0, value)


def planes(*values):
    width = max(1, (max(values).bit_length() + 7) // 8)
    split = [value.to_bytes(width, "little") for value in values]
    return bytes([width]) + bytes(v[i] for i in range(width) for v in split)


def zigzag(difference):
    return 2 * difference if difference >= 0 else -2 * difference - 1


def string(text):
    return constant(len(text)) + text + b"\0"


def chunk(kind, count, content, times=NO_TIME):
    head = b"CHNK" + struct.pack("<BBHIII", kind, 0, 0, len(content), len(content), count)
    head += struct.pack("<IqqI", zlib.crc32(content), *times, 0)
    return head + struct.pack("<I", zlib.crc32(head)) + content


def header(realtime):
    head = b"GBPF\r\n\x1a\n" + struct.pack("<HHIqI", 1, 0, 32, realtime, 0)
    return head + struct.pack("<I", zlib.crc32(head))


def events(begin, end):
    """A launch of one thread at `begin`, returning 0 at `end`."""
    site_fields = 3 << 8 | 2 << 24
    content = struct.pack("<QI", begin, 1) + constant(5) + constant(7)
    content += constant(0)  # thread
    content += planes(1 | site_fields, 3)
    content += constant(zigzag(0)) + constant(0x1000)
    content += constant(zigzag(end - begin)) + constant(0)
    for value in (0x5500, 0, 0, 4, 1, 1, 256, 1, 1):
        content += constant(value)
    return content + constant(0)  # ret


def example():
    begin, end = 1_000_000, 1_000_900
    parts = [header(1_700_000_000_000_000_000)]
    entries = b""
    for kind, count, content, times in (
        (11, 1, string(b"host") + string(b"n1"), NO_TIME),
        (1, 2, events(begin, end), (begin, end)),
    ):
        offset = sum(map(len, parts))
        entries += struct.pack("<QqqIIQ", offset, *times, 1, 1 << kind, count)
        parts.append(chunk(kind, count, content, times))
    index = sum(map(len, parts))
    parts.append(chunk(255, 2, entries))
    return b"".join(parts) + struct.pack("<Q", index) + b"GBPF-END"


def dump(data):
    lines = (data[i : i + 16].hex(" ") for i in range(0, len(data), 16))
    return "\n".join(f"{16 * n:04x}  {line}" for n, line in enumerate(lines))


def test_document_shows_what_its_rules_give():
    text = (ROOT / "docs/format.md").read_text()
    shown = re.findall(r"^[0-9a-f]{4}  ([0-9a-f ]+)$", text, re.M)
    assert bytes.fromhex(" ".join(shown)) == example()


def test_unit_tests_read_the_same_bytes():
    text = (ROOT / "tests/unit/record_example.h").read_text()
    assert bytes(int(b, 16) for b in re.findall(r"0x([0-9a-f]{2})\b", text)) == example()
