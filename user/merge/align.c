// SPDX-License-Identifier: BSD-2-Clause
/* Which sources are of one host, and how the clocks of hosts lie to each other. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/private.h"

/* One boot of one host; without a boot id only a source is like itself. */
static int number_hosts(struct merge *m)
{
	uint32_t hosts = 0;

	for (size_t i = 0; i < m->count; i++) {
		struct merge_source *a = &m->sources[i]->about;
		size_t k = 0;

		while (k < i && (!a->boot[0] || strcmp(a->boot, m->sources[k]->about.boot) != 0))
			k++;
		a->host_index = k < i ? m->sources[k]->about.host_index : hosts++;
		if (hosts > MERGE_HOSTS)
			return -E2BIG;
		a->id_shift = a->host_index * MERGE_ID_STEP;
	}
	return 0;
}

static bool ids_fit(const struct source *s)
{
	for (size_t i = 0; i < s->busy_count; i++)
		if (s->busy_pids[i] >= MERGE_ID_STEP)
			return false;
	return true;
}

/* The same process, recorded twice at the same time: every call would count twice. */
static const uint32_t *recorded_twice(const struct source *a, const struct source *b)
{
	if (a->about.host_index != b->about.host_index || a->about.begin >= b->about.end ||
	    b->about.begin >= a->about.end)
		return NULL;
	for (size_t i = 0; i < b->busy_count; i++)
		if (map_get(&a->busy, b->busy_pids[i], 0) != MAP_NONE)
			return &b->busy_pids[i];
	return NULL;
}

static int check_sources(const struct merge *m, char *why, size_t size)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct source *s = m->sources[i];

		if (!ids_fit(s)) {
			snprintf(why, size, "%s holds process ids that no Linux has; if it was "
				 "merged already, merge its sources", s->about.path);
			return -EINVAL;
		}
		for (size_t k = 0; k < i; k++) {
			const uint32_t *pid = recorded_twice(m->sources[k], s);

			if (!pid)
				continue;
			snprintf(why, size, "%s and %s both recorded process %u at the same "
				 "time: its calls would count twice", m->sources[k]->about.path,
				 s->about.path, *pid);
			return -EINVAL;
		}
	}
	return 0;
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC of a host; CLOCK_MONOTONIC is what is slewed, too. */
struct host_clock {
	bool known;
	int64_t middle, error; /* ns */
	int64_t max_error;     /* of CLOCK_REALTIME itself, -1: nobody says */
};

static struct host_clock clock_of(const struct merge *m, uint32_t host)
{
	struct host_clock c = {.max_error = -1};
	int64_t low = INT64_MAX, high = INT64_MIN, widest = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct source *s = m->sources[i];

		if (s->about.host_index != host || s->clock.low > s->clock.high)
			continue;
		low = s->clock.low < low ? s->clock.low : low;
		high = s->clock.high > high ? s->clock.high : high;
		widest = s->clock.error > widest ? s->clock.error : widest;
		if (s->max_error > c.max_error)
			c.max_error = s->max_error;
	}
	if (low > high || low < -INT64_MAX / 4 || high > INT64_MAX / 4)
		return c;
	c.known = true;
	c.middle = low + (high - low) / 2;
	c.error = (high - low + 1) / 2 + (widest < 0 ? 0 : widest);
	return c;
}

static void set_host(struct merge *m, uint32_t host, const struct merge_source *like)
{
	for (size_t i = 0; i < m->count; i++) {
		struct merge_source *a = &m->sources[i]->about;

		if (a->host_index != host)
			continue;
		a->clock_shift = like->clock_shift;
		a->error_ns = like->error_ns;
		a->how = like->how;
		a->collectives = like->collectives;
	}
}

/*
 * By the hosts' clocks where the kernel of both says how far these can be off, and closer,
 * within that, by collectives. Where it does not say, collectives alone if they fit in one
 * way only.
 */
static int align_host(struct merge *m, uint32_t host)
{
	struct host_clock ours = clock_of(m, 0), theirs = clock_of(m, host);
	struct merge_source a = {.how = MERGE_BY_REALTIME_UNSURE, .error_ns = -1};
	int64_t bound = -1, low, high;
	int err;

	if (!ours.known || !theirs.known)
		return -ENODATA;
	a.clock_shift = theirs.middle - ours.middle;
	if (ours.max_error >= 0 && theirs.max_error >= 0) {
		bound = ours.max_error + theirs.max_error + ours.error + theirs.error;
		a.how = MERGE_BY_REALTIME;
		a.error_ns = bound;
	}
	err = collectives_align(m, host, a.clock_shift, bound, &low, &high, &a.collectives);
	if (!err && (bound < 0 || (high - low + 1) / 2 < bound)) {
		a.clock_shift = low + (high - low) / 2;
		a.error_ns = (high - low + 1) / 2;
		a.how = MERGE_BY_COLLECTIVES;
	}
	set_host(m, host, &a);
	return err == -ENODATA ? 0 : err;
}

