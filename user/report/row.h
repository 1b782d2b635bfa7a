/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A view is a list of columns over one kind of row. Sorting, filtering and
 * every output format go by the list; none knows a view.
 */
#ifndef GBPF_REPORT_ROW_H
#define GBPF_REPORT_ROW_H

#include "model/session.h"
#include "report/report.h"

#define NA INT64_MIN /* not known; shown as n/a, null or an empty field */

/* Of a GPU; power in mW, energy in mJ. */
struct row_gpu {
	const char *uuid, *pci, *mig_parent, *throttled_by;
	int64_t index, samples, sm_min, sm_p50, sm_max, memory_clock_p50, power_avg, power_max,
		power_limit, temperature_max, throttled, utilisation, memory_utilisation,
		memory_used, memory_total, gpm[4], energy, processes, xids, xid_last;
};

/* Of one quantity, as nsys gives them. */
struct row_spread {
	int64_t avg, p50, min, max, stddev;
};

/* Of work on a GPU. */
struct row_work {
	const char *class, *source, *target, *pageable, *operation, *category, *uuid, *flags;
	int64_t device, gpu, context, stream, correlation, registers, smem_static, smem_dynamic,
		occupancy, blocks_per_sm, short_share, throughput, window, window_share, busy,
		busy_share, idle_share, depth_p50, depth_max, latency_p50, uncontended, queued,
		back_pressured, graph, node, kernels, copies, sets, launch_to_start, queue_time,
		depth, unmatched, shorts, shape; /* shape: the last one met */
	struct row_spread total, api, queue, kernel, size;
};

/* Of what the calls of a process allocated; numbers and bytes, all known. */
struct row_memory {
	int64_t allocations, frees, failed, before, twice, allocated, live, peak, host_live;
};

/* Times in ns, sizes in bytes, shares in 1/1000 %, rates in 1/1000 per second. */
struct row {
	const char *name, *kernel, *comm, *cmdline, *container, *exe, *library, *kind, *direction,
		*state, *evidence, *notes; /* the session's or constant; NULL: not known */
	int64_t pid, tid, ppid, uid, ns_pid, ns_tid;
	int64_t calls, waits, errors, launches, graph_launches, threads, processes;
	int64_t total, self, avg, min, p50, p90, p99, max, stddev;
	int64_t first, first_at, ratio; /* ratio in 1/1000 */
	int64_t listed_share, wall_share, rate;
	int64_t bytes, bytes_avg, bytes_min, bytes_max, sized; /* sized: calls of known size */
	int64_t grid[3], block[3]; /* [0] is NA where not known */
	int64_t stream, object;
	int64_t smem;
	int64_t wall, dispatch, waiting, elsewhere, dispatch_share, waiting_share, elsewhere_share;
	int64_t begin, end, open, ago, exit_code;
	int64_t lost;
	const char *top_api, *top_kernel, *thread;
	int64_t top_api_share, top_kernel_launches, open_calls;
	/* of the statistics: how many calls had a time, and how many a time of their own */
	uint64_t timed, samples;
	uint64_t entries, entered; /* of calls[]: all, and those without a return probe */
	int64_t first_call; /* index into calls: where the group was met first */
	union { /* views are of the one or the other */
		struct row_gpu gpu;
		struct row_work work;
		struct row_memory memory;
	};
	int64_t gpu_busy_share, gpu_watched, gap_share; /* of the summary */
	const char *gap;
};

void row_init(struct row *r); /* nothing is known */
void row_init_work(struct row *r); /* nor of work; gpu is not to be used */

enum unit {
	UNIT_NONE,
	UNIT_ID, /* a number that names something: no thousands separators */
	UNIT_NS,
	UNIT_BYTES,
	UNIT_PERCENT, /* stored in 1/1000 % */
	UNIT_MILLI,   /* stored in 1/1000 of what the header says */
};

enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_DIM3, COLUMN_HEX };

struct column {
	const char *key;   /* JSON key and name in --sort and --filter; ends with its unit */
	const char *title; /* header of tables, the unit follows in parentheses */
	enum column_type type;
	enum unit unit;
	size_t offset; /* in struct row */
	size_t scale;  /* the field that picks the time unit in a table: its own, or a sibling's */
	bool optional; /* tables leave it out first when the terminal is narrow */
};

struct rows {
	struct row *items;
	size_t count, cap;
};

struct filter;
struct work_times;

struct report_ctx {
	const struct session *s;
	const struct report_options *o;
	struct rows rows;
	const struct filter *filter; /* NULL: keeps all */
	bool in_order; /* the view's own order is asked for: rows after --top are not needed */
	bool batched;  /* the view fills rows a batch at a time; see rows_next() */
	void *order;   /* of a batched view, what it goes along; freed with the context */
	size_t at, printed; /* where it is in that; rows of earlier batches */
	struct work_times *times; /* of works, for views of them; see works_prepare() */
};

