/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/meta.h"

#include <errno.h>
#include <stdlib.h>

#include "record/bytes.h"

enum field_type {
	FIELD_NONE = 0,
	FIELD_32,   /* signed ones as their bit pattern */
	FIELD_64,
	FIELD_TIME, /* as FIELD_64, and counts for the chunk's time range */
	FIELD_STRING,
	FIELD_NAME, /* a string whose length is kept beside it: may hold NULs */
};

struct field {
	uint8_t type;
	uint16_t offset;
};

#define F(type, member) {FIELD_##type, offsetof(struct record, member)}

static const struct field fields[META_KINDS][META_FIELDS_MAX] = {
	[RECORD_NAME] = {F(TIME, name.ts), F(32, name.pid), F(32, name.source),
			 F(64, name.handle), F(NAME, name.name)},
	[RECORD_PROCESS] = {F(TIME, process.ts), F(32, process.event), F(32, process.pid),
			    F(32, process.ppid), F(32, process.ns_pid), F(32, process.uid),
			    F(32, process.exit_code), F(32, process.flags),
			    F(64, process.start), F(STRING, process.comm),
			    F(STRING, process.cmdline), F(STRING, process.exe),
			    F(STRING, process.container)},
	[RECORD_THREAD] = {F(32, thread.pid), F(32, thread.tid), F(32, thread.ns_tid),
			   F(STRING, thread.comm)},
	[RECORD_IMAGE] = {F(32, image.id), F(32, image.kind), F(64, image.dev), F(64, image.ino),
			  F(64, image.mapped), F(64, image.covered), F(STRING, image.path),
			  F(STRING, image.build_id), F(STRING, image.version)},
	[RECORD_SITE] = {F(32, site.image), F(32, site.state), F(64, site.offset),
			 F(STRING, site.api), F(STRING, site.reason)},
	[RECORD_API] = {F(32, api.id), F(STRING, api.name), F(STRING, api.library),
			F(STRING, api.kind)},
	[RECORD_CLOCK] = {F(TIME, clock.monotonic), F(64, clock.realtime), F(64, clock.boottime),
			  F(64, clock.error)},
	[RECORD_LOSS] = {F(TIME, loss.ts), F(32, loss.cause), F(64, loss.count)},
	[RECORD_WINDOW] = {F(TIME, window.begin), F(TIME, window.end)},
	[RECORD_ACTIVE] = {F(TIME, window.begin), F(TIME, window.end)},
	[RECORD_INFO] = {F(STRING, info.key), F(STRING, info.value)},
	[RECORD_GPU] = {F(32, gpu.id), F(32, gpu.index), F(STRING, gpu.uuid), F(STRING, gpu.name),
			F(STRING, gpu.pci), F(STRING, gpu.mig_parent)},
	[RECORD_GPU_SAMPLE] = {F(TIME, gpu_sample.ts), F(32, gpu_sample.gpu),
			       F(32, gpu_sample.has), F(32, gpu_sample.clock_sm_mhz),
			       F(32, gpu_sample.clock_memory_mhz), F(32, gpu_sample.power_mw),
			       F(32, gpu_sample.power_limit_mw),
			       F(32, gpu_sample.temperature_c), F(64, gpu_sample.throttle),
			       F(32, gpu_sample.utilisation_pct),
			       F(32, gpu_sample.memory_utilisation_pct),
			       F(64, gpu_sample.memory_used), F(64, gpu_sample.memory_total),
			       F(64, gpu_sample.energy_mj), F(32, gpu_sample.gpm_sm),
			       F(32, gpu_sample.gpm_occupancy), F(32, gpu_sample.gpm_tensor),
			       F(32, gpu_sample.gpm_dram), F(64, gpu_sample.xid_count),
			       F(32, gpu_sample.xid_last), F(32, gpu_sample.processes),
			       F(STRING, gpu_sample.pids)},
	[RECORD_DEVICE] = {F(32, device.pid), F(32, device.ordinal), F(STRING, device.uuid),
			   F(STRING, device.name), F(64, device.memory), F(32, device.major),
			   F(32, device.minor), F(32, device.sms), F(32, device.warp),
			   F(32, device.block_threads), F(32, device.sm_threads),
			   F(32, device.sm_blocks), F(32, device.block_registers),
			   F(32, device.sm_registers), F(32, device.block_smem),
			   F(32, device.block_smem_optin), F(32, device.sm_smem),
			   F(32, device.reserved_smem)},
	[RECORD_SHAPE] = {F(32, shape.pid), F(32, shape.id), F(STRING, shape.kernel),
			  F(32, shape.grid[0]), F(32, shape.grid[1]), F(32, shape.grid[2]),
			  F(32, shape.block[0]), F(32, shape.block[1]), F(32, shape.block[2]),
			  F(32, shape.registers), F(32, shape.smem_static),
			  F(32, shape.smem_dynamic), F(32, shape.local)},
	[RECORD_WORK] = {F(TIME, work.begin), F(64, work.duration), F(32, work.pid),
			 F(32, work.kind), F(32, work.device), F(32, work.context),
			 F(32, work.stream), F(32, work.correlation), F(32, work.shape),
			 F(32, work.graph), F(64, work.graph_node), F(64, work.bytes),
			 F(32, work.direction), F(32, work.source), F(32, work.target),
			 F(32, work.channel), F(32, work.channel_type), F(32, work.priority),
			 F(32, work.peer)},
	[RECORD_WORK_CALL] = {F(TIME, work_call.begin), F(64, work_call.duration),
			      F(32, work_call.pid), F(32, work_call.tid),
			      F(32, work_call.domain), F(32, work_call.cbid),
			      F(32, work_call.correlation), F(32, work_call.ret)},
	[RECORD_OVERHEAD] = {F(TIME, overhead.begin), F(64, overhead.duration),
			     F(32, overhead.pid), F(32, overhead.tid), F(32, overhead.kind)},
	[RECORD_SIDECAR] = {F(TIME, sidecar.ts), F(32, sidecar.pid), F(32, sidecar.event),
			    F(64, sidecar.count), F(32, sidecar.cupti), F(STRING, sidecar.text)},
	[RECORD_LABEL] = {F(TIME, label.ts), F(32, label.pid), F(STRING, label.key),
			  F(STRING, label.value)},
	[RECORD_TRIGGER] = {F(TIME, trigger.ts), F(32, trigger.cause), F(STRING, trigger.text),
			    F(64, trigger.begin), F(64, trigger.value), F(64, trigger.threshold),
			    F(32, trigger.unit), F(64, trigger.samples)},
};

