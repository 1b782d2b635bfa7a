// SPDX-License-Identifier: BSD-2-Clause
/* When the GPUs had nothing to do, and why: gap_sum. And their streams: stream_sum. */
#include <errno.h>
#include <stdlib.h>

#include "model/gpu.h"
#include "report/row.h"

static void fill_device(const struct session *s, uint32_t device, struct row *r)
{
	const struct record_device *d = &s->devices[device].about;

	r->work.gpu = gpu_index(s, device);
	r->work.device = d->ordinal;
	r->work.uuid = *d->uuid ? d->uuid : NULL;
	r->name = *d->name ? d->name : NULL;
}

static int64_t busy_ns(const struct session *s, uint32_t physical)
{
	struct spans busy, covered;
	int64_t sum = 0;

	if (device_covered(s, physical, &covered))
		return NA;
	if (device_busy(s, physical, WORK_CLASS_ALL, &busy)) {
		spans_free(&covered);
		return NA;
	}
	for (size_t i = 0; i < covered.count; i++)
		sum += spans_within(&busy, covered.items[i].begin, covered.items[i].end);
	spans_free(&busy);
	spans_free(&covered);
	return sum;
}

static int class_row(struct report_ctx *ctx, const struct gap *gaps, size_t count, unsigned class,
		     int64_t *times)
{
	size_t used = 0;
	struct row *r;
	int err;

	for (size_t i = 0; i < count; i++)
		if (gaps[i].class == class)
			times[used++] = gaps[i].end - gaps[i].begin;
	if (!used)
		return 0;
	err = rows_add(&ctx->rows, &r);
	if (err)
		return err;
	row_init_work(r);
	fill_device(ctx->s, gaps[0].physical, r);
	r->work.class = gap_class_words[class];
	r->total = 0;
	for (size_t i = 0; i < used; i++) {
		r->total += times[i];
		r->min = r->min == NA || times[i] < r->min ? times[i] : r->min;
		r->max = times[i] > r->max ? times[i] : r->max;
	}
	r->calls = (int64_t)used;
	r->timed = used;
	stats_fill(r, times, used);
	return 0;
}

static int device_rows(struct report_ctx *ctx, uint32_t physical)
{
	const struct session *s = ctx->s;
	size_t count, first = ctx->rows.count;
	int64_t idle = 0, window = device_window(s, physical), busy = busy_ns(s, physical);
	struct gap *gaps;
	int64_t *times;
	int err = device_gaps(s, physical, &gaps, &count);

	if (err)
		return err;
	times = malloc((count + 1) * sizeof(*times));
	err = times ? 0 : -ENOMEM;
	for (unsigned class = 0; class < GAP_CLASSES && !err; class++)
		err = class_row(ctx, gaps, count, class, times);
	free(times);
	free(gaps);
	for (size_t i = first; i < ctx->rows.count; i++)
		idle += ctx->rows.items[i].total;
	for (size_t i = first; i < ctx->rows.count; i++) {
		struct row *r = &ctx->rows.items[i];

		r->work.window = window;
		r->work.idle_share = share(r->total, idle);
		r->work.window_share = share(r->total, window);
		r->work.busy_share = share(busy, window);
	}
	return err;
}

static int build_gap(struct report_ctx *ctx)
{
	const struct session *s = ctx->s;
	int err = 0;

	for (uint32_t i = 0; i < s->devices_count && i < MOST_DEVICES && !err; i++)
		if (s->devices[i].physical == i)
			err = device_rows(ctx, i);
	return err;
}

static const struct column columns_gap[] = {
	COLUMN("idle_pct", "% idle", INT, PERCENT, work.idle_share),
	COLUMN("window_pct", "% window", INT, PERCENT, work.window_share),
	COLUMN("total_ns", "Total", INT, NS, total),
	COLUMN("gaps", "Gaps", INT, NONE, calls),
	TIME("avg_ns", "Avg", avg, avg),
	TIME("p50_ns", "Med", p50, avg),
	TIME_OPTIONAL("min_ns", "Min", min, avg),
	TIME("max_ns", "Max", max, avg),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),
	TIME_OPTIONAL("p90_ns", "p90", p90, avg),
	TIME("p99_ns", "p99", p99, avg),
	COLUMN("class", "Class", TEXT, NONE, work.class),
	COLUMN_OPTIONAL("window_ns", "Window", INT, NS, work.window),
	COLUMN("busy_pct", "GPU busy (%)", INT, PERCENT, work.busy_share),
	COLUMN_OPTIONAL("gpu", "GPU", INT, ID, work.gpu),
	COLUMN_OPTIONAL("device", "Device", INT, ID, work.device),
	COLUMN_OPTIONAL("uuid", "UUID", TEXT, NONE, work.uuid),
	COLUMN("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_gap = {
	.about = { "gap_sum", NULL, "when each GPU had nothing to do, and why" },
	.columns = columns_gap,
	.sort = "-total_ns",
	.bases = "% idle: of the device's idle time. % window and busy: of the time in which all "
		 "processes that use the device were recorded. host-wait: not asked for in time. "
		 "sync-drain: so, because the thread waited for the GPU. kernel-wait: asked for, "
		 "under 30 µs. other: asked for, longer, or not known. artefact: CUPTI's doing.",
	.of_work = true,
	.build = build_gap,
};