struct view {
	struct report_view about;
	const struct column *columns; /* ends with .key = NULL */
	const char *sort;	      /* key, with its sign */
	const char *bases;	      /* under tables: what shares and rates are of; or NULL */
	bool of_work; /* says n/a, and why, where there is no GPU time */
	/* Has so many rows that programs get them in batches, if they want them in its order. */
	bool batches;
	int (*build)(struct report_ctx *c); /* fills c->rows; 0 or -ENOMEM */
	/* Where a table says less than prose: prints the rows for people. NULL: a table. */
	void (*print)(const struct report_ctx *c, FILE *out);
};

extern const struct view view_summary, view_api, view_launch, view_sync, view_copy, view_thread,
	view_cold, view_open, view_proc, view_gpu, view_kern, view_kern_gb, view_kern_exec,
	view_memory, view_api_gpu, view_trace, view_gap, view_stream,
	view_step, view_variation, view_mem, view_leak, view_site;

const struct view *view_find(const char *name); /* by name or alias; NULL if there is none */
const struct column *column_find(const struct view *v, const char *key);

int64_t column_int(const struct column *c, const struct row *r); /* INT and HEX */
const char *column_text(const struct column *c, const struct row *r); /* TEXT; NULL: n/a */
const int64_t *column_dim3(const struct column *c, const struct row *r);
bool column_known(const struct column *c, const struct row *r);

int rows_add(struct rows *rows, struct row **out); /* initialised; 0 or -ENOMEM */
/* Keeps the first top rows only, 0: all; equal ones keep their order. 0 or -ENOMEM. */
int rows_sort(struct rows *rows, const struct column *by, bool descending, size_t top);

#define COLUMN_OF(key_, title_, type_, unit_, field_, scale_, optional_)                           \
	{                                                                                          \
		.key = (key_), .title = (title_), .type = COLUMN_##type_, .unit = UNIT_##unit_,    \
		.offset = offsetof(struct row, field_), .scale = offsetof(struct row, scale_),     \
		.optional = (optional_)                                                            \
	}
#define COLUMN(key_, title_, type_, unit_, field_)                                                 \
	COLUMN_OF(key_, title_, type_, unit_, field_, field_, false)
#define COLUMN_OPTIONAL(key_, title_, type_, unit_, field_)                                        \
	COLUMN_OF(key_, title_, type_, unit_, field_, field_, true)
/* Times that are shown in the unit which fits the field scale_. */
#define TIME(key_, title_, field_, scale_) COLUMN_OF(key_, title_, INT, NS, field_, scale_, false)
#define TIME_OPTIONAL(key_, title_, field_, scale_)                                                \
	COLUMN_OF(key_, title_, INT, NS, field_, scale_, true)

/* ---- measures.c: what several views need ---- */

/* ns of [from, to) inside the windows. */
int64_t wall_in_windows(const struct session *s, int64_t from, int64_t to);
int64_t process_wall(const struct session *s, const struct session_process *p);

/* part of whole in 1/1000 %, NA if whole is 0 or either is NA. */
int64_t share(int64_t part, int64_t whole);
int64_t rate(int64_t count, int64_t ns); /* per second, in 1/1000 */

static inline bool is_launch(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & API_IS_LAUNCH; /* kernels, graphs, host functions */
}

static inline bool is_kernel_launch(const struct session *s, const struct call *c)
{
	return c->kernel != UINT32_MAX || s->apis[c->api].sorts & API_IS_KERNEL_LAUNCH;
}

static inline bool is_graph_launch(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & API_IS_GRAPH_LAUNCH;
}

static inline bool is_wait(const struct session *s, const struct call *c)
{
	return c->flags & CALL_POLL || s->apis[c->api].sorts & API_IS_WAIT;
}

static inline bool is_copy(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & API_IS_COPY;
}

/* Is one of the calls around c, in its thread, of that sort too? */
bool is_inside(const struct session *s, const struct call *c,
	       bool (*sort)(const struct session *s, const struct call *c));

const char *copy_direction(const struct session *s, const struct call *c); /* "HtoD", … */
const char *kernel_name(const struct session *s, uint32_t kernel, enum report_names style);

struct busy {
	int64_t dispatch, waiting; /* ns of a thread's own time */
	uint64_t calls, launches, graph_launches, errors;
	uint64_t entries, entered; /* of calls[]: all, and those without a return probe */
	bool unknown; /* there were calls, and none whose duration is known */
};

/* Is told of each call, and whether it is a launch outside other launches; 0 or -ENOMEM. */
struct visitor {
	int (*call)(struct visitor *v, const struct call *c, bool launch);
};

int64_t busy_elsewhere(const struct busy *b, int64_t wall); /* ns of wall that are left */
/* v may be NULL; the first error that it returned, or 0. */
int thread_busy(const struct session *s, const struct session_thread *t, struct visitor *v,
		struct busy *out);

/* How many returned an error: NA where there are entries, and none of them says. */
static inline int64_t known_errors(int64_t errors, uint64_t entries, uint64_t entered)
{
	return entered && entered == entries ? NA : errors;
}

/* How many calls this entry stands for. */
static inline uint64_t call_count(const struct session *s, const struct call *c)
{
	return c->flags & CALL_POLL ? s->polls[c->args].count : 1;
}

/*
 * The time of c that a statistic of single calls takes, -1 if there is none: of
 * several queries only sums are known.
 */