bool meta_known(unsigned int kind)
{
	return kind < META_KINDS && fields[kind][0].type != FIELD_NONE;
}

static const struct field *field_at(enum record_kind kind, size_t i)
{
	bool there = i < META_FIELDS_MAX && fields[kind][i].type != FIELD_NONE;

	return there ? &fields[kind][i] : NULL;
}

static bool is_string(const struct field *f)
{
	return f->type == FIELD_STRING || f->type == FIELD_NAME;
}

/* memcpy(), because a field's type is known only from the table. */
static uint64_t number_get(const struct record *record, const struct field *f)
{
	const char *at = (const char *)record + f->offset;
	uint32_t word;
	uint64_t value;

	if (f->type == FIELD_32) {
		memcpy(&word, at, sizeof(word));
		return word;
	}
	memcpy(&value, at, sizeof(value));
	return value;
}

static void number_set(struct record *record, const struct field *f, uint64_t value)
{
	char *at = (char *)record + f->offset;
	uint32_t word = (uint32_t)value;

	if (f->type == FIELD_32)
		memcpy(at, &word, sizeof(word));
	else
		memcpy(at, &value, sizeof(value));
}

static const char *string_get(const struct record *record, const struct field *f)
{
	const char *s;

	memcpy(&s, (const char *)record + f->offset, sizeof(s));
	return s ? s : "";
}

static void string_set(struct record *record, const struct field *f, const char *s)
{
	memcpy((char *)record + f->offset, &s, sizeof(s));
}

static size_t string_length(const struct record *record, const struct field *f)
{
	if (f->type == FIELD_STRING)
		return strnlen(string_get(record, f), META_STRING_MAX);
	if (!record->name.name)
		return 0;
	return record->name.len < META_NAME_MAX ? record->name.len : META_NAME_MAX;
}

void meta_times(const struct record *record, int64_t *first, int64_t *last)
{
	const struct field *f;

	for (size_t i = 0; (f = field_at(record->kind, i)); i++) {
		int64_t ts;

		if (f->type != FIELD_TIME)
			continue;
		ts = (int64_t)number_get(record, f);
		*first = ts < *first ? ts : *first;
		*last = ts > *last ? ts : *last;
	}
}

int meta_batch_new(struct meta_batch *b)
{
	b->records = calloc(META_BATCH_RECORDS, sizeof(*b->records));
	b->strings = malloc(META_BATCH_STRINGS);
	meta_batch_clear(b);
	if (b->records && b->strings)
		return 0;
	meta_batch_free(b);
	return -ENOMEM;
}

void meta_batch_free(struct meta_batch *b)
{
	free(b->records);
	free(b->strings);
	b->records = NULL;
	b->strings = NULL;
}

void meta_batch_clear(struct meta_batch *b)
{
	b->count = 0;
	b->used = 0;
}

static size_t strings_size(const struct record *record)
{
	const struct field *f;
	size_t size = 0;

	for (size_t i = 0; (f = field_at(record->kind, i)); i++)
		size += is_string(f) ? string_length(record, f) + 1 : 0;
	return size;
}

