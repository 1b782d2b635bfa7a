/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of one process: its APIs, kernels and threads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/catalogue.h"
#include "top/internal.h"

/* ---- APIs ---- */

enum {
	A_API, A_CALLS, A_P50, A_P99, A_MAX, A_TIME, A_ERRORS, A_HOW, A_SEEN, A_TOTAL, A_EVER_P50,
	A_EVER_P99, A_BYTES, A_COLUMNS,
};

static const struct column api_columns[A_COLUMNS] = {
	[A_API] = {"API", "api", "as CUDA names it", 22, 40, .left = true, .ascending = true},
	[A_CALLS] = {"CALLS/S", "calls", "calls a second", 12},
	[A_P50] = {"P50", "p50", "half of recent calls took less", 8},
	[A_P99] = {"P99", "p99", "99 of 100 recent calls took less", 8},
	[A_MAX] = {"MAX", "max", "longest recent call", 8},
	[A_TIME] = {"TIME%", "time", "share of the time in all calls of this table", 6},
	[A_ERRORS] = {"ERRORS", "errors", "calls that returned an error, since first seen", 7},
	[A_HOW] = {"COUNTED", "counted", "all calls, or sampled in windows",
		   8, .left = true, .ascending = true},
	[A_SEEN] = {"CALLS SEEN", "seen", "calls seen since the process was first seen", 11},
	[A_TOTAL] = {"TIME SEEN", "total", "time in these", 10},
	[A_EVER_P50] = {"EVER P50", "ever-p50", "half of these took less", 9},
	[A_EVER_P99] = {"EVER P99", "ever-p99", "99 of 100 of these took less", 9},
	[A_BYTES] = {"BYTES", "bytes", "bytes in these: copied, set or allocated", 9},
};

static const struct column_set api_sets[] = {
	{"recent", 13, {A_API, A_CALLS, A_TIME, A_P50, A_P99, A_HOW, A_ERRORS, A_MAX, A_SEEN,
			A_TOTAL, A_EVER_P50, A_EVER_P99, A_BYTES}},
	{"since first seen", 7, {A_API, A_SEEN, A_TOTAL, A_EVER_P50, A_EVER_P99, A_ERRORS,
				 A_BYTES}},
};

const char *api_label(uint16_t api, char *buf, size_t size)
{
	const struct api *a = catalogue_get(api);

	if (a)
		return catalogue_display(a->name, buf, size);
	snprintf(buf, size, "API %u", api);
	return buf;
}

/*
 * ns a second in this API: its rate, and what the calls seen in this interval took,
 * or all that were ever seen; below 0: n/a.
 */
static double api_time(const struct snapshot_api *a)
{
	uint64_t calls = a->seen ? a->seen : a->calls;
	uint64_t time = a->seen ? a->interval_ns : a->total_ns;

	if (!a->calls_per_s.known)
		return -1;
	if (a->calls_per_s.value <= 0)
		return 0;
	return calls ? a->calls_per_s.value * (double)time / (double)calls : -1;
}

static double api_time_share(const struct snapshot_process *p, const struct snapshot_api *a)
{
	double sum = 0, own = api_time(a);

	for (size_t i = 0; i < p->apis_count; i++) {
		double time = api_time(&p->apis[i]);

		sum += time > 0 ? time : 0;
	}
	return own < 0 || sum <= 0 ? -1 : 100 * own / sum;
}

static struct cell ever_quantile(const struct top *t, const struct snapshot_api *a, double q)
{
	struct histogram h;
	bool known = copy_histogram(t->copy, t->process, a, true, &h);

	return cell_if_known(CELL_DURATION, known ? (double)snapshot_quantile(&h, q) : -1);
}

static void api_cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	const struct top *t = rows;
	const struct snapshot_api *a = &t->process->apis[row];

	*c = (struct cell){.kind = CELL_EMPTY};
	switch (column) {
	case A_API:
		c->kind = CELL_TEXT;
		c->known = true;
		api_label(a->api, c->own, sizeof(c->own));
		break;
	case A_CALLS:
		*c = cell_estimate(CELL_RATE, &a->calls_per_s);
		break;
	case A_P50:
		*c = cell_if_known(CELL_DURATION, (double)a->p50_ns);
		break;
	case A_P99:
		*c = cell_if_known(CELL_DURATION, (double)a->p99_ns);
		break;
	case A_MAX:
		*c = cell_if_known(CELL_DURATION, (double)a->max_ns);
		break;
	case A_TIME:
		*c = cell_if_known(CELL_PERCENT, api_time_share(t->process, a));
		break;
	case A_ERRORS:
		*c = cell_value(CELL_COUNT, (double)a->errors);
		c->style = a->errors ? STYLE_BAD : STYLE_PLAIN;
		break;
	case A_HOW:
		*c = cell_text(a->sampled ? "sampled" : "all");
		break;
	case A_SEEN:
		*c = cell_value(CELL_COUNT, (double)a->calls);
		break;
	case A_TOTAL:
		*c = cell_value(CELL_DURATION, (double)a->total_ns);
		break;
	case A_EVER_P50:
		*c = ever_quantile(t, a, 0.5);
		break;
	case A_EVER_P99:
		*c = ever_quantile(t, a, 0.99);
		break;
	case A_BYTES:
		*c = cell_value(CELL_BYTES, (double)a->bytes);
		break;
	default:
		break;
	}
}

