// SPDX-License-Identifier: BSD-2-Clause
/* What the summary says, from one pass over the calls. */
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "report/row.h"

struct part {
	uint32_t process, what;
	int64_t sum; /* NA: no call of it had a value */
};

/*
 * Sums for each (process, API) or (process, kernel), in the order in which the
 * pairs were met first. A thread adds by index; the pairs are looked up once a
 * thread.
 */
struct tally {
	int64_t *sum;	   /* of this thread, by what */
	uint32_t *thread;  /* thread + 1 that met it last, by what */
	uint32_t *touched; /* by this thread, in order */
	size_t touched_count;
	struct part *parts;
	size_t parts_count, parts_cap;
	struct map index; /* (process, what) to part */
};

struct times {
	int64_t *ns;
	size_t count, cap;
	bool met; /* there were calls, with a time or without */
};

struct summing {
	struct visitor visitor; /* first: it is what thread_busy() knows */
	const struct session *s;
	uint32_t thread; /* + 1 */
	struct tally apis, kernels;
	struct times kernel_times, graph_times;
	int64_t open_calls;
};

static int tally_new(struct tally *t, size_t count)
{
	t->sum = malloc((count + 1) * sizeof(*t->sum));
	t->thread = calloc(count + 1, sizeof(*t->thread));
	t->touched = malloc((count + 1) * sizeof(*t->touched));
	return t->sum && t->thread && t->touched ? 0 : -ENOMEM;
}

static void tally_free(struct tally *t)
{
	free(t->sum);
	free(t->thread);
	free(t->touched);
	free(t->parts);
	map_free(&t->index);
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == NA || b == NA)
		return a == NA ? b : a;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* value may be NA: met, nothing more. */
static inline void tally_add(struct tally *t, uint32_t thread, uint32_t what, int64_t value)
{
	if (t->thread[what] != thread) {
		t->thread[what] = thread;
		t->sum[what] = NA;
		t->touched[t->touched_count++] = what;
	}
	t->sum[what] = plus(t->sum[what], value);
}

/* At the end of a thread of this process. */
static int tally_flush(struct tally *t, uint32_t process)
{
	int err = 0;

	for (size_t i = 0; i < t->touched_count && !err; i++) {
		uint32_t what = t->touched[i], at = map_get(&t->index, process, what);

		if (at != MAP_NONE) {
			t->parts[at].sum = plus(t->parts[at].sum, t->sum[what]);
			continue;
		}
		err = GROW(t->parts, t->parts_cap, t->parts_count + 1);
		if (!err)
			err = map_put(&t->index, process, what, (uint32_t)t->parts_count);
		if (!err)
			t->parts[t->parts_count++] = (struct part){ process, what, t->sum[what] };
	}
	t->touched_count = 0;
	return err;
}

/* The first of those with the largest sum; *all becomes the sum of all. */
static const struct part *tally_top(const struct tally *t, int64_t *all)
{
	const struct part *best = NULL;

	*all = 0;
	for (size_t i = 0; i < t->parts_count; i++) {
		const struct part *p = &t->parts[i];

		if (p->sum == NA)
			continue;
		*all = plus(*all, p->sum);
		if (!best || p->sum > best->sum)
			best = p;
	}
	return best;
}

static int times_add(struct times *t, int64_t ns)
{
	int err = 0;

	t->met = true;
	if (ns >= 0)
		err = GROW(t->ns, t->cap, t->count + 1);
	if (!err && ns >= 0)
		t->ns[t->count++] = ns;
	return err;
}

/* Of launches, first calls are left out of the times. */
static int visit(struct visitor *v, const struct call *c, bool launch)
{
	struct summing *sum = (struct summing *)v;
	const struct session *s = sum->s;
	int64_t self = call_self(s, c);

	sum->open_calls += !!(c->flags & CALL_OPEN);
	tally_add(&sum->apis, sum->thread, c->api, self < 0 ? NA : self);
	if (!launch)
		return 0;
	if (c->kernel != UINT32_MAX)
		tally_add(&sum->kernels, sum->thread, c->kernel, (int64_t)call_count(s, c));
	if (is_kernel_launch(s, c))
		return times_add(&sum->kernel_times, c->flags & CALL_COLD ? -1 : call_single(s, c));
	if (is_graph_launch(s, c))
		return times_add(&sum->graph_times, c->flags & CALL_COLD ? -1 : call_single(s, c));
	return 0;
}

