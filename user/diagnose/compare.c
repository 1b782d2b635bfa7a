// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/compare_private.h"
#include "diagnose/facts.h"
#include "model/grow.h"

#define BLOCKS 20 /* in time, of each recording: long enough to be nearly independent */
#define LEAST_RECORDED 4 /* a block counts with a quarter of the time of a usual one */

const char *const measure_words[MEASURES] = {
	[MEASURE_DISPATCH] = "dispatch_p50_ns", [MEASURE_STEP] = "step_ns",
	[MEASURE_LAUNCH_RATE] = "launches_per_s", [MEASURE_WAIT] = "wait_a_launch_ns",
	[MEASURE_KERNEL] = "kernel_avg_ns",
};

void block_add(struct blocks *b, double v)
{
	if (!(v > 0))
		return;
	b->sum += log(v);
	b->square += log(v) * log(v);
	b->count++;
}

struct value block_value(const struct blocks *b)
{
	struct value v = { .known = b->count >= 3 };
	double n = (double)b->count;

	if (!v.known)
		return v;
	v.log = b->sum / n;
	v.variance = (b->square - b->sum * b->sum / n) / (n - 1) / n;
	v.variance = v.variance > 0 ? v.variance : 0;
	return v;
}

/* What a block of time holds. */
struct block {
	int64_t *launches; /* durations */
	size_t count, cap;
	uint64_t all;	   /* launches, blocked and cold ones too */
	int64_t wait;	   /* ns */
};

static size_t block_of(const struct session *s, int64_t at)
{
	double share = (double)(at - s->begin) / (double)(s->end - s->begin);

	if (!(share > 0))
		return 0;
	return share >= 1 ? BLOCKS - 1 : (size_t)(share * BLOCKS);
}

static int take_call(const struct session *s, const struct call *c, struct queue_guess *queue,
		     struct block *blocks)
{
	struct block *b = &blocks[block_of(s, c->begin)];
	unsigned sorts = s->apis[c->api].sorts;
	/* By its length alone: what is quick may be what has changed. */
	bool blocked = queue_blocked(queue, s, c, BACK_PRESSURE_NS);
	int64_t ns = call_duration(c);

	if (sorts & API_IS_WAIT && ns > 0)
		b->wait += ns;
	if (!(sorts & API_IS_LAUNCH))
		return 0;
	b->all++;
	if (ns < 0 || blocked || c->flags & CALL_COLD)
		return 0;
	if (GROW(b->launches, b->cap, b->count + 1))
		return -ENOMEM;
	b->launches[b->count++] = ns;
	return 0;
}

static int fill(const struct session *s, struct block *blocks)
{
	int err = 0;

	for (size_t i = 0; !err && i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];
		struct queue_guess queue = { 0 };

		for (uint32_t k = t->first_call; !err && k < t->first_call + t->calls; k++)
			if (s->calls[k].parent == CALL_NONE)
				err = take_call(s, &s->calls[k], &queue, blocks);
	}
	return err;
}

/* ns of a block in which probes were attached. */
static double block_recorded(const struct session *s, size_t i)
{
	int64_t length = (s->end - s->begin) / BLOCKS, from = s->begin + (int64_t)i * length;

	return (double)session_recorded(s, from, i + 1 < BLOCKS ? from + length : s->end);
}

static int of_calls(const struct session *s, struct value *out)
{
	struct block blocks[BLOCKS] = { { 0 } };
	struct blocks dispatch = { 0 }, rate = { 0 }, wait = { 0 };
	double all = (double)session_recorded(s, s->begin, s->end), ns;
	int err = s->end > s->begin ? fill(s, blocks) : 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		struct block *b = &blocks[i];

		if (b->count)
			block_add(&dispatch, (double)quantile(b->launches, b->count, 500));
		ns = block_recorded(s, i);
		if (b->all && ns * LEAST_RECORDED * BLOCKS >= all)
			block_add(&rate, (double)b->all / (ns / 1e9));
		if (b->all)
			block_add(&wait, (double)b->wait / (double)b->all);
		free(b->launches);
	}
	out[MEASURE_DISPATCH] = block_value(&dispatch);
	out[MEASURE_LAUNCH_RATE] = block_value(&rate);
	out[MEASURE_WAIT] = block_value(&wait);
	return err;
}

static bool cut_within(const struct steps *v, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
		if (v->cut[i])
			return true;
	return false;
}