static uint64_t api_identity(const void *rows, size_t row)
{
	return ((const struct top *)rows)->process->apis[row].api;
}

const struct table apis_table = {
	.columns = api_columns, .columns_count = A_COLUMNS,
	.sets = api_sets, .sets_count = sizeof(api_sets) / sizeof(api_sets[0]),
	.tie = A_SEEN, .cell = api_cell, .identity = api_identity,
};

const struct snapshot_api *top_api(const struct top *t)
{
	const struct table_view *v = &t->tables[VIEW_APIS];

	if (!t->process || v->list.cursor >= v->count)
		return NULL;
	return &t->process->apis[v->order[v->list.cursor]];
}

/* ---- kernels ---- */

enum { K_NAME, K_LAUNCHES, K_SHARE, K_MEAN, K_SEEN, K_EVER, K_TOTAL, K_COLUMNS };

static const struct column kernel_columns[K_COLUMNS] = {
	[K_NAME] = {"KERNEL", "kernel", "its name without scope and arguments",
		    30, TABLE_WIDTH, .left = true, .ascending = true},
	[K_LAUNCHES] = {"LAUNCHES/S", "launches", "launches a second", 12},
	[K_SHARE] = {"OF SEEN%", "share", "share of the launches seen in this interval", 9},
	[K_MEAN] = {"MEAN", "mean", "dispatch time of a launch, since first seen", 8},
	[K_SEEN] = {"SEEN", "seen", "launches seen in this interval", 9},
	[K_EVER] = {"SEEN EVER", "ever", "launches seen since the process was first seen", 10},
	[K_TOTAL] = {"TIME SEEN", "total", "dispatch time of these", 10},
};

static const struct column_set kernel_sets[] = {
	{"launches", 7, {K_NAME, K_LAUNCHES, K_SHARE, K_MEAN, K_SEEN, K_EVER, K_TOTAL}},
};

static double kernel_share(const struct snapshot_process *p, const struct snapshot_kernel *k)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->kernels_count; i++)
		sum += p->kernels[i].seen;
	return sum ? 100 * (double)k->seen / (double)sum : -1;
}

static void kernel_cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	const struct top *t = rows;
	const struct snapshot_kernel *k = &t->process->kernels[row];

	*c = (struct cell){.kind = CELL_EMPTY};
	switch (column) {
	case K_NAME:
		c->kind = CELL_TEXT;
		c->known = true;
		if (*k->name)
			names_short(t->names, k->name, c->own, sizeof(c->own));
		else
			snprintf(c->own, sizeof(c->own), "kernel 0x%" PRIx64, k->handle);
		break;
	case K_LAUNCHES:
		*c = cell_estimate(CELL_RATE, &k->launches_per_s);
		break;
	case K_SHARE:
		*c = cell_if_known(CELL_PERCENT, kernel_share(t->process, k));
		break;
	case K_MEAN:
		*c = cell_if_known(CELL_DURATION,
				   k->launches ? (double)k->total_ns / (double)k->launches : -1);
		break;
	case K_SEEN:
		*c = cell_value(CELL_COUNT, (double)k->seen);
		break;
	case K_EVER:
		*c = cell_value(CELL_COUNT, (double)k->launches);
		break;
	case K_TOTAL:
		*c = cell_value(CELL_DURATION, (double)k->total_ns);
		break;
	default:
		break;
	}
}

static uint64_t kernel_identity(const void *rows, size_t row)
{
	return ((const struct top *)rows)->process->kernels[row].handle;
}

const struct table kernels_table = {
	.columns = kernel_columns, .columns_count = K_COLUMNS,
	.sets = kernel_sets, .sets_count = sizeof(kernel_sets) / sizeof(kernel_sets[0]),
	.tie = K_EVER, .cell = kernel_cell, .identity = kernel_identity,
};

/* ---- threads ---- */

enum {
	T_TID, T_COMM, T_DISPATCH, T_SYNC, T_ELSE, T_RUNNING, T_RUNNABLE, T_LOCK, T_PIPE, T_DISK,
	T_SLEEP, T_OTHER, T_SPIN, T_BLOCK, T_COST, T_OPEN, T_SINCE, T_COLUMNS,
};

