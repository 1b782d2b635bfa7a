# SPDX-License-Identifier: BSD-2-Clause
"""
What a reader makes of a Perfetto trace: tracks, slices, arrows, counters, by the rules of
Perfetto's documentation. Whatever breaks one of the rules is an assertion.
"""
from dataclasses import dataclass, field

import perfetto_wire as wire

MONOTONIC, DELTA = 3, 64
CLEARED, NEEDS = 1, 2
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
INTERNED = {  # message of interned data: what it is called by
    "event_categories": "name", "event_names": "name", "debug_annotation_names": "name",
    "debug_annotation_string_values": "str", "compute_arg_names": "name",
    "graphics_contexts": None, "gpu_specifications": None, "compute_kernels": None,
}


@dataclass
class Slice:
    track: int
    name: str
    begin: int
    end: int = None
    categories: tuple = ()
    args: dict = field(default_factory=dict)
    flows: list = field(default_factory=list)   # numbers of arrows that begin here
    ends: list = field(default_factory=list)    # and that end here
    submits: list = field(default_factory=list)  # event ids of GPU work
    depth: int = 0
    parent: object = None


@dataclass
class Stage:
    """A piece of GPU work as an event of its own kind."""
    event_id: int
    begin: int
    end: int
    name: str
    queue: str
    stage: str
    gpu: int
    pid: int
    context: int
    grid: tuple
    block: tuple
    kernel: dict
    args: dict


class Sequence:
    def __init__(self):
        self.names = {kind: {} for kind in INTERNED}
        self.track = self.clock = self.now = None
        self.cleared = False
        self.last = -1  # of its packets with events

    def intern(self, data):
        for kind, entries in data.items():
            for entry in entries:
                iid = entry.get("iid", 0)
                assert iid or kind == "graphics_contexts", (kind, entry)
                assert iid not in self.names[kind], f"{kind} {iid} is named twice"
                key = INTERNED[kind]
                self.names[kind][iid] = entry[key] if key else entry

    def name(self, kind, iid):
        assert iid in self.names[kind], f"{kind} {iid} is not known"
        value = self.names[kind][iid]
        return value.decode("utf-8") if isinstance(value, bytes) else value


