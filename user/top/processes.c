/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of processes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "top/internal.h"
#include "top/spark.h"

enum {
	PID, COMM, GPU, LAUNCHES, P50, P99, DISPATCH, SYNC, ELSEWHERE, SUSPECTED, HISTORY, PRESSED,
	COPIES, COPIED, LIVE, ALLOCATIONS, ERRORS, COLD, COLD_TIME, CPU, IO, THROTTLED, SIBLING,
	SIBLING_SHARE, COST, COVERED, POD, NAMESPACE, CONTAINER, JOB, RANK, COMMAND, COLUMNS,
};
_Static_assert(COLUMNS <= TABLE_COLUMNS, "a layout has room for all columns");

static const struct column columns[COLUMNS] = {
	[PID] = {"PID", "pid", "process id, as the host counts", 7, .ascending = true},
	[COMM] = {"COMM", "comm", "the process's own name", 10, 15, .left = true,
		  .ascending = true},
	[GPU] = {"GPU", "gpu", "first GPU it uses; *: others use it too; M: MIG instance", 4,
		 .ascending = true},
	[LAUNCHES] = {"LAUNCHES/S", "launches", "kernels, graphs and host functions launched", 12},
	[P50] = {"P50", "p50", "dispatch time of recent launches: half took less", 7},
	[P99] = {"P99", "p99", "99 of 100 recent launches took less", 7},
	[DISPATCH] = {"DISP%", "dispatch",
		      "time in calls that give work to the GPU, of its busiest thread", 8},
	[SYNC] = {"SYNC%", "sync", "time waiting for the GPU in calls, of the same thread", 8},
	[ELSEWHERE] = {"ELSE%", "elsewhere", "time outside CUDA, of the same thread", 8},
	[SUSPECTED] = {"SUSPECTED", "suspected",
		       "what it seems to be bound by, as far as its calls tell", 14, .left = true,
		       .ascending = true},
	[HISTORY] = {"HISTORY", "history", "launches/s of the last minutes", 10, 60},
	[PRESSED] = {"PRESSED/S", "pressed",
		     "launches over 50 us: the GPU's queue may be full", 12},
	[COPIES] = {"COPIES/S", "copies", "copies and sets of memory", 12},
	[COPIED] = {"COPIED/S", "copied", "bytes of them", 14},
	[LIVE] = {"LIVE", "live", "bytes allocated since gbpf saw it first, and not freed", 8},
	[ALLOCATIONS] = {"ALLOCS", "allocations", "allocations of these", 9},
	[ERRORS] = {"ERRORS/S", "errors", "calls that returned an error", 10},
	[COLD] = {"COLD", "cold", "modules loaded and first launches of kernels, in this interval",
		  6},
	[COLD_TIME] = {"COLD TIME", "cold-time", "time these took", 10},
	[CPU] = {"CPU%", "cpu", "of one CPU, with all its descendants", 6},
	[IO] = {"IO/S", "io", "bytes read and written, with all its descendants", 10},
	[THROTTLED] = {"THROTTLED%", "throttled", "time its CPU quota kept it from running", 11},
	[SIBLING] = {"RAN MEANWHILE", "sibling",
		     "thread that ran while the launching one waited for a lock", 14, 15,
		     .left = true, .ascending = true},
	[SIBLING_SHARE] = {"OF WAIT%", "sibling-share", "share of that wait in which it ran", 9},
	[COST] = {"COST%", "cost", "what gbpf's probes cost its worst thread", 6},
	[COVERED] = {"COVERED%", "covered", "time in which launches were probed", 9},
	[POD] = {"POD", "pod", "pod, else container", 16, 40, .left = true, .ascending = true},
	[NAMESPACE] = {"NAMESPACE", "namespace", "the pod's", 12, 24, .left = true,
		       .ascending = true},
	[CONTAINER] = {"CONTAINER", "container", "name or id", 14, 64, .left = true,
		       .ascending = true},
	[JOB] = {"JOB", "job", "Slurm job", 8, 12, .left = true, .ascending = true},
	[RANK] = {"RANK", "rank", "of a distributed job", 7, .ascending = true},
	[COMMAND] = {"COMMAND LINE", "command", "the whole of it", 14, TABLE_WIDTH, .left = true,
		     .ascending = true},
};

