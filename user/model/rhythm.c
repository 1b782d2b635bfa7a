// SPDX-License-Identifier: BSD-2-Clause
#include "model/rhythm.h"

#include <string.h>

static void push(struct rhythm *r, uint32_t distance)
{
	memmove(r->before + 1, r->before, sizeof(r->before) - sizeof(r->before[0]));
	r->before[0] = distance;
	r->heard++;
}

void rhythm_start(struct rhythm *r, uint32_t slack)
{
	*r = (struct rhythm){ .slack = slack };
	rhythm_rewind(r);
}

/* Those before the first are ones that no distance is like. */
void rhythm_rewind(struct rhythm *r)
{
	memset(r->before, 0xff, sizeof(r->before));
	r->heard = 0;
}

void rhythm_hear(struct rhythm *r, uint32_t distance)
{
	uint32_t most = distance / 50 > r->slack ? distance / 50 : r->slack;

	for (unsigned i = 0; i < RHYTHM_MOST; i++) {
		uint32_t b = r->before[i], off = distance > b ? distance - b : b - distance;

		r->again[i] += off <= most;
	}
	push(r, distance);
}

static bool comes_again(const struct rhythm *r, uint32_t after)
{
	uint32_t compared;

	if (r->heard < RHYTHM_LEAST_WHOLE * after || r->heard < after + RHYTHM_LEAST)
		return false;
	compared = r->heard - after;
	return r->again[after - 1] >= RHYTHM_REGULAR * compared;
}

uint32_t rhythm_length(struct rhythm *r)
{
	uint32_t length = 1;

	while (length <= RHYTHM_MOST && !comes_again(r, length))
		length++;
	if (length == 1 || length > RHYTHM_MOST)
		return 0; /* those that come again at once are steady, or drift */
	r->length = length;
	return length;
}

bool rhythm_ends(const struct rhythm *r, uint32_t from)
{
	if (r->heard < r->length)
		return false;
	for (uint32_t i = 0; i < r->length; i++) {
		uint32_t usual = r->usual[(from + i) % r->length];

		if (!rhythm_about(r->before[r->length - 1 - i], usual, r->slack))
			return false;
	}
	return true;
}

static void take_pauses(struct rhythm *r)
{
	for (uint32_t i = 0; i < r->length; i++)
		r->pauses[i] += r->waited[r->length - 1 - i];
	r->whole++;
	r->since = 0;
}

/* What was usual until now was outvoted, or nothing was. */
static void adopt(struct rhythm *r)
{
	for (uint32_t i = 0; i < r->length; i++)
		r->usual[i] = r->before[r->length - 1 - i];
	memset(r->pauses, 0, sizeof(r->pauses));
	r->votes = 1;
	r->whole = 0;
	take_pauses(r);
}

/* As with Boyer and Moore, of rhythms: one that is not found where it is due votes against. */
void rhythm_learn(struct rhythm *r, uint32_t distance, int64_t waited)
{
	push(r, distance);
	memmove(r->waited + 1, r->waited, sizeof(r->waited) - sizeof(r->waited[0]));
	r->waited[0] = waited;
	r->since++;
	if (r->heard < r->length || (r->votes && r->since < r->length))
		return;
	if (!r->votes) {
		adopt(r);
	} else if (rhythm_ends(r, 0)) {
		r->votes++;
		take_pauses(r);
	} else if (r->since == 2 * r->length) {
		r->votes--;
		r->since = r->length;
	}
}

/* If it is the same from elsewhere, it has a shorter one, and that one is not regular. */
bool rhythm_holds(const struct rhythm *r)
{
	struct rhythm own = *r;

	if (!r->votes || (double)r->whole * r->length < RHYTHM_WHOLE * r->heard)
		return false;
	own.heard = r->length;
	for (uint32_t i = 0; i < r->length; i++)
		own.before[r->length - 1 - i] = r->usual[i];
	for (uint32_t from = 1; from < r->length; from++)
		if (rhythm_ends(&own, from))
			return false;
	return true;
}

uint32_t rhythm_period(const struct rhythm *r)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < r->length; i++)
		sum += r->usual[i];
	return sum;
}

double rhythm_regularity(const struct rhythm *r)
{
	return (double)r->again[r->length - 1] / (r->heard - r->length);
}

uint32_t rhythm_begin(const struct rhythm *r, double *pause)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < r->length; i++)
		if (r->pauses[i] > r->pauses[best])
			best = i;
	*pause = (double)r->pauses[best] / r->whole;
	return best;
}