static void take_thread(const struct session *s, const struct session_thread *t,
			const struct busy *b, struct row *r)
{
	const struct session_process *p = &s->processes[t->process];
	int64_t wall = process_wall(s, p);

	r->tid = t->tid;
	r->pid = t->pid;
	r->thread = t->comm && *t->comm ? t->comm : p->comm && *p->comm ? p->comm : NULL;
	r->dispatch_share = r->waiting_share = r->elsewhere_share = NA;
	if (b->unknown)
		return;
	r->dispatch_share = share(b->dispatch, wall);
	r->waiting_share = share(b->waiting, wall);
	r->elsewhere_share = share(busy_elsewhere(b, wall), wall);
}

static void add_busy(struct row *r, const struct busy *b)
{
	r->calls += (int64_t)b->calls;
	r->launches += (int64_t)b->launches;
	r->graph_launches += (int64_t)b->graph_launches;
	r->errors += (int64_t)b->errors;
	r->entries += b->entries;
	r->entered += b->entered;
}

/* The launching thread is the one with most launches; without any, with most calls. */
static int sum_threads(struct summing *sum, struct row *r)
{
	const struct session *s = sum->s;
	uint64_t most_launches = 0, most_calls = 0;
	int err = 0;

	for (size_t i = 0; i < s->threads_count && !err; i++) {
		const struct session_thread *t = &s->threads[i];
		struct busy b;
		uint64_t launches;

		sum->thread = (uint32_t)i + 1;
		err = thread_busy(s, t, &sum->visitor, &b);
		if (!err)
			err = tally_flush(&sum->apis, t->process);
		if (!err)
			err = tally_flush(&sum->kernels, t->process);
		launches = b.launches + b.graph_launches;
		add_busy(r, &b);
		if (launches < most_launches)
			continue;
		if (launches == most_launches && b.calls <= most_calls)
			continue;
		most_launches = launches;
		most_calls = b.calls;
		take_thread(s, t, &b, r);
	}
	return err;
}

/*
 * Median and p99 of what one launch cost its thread: of kernels, or of graphs
 * where nothing else is launched.
 */
static void fill_times(struct summing *sum, struct row *r)
{
	struct times *t = sum->kernel_times.met ? &sum->kernel_times : &sum->graph_times;
	struct row stats;

	row_init(&stats);
	stats_fill(&stats, t->ns, t->count);
	r->p50 = stats.p50;
	r->p99 = stats.p99;
}

static void fill_tops(const struct report_ctx *c, const struct summing *sum, struct row *r)
{
	int64_t all;
	const struct part *top = tally_top(&sum->apis, &all);

	if (top) {
		r->top_api = c->s->apis[top->what].display;
		r->top_api_share = share(top->sum, all);
	}
	top = tally_top(&sum->kernels, &all);
	if (top) {
		r->top_kernel = kernel_name(c->s, top->what, c->o->names);
		r->top_kernel_launches = top->sum;
	}
}

static void summing_free(struct summing *sum)
{
	tally_free(&sum->apis);
	tally_free(&sum->kernels);
	free(sum->kernel_times.ns);
	free(sum->graph_times.ns);
}

int summary_build(struct report_ctx *c)
{
	const struct session *s = c->s;
	struct summing sum = { .visitor = { visit }, .s = s };
	struct row *r;
	int err = rows_add(&c->rows, &r);

	if (!err)
		err = tally_new(&sum.apis, s->apis_count);
	if (!err)
		err = tally_new(&sum.kernels, s->kernels_count);
	if (!err)
		err = sum_threads(&sum, r);
	if (!err) {
		r->wall = wall_in_windows(s, 0, INT64_MAX);
		r->threads = (int64_t)s->threads_count;
		r->processes = (int64_t)s->processes_count;
		r->rate = rate(r->launches + r->graph_launches, r->wall);
		r->errors = known_errors(r->errors, r->entries, r->entered);
		r->open_calls = sum.open_calls;
		r->lost = (int64_t)quality_lost(s);
		fill_times(&sum, r);
		fill_tops(c, &sum, r);
		err = gpu_summary_build(c, r);
	}
	summing_free(&sum);
	return err;
}
