// SPDX-License-Identifier: BSD-2-Clause
/* Calls and works as rows, in the order of time. */
#include <errno.h>

#include "export/sqlite.h"
#include "probe/catalogue.h"

#define PROGRESS_EVERY 8192
#define CLASS_RUNTIME 0
#define CLASS_DRIVER 1
#define NVTX_PUSH_POP 59
#define MEMORY_UNKNOWN 65535 /* nsys counts the kinds from 0, CUPTI from 1 */
#define LAUNCH_REGULAR 1

/* globalTid of the documentation: hardware 8 bits, VM 8, process 24, thread 24. */
uint64_t sqlite_global_tid(const struct sqlite_writer *w, uint32_t process, uint32_t tid)
{
	return w->global_pids[process] | ((tid - w->id_shifts[process]) & 0xffffff);
}

static uint32_t once(struct sqlite_writer *w, uint32_t *id, const char *text)
{
	if (!*id)
		*id = sqlite_string(w, text);
	return *id;
}

static void put_times(struct sqlite_row *row, int64_t begin, int64_t end)
{
	row_int(row, begin - row->w->base);
	row_int(row, end - row->w->base);
}

static void put_state(struct sqlite_writer *w, const struct export_item *item, uint64_t tid,
		      uint64_t id)
{
	const struct call *c = &w->s->calls[item->index];
	const char *state = export_end_word(item->how);
	struct sqlite_row row;

	if (!state && !(c->flags & CALL_POLL))
		return;
	row = sqlite_row(w, TABLE_STATE);
	row_int(&row, (int64_t)tid);
	row_int(&row, (int64_t)id);
	row_text(&row, state);
	if (c->flags & CALL_POLL) {
		row_int(&row, w->s->polls[c->args].count);
		row_int(&row, w->s->polls[c->args].inside);
	}
	row_add(&row);
}

/* NCCL's own ranges are where nsys has these, too. */
static void put_range(struct sqlite_writer *w, const struct export_item *item, uint64_t tid)
{
	const struct call *c = &w->s->calls[item->index];
	struct sqlite_row row = sqlite_row(w, TABLE_NVTX);

	put_times(&row, item->begin, item->end);
	row_int(&row, NVTX_PUSH_POP);
	for (int i = 0; i < 3; i++)
		row_null(&row);
	row_text(&row, w->s->apis[c->api].display);
	row_int(&row, (int64_t)tid);
	row_add(&row);
}

static void put_sync(struct sqlite_writer *w, const struct export_item *item, uint64_t id)
{
	uint32_t index;
	enum export_sync_kind kind = export_sync_of(&w->syncs, item->index, &index);
	const struct session_stream *stream;
	struct sqlite_row row;

	if (kind == SYNC_NONE)
		return;
	stream = &w->s->streams[index];
	row = sqlite_row(w, TABLE_SYNC);
	put_times(&row, item->begin, item->end);
	row_int(&row, w->s->devices[stream->device].about.ordinal);
	row_int(&row, stream->context);
	row_null(&row);
	row_int(&row, kind == SYNC_STREAM ? stream->id : UINT32_MAX);
	row_int(&row, (int64_t)id);
	row_int(&row, (int64_t)w->global_pids[stream->process]);
	row_int(&row, kind);
	row_int(&row, UINT32_MAX); /* no event; CUPTI_SYNCHRONIZATION_INVALID_VALUE */
	row_add(&row);
}

static void put_call(struct sqlite_writer *w, const struct export_item *item)
{
	const struct call *c = &w->s->calls[item->index];
	const struct session_thread *t = &w->s->threads[c->thread];
	const struct session_api *a = &w->s->apis[c->api];
	uint64_t tid = sqlite_global_tid(w, t->process, t->tid);
	uint64_t id = export_call_id(&w->ids, item->index);
	struct sqlite_row row;

	put_state(w, item, tid, id);
	if (a->library == API_NCCL) {
		put_range(w, item, tid);
		return;
	}
	row = sqlite_row(w, TABLE_RUNTIME);
	put_times(&row, item->begin, item->end);
	row_int(&row, a->library == API_RUNTIME ? CLASS_RUNTIME : CLASS_DRIVER);
	row_int(&row, (int64_t)tid);
	row_int(&row, (int64_t)id);
	row_int(&row, once(w, &w->api_names[c->api], a->name));
	row_int(&row, c->ret);
	row_add(&row);
	put_sync(w, item, id);
}

