// SPDX-License-Identifier: BSD-2-Clause
/* Rows out of what ran on the GPU: exact percentiles, like those of calls. */
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "model/grow.h"
#include "model/map.h"
#include "report/row.h"

struct work_key {
	uint64_t words[GROUP_WORDS];
};

struct grouper {
	struct report_ctx *ctx;
	const struct work_grouping *g;
	struct work_key *keys; /* as rows */
	size_t keys_cap;
	struct map index; /* (hash of the key, attempt) to row */
	uint32_t last;	  /* row: most works are like the one before */
};

static bool has_key(const struct grouper *gr, uint32_t row, const struct work_key *key)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): there is a row, so keys */
	return !memcmp(&gr->keys[row], key, sizeof(*key));
}

static int row_add(struct grouper *gr, uint32_t work, const struct work_key *key, uint32_t *out)
{
	struct rows *rows = &gr->ctx->rows;
	struct row *r;
	int err = GROW(gr->keys, gr->keys_cap, rows->count + 1);

	if (!err)
		err = rows_add(rows, &r);
	if (err)
		return err;
	row_init_work(r);
	*out = (uint32_t)rows->count - 1;
	gr->keys[*out] = *key;
	gr->g->fill(gr->ctx, work, r);
	return 0;
}

static int row_find(struct grouper *gr, uint32_t work, const struct work_key *key, uint32_t *out)
{
	uint64_t hash, attempt;
	int err;

	*out = gr->last;
	if (*out < gr->ctx->rows.count && has_key(gr, *out, key))
		return 0;
	hash = map_hash_words(key->words, GROUP_WORDS);
	for (attempt = 0;; attempt++) {
		*out = map_get(&gr->index, hash, attempt);
		if (*out == MAP_NONE)
			break;
		gr->last = *out;
		if (has_key(gr, *out, key))
			return 0;
	}
	err = row_add(gr, work, key, out);
	gr->last = *out;
	return err ? err : map_put(&gr->index, hash, attempt, *out);
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return a == NA ? b : __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t duration(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->s->works[work].end - ctx->s->works[work].begin;
}

static void put_times(struct row *r, const struct row *stats)
{
	r->avg = stats->avg;
	r->p50 = stats->p50;
	r->p90 = stats->p90;
	r->p99 = stats->p99;
	r->stddev = stats->stddev;
}

static void take(struct row *r, int64_t ns)
{
	r->calls++;
	r->total = plus(r->total, ns);
	r->min = r->min == NA || ns < r->min ? ns : r->min;
	r->max = r->max == NA || ns > r->max ? ns : r->max;
}

static int first_pass(struct grouper *gr, uint32_t *row_of)
{
	const struct session *s = gr->ctx->s;
	int err = 0;

	for (uint32_t w = 0; w < s->works_count && !err; w++) {
		struct work_key key = { { 0 } };

		row_of[w] = MAP_NONE;
		if (s->works[w].earlier || !gr->g->key(gr->ctx, w, key.words))
			continue;
		err = row_find(gr, w, &key, &row_of[w]);
		if (err)
			break;
		take(&gr->ctx->rows.items[row_of[w]], duration(gr->ctx, w));
		if (gr->g->add)
			gr->g->add(gr->ctx, w, &gr->ctx->rows.items[row_of[w]]);
	}
	return err;
}

static void fill_shares(struct rows *rows)
{
	int64_t listed = 0;

	for (size_t i = 0; i < rows->count; i++)
		listed = plus(listed, rows->items[i].total);
	for (size_t i = 0; i < rows->count; i++) {
		struct row *r = &rows->items[i];

		r->listed_share = share(r->total, listed);
		r->work.window_share = share(r->total, r->work.window);
		r->work.short_share = share(r->work.shorts, r->calls);
	}
}

int group_works(struct report_ctx *ctx, const struct work_grouping *g, uint32_t **row_of)
{
	struct grouper gr = { .ctx = ctx, .g = g };
	uint32_t *rows = calloc(ctx->s->works_count + 1, sizeof(*rows));
	int err = rows ? first_pass(&gr, rows) : -ENOMEM;

	if (!err)
		err = spread_works(ctx, rows, duration, put_times);
	if (!err)
		fill_shares(&ctx->rows);
	free(gr.keys);
	map_free(&gr.index);
	if (err || !row_of)
		free(rows);
	else
		*row_of = rows;
	return err;
}

/* ---- statistics ---- */

static void spread_row(const struct report_ctx *ctx, size_t row, int64_t *values, size_t count,
		       void (*put)(struct row *r, const struct row *stats))
{
	struct row stats;

	row_init(&stats);
	stats.timed = count;
	for (size_t i = 0; i < count; i++) {
		stats.total = plus(stats.total, values[i]);
		stats.min = stats.min == NA || values[i] < stats.min ? values[i] : stats.min;
		stats.max = stats.max == NA || values[i] > stats.max ? values[i] : stats.max;
	}
	stats_fill(&stats, values, count);
	put(&ctx->rows.items[row], &stats);
}

int spread_works(struct report_ctx *ctx, const uint32_t *row_of,
		 int64_t (*value)(const struct report_ctx *ctx, uint32_t work),
		 void (*put)(struct row *r, const struct row *stats))
{
	const struct session *s = ctx->s;
	size_t *at = calloc(ctx->rows.count + 2, sizeof(*at));
	int64_t *values = malloc((s->works_count + 1) * sizeof(*values));
	int err = at && values ? 0 : -ENOMEM;

	for (uint32_t w = 0; w < s->works_count && !err; w++)
		if (row_of[w] != MAP_NONE && value(ctx, w) != NA)
			at[row_of[w] + 2]++;
	for (size_t i = 2; i < ctx->rows.count + 2 && !err; i++)
		at[i] += at[i - 1];
	for (uint32_t w = 0; w < s->works_count && !err; w++)
		if (row_of[w] != MAP_NONE && value(ctx, w) != NA)
			values[at[row_of[w] + 1]++] = value(ctx, w);
	for (size_t i = 0; i < ctx->rows.count && !err; i++)
		spread_row(ctx, i, values + at[i], at[i + 1] - at[i], put);
	free(at);
	free(values);
	return err;
}

void spread_put(struct row_spread *out, const struct row *stats)
{
	*out = (struct row_spread){ stats->avg, stats->p50, stats->min, stats->max,
				    stats->stddev };
}

int works_prepare(struct report_ctx *ctx)
{
	return ctx->times ? 0 : work_times(ctx->s, &ctx->times);
}

/* ---- what several views say ---- */

int64_t process_window(const struct session *s, uint32_t process)
{
	return work_covered_ns(s, process, INT64_MIN, INT64_MAX);
}

int64_t device_window(const struct session *s, uint32_t physical)
{
	struct spans covered;
	int64_t ns;

	if (device_covered(s, physical, &covered))
		return NA;
	ns = spans_within(&covered, INT64_MIN, INT64_MAX);
	spans_free(&covered);
	return ns;
}

int64_t gpu_index(const struct session *s, uint32_t device)
{
	uint32_t gpu = s->devices[device].gpu;

	return gpu == UINT32_MAX || s->gpus[gpu].index == UINT32_MAX ? NA : s->gpus[gpu].index;
}

const char *memory_word(unsigned memory)
{
	static const char *const words[] = {
		[RECORD_MEMORY_PAGEABLE] = "pageable", [RECORD_MEMORY_PINNED] = "pinned",
		[RECORD_MEMORY_DEVICE] = "device",     [RECORD_MEMORY_ARRAY] = "array",
		[RECORD_MEMORY_MANAGED] = "managed",
		[RECORD_MEMORY_DEVICE_STATIC] = "device static",
		[RECORD_MEMORY_MANAGED_STATIC] = "managed static",
	};

	return memory < sizeof(words) / sizeof(words[0]) ? words[memory] : NULL;
}

const char *work_operation(const struct work *w)
{
	static const char *const words[] = {
		[RECORD_COPY_HTOD] = "HtoD", [RECORD_COPY_DTOH] = "DtoH",
		[RECORD_COPY_HTOA] = "HtoA", [RECORD_COPY_ATOH] = "AtoH",
		[RECORD_COPY_ATOA] = "AtoA", [RECORD_COPY_ATOD] = "AtoD",
		[RECORD_COPY_DTOA] = "DtoA", [RECORD_COPY_DTOD] = "DtoD",
		[RECORD_COPY_HTOH] = "HtoH", [RECORD_COPY_PTOP] = "PtoP",
	};

	if (w->kind == RECORD_WORK_SET)
		return "set";
	if (w->direction < sizeof(words) / sizeof(words[0]) && words[w->direction])
		return words[w->direction];
	return "copy";
}

int64_t work_throughput(uint64_t bytes, int64_t ns)
{
	unsigned __int128 v = (unsigned __int128)bytes * 1000;

	if (ns <= 0 || !bytes)
		return NA;
	v = (v + (uint64_t)ns / 2) / (uint64_t)ns;
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}
