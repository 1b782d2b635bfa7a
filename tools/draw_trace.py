#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Draws a Perfetto trace as SVG, for the documentation: what is drawn was read from the file.

  tools/draw_trace.py run.pftrace FROM TO > picture.svg     FROM and TO in us since the first slice
"""
import html
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "integration"))
import perfetto_trace  # noqa: E402

WIDTH, LEFT, ROW, GAP = 1200, 190, 17, 16
COLOURS = ("#7fa8d6", "#8cc6a4", "#d9b56a", "#c79ac9", "#d98f7e", "#9fb2b5", "#b7b36f", "#89a0d9")
WAIT = "#e06a5a"


class Picture:
    def __init__(self, begin, end):
        self.begin, self.end = begin, end
        self.parts, self.y = [], 34
        self.places = {}  # of what is drawn: middle of its upper and lower edge

    def x(self, ts):
        share = (ts - self.begin) / (self.end - self.begin)
        return LEFT + min(max(share, 0), 1) * (WIDTH - LEFT - 10)

    def add(self, text):
        self.parts.append(text)

    def label(self, text, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.add(f'<text x="6" y="{self.y + 12}"{weight}>{html.escape(text[:28])}</text>')

    def heading(self, text):
        self.y += 4
        self.label(text, True)
        self.y += ROW + 2

    def box(self, what, row, colour):
        left, right = self.x(what.begin), self.x(what.end)
        top = self.y + row * ROW
        wide = max(right - left, 1)
        self.add(f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{ROW - 2}" '
                 f'fill="{colour}"/>')
        fits = int(wide / 6.2)
        if fits > 3:
            self.add(f'<text x="{left + 3:.1f}" y="{top + 12}">'
                     f'{html.escape(what.name[:fits])}</text>')
        self.places[id(what)] = (left, top, top + ROW - 2)

    def rows(self, label, slices, depth):
        """A track: its slices that are in sight, each on its row."""
        seen = [s for s in slices if s.end > self.begin and s.begin < self.end]
        if not seen:
            return
        self.label(label)
        for s in seen:
            wait = "wait" in getattr(s, "categories", ())
            self.box(s, depth(s), WAIT if wait else colour(s.name))
        self.y += (max(map(depth, seen)) + 1) * ROW + GAP

    def line(self, label, points):
        """A counter, as steps between 0 and its highest value in sight."""
        seen = [p for p in points if p[0] < self.end]
        first = max((i for i, p in enumerate(seen) if p[0] <= self.begin), default=0)
        seen = seen[first:]
        top = max((v for _, v in seen), default=0)
        if not top:
            return
        self.label(f"{label} ({top:g})")
        path, low = [], self.y + ROW - 2
        for (ts, value), (until, _) in zip(seen, seen[1:] + [(self.end, 0)]):
            y = low - value / top * (ROW - 4)
            path += [f"{self.x(ts):.1f},{y:.1f}", f"{self.x(until):.1f},{y:.1f}"]
        self.add(f'<polyline fill="none" stroke="#456" points="{" ".join(path)}"/>')
        self.y += ROW + GAP

    def arrow(self, source, target):
        if id(source) in self.places and id(target) in self.places:
            x0, _, y0 = self.places[id(source)]
            x1, y1, _ = self.places[id(target)]
            self.add(f'<path d="M{x0:.1f},{y0} C{x0:.1f},{y0 + 30} {x1:.1f},{y1 - 30} '
                     f'{x1:.1f},{y1}" fill="none" stroke="#333" stroke-opacity="0.35"/>')

    def svg(self, title):
        span = (self.end - self.begin) / 1000
        return "\n".join([
            "<!-- SPDX-License-Identifier: BSD-2-Clause -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.y + 6}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{WIDTH}" height="{self.y + 6}" fill="#fff"/>',
            f'<text x="6" y="18" font-size="13">{html.escape(title)}: {span:g} us</text>',
            *self.parts, "</svg>"])


def colour(name):
    return COLOURS[zlib.crc32(name.encode()) % len(COLOURS)]


def stack(stages):
    """Rows of GPU work that overlaps: {id: row}."""
    rows, out = [], {}
    for s in sorted(stages, key=lambda s: s.begin):
        row = next((i for i, end in enumerate(rows) if end <= s.begin), len(rows))
        rows[row:row + 1] = [s.end]
        out[id(s)] = row
    return out


def draw(path, low, high):
    trace = perfetto_trace.Trace(path)
    first = min(s.begin for s in trace.slices if s.track in trace.threads)
    p = Picture(first + low * 1000, first + high * 1000)
    for process in trace.processes.values():
        p.heading(f"{process['process_name']} {process['pid']}")
        for uuid, thread in trace.threads.items():
            if thread["pid"] == process["pid"]:
                p.rows(f"thread {thread['tid']}", [s for s in trace.slices if s.track == uuid],
                       lambda s: s.depth)
        for queue in sorted({s.queue for s in trace.stages if s.pid == process["pid"]}):
            stages = [s for s in trace.stages if s.queue == queue]
            where = stack(stages)
            p.rows(queue.split(" ", 2)[2], stages, lambda s, w=where: w[id(s)])
    for uuid, points in trace.counters.items():
        p.line(trace.track_name(uuid), points)
    for source, target in trace.arrows:
        p.arrow(source, target)
    return p.svg(pathlib.Path(path).name)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    print(draw(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