/* ---- stream_sum ---- */

static void add_kind(struct row *r, const struct work *w)
{
	int64_t *kinds[] = { [RECORD_WORK_KERNEL] = &r->work.kernels,
			     [RECORD_WORK_COPY] = &r->work.copies,
			     [RECORD_WORK_SET] = &r->work.sets };

	(*kinds[w->kind])++;
}

/* Union of what ran on the stream: works of a graph may overlap on one. */
static void add_busy(const struct session *s, struct row *r, const struct work *w, int64_t *until)
{
	int64_t begin = w->begin > *until ? w->begin : *until;

	if (w->end <= begin)
		return;
	r->work.busy += work_covered_ns(s, s->streams[w->stream].process, begin, w->end);
	*until = w->end;
}

static int stream_row(struct report_ctx *ctx, const struct session_stream *st)
{
	const struct session *s = ctx->s;
	int64_t until = INT64_MIN, waited = 0;
	struct row *r;
	int err = st->works ? rows_add(&ctx->rows, &r) : 0;

	if (err || !st->works)
		return err;
	row_init_work(r);
	fill_device(s, st->device, r);
	r->pid = s->processes[st->process].pid;
	r->work.context = st->context;
	r->work.stream = st->id;
	r->stream = (int64_t)st->handle;
	r->work.busy = 0;
	r->work.depth_max = NA;
	r->calls = 0;
	for (uint32_t w = st->first_work; w < st->first_work + st->works; w++) {
		const struct work_times *t = &ctx->times[w];

		add_busy(s, r, &s->works[w], &until);
		if (s->works[w].earlier)
			continue;
		add_kind(r, &s->works[w]);
		r->calls++;
		r->work.unmatched += s->works[w].call == CALL_NONE;
		if (s->works[w].call == CALL_NONE)
			continue;
		if (t->depth > r->work.depth_max)
			r->work.depth_max = t->depth;
		r->work.uncontended += !!(t->flags & WORK_UNCONTENDED);
		waited += t->queue_delay != NA_TIME && t->queue_delay > 0;
	}
	r->work.queued = waited;
	r->begin = s->works[st->first_work].begin - s->begin;
	r->end = until - s->begin;
	r->work.window = process_window(s, st->process);
	r->work.busy_share = share(r->work.busy, r->work.window);
	return 0;
}

static int build_stream(struct report_ctx *ctx)
{
	const struct session *s = ctx->s;
	int64_t listed = 0;
	int err = works_prepare(ctx);

	for (size_t i = 0; i < s->streams_count && !err; i++)
		err = stream_row(ctx, &s->streams[i]);
	for (size_t i = 0; i < ctx->rows.count; i++)
		if (__builtin_add_overflow(listed, ctx->rows.items[i].work.busy, &listed))
			listed = INT64_MAX;
	for (size_t i = 0; i < ctx->rows.count; i++)
		ctx->rows.items[i].listed_share = share(ctx->rows.items[i].work.busy, listed);
	return err;
}

static const struct column columns_stream[] = {
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),
	COLUMN("busy_pct", "% window", INT, PERCENT, work.busy_share),
	COLUMN("busy_ns", "Busy", INT, NS, work.busy),
	COLUMN("works", "Works", INT, NONE, calls),
	COLUMN("kernels", "Kernels", INT, NONE, work.kernels),
	COLUMN("copies", "Copies", INT, NONE, work.copies),
	COLUMN("sets", "Sets", INT, NONE, work.sets),
	COLUMN("depth_max", "Depth, max", INT, NONE, work.depth_max),
	COLUMN_OPTIONAL("queued", "Queued", INT, NONE, work.queued),
	COLUMN_OPTIONAL("uncontended", "Uncontended", INT, NONE, work.uncontended),
	COLUMN_OPTIONAL("unmatched", "Unmatched", INT, NONE, work.unmatched),
	COLUMN_OPTIONAL("begin_ns", "Begun at", INT, NS, begin),
	COLUMN_OPTIONAL("end_ns", "Ended at", INT, NS, end),
	COLUMN_OPTIONAL("window_ns", "Window", INT, NS, work.window),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN_OPTIONAL("device", "Device", INT, ID, work.device),
	COLUMN_OPTIONAL("context", "Context", INT, ID, work.context),
	COLUMN("stream", "Stream", INT, ID, work.stream),
	COLUMN_OPTIONAL("handle", "Handle", HEX, NONE, stream),
	COLUMN_OPTIONAL("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_stream = {
	.about = { "stream_sum", NULL, "each stream: how busy, how much waited on it" },
	.columns = columns_stream,
	.sort = "-busy_ns",
	.bases = "% listed: of the sum of the streams, which may overlap. % window: of the time "
		 "that the sidecar recorded the process. Queued: works that waited for earlier "
		 "ones. Depth: launches that waited when one more was made.",
	.of_work = true,
	.build = build_stream,
};
