// SPDX-License-Identifier: BSD-2-Clause
#include "model/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/sequence.h"

/* How many tokens come once in a period of about that many. */
static size_t own_tokens(const struct sequence *q, uint32_t period)
{
	size_t own = 0;

	for (size_t k = 0; k < q->tokens_count; k++)
		own += token_is_periodic(q, &q->tokens[k]) &&
		       rhythm_about(q->tokens[k].usual, period, 0);
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

			if (token_is_periodic(q, t) && t->usual < limit && t->usual > period)
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

		if (!token_is_periodic(q, t) || !rhythm_about(t->usual, period, 0))
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
			out->begins[out->count++] = sequence_begin(q, i);
	out->anchor = q->call[t->first];
}

/* Where steps begin and end while a rhythm is followed; times of a token are numbered. */
struct follower {
	const struct sequence *q;
	struct steps *out;
	uint32_t at[RHYTHM_MOST]; /* positions of the last times */
	uint32_t length, sure_at; /* time that the last sure step ended with */
	size_t sure;		  /* begins that are */
};

static void add_begin(struct follower *f, uint32_t position)
{
	f->out->begins[f->out->count++] = sequence_begin(f->q, position);
}

/*
 * Each whole rhythm is a step, wherever it is. Between two of them the times are counted;
 * where that does not come out even, it was one odd step.
 */
static void follow(struct follower *f, uint32_t time, uint32_t position, bool whole)
{
	uint32_t from = time - f->length;

	if (!whole || (f->sure && from < f->sure_at)) {
		if (f->sure && (time - f->sure_at) % f->length == 0)
			add_begin(f, position);
		return;
	}
	if (!f->sure || (from - f->sure_at) % f->length) {
		f->out->count = f->sure;
		add_begin(f, f->at[from % RHYTHM_MOST]);
	}
	if (!f->sure)
		f->out->anchor = f->q->call[f->at[from % RHYTHM_MOST]];
	add_begin(f, position);
	f->sure = f->out->count;
	f->sure_at = time;
}

static void begin_by_rhythm(const struct sequence *q, struct anchor a, struct steps *out)
{
	const struct token *t = &q->tokens[a.token];
	struct rhythm r = *rhythm_of(q, t);
	struct follower f = { .q = q, .out = out, .length = r.length };
	uint32_t time = 0, last = t->first;

	rhythm_rewind(&r);
	for (size_t i = t->first; i <= t->last; i++) {
		if (q->at[i] != a.token)
			continue;
		if (time)
			rhythm_hear(&r, (uint32_t)i - last);
		follow(&f, time, (uint32_t)i, rhythm_ends(&r, a.from));
		f.at[time++ % RHYTHM_MOST] = last = (uint32_t)i;
	}
	out->count = f.sure;
}

static int take_steps(const struct sequence *q, struct anchor a, uint32_t period,
		      struct steps *out)
{
	const struct token *t = &q->tokens[a.token];
	int64_t all = sequence_begin(q, q->count - 1) - sequence_begin(q, 0), covered;
	int err;

	out->begins = calloc(t->times, sizeof(*out->begins));
	if (!out->begins)
		return -ENOMEM;
	if (t->rhythm)
		begin_by_rhythm(q, a, out);
	else
		begin_each(q, a.token, out);
	if (!out->count) {
		steps_free(out);
		return 0;
	}
	out->calls = period;
	covered = out->begins[out->count - 1] - out->begins[0];
	out->confidence = token_regularity(q, t) * (all > 0 ? (double)covered / (double)all : 0);
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
	err = sequence_measure(&q);
	if (err)
		goto out;
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