/* The record with strings of its own at to, where there is room; what comes after them. */
static char *copy_to(struct record *copy, const struct record *record, char *to)
{
	const struct field *f;

	*copy = *record;
	for (size_t i = 0; (f = field_at(record->kind, i)); i++) {
		size_t len;

		if (!is_string(f))
			continue;
		len = string_length(record, f);
		memcpy(to, string_get(record, f), len);
		to[len] = '\0';
		string_set(copy, f, to);
		if (f->type == FIELD_NAME)
			copy->name.len = len;
		to += len + 1;
	}
	return to;
}

int meta_batch_add(struct meta_batch *b, const struct record *record)
{
	char *to = b->strings + b->used;

	if (b->count == META_BATCH_RECORDS ||
	    strings_size(record) > META_BATCH_STRINGS - b->used)
		return -ENOSPC;
	b->used += (size_t)(copy_to(&b->records[b->count++], record, to) - to);
	return 0;
}

struct record *meta_copy(const struct record *record, size_t *size)
{
	struct record *copy;

	*size = sizeof(*copy) + strings_size(record);
	copy = malloc(*size);
	if (copy)
		copy_to(copy, record, (char *)(copy + 1));
	return copy;
}

size_t meta_bound(void)
{
	return META_FIELDS_MAX * column_bound(META_BATCH_RECORDS) + META_BATCH_STRINGS;
}

size_t meta_encode(const struct meta_batch *b, uint64_t *scratch, uint8_t *out)
{
	enum record_kind kind = b->records[0].kind;
	const struct field *f;
	uint8_t *at = out;

	for (size_t i = 0; (f = field_at(kind, i)); i++) {
		for (size_t r = 0; r < b->count; r++)
			scratch[r] = is_string(f) ? string_length(&b->records[r], f) :
						    number_get(&b->records[r], f);
		at = column_put(at, scratch, b->count);
		for (size_t r = 0; is_string(f) && r < b->count; r++) {
			memcpy(at, string_get(&b->records[r], f), scratch[r] + 1);
			at += scratch[r] + 1;
		}
	}
	return (size_t)(at - out);
}

static int reserve(struct meta_records *m, size_t count)
{
	size_t need = m->count + count;

	if (need > m->room) {
		size_t room = need > 2 * m->room ? need : 2 * m->room;
		struct record *items = realloc(m->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		m->items = items;
		m->room = room;
	}
	if (count > m->column_room) {
		free(m->column);
		m->column = malloc(count * sizeof(*m->column));
		m->column_room = m->column ? count : 0;
	}
	return m->column || !count ? 0 : -ENOMEM;
}

/* Points the records to their strings, each of which must end in its NUL. */
static int take_strings(struct cursor *in, const uint64_t *length, const struct field *f,
			struct record *records, size_t count)
{
	uint64_t max = f->type == FIELD_NAME ? META_NAME_MAX : META_STRING_MAX;

	for (size_t i = 0; i < count; i++) {
		if (length[i] > max || (size_t)(in->end - in->at) < length[i] + 1 ||
		    in->at[length[i]])
			return -EBADMSG;
		string_set(&records[i], f, (const char *)in->at);
		if (f->type == FIELD_NAME)
			records[i].name.len = length[i];
		in->at += length[i] + 1;
	}
	return 0;
}

/* One field after another: its type is the same for all records. */
static int take_field(struct cursor *in, uint64_t *column, const struct field *f,
		      struct record *records, size_t count)
{
	bool wide = f->type == FIELD_64 || f->type == FIELD_TIME;
	int err = column_get(in, column, count, wide ? 8 : 4);

	if (err || is_string(f))
		return err ? err : take_strings(in, column, f, records, count);
	for (size_t i = 0; i < count; i++)
		number_set(&records[i], f, column[i]);
	return 0;
}

int meta_decode(struct meta_records *m, enum record_kind kind, const uint8_t *in, size_t size,
		size_t count)
{
	struct cursor cursor = {in, in + size};
	const struct field *f;
	struct record *records;
	int err;

	if (count > CHUNK_RECORDS_MAX)
		return -EBADMSG;
	err = reserve(m, count);
	if (err || !count)
		return err;
	records = m->items + m->count;
	memset(records, 0, count * sizeof(*records));
	for (size_t i = 0; i < count; i++)
		records[i].kind = kind;
	for (size_t i = 0; !err && (f = field_at(kind, i)); i++)
		err = take_field(&cursor, m->column, f, records, count);
	m->count += err ? 0 : count;
	return err;
}

void meta_records_free(struct meta_records *m)
{
	free(m->items);
	free(m->column);
	*m = (struct meta_records){0};
}
