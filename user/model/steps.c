// SPDX-License-Identifier: BSD-2-Clause
#include "model/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "probe/catalogue.h"

#define LEAST_TIMES 3 /* a token must come, to speak of a period */
/* Tokens that are told apart: all further ones are one more, which no step begins with. */
#define TOKENS_MOST UINT16_MAX

/* A function, a kernel whatever launched it, or an executable graph. */
struct token {
	uint32_t times, first, last; /* positions in the sequence */
	uint32_t usual, votes;	     /* distance between two of them: majority vote */
	uint32_t regular;	     /* distances that are the usual one, about */
	int64_t pause;		     /* ns, sum of the time since the token before */
};

struct sequence {
	const struct session *s;
	struct map ids;
	struct token *tokens;
	size_t tokens_count, tokens_cap;
	uint16_t *at;	/* token of each position: jobs have tens of millions */
	uint32_t *call; /* and the first call of its run; not owned */
	size_t count;
};

static bool makes_work(const struct session *s, const struct call *c)
{
	const struct session_api *api = &s->apis[c->api];

	if (c->flags & CALL_NO_BEGIN)
		return false;
	return api->sorts & (API_IS_LAUNCH | API_IS_WAIT | API_IS_COPY) ||
	       api->kind == API_COLLECTIVE;
}

static bool is_graph(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & API_IS_GRAPH_LAUNCH;
}

static int token_add(struct sequence *q, uint64_t api, uint64_t what, uint32_t *out)
{
	*out = (uint32_t)q->tokens_count;
	if (q->tokens_count > TOKENS_MOST) {
		*out = TOKENS_MOST;
		return 0;
	}
	if (GROW(q->tokens, q->tokens_cap, q->tokens_count + 1) ||
	    map_put(&q->ids, api, what, *out))
		return -ENOMEM;
	q->tokens[q->tokens_count++] = (struct token){ 0 };
	return 0;
}

static int token_of(struct sequence *q, const struct call *c, uint32_t *out)
{
	uint64_t api = c->api + 1ull, what = 0;
	uint32_t at;

	if (c->kernel != UINT32_MAX) {
		api = 0;
		what = c->kernel;
	} else if (is_graph(q->s, c) && c->flags & CALL_ARGS_CALL) {
		what = q->s->transfers[c->args].object;
	}
	at = map_get(&q->ids, api, what);
	if (at == MAP_NONE)
		return token_add(q, api, what, out);
	*out = at;
	return 0;
}

/* In place: the first calls of runs are fewer than the calls. */
static int sequence_make(struct sequence *q, uint32_t *calls, size_t count)
{
	uint32_t before = UINT32_MAX, token;

	q->call = calls;
	q->at = malloc((count + 1) * sizeof(*q->at));
	if (!q->at)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint32_t call = calls[i];
		const struct call *c = &q->s->calls[call];

		if (!makes_work(q->s, c))
			continue;
		if (token_of(q, c, &token))
			return -ENOMEM;
		if (token == before && !is_graph(q->s, c))
			continue;
		before = token;
		q->at[q->count] = (uint16_t)token;
		q->call[q->count++] = call;
	}
	return 0;
}

static void sequence_free(struct sequence *q)
{
	map_free(&q->ids);
	free(q->tokens);
	free(q->at);
}

/* Boyer and Moore's majority vote: what more than half of the distances are, if anything. */
static void vote(struct token *t, uint32_t distance)
{
	if (!t->votes)
		t->usual = distance;
	if (t->usual == distance)
		t->votes++;
	else
		t->votes--;
}

static int64_t begin_at(const struct sequence *q, size_t position)
{
	return q->s->calls[q->call[position]].begin;
}

static bool about(uint32_t distance, uint32_t usual)
{
	uint32_t off = distance > usual ? distance - usual : usual - distance;

	return off <= usual / 50; /* a call more or less in fifty */
}

static void measure(struct sequence *q)
{
	for (size_t i = 0; i < q->count; i++) {
		struct token *t = &q->tokens[q->at[i]];

		if (t->times)
			vote(t, (uint32_t)i - t->last);
		else
			t->first = (uint32_t)i;
		if (i)
			t->pause += begin_at(q, i) - begin_at(q, i - 1);
		t->last = (uint32_t)i;
		t->times++;
	}
	for (size_t k = 0; k < q->tokens_count; k++)
		q->tokens[k].last = q->tokens[k].first;
	for (size_t i = 0; i < q->count; i++) {
		struct token *t = &q->tokens[q->at[i]];

		t->regular += i > t->first && about((uint32_t)i - t->last, t->usual);
		t->last = (uint32_t)i;
	}
}

static double regularity(const struct token *t)
{
	return (double)t->regular / (t->times - 1);
}

/* Comes once a period, at the same place, over at least half of the sequence. */
static bool is_periodic(const struct sequence *q, const struct token *t)
{
	return t - q->tokens != TOKENS_MOST && t->times >= LEAST_TIMES &&
	       regularity(t) >= STEPS_REGULAR && t->last - t->first >= q->count / 2;
}

