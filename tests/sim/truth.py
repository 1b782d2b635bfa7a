# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a simulated job wrote down about its own calls (truth.h)."""

import functools
import glob
import mmap
import os
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

import truth_line

CHUNK = 65536
NAME_CHUNKS = 64
MAGIC = 0x3148545255544247
CALLS, TOTALS, LINE, NOTES, WORKS = 1, 2, 3, 4, 5
HEADER = struct.Struct("<QIIIIqqQII")
CHUNK_HEAD = struct.Struct("<IIII")
CALL = struct.Struct("<qqIHHiI5Q3I3IIIII")
TOTAL = struct.Struct("<QQQQ")
NOTE = struct.Struct("<qqII")
WHATS = ("", "running", "runnable", "lock", "pipe", "disk", "sleep", "step", "mark",
         "profiled", "profiling", "refused")
WORK = struct.Struct("<qqqQQQ8I3I3II4BII2B2xI")
WORK_KINDS = ("", "kernel", "copy", "set")
UNLINED_AT = CHUNK - 12  # in the header, and after it what was not kept of the GPU's work


@dataclass
class Call:
    """One call; times in ns of CLOCK_MONOTONIC. leave is 0 for a call that never returned."""

    pid: int
    tid: int
    api: str
    entry: int
    leave: int
    ret: int
    depth: int
    func: int
    stream: int
    bytes: int
    pointer: int
    source: int
    grid: Tuple[int, int, int]
    block: Tuple[int, int, int]
    smem: int
    kind: int
    kernel: Optional[bytes]

    @property
    def ns(self) -> int:
        """Time inside the call, ns; 0 if it never returned."""
        return self.leave - self.entry if self.leave else 0

    @property
    def library(self) -> str:
        """driver, runtime or nccl"""
        if self.api.startswith("cuda"):
            return "runtime"
        return "driver" if self.api.startswith("cu") else "nccl"


@dataclass
class Total:
    """What one thread did with one API: calls that returned, errors, ns."""

    calls: int
    errors: int
    ns: int
    max_ns: int


@dataclass
class Note:
    """What a thread did because its job is made so; times in ns of CLOCK_MONOTONIC."""

    tid: int
    what: str
    begin: int
    end: int
    value: int

    def within(self, begin: int, end: int) -> int:
        """ns of it that lie between begin and end"""
        return max(0, min(self.end, end) - max(self.begin, begin))


@dataclass
class Work:
    """What the device did: a kernel, copy or set; times in ns of CLOCK_MONOTONIC."""

    enqueued: int  # the call that caused it handed it over
    begin: int
    end: int
    kind: str
    device: int
    context: int
    stream: int  # ids as CUPTI gives them
    kernel: Optional[bytes]
    grid: Tuple[int, int, int]
    block: Tuple[int, int, int]
    smem: int
    registers: int
    bytes: int
    copy: int  # CUpti_ActivityMemcpyKind
    source: int  # CUpti_ActivityMemoryKind
    target: int
    source_device: int  # where it is a copy between devices
    target_device: int
    is_async: bool
    value: int
    graph: int
    node: int  # 0: launched by itself
    correlation: int  # 0: CUPTI was not looking
    told: int  # the id that CUPTI's record has: of that call, or of one it lost the end of
    tid: int
    call: Optional[Call]  # the innermost call that caused it; None: not kept

    @property
    def ns(self) -> int:
        """How long it took, ns"""
        return self.end - self.begin


