/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a Perfetto trace. Descriptions of tracks and the like are packed by
 * protobuf-c; the millions of events are put together here, in a quarter of the time, with
 * field numbers out of the same perfetto.proto. Internal to export/.
 *
 * Each thread, stream and counter is a sequence of its own: its times are differences to
 * the one before, and what is named once is a number from then on.
 */
#ifndef GBPF_EXPORT_TRACE_PACKET_H
#define GBPF_EXPORT_TRACE_PACKET_H

#include "export/trace.h"
#include "perfetto.pb-c.h"

#include <string.h>

#define CLOCK_ID_DELTA 64 /* of a sequence: the first number that is not one of all */

/* Fields of the events, in the order of the table in trace_packet.c. */
enum packet_field {
	PACKET, PACKET_TIMESTAMP, PACKET_SEQUENCE, PACKET_FLAGS, PACKET_TRACK_EVENT, PACKET_STAGE,
	EVENT_CATEGORY, EVENT_ANNOTATION, EVENT_TYPE, EVENT_NAME, EVENT_TRACK, EVENT_COUNTER,
	EVENT_COUNTER_DOUBLE, EVENT_FLOW, EVENT_FLOW_END, EVENT_CORRELATION, CORRELATION_WORK,
	NOTE_NAME, NOTE_UINT, NOTE_INT, NOTE_DOUBLE, NOTE_STRING, NOTE_POINTER, NOTE_ARRAY,
	NOTE_STRING_ID,
	STAGE_EVENT, STAGE_DURATION, STAGE_CONTEXT, STAGE_GPU, STAGE_QUEUE, STAGE_STAGE,
	STAGE_KERNEL, STAGE_NAME, STAGE_LAUNCH,
	LAUNCH_GRID, LAUNCH_BLOCK, LAUNCH_ARG, DIM_X, DIM_Y, DIM_Z,
	ARG_NAME, ARG_INT, ARG_UINT, ARG_DOUBLE, ARG_STRING,
	PACKET_FIELDS,
};

struct packet_tag {
	uint8_t size, bytes[3];
};

/* What is named by number within a sequence; the number is the key plus one. */
enum intern_space {
	INTERN_CATEGORY,   /* enum packet_category */
	INTERN_EVENT,	   /* APIs, then kernels, then packet_words */
	INTERN_NOTE,	   /* enum export_field_id */
	INTERN_STRING,	   /* kernels */
	INTERN_KERNEL,	   /* shapes; on a GPU's sequence */
	INTERN_ARG,	   /* enum export_field_id */
	INTERN_SPACES,
};

/* Beside those of enum api_kind, which are categories of their own. */
enum packet_category {
	CATEGORY_WAIT = 16, /* of whatever blocks its caller */
	CATEGORY_GPU,
	CATEGORY_COUNTER,
	CATEGORY_MARK,
	CATEGORIES,
};

/* Names of events that are neither functions nor kernels: packet_words. */
enum packet_word {
	WORD_COPY = 0, /* plus enum record_direction */
	WORD_SET = 16,
	WORD_KERNEL,
	WORD_LOST, WORD_ATTACHED, WORD_ERROR, WORD_COLD, WORD_XID, WORD_TRIGGER,
	WORD_SIDECAR, /* plus enum record_sidecar_event */
	WORD_RECORDING = WORD_SIDECAR + 16,
	WORDS,
};
const char *packet_word(unsigned word); /* NULL: no such */

struct packets {
	const struct session *s;
	FILE *out;
	unsigned char *bytes;
	size_t size, cap;
	int err; /* -ENOMEM: nothing is of use any more */
	uint32_t sequence; /* the one at hand, from 1 */
	uint64_t last;	   /* time of its last packet, ns */
	uint64_t written;  /* packets */
	uint32_t *defined[INTERN_SPACES]; /* sequence in which the key was named last */
	size_t keys[INTERN_SPACES];
	struct packet_tag tags[PACKET_FIELDS];
};

int packets_init(struct packets *p, const struct session *s, FILE *out); /* -ENOMEM */
void packets_free(struct packets *p); /* may be repeated */
int packets_flush(struct packets *p); /* to the stream; 0 or the first failure */

/*
 * Begins a sequence whose first event is at ts. Events without a track of their own are
 * on track (0: none).
 */
void packets_sequence(struct packets *p, uint64_t track, int64_t ts);

/* Adds a packet of any kind; its sequence and flags are filled in. */
void packets_add(struct packets *p, Perfetto__Protos__TracePacket *packet);
void packets_track(struct packets *p, Perfetto__Protos__TrackDescriptor *track);

/* The number by which a key is called here; names it first where this is new. */
uint64_t packets_intern(struct packets *p, enum intern_space space, size_t key);
/* The same of a kernel's shape, whose description is *about but for the iid. */
uint64_t packets_intern_shape(struct packets *p, uint32_t shape,
			      Perfetto__Protos__InternedComputeKernel *about);
