// SPDX-License-Identifier: BSD-2-Clause
/* One table of everything, by time: a row a call and a row a piece of work on a GPU. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace.h"
#include "probe/catalogue.h"
#include "util/text.h"

#define PROGRESS_EVERY 8192
#define TEXT_SIZE 9000 /* a kernel's name has up to 8191 bytes */

static const enum export_field_id columns[] = {
	FIELD_KIND, FIELD_ID, FIELD_CAUSE, FIELD_PID, FIELD_TID, FIELD_PROCESS, FIELD_THREAD,
	FIELD_BEGIN, FIELD_DURATION, FIELD_NAME, FIELD_CATEGORY, FIELD_LIBRARY, FIELD_PARENT,
	FIELD_STATE, FIELD_RESULT, FIELD_ERROR, FIELD_COLD, FIELD_POLLS, FIELD_POLL_INSIDE,
	FIELD_HANDLE, FIELD_STREAM_HANDLE, FIELD_OBJECT, FIELD_POINTER, FIELD_KERNEL,
	FIELD_MANGLED, FIELD_DEVICE, FIELD_CONTEXT, FIELD_STREAM, FIELD_CORRELATION, FIELD_CBID,
	FIELD_GRID, FIELD_BLOCK, FIELD_REGISTERS, FIELD_SMEM, FIELD_SMEM_STATIC,
	FIELD_SMEM_DYNAMIC, FIELD_LOCAL, FIELD_OCCUPANCY, FIELD_LIMITER, FIELD_LAUNCH_TO_START,
	FIELD_QUEUE_TIME, FIELD_QUEUE_DELAY, FIELD_GRAPH, FIELD_GRAPH_NODE, FIELD_PRIORITY,
	FIELD_CHANNEL, FIELD_CHANNEL_TYPE, FIELD_BYTES, FIELD_BANDWIDTH, FIELD_DIRECTION,
	FIELD_SOURCE, FIELD_TARGET, FIELD_PEER,
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

struct cell {
	enum { CELL_EMPTY = 0, CELL_INT, CELL_UINT, CELL_HEX, CELL_DOUBLE, CELL_TEXT,
	       CELL_DIM } kind;
	union {
		int64_t i;
		uint64_t u;
		double d;
		const char *text;
		const uint32_t *dim;
	};
};

/* How far the works of a stream were gone through. */
struct progress {
	struct export_stream_state state;
	uint32_t next;
	struct work_times times; /* of the one before next */
};

struct csv {
	const struct session *s;
	const struct export_options *o;
	FILE *out;
	struct progress *streams;
	struct cell row[FIELDS];
	char limiter[128];
	char text[TEXT_SIZE];
};

static void set_int(struct csv *c, enum export_field_id f, int64_t v)
{
	c->row[f] = (struct cell){.kind = CELL_INT, .i = v};
}

static void set_uint(struct csv *c, enum export_field_id f, uint64_t v)
{
	c->row[f] = (struct cell){.kind = CELL_UINT, .u = v};
}

static void set_hex(struct csv *c, enum export_field_id f, uint64_t v)
{
	c->row[f] = (struct cell){.kind = CELL_HEX, .u = v};
}

static void set_text(struct csv *c, enum export_field_id f, const char *v)
{
	if (v && *v)
		c->row[f] = (struct cell){.kind = CELL_TEXT, .text = v};
}

static void set_dim(struct csv *c, enum export_field_id f, const uint32_t v[3])
{
	c->row[f] = (struct cell){.kind = CELL_DIM, .dim = v};
}

static void print_cell(struct csv *c, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_EMPTY: break;
	case CELL_INT: fprintf(c->out, "%" PRId64, cell->i); break;
	case CELL_UINT: fprintf(c->out, "%" PRIu64, cell->u); break;
	case CELL_HEX: fprintf(c->out, "0x%" PRIx64, cell->u); break;
	case CELL_DOUBLE: fprintf(c->out, "%.3f", cell->d); break;
	case CELL_TEXT:
		export_text(cell->text, c->text, sizeof(c->text));
		text_csv(c->out, c->text);
		break;
	case CELL_DIM:
		fprintf(c->out, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, cell->dim[0], cell->dim[1],
			cell->dim[2]);
		break;
	}
}

static void print_row(struct csv *c)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		if (i)
			putc_unlocked(',', c->out);
		print_cell(c, &c->row[columns[i]]);
	}
	putc_unlocked('\n', c->out);
}

static void set_process(struct csv *c, uint32_t process)
{
	const struct session_process *p = &c->s->processes[process];

	set_uint(c, FIELD_PID, p->pid);
	set_text(c, FIELD_PROCESS, p->comm);
}

static void set_kernel(struct csv *c, uint32_t kernel)
{
	if (kernel == UINT32_MAX)
		return;
	set_text(c, FIELD_KERNEL, c->s->kernels[kernel].demangled);
	set_text(c, FIELD_MANGLED, c->s->kernels[kernel].mangled);
}

