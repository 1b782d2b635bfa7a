// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/clock.h"

#include <errno.h>

#define STAMP_MAX (INT64_MAX / 4) /* differences of such fit */

/*
 * The kernel slews by at most 500 ppm, and crystals are far better than that: what moved
 * more was set.
 */
#define RATE_MAX 0.001
/* Drift that may begin with whatever else happened to the clock. */
#define RATE_NEW 0.0001
#define RATE_SPAN_NS 10000000 /* readings closer than that do not tell a rate */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static double size_of(double x)
{
	return x < 0 ? -x : x;
}

static int64_t middle(const struct clock_reading *r)
{
	return r->before + (r->after - r->before) / 2;
}

/* Half of the bracket, rounded up, and one for the rounding of the middle. */
static int64_t half(const struct clock_reading *r)
{
	return (r->after - r->before) / 2 + 1;
}

/*
 * How far interpolated offsets can be off. The line is drawn between the middles, each
 * right within its half bracket. Between them, one of two things is taken for granted:
 *  - no drift seen, here and before: the offset stays between what the two readings say,
 *    so it is off by their distance more, at most;
 *  - drift: its rate is what it was before, or changes on the way. Offsets that first
 *    follow the one rate and then another leave the line by no more than the way that the
 *    old rate would have missed the second reading by. The miss of the segment before
 *    counts, too: a change can be in the middle of it. Both are known as well as the
 *    brackets are narrow; a miss beyond that may be a small step, with a new rate after it.
 */
static int64_t line_error(const struct cupti_clock *c, const struct clock_reading *a,
			  const struct clock_reading *b, double moved, double *deviation)
{
	double noise = (double)(half(a) + half(b)), worst = (double)most(half(a), half(b));
	double span = (double)(middle(b) - middle(a));
	double slack = noise + c->rate_noise * span;
	bool steady = size_of(moved) <= noise;

	*deviation = c->rate_known ? size_of(moved - c->rate * span) : size_of(moved);
	if (*deviation > slack)
		worst += RATE_NEW * span;
	if (!c->rate_known || (steady && c->steady))
		return (int64_t)(worst + size_of(moved)) + 1;
	worst += *deviation > c->deviation ? *deviation : c->deviation;
	return (int64_t)(worst + slack) + 1;
}

static void segment_make(struct cupti_clock *c, const struct clock_reading *b)
{
	const struct clock_reading *a = &c->last;
	struct clock_segment *s = &c->segments[c->count++ % CUPTI_CLOCK_SEGMENTS];
	double span = (double)(middle(b) - middle(a)), noise = (double)(half(a) + half(b)), moved;
	double deviation;

	*s = (struct clock_segment){
		.begin = a->before,
		.end = b->after,
		.stamp = a->stamp,
		.stamp_end = b->stamp,
		.offset = a->stamp - middle(a),
		.offset_end = b->stamp - middle(b),
		.margin = half(a),
		.margin_end = half(b),
	};
	moved = (double)(s->offset_end - s->offset);
	s->step = size_of(moved) > noise + RATE_MAX * span || b->stamp <= a->stamp;
	s->error = line_error(c, a, b, moved, &deviation);
	if (s->step) { /* it says nothing of how the clock runs */
		s->margin += (int64_t)(RATE_NEW * span) + 1;
		s->margin_end += (int64_t)(RATE_NEW * span) + 1;
		c->step_last = c->count;
		return;
	}
	if (span < RATE_SPAN_NS)
		return;
	c->steady = size_of(moved) <= noise;
	c->deviation = deviation;
	c->rate = moved / span;
	c->rate_noise = noise / span;
	c->rate_known = true;
}

static bool possible(const struct clock_reading *r, int64_t now)
{
	return r->before > 0 && r->before <= r->after && r->after <= now && r->stamp > 0 &&
	       r->stamp < STAMP_MAX && r->after < STAMP_MAX;
}

