# SPDX-License-Identifier: BSD-2-Clause
"""
Perfetto's traces, read without anything of gbpf's: the wire format of protobuf, and a
table of the fields written down from Perfetto's own definitions. A field that is not in
the table, or comes in another wire type than its own, is an error.
"""
import gzip
import struct

UINT, INT, BOOL, DOUBLE = "uint", "int", "bool", "double"
FIXED, TEXT, BYTES = "fixed", "text", "bytes"
WIRE = {UINT: 0, INT: 0, BOOL: 0, DOUBLE: 1, FIXED: 1, TEXT: 2, BYTES: 2}

# message: {number: (name, type or message, repeated)}; protos/perfetto/trace/**.proto
SCHEMA = {
    "TracePacket": {
        6: ("clock_snapshot", "ClockSnapshot", False),
        8: ("timestamp", UINT, False),
        10: ("trusted_packet_sequence_id", UINT, False),
        11: ("track_event", "TrackEvent", False),
        12: ("interned_data", "InternedData", False),
        13: ("sequence_flags", UINT, False),
        53: ("gpu_render_stage_event", "GpuRenderStageEvent", False),
        58: ("timestamp_clock_id", UINT, False),
        59: ("trace_packet_defaults", "TracePacketDefaults", False),
        60: ("track_descriptor", "TrackDescriptor", False),
        87: ("first_packet_on_sequence", BOOL, False),
        128: ("gpu_info", "GpuInfo", False),
    },
    "TracePacketDefaults": {
        11: ("track_event_defaults", "TrackEventDefaults", False),
        58: ("timestamp_clock_id", UINT, False),
    },
    "TrackEventDefaults": {11: ("track_uuid", UINT, False)},
    "ClockSnapshot": {
        1: ("clocks", "Clock", True),
        2: ("primary_trace_clock", INT, False),
    },
    "Clock": {
        1: ("clock_id", UINT, False),
        2: ("timestamp", UINT, False),
        3: ("is_incremental", BOOL, False),
    },
    "TrackDescriptor": {
        1: ("uuid", UINT, False),
        2: ("name", TEXT, False),
        3: ("process", "ProcessDescriptor", False),
        4: ("thread", "ThreadDescriptor", False),
        5: ("parent_uuid", UINT, False),
        8: ("counter", "CounterDescriptor", False),
        11: ("child_ordering", INT, False),
        12: ("sibling_order_rank", INT, False),
        14: ("description", TEXT, False),
    },
    "ProcessDescriptor": {
        1: ("pid", INT, False),
        2: ("cmdline", TEXT, True),
        6: ("process_name", TEXT, False),
        8: ("process_labels", TEXT, True),
    },
    "ThreadDescriptor": {
        1: ("pid", INT, False),
        2: ("tid", INT, False),
        5: ("thread_name", TEXT, False),
    },
    "CounterDescriptor": {3: ("unit", INT, False), 6: ("unit_name", TEXT, False)},
    "TrackEvent": {
        3: ("category_iids", UINT, True),
        4: ("debug_annotations", "DebugAnnotation", True),
        9: ("type", INT, False),
        10: ("name_iid", UINT, False),
        11: ("track_uuid", UINT, False),
        30: ("counter_value", INT, False),
        44: ("double_counter_value", DOUBLE, False),
        47: ("flow_ids", FIXED, True),
        48: ("terminating_flow_ids", FIXED, True),
        3000: ("gpu_correlation", "GpuCorrelation", False),
    },
    "GpuCorrelation": {1: ("render_stage_submission_event_ids", UINT, True)},
    "DebugAnnotation": {
        1: ("name_iid", UINT, False),
        3: ("uint_value", UINT, False),
        4: ("int_value", INT, False),
        5: ("double_value", DOUBLE, False),
        6: ("string_value", TEXT, False),
        7: ("pointer_value", UINT, False),
        12: ("array_values", "DebugAnnotation", True),
        17: ("string_value_iid", UINT, False),
    },
    "InternedData": {
        1: ("event_categories", "Named", True),
        2: ("event_names", "Named", True),
        3: ("debug_annotation_names", "Named", True),
        23: ("graphics_contexts", "InternedGraphicsContext", True),
        24: ("gpu_specifications", "InternedGpuRenderStageSpecification", True),
        29: ("debug_annotation_string_values", "InternedString", True),
        1000: ("compute_kernels", "InternedComputeKernel", True),
        1001: ("compute_arg_names", "Named", True),
    },
    "Named": {1: ("iid", UINT, False), 2: ("name", TEXT, False)},
    "InternedString": {1: ("iid", UINT, False), 2: ("str", BYTES, False)},
    "InternedGraphicsContext": {
        1: ("iid", UINT, False),
        2: ("pid", INT, False),
        3: ("api", INT, False),
    },
    "InternedGpuRenderStageSpecification": {
        1: ("iid", UINT, False),
        2: ("name", TEXT, False),
        3: ("description", TEXT, False),
        4: ("category", INT, False),
    },
    "InternedComputeKernel": {
        1: ("iid", UINT, False),
        2: ("name", TEXT, False),
        3: ("demangled_name", TEXT, False),
        4: ("arch", TEXT, False),
        5: ("args", "ExtraComputeArg", True),
    },
    "GpuRenderStageEvent": {
        1: ("event_id", UINT, False),
        2: ("duration", UINT, False),
        5: ("context", UINT, False),
        11: ("gpu_id", INT, False),
        13: ("hw_queue_iid", UINT, False),
        14: ("stage_iid", UINT, False),
        19: ("kernel_iid", UINT, False),
        20: ("name_iid", UINT, False),
        21: ("launch", "ComputeKernelLaunch", False),
    },
    "ComputeKernelLaunch": {
        1: ("grid_size", "Dim3", False),
        2: ("workgroup_size", "Dim3", False),
        3: ("args", "ExtraComputeArg", True),
    },
    "Dim3": {1: ("x", UINT, False), 2: ("y", UINT, False), 3: ("z", UINT, False)},
    "ExtraComputeArg": {
        1: ("name_iid", UINT, False),
        3: ("int_value", INT, False),
        4: ("uint_value", UINT, False),
        5: ("double_value", DOUBLE, False),
        6: ("string_value", TEXT, False),
    },
    "GpuInfo": {1: ("gpus", "Gpu", True)},
    "Gpu": {
        1: ("name", TEXT, False),
        2: ("vendor", TEXT, False),
        3: ("model", TEXT, False),
        4: ("architecture", TEXT, False),
        5: ("uuid", BYTES, False),
        7: ("pci_bdf", TEXT, False),
    },
}