static inline int64_t call_single(const struct session *s, const struct call *c)
{
	int64_t time = call_duration(c);

	if (time < 0 || !(c->flags & CALL_POLL))
		return time;
	return s->polls[c->args].count == 1 ? s->polls[c->args].inside : -1;
}

/* ---- group.c: rows from calls ---- */

#define GROUP_WORDS 5

struct grouping {
	/* Does the call belong to the view, and to which row? */
	bool (*key)(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS]);
	void (*fill)(const struct report_ctx *ctx, const struct call *c, struct row *r); /* once */
	/* For each call; or NULL. */
	void (*add)(const struct report_ctx *ctx, const struct call *c, struct row *r);
	/* Calls whose time stays out of the statistics; NULL: none. */
	bool (*leave_out)(const struct call *c);
	bool by_args; /* calls of one row rather share arguments than their API */
	bool span; /* a poll is one wait of its whole span, and not its queries */
	bool sums; /* no percentiles, no deviation */
};

/* Into ctx->rows, empty before: rows with calls, errors, times, shares and rates; 0 or -ENOMEM. */
int group_calls(struct report_ctx *ctx, const struct grouping *g);

/* What view_calls.c and others group by. */
bool key_api(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS]);
bool key_kernel(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS]);
void fill_api(const struct report_ctx *ctx, const struct call *c, struct row *r);
void fill_process(const struct session_process *p, struct row *r);

int summary_build(struct report_ctx *c); /* summary.c; 0 or -ENOMEM */
int gpu_rows(const struct session *s, struct rows *rows); /* view_gpu.c: one a GPU; 0 or -ENOMEM */

/* ---- work_group.c: rows from works ---- */

struct work_grouping {
	/* Does the work belong to the view, and to which row? */
	bool (*key)(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS]);
	void (*fill)(const struct report_ctx *ctx, uint32_t work, struct row *r); /* once */
	/* For each work; or NULL. */
	void (*add)(const struct report_ctx *ctx, uint32_t work, struct row *r);
};

/*
 * Into ctx->rows, empty before: works, times on the GPU, shares. *row_of, of each work
 * (UINT32_MAX: in none), is the caller's to free; row_of may be NULL. 0 or -ENOMEM.
 */
int group_works(struct report_ctx *ctx, const struct work_grouping *g, uint32_t **row_of);

/* Statistics of another quantity of the same works; NA is left out. 0 or -ENOMEM. */
int spread_works(struct report_ctx *ctx, const uint32_t *row_of,
		 int64_t (*value)(const struct report_ctx *ctx, uint32_t work),
		 void (*put)(struct row *r, const struct row *stats));
void spread_put(struct row_spread *out, const struct row *stats);

int works_prepare(struct report_ctx *ctx); /* fills ctx->times, once; 0 or -ENOMEM */
/* ns that the sidecar recorded of a process, and of a physical device; NA: no memory. */
int64_t process_window(const struct session *s, uint32_t process);
int64_t device_window(const struct session *s, uint32_t physical);
int64_t gpu_index(const struct session *s, uint32_t device); /* NVML's; NA */
const char *work_operation(const struct work *w); /* of copies and sets */
const char *memory_word(unsigned memory);	  /* "pageable", …; NULL: not known */
int64_t work_throughput(uint64_t bytes, int64_t ns); /* 1/1000 GB/s; NA */

/* Each costs a look at everything, and no machine has as many. */
#define MOST_DEVICES 1024

/* ---- gpu_summary.c ---- */
int gpu_summary_build(struct report_ctx *c, struct row *r); /* 0 or -ENOMEM */
void gpu_summary_print(const struct report_ctx *c, FILE *out, const char *label_start,
		       const char *label_end);

/* ---- stats.c ---- */

/*
 * Fills avg (of total over timed), p50, p90, p99 (nearest rank) and stddev
 * (sample, n - 1) of r from its individual times, which are reordered.
 */
void stats_fill(struct row *r, int64_t *times, size_t count);

size_t stats_rank(size_t count, unsigned percent); /* nearest rank, 0-based; count > 0 */

/* ---- output ---- */

void print_table(const struct report_ctx *c, const struct view *v, FILE *out);
void print_separated(struct report_ctx *c, const struct view *v, char separator, FILE *out);
void print_json(struct report_ctx *c, const struct view *v, FILE *out);
/* The next batch into c->rows; false: there is none. Needs no memory that is not there. */
bool rows_next(struct report_ctx *c, const struct view *v);
/* "Total (ms)" into buf. */
const char *column_header(const struct column *c, enum report_timeunit unit, char *buf,
			  size_t size);

/* ---- quality.c ---- */
struct json;
void quality_json(const struct session *s, struct json *j);
void quality_lines(const struct report_ctx *c, FILE *out);
void quality_warnings(const struct report_ctx *c, FILE *out);
void quality_gpu_json(const struct session *s, struct json *j); /* quality_gpu.c */
void quality_gpu_lines(const struct report_ctx *c, FILE *out);
void quality_no_work(const struct report_ctx *c, FILE *out); /* "n/a: …", process by process */
uint64_t quality_lost(const struct session *s);

#endif