int cupti_clock_add(struct cupti_clock *c, const struct clock_reading *r, int64_t now)
{
	if (!possible(r, now))
		return -EINVAL;
	if (c->any) {
		if (r->before < c->last.after || middle(r) <= middle(&c->last))
			return -EINVAL;
		segment_make(c, r);
	}
	c->last = *r;
	c->any = true;
	return 0;
}

bool cupti_clock_after(const struct cupti_clock *c, int64_t moment)
{
	return c->any && c->last.before >= moment;
}

static void widen(struct clock_time *t, const struct clock_time *by)
{
	int64_t first = least(t->ns - t->error, by->ns - by->error);
	int64_t last = most(t->ns + t->error, by->ns + by->error);

	t->ns = first + (last - first) / 2;
	t->error = (last - first) / 2 + 1;
}

/* With this offset, more or less: is that in the segment? */
static bool offset_convert(const struct clock_segment *s, int64_t stamp, int64_t offset,
			   int64_t margin, struct clock_time *out)
{
	int64_t first = most(stamp - offset - margin, s->begin);
	int64_t last = least(stamp - offset + margin, s->end);

	out->ns = first + (last - first) / 2;
	out->error = (last - first) / 2 + 1;
	return first <= last;
}

static bool step_convert(const struct clock_segment *s, int64_t stamp, struct clock_time *out)
{
	struct clock_time after;
	bool before = offset_convert(s, stamp, s->offset, s->margin, out);

	if (!offset_convert(s, stamp, s->offset_end, s->margin_end, &after))
		return before;
	if (before)
		widen(out, &after);
	else
		*out = after;
	return true;
}

/* Where in this segment can it be? False: nowhere. */
static bool segment_convert(const struct clock_segment *s, int64_t stamp, struct clock_time *out)
{
	double part;

	if (s->step)
		return step_convert(s, stamp, out);
	part = (double)(stamp - s->stamp) / (double)(s->stamp_end - s->stamp);
	if (part < 0)
		part = 0;
	else if (part > 1)
		part = 1;
	out->ns = stamp - s->offset - (int64_t)(part * (double)(s->offset_end - s->offset));
	out->error = s->error;
	return out->ns >= s->begin - s->error && out->ns <= s->end + s->error;
}

static const struct clock_segment *segment_at(const struct cupti_clock *c, size_t i)
{
	return &c->segments[i % CUPTI_CLOCK_SEGMENTS];
}

/* Of segments first to c->count - 1, in the order of their stamps: the last begun by then. */
static size_t segment_find(const struct cupti_clock *c, size_t first, int64_t stamp)
{
	size_t last = c->count;

	while (last - first > 1) {
		size_t middle = first + (last - first) / 2;

		if (segment_at(c, middle)->stamp <= stamp)
			first = middle;
		else
			last = middle;
	}
	return first;
}

/*
 * A clock that was set back says the same twice: then all segments that a stamp can belong
 * to count. Where none of those kept has a step, only neighbours can share one.
 */
int cupti_clock_convert(const struct cupti_clock *c, int64_t stamp, struct clock_time *out)
{
	size_t first = c->count < CUPTI_CLOCK_SEGMENTS ? 0 : c->count - CUPTI_CLOCK_SEGMENTS;
	size_t last = c->count, i;
	struct clock_time one;
	bool found = false;

	if (stamp <= 0 || stamp >= STAMP_MAX || !c->count)
		return -ERANGE;
	if (c->step_last <= first) {
		i = segment_find(c, first, stamp);
		last = i + 2 < last ? i + 2 : last;
		first = i > first ? i - 1 : first;
	}
	for (i = first; i < last; i++) {
		if (!segment_convert(segment_at(c, i), stamp, &one))
			continue;
		if (found)
			widen(out, &one);
		else
			*out = one;
		found = true;
	}
	return found && out->error <= CUPTI_CLOCK_ERROR_MAX ? 0 : -ERANGE;
}
