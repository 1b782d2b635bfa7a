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

struct groups {
	struct report_ctx *ctx;
	const struct grouping *g;
	struct group_key *keys; /* as rows */
	size_t keys_cap;
	struct map index; /* (hash of the key, attempt) to row */
	uint32_t *of;	  /* row of each call, MAP_NONE if it is in none */
	int64_t *times;	  /* individual times, row after row */
	size_t *at;	  /* where each row's next time goes */
	uint32_t recent;
};

/* One time that stands for one call or wait, -1 if there is none. */
static int64_t single_time(const struct session *s, const struct grouping *g, const struct call *c)
{
	if (g->leave_out && g->leave_out(c))
		return -1;
	if (!(c->flags & CALL_POLL) || g->span)
		return call_duration(c);
	return s->polls[c->args].count == 1 && call_duration(c) >= 0 ? s->polls[c->args].inside : -1;
}

static int row_of(struct groups *gs, const struct call *c, const struct group_key *key,
		  uint32_t *out)
{
	struct rows *rows = &gs->ctx->rows;
	uint64_t hash, attempt;
	struct row *r;
	int err;

	if (gs->recent < rows->count && !memcmp(&gs->keys[gs->recent], key, sizeof(*key))) {
		*out = gs->recent;
		return 0;
	}
	hash = map_hash_bytes(key, sizeof(*key));
	for (attempt = 0;; attempt++) {
		*out = map_get(&gs->index, hash, attempt);
		if (*out == MAP_NONE)
			break;
		if (!memcmp(&gs->keys[*out], key, sizeof(*key))) {
			gs->recent = *out;
			return 0;
		}
	}
	err = GROW(gs->keys, gs->keys_cap, rows->count + 1);
	if (!err)
		err = rows_add(rows, &r);
	if (err)
		return err;
	*out = gs->recent = (uint32_t)rows->count - 1;
	gs->keys[*out] = *key;
	r->first_call = c - gs->ctx->s->calls;
	gs->g->fill(gs->ctx, c, r);
	return map_put(&gs->index, hash, attempt, *out);
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

static void row_time(const struct session *s, const struct grouping *g, const struct call *c,
		     struct row *r)
{
	int64_t time = call_duration(c);

	if (time < 0 || (g->leave_out && g->leave_out(c)))
		return;
	if (!(c->flags & CALL_POLL) || g->span) {
		r->timed++;
		take_range(r, time, time);
	} else {
		const struct poll_args *p = &s->polls[c->args];

		time = p->inside;
		r->timed += p->count;
		take_range(r, p->count == 1 ? time : p->min, p->count == 1 ? time : p->max);
	}
	r->total = plus(r->total, time);
	r->self = plus(r->self, call_self(s, c));
}

static int first_pass(struct groups *gs)
{
	const struct session *s = gs->ctx->s;
	struct group_key key;
	int err = 0;

	for (size_t i = 0; i < s->calls_count && !err; i++) {
		const struct call *c = &s->calls[i];
		struct row *r;

		memset(&key, 0, sizeof(key));
		gs->of[i] = MAP_NONE;
		if (!gs->g->key(s, c, key.words))
			continue;
		err = row_of(gs, c, &key, &gs->of[i]);
		if (err)
			break;
		r = &gs->ctx->rows.items[gs->of[i]];
		r->calls += (int64_t)call_count(s, c);
		r->waits++;
		r->errors += !!(c->flags & CALL_ERROR);
		row_time(s, gs->g, c, r);
		r->samples += single_time(s, gs->g, c) >= 0;
		if (gs->g->add)
			gs->g->add(gs->ctx, c, r);
	}
	return err;
}

static int second_pass(struct groups *gs)
{
	const struct session *s = gs->ctx->s;
	struct rows *rows = &gs->ctx->rows;
	size_t sum = 0;

	gs->at = malloc((rows->count + 1) * sizeof(*gs->at));
	if (!gs->at)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++) {
		gs->at[i] = sum;
		sum += rows->items[i].samples;
	}
	gs->times = malloc((sum + 1) * sizeof(*gs->times));
	if (!gs->times)
		return -ENOMEM;
	for (size_t i = 0; i < s->calls_count; i++) {
		int64_t time = gs->of[i] == MAP_NONE ? -1 : single_time(s, gs->g, &s->calls[i]);

		if (time >= 0)
			gs->times[gs->at[gs->of[i]]++] = time;
	}
	for (size_t i = 0; i < rows->count; i++) {
		size_t count = rows->items[i].samples;

		stats_fill(&rows->items[i], gs->times + gs->at[i] - count, count);
	}
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
	}
}

int group_calls(struct report_ctx *ctx, const struct grouping *g)
{
	struct groups gs = { .ctx = ctx, .g = g, .recent = UINT32_MAX };
	int err = -ENOMEM;

	gs.of = malloc((ctx->s->calls_count + 1) * sizeof(*gs.of));
	if (gs.of)
		err = first_pass(&gs);
	if (!err)
		err = second_pass(&gs);
	if (!err)
		fill_shares(ctx);
	free(gs.of);
	free(gs.at);
	free(gs.times);
	free(gs.keys);
	map_free(&gs.index);
	return err;
}