bool packets_knows(const struct packets *p, enum intern_space space, size_t key);

size_t packets_key_kernel(const struct packets *p, uint32_t kernel); /* of INTERN_EVENT */
size_t packets_key_word(const struct packets *p, unsigned word);

/* ---- arguments: collected before their packet is begun, since names come first ---- */

struct packet_arg {
	uint64_t name; /* interned */
	enum { NOTE_OF_UINT, NOTE_OF_INT, NOTE_OF_DOUBLE, NOTE_OF_POINTER, NOTE_OF_TEXT,
	       NOTE_OF_STRING, NOTE_OF_DIM } kind;
	union {
		uint64_t u;
		int64_t i;
		double d;
		const char *text; /* valid UTF-8 */
		const uint32_t *dim;
	};
};

#define PACKET_ARGS 32
struct packet_args {
	struct packets *p;
	enum intern_space space; /* INTERN_NOTE or INTERN_ARG */
	size_t count;
	struct packet_arg list[PACKET_ARGS];
};
static inline void packet_args_init(struct packet_args *a, struct packets *p,
				    enum intern_space space)
{
	a->p = p; /* and nothing of the list: it is large, and there are millions of these */
	a->space = space;
	a->count = 0;
}
void packet_arg_uint(struct packet_args *a, enum export_field_id field, uint64_t v);
void packet_arg_int(struct packet_args *a, enum export_field_id field, int64_t v);
void packet_arg_double(struct packet_args *a, enum export_field_id field, double v);
void packet_arg_pointer(struct packet_args *a, enum export_field_id field, uint64_t v);
void packet_arg_text(struct packet_args *a, enum export_field_id field, const char *v);
void packet_arg_kernel(struct packet_args *a, enum export_field_id field, uint32_t kernel);
void packet_arg_dim(struct packet_args *a, enum export_field_id field, const uint32_t v[3]);

/* ---- events, field by field: begin, put…, end; ts must not go back in a sequence ---- */

struct packet_open {
	size_t packet, event; /* where their lengths go */
};
#define PACKET_ROOM 32 /* bytes: more than any field but text takes */
bool packet_grow(struct packets *p, size_t more);

/* Room for more bytes; where there is none, what is put goes nowhere. */
static inline bool packet_room(struct packets *p, size_t more)
{
	return p->cap - p->size >= more || packet_grow(p, more);
}

static inline void packet_tag(struct packets *p, enum packet_field field)
{
	const struct packet_tag *t = &p->tags[field];

	memcpy(p->bytes + p->size, t->bytes, sizeof(t->bytes));
	p->size += t->size;
}

static inline void packet_varint(struct packets *p, uint64_t v)
{
	unsigned char *at = p->bytes + p->size;

	while (v > 127) {
		*at++ = (unsigned char)(v | 128);
		v >>= 7;
	}
	*at++ = (unsigned char)v;
	p->size = (size_t)(at - p->bytes);
}

static inline void packet_uint(struct packets *p, enum packet_field field, uint64_t v)
{
	if (!packet_room(p, PACKET_ROOM))
		return;
	packet_tag(p, field);
	packet_varint(p, v);
}

/*
 * The same number in three bytes, if it has less: a third byte that is always there costs
 * nothing once compressed, one that comes and goes makes lengths around it differ, too.
 */
static inline void packet_wide(struct packets *p, enum packet_field field, uint64_t v)
{
	if (v >> 14) {
		packet_uint(p, field, v);
		return;
	}
	if (!packet_room(p, PACKET_ROOM))
		return;
	packet_tag(p, field);
	p->bytes[p->size++] = (unsigned char)(v | 128);
	p->bytes[p->size++] = (unsigned char)(v >> 7 | 128);
	p->bytes[p->size++] = 0;
}

/* The length's one byte is kept free; more are made room for where it takes more. */
static inline size_t packet_nest(struct packets *p, enum packet_field field)
{
	if (!packet_room(p, PACKET_ROOM))
		return p->size;
	packet_tag(p, field);
	return p->size++;
}

struct packet_open packet_begin(struct packets *p, int64_t ts, enum packet_field event);
void packet_end(struct packets *p, struct packet_open open);
void packet_unnest(struct packets *p, size_t at); /* at: what packet_nest() gave */
void packet_fixed64(struct packets *p, enum packet_field field, uint64_t v);
void packet_double(struct packets *p, enum packet_field field, double v);
void packet_text(struct packets *p, enum packet_field field, const char *v);
void packet_notes(struct packets *p, const struct packet_args *a); /* annotations */
void packet_launch_args(struct packets *p, const struct packet_args *a);
void packet_dim(struct packets *p, enum packet_field field, const uint32_t v[3]);

#endif