static const struct column thread_columns[T_COLUMNS] = {
	[T_TID] = {"TID", "tid", "thread id, as the host counts", 7, .ascending = true},
	[T_COMM] = {"COMM", "comm", "the thread's own name",
		    10, 15, .left = true, .ascending = true},
	[T_DISPATCH] = {"DISP%", "dispatch", "time in calls that give work to the GPU", 8},
	[T_SYNC] = {"SYNC%", "sync", "time waiting for the GPU in calls", 8},
	[T_ELSE] = {"ELSE%", "elsewhere", "time outside CUDA; of the interval, as all shares here:",
		    8},
	[T_RUNNING] = {"RUN%", "running", "outside CUDA, on a CPU", 5},
	[T_RUNNABLE] = {"RDY%", "ready", "outside CUDA, ready and waiting for a CPU", 5},
	[T_LOCK] = {"LOCK%", "lock", "outside CUDA, waiting for a lock", 6},
	[T_PIPE] = {"PIPE%", "pipe", "outside CUDA, waiting for a pipe, socket or poll", 6},
	[T_DISK] = {"DISK%", "disk", "outside CUDA, waiting for a disk", 6},
	[T_SLEEP] = {"SLEEP%", "sleep", "outside CUDA, sleeping until a time", 7},
	[T_OTHER] = {"OTHER%", "other", "outside CUDA, waiting for something else", 7},
	[T_SPIN] = {"SPIN%", "spin", "in calls, on a CPU", 6},
	[T_BLOCK] = {"BLOCK%", "block", "in calls, off the CPU", 7},
	[T_COST] = {"COST%", "cost", "what gbpf's probes cost it", 6},
	[T_OPEN] = {"IN CALL", "open", "the call it is in",
		    20, 32, .left = true, .ascending = true},
	[T_SINCE] = {"FOR", "since", "how long it has been", 8},
};

static const struct column_set thread_sets[] = {
	{"shares", 17, {T_TID, T_COMM, T_DISPATCH, T_SYNC, T_ELSE, T_RUNNING, T_LOCK, T_RUNNABLE,
			T_PIPE, T_DISK, T_SLEEP, T_OTHER, T_OPEN, T_SINCE, T_SPIN, T_BLOCK,
			T_COST}},
	{"in calls", 9, {T_TID, T_COMM, T_OPEN, T_SINCE, T_SPIN, T_BLOCK, T_COST, T_DISPATCH,
			 T_SYNC}},
};

static struct cell wait_cell(const struct snapshot_thread *th, double share)
{
	struct cell c = cell_if_known(CELL_SHARE, share);

	c.known &= th->sched_known;
	return c;
}

static struct cell open_cell(const struct top *t, const struct snapshot_thread *th, bool since)
{
	struct cell c = {.kind = CELL_EMPTY};

	if (!th->open_api)
		return c;
	if (since)
		return cell_if_known(CELL_DURATION, (double)(t->s->mono_ns - th->open_since));
	c.kind = CELL_TEXT;
	c.known = true;
	api_label(th->open_api, c.own, sizeof(c.own));
	return c;
}

static void thread_cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	const struct top *t = rows;
	const struct snapshot_thread *th = &t->process->threads[row];

	*c = (struct cell){.kind = CELL_EMPTY};
	switch (column) {
	case T_TID:
		*c = cell_value(CELL_NUMBER, th->tid);
		break;
	case T_COMM:
		c->kind = CELL_TEXT;
		c->known = true;
		snprintf(c->own, sizeof(c->own), "%.*s", (int)sizeof(th->comm), th->comm);
		break;
	case T_DISPATCH:
		*c = cell_estimate(CELL_SHARE, &th->dispatch_share);
		break;
	case T_SYNC:
		*c = cell_estimate(CELL_SHARE, &th->sync_share);
		break;
	case T_ELSE:
		*c = cell_estimate(CELL_SHARE, &th->elsewhere_share);
		break;
	case T_SPIN:
		*c = wait_cell(th, th->call_spin_share);
		break;
	case T_BLOCK:
		*c = wait_cell(th, th->call_sleep_share);
		break;
	case T_COST:
		*c = cell_if_known(CELL_PERCENT, th->overhead_pct);
		break;
	case T_OPEN:
	case T_SINCE:
		*c = open_cell(t, th, column == T_SINCE);
		break;
	default:
		*c = wait_cell(th, th->wait_share[column - T_RUNNING]);
		break;
	}
}
_Static_assert(T_OTHER - T_RUNNING == WAIT_OTHER, "a column for each kind of wait, in its order");

static uint64_t thread_identity(const void *rows, size_t row)
{
	return ((const struct top *)rows)->process->threads[row].tid;
}

const struct table threads_table = {
	.columns = thread_columns, .columns_count = T_COLUMNS,
	.sets = thread_sets, .sets_count = sizeof(thread_sets) / sizeof(thread_sets[0]),
	.tie = T_TID, .cell = thread_cell, .identity = thread_identity,
};
