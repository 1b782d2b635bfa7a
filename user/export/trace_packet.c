// SPDX-License-Identifier: BSD-2-Clause
/* Bytes of packets. */
#include "export/trace_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_AT (128 * 1024)
#define CLEARED PERFETTO__PROTOS__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED
#define NEEDS PERFETTO__PROTOS__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_NEEDS_INCREMENTAL_STATE

#define FIELD(id, message, field) [id] = {&perfetto__protos__##message##__descriptor, #field}
static const struct {
	const ProtobufCMessageDescriptor *message;
	const char *name;
} fields[PACKET_FIELDS] = {
	FIELD(PACKET, trace, packet),
	FIELD(PACKET_TIMESTAMP, trace_packet, timestamp),
	FIELD(PACKET_SEQUENCE, trace_packet, trusted_packet_sequence_id),
	FIELD(PACKET_FLAGS, trace_packet, sequence_flags),
	FIELD(PACKET_TRACK_EVENT, trace_packet, track_event),
	FIELD(PACKET_STAGE, trace_packet, gpu_render_stage_event),
	FIELD(EVENT_CATEGORY, track_event, category_iids),
	FIELD(EVENT_ANNOTATION, track_event, debug_annotations),
	FIELD(EVENT_TYPE, track_event, type),
	FIELD(EVENT_NAME, track_event, name_iid),
	FIELD(EVENT_TRACK, track_event, track_uuid),
	FIELD(EVENT_COUNTER, track_event, counter_value),
	FIELD(EVENT_COUNTER_DOUBLE, track_event, double_counter_value),
	FIELD(EVENT_FLOW, track_event, flow_ids),
	FIELD(EVENT_FLOW_END, track_event, terminating_flow_ids),
	FIELD(EVENT_CORRELATION, track_event, gpu_correlation),
	FIELD(CORRELATION_WORK, gpu_correlation, render_stage_submission_event_ids),
	FIELD(NOTE_NAME, debug_annotation, name_iid),
	FIELD(NOTE_UINT, debug_annotation, uint_value),
	FIELD(NOTE_INT, debug_annotation, int_value),
	FIELD(NOTE_DOUBLE, debug_annotation, double_value),
	FIELD(NOTE_STRING, debug_annotation, string_value),
	FIELD(NOTE_POINTER, debug_annotation, pointer_value),
	FIELD(NOTE_ARRAY, debug_annotation, array_values),
	FIELD(NOTE_STRING_ID, debug_annotation, string_value_iid),
	FIELD(STAGE_EVENT, gpu_render_stage_event, event_id),
	FIELD(STAGE_DURATION, gpu_render_stage_event, duration),
	FIELD(STAGE_CONTEXT, gpu_render_stage_event, context),
	FIELD(STAGE_GPU, gpu_render_stage_event, gpu_id),
	FIELD(STAGE_QUEUE, gpu_render_stage_event, hw_queue_iid),
	FIELD(STAGE_STAGE, gpu_render_stage_event, stage_iid),
	FIELD(STAGE_KERNEL, gpu_render_stage_event, kernel_iid),
	FIELD(STAGE_NAME, gpu_render_stage_event, name_iid),
	FIELD(STAGE_LAUNCH, gpu_render_stage_event, launch),
	FIELD(LAUNCH_GRID, gpu_render_stage_event__compute_kernel_launch, grid_size),
	FIELD(LAUNCH_BLOCK, gpu_render_stage_event__compute_kernel_launch, workgroup_size),
	FIELD(LAUNCH_ARG, gpu_render_stage_event__compute_kernel_launch, args),
	FIELD(DIM_X, gpu_render_stage_event__dim3, x),
	FIELD(DIM_Y, gpu_render_stage_event__dim3, y),
	FIELD(DIM_Z, gpu_render_stage_event__dim3, z),
	FIELD(ARG_NAME, gpu_render_stage_event__extra_compute_arg, name_iid),
	FIELD(ARG_INT, gpu_render_stage_event__extra_compute_arg, int_value),
	FIELD(ARG_UINT, gpu_render_stage_event__extra_compute_arg, uint_value),
	FIELD(ARG_DOUBLE, gpu_render_stage_event__extra_compute_arg, double_value),
	FIELD(ARG_STRING, gpu_render_stage_event__extra_compute_arg, string_value),
};

/* https://protobuf.dev/programming-guides/encoding/#structure */
static unsigned wire_type(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 1;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return 2;
	default:
		return 0;
	}
}

static void tags_init(struct packets *p)
{
	for (int i = 0; i < PACKET_FIELDS; i++) {
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field_by_name(fields[i].message,
									fields[i].name);
		struct packet_tag *t = &p->tags[i];
		uint32_t v;

		if (!f) /* perfetto.proto and the table above are compiled together */
			abort();
		for (v = f->id << 3 | wire_type(f->type); v > 127; v >>= 7)
			t->bytes[t->size++] = (uint8_t)(v | 128);
		t->bytes[t->size++] = (uint8_t)v;
	}
}

int packets_init(struct packets *p, const struct session *s, FILE *out)
{
	*p = (struct packets){.s = s, .out = out, .cap = 2 * FLUSH_AT};
	p->keys[INTERN_CATEGORY] = CATEGORIES;
	p->keys[INTERN_EVENT] = s->apis_count + s->kernels_count + WORDS;
	p->keys[INTERN_NOTE] = p->keys[INTERN_ARG] = FIELDS;
	p->keys[INTERN_STRING] = s->kernels_count;
	p->keys[INTERN_KERNEL] = s->shapes_count;
	tags_init(p);
	p->bytes = malloc(p->cap);
	if (!p->bytes)
		return -ENOMEM;
	for (int i = 0; i < INTERN_SPACES; i++) {
		p->defined[i] = calloc(p->keys[i] + 1, sizeof(*p->defined[i]));
		if (!p->defined[i])
			return -ENOMEM;
	}
	return 0;
}

