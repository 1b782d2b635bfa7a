/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace files of a session for other programs: what is exported, in which order, how
 * its fields are called, and where it goes. docs/traces.md says what users see.
 *
 * A writer reads the session and the options, prints to a file that appears under its
 * name only when whole, and keeps little of its own: session and works may be large.
 */
#ifndef GBPF_EXPORT_TRACE_H
#define GBPF_EXPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/gpu.h"
#include "model/session.h"

struct export_file;

struct export_options {
	int64_t from, to;      /* CLOCK_MONOTONIC ns, half-open; see export_wants() */
	const bool *processes; /* by index in the session; NULL: every one */
	bool compat;	       /* perfetto: plain track events, for older viewers */
	/* See export_progress(): how far it is, 0 to 1; false: stop. NULL: nobody asks. */
	bool (*progress)(void *ctx, double share);
	void *progress_ctx;
};
#define EXPORT_ALL {.from = INT64_MIN, .to = INT64_MAX}

struct export_writer {
	const char *name;	    /* of --format */
	const char *const *endings; /* ".pftrace", …, NULL; the first is what OUT gets */
	const char *what;	    /* for --help: one line */
	bool one_process; /* a file holds one process: several are written to a file each */
	bool own_file;	  /* opens export_path() itself; else it prints to export_stream() */
	bool quick;	  /* to be compressed for speed: its text is large and alike */
	/*
	 * 0 or -errno, with a sentence in why where the errno alone would not say enough.
	 * What cannot be printed need not be noticed: closing tells.
	 */
	int (*write)(const struct session *s, const struct export_options *o,
		     struct export_file *f, char *why, size_t size);
};

/*
 * To be called every few thousand items by writers: done of all. 0, or -EINTR: whoever
 * asked does not want the file any more.
 */
int export_progress(const struct export_options *o, uint64_t done, uint64_t all);

extern const struct export_writer export_perfetto, export_kineto, export_sqlite, export_csv;
const struct export_writer *export_writer_get(size_t i);		/* NULL after the last */
const struct export_writer *export_writer_named(const char *name); /* NULL: none */
/*
 * By the ending of a file's name, the longest that fits; ".gz" may follow those that
 * print to a stream. NULL: none.
 */
const struct export_writer *export_writer_of(const char *path);
size_t export_stem(const char *path); /* bytes of it without that ending */

/* ---- trace_file.c: the file ---- */

/*
 * Makes a new file beside path, under another name. What goes through its stream is
 * compressed if path ends in ".gz" (quick as in struct export_writer). -errno of
 * open(2); -EINVAL: path is there and not a regular file.
 */
int export_open(struct export_file **out, const char *path, bool quick);
const char *export_path(const struct export_file *f); /* what it is called until it is whole */
/* Buffered, for one thread; its own errors are kept for export_commit(). */
FILE *export_stream(struct export_file *f);
/* Everything on the disk, and under its name. Returns 0 or the first failure. Once. */
int export_commit(struct export_file *f);
uint64_t export_size(const struct export_file *f); /* bytes, once committed */
/* Removes what was not committed. NULL is accepted. */
void export_close(struct export_file *f);

/*
 * src as valid UTF-8 in buf, cut to size: what is not becomes U+FFFD. Returns the bytes
 * without the NUL. src NULL is "".
 */
size_t export_text(const char *src, char *buf, size_t size);

/* ---- trace_select.c: what is exported, and in which order ---- */

/*
 * What touches [from, to) is wanted, whole: a call may begin before. Without duration:
 * what lies in it. Calls that did not return last until the end of the trace.
 */
bool export_wants(const struct export_options *o, int64_t begin, int64_t end);
bool export_wants_process(const struct export_options *o, uint32_t process);
bool export_wants_call(const struct session *s, const struct export_options *o, uint32_t call);
bool export_wants_work(const struct session *s, const struct export_options *o, uint32_t work);

/* What is known of a call's end. */
enum export_end {
	EXPORT_END_KNOWN = 0,
	EXPORT_END_OPEN,	/* had not returned when the trace ended: end is that time */
	EXPORT_END_LOST,	/* end is begin: of these only one instant is known */
	EXPORT_BEGIN_LOST,
	EXPORT_END_UNPROBED,	/* no return probe */
};
/* Into *end, ns, never before begin. */
enum export_end export_call_end(const struct session *s, const struct call *c, int64_t *end);
/* NULL: EXPORT_END_KNOWN; else a word for it. */
const char *export_end_word(enum export_end end);

/* Exactly the arrows that are drawn: the work's call, if both are wanted; else CALL_NONE. */
uint32_t export_cause(const struct session *s, const struct export_options *o, uint32_t work);

/* A call or a piece of work; of one instant, the outer call first, calls before works. */
struct export_item {
	bool is_work;
	uint32_t index; /* into calls or works */
	int64_t begin, end;
	enum export_end how; /* of a call */
};

/*
 * Everything that is wanted, ordered by begin: a merge of the threads and streams, with
 * memory for one entry each.
 */
struct export_walk;
int export_walk_new(struct export_walk **out, const struct session *s,
		    const struct export_options *o); /* -ENOMEM */
