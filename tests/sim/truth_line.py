# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a thread called by time (truth_line.h): counts, time and durations in bins."""

import struct
from array import array
from itertools import accumulate
from typing import Dict, List, Sequence

HEAD = struct.Struct("<8Iqq")
NAME_BYTES = 16
NAMES = 16
BUCKETS = 1024
FIRST_OCTAVE = 6
AN_OCTAVE = 32
FIELDS = {"ns": ("Q", 0, 8), "bytes": ("Q", 8, 8), "calls": ("I", 16, 4), "errors": ("I", 20, 4)}


def bucket_bounds(bucket: int):
    """ns of a bucket: [low, high)."""
    octave, part = divmod(bucket, AN_OCTAVE)
    base = 1 << (FIRST_OCTAVE + octave)
    low = 0 if bucket == 0 else base + part * base // AN_OCTAVE
    return low, base + (part + 1) * base // AN_OCTAVE


def quantiles(counts: Sequence[float], qs: Sequence[float]) -> List[float]:
    """ns at each quantile, interpolated within its bucket; nothing counted: ValueError."""
    total = sum(counts)
    if not total:
        raise ValueError("no calls")
    sums = list(accumulate(counts))
    out = []
    for q in qs:
        want = q * total
        bucket = next(i for i, s in enumerate(sums) if s >= want and counts[i])
        low, high = bucket_bounds(bucket)
        share = (want - (sums[bucket] - counts[bucket])) / counts[bucket]
        out.append(low + (high - low) * min(1.0, max(0.0, share)))
    return out


class Line:
    """One thread's calls by time. Times are ns of CLOCK_MONOTONIC."""

    def __init__(self, data, at: int, chunk: int, apis: List[str], closed: int):
        (_, self.tid, self.chunks, groups, self.bins, self.rows, self.bins_a_row, self.last,
         self.start, self.bin_ns) = HEAD.unpack_from(data, at)
        self.closed = closed
        at_names = at + HEAD.size
        self.groups = [bytes(data[at_names + i * NAME_BYTES:at_names + (i + 1) * NAME_BYTES])
                       .rstrip(b"\0").decode() for i in range(groups)]
        at_group_of = at_names + NAMES * NAME_BYTES
        self.group_of = {api: self.groups[data[at_group_of + i]] for i, api in enumerate(apis)
                         if api}
        self._data = data
        self._groups_at = at + chunk
        self._group_bytes = -(-self.bins * 24 // chunk) * chunk
        self._rows_at = self._groups_at + groups * self._group_bytes
        self._row_bytes = -(-self.rows * 4 * BUCKETS // chunk) * chunk
        self.used = min(self.last + 1, self.bins - 1)
        self._sums: Dict = {}

    @property
    def end(self) -> int:
        """The end of the time there is room for; later calls are in no bin."""
        return self.start + (self.bins - 1) * self.bin_ns

    def bin(self, group: str, field: str) -> array:
        """A group's calls, errors, ns or bytes in each bin that was used."""
        code, before, size = FIELDS[field]
        at = self._groups_at + self.groups.index(group) * self._group_bytes + before * self.bins
        out = array(code)
        out.frombytes(self._data[at:at + self.used * size])
        return out

    def _until(self, group: str, field: str, t: int) -> float:
        key = group, field
        if key not in self._sums:
            bins = self.bin(group, field)
            self._sums[key] = bins, [0, *accumulate(bins)]
        bins, sums = self._sums[key]
        whole, part = divmod(t - self.start, self.bin_ns)
        if whole < 0:
            return 0
        if whole >= len(bins) or 0 < self.closed <= t:
            return sums[-1]
        return sums[whole] + bins[whole] * part / self.bin_ns

    def between(self, group: str, field: str, begin: int, end: int) -> float:
        """What there was from begin to end: exact at the edges of bins, else interpolated."""
        if end > self.end:
            raise ValueError(f"the line ends before {end}: a longer --timeline")
        return self._until(group, field, end) - self._until(group, field, begin)

    def histogram(self, group: str, begin: int, end: int) -> List[float]:
        """Calls by duration that returned from begin to end; rows at the edges in proportion."""
        out = [0.0] * BUCKETS
        row_ns = self.bins_a_row * self.bin_ns
        at = self._rows_at + self.groups.index(group) * self._row_bytes
        first = max(0, (begin - self.start) // row_ns)
        last = min((end - self.start - 1) // row_ns, (self.used - 1) // self.bins_a_row)
        for row in range(first, last + 1):
            low = self.start + row * row_ns
            high = low + row_ns
            if low < self.closed < high:
                high = self.closed
            share = max(0, min(end, high) - max(begin, low)) / (high - low)
            counts = array("I")
            counts.frombytes(self._data[at + row * 4 * BUCKETS:at + (row + 1) * 4 * BUCKETS])
            for bucket in range(BUCKETS):
                if counts[bucket]:
                    out[bucket] += counts[bucket] * share
        return out
