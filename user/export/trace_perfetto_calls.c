// SPDX-License-Identifier: BSD-2-Clause
/* The calls of each thread: slices that nest, with what they caused. */
#include <errno.h>
#include <string.h>

#include "export/trace_perfetto.h"
#include "probe/catalogue.h"

#define BEGIN PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
#define END PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END
#define INSTANT PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT

/* A thread being written. */
struct thread {
	struct perfetto *f;
	uint32_t index;
	bool begun;
	size_t works; /* how far call_works was gone through */
	uint32_t rows[EXPORT_LANES / 32]; /* bits: described */
};

static const char *cold_word(const struct call *c)
{
	if (c->flags & CALL_COLD_LOAD)
		return "module_load";
	return c->flags & CALL_COLD_KERNEL ? "first_kernel" : "first_api";
}

static void args_of_launch(struct packet_args *a, const struct session *s, const struct call *c)
{
	const struct launch_args *l = &s->launches[c->args];

	packet_arg_dim(a, FIELD_GRID, l->grid);
	packet_arg_dim(a, FIELD_BLOCK, l->block);
	if (l->smem)
		packet_arg_uint(a, FIELD_SMEM, l->smem);
	if (l->stream)
		packet_arg_pointer(a, FIELD_STREAM_HANDLE, l->stream);
	if (c->kernel == UINT32_MAX)
		packet_arg_pointer(a, FIELD_HANDLE, l->func);
}

static void args_of_call(struct packet_args *a, const struct call_args *v)
{
	if (v->bytes)
		packet_arg_uint(a, FIELD_BYTES, v->bytes);
	if (v->object)
		packet_arg_pointer(a, FIELD_OBJECT, v->object);
	if (v->stream)
		packet_arg_pointer(a, FIELD_STREAM_HANDLE, v->stream);
	if (v->has_out)
		packet_arg_pointer(a, FIELD_POINTER, v->out);
}

static void args_of_poll(struct packet_args *a, const struct poll_args *v)
{
	packet_arg_uint(a, FIELD_POLLS, v->count);
	packet_arg_int(a, FIELD_POLL_INSIDE, v->inside);
	if (v->object)
		packet_arg_pointer(a, FIELD_OBJECT, v->object);
}

static void arg_of_error(struct packet_args *a, const struct session *s, const struct call *c)
{
	const char *name = api_error_name(s->apis[c->api].library, c->ret);

	packet_arg_int(a, FIELD_RESULT, c->ret);
	if (name)
		packet_arg_text(a, FIELD_ERROR, name);
}

static void args_collect(struct packet_args *a, const struct session *s, const struct call *c,
			 enum export_end how)
{
	if (c->kernel != UINT32_MAX)
		packet_arg_kernel(a, FIELD_KERNEL, c->kernel);
	if (c->args == UINT32_MAX)
		; /* none were recorded */
	else if (c->flags & CALL_POLL)
		args_of_poll(a, &s->polls[c->args]);
	else if (c->flags & CALL_ARGS_LAUNCH)
		args_of_launch(a, s, c);
	else if (c->flags & CALL_ARGS_CALL)
		args_of_call(a, &s->transfers[c->args]);
	if (c->flags & CALL_ERROR)
		arg_of_error(a, s, c);
	if (c->flags & CALL_COLD)
		packet_arg_text(a, FIELD_COLD, cold_word(c));
	if (how != EXPORT_END_KNOWN)
		packet_arg_text(a, FIELD_STATE, export_end_word(how));
}

/*
 * The arrows to what the call caused: a number for each, which the work has as well. One
 * number for several would chain them, not fan them out.
 */
static void put_arrows(struct thread *t, uint32_t call)
{
	struct perfetto *f = t->f;
	const struct session *s = f->s;
	bool nested = false;
	size_t at = 0;

	while (t->works < s->call_works_count && s->works[s->call_works[t->works]].call < call)
		t->works++;
	for (; t->works < s->call_works_count; t->works++) {
		uint32_t work = s->call_works[t->works];

		if (s->works[work].call != call)
			break;
		if (export_cause(s, f->o, work) == CALL_NONE)
			continue;
		if (f->o->compat) {
			packet_fixed64(&f->packets, EVENT_FLOW, (uint64_t)work + 1);
			continue;
		}
		if (!nested)
			at = packet_nest(&f->packets, EVENT_CORRELATION);
		nested = true;
		packet_uint(&f->packets, CORRELATION_WORK, (uint64_t)work + 1);
	}
	if (nested)
		packet_unnest(&f->packets, at);
}

/* The track of a row; 0: the thread's own, which is the sequence's. */
static uint64_t row_track(struct thread *t, int row)
{
	struct perfetto *f = t->f;
	uint64_t number = (uint64_t)t->index * EXPORT_LANES + (unsigned)row;

	if (!row)
		return 0;
	if (!(t->rows[row / 32] & 1u << row % 32)) {
		t->rows[row / 32] |= 1u << row % 32;
		return perfetto_track(f, &(struct perfetto_track){
			TRACK_THREAD_ROW, number, track_id(TRACK_THREAD, t->index),
			"calls that overlap", NULL, NULL, row});
	}
	return track_id(TRACK_THREAD_ROW, number);
}