/* How many tokens come once in a period of about that many. */
static size_t own_tokens(const struct sequence *q, uint32_t period)
{
	size_t own = 0;

	for (size_t k = 0; k < q->tokens_count; k++)
		own += is_periodic(q, &q->tokens[k]) && about(q->tokens[k].usual, period);
	return own;
}

/* The longest period that enough of its tokens are its own of; 0: none. */
static uint32_t outermost_period(const struct sequence *q)
{
	uint32_t limit = UINT32_MAX;

	for (;;) {
		uint32_t period = 0;

		for (size_t k = 0; k < q->tokens_count; k++) {
			const struct token *t = &q->tokens[k];

			if (is_periodic(q, t) && t->usual < limit && t->usual > period)
				period = t->usual;
		}
		if (!period || own_tokens(q, period) * STEPS_OWN_TOKENS >= period)
			return period;
		limit = period;
	}
}

/* Where a step begins: with the token before which most time passes, on average. */
static uint32_t anchor_of(const struct sequence *q, uint32_t period)
{
	uint32_t best = 0;
	double most = -1;

	for (size_t k = 0; k < q->tokens_count; k++) {
		const struct token *t = &q->tokens[k];
		double pause = (double)t->pause / t->times;

		if (!is_periodic(q, t) || !about(t->usual, period) || pause <= most)
			continue;
		most = pause;
		best = (uint32_t)k;
	}
	return best;
}

static int by_length(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return a < b ? -1 : a > b;
}

size_t steps_whole(const struct steps *v)
{
	return v->count ? v->count - 1 - v->cuts : 0;
}

int64_t steps_length(const struct steps *v, size_t i)
{
	return v->cut[i] ? -1 : v->begins[i + 1] - v->begins[i];
}

/* Between the windows of a recording nobody knows how many steps there were. */
static int find_cuts(const struct session *s, struct steps *v)
{
	size_t window = 0;

	v->cut = calloc(v->count, sizeof(*v->cut));
	if (!v->cut)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < v->count; i++) {
		while (window < s->windows_count && s->windows[window].end <= v->begins[i])
			window++;
		v->cut[i] = window < s->windows_count && v->begins[i + 1] > s->windows[window].end;
		v->cuts += v->cut[i];
	}
	return 0;
}

static int lengths(struct steps *v)
{
	int64_t *ns = malloc(v->count * sizeof(*ns));
	size_t n = 0;

	if (!ns)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < v->count; i++)
		if (!v->cut[i])
			ns[n++] = steps_length(v, i);
	if (n) {
		qsort(ns, n, sizeof(*ns), by_length);
		v->length = ns[(n - 1) / 2];
		v->shortest = ns[0];
		v->longest = ns[n - 1];
	}
	free(ns);
	if (!n)
		steps_free(v); /* none of them was seen from begin to end */
	return 0;
}

static int take_steps(const struct sequence *q, uint32_t anchor, uint32_t period,
		      struct steps *out)
{
	const struct token *t = &q->tokens[anchor];
	int64_t all = begin_at(q, q->count - 1) - begin_at(q, 0);
	int64_t covered = begin_at(q, t->last) - begin_at(q, t->first);
	int err;

	out->begins = calloc(t->times, sizeof(*out->begins));
	if (!out->begins)
		return -ENOMEM;
	for (size_t i = t->first; i <= t->last; i++)
		if (q->at[i] == anchor)
			out->begins[out->count++] = begin_at(q, i);
	out->calls = period;
	out->anchor = q->call[t->first];
	out->confidence = regularity(t) * (all > 0 ? (double)covered / (double)all : 0);
	err = find_cuts(q->s, out);
	return err ? err : lengths(out);
}

/* Overwrites calls. */
static int steps_in(const struct session *s, uint32_t *calls, size_t count, struct steps *out)
{
	struct sequence q = { .s = s };
	uint32_t period;
	int err;

	*out = (struct steps){ 0 };
	err = sequence_make(&q, calls, count);
	if (err || !q.count || !q.tokens)
		goto out;
	measure(&q);
	period = outermost_period(&q);
	if (period)
		err = take_steps(&q, anchor_of(&q, period), period, out);
out:
	sequence_free(&q);
	if (err)
		steps_free(out);
	return err;
}

int steps_of(const struct session *s, const struct feeders *f, struct steps *out)
{
	uint32_t *calls = malloc((f->count + 1) * sizeof(*calls));
	int err;

	*out = (struct steps){ 0 };
	if (!calls)
		return -ENOMEM;
	if (f->count)
		memcpy(calls, f->calls, f->count * sizeof(*calls));
	err = steps_in(s, calls, f->count, out);
	free(calls);
	return err;
}

int steps_find(const struct session *s, uint32_t process, struct steps *out)
{
	struct feeders f;
	int err;

	*out = (struct steps){ 0 };
	err = feeders_find(s, process, &f);
	if (err)
		return err;
	err = steps_in(s, f.calls, f.count, out);
	feeders_free(&f);
	return err;
}

void steps_free(struct steps *v)
{
	free(v->begins);
	free(v->cut);
	*v = (struct steps){ 0 };
}