static const char *cold_word(const struct call *c)
{
	if (!(c->flags & CALL_COLD))
		return NULL;
	if (c->flags & CALL_COLD_LOAD)
		return "module_load";
	return c->flags & CALL_COLD_KERNEL ? "first_kernel" : "first_api";
}

static void set_args(struct csv *c, const struct call *call)
{
	if (call->args == UINT32_MAX)
		return;
	if (call->flags & CALL_POLL) {
		const struct poll_args *v = &c->s->polls[call->args];

		set_uint(c, FIELD_POLLS, v->count);
		set_int(c, FIELD_POLL_INSIDE, v->inside);
		set_hex(c, FIELD_OBJECT, v->object);
	} else if (call->flags & CALL_ARGS_LAUNCH) {
		const struct launch_args *v = &c->s->launches[call->args];

		set_hex(c, FIELD_HANDLE, v->func);
		set_hex(c, FIELD_STREAM_HANDLE, v->stream);
		set_uint(c, FIELD_SMEM, v->smem);
		set_dim(c, FIELD_GRID, v->grid);
		set_dim(c, FIELD_BLOCK, v->block);
	} else if (call->flags & CALL_ARGS_CALL) {
		const struct call_args *v = &c->s->transfers[call->args];

		set_hex(c, FIELD_OBJECT, v->object);
		set_hex(c, FIELD_STREAM_HANDLE, v->stream);
		set_uint(c, FIELD_BYTES, v->bytes);
		if (v->has_out)
			set_hex(c, FIELD_POINTER, v->out);
	}
}

static void set_call(struct csv *c, const struct export_item *item)
{
	const struct session *s = c->s;
	const struct call *call = &s->calls[item->index];
	const struct session_api *api = &s->apis[call->api];
	const struct session_thread *t = &s->threads[call->thread];
	const struct work_call *known = work_call_of(s, item->index);

	set_text(c, FIELD_KIND, "call");
	set_uint(c, FIELD_ID, (uint64_t)item->index + 1);
	set_process(c, t->process);
	set_uint(c, FIELD_TID, t->tid);
	set_text(c, FIELD_THREAD, t->comm);
	set_int(c, FIELD_BEGIN, item->begin);
	if (item->how == EXPORT_END_KNOWN || item->how == EXPORT_END_OPEN)
		set_int(c, FIELD_DURATION, item->end - item->begin);
	set_text(c, FIELD_NAME, api->display);
	set_text(c, FIELD_CATEGORY, api_kind_name(api->kind));
	set_text(c, FIELD_LIBRARY, api_library_name(api->library));
	if (call->parent != CALL_NONE)
		set_uint(c, FIELD_PARENT, (uint64_t)call->parent + 1);
	set_text(c, FIELD_STATE, export_end_word(item->how));
	if (item->how == EXPORT_END_KNOWN || item->how == EXPORT_BEGIN_LOST)
		set_int(c, FIELD_RESULT, call->ret);
	if (call->flags & CALL_ERROR)
		set_text(c, FIELD_ERROR, api_error_name(api->library, call->ret));
	set_text(c, FIELD_COLD, cold_word(call));
	set_kernel(c, call->kernel);
	set_args(c, call);
	if (!known)
		return;
	set_uint(c, FIELD_CORRELATION, known->correlation);
	set_uint(c, FIELD_CBID, known->cbid);
}

static void set_times(struct csv *c, const struct work_times *t)
{
	if (t->launch_to_start != NA_TIME)
		set_int(c, FIELD_LAUNCH_TO_START, t->launch_to_start);
	if (t->queue_time != NA_TIME)
		set_int(c, FIELD_QUEUE_TIME, t->queue_time);
	if (t->queue_delay != NA_TIME)
		set_int(c, FIELD_QUEUE_DELAY, t->queue_delay);
}

static void set_shape(struct csv *c, const struct work *w)
{
	const struct record_shape *shape = &c->s->shapes[w->shape];
	const struct session_stream *st = &c->s->streams[w->stream];
	struct occupancy o;

	set_dim(c, FIELD_GRID, shape->grid);
	set_dim(c, FIELD_BLOCK, shape->block);
	set_uint(c, FIELD_REGISTERS, shape->registers);
	set_uint(c, FIELD_SMEM_STATIC, shape->smem_static);
	set_uint(c, FIELD_SMEM_DYNAMIC, shape->smem_dynamic);
	set_uint(c, FIELD_LOCAL, shape->local);
	if (occupancy_of(&c->s->devices[st->device].about, shape, &o))
		return;
	set_int(c, FIELD_OCCUPANCY, o.percent);
	set_text(c, FIELD_LIMITER,
		 export_limiter_words(o.limiting, c->limiter, sizeof(c->limiter)));
}