@dataclass
class Truth:
    """One process's file."""

    path: str
    pid: int
    parent: int
    opened: int
    closed: int  # ns; 0: the process ended without closing it
    unwritten: int  # calls that are only in totals
    calls: List[Call] = field(default_factory=list)
    totals: Dict[Tuple[int, str], Total] = field(default_factory=dict)  # by (tid, api)
    unlined: int = 0  # threads there was no room for a line for
    lines: List[truth_line.Line] = field(default_factory=list)  # one a thread
    notes: List[Note] = field(default_factory=list)
    unworked: int = 0  # pieces of work there was no room for
    _works: List[bytes] = field(default_factory=list)
    _calls_at: Dict[int, Call] = field(default_factory=dict)  # by their place in the file
    _names: Dict[int, bytes] = field(default_factory=dict)

    @functools.cached_property
    def work(self) -> List[Work]:
        """All that the device did for the process, in the order in which it began."""
        out = [_work(row, self._names, self._calls_at)
               for part in self._works for row in WORK.iter_unpack(part)]
        return sorted(out, key=lambda w: (w.begin, w.end))

    def add(self, call: Call, at: int) -> None:
        """A call whose record is at that place of the file."""
        self.calls.append(call)
        self._calls_at[at] = call

    def count(self, depth: Optional[int] = None) -> Counter:
        """Calls by API, those still open too; at one nesting depth only, if given."""
        return Counter(c.api for c in self.calls if depth is None or c.depth == depth)

    def within(self, start: int, end: int) -> Iterator[Call]:
        """Calls that began and ended in [start, end), ns."""
        return (c for c in self.calls if start <= c.entry and c.leave and c.leave < end)

    def by_thread(self) -> Dict[int, List[Call]]:
        """Each thread's calls in the order of their entry."""
        out = defaultdict(list)
        for call in self.calls:
            out[call.tid].append(call)
        return out

    @functools.cached_property
    def _outer(self) -> Dict[int, Call]:
        out = {}
        for calls in self.by_thread().values():
            stack = []
            for call in calls:
                while stack and stack[-1].depth >= call.depth:
                    stack.pop()
                if call.library == "driver" and stack and stack[-1].library == "runtime":
                    out[id(call)] = stack[-1]
                stack.append(call)
        return out

    def recorded(self, call: Call) -> Call:
        """The call that CUPTI records instead: the runtime's, of a driver's that it made."""
        return self._outer.get(id(call), call)

    def total(self, api: str) -> Total:
        """One API's total over all threads."""
        rows = [t for (_, name), t in self.totals.items() if name == api]
        return Total(sum(t.calls for t in rows), sum(t.errors for t in rows),
                     sum(t.ns for t in rows), max((t.max_ns for t in rows), default=0))

    def _lines(self, tid: Optional[int]) -> List[truth_line.Line]:
        lines = [line for line in self.lines if tid is None or line.tid == tid]
        if not lines or self.unlined:
            raise ValueError(f"{self.path}: no line of every thread: --timeline SECONDS")
        return lines

    def between(self, groups: Union[str, Iterable[str]], begin: int, end: int,
                what: str = "calls", tid: Optional[int] = None) -> float:
        """
        Calls of a group or some, their errors or bytes, that returned from begin to end
        (ns, CLOCK_MONOTONIC), or the ns spent in them, of one thread or all.
        """
        groups = [groups] if isinstance(groups, str) else list(groups)
        return sum(line.between(group, what, begin, end)
                   for line in self._lines(tid) for group in groups)

    def quantiles(self, group: str, begin: int, end: int, qs, tid: Optional[int] = None):
        """[ns] at each of qs, of calls that returned from begin to end; within 1.6 %."""
        parts = [line.histogram(group, begin, end) for line in self._lines(tid)]
        return truth_line.quantiles([sum(counts) for counts in zip(*parts)], qs)

    def live(self, when: int) -> int:
        """Allocations not freed at that moment."""
        def made(group):
            return (self.between(group, self.opened, when)
                    - self.between(group, self.opened, when, "errors"))
        return round(made("alloc") - made("free"))

    def noted(self, what: str, begin: int, end: int, tid: Optional[int] = None) -> int:
        """ns from begin to end in which a thread (or all) is known to have done this"""
        return sum(n.within(begin, end) for n in self.notes
                   if n.what == what and tid in (None, n.tid))


