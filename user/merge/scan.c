// SPDX-License-Identifier: BSD-2-Clause
/* The first reading: what each source says of itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/private.h"
#include "model/gpu.h"

int merge_new(struct merge **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void source_free(struct source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->infos_count; i++) {
		free((char *)s->infos[i].key);
		free((char *)s->infos[i].value);
	}
	for (size_t i = 0; i < s->ranks_count; i++)
		free(s->ranks[i].rank);
	map_free(&s->busy);
	map_free(&s->shape_comm);
	map_free(&s->rank_of);
	free(s->ranks);
	free(s->infos);
	free(s->windows);
	free(s->busy_pids);
	free(s->about.host);
	free(s->about.boot);
	free(s);
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		source_free(m->sources[i]);
	map_free(&m->line_of);
	free(m->sources);
	free(m->collectives);
	free(m->lines);
	free(m);
}

size_t merge_count(const struct merge *m)
{
	return m->count;
}

const struct merge_source *merge_get(const struct merge *m, size_t i)
{
	return &m->sources[i]->about;
}

const char *scan_info(const struct source *s, const char *key)
{
	for (size_t i = s->infos_count; i-- > 0;)
		if (!strcmp(s->infos[i].key, key))
			return s->infos[i].value;
	return NULL;
}

static int note_busy(struct source *s, uint32_t pid)
{
	int err;

	if (map_get(&s->busy, pid, 0) != MAP_NONE)
		return 0;
	err = GROW(s->busy_pids, s->busy_cap, s->busy_count + 1);
	if (!err)
		err = map_put(&s->busy, pid, 0, 1);
	if (!err)
		s->busy_pids[s->busy_count++] = pid;
	return err;
}

static int note_events(struct source *s, const struct record_events *r)
{
	uint32_t last = 0;
	int err = 0;

	s->about.events += r->count;
	for (size_t i = 0; i < r->count && !err; i++) {
		int64_t ts = r->events[i].ts;

		s->first_event = ts < s->first_event ? ts : s->first_event;
		s->last_event = ts > s->last_event ? ts : s->last_event;
		if (i && r->events[i].pid == last)
			continue;
		last = r->events[i].pid;
		err = note_busy(s, last);
	}
	return err;
}

static int note_info(struct source *s, const struct record_info *r)
{
	char *key, *value;
	int err = GROW(s->infos, s->infos_cap, s->infos_count + 1);

	if (err)
		return err;
	key = strdup(r->key ? r->key : "");
	value = strdup(r->value ? r->value : "");
	if (!key || !value) {
		free(key);
		free(value);
		return -ENOMEM;
	}
	s->infos[s->infos_count++] = (struct record_info){key, value};
	return 0;
}

static void note_clock(struct source *s, const struct record_clock *r)
{
	int64_t offset;

	if (__builtin_sub_overflow(r->realtime, r->monotonic, &offset))
		return;
	if (offset < s->clock.low)
		s->clock.low = offset;
	if (offset > s->clock.high)
		s->clock.high = offset;
	if (r->error > s->clock.error)
		s->clock.error = r->error;
}

static int note_window(struct source *s, const struct record_window *r)
{
	int err = GROW(s->windows, s->windows_cap, s->windows_count + 1);

	if (err)
		return err;
	s->windows[s->windows_count++] = *r;
	if (r->begin < s->about.begin)
		s->about.begin = r->begin;
	if (r->end > s->about.end)
		s->about.end = r->end;
	return 0;
}

static int note_label(struct source *s, const struct record_label *r)
{
	uint32_t at = map_get(&s->rank_of, r->pid, 0);
	char *rank;
	int err;

	if (!r->key || strcmp(r->key, "rank") != 0)
		return 0;
	rank = strdup(r->value ? r->value : "");
	if (!rank)
		return -ENOMEM;
	if (at != MAP_NONE) {
		free(s->ranks[at].rank);
		s->ranks[at].rank = rank;
		return 0;
	}
	err = GROW(s->ranks, s->ranks_cap, s->ranks_count + 1);
	if (!err)
		err = map_put(&s->rank_of, r->pid, 0, (uint32_t)s->ranks_count);
	if (err) {
		free(rank);
		return err;
	}
	s->ranks[s->ranks_count++] = (struct scan_rank){r->pid, rank};
	return 0;
}

static int note_shape(struct source *s, const struct record_shape *r)
{
	if (r->id == UINT32_MAX)
		return -EOVERFLOW;
	if (r->id >= s->shapes)
		s->shapes = r->id + 1;
	if (!r->kernel || !kernel_binds_all(r->kernel))
		return 0;
	return map_put(&s->shape_comm, r->pid, r->id,
		       (uint32_t)map_hash_bytes(r->kernel, strlen(r->kernel)) & 0x7fffffff);
}

static int line_of(struct merge *m, const struct record_work *r, uint32_t *out)
{
	uint64_t a = (uint64_t)m->count << 32 | r->pid, b = (uint64_t)r->device << 32 | r->stream;
	int err = 0;

	*out = map_get(&m->line_of, a, b);
	if (*out != MAP_NONE)
		return 0;
	*out = (uint32_t)m->lines_count;
	err = GROW(m->lines, m->lines_cap, m->lines_count + 1);
	if (!err)
		err = map_put(&m->line_of, a, b, *out);
	if (!err)
		m->lines[m->lines_count++] = (struct collective_line){
			(uint32_t)m->count, r->pid, r->device, r->stream, 0, 0};
	return err;
}

static int note_work(struct merge *m, struct source *s, const struct record_work *r)
{
	int err = note_busy(s, r->pid);
	uint32_t name, line;

	if (err || r->kind != RECORD_WORK_KERNEL)
		return err;
	name = map_get(&s->shape_comm, r->pid, r->shape);
	if (name == MAP_NONE || r->duration > INT64_MAX / 4 || r->begin < 0 ||
	    r->begin > INT64_MAX / 4)
		return 0;
	err = line_of(m, r, &line);
	if (!err)
		err = GROW(m->collectives, m->collectives_cap, m->collectives_count + 1);
	if (err)
		return err;
	m->collectives[m->collectives_count] = (struct collective){
		r->begin, r->begin + (int64_t)r->duration, line,
		(uint32_t)m->collectives_count, name};
	m->collectives_count++;
	return 0;
}

static int note(struct merge *m, struct source *s, const struct record *r)
{
	switch (r->kind) {
	case RECORD_EVENTS: return note_events(s, &r->events);
	case RECORD_INFO: return note_info(s, &r->info);
	case RECORD_WINDOW: return note_window(s, &r->window);
	case RECORD_ACTIVE: s->actives = m->actives = true; return 0;
	case RECORD_LABEL: return note_label(s, &r->label);
	case RECORD_SHAPE: return note_shape(s, &r->shape);
	case RECORD_WORK: return note_work(m, s, &r->work);
	case RECORD_CLOCK: note_clock(s, &r->clock); return 0;
	case RECORD_LOSS: s->about.losses += r->loss.count; return 0;
	default: return 0;
	}
}

static int number_of(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = text ? strtoll(text, &end, 10) : -1;
	return text && !errno && end != text && !*end && *out >= 0 ? 0 : -EINVAL;
}

static int finish(struct source *s, const struct reader *r)
{
	const char *host = scan_info(s, "host"), *boot = scan_info(s, "host_boot_id");

	/* A file that was cut may lack its window: its events say how long it lasted. */
	if (s->first_event < s->about.begin)
		s->about.begin = s->first_event;
	if (s->last_event > s->about.end)
		s->about.end = s->last_event;
	s->about.finish = reader_end(r);
	s->about.lost_bytes = reader_lost_bytes(r);
	s->about.host = strdup(host ? host : "");
	s->about.boot = strdup(boot ? boot : "");
	if (number_of(scan_info(s, "clock_max_error_ns"), &s->max_error))
		s->max_error = -1;
	return s->about.host && s->about.boot ? 0 : -ENOMEM;
}

static int scan(struct merge *m, struct source *s, struct reader *r)
{
	struct record record;
	int got, err = 0;

	while ((got = reader_next(r, &record)) > 0 && !err)
		err = note(m, s, &record);
	if (!err)
		err = got < 0 ? got : finish(s, r);
	return err;
}

int merge_add(struct merge *m, const char *path)
{
	struct source *s;
	struct reader *r;
	int err;

	if (m->count == MERGE_SOURCES)
		return -E2BIG;
	err = GROW(m->sources, m->cap, m->count + 1);
	if (!err)
		err = reader_open(&r, path);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (s) {
		s->about = (struct merge_source){.path = path, .begin = INT64_MAX,
						 .end = INT64_MIN};
		s->first_event = INT64_MAX;
		s->last_event = INT64_MIN;
		s->clock = (struct scan_clock){INT64_MAX, INT64_MIN, 0};
	}
	err = s ? scan(m, s, r) : -ENOMEM;
	reader_close(r);
	if (err)
		source_free(s);
	else
		m->sources[m->count++] = s;
	return err;
}