static void put_call(struct thread *t, uint32_t index, enum export_end how, int row)
{
	struct perfetto *f = t->f;
	const struct call *c = &f->s->calls[index];
	const struct session_api *api = &f->s->apis[c->api];
	struct packets *p = &f->packets;
	struct packet_args args;
	bool slice = (how == EXPORT_END_KNOWN || how == EXPORT_END_OPEN) && row < EXPORT_LANES;
	uint64_t track = row_track(t, row < EXPORT_LANES ? row : 0);
	uint64_t name = packets_intern(p, INTERN_EVENT, c->api), category, wait = 0;
	struct packet_open open;

	packet_args_init(&args, p, INTERN_NOTE);
	category = packets_intern(p, INTERN_CATEGORY, api->kind < 16 ? api->kind : API_OTHER);
	if (api->sorts & API_IS_WAIT)
		wait = packets_intern(p, INTERN_CATEGORY, CATEGORY_WAIT);
	args_collect(&args, f->s, c, how);
	if (row == EXPORT_LANES)
		packet_arg_int(&args, FIELD_DURATION, call_duration(c));
	open = packet_begin(p, c->begin, PACKET_TRACK_EVENT);
	put_arrows(t, index);
	packet_uint(p, EVENT_TYPE, slice ? BEGIN : INSTANT);
	packet_uint(p, EVENT_CATEGORY, category);
	if (wait)
		packet_uint(p, EVENT_CATEGORY, wait);
	packet_uint(p, EVENT_NAME, name);
	if (track)
		packet_uint(p, EVENT_TRACK, track);
	packet_notes(p, &args);
	packet_end(p, open);
}

/* On a row of the process: what is rare is to be found without zooming in. */
static void put_event_of(struct thread *t, const struct call *c, int64_t ts, enum track_kind kind)
{
	struct perfetto *f = t->f;
	uint32_t process = f->s->threads[t->index].process;
	bool error = kind == TRACK_ERRORS;
	struct packet_args args;
	char name[256];
	uint64_t track;

	packet_args_init(&args, &f->packets, INTERN_NOTE);
	track = perfetto_track(f, &(struct perfetto_track){
		kind, process, track_id(TRACK_PROCESS, process), error ? "errors" : "cold starts",
		error ? "Calls that returned an error" : "First calls, by evidence", NULL, -20});
	export_text(f->s->apis[c->api].display, name, sizeof(name));
	packet_arg_text(&args, FIELD_NAME, name);
	packet_arg_uint(&args, FIELD_TID, f->s->threads[t->index].tid);
	if (c->kernel != UINT32_MAX)
		packet_arg_kernel(&args, FIELD_KERNEL, c->kernel);
	if (error)
		arg_of_error(&args, f->s, c);
	else
		packet_arg_text(&args, FIELD_COLD, cold_word(c));
	perfetto_instant(f, ts, track, error ? WORD_ERROR : WORD_COLD, &args);
}

static void close_until(struct thread *t, int64_t upto)
{
	struct perfetto *f = t->f;
	struct packets *p = &f->packets;
	struct export_slice slice;

	while (export_lanes_close(f->lanes, upto, &slice)) {
		const struct call *c = &f->s->calls[slice.what];
		uint64_t track = row_track(t, slice.row);
		struct packet_open open = packet_begin(p, slice.end, PACKET_TRACK_EVENT);

		packet_uint(p, EVENT_TYPE, END);
		if (track)
			packet_uint(p, EVENT_TRACK, track);
		packet_end(p, open);
		if (c->flags & CALL_ERROR)
			put_event_of(t, c, slice.end, TRACK_ERRORS);
	}
}

static int put(struct thread *t, uint32_t index, enum export_end how, int64_t end)
{
	struct perfetto *f = t->f;
	const struct call *c = &f->s->calls[index];
	int row = 0;

	if (!t->begun) {
		perfetto_thread(f, t->index);
		packets_sequence(&f->packets, track_id(TRACK_THREAD, t->index), c->begin);
		t->begun = true;
	}
	close_until(t, c->begin);
	if (how == EXPORT_END_KNOWN || how == EXPORT_END_OPEN)
		row = export_lanes_add(f->lanes, c->begin, end, index);
	if (row < 0)
		return row;
	put_call(t, index, how, row);
	if (c->flags & CALL_COLD)
		put_event_of(t, c, c->begin, TRACK_COLD);
	if (c->flags & CALL_ERROR && (how != EXPORT_END_KNOWN || row == EXPORT_LANES))
		put_event_of(t, c, c->begin, TRACK_ERRORS);
	return 0;
}

static int put_thread(struct thread *t)
{
	struct perfetto *f = t->f;
	const struct session_thread *about = &f->s->threads[t->index];
	int err = 0;

	for (uint32_t i = 0; i < about->calls && !err; i++) {
		const struct call *c = &f->s->calls[about->first_call + i];
		int64_t end;
		enum export_end how = export_call_end(f->s, c, &end);

		if (export_wants(f->o, c->begin, end))
			err = put(t, about->first_call + i, how, end);
		if (!err)
			err = perfetto_progress(f);
	}
	close_until(t, INT64_MAX);
	return err;
}

int perfetto_calls(struct perfetto *f)
{
	struct thread t = {.f = f};
	int err = 0;

	for (uint32_t i = 0; i < f->s->threads_count && !err; i++) {
		if (!export_wants_process(f->o, f->s->threads[i].process))
			continue;
		t.index = i;
		t.begun = false;
		memset(t.rows, 0, sizeof(t.rows));
		err = put_thread(&t);
	}
	return err;
}
