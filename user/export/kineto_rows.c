// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which row an event goes to, and how rows are called. Viewers drop or misplace what
 * overlaps on one row without nesting, so that goes to a row of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/kineto.h"
#include "model/map.h"

static struct kineto_row *row_add(struct kineto *k, uint32_t pid, uint32_t tid, uint32_t thread)
{
	struct kineto_row *row = &k->rows[k->rows_count];

	*row = (struct kineto_row){.pid = pid, .tid = tid, .thread = thread};
	if (export_lanes_new(&row->lanes, true))
		return NULL;
	k->rows_count++;
	return row;
}

static int stream_rows(struct kineto *k, struct map *known)
{
	const struct session *s = k->s;

	for (uint32_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *stream = &s->streams[i];
		uint32_t device = s->devices[stream->device].about.ordinal, at;

		if (stream->process != k->process)
			continue;
		at = map_get(known, device, stream->id);
		if (at == MAP_NONE) {
			at = (uint32_t)k->rows_count;
			if (!row_add(k, device, stream->id, UINT32_MAX) ||
			    map_put(known, device, stream->id, at))
				return -ENOMEM;
		}
		k->row_of_stream[i] = at;
	}
	return 0;
}

int kineto_rows(struct kineto *k)
{
	const struct session *s = k->s;
	struct map known = {0};
	int err = 0;

	k->rows = calloc(s->threads_count + s->streams_count + 1, sizeof(*k->rows));
	k->row_of_thread = calloc(s->threads_count + 1, sizeof(*k->row_of_thread));
	k->row_of_stream = calloc(s->streams_count + 1, sizeof(*k->row_of_stream));
	if (!k->rows || !k->row_of_thread || !k->row_of_stream)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->threads_count && !err; i++) {
		if (s->threads[i].process != k->process)
			continue;
		k->row_of_thread[i] = (uint32_t)k->rows_count;
		if (!row_add(k, k->pid, s->threads[i].tid - k->id_shift, i))
			err = -ENOMEM;
	}
	if (!err)
		err = stream_rows(k, &known);
	map_free(&known);
	return err;
}

void kineto_rows_free(struct kineto *k)
{
	for (size_t i = 0; i < k->rows_count; i++)
		export_lanes_free(k->rows[i].lanes);
	free(k->rows);
	free(k->row_of_thread);
	free(k->row_of_stream);
}

struct kineto_row *kineto_row_of_call(struct kineto *k, const struct call *c)
{
	return &k->rows[k->row_of_thread[c->thread]];
}

struct kineto_row *kineto_row_of_work(struct kineto *k, const struct work *w)
{
	return &k->rows[k->row_of_stream[w->stream]];
}

static void put_meta(struct kineto *k, const char *what, int64_t ts, int64_t pid, uint64_t tid)
{
	put_event(k);
	put(k, "{\"name\":\"");
	put(k, what);
	put(k, "\",\"ph\":\"M\",\"ts\":");
	put_ts(k, ts);
	put(k, ",\"pid\":");
	put_int(k, pid);
	put(k, ",\"tid\":");
	put_uint(k, tid);
}

static void put_meta_text(struct kineto *k, const char *what, int64_t ts, int64_t pid, uint64_t tid,
			  const char *key, const char *text)
{
	put_meta(k, what, ts, pid, tid);
	put(k, ",\"args\":{\"");
	put(k, key);
	put(k, "\":");
	put_string(k, text);
	put(k, "}}");
}

static void put_meta_sort(struct kineto *k, const char *what, int64_t ts, int64_t pid, uint64_t tid,
			  int64_t index)
{
	put_meta(k, what, ts, pid, tid);
	put(k, ",\"args\":{\"sort_index\":");
	put_int(k, index);
	put(k, "}}");
}

static void put_process(struct kineto *k, int64_t ts, int64_t pid, const char *label, int64_t sort)
{
	const char *comm = k->s->processes[k->process].comm;

	put_meta_text(k, "process_name", ts, pid, 0, "name", comm);
	put_meta_text(k, "process_labels", ts, pid, 0, "labels", label);
	put_meta_sort(k, "process_sort_index", ts, pid, 0, sort);
}

/* "stream 7 " is how Kineto writes it. */
static void row_name(const struct kineto *k, const struct kineto_row *row, unsigned lane,
		     char *buf, size_t size)
{
	const struct session_thread *t = row->thread != UINT32_MAX ? &k->s->threads[row->thread]
								   : NULL;
	const char *comm = t ? t->comm : "";
	int n;

	if (t && !*comm && t->tid == t->pid)
		comm = k->s->processes[t->process].comm;
	if (!t)
		n = snprintf(buf, size, "stream %u ", row->tid);
	else
		n = snprintf(buf, size, "thread %u (%.64s)", row->tid, comm);
	if (lane && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "%soverlap %u",
			 row->thread == UINT32_MAX ? "" : " ", lane);
}

static void put_row(struct kineto *k, const struct kineto_row *row, unsigned lane, int64_t ts)
{
	uint64_t tid = row->tid + (uint64_t)lane * KINETO_LANE_IDS;
	char name[128];

	row_name(k, row, lane, name, sizeof(name));
	put_meta_text(k, "thread_name", ts, row->pid, tid, "name", name);
	put_meta_sort(k, "thread_sort_index", ts, row->pid, tid, row->tid);
}

static bool device_named(const struct kineto *k, size_t before, uint32_t pid)
{
	for (size_t i = 0; i < before; i++)
		if (k->rows[i].thread == UINT32_MAX && k->rows[i].pid == pid)
			return true;
	return false;
}

void kineto_put_rows(struct kineto *k, int64_t ts)
{
	char label[32];

	put_process(k, ts, k->pid, "CPU", k->pid);
	for (size_t i = 0; i < k->rows_count; i++) {
		const struct kineto_row *row = &k->rows[i];

		if (row->thread == UINT32_MAX && !device_named(k, i, row->pid)) {
			snprintf(label, sizeof(label), "GPU %u", row->pid);
			put_process(k, ts, row->pid, label, KINETO_GPU_SORT + (int64_t)row->pid);
		}
		put_row(k, row, 0, ts);
	}
}

uint64_t kineto_place(struct kineto *k, struct kineto_row *row, int64_t begin, int64_t end)
{
	int lane = export_lanes_place(row->lanes, begin, end);

	if (lane < 0)
		k->err = lane;
	if (lane <= 0)
		return row->tid;
	if (lane > row->lanes_used) {
		row->lanes_used = lane;
		put_row(k, row, (unsigned)lane, begin);
	}
	return row->tid + (uint64_t)lane * KINETO_LANE_IDS;
}
