// SPDX-License-Identifier: BSD-2-Clause
/* When the sidecar recorded, process by process; and its notes and overheads in order. */
#include "model/internal.h"

#define SWITCHING_MOST 60000000000 /* ns; what a sidecar claims is bounded */

static int sidecar_order(const void *pa, const void *pb)
{
	const struct record_sidecar *a = pa, *b = pb;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

static int overhead_order(const void *pa, const void *pb)
{
	const struct session_overhead *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static int cover_order(const void *pa, const void *pb)
{
	const struct session_cover *a = pa, *b = pb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* What is known of a process' window while its notes are read. */
struct reading {
	bool on;       /* it is recording, since then */
	int64_t begun;
	int64_t switching; /* ns that it took until then */
	int64_t last;  /* of its works' ends and notes */
	bool lost;
};

static int cover_add(struct session_builder *b, struct reading *r, uint32_t process, int64_t end,
		     bool whole)
{
	struct session *s = b->s;
	bool on = r->on;
	int64_t begin = r->begun;
	int err;

	r->on = false;
	if (!on || end <= begin)
		return 0;
	err = GROW(s->covers, b->works.covers_cap, s->covers_count + 1);
	if (!err)
		s->covers[s->covers_count++] = (struct session_cover){
			begin, end, r->switching, process, whole && !r->lost };
	r->lost = false;
	return err;
}

/* Losses are often told of only when the window is over. */
static void take_loss(struct session *s, struct reading *r, uint32_t process)
{
	r->lost = r->on;
	for (size_t i = s->covers_count; i-- > 0 && !r->on;)
		if (s->covers[i].process == process) {
			s->covers[i].whole = false;
			return;
		}
}

static int take_note(struct session_builder *b, struct reading *r, uint32_t process,
		     const struct record_sidecar *note)
{
	struct session_join *j = &b->s->join;
	int err = 0;

	switch (note->event) {
	case RECORD_SIDECAR_BEGAN:
		err = cover_add(b, r, process, note->ts, false); /* its end was lost */
		r->begun = note->ts;
		r->switching = note->count < SWITCHING_MOST ? (int64_t)note->count : 0;
		r->on = true;
		break;
	case RECORD_SIDECAR_ENDED:
	case RECORD_SIDECAR_WITHDREW:
	case RECORD_SIDECAR_FAILED:
	case RECORD_SIDECAR_GONE:
		err = cover_add(b, r, process, note->ts, note->event == RECORD_SIDECAR_ENDED);
		break;
	case RECORD_SIDECAR_DROPPED:
		take_loss(b->s, r, process);
		j->dropped += note->count;
		break;
	case RECORD_SIDECAR_BAD:
		take_loss(b->s, r, process);
		j->bad += note->count;
		break;
	case RECORD_SIDECAR_RUNNING: /* nothing that has ended is lost */
		j->running += note->count;
		break;
	case RECORD_SIDECAR_CLOCK:
		if (note->count <= INT64_MAX && (int64_t)note->count > j->clock_error)
			j->clock_error = (int64_t)note->count;
		break;
	}
	if (note->ts > r->last)
		r->last = note->ts;
	return err;
}

/* A window without an end lasted at least until the last thing that is known of it. */
static int close_open(struct session_builder *b, struct reading *readings)
{
	struct session *s = b->s;
	int err = 0;

	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];
		struct reading *r = &readings[st->process];

		for (uint32_t w = 0; r->on && w < st->works; w++)
			if (s->works[st->first_work + w].end > r->last)
				r->last = s->works[st->first_work + w].end;
	}
	for (size_t i = 0; i < s->processes_count && !err; i++)
		err = cover_add(b, &readings[i], (uint32_t)i, readings[i].last, false);
	return err;
}

static size_t covers_join(struct session_cover *c, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct session_cover *last = kept ? &c[kept - 1] : NULL;

		if (!last || last->process != c[i].process || last->end < c[i].begin) {
			c[kept++] = c[i];
			continue;
		}
		last->whole = last->whole && c[i].whole;
		if (c[i].end > last->end)
			last->end = c[i].end;
	}
	return kept;
}

static int read_notes(struct session_builder *b)
{
	struct session *s = b->s;
	struct reading *readings = calloc(s->processes_count + 1, sizeof(*readings));
	int err = readings ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->sidecars_count && !err; i++) {
		uint32_t epoch = epoch_at(b, s->sidecars[i].pid, s->sidecars[i].ts);
		uint32_t process = b->epochs[epoch].process;

		s->sidecar_process[i] = process;
		err = take_note(b, &readings[process], process, &s->sidecars[i]);
	}
	if (!err)
		err = close_open(b, readings);
	free(readings);
	return err;
}

/* Without windows of the probes the session is what the sidecar saw. */
static void bound_session(struct session *s)
{
	int64_t begin = INT64_MAX, end = 0;

	if (s->windows_count || (!s->works_count && !s->covers_count))
		return;
	for (size_t i = 0; i < s->works_count; i++) {
		begin = s->works[i].begin < begin ? s->works[i].begin : begin;
		end = s->works[i].end > end ? s->works[i].end : end;
	}
	for (size_t i = 0; i < s->covers_count; i++) {
		begin = s->covers[i].begin < begin ? s->covers[i].begin : begin;
		end = s->covers[i].end > end ? s->covers[i].end : end;
	}
	s->begin = begin;
	s->end = end;
}

int builder_covers(struct session_builder *b)
{
	struct session *s = b->s;
	int err = 0;

	s->join.works = s->works_count;
	s->join.clock_error = s->sidecars_count || s->works_count ? 0 : -1;
	for (size_t i = 0; i < s->overheads_count; i++) {
		struct session_overhead *o = &s->overheads[i];

		o->process = b->epochs[epoch_at(b, o->process, o->begin)].process;
	}
	if (s->overheads_count)
		qsort(s->overheads, s->overheads_count, sizeof(*s->overheads), overhead_order);
	if (s->sidecars_count) {
		qsort(s->sidecars, s->sidecars_count, sizeof(*s->sidecars), sidecar_order);
		s->sidecar_process = malloc(s->sidecars_count * sizeof(*s->sidecar_process));
		err = s->sidecar_process ? read_notes(b) : -ENOMEM;
	}
	if (err)
		return err;
	if (s->covers_count)
		qsort(s->covers, s->covers_count, sizeof(*s->covers), cover_order);
	s->covers_count = covers_join(s->covers, s->covers_count);
	bound_session(s);
	return 0;
}
