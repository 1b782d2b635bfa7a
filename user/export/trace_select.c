// SPDX-License-Identifier: BSD-2-Clause
/* What of a session is exported, and what is known of its ends. */
#include <errno.h>
#include <stdlib.h>

#include "export/trace.h"

bool export_wants(const struct export_options *o, int64_t begin, int64_t end)
{
	if (end > begin)
		return begin < o->to && end > o->from;
	return begin >= o->from && begin < o->to;
}

bool export_wants_process(const struct export_options *o, uint32_t process)
{
	return !o->processes || o->processes[process];
}

/* The last call of its thread, or a call that all later ones are inside of. */
static bool still_open(const struct session *s, const struct call *c)
{
	const struct session_thread *t = &s->threads[c->thread];

	if (!(c->flags & CALL_POLL)) /* those never have siblings after them */
		return true;
	return c == &s->calls[t->first_call + t->calls - 1];
}

enum export_end export_call_end(const struct session *s, const struct call *c, int64_t *end)
{
	*end = c->begin;
	if (c->flags & CALL_ENTRY_ONLY)
		return EXPORT_END_UNPROBED;
	if (c->flags & CALL_NO_BEGIN)
		return EXPORT_BEGIN_LOST;
	if (c->flags & CALL_NO_END || (c->flags & CALL_OPEN && !still_open(s, c)))
		return EXPORT_END_LOST;
	if (c->flags & CALL_OPEN) {
		if (s->end > c->begin)
			*end = s->end;
		return EXPORT_END_OPEN;
	}
	if (c->end > c->begin)
		*end = c->end;
	return EXPORT_END_KNOWN;
}

const char *export_end_word(enum export_end end)
{
	static const char *const words[] = {
		[EXPORT_END_KNOWN] = NULL,
		[EXPORT_END_OPEN] = "had not returned when the trace ended",
		[EXPORT_END_LOST] = "its end was not seen",
		[EXPORT_BEGIN_LOST] = "its begin was not seen",
		[EXPORT_END_UNPROBED] = "no return probe, so no duration",
	};

	return words[end];
}

bool export_wants_call(const struct session *s, const struct export_options *o, uint32_t call)
{
	const struct call *c = &s->calls[call];
	int64_t end;

	if (!export_wants_process(o, s->threads[c->thread].process))
		return false;
	export_call_end(s, c, &end);
	return export_wants(o, c->begin, end);
}

bool export_wants_work(const struct session *s, const struct export_options *o, uint32_t work)
{
	const struct work *w = &s->works[work];

	return export_wants_process(o, s->streams[w->stream].process) &&
	       export_wants(o, w->begin, w->end);
}

uint32_t export_cause(const struct session *s, const struct export_options *o, uint32_t work)
{
	const struct work *w = &s->works[work];

	if (w->call == CALL_NONE || w->begin < s->calls[w->call].begin)
		return CALL_NONE;
	if (!export_wants_work(s, o, work) || !export_wants_call(s, o, w->call))
		return CALL_NONE;
	return w->call;
}

void export_count(const struct session *s, const struct export_options *o,
		  struct export_counts *out)
{
	bool *seen = calloc(s->processes_count + 1, sizeof(*seen));

	*out = (struct export_counts){0};
	for (uint32_t i = 0; i < s->calls_count; i++) {
		if (!export_wants_call(s, o, i))
			continue;
		out->calls++;
		if (seen)
			seen[s->threads[s->calls[i].thread].process] = true;
	}
	for (uint32_t i = 0; i < s->works_count; i++) {
		if (!export_wants_work(s, o, i))
			continue;
		out->works++;
		out->arrows += export_cause(s, o, i) != CALL_NONE;
		if (seen)
			seen[s->streams[s->works[i].stream].process] = true;
	}
	for (size_t i = 0; seen && i < s->processes_count; i++)
		out->processes += seen[i];
	free(seen);
}
