// SPDX-License-Identifier: BSD-2-Clause
/* What the merged recording says of itself: what all sources say alike, and each of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/private.h"
#include "record/writer.h"

#define TEXT_MAX 4096

static int info(struct writer *w, const char *key, const char *value)
{
	struct record r = {.kind = RECORD_INFO, .info = {key, value}};

	return writer_add(w, &r);
}

static int info_of(struct writer *w, size_t source, const char *key, const char *value)
{
	char name[256];

	snprintf(name, sizeof(name), "source.%zu.%.200s", source + 1, key);
	return info(w, name, value);
}

static int number_of(struct writer *w, size_t source, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return info_of(w, source, key, text);
}

static int windows_of(struct writer *w, size_t source, const struct source *s)
{
	char text[TEXT_MAX];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < s->windows_count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRId64 "-%" PRId64,
					 i ? " " : "",
					 shift_ts(s->windows[i].begin, s->about.clock_shift),
					 shift_ts(s->windows[i].end, s->about.clock_shift));
	return info_of(w, source, "windows", text);
}

static const char *how_word(enum merge_how how)
{
	static const char *const words[] = {
		[MERGE_SAME_CLOCK] = "same", [MERGE_BY_REALTIME] = "realtime",
		[MERGE_BY_REALTIME_UNSURE] = "realtime-unsure",
		[MERGE_BY_COLLECTIVES] = "collectives",
	};

	return words[how];
}

static int source_write(struct writer *w, size_t i, const struct source *s)
{
	static const char *const ends[] = {"unknown", "whole", "cut", "damaged"};
	int err = info_of(w, i, "file", s->about.path);

	if (!err)
		err = info_of(w, i, "end", ends[s->about.finish]);
	if (!err)
		err = number_of(w, i, "lost", (int64_t)s->about.losses);
	if (!err)
		err = info_of(w, i, "clock", how_word(s->about.how));
	if (!err)
		err = number_of(w, i, "clock_shift_ns", s->about.clock_shift);
	if (!err && s->about.error_ns >= 0)
		err = number_of(w, i, "clock_error_ns", s->about.error_ns);
	if (!err)
		err = number_of(w, i, "id_shift", s->about.id_shift);
	if (!err)
		err = windows_of(w, i, s);
	for (size_t k = 0; k < s->infos_count && !err; k++)
		err = info_of(w, i, s->infos[k].key, s->infos[k].value);
	return err;
}

/* Costs of a probe: the dearest; what was waited for: all together. */
static bool add_numbers(const char *key, bool *sum)
{
	size_t len = strlen(key);

	*sum = !strncmp(key, "hold_", 5);
	return *sum || (!strncmp(key, "probe_", 6) && len > 3 && !strcmp(key + len - 3, "_ns"));
}

static int number_write(const struct merge *m, struct writer *w, const char *key, bool sum)
{
	int64_t value = 0;
	char text[24];

	for (size_t i = 0; i < m->count; i++) {
		const char *said = scan_info(m->sources[i], key);
		int64_t n = said ? strtoll(said, NULL, 10) : 0;

		if (sum)
			value = shift_ts(value, n);
		else if (n > value)
			value = n;
	}
	snprintf(text, sizeof(text), "%" PRId64, value);
	return info(w, key, text);
}

static bool said_before(const struct merge *m, size_t source, const char *key, const char *value)
{
	for (size_t i = 0; i < source; i++) {
		const char *other = scan_info(m->sources[i], key);

		if (other && !strcmp(other, value))
			return true;
	}
	return false;
}

static int text_write(const struct merge *m, struct writer *w, const char *key)
{
	char text[TEXT_MAX];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < m->count && used < sizeof(text); i++) {
		const char *value = scan_info(m->sources[i], key);

		if (value && *value && !said_before(m, i, key, value))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? "; " : "", value);
	}
	return info(w, key, text);
}

static bool key_before(const struct merge *m, size_t source, size_t at)
{
	const struct source *s = m->sources[source];

	for (size_t i = 0; i < source; i++)
		if (scan_info(m->sources[i], s->infos[at].key))
			return true;
	for (size_t k = 0; k < at; k++)
		if (!strcmp(s->infos[k].key, s->infos[at].key))
			return true;
	return false;
}

static int key_write(const struct merge *m, struct writer *w, const char *key)
{
	bool sum;

	if (!strcmp(key, "mode"))
		return 0; /* ours is another */
	if (!strcmp(key, "host_boot_id") || !strcmp(key, "clock_max_error_ns")) {
		const char *first = scan_info(m->sources[0], key); /* whose clock it is */

		return first ? info(w, key, first) : 0;
	}
	return add_numbers(key, &sum) ? number_write(m, w, key, sum) : text_write(m, w, key);
}

int infos_write(const struct merge *m, struct writer *w)
{
	char text[24];
	int err;

	snprintf(text, sizeof(text), "%zu", m->count);
	err = info(w, "merged", text);
	if (!err)
		err = info(w, "mode", "merge");
	for (size_t i = 0; i < m->count && !err; i++)
		for (size_t k = 0; k < m->sources[i]->infos_count && !err; k++)
			if (!key_before(m, i, k))
				err = key_write(m, w, m->sources[i]->infos[k].key);
	for (size_t i = 0; i < m->count && !err; i++)
		err = source_write(w, i, m->sources[i]);
	return err;
}
