// SPDX-License-Identifier: BSD-2-Clause
/* How far what is printed can be trusted: part of every output. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/row.h"
#include "util/json.h"
#include "util/term.h"
#include "util/text.h"

static const struct {
	const char *key, *words;
} causes[8] = {
	[0] = { "other", "other causes" },
	[RECORD_LOSS_RING_FULL] = { "ring_full", "events, ring full" },
	[RECORD_LOSS_STATE_FULL] = { "state_full", "events, no room for their state" },
	[RECORD_LOSS_PERF_LOST] = { "perf_lost", "notices of processes and mappings" },
	[RECORD_LOSS_MALFORMED] = { "malformed", "malformed events" },
	[RECORD_LOSS_WRITE_FAILED] = { "write_failed", "events that could not be written" },
	[RECORD_LOSS_NAME] = { "name", "kernel names" },
	[7] = { "unknown", "unknown causes" },
};

static const char *const end_words[] = {
	[READER_END_UNKNOWN] = "unknown", [READER_END_WHOLE] = "whole",
	[READER_END_CUT] = "cut", [READER_END_DAMAGED] = "damaged",
};

/* Names lost cost no event; everything else may make counts too low. */
uint64_t quality_lost(const struct session *s)
{
	uint64_t lost = 0;

	for (int i = 0; i < 8; i++)
		if (i != RECORD_LOSS_NAME)
			lost += s->quality.losses[i];
	return lost;
}

static void json_info_ns(const struct session *s, struct json *j, const char *key,
			 const char *info)
{
	const char *text = session_info(s, info);
	char *end = NULL;
	int64_t v;

	json_key(j, key);
	errno = 0;
	v = text ? strtoll(text, &end, 10) : 0;
	if (!text || end == text || *end || errno)
		json_null(j);
	else
		json_int(j, v);
}

static void json_windows(const struct session *s, struct json *j)
{
	json_key(j, "windows");
	json_begin_array(j);
	for (size_t i = 0; i < s->windows_count; i++) {
		json_begin_object(j);
		json_key(j, "begin_ns");
		json_int(j, s->windows[i].begin);
		json_key(j, "end_ns");
		json_int(j, s->windows[i].end);
		json_end_object(j);
	}
	json_end_array(j);
}

static const char *image_path(const struct session *s, uint32_t id)
{
	for (size_t i = 0; i < s->images_count; i++)
		if (s->images[i].id == id)
			return s->images[i].path;
	return NULL;
}

