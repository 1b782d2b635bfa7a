# SPDX-License-Identifier: BSD-2-Clause
"""A loader of libgbpf-cupti.so in a few lines: user/sidecar/wire.h, spoken by a test."""
import array
import collections
import mmap
import os
import select
import socket
import struct
import time

HELLO, START, STOP = 1, 2, 3
READY, BEGAN, ENDED, REFUSED, WITHDREW, FAILED, CLOCK = 16, 17, 18, 19, 20, 21, 22
ALL_API, OVERHEAD, OWN_CUPTI, FOREIGN, WITH_CALLS = 1, 2, 4, 8, 16
WORK, CALL, SHAPE, DEVICE, OVERHEADS = 1, 2, 3, 4, 5
KERNEL, COPY, SET = 1, 2, 3
HEADER = 4096
RING = 8 << 20
MESSAGE = struct.Struct("<IIIiIIQqqqqQ256s")

Message = collections.namedtuple(
    "Message", "type version flags code cupti pid size window before stamp after dropped text")
Work = collections.namedtuple(
    "Work", "begin end kind device context stream correlation shape graph direction graph_node "
    "bytes source target channel channel_type priority peer")
Call = collections.namedtuple("Call", "begin end tid domain cbid correlation ret")
Shape = collections.namedtuple(
    "Shape", "id registers grid block smem_static smem_dynamic local name")
Device = collections.namedtuple("Device", "memory ordinal properties uuid name")


def parse(kind, data):
    if kind == WORK:
        return Work(*struct.unpack_from("<qq8IQQ4IiI", data, 8))
    if kind == CALL:
        return Call(*struct.unpack_from("<qq4Ii", data, 8))
    if kind == SHAPE:
        f = struct.unpack_from("<12I", data, 8)
        size = f[11]
        assert data[56 + size - 1] == 0 and len(data) - 56 - size < 8
        return Shape(f[0], f[1], f[2:5], f[5:8], f[8], f[9], f[10], bytes(data[56:55 + size]))
    if kind == DEVICE:
        memory, ordinal = struct.unpack_from("<qI", data, 8)
        return Device(memory, ordinal, struct.unpack_from("<13i", data, 20),
                      bytes(data[72:88]), data[88:216].split(b"\0")[0].decode())
    return struct.unpack_from("<qqII", data, 8)


class Loader:
    """One connection. Give it the loader's end of a socket."""

    def __init__(self, end, size=HEADER + RING):
        self.socket = end
        self.fd = os.memfd_create("ring", os.MFD_CLOEXEC)
        self.size = size
        os.ftruncate(self.fd, size)
        self.ring = mmap.mmap(self.fd, size)
        self.records = collections.defaultdict(list)
        self.clocks = []
        self.pause = False

    def close(self):
        self.socket.close()
        self.ring.close()
        os.close(self.fd)

    def send(self, kind, flags=0, window=0, text="", size=0, fd=None, version=1):
        data = MESSAGE.pack(kind, version, flags, 0, 0, 0, size, window, 0, 0, 0, 0, text.encode())
        rights = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.socket.sendmsg([data], rights)

    def hello(self, flags=0, text="", size=None):
        self.send(HELLO, flags, text=text, size=self.size if size is None else size, fd=self.fd)
        return self.answer()

    def start(self, seconds=60.0):
        self.send(START, window=int(seconds * 1e9))
        return self.answer()

    def stop(self, flags=0):
        self.send(STOP, flags)
        return self.answer()

    def answer(self, timeout=10):
        """The next message that is not CLOCK; None: the sidecar has closed the socket."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            assert left > 0, "no answer"
            if not self.pause:
                self.drain()
            if not select.select([self.socket], [], [], min(left, 0.02))[0]:
                continue
            try:
                data = self.socket.recv(4096)
            except ConnectionResetError:
                return None
            if not data:
                return None
            message = Message(*MESSAGE.unpack(data))
            message = message._replace(text=message.text.split(b"\0")[0].decode())
            assert message.version == 1
            if message.type != CLOCK:
                return message
            self.clocks.append(message)

    def wait(self, seconds):
        """Takes what comes meanwhile; an answer ends it."""
        try:
            return self.answer(seconds)
        except AssertionError:
            return False

    def counters(self):
        """dropped, [zero, negative, form, name]"""
        got = struct.unpack_from("<5Q", self.ring, 8)
        return got[0], list(got[1:])

    def running(self):
        """Works that had not ended when the window's last records were taken."""
        return struct.unpack_from("<Q", self.ring, 48)[0]

    def drain(self):
        head, = struct.unpack_from("<Q", self.ring, 0)
        tail, = struct.unpack_from("<Q", self.ring, 64)
        data = self.size - HEADER
        while tail < head:
            at = HEADER + tail % data
            size, kind = struct.unpack_from("<II", self.ring, at)
            assert size >= 8 and size % 8 == 0 and size <= head - tail
            assert tail % data + size <= data, "a record goes over the end"
            if kind:
                self.records[kind].append(parse(kind, self.ring[at:at + size]))
            tail += size
        struct.pack_into("<Q", self.ring, 64, tail)

    def took(self, kind):
        self.drain()
        return self.records[kind]

    def works(self, kind):
        return [w for w in self.took(WORK) if w.kind == kind]
