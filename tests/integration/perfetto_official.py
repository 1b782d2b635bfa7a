# SPDX-License-Identifier: BSD-2-Clause
"""
Traces as Perfetto's own Python package reads them. It is a package of PyPI, which
tools/install-deps puts below the build folder; there may be no way to it.
"""
import sys

import gbpf
import perfetto_wire

sys.path.insert(0, str(gbpf.BUILD / "python"))
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, unknown_fields
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
except ImportError as missing:
    protos, why = None, str(missing)
else:
    why = None

# Extensions that Perfetto's repository defines beside the messages of the package:
# protos/perfetto/trace/gpu/gpu_track_event.proto and gpu_interned_data.proto.
EXTENSIONS = (
    ("gpu_correlation", 3000, "TrackEvent", "GpuCorrelation", False),
    ("compute_kernels", 1000, "InternedData", "InternedComputeKernel", True),
    ("compute_arg_names", 1001, "InternedData", "InternedComputeArgName", True),
)


def extend():
    """Makes the package know them."""
    file = descriptor_pb2.FileDescriptorProto(
        name="gpu_extensions.proto", package="perfetto.protos", syntax="proto2",
        dependency=[protos.DESCRIPTOR.name])
    correlation = file.message_type.add(name="GpuCorrelation")
    for number, name in enumerate(("render_stage_submission_event_ids",
                                   "render_stage_wait_event_ids"), 1):
        correlation.field.add(name=name, number=number, label=3, type=4)
    if not hasattr(protos, "InternedComputeArgName"):
        named = file.message_type.add(name="InternedComputeArgName")
        named.field.add(name="iid", number=1, label=1, type=4)
        named.field.add(name="name", number=2, label=1, type=9)
    for name, number, extendee, message, repeated in EXTENSIONS:
        file.extension.add(name=name, number=number, label=3 if repeated else 1, type=11,
                           extendee=f".perfetto.protos.{extendee}",
                           type_name=f".perfetto.protos.{message}")
    descriptor_pool.Default().Add(file)


if protos:
    extend()


def read(path):
    trace = protos.Trace()
    trace.ParseFromString(perfetto_wire.raw(path))
    return trace


def unknown(message, where="Trace"):
    """Fields that the definitions do not have, anywhere inside."""
    found = [f"{where}: field {f.field_number}"
             for f in unknown_fields.UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for one in value if is_repeated(descriptor) else [value]:
            found += unknown(one, f"{where}.{descriptor.name}")
    return found


def is_repeated(descriptor):
    return descriptor.is_repeated if hasattr(descriptor, "is_repeated") else descriptor.label == 3


def plain(message):
    """As perfetto_wire decodes it."""
    out = {}
    for descriptor, value in message.ListFields():
        convert = plain if descriptor.message_type else lambda v: v
        out[descriptor.name] = ([convert(v) for v in value] if is_repeated(descriptor)
                                else convert(value))
    return out
