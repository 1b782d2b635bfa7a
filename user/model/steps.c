// SPDX-License-Identifier: BSD-2-Clause
#include "model/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "model/rhythm.h"
#include "probe/catalogue.h"

#define LEAST_TIMES 3 /* a token must come, to speak of a period */
/* Tokens that are told apart: all further ones are one more, which no step begins with. */
#define TOKENS_MOST UINT16_MAX

/* A function, a kernel whatever launched it, or an executable graph. */
struct token {
	uint32_t times, first, last; /* positions in the sequence */
	uint32_t usual, votes;	     /* distance between two of them: majority vote */
	uint32_t regular;	     /* distances that are the usual one, about */
	uint32_t rhythm;	     /* index + 1, where distances come again after several */
	int64_t pause;		     /* ns, sum of the time since the token before */
};

struct sequence {
	const struct session *s;
	struct map ids;
	struct token *tokens;
	size_t tokens_count, tokens_cap;
	struct rhythm *rhythms; /* of the tokens without a usual distance */
	size_t rhythms_count;
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
	free(q->rhythms);
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
	return rhythm_about(distance, usual, 0);
}

/* Time since the token before. */
static int64_t pause_at(const struct sequence *q, size_t position)
{
	return position ? begin_at(q, position) - begin_at(q, position - 1) : 0;
}

static void measure(struct sequence *q)
{
	for (size_t i = 0; i < q->count; i++) {
		struct token *t = &q->tokens[q->at[i]];

		if (t->times)
			vote(t, (uint32_t)i - t->last);
		else
			t->first = (uint32_t)i;
		t->pause += pause_at(q, i);
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

/* Over at least half of the sequence. */
static bool is_widespread(const struct sequence *q, const struct token *t)
{
	return t - q->tokens != TOKENS_MOST && t->times >= LEAST_TIMES &&
	       t->last - t->first >= q->count / 2;
}

static double regularity(const struct token *t)
{
	return (double)t->regular / (t->times - 1);
}

static struct rhythm *rhythm_of(const struct sequence *q, const struct token *t)
{
	return t->rhythm ? &q->rhythms[t->rhythm - 1] : NULL;
}

/* Gives each token without a usual distance a rhythm to look for. */
static int rhythms_make(struct sequence *q)
{
	for (size_t k = 0; k < q->tokens_count; k++) {
		struct token *t = &q->tokens[k];

		if (is_widespread(q, t) && regularity(t) < STEPS_REGULAR)
			t->rhythm = (uint32_t)++q->rhythms_count;
	}
	q->rhythms = calloc(q->rhythms_count + 1, sizeof(*q->rhythms));
	if (!q->rhythms)
		return -ENOMEM;
	for (size_t k = 0; k < q->tokens_count; k++) {
		struct token *t = &q->tokens[k];

		if (t->rhythm)
			rhythm_start(rhythm_of(q, t), (t->last - t->first) / (t->times - 1) / 50);
	}
	return 0;
}

/* Shows all rhythms their tokens' distances. */
static void rhythms_pass(struct sequence *q, bool learn)
{
	for (size_t k = 0; k < q->tokens_count; k++)
		if (q->tokens[k].rhythm)
			q->tokens[k].last = q->tokens[k].first;
	for (size_t i = 0; i < q->count; i++) {
		struct token *t = &q->tokens[q->at[i]];

		if (!t->rhythm)
			continue;
		if (i > t->first && learn)
			rhythm_learn(rhythm_of(q, t), (uint32_t)i - t->last, pause_at(q, t->last));
		else if (i > t->first)
			rhythm_hear(rhythm_of(q, t), (uint32_t)i - t->last);
		t->last = (uint32_t)i;
	}
}

/* Tokens keep their rhythm if they have one; the usual distance is then that of its periods. */
static int rhythms_find(struct sequence *q)
{
	size_t kept = 0;
	int err = rhythms_make(q);

	if (err || !q->rhythms_count)
		return err;
	rhythms_pass(q, false);
	for (size_t k = 0; k < q->tokens_count; k++) {
		struct rhythm *r = rhythm_of(q, &q->tokens[k]);

		if (r && rhythm_length(r))
			kept++;
		else
			q->tokens[k].rhythm = 0;
		if (r)
			rhythm_rewind(r);
	}
	if (!kept)
		return 0;
	rhythms_pass(q, true);
	for (size_t k = 0; k < q->tokens_count; k++) {
		struct token *t = &q->tokens[k];

		if (t->rhythm && rhythm_holds(rhythm_of(q, t)))
			t->usual = rhythm_period(rhythm_of(q, t));
		else
			t->rhythm = 0;
	}
	return 0;
}

/* Comes once a period, at the same place, or as often and at the same places. */
static bool is_periodic(const struct sequence *q, const struct token *t)
{
	return is_widespread(q, t) && (t->rhythm || regularity(t) >= STEPS_REGULAR);
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

/* What a step begins with. */
struct anchor {
	uint32_t token;
	uint32_t from; /* which of the distances of its rhythm, if it has one, follows then */
};

/* The token before which most time passes, on average. */
static struct anchor anchor_of(const struct sequence *q, uint32_t period)
{
	struct anchor best = { 0, 0 };
	double most = -1;

	for (size_t k = 0; k < q->tokens_count; k++) {
		const struct token *t = &q->tokens[k];
		const struct rhythm *r = rhythm_of(q, t);
		double pause = (double)t->pause / t->times;
		uint32_t from = 0;

		if (!is_periodic(q, t) || !about(t->usual, period))
			continue;
		if (r)
			from = rhythm_begin(r, &pause);
		if (pause <= most)
			continue;
		most = pause;
		best = (struct anchor){ (uint32_t)k, from };
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

static void begin_each(const struct sequence *q, uint32_t token, struct steps *out)
{
	const struct token *t = &q->tokens[token];

	for (size_t i = t->first; i <= t->last; i++)
		if (q->at[i] == token)
			out->begins[out->count++] = begin_at(q, i);
	out->anchor = q->call[t->first];
}

/*
 * A step begins and ends with each whole rhythm, wherever one is. Between two of them the
 * tokens are counted, and where that does not come out even it was one odd step.
 */
static void begin_by_rhythm(const struct sequence *q, struct anchor a, struct steps *out)
{
	const struct token *t = &q->tokens[a.token];
	struct rhythm r = *rhythm_of(q, t);
	uint32_t at[RHYTHM_MOST], last = t->first, times = 0, taken = 0, sure = 0;

	rhythm_rewind(&r);
	for (size_t i = t->first; i <= t->last; i++) {
		if (q->at[i] != a.token)
			continue;
		if (times)
			rhythm_push(&r, (uint32_t)i - last);
		last = (uint32_t)i;
		if (times >= taken + r.length && rhythm_ends(&r, a.from)) {
			uint32_t from = times - r.length;

			if (from > taken || !out->count) ...
		}
		at[times++ % RHYTHM_MOST] = (uint32_t)i;
	}
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