def _names(data, used: int) -> Dict[int, bytes]:
    at, out = CHUNK, {}
    end = CHUNK + used
    while at + 8 <= end:
        ident, length = struct.unpack_from("<II", data, at)
        out[ident] = bytes(data[at + 8:at + 8 + length])
        at += 8 + (length + 7) // 8 * 8
    return out


def _call(pid: int, row, apis: List[str], names: Dict[int, bytes]) -> Call:
    (entry, leave, tid, api, depth, ret, _, func, stream, size, pointer, source,
     gx, gy, gz, bx, by, bz, smem, kind, name, _) = row
    return Call(pid, tid, apis[api], entry, leave, ret, depth, func, stream, size, pointer, source,
                (gx, gy, gz), (bx, by, bz), smem, kind, names.get(name))


def _work(row, names: Dict[int, bytes], calls: Dict[int, Call]) -> Work:
    (enqueued, begin, end, call, size, node, tid, kind, device, context, stream, graph,
     correlation, name, gx, gy, gz, bx, by, bz, smem, copy, source, target, is_async, value,
     registers, source_device, target_device, told) = row
    return Work(enqueued, begin, end, WORK_KINDS[kind], device, context, stream, names.get(name),
                (gx, gy, gz), (bx, by, bz), smem, registers, size, copy, source, target,
                source_device, target_device, bool(is_async), value, graph, node, correlation,
                told, tid, calls.get(call))


def _notes(data, start: int, tid: int, count: int) -> Iterator[Note]:
    for begin, end, what, value in NOTE.iter_unpack(data[start:start + count * NOTE.size]):
        yield Note(tid, WHATS[what], begin, end, value)


def load(path: str) -> Truth:
    """Reads one file, which stays open for its lines. Raises ValueError if it is none."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    truth = _load(path, data)
    if not truth.lines:
        data.close()
    return truth


def _load(path: str, data) -> Truth:
    (magic, chunks, _, pid, parent, opened, closed, unwritten, api_count,
     name_used) = HEADER.unpack_from(data, 0)
    if magic != MAGIC:
        raise ValueError(f"{path}: not a truth file")
    text = bytes(data[HEADER.size:CHUNK]).split(b"\0")
    apis = [""] + [name.decode() for name in text[:api_count - 1]]
    names = _names(data, name_used)
    truth = Truth(path, pid, parent, opened, closed, unwritten)
    truth.unlined, truth.unworked = struct.unpack_from("<II", data, UNLINED_AT)
    truth._names = names
    n = 1 + NAME_CHUNKS
    while n < chunks:
        kind, tid, count, _ = CHUNK_HEAD.unpack_from(data, n * CHUNK)
        start = n * CHUNK + CHUNK_HEAD.size
        if kind == CALLS:
            part = data[start:start + count * CALL.size]
            for at, row in enumerate(CALL.iter_unpack(part)):
                if row[0]:
                    truth.add(_call(pid, row, apis, names), start + at * CALL.size)
        elif kind == WORKS:
            truth._works.append(data[start:start + count * WORK.size])
        elif kind == TOTALS:
            for api in range(1, api_count):
                total = Total(*TOTAL.unpack_from(data, start + api * TOTAL.size))
                if total.calls:
                    truth.totals[tid, apis[api]] = total
        elif kind == LINE and count:
            truth.lines.append(truth_line.Line(data, n * CHUNK, CHUNK, apis, closed))
        elif kind == NOTES:
            truth.notes.extend(_notes(data, start, tid, count))
        n += max(1, count) if kind == LINE else 1
    truth.calls.sort(key=lambda c: (c.entry, c.depth))
    return truth


def load_all(path: str) -> List[Truth]:
    """A job's file and those of the processes it started (FILE.*), by start time."""
    paths = [path] if os.path.exists(path) else []
    paths += glob.glob(glob.escape(path) + ".*")
    return sorted((load(p) for p in paths), key=lambda t: t.opened)