static void put_place(struct sqlite_row *row, const struct work *w, uint64_t id)
{
	const struct session *s = row->w->s;
	const struct session_stream *stream = &s->streams[w->stream];

	put_times(row, w->begin, w->end);
	row_int(row, s->devices[stream->device].about.ordinal);
	row_int(row, stream->context);
	row_null(row);
	row_int(row, stream->id);
	row_int(row, (int64_t)id);
	row_int(row, (int64_t)row->w->global_pids[stream->process]);
}

static void put_graph_node(struct sqlite_row *row, const struct work *w)
{
	if (w->graph)
		row_int(row, (int64_t)w->graph_node);
	else
		row_null(row);
}

static void put_names(struct sqlite_row *row, const struct work *w)
{
	struct sqlite_writer *sw = row->w;
	const struct session_kernel *k;

	if (w->kernel == UINT32_MAX) {
		row_int(row, sqlite_string(sw, "unknown"));
		row_int(row, sqlite_string(sw, "unknown"));
		row_null(row);
		return;
	}
	k = &sw->s->kernels[w->kernel];
	row_int(row, once(sw, &sw->full_names[w->kernel], k->demangled));
	row_int(row, once(sw, &sw->short_names[w->kernel], k->short_name));
	row_int(row, once(sw, &sw->mangled_names[w->kernel], k->mangled));
}

static void put_kernel(struct sqlite_writer *sw, const struct work *w, uint64_t id)
{
	static const struct record_shape unknown;
	const struct record_shape *shape = w->shape == SHAPE_NONE ? &unknown
								   : &sw->s->shapes[w->shape];
	struct sqlite_row row = sqlite_row(sw, TABLE_KERNEL);

	put_place(&row, w, id);
	put_names(&row, w);
	row_int(&row, LAUNCH_REGULAR);
	row_null(&row);
	row_int(&row, shape->registers);
	for (int i = 0; i < 3; i++)
		row_int(&row, shape->grid[i]);
	for (int i = 0; i < 3; i++)
		row_int(&row, shape->block[i]);
	row_int(&row, shape->smem_static);
	row_int(&row, shape->smem_dynamic);
	row_int(&row, shape->local);
	for (int i = 0; i < 3; i++)
		row_null(&row);
	put_graph_node(&row, w);
	row_null(&row);
	if (w->graph)
		row_int(&row, w->graph);
	row_add(&row);
}

static int64_t memory_kind(unsigned kind)
{
	return kind && kind <= RECORD_MEMORY_MANAGED_STATIC ? (int64_t)kind - 1 : MEMORY_UNKNOWN;
}

static void put_copy(struct sqlite_writer *sw, const struct work *w, uint64_t id)
{
	const struct session_stream *stream = &sw->s->streams[w->stream];
	struct sqlite_row row = sqlite_row(sw, TABLE_MEMCPY);

	put_place(&row, w, id);
	row_int(&row, (int64_t)w->bytes);
	row_int(&row, w->direction);
	row_null(&row);
	row_int(&row, memory_kind(w->source));
	row_int(&row, memory_kind(w->target));
	if (w->peer != UINT32_MAX) {
		row_int(&row, sw->s->devices[stream->device].about.ordinal);
		row_int(&row, stream->context);
		row_int(&row, w->peer);
		row_null(&row);
		row_null(&row);
	} else {
		for (int i = 0; i < 5; i++)
			row_null(&row);
	}
	put_graph_node(&row, w);
	row_add(&row);
}

static void put_set(struct sqlite_writer *sw, const struct work *w, uint64_t id)
{
	struct sqlite_row row = sqlite_row(sw, TABLE_MEMSET);

	put_place(&row, w, id);
	row_null(&row); /* the value is not recorded */
	row_int(&row, (int64_t)w->bytes);
	put_graph_node(&row, w);
	row_int(&row, memory_kind(w->target));
	row_add(&row);
}

static void put_work(struct sqlite_writer *sw, uint32_t index)
{
	const struct work *w = &sw->s->works[index];
	uint64_t id = export_work_id(&sw->ids, index);

	if (w->kind == RECORD_WORK_KERNEL)
		put_kernel(sw, w, id);
	else if (w->kind == RECORD_WORK_COPY)
		put_copy(sw, w, id);
	else
		put_set(sw, w, id);
}

int sqlite_rows(struct sqlite_writer *w, struct export_walk *walk, struct export_item *item,
		bool any)
{
	uint64_t all = w->s->calls_count + w->s->works_count, done = 0;
	int err = 0;

	for (; any && !w->err && !err; any = export_walk_next(walk, item)) {
		if (item->is_work)
			put_work(w, item->index);
		else
			put_call(w, item);
		if (++done % PROGRESS_EVERY == 0)
			err = export_progress(w->o, done, all);
	}
	return err ? err : w->err;
}