class Trace:
    def __init__(self, path):
        self.tracks, self.processes, self.threads = {}, {}, {}
        self.slices, self.instants, self.stages, self.open = [], [], [], {}
        self.counters, self.clocks, self.gpus = {}, [], []
        self.sequences = {}
        self.events = 0
        for packet in wire.packets(path):
            self._packet(packet)
        self._finish()

    # ---- packets ----

    def _packet(self, packet):
        number = packet["trusted_packet_sequence_id"]
        assert number > 0
        seq = self.sequences.setdefault(number, Sequence())
        flags = packet.get("sequence_flags", 0)
        if flags & CLEARED:
            assert packet.get("first_packet_on_sequence") and not seq.cleared
            seq.cleared = True
        assert seq.cleared, "a sequence without a beginning"
        ts = self._time(seq, packet)
        if "trace_packet_defaults" in packet:
            self._defaults(seq, packet["trace_packet_defaults"])
        if "interned_data" in packet:
            seq.intern(packet["interned_data"])
        if "track_descriptor" in packet:
            self._describe(packet["track_descriptor"])
        if "gpu_info" in packet:
            self.gpus = packet["gpu_info"].get("gpus", [])
        if "track_event" in packet or "gpu_render_stage_event" in packet:
            assert flags == NEEDS and ts is not None
            assert ts >= seq.last, "time goes back"
            seq.last = ts
            self.events += 1
        if "track_event" in packet:
            self._event(seq, ts, packet["track_event"])
        if "gpu_render_stage_event" in packet:
            self._stage(seq, ts, packet["gpu_render_stage_event"])

    def _time(self, seq, packet):
        """CLOCK_MONOTONIC ns of a packet, after the snapshot that it may bring along."""
        if "clock_snapshot" in packet:
            self._snapshot(seq, packet["clock_snapshot"])
        if "timestamp" not in packet:
            return None
        clock = packet.get("timestamp_clock_id", seq.clock)
        if clock == MONOTONIC:
            return packet["timestamp"]
        assert clock == DELTA and seq.now is not None, "a time of an unknown clock"
        seq.now += packet["timestamp"]
        return seq.now

    def _snapshot(self, seq, snapshot):
        clocks = {c["clock_id"]: c for c in snapshot["clocks"]}
        assert len(clocks) == len(snapshot["clocks"]) and MONOTONIC in clocks
        if DELTA in clocks:
            assert clocks[DELTA].get("is_incremental")
            assert clocks[DELTA]["timestamp"] == clocks[MONOTONIC]["timestamp"]
            assert seq.now is None
            seq.now = clocks[DELTA]["timestamp"]
            return
        assert snapshot.get("primary_trace_clock") == MONOTONIC
        now = {k: c["timestamp"] for k, c in clocks.items()}
        assert not self.clocks or now[MONOTONIC] >= self.clocks[-1][MONOTONIC]
        self.clocks.append(now)

    @staticmethod
    def _defaults(seq, defaults):
        seq.clock = defaults["timestamp_clock_id"]
        seq.track = defaults.get("track_event_defaults", {}).get("track_uuid")

    def _describe(self, track):
        assert track["uuid"] not in self.tracks, "a track is described twice"
        self.tracks[track["uuid"]] = track
        if "process" in track:
            self.processes[track["uuid"]] = track["process"]
            assert 0 <= track["process"]["pid"] < 1 << 31
        if "thread" in track:
            self.threads[track["uuid"]] = track["thread"]
            assert any(p["pid"] == track["thread"]["pid"] for p in self.processes.values())
        if "parent_uuid" in track:
            assert track["parent_uuid"] in self.tracks, "a track hangs on nothing"
        assert {"name", "process", "thread"} & track.keys(), "a track without a name"

    # ---- events ----

    def _args(self, seq, notes):
        out = {}
        for note in notes:
            name = seq.name("debug_annotation_names", note["name_iid"])
            assert name not in out, f"argument {name} twice"
            out[name] = self._value(seq, note)
        return out

    def _value(self, seq, note):
        if "array_values" in note:
            return tuple(self._value(seq, v) for v in note["array_values"])
        if "string_value_iid" in note:
            return seq.name("debug_annotation_string_values", note["string_value_iid"])
        values = [v for k, v in note.items() if k.endswith("_value")]
        assert len(values) == 1, note
        return values[0]

    def _event(self, seq, ts, event):
        track = event.get("track_uuid", seq.track)
        assert track in self.tracks, "an event on no track"
        kind = event["type"]
        if kind == COUNTER:
            self._counter(track, ts, event)
            return
        assert "counter" not in self.tracks[track]
        if kind == END:
            assert self.open.get(track), "an end without a begin"
            self.open[track].pop().end = ts
            return
        made = Slice(
            track, seq.name("event_names", event["name_iid"]), ts,
            categories=tuple(seq.name("event_categories", c)
                             for c in event.get("category_iids", [])),
            args=self._args(seq, event.get("debug_annotations", [])),
            flows=event.get("flow_ids", []), ends=event.get("terminating_flow_ids", []),
            submits=event.get("gpu_correlation", {}).get("render_stage_submission_event_ids", []))
        assert made.name and made.categories
        if kind == INSTANT:
            made.end = ts
            self.instants.append(made)
            return
        assert kind == BEGIN
        stack = self.open.setdefault(track, [])
        made.depth = len(stack)
        made.parent = stack[-1] if stack else None
        stack.append(made)
        self.slices.append(made)

    def _counter(self, track, ts, event):
        assert "counter" in self.tracks[track]
        values = [event[k] for k in ("counter_value", "double_counter_value") if k in event]
        assert len(values) == 1
        points = self.counters.setdefault(track, [])
        assert not points or points[-1][0] <= ts
        points.append((ts, values[0]))

    def _compute_args(self, seq, args):
        out = {}
        for arg in args:
            name = seq.name("compute_arg_names", arg["name_iid"])
            values = [v for k, v in arg.items() if k.endswith("_value")]
            assert len(values) == 1 and name not in out, arg
            out[name] = values[0]
        return out

    def _stage(self, seq, ts, event):
        context = seq.name("graphics_contexts", event["context"])
        launch = event.get("launch", {})
        args = self._compute_args(seq, launch.get("args", []))
        kernel = {}
        if "kernel_iid" in event:
            kernel = seq.name("compute_kernels", event["kernel_iid"])
            shared = self._compute_args(seq, kernel.get("args", []))
            assert not shared.keys() & args.keys()
            args |= shared
        assert context["api"] == 4
        self.stages.append(Stage(
            event["event_id"], ts, ts + event["duration"],
            seq.name("event_names", event["name_iid"]),
            seq.name("gpu_specifications", event["hw_queue_iid"])["name"],
            seq.name("gpu_specifications", event["stage_iid"])["name"],
            event["gpu_id"], context["pid"], event["context"],
            self._dim(launch, "grid_size"), self._dim(launch, "workgroup_size"), kernel, args))

    @staticmethod
    def _dim(launch, which):
        return tuple(launch[which][k] for k in "xyz") if which in launch else None

    # ---- the whole ----

    def _finish(self):
        assert self.clocks, "no word about the clocks"
        assert not any(self.open.values()), "a slice without an end"
        for s in self.slices:
            assert s.end >= s.begin
            if s.parent:
                assert s.parent.begin <= s.begin and s.end <= s.parent.end
        ids = [s.event_id for s in self.stages]
        assert len(ids) == len(set(ids)), "two pieces of work of one number"
        self._arrows()

    def _arrows(self):
        """(from, to): each arrow of either kind, with exactly one beginning and one end."""
        begins, ends, self.arrows = {}, {}, []
        for s in self.slices + self.instants:
            for number in s.flows + s.submits:
                assert number not in begins, "an arrow begins twice"
                begins[number] = s
            for number in s.ends:
                assert number not in ends, "an arrow ends twice"
                ends[number] = s
        stages = {s.event_id: s for s in self.stages}
        for number, source in begins.items():
            target = stages.get(number) if number in source.submits else ends.pop(number, None)
            assert target, "an arrow to nowhere"
            assert target.begin >= source.begin, "an arrow back in time"
            self.arrows.append((source, target))
        assert not ends, "an arrow from nowhere"

    def track_name(self, uuid):
        return self.tracks[uuid].get("name")

    def named(self, name):
        """uuids of the tracks of this name."""
        return [u for u, t in self.tracks.items() if t.get("name") == name]

    def counter(self, name):
        """Points of the only counter of this name."""
        (uuid,) = [u for u in self.named(name) if u in self.counters]
        return self.counters[uuid]
