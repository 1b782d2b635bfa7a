// SPDX-License-Identifier: BSD-2-Clause
#include "model/sequence.h"

#include <errno.h>
#include <stdlib.h>

#include "model/grow.h"
#include "model/steps.h"
#include "probe/catalogue.h"

#define LEAST_TIMES 3 /* a token must come, to speak of a period */
/* Tokens that are told apart: all further ones are one more, which no step begins with. */
#define TOKENS_MOST UINT16_MAX

static bool makes_work(const struct session *s, const struct call *c)
{
	const struct session_api *api = &s->apis[c->api];

	/* before the first window not all probes are there */
	if (c->flags & CALL_NO_BEGIN || (s->windows_count && c->begin < s->windows[0].begin))
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

int sequence_make(struct sequence *q, uint32_t *calls, size_t count)
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

void sequence_free(struct sequence *q)
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

/* Time since the token before. */
static int64_t pause_at(const struct sequence *q, size_t position)
{
	return position ? sequence_begin(q, position) - sequence_begin(q, position - 1) : 0;
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

		t->regular += i > t->first && rhythm_about((uint32_t)i - t->last, t->usual, 0);
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

int sequence_measure(struct sequence *q)
{
	measure(q);
	return rhythms_find(q);
}

bool token_is_periodic(const struct sequence *q, const struct token *t)
{
	return is_widespread(q, t) && (t->rhythm || regularity(t) >= STEPS_REGULAR);
}

double token_regularity(const struct sequence *q, const struct token *t)
{
	return t->rhythm ? rhythm_regularity(rhythm_of(q, t)) : regularity(t);
}