void packets_free(struct packets *p)
{
	for (int i = 0; i < INTERN_SPACES; i++) {
		free(p->defined[i]);
		p->defined[i] = NULL;
	}
	free(p->bytes);
	p->bytes = NULL;
}

int packets_flush(struct packets *p)
{
	if (!p->err && p->size)
		fwrite(p->bytes, 1, p->size, p->out); /* closing the file tells what failed */
	p->size = 0;
	return p->err;
}

bool packet_grow(struct packets *p, size_t more)
{
	size_t want = p->cap * 2;
	unsigned char *moved;

	if (want < p->size + more)
		want = p->size + more;
	moved = p->err ? NULL : realloc(p->bytes, want);
	if (!moved) {
		p->err = -ENOMEM;
		p->size = 0; /* the file is lost: what is at hand may be overwritten */
		return p->cap >= more;
	}
	p->bytes = moved;
	p->cap = want;
	return true;
}

void packet_fixed64(struct packets *p, enum packet_field field, uint64_t v)
{
	if (!packet_room(p, PACKET_ROOM))
		return;
	packet_tag(p, field);
	for (int i = 0; i < 8; i++, v >>= 8)
		p->bytes[p->size++] = (unsigned char)v;
}

void packet_double(struct packets *p, enum packet_field field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	packet_fixed64(p, field, bits);
}

void packet_text(struct packets *p, enum packet_field field, const char *v)
{
	size_t len = strlen(v);

	if (!packet_room(p, len + PACKET_ROOM))
		return;
	packet_tag(p, field);
	packet_varint(p, len);
	memcpy(p->bytes + p->size, v, len);
	p->size += len;
}

void packet_unnest(struct packets *p, size_t at)
{
	size_t len = p->size - at - 1, more = 0, v;
	unsigned char *to;

	if (p->err || !packet_room(p, PACKET_ROOM))
		return;
	to = p->bytes + at;
	for (v = len; v > 127; v >>= 7)
		more++;
	if (more)
		memmove(to + 1 + more, to + 1, len);
	p->size += more;
	for (v = len; v > 127; v >>= 7)
		*to++ = (unsigned char)(v | 128);
	*to = (unsigned char)v;
}

/*
 * What differs from packet to packet stands first and together, what is the same last:
 * compressed, a file becomes a little smaller.
 */
struct packet_open packet_begin(struct packets *p, int64_t ts, enum packet_field event)
{
	uint64_t at = ts > 0 ? (uint64_t)ts : 0;
	struct packet_open open;

	if (p->size > FLUSH_AT)
		packets_flush(p);
	open.packet = packet_nest(p, PACKET);
	packet_wide(p, PACKET_TIMESTAMP, at > p->last ? at - p->last : 0);
	p->last = at > p->last ? at : p->last;
	open.event = packet_nest(p, event);
	return open;
}

void packet_end(struct packets *p, struct packet_open open)
{
	packet_unnest(p, open.event);
	packet_uint(p, PACKET_SEQUENCE, p->sequence);
	packet_uint(p, PACKET_FLAGS, NEEDS);
	packet_unnest(p, open.packet);
	p->written++;
}

void packets_add(struct packets *p, Perfetto__Protos__TracePacket *packet)
{
	size_t size;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = p->sequence;
	packet->has_sequence_flags = true;
	if (!packet->sequence_flags)
		packet->sequence_flags = NEEDS;
	if (p->size > FLUSH_AT)
		packets_flush(p);
	size = protobuf_c_message_get_packed_size(&packet->base);
	if (!packet_room(p, size + PACKET_ROOM))
		return;
	packet_tag(p, PACKET);
	packet_varint(p, size);
	p->size += protobuf_c_message_pack(&packet->base, p->bytes + p->size);
	p->written++;
}

void packets_track(struct packets *p, Perfetto__Protos__TrackDescriptor *track)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.track_descriptor = track;
	packets_add(p, &packet);
}

void packets_sequence(struct packets *p, uint64_t track, int64_t ts)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TracePacketDefaults defaults =
		PERFETTO__PROTOS__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__Protos__TrackEventDefaults event = PERFETTO__PROTOS__TRACK_EVENT_DEFAULTS__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock
		own = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT,
		all = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT,
		*clocks[2] = {&own, &all};

	p->sequence++;
	p->last = ts > 0 ? (uint64_t)ts : 0;
	own.has_clock_id = all.has_clock_id = own.has_timestamp = all.has_timestamp = true;
	own.clock_id = CLOCK_ID_DELTA;
	own.has_is_incremental = own.is_incremental = true;
	all.clock_id = PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
	own.timestamp = all.timestamp = p->last;
	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	event.has_track_uuid = true;
	event.track_uuid = track;
	defaults.track_event_defaults = track ? &event : NULL;
	defaults.has_timestamp_clock_id = true;
	defaults.timestamp_clock_id = CLOCK_ID_DELTA;
	packet.has_timestamp = packet.has_timestamp_clock_id = true;
	packet.timestamp = p->last;
	packet.timestamp_clock_id = all.clock_id;
	packet.has_first_packet_on_sequence = packet.first_packet_on_sequence = true;
	packet.sequence_flags = CLEARED;
	packet.trace_packet_defaults = &defaults;
	packet.clock_snapshot = &snapshot;
	packets_add(p, &packet);
}