static void set_copy(struct csv *c, const struct work *w)
{
	set_uint(c, FIELD_BYTES, w->bytes);
	if (w->end > w->begin)
		c->row[FIELD_BANDWIDTH] = (struct cell){
			.kind = CELL_DOUBLE, .d = (double)w->bytes / (double)(w->end - w->begin)};
	set_text(c, FIELD_TARGET, export_memory_word(w->target));
	if (w->kind != RECORD_WORK_COPY)
		return;
	set_text(c, FIELD_SOURCE, export_memory_word(w->source));
	set_text(c, FIELD_DIRECTION, export_direction_word(w->direction));
	if (w->peer != UINT32_MAX)
		set_uint(c, FIELD_PEER, w->peer);
}

static const char *work_kind(const struct work *w)
{
	if (w->kind == RECORD_WORK_COPY)
		return "copy";
	return w->kind == RECORD_WORK_SET ? "set" : "kernel";
}

/* What came before in the stream counts, whether it is wanted or not. */
static const struct work_times *times_of(struct csv *c, uint32_t index)
{
	uint32_t stream = c->s->works[index].stream;
	struct progress *p = &c->streams[stream];

	if (p->next < c->s->streams[stream].first_work)
		p->next = c->s->streams[stream].first_work;
	while (p->next <= index)
		export_work_times(c->s, &p->state, p->next++, &p->times);
	return &p->times;
}

static void set_work(struct csv *c, const struct export_item *item)
{
	const struct session *s = c->s;
	const struct work *w = &s->works[item->index];
	const struct session_stream *st = &s->streams[w->stream];
	uint32_t cause = export_cause(s, c->o, item->index);

	set_text(c, FIELD_KIND, work_kind(w));
	set_uint(c, FIELD_ID, (uint64_t)s->calls_count + item->index + 1);
	if (cause != CALL_NONE)
		set_uint(c, FIELD_CAUSE, (uint64_t)cause + 1);
	set_process(c, st->process);
	set_int(c, FIELD_BEGIN, item->begin);
	set_int(c, FIELD_DURATION, item->end - item->begin);
	set_uint(c, FIELD_DEVICE, s->devices[st->device].about.ordinal);
	set_uint(c, FIELD_CONTEXT, st->context);
	set_uint(c, FIELD_STREAM, st->id);
	set_uint(c, FIELD_CORRELATION, w->correlation);
	set_text(c, FIELD_NAME, w->kernel == UINT32_MAX ? work_kind(w)
							: s->kernels[w->kernel].short_name);
	set_kernel(c, w->kernel);
	set_times(c, times_of(c, item->index));
	if (w->shape != SHAPE_NONE)
		set_shape(c, w);
	if (w->kind != RECORD_WORK_KERNEL)
		set_copy(c, w);
	if (w->graph) {
		set_uint(c, FIELD_GRAPH, w->graph);
		set_uint(c, FIELD_GRAPH_NODE, w->graph_node);
	}
	set_int(c, FIELD_PRIORITY, w->priority);
	set_uint(c, FIELD_CHANNEL, w->channel);
	set_uint(c, FIELD_CHANNEL_TYPE, w->channel_type);
}

static void print_header(struct csv *c)
{
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(c->out, "%s%s", i ? "," : "", export_field(columns[i])->name);
	putc_unlocked('\n', c->out);
}

static int print_rows(struct csv *c, struct export_walk *walk)
{
	uint64_t done = 0, all = c->s->calls_count + c->s->works_count;
	struct export_item item;
	int err = 0;

	while (!err && export_walk_next(walk, &item)) {
		memset(c->row, 0, sizeof(c->row));
		if (item.is_work)
			set_work(c, &item);
		else
			set_call(c, &item);
		print_row(c);
		if (++done % PROGRESS_EVERY == 0)
			err = export_progress(c->o, done, all);
	}
	return err;
}

static int write_csv(const struct session *s, const struct export_options *o,
		     struct export_file *file, char *why, size_t size)
{
	struct csv *c = calloc(1, sizeof(*c));
	struct export_walk *walk = NULL;
	int err = c ? export_walk_new(&walk, s, o) : -ENOMEM;

	if (!err) {
		c->s = s;
		c->o = o;
		c->out = export_stream(file);
		c->streams = calloc(s->streams_count + 1, sizeof(*c->streams));
		err = c->streams ? 0 : -ENOMEM;
	}
	if (!err) {
		print_header(c);
		err = print_rows(c, walk);
	}
	export_walk_free(walk);
	if (c)
		free(c->streams);
	free(c);
	return err;
}

static const char *const endings[] = {".csv", NULL};

const struct export_writer export_csv = {
	.name = "csv",
	.endings = endings,
	.what = "one table, a row a call and a row a piece of work on a GPU",
	.write = write_csv,
};
