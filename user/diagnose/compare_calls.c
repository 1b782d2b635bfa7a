// SPDX-License-Identifier: BSD-2-Clause
/* What is called that was not, or more or less often: an addmm for a product and a sum. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/compare.h"
#include "diagnose/compare_private.h"
#include "model/grow.h"
#include "model/map.h"
#include "model/steps.h"

#define CHANGED 0.1   /* of the number */
#define LEAST 0.01    /* a step, or of a thousand launches: rarer is no habit */

struct counting {
	struct map index; /* (hash of the name, kernel or API) to changes */
	struct comparison *out;
	size_t cap;
};

static int find(struct counting *c, const char *name, bool kernel, size_t *at)
{
	uint64_t hash = map_hash_bytes(name, strlen(name));
	uint32_t found = map_get(&c->index, hash, kernel);

	if (found == MAP_NONE) {
		found = (uint32_t)c->out->changes_count;
		if (GROW(c->out->changes, c->cap, found + 1) ||
		    map_put(&c->index, hash, kernel, found))
			return -ENOMEM;
		c->out->changes[found] = (struct change){ .name = name, .kernel = kernel };
		c->out->changes_count++;
	}
	*at = found;
	return 0;
}

static int add(struct counting *c, const char *name, bool kernel, bool after, int64_t ns)
{
	struct change *v;
	size_t at;

	if (!name || find(c, name, kernel, &at))
		return name ? -ENOMEM : 0;
	v = &c->out->changes[at];
	*(after ? &v->after : &v->before) += 1;
	*(after ? &v->after_ns : &v->before_ns) += ns > 0 ? (double)ns : 0;
	return 0;
}

static int take(struct counting *c, const struct session *s, bool after, uint64_t *launches)
{
	int err = 0;

	for (size_t i = 0; !err && i < s->calls_count; i++) {
		const struct call *v = &s->calls[i];

		if (v->flags & CALL_COLD)
			continue;
		if (v->parent == CALL_NONE && s->apis[v->api].sorts & API_IS_LAUNCH)
			++*launches;
		err = add(c, s->apis[v->api].display, false, after, call_duration(v));
		if (!err && v->kernel != UINT32_MAX)
			err = add(c, s->kernels[v->kernel].mangled, true, after, call_duration(v));
	}
	return err;
}

static bool changed(const struct change *v)
{
	double more = v->before > v->after ? v->before : v->after;

	return more >= LEAST && fabs(v->after - v->before) > CHANGED * more;
}

static int largest_first(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;
	double x = fabs(a->after - a->before), y = fabs(b->after - b->before);

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Sums become a number of calls a unit, and a mean duration. */
static void settle(struct comparison *out, double before, double after)
{
	size_t n = 0;

	for (size_t i = 0; i < out->changes_count; i++) {
		struct change v = out->changes[i];

		v.before_ns = v.before > 0 ? v.before_ns / v.before : NAN;
		v.after_ns = v.after > 0 ? v.after_ns / v.after : NAN;
		v.before = before > 0 ? v.before / before : 0;
		v.after = after > 0 ? v.after / after : 0;
		if (changed(&v))
			out->changes[n++] = v;
	}
	out->changes_count = n;
	if (n)
		qsort(out->changes, n, sizeof(*out->changes), largest_first);
}

int compare_changes(const struct session *const *before, const struct session *const *after,
		    size_t n, const size_t steps[2], struct comparison *out)
{
	struct counting c = { .out = out };
	uint64_t launches[2] = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		err = take(&c, before[i], false, &launches[0]);
		if (!err)
			err = take(&c, after[i], true, &launches[1]);
	}
	out->per_step = steps[0] && steps[1];
	if (!err && out->per_step)
		settle(out, (double)steps[0], (double)steps[1]);
	else if (!err)
		settle(out, (double)launches[0] / 1000, (double)launches[1] / 1000);
	map_free(&c.index);
	return err;
}