static const struct column_set sets[] = {
	{"overview", 19, {PID, COMM, LAUNCHES, DISPATCH, SYNC, SUSPECTED, P50, P99, GPU, ELSEWHERE,
			  HISTORY, ERRORS, COPIES, COPIED, LIVE, POD, PRESSED, CPU, COST}},
	{"memory", 11, {PID, COMM, GPU, COPIES, COPIED, LIVE, ERRORS, ALLOCATIONS, COLD, COLD_TIME,
			HISTORY}},
	{"waits", 12, {PID, COMM, DISPATCH, SYNC, ELSEWHERE, SUSPECTED, CPU, IO, THROTTLED, SIBLING,
		       SIBLING_SHARE, HISTORY}},
	{"places", 9, {PID, COMM, GPU, POD, NAMESPACE, JOB, RANK, CONTAINER, COMMAND}},
	{"cost", 9, {PID, COMM, LAUNCHES, COST, COVERED, P50, P99, PRESSED, HISTORY}},
};

const char *process_gpu(const struct top *t, const struct snapshot_process *p, char *buf,
			size_t size)
{
	const struct snapshot *s = t->s;

	snprintf(buf, size, "%s%s", p->gpu_uuid, p->gpu_shared ? "*" : "");
	for (size_t i = 0; i < s->gpus_count && *p->gpu_uuid; i++) {
		const struct gpu_sample *g = &s->gpus[i];

		if (!strcmp(g->uuid, p->gpu_uuid))
			snprintf(buf, size, "%s%u%s", *g->mig_parent ? "M" : "", g->index,
				 p->gpu_shared ? "*" : "");
	}
	return buf;
}

void process_spark(const struct top *t, const struct snapshot_process *p, size_t width, char *buf,
		   size_t size)
{
	float values[HISTORY_SAMPLES];
	uint64_t first = 0;
	size_t count = history_get(t->history, p->pid, p->start, HISTORY_LAUNCHES,
				   t->history_until, values, &first);

	spark_draw(values, count, first, width, screen_utf8(t->screen), buf, size);
}

static struct cell own_text(const char *text, size_t max)
{
	struct cell c = {.kind = CELL_TEXT, .known = *text != '\0'};

	snprintf(c.own, sizeof(c.own), "%.*s", (int)max, text);
	return c;
}

static struct cell label_cell(const struct labels *l, unsigned column)
{
	switch (column) {
	case POD:
		return cell_text(*l->pod ? l->pod : l->container);
	case NAMESPACE:
		return cell_text(l->namespace);
	case CONTAINER:
		return cell_text(l->container);
	case JOB:
		return cell_text(l->slurm_job);
	default:
		return cell_text(l->rank);
	}
}

/* Where it is not known, that is a word, too. */
static struct cell verdict_cell(const struct snapshot_process *p)
{
	char word[32];
	struct cell c;

	c = own_text(verdict_word(p->verdict.verdict, word, sizeof(word)), sizeof(word));
	c.style = p->verdict.why ? STYLE_DIM : STYLE_PLAIN;
	return c;
}

static struct cell errors_cell(const struct estimate *e)
{
	struct cell c = cell_estimate(CELL_RATE, e);

	c.style = e->known && e->value > 0 ? STYLE_BAD : STYLE_PLAIN;
	return c;
}

static struct cell live_cell(const struct snapshot_process *p, enum cell_kind kind, int64_t value)
{
	struct cell c = cell_if_known(kind, (double)value);

	c.known &= p->live_known;
	return c;
}

static struct cell sibling_cell(const struct snapshot_process *p, unsigned column)
{
	struct cell c = {.kind = CELL_EMPTY};

	if (!p->sibling_tid)
		return c;
	if (column == SIBLING)
		return own_text(p->sibling_comm, sizeof(p->sibling_comm));
	return cell_if_known(CELL_SHARE, p->sibling_share);
}