class Malformed(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number runs out of its message")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, wire type, value) of each field: an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at:at + 8], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise Malformed(f"wire type {wire}")
        if at > len(data):
            raise Malformed("a field runs out of its message")
        yield number, wire, value


def scalar(kind, value):
    if kind == INT:
        return value - (1 << 64) if value >> 63 else value
    if kind == BOOL:
        return bool(value)
    if kind == DOUBLE:
        return struct.unpack("<d", value)[0]
    if kind == FIXED:
        return int.from_bytes(value, "little")
    return value.decode("utf-8") if kind == TEXT else value


def decode(message, data):
    """A dict of what is there: repeated fields are lists."""
    table, out = SCHEMA[message], {}
    for number, wire, value in fields(data):
        if number not in table:
            raise Malformed(f"{message} has no field {number}")
        name, kind, repeated = table[number]
        if wire != WIRE.get(kind, 2):
            raise Malformed(f"{message}.{name} in wire type {wire}")
        value = scalar(kind, value) if kind in WIRE else decode(kind, value)
        if repeated:
            out.setdefault(name, []).append(value)
        elif name in out:
            raise Malformed(f"{message}.{name} twice")
        else:
            out[name] = value
    return out


def raw(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rb") as file:
        return file.read()


def packets(path):
    for number, wire, value in fields(raw(path)):
        if (number, wire) != (1, 2):
            raise Malformed(f"not a packet: field {number}")
        yield decode("TracePacket", value)
