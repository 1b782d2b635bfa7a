// SPDX-License-Identifier: BSD-2-Clause
/* Rows out of calls: two passes, so that percentiles are exact. */
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "report/row.h"

struct group_key {
	uint64_t words[GROUP_WORDS];
};

#define RECENT 1024

struct groups {
	struct report_ctx *ctx;
	const struct grouping *g;
	struct group_key *keys; /* as rows */
	size_t keys_cap;
	struct map index; /* (hash of the key, attempt) to row */
	uint32_t recent[RECENT]; /* rows by API or arguments: most calls are like one before */
	uint32_t *row_of;  /* of each call, MAP_NONE if it is in none */
	int64_t *time_of;  /* of each call, -1 if it has no time of its own */
};

static int row_add(struct groups *gs, const struct call *c, const struct group_key *key,
		   uint32_t *out)
{
	struct rows *rows = &gs->ctx->rows;
	struct row *r;
	int err = GROW(gs->keys, gs->keys_cap, rows->count + 1);

	if (!err)
		err = rows_add(rows, &r);
	if (err)
		return err;
	*out = (uint32_t)rows->count - 1;
	gs->keys[*out] = *key;
	r->first_call = c - gs->ctx->s->calls;
	gs->g->fill(gs->ctx, c, r);
	return 0;
}

static bool has_key(const struct groups *gs, uint32_t row, const struct group_key *key)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < GROUP_WORDS; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a row, so keys */
		differ |= gs->keys[row].words[i] ^ key->words[i];
	return !differ;
}

static int row_find(struct groups *gs, const struct call *c, const struct group_key *key,
		    uint32_t *out)
{
	uint32_t *recent = &gs->recent[(gs->g->by_args ? c->args : c->api) % RECENT];
	uint64_t hash, attempt;
	int err;

	*out = *recent;
	if (*out < gs->ctx->rows.count && has_key(gs, *out, key))
		return 0;
	hash = map_hash_words(key->words, GROUP_WORDS);
	for (attempt = 0;; attempt++) {
		*out = map_get(&gs->index, hash, attempt);
		if (*out == MAP_NONE)
			break;
		if (has_key(gs, *out, key)) {
			*recent = *out;
			return 0;
		}
	}
	err = row_add(gs, c, key, out);
	*recent = *out;
	return err ? err : map_put(&gs->index, hash, attempt, *out);
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == NA)
		return b;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void take_range(struct row *r, int64_t min, int64_t max)
{
	if (r->min == NA || min < r->min)
		r->min = min;
	if (r->max == NA || max > r->max)
		r->max = max;
}

/*
 * Adds the call's time to its row. Returns the one time that stands for the
 * call or wait, -1 if there is none: of several queries only sums are known.
 */
static int64_t row_time(const struct session *s, const struct grouping *g, const struct call *c,
			struct row *r)
{
	int64_t time = call_duration(c), single = time;

	if (time < 0 || (g->leave_out && g->leave_out(c)))
		return -1;
	if (!(c->flags & CALL_POLL) || g->span) {
		r->timed++;
		take_range(r, time, time);
	} else {
		const struct poll_args *p = &s->polls[c->args];

		time = p->inside;
		single = p->count == 1 ? time : -1;
		r->timed += p->count;
		take_range(r, p->count == 1 ? time : p->min, p->count == 1 ? time : p->max);
	}
	r->total = plus(r->total, time);
	r->self = plus(r->self, call_self(s, c));
	r->samples += single >= 0;
	return single;
}

static int first_pass(struct groups *gs)
{
	const struct session *s = gs->ctx->s;
	const struct grouping *g = gs->g;
	int err = 0;

	for (size_t i = 0; i < s->calls_count && !err; i++) {
		const struct call *c = &s->calls[i];
		struct group_key key = { { 0 } };
		struct row *r;

		gs->row_of[i] = MAP_NONE;
		if (!g->key(s, c, key.words))
			continue;
		err = row_find(gs, c, &key, &gs->row_of[i]);
		if (err)
			break;
		r = &gs->ctx->rows.items[gs->row_of[i]];
		r->calls += (int64_t)call_count(s, c);
		r->waits++;
		r->errors += !!(c->flags & CALL_ERROR);
		r->entries++;
		r->entered += !!(c->flags & CALL_ENTRY_ONLY);
		gs->time_of[i] = row_time(s, g, c, r);
		if (g->add)
			g->add(gs->ctx, c, r);
	}
	return err;
}

/* Times, row after row, for the statistics. */
static int second_pass(struct groups *gs)
{
	const size_t calls = gs->ctx->s->calls_count;
	struct rows *rows = &gs->ctx->rows;
	size_t *at = malloc((rows->count + 1) * sizeof(*at)), sum = 0;
	int64_t *times = NULL;

	for (size_t i = 0; at && i < rows->count; i++) {
		at[i] = sum;
		sum += rows->items[i].samples;
	}
	if (at)
		times = malloc((sum + 1) * sizeof(*times));
	if (!times) {
		free(at);
		return -ENOMEM;
	}
	for (size_t i = 0; i < calls; i++)
		if (gs->row_of[i] != MAP_NONE && gs->time_of[i] >= 0)
			times[at[gs->row_of[i]]++] = gs->time_of[i];
	for (size_t i = 0; i < rows->count; i++) {
		size_t count = rows->items[i].samples;

		stats_fill(&rows->items[i], times + at[i] - count, count);
	}
	free(times);
	free(at);
	return 0;
}

static void fill_shares(struct report_ctx *ctx)
{
	const struct session *s = ctx->s;
	int64_t listed = 0;

	for (size_t i = 0; i < ctx->rows.count; i++)
		if (ctx->rows.items[i].total != NA)
			listed = plus(listed, ctx->rows.items[i].total);
	for (size_t i = 0; i < ctx->rows.count; i++) {
		struct row *r = &ctx->rows.items[i];
		const struct call *c = &s->calls[r->first_call];
		const struct session_thread *t = &s->threads[c->thread];

		r->wall = process_wall(s, &s->processes[t->process]);
		r->listed_share = share(r->total, listed);
		r->wall_share = share(r->total, r->wall);
		r->rate = rate(r->calls, r->wall);
		r->errors = known_errors(r->errors, r->entries, r->entered);
	}
}

int group_calls(struct report_ctx *ctx, const struct grouping *g)
{
	struct groups gs = { .ctx = ctx, .g = g };
	size_t calls = ctx->s->calls_count;
	int err = -ENOMEM;

	gs.row_of = malloc((calls + 1) * sizeof(*gs.row_of));
	gs.time_of = malloc((calls + 1) * sizeof(*gs.time_of));
	if (gs.row_of && gs.time_of)
		err = first_pass(&gs);
	if (!err && !g->sums)
		err = second_pass(&gs);
	if (!err)
		fill_shares(ctx);
	free(gs.row_of);
	free(gs.time_of);
	free(gs.keys);
	map_free(&gs.index);
	return err;
}