bool export_walk_next(struct export_walk *w, struct export_item *item); /* false: the end */
void export_walk_free(struct export_walk *w); /* NULL is accepted */

/* What there is of it, for an estimate of progress and for people. */
struct export_counts {
	uint64_t calls, works, arrows; /* arrows: works with an export_cause() */
	uint32_t processes;	       /* with any of these */
};
void export_count(const struct session *s, const struct export_options *o,
		  struct export_counts *out);

/*
 * Rows for slices of one track that may overlap without nesting: a slice goes to the
 * first row on which it nests or follows. begin must not decrease from one to the next.
 */
struct export_lanes;
int export_lanes_new(struct export_lanes **out, bool nest); /* nest: one inside another is fine */
#define EXPORT_LANES 256
/*
 * The row, from 0; EXPORT_LANES: there is no further one; or -ENOMEM. Slices that ended
 * by begin are closed. what is the caller's, for export_lanes_close().
 */
int export_lanes_add(struct export_lanes *l, int64_t begin, int64_t end, uint32_t what);
int export_lanes_place(struct export_lanes *l, int64_t begin, int64_t end);
struct export_slice {
	int64_t end;
	uint32_t what;
	int row;
};
/* Closes the slice that ends first, if it does so by upto, the inner one before the outer. */
bool export_lanes_close(struct export_lanes *l, int64_t upto, struct export_slice *out);
void export_lanes_free(struct export_lanes *l); /* NULL is accepted */

/* ---- trace_derive.c: what is worked out while walking along one stream ---- */

/*
 * The times of struct work_times that need no look at the whole: launch_to_start,
 * queue_time, queue_delay, total; NA_TIME where there is no cause. Zeroed at first; the
 * works of a stream one after the other.
 */
struct export_stream_state {
	bool any;
	int64_t free_at; /* F of gpu.h */
};
void export_work_times(const struct session *s, struct export_stream_state *st, uint32_t work,
		       struct work_times *out);

/* ---- trace_fields.c: every exported field, described once ---- */

enum export_scope {
	EXPORT_OF_CALL = 1u << 0,
	EXPORT_OF_KERNEL = 1u << 1,
	EXPORT_OF_COPY = 1u << 2,
	EXPORT_OF_SET = 1u << 3,
	EXPORT_OF_COUNTER = 1u << 4,
	EXPORT_OF_MARK = 1u << 5,	/* instants, and windows */
};

struct export_field {
	const char *name;   /* in csv, and of an argument in perfetto */
	const char *kineto; /* as an argument there; NULL: not there */
	const char *sqlite; /* the column there; NULL: not there */
	const char *unit;   /* "" none */
	const char *meaning;
	unsigned scopes; /* enum export_scope */
};

enum export_field_id {
	FIELD_KIND, FIELD_ID, FIELD_CAUSE, FIELD_PID, FIELD_TID, FIELD_PROCESS, FIELD_THREAD,
	FIELD_BEGIN, FIELD_DURATION, FIELD_NAME, FIELD_CATEGORY, FIELD_LIBRARY, FIELD_PARENT,
	FIELD_STATE, FIELD_RESULT, FIELD_ERROR, FIELD_COLD, FIELD_POLLS, FIELD_POLL_INSIDE,
	FIELD_HANDLE, FIELD_STREAM_HANDLE, FIELD_OBJECT, FIELD_POINTER,
	FIELD_KERNEL, FIELD_MANGLED, FIELD_DEVICE, FIELD_CONTEXT, FIELD_STREAM,
	FIELD_CORRELATION, FIELD_GRID, FIELD_BLOCK, FIELD_REGISTERS, FIELD_SMEM,
	FIELD_SMEM_STATIC, FIELD_SMEM_DYNAMIC, FIELD_LOCAL, FIELD_THREADS, FIELD_WAVES,
	FIELD_OCCUPANCY, FIELD_LIMITER, FIELD_LIMIT_BLOCKS, FIELD_LIMIT_REGISTERS,
	FIELD_LIMIT_SMEM, FIELD_LIMIT_WARPS, FIELD_LIMIT_BARRIERS,
	FIELD_BLOCKS_PER_SM, FIELD_WARPS_PER_SM,
	FIELD_LAUNCH_TO_START, FIELD_QUEUE_TIME, FIELD_QUEUE_DELAY,
	FIELD_GRAPH, FIELD_GRAPH_NODE, FIELD_PRIORITY, FIELD_CHANNEL, FIELD_CHANNEL_TYPE,
	FIELD_BYTES, FIELD_BANDWIDTH, FIELD_DIRECTION, FIELD_SOURCE, FIELD_TARGET, FIELD_PEER,
	FIELD_CBID, FIELD_COUNT, FIELD_REASON,
	FIELDS,
};
const struct export_field *export_field(enum export_field_id id);

/* Names for what records number; never NULL. "HtoD", "Device", "Host -> Device" … */
const char *export_direction_word(unsigned direction); /* "HtoD"; "unknown" */
const char *export_memory_word(unsigned memory);       /* "Pageable", …; "Unknown" */
/* enum occupancy_limit as words, joined by ", "; into buf. */
const char *export_limiter_words(unsigned limiting, char *buf, size_t size);

#endif