static void json_not_hooked(const struct session *s, struct json *j)
{
	json_key(j, "not_hooked");
	json_begin_array(j);
	for (size_t i = 0; i < s->images_count; i++) {
		if (s->images[i].covered)
			continue;
		json_begin_object(j);
		json_key(j, "image");
		json_string(j, s->images[i].path);
		json_key(j, "api");
		json_null(j);
		json_key(j, "reason");
		json_string(j, "image without probes");
		json_end_object(j);
	}
	for (size_t i = 0; i < s->sites_count; i++) {
		if (s->sites[i].state != RECORD_SITE_REFUSED)
			continue;
		json_begin_object(j);
		json_key(j, "image");
		json_string(j, image_path(s, s->sites[i].image));
		json_key(j, "api");
		json_string(j, s->sites[i].api);
		json_key(j, "reason");
		json_string(j, s->sites[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
}

static bool has_gap(const struct record_image *i)
{
	return i->mapped && i->covered > i->mapped;
}

static void json_unseen(const struct session *s, struct json *j)
{
	json_key(j, "unseen");
	json_begin_array(j);
	for (size_t i = 0; i < s->images_count; i++) {
		if (!has_gap(&s->images[i]))
			continue;
		json_begin_object(j);
		json_key(j, "image");
		json_string(j, s->images[i].path);
		json_key(j, "begin_ns");
		json_int(j, s->images[i].mapped);
		json_key(j, "end_ns");
		json_int(j, s->images[i].covered);
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_losses(const struct session *s, struct json *j)
{
	json_key(j, "losses");
	json_begin_object(j);
	for (int i = 1; i <= RECORD_LOSS_NAME; i++) {
		json_key(j, causes[i].key);
		json_uint(j, s->quality.losses[i]);
	}
	json_key(j, "other");
	json_uint(j, s->quality.losses[0] + s->quality.losses[7]);
	json_end_object(j);
}

static void json_trigger(const struct record_trigger *t, struct json *j)
{
	static const char *const cause[] = { "unknown", "fired", "signal", "end" };
	static const char *const unit[] = { NULL, "count", "ns", "milli_per_s", "bytes" };
	bool fired = t->cause == RECORD_TRIGGER_FIRED;

	json_begin_object(j);
	json_key(j, "ts_ns");
	json_int(j, t->ts);
	json_key(j, "cause");
	json_string(j, cause[t->cause <= RECORD_TRIGGER_END ? t->cause : 0]);
	if (fired) {
		json_key(j, "text");
		json_string(j, t->text);
		json_key(j, "begin_ns");
		json_int(j, t->begin);
		json_key(j, "value");
		json_int(j, t->value);
		json_key(j, "threshold");
		json_int(j, t->threshold);
		json_key(j, "unit");
		json_string(j, unit[t->unit <= RECORD_TRIGGER_BYTES ? t->unit : 0]);
		json_key(j, "calls");
		json_uint(j, t->samples);
	}
	json_end_object(j);
}

static void json_triggers(const struct session *s, struct json *j)
{
	if (!s->triggers_count)
		return;
	json_key(j, "triggers");
	json_begin_array(j);
	for (size_t i = 0; i < s->triggers_count; i++)
		json_trigger(&s->triggers[i], j);
	json_end_array(j);
}

void quality_json(const struct session *s, struct json *j)
{
	const struct session_quality *q = &s->quality;

	json_begin_object(j);
	json_key(j, "events");
	json_uint(j, q->events);
	json_losses(s, j);
	json_windows(s, j);
	json_triggers(s, j);
	json_key(j, "probe_cost");
	json_begin_object(j);
	json_info_ns(s, j, "begin_ns", "probe_begin_ns");
	json_info_ns(s, j, "pair_ns", "probe_pair_ns");
	json_info_ns(s, j, "launch_ns", "probe_launch_ns");
	json_end_object(j);
	json_not_hooked(s, j);
	json_unseen(s, j);
	json_key(j, "unpaired");
	json_begin_object(j);
	json_key(j, "begin");
	json_uint(j, q->unpaired_begin);
	json_key(j, "end");
	json_uint(j, q->unpaired_end);
	json_end_object(j);
	json_key(j, "gpu");
	quality_gpu_json(s, j);
	json_key(j, "file_end");
	json_string(j, end_words[q->end <= READER_END_DAMAGED ? q->end : 0]);
	json_key(j, "lost_bytes");
	json_uint(j, q->lost_bytes);
	json_end_object(j);
}

/* ---- for people ---- */

static void warn(const struct report_ctx *c, FILE *out)
{
	fprintf(out, "%swarning:%s ", term_style(c->o->colour, TERM_YELLOW),
		term_style(c->o->colour, TERM_PLAIN));
}

static void warn_losses(const struct report_ctx *c, FILE *out)
{
	const struct session_quality *q = &c->s->quality;
	const char *separator = "";
	char count[32];

	if (!quality_lost(c->s) && !q->losses[RECORD_LOSS_NAME])
		return;
	warn(c, out);
	fputs("lost ", out);
	for (int i = 0; i < 8; i++) {
		if (!q->losses[i])
			continue;
		fprintf(out, "%s%s %s", separator, text_count(q->losses[i], count, sizeof(count)),
			causes[i].words);
		separator = ", ";
	}
	fputs(quality_lost(c->s) ? ": counts and times are too low\n" : "\n", out);
}

static void warn_coverage(const struct report_ctx *c, FILE *out)
{
	const struct session *s = c->s;
	size_t refused = 0, uncovered = 0, gaps = 0;
	char text[512], span[32];

	for (size_t i = 0; i < s->sites_count; i++)
		refused += s->sites[i].state == RECORD_SITE_REFUSED;
	for (size_t i = 0; i < s->images_count; i++) {
		uncovered += !s->images[i].covered;
		if (!has_gap(&s->images[i]) || gaps++)
			continue;
		warn(c, out);
		fprintf(out, "calls into %s were not seen in its first %s\n",
			text_printable(s->images[i].path, text, sizeof(text), 60),
			text_duration(s->images[i].covered - s->images[i].mapped, span,
				      sizeof(span)));
	}
	if (gaps > 1) {
		warn(c, out);
		fprintf(out, "%zu more images were mapped before their probes were in place\n",
			gaps - 1);
	}
	if (uncovered) {
		warn(c, out);
		fprintf(out, "%zu image%s not hooked at all; gbpf doctor says why\n", uncovered,
			uncovered == 1 ? " is" : "s are");
	}
	if (refused) /* a few of NCCL's always are: no reason to warn */
		fprintf(out, "not hooked: %zu function%s; gbpf doctor says why\n", refused,
			refused == 1 ? "" : "s");
}

static void warn_file(const struct report_ctx *c, FILE *out)
{
	const struct session_quality *q = &c->s->quality;
	char bytes[32];

	if (q->end != READER_END_CUT && q->end != READER_END_DAMAGED)
		return;
	warn(c, out);
	fprintf(out, "the file is %s: %s after the last whole chunk could not be read\n",
		end_words[q->end], text_bytes(q->lost_bytes, bytes, sizeof(bytes)));
}

void quality_warnings(const struct report_ctx *c, FILE *out)
{
	warn_losses(c, out);
	warn_coverage(c, out);
	warn_file(c, out);
}

void quality_lines(const struct report_ctx *c, FILE *out)
{
	const struct session *s = c->s;
	const char *pair = session_info(s, "probe_pair_ns");
	char count[32], wall[32], cost[32];

	fprintf(out, "%s%s events%s, %zu window%s of %s in all", term_style(c->o->colour, TERM_DIM),
		text_count(s->quality.events, count, sizeof(count)),
		quality_lost(s) ? "" : ", none lost", s->windows_count,
		s->windows_count == 1 ? "" : "s",
		text_duration(wall_in_windows(s, 0, INT64_MAX), wall, sizeof(wall)));
	if (pair)
		fprintf(out, ", a probed call costs %s more",
			text_duration(strtoll(pair, NULL, 10), cost, sizeof(cost)));
	if (s->quality.unpaired_begin || s->quality.unpaired_end)
		fprintf(out, "; %" PRIu64 " calls without end, %" PRIu64 " without begin",
			s->quality.unpaired_begin, s->quality.unpaired_end);
	fprintf(out, "%s\n", term_style(c->o->colour, TERM_PLAIN));
	quality_gpu_lines(c, out);
	quality_warnings(c, out);
}