static struct cell identity_cell(const struct top *t, const struct snapshot_process *p,
				 unsigned column)
{
	char gpu[sizeof(p->gpu_uuid) + 2];
	struct cell c;

	switch (column) {
	case PID:
		return cell_value(CELL_NUMBER, p->pid);
	case COMM:
		return own_text(p->comm, sizeof(p->comm));
	case GPU:
		c = own_text(process_gpu(t, p, gpu, sizeof(gpu)), sizeof(gpu));
		c.kind = c.known ? CELL_TEXT : CELL_NUMBER; /* "n/a": it uses one */
		return c;
	case COMMAND:
		return cell_text(p->command ? p->command : "");
	default:
		return label_cell(&p->labels, column);
	}
}

static struct cell any_cell(const struct top *t, const struct snapshot_process *p, unsigned column)
{
	struct cell c;

	switch (column) {
	case LAUNCHES:
		return cell_estimate(CELL_RATE, &p->launches_per_s);
	case P50:
		return cell_if_known(CELL_DURATION, (double)p->dispatch_p50_ns);
	case P99:
		return cell_if_known(CELL_DURATION, (double)p->dispatch_p99_ns);
	case DISPATCH:
		return cell_estimate(CELL_SHARE, &p->dispatch_share);
	case SYNC:
		return cell_estimate(CELL_SHARE, &p->sync_share);
	case ELSEWHERE:
		return cell_estimate(CELL_SHARE, &p->elsewhere_share);
	case SUSPECTED:
		return verdict_cell(p);
	case HISTORY:
		c = cell_estimate(CELL_DRAWN, &p->launches_per_s);
		c.known = true;
		return c;
	case PRESSED:
		return cell_estimate(CELL_RATE, &p->back_pressured_per_s);
	case COPIES:
		return cell_estimate(CELL_RATE, &p->copies_per_s);
	case COPIED:
		return cell_estimate(CELL_BYTE_RATE, &p->copy_bytes_per_s);
	case LIVE:
		return live_cell(p, CELL_BYTES, p->live_bytes);
	case ALLOCATIONS:
		return live_cell(p, CELL_COUNT, p->live_allocations);
	case ERRORS:
		return errors_cell(&p->errors_per_s);
	case COLD:
		return cell_value(CELL_COUNT, (double)p->cold_starts);
	case COLD_TIME:
		return cell_value(CELL_DURATION, (double)p->cold_ns);
	case CPU:
		return cell_if_known(CELL_PERCENT, p->tree_cpu_pct);
	case IO:
		return cell_if_known(CELL_BYTES, p->tree_io_bytes_per_s);
	case THROTTLED:
		return cell_if_known(CELL_SHARE, p->throttled_share);
	case SIBLING:
	case SIBLING_SHARE:
		return sibling_cell(p, column);
	case COST:
		return cell_if_known(CELL_PERCENT, p->overhead_pct);
	case COVERED:
		return cell_if_known(CELL_PERCENT, 100 * p->coverage);
	default:
		return identity_cell(t, p, column);
	}
}

struct cell process_cell(const struct top *t, const struct snapshot_process *p, const char *name)
{
	int column = table_column(&processes_table, name);

	if (column < 0)
		return (struct cell){.kind = CELL_EMPTY};
	return any_cell(t, p, (unsigned)column);
}

static void cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	*c = any_cell(rows, top_process(rows, row), column);
}

static void drawn(const void *rows, size_t row, size_t width, char *buf, size_t size)
{
	process_spark(rows, top_process(rows, row), width, buf, size);
}

static uint64_t identity(const void *rows, size_t row)
{
	const struct snapshot_process *p = top_process(rows, row);

	return (uint64_t)p->start ^ (uint64_t)p->pid << 40;
}

const struct table processes_table = {
	.columns = columns, .columns_count = COLUMNS,
	.sets = sets, .sets_count = sizeof(sets) / sizeof(sets[0]),
	.cell = cell, .drawn = drawn, .identity = identity,
};
