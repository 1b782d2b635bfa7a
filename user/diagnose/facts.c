// SPDX-License-Identifier: BSD-2-Clause
/* One pass over the calls of a process. */
#include "diagnose/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "probe/catalogue.h"
#include "util/select.h"

#define SLOW_NS 50000 /* HTA's threshold of a slow launch */

struct pass {
	struct facts *f;
	int64_t *launches; /* durations of steady ones */
	size_t count, cap;
	int64_t quick; /* a launch that nothing holds up */
	int64_t steady_from, late_from;
	uint64_t busiest; /* calls of the thread that makes most */
};

int64_t quantile(int64_t *values, size_t count, unsigned q)
{
	return count ? select_rank(values, count, (count - 1) * q / 1000) : -1;
}

static void add(struct tally *t, const struct session *s, const struct call *c)
{
	int64_t ns = call_duration(c);

	t->count++;
	if (ns < 0)
		ns = 0;
	t->ns += ns;
	if (ns >= t->longest) {
		t->longest = ns;
		t->api = c->api;
	}
	if (c->flags & CALL_ARGS_CALL)
		t->bytes += s->transfers[c->args].bytes;
}

static bool waits_for_device(const struct session_api *api)
{
	/* Stream-ordered and host allocation do not. */
	return !strstr(api->name, "Async") && !strstr(api->name, "Host");
}

static void count_launch(struct pass *p, const struct call *c, bool blocked)
{
	struct facts *f = p->f;
	const struct session_api *api = &f->s->apis[c->api];
	int64_t ns = call_duration(c);

	f->launches += !!(api->sorts & API_IS_KERNEL_LAUNCH);
	f->graph_launches += !!(api->sorts & API_IS_GRAPH_LAUNCH);
	if (ns < 0 || c->flags & CALL_COLD)
		return;
	if (blocked)
		add(&f->blocked, f->s, c);
	else if (ns > SLOW_NS)
		add(&f->slow, f->s, c);
	f->launch_ns += ns;
}

static void count_wait(struct facts *f, const struct session_api *api, const struct call *c)
{
	int64_t ns = call_duration(c);

	if (api->kind == API_COPY) {
		add(&f->blocking_copies, f->s, c);
	} else if (api->kind == API_SET) {
		add(&f->blocking_sets, f->s, c);
	} else {
		add(&f->syncs, f->s, c);
		if (ns >= 0 && ns < AT_ONCE_NS)
			add(&f->at_once, f->s, c);
	}
}

static void count_other(struct pass *p, const struct session_api *api, const struct call *c)
{
	struct facts *f = p->f;
	bool steady = c->begin >= p->steady_from;

	switch (api->kind) {
	case API_ALLOC:
		if (steady && waits_for_device(api))
			add(&f->allocs, f->s, c);
		break;
	case API_FREE:
		if (steady && waits_for_device(api))
			add(&f->frees, f->s, c);
		break;
	case API_MODULE:
		if (strstr(api->name, "Load")) {
			add(&f->loads, f->s, c);
			if (c->begin >= p->late_from)
				add(&f->late_loads, f->s, c);
		}
		break;
	case API_OCCUPANCY: add(&f->occupancy, f->s, c); break;
	case API_COLLECTIVE: add(&f->collectives, f->s, c); break;
	case API_GRAPH:
		if (strstr(api->name, "Instantiate"))
			add(&f->instantiated, f->s, c);
		break;
	default: break;
	}
}

static bool inside(const struct session *s, const struct call *c, unsigned sorts)
{
	for (int i = 0; c->parent != CALL_NONE && i < 64; i++) {
		c = &s->calls[c->parent];
		if (s->apis[c->api].sorts & sorts)
			return true;
	}
	return false;
}

static void count_call(struct pass *p, struct queue_guess *queue, const struct call *c)
{
	struct facts *f = p->f;
	const struct session_api *api = &f->s->apis[c->api];
	bool blocked = c->parent == CALL_NONE && queue_blocked(queue, f->s, c, p->quick);

	f->calls++;
	if (c->flags & CALL_COLD && c->parent == CALL_NONE)
		add(&f->cold, f->s, c);
	if (c->flags & CALL_POLL) {
		add(&f->polls, f->s, c);
		return;
	}
	if (api->sorts & API_IS_LAUNCH) {
		if (!inside(f->s, c, API_IS_LAUNCH))
			count_launch(p, c, blocked);
	} else if (api->sorts & API_IS_WAIT) {
		if (!inside(f->s, c, API_IS_WAIT))
			count_wait(f, api, c);
	} else {
		count_other(p, api, c);
	}
}