static const struct source *source_of_host(const struct merge *m, uint32_t host)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->sources[i]->about.host_index == host)
			return m->sources[i];
	return NULL;
}

static int check_times(const struct merge *m, char *why, size_t size)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct merge_source *a = &m->sources[i]->about;

		if (a->begin > a->end || shift_ts(a->begin, a->clock_shift) >= 0)
			continue;
		snprintf(why, size, "%s was recorded before the host of %s was booted: they are "
			 "not of one job", a->path, m->sources[0]->about.path);
		return -EINVAL;
	}
	return 0;
}

int merge_align(struct merge *m, char *why, size_t size)
{
	int err = number_hosts(m);

	if (err == -E2BIG)
		snprintf(why, size, "more than %d hosts", MERGE_HOSTS);
	if (!err)
		err = check_sources(m, why, size);
	for (uint32_t host = 1; !err && source_of_host(m, host); host++) {
		err = align_host(m, host);
		if (err == -ENODATA) {
			snprintf(why, size, "%s or %s has no readings of its clocks: there is "
				 "nothing to align them by", m->sources[0]->about.path,
				 source_of_host(m, host)->about.path);
			err = -EINVAL;
		}
	}
	return err ? err : check_times(m, why, size);
}

/* ---- ranks ---- */

struct claim {
	const struct source *s;
	const struct scan_rank *r;
};

static void tell_claims(const struct claim *a, const struct claim *b,
			void (*told)(void *ctx, const char *text), void *ctx)
{
	char text[512];

	snprintf(text, sizeof(text), "process %u in %.150s and process %u in %.150s both say that "
		 "they are rank %.32s", a->r->pid, a->s->about.path, b->r->pid, b->s->about.path,
		 a->r->rank);
	told(ctx, text);
}

static int claim_order(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;
	int order = strcmp(a->r->rank, b->r->rank);

	if (order)
		return order;
	if (a->s->about.host_index != b->s->about.host_index)
		return a->s->about.host_index < b->s->about.host_index ? -1 : 1;
	return a->r->pid < b->r->pid ? -1 : a->r->pid > b->r->pid;
}

/* Ranks of processes that did anything; one that was recorded twice, in turn, is one. */
static size_t claims_of(const struct merge *m, struct claim *claims)
{
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct source *s = m->sources[i];

		for (size_t k = 0; k < s->ranks_count; k++)
			if (s->ranks[k].rank[0] &&
			    map_get(&s->busy, s->ranks[k].pid, 0) != MAP_NONE)
				claims[count++] = (struct claim){s, &s->ranks[k]};
	}
	return count;
}

static void tell_unranked(const struct merge *m, size_t ranked,
			  void (*told)(void *ctx, const char *text), void *ctx)
{
	size_t all = 0;
	char text[128];

	for (size_t i = 0; i < m->count; i++)
		all += m->sources[i]->busy_count;
	if (ranked && all > ranked) {
		snprintf(text, sizeof(text), "%zu of %zu processes do not say which rank they are",
			 all - ranked, all);
		told(ctx, text);
	}
}

void merge_tell_ranks(const struct merge *m, void (*told)(void *ctx, const char *text), void *ctx)
{
	struct claim *claims;
	size_t room = 0, count;

	for (size_t i = 0; i < m->count; i++)
		room += m->sources[i]->ranks_count;
	claims = room ? malloc(room * sizeof(*claims)) : NULL;
	if (!claims)
		return;
	count = claims_of(m, claims);
	qsort(claims, count, sizeof(*claims), claim_order);
	for (size_t i = 1; i < count; i++) {
		const struct claim *a = &claims[i - 1], *b = &claims[i];

		if (!strcmp(a->r->rank, b->r->rank) &&
		    (a->s->about.host_index != b->s->about.host_index || a->r->pid != b->r->pid))
			tell_claims(a, b, told, ctx);
	}
	tell_unranked(m, count, told, ctx);
	free(claims);
}