/* Of the process with most steps. */
static int of_steps(const struct session *s, struct value *out, size_t *steps)
{
	struct steps best = { 0 };
	struct blocks b = { 0 };

	for (uint32_t i = 0; i < s->processes_count; i++) {
		struct steps v;
		int err = steps_find(s, i, &v);

		if (err) {
			steps_free(&best);
			return err;
		}
		if (v.count > best.count) {
			steps_free(&best);
			best = v;
		} else {
			steps_free(&v);
		}
	}
	/* Of several in a row, so that long and short ones that alternate are no noise. */
	for (size_t i = 0, n = best.count / BLOCKS + 1; i + n < best.count; i += n)
		if (!cut_within(&best, i, n))
			block_add(&b, (double)(best.begins[i + n] - best.begins[i]) / (double)n);
	*out = block_value(&b);
	*steps = steps_whole(&best);
	steps_free(&best);
	return 0;
}

static void of_works(const struct session *s, struct value *out)
{
	double ns[BLOCKS] = { 0 };
	uint64_t count[BLOCKS] = { 0 };
	struct blocks b = { 0 };

	for (size_t i = 0; i < s->works_count && s->end > s->begin; i++) {
		const struct work *w = &s->works[i];

		if (w->kind != RECORD_WORK_KERNEL || w->earlier)
			continue;
		ns[block_of(s, w->begin)] += (double)(w->end - w->begin);
		count[block_of(s, w->begin)]++;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (count[i])
			block_add(&b, ns[i] / (double)count[i]);
	*out = block_value(&b);
}

static int values_of(const struct session *s, struct value out[MEASURES], size_t *steps)
{
	int err = of_calls(s, out);

	*steps = 0;
	if (!err)
		err = of_steps(s, &out[MEASURE_STEP], steps);
	if (!err)
		of_works(s, &out[MEASURE_KERNEL]);
	return err;
}

struct difference compare_values(const struct value *a, const struct value *b, size_t n,
				 size_t measures)
{
	struct difference d = { .known = true };
	double before = 0, after = 0, square = 0, within = 0, mean, deviation, half;
	double chance = COMPARE_LEVEL / (double)measures;

	for (size_t i = 0; i < n; i++) {
		d.known = d.known && a[i].known && b[i].known;
		before += a[i].log / (double)n;
		after += b[i].log / (double)n;
		square += (b[i].log - a[i].log) * (b[i].log - a[i].log);
		within += (a[i].variance + b[i].variance) / (double)(n * n);
	}
	if (!d.known)
		return d;
	mean = after - before;
	if (n > 1) {
		double between = (square / (double)n - mean * mean) / (double)(n - 1);

		deviation = sqrt(between > within ? between : within);
		half = student_t(chance, (double)n - 1) * deviation;
	} else {
		deviation = sqrt(within + COMPARE_DRIFT * COMPARE_DRIFT);
		half = student_t(chance, BLOCKS - 1) * deviation;
	}
	d.before = exp(before);
	d.after = exp(after);
	d.change = expm1(mean);
	d.low = expm1(mean - half);
	d.high = expm1(mean + half);
	d.detectable = expm1(half);
	d.differs = d.low > 0 || d.high < 0;
	return d;
}

int compare(const struct session *const *before, const struct session *const *after, size_t n,
	    struct comparison *out)
{
	struct value (*a)[MEASURES] = calloc(n, sizeof(*a)), (*b)[MEASURES] = calloc(n, sizeof(*b));
	struct value *x = calloc(n, sizeof(*x)), *y = calloc(n, sizeof(*y));
	size_t steps[2] = { 0 }, found, counted = 0;
	int err = a && b && x && y ? 0 : -ENOMEM;

	*out = (struct comparison){ .recordings = n };
	for (size_t i = 0; !err && i < n; i++) {
		err = values_of(before[i], a[i], &found);
		steps[0] += found;
		if (!err)
			err = values_of(after[i], b[i], &found);
		steps[1] += found;
	}
	for (int m = 0; !err && m < MEASURES; m++)
		counted += a[0][m].known && b[0][m].known;
	for (int m = 0; !err && m < MEASURES; m++) {
		for (size_t i = 0; i < n; i++) {
			x[i] = a[i][m];
			y[i] = b[i][m];
		}
		out->of[m] = compare_values(x, y, n, counted ? counted : 1);
	}
	if (!err)
		err = compare_changes(before, after, n, steps, out);
	free(a);
	free(b);
	free(x);
	free(y);
	return err;
}

void comparison_free(struct comparison *c)
{
	free(c->changes);
	*c = (struct comparison){ 0 };
}