/* The durations of launches, without first ones. */
static int gather_launches(struct pass *p, const struct session_thread *t)
{
	const struct session *s = p->f->s;

	for (uint32_t i = t->first_call; i < t->first_call + t->calls; i++) {
		const struct call *c = &s->calls[i];

		if (!(s->apis[c->api].sorts & API_IS_LAUNCH) || call_duration(c) < 0 ||
		    c->flags & CALL_COLD || inside(s, c, API_IS_LAUNCH))
			continue;
		if (GROW(p->launches, p->cap, p->count + 1))
			return -ENOMEM;
		p->launches[p->count++] = call_duration(c);
	}
	return 0;
}

static int each_thread(struct pass *p, bool count)
{
	const struct session *s = p->f->s;
	int err = 0;

	for (size_t i = 0; !err && i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];
		struct queue_guess queue = { 0 };

		if (t->process != p->f->process)
			continue;
		p->busiest = t->calls > p->busiest ? t->calls : p->busiest;
		if (!count)
			err = gather_launches(p, t);
		for (uint32_t k = 0; count && k < t->calls; k++)
			count_call(p, &queue, &s->calls[t->first_call + k]);
	}
	return err;
}

static double info_number(const struct session *s, const char *key)
{
	const char *text = session_info(s, key);

	return text ? strtod(text, NULL) : 0;
}

static void quality(struct facts *f, uint64_t busiest)
{
	const struct session *s = f->s;
	double cost = info_number(s, "probe_pair_ns") * (double)busiest;

	for (int i = 0; i < 8; i++)
		if (i != RECORD_LOSS_NAME)
			f->lost += s->quality.losses[i];
	f->unmatched = s->join.works ? 1 - (double)s->join.matched / (double)s->join.works : 0;
	f->missing = s->join.launches ?
			     (double)s->join.launches_without / (double)s->join.launches : 0;
	f->probe_share = f->window > 0 ? cost / (double)f->window : 0;
}

void diag_facts_begin(struct facts *f, const struct session *s, uint32_t process)
{
	const struct session_process *p = &s->processes[process];
	int64_t from = p->first > s->begin ? p->first : s->begin;
	int64_t to = p->last < s->end ? p->last : s->end;

	*f = (struct facts){ .s = s, .p = p, .process = process,
			     .window = session_recorded(s, from, to),
			     .heaviest = UINT32_MAX, .unsteady = UINT32_MAX };
}

int diag_facts_calls(struct facts *f)
{
	const struct session *s = f->s;
	struct pass pass = { .f = f };
	int64_t from = f->p->first > s->begin ? f->p->first : s->begin;
	int64_t to = f->p->last < s->end ? f->p->last : s->end;
	int err;

	pass.steady_from = to > from ? from + (to - from) / 10 : from;
	pass.late_from = to > from ? from + (to - from) / 2 : from;
	err = each_thread(&pass, false);
	if (!err) {
		f->launch_p50 = quantile(pass.launches, pass.count, 500);
		f->launch_p99 = quantile(pass.launches, pass.count, 990);
		pass.quick = quick_launch(pass.launches, pass.count);
		err = each_thread(&pass, true);
	}
	free(pass.launches);
	quality(f, pass.busiest);
	diag_facts_nvml(f);
	return err;
}

/* What looked like a full queue was none if it was never deep. */
static void unblock(struct facts *f)
{
	f->slow.count += f->blocked.count;
	f->slow.ns += f->blocked.ns;
	if (f->blocked.longest > f->slow.longest) {
		f->slow.longest = f->blocked.longest;
		f->slow.api = f->blocked.api;
	}
	f->blocked = (struct tally){ 0 };
}

void diag_facts_end(struct facts *f, const struct shares *shares, const struct steps *steps)
{
	f->shares = shares;
	f->steps = steps;
	if (steps->count > 1)
		f->repeated_launches = f->launches / (steps->count - 1);
	if (shares->basis == BASIS_CPU_GPU && f->depth_most < BACK_PRESSURE_DEPTH)
		unblock(f);
}
