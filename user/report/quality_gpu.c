// SPDX-License-Identifier: BSD-2-Clause
/* How far the GPU's times can be trusted, and why there are none. */
#include <inttypes.h>
#include <stdlib.h>

#include "model/gpu.h"
#include "report/row.h"
#include "util/json.h"
#include "util/term.h"
#include "util/text.h"

static void json_covers(const struct session *s, struct json *j)
{
	json_key(j, "windows");
	json_begin_array(j);
	for (size_t i = 0; i < s->covers_count; i++) {
		const struct session_cover *c = &s->covers[i];

		json_begin_object(j);
		json_key(j, "pid");
		json_uint(j, s->processes[c->process].pid);
		json_key(j, "begin_ns");
		json_int(j, c->begin);
		json_key(j, "end_ns");
		json_int(j, c->end);
		json_key(j, "whole");
		json_bool(j, c->whole);
		json_end_object(j);
	}
	json_end_array(j);
}

/*
 * Of processes that called CUDA, or had to do with the sidecar, and of which nothing was
 * recorded: why. One pass over everything, because processes may be many. The caller frees;
 * NULL: no memory, or nobody asked for GPU time.
 */
static const char **find_missing(const struct session *s)
{
	const char **reason = calloc(s->processes_count + 1, sizeof(*reason));
	bool *final = calloc(s->processes_count + 1, sizeof(*final));

	if (!reason || !final || !s->sidecars_count) {
		free(reason);
		free(final);
		return NULL;
	}
	for (size_t i = 0; i < s->threads_count; i++)
		if (s->threads[i].calls)
			reason[s->threads[i].process] = session_no_sidecar;
	for (size_t i = s->sidecars_count; i-- > 0;) { /* the last one counts */
		uint32_t process = s->sidecar_process[i];
		const char *said = sidecar_reason(&s->sidecars[i]);

		if (!final[process] && said)
			reason[process] = said;
		final[process] |= said && s->sidecars[i].event != RECORD_SIDECAR_ATTACHED;
	}
	for (size_t i = 0; i < s->covers_count; i++)
		reason[s->covers[i].process] = NULL;
	for (size_t i = 0; i < s->streams_count; i++)
		reason[s->streams[i].process] = NULL;
	free(final);
	return reason;
}

static void json_missing(const struct session *s, struct json *j)
{
	const char **reasons = find_missing(s);

	json_key(j, "not_recorded");
	json_begin_array(j);
	for (size_t i = 0; reasons && i < s->processes_count; i++) {
		if (!reasons[i])
			continue;
		json_begin_object(j);
		json_key(j, "pid");
		json_uint(j, s->processes[i].pid);
		json_key(j, "reason");
		json_string(j, reasons[i]);
		json_end_object(j);
	}
	json_end_array(j);
	free(reasons);
}

static void json_count(struct json *j, const char *key, uint64_t count)
{
	json_key(j, key);
	json_uint(j, count);
}

void quality_gpu_json(const struct session *s, struct json *j)
{
	const struct session_join *join = &s->join;

	json_begin_object(j);
	json_key(j, "reason");
	json_string(j, session_no_work(s, UINT32_MAX));
	json_count(j, "works", join->works);
	json_count(j, "matched", join->matched);
	json_count(j, "earlier", join->earlier);
	json_count(j, "launches", join->launches);
	json_count(j, "launches_without", join->launches_without);
	json_count(j, "before_entry", join->before_entry);
	json_count(j, "contradicted", join->contradicted);
	json_count(j, "dropped", join->dropped);
	json_count(j, "bad", join->bad);
	json_key(j, "clock_error_ns");
	if (join->clock_error < 0)
		json_null(j);
	else
		json_int(j, join->clock_error);
	json_covers(s, j);
	json_missing(s, j);
	json_end_object(j);
}

/* ---- for people ---- */

static void print_reason(const struct report_ctx *c, FILE *out, uint32_t process,
			 const char *reason)
{
	const struct session_process *p = &c->s->processes[process];
	char text[512], name[128];

	fprintf(out, "GPU time of %s (PID %" PRIu32 "): n/a: %s\n",
		text_printable(p->comm && *p->comm ? p->comm : "process", name, sizeof(name), 24),
		p->pid, text_printable(reason, text, sizeof(text), 0));
}

static size_t print_missing(const struct report_ctx *c, FILE *out)
{
	const char **reasons = find_missing(c->s);
	size_t count = 0;

	for (uint32_t i = 0; reasons && i < c->s->processes_count; i++)
		if (reasons[i] && ++count <= 8)
			print_reason(c, out, i, reasons[i]);
	free(reasons);
	if (count > 8)
		fprintf(out, "and of %zu more processes\n", count - 8);
	return count;
}

void quality_no_work(const struct report_ctx *c, FILE *out)
{
	char text[512];

	if (!print_missing(c, out))
		fprintf(out, "GPU time: n/a: %s\n",
			text_printable(session_no_work(c->s, UINT32_MAX), text, sizeof(text), 0));
}

void quality_gpu_lines(const struct report_ctx *c, FILE *out)
{
	const struct session_join *j = &c->s->join;
	char works[32], n[32], error[32];

	if (!session_has_work(c->s))
		return;
	fprintf(out, "%sGPU time: %s kernels, copies and sets", term_style(c->o->colour, TERM_DIM),
		text_count(j->works, works, sizeof(works)));
	if (j->works == j->matched)
		fputs(", each with its call", out);
	else
		fprintf(out, ", %s without their call%s",
			text_count(j->works - j->matched, n, sizeof(n)),
			c->s->work_calls_count ? "" : " (trace --cupti-calls can tell more)");
	if (j->earlier)
		fprintf(out, "; %s more were launched before their window",
			text_count(j->earlier, n, sizeof(n)));
	if (j->launches_without)
		fprintf(out, "; %s launches of %s without work",
			text_count(j->launches_without, n, sizeof(n)),
			text_count(j->launches, works, sizeof(works)));
	fprintf(out, "; clocks within %s%s\n",
		text_duration(j->clock_error < 0 ? 0 : j->clock_error, error, sizeof(error)),
		term_style(c->o->colour, TERM_PLAIN));
	if (j->dropped || j->bad)
		fprintf(out, "%swarning:%s %s records of GPU work were lost, %s made no sense\n",
			term_style(c->o->colour, TERM_YELLOW),
			term_style(c->o->colour, TERM_PLAIN),
			text_count(j->dropped, works, sizeof(works)),
			text_count(j->bad, n, sizeof(n)));
	print_missing(c, out);
}
