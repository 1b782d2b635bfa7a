/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the kineto writer share. Internal to export/. */
#ifndef GBPF_EXPORT_KINETO_H
#define GBPF_EXPORT_KINETO_H

#include <string.h>

#include "export/trace.h"
#include "export/trace_ids.h"
#include "model/steps.h"

#define KINETO_BUFFER (64 * 1024)
#define KINETO_LANE_IDS 10000000 /* rows for what overlaps: tid plus a multiple of it */
#define KINETO_GPU_SORT 5000000

/* Rows of one thread or stream. */
struct kineto_row {
	uint32_t pid, tid;  /* as written: a device's number and a stream's, or of the thread */
	uint32_t thread;    /* index into threads; UINT32_MAX: a stream */
	int lanes_used;
	struct export_lanes *lanes;
};

struct kineto {
	const struct session *s;
	const struct export_options *o;
	FILE *out;
	char name[256];	   /* of the file */
	char *buf;	   /* KINETO_BUFFER */
	size_t used;
	bool comma;	   /* an event was written */
	uint32_t process;  /* index; UINT32_MAX: there is none */
	uint32_t pid;	   /* as written */
	uint32_t id_shift; /* of its pid and tids in a merged file */
	int64_t offset;	   /* of CLOCK_REALTIME to CLOCK_MONOTONIC, ns; 0: not known */
	int64_t base;	   /* baseTimeNanoseconds */
	int64_t first;	   /* of everything in the file, CLOCK_MONOTONIC ns */
	bool clock_known;

	char **api_names, **kernel_names; /* escaped with quotes; NULL: not asked for yet */
	uint32_t *api_cbids;
	char **shape_args; /* of kernels, by shape; NULL: not asked for yet */
	uint32_t *shape_device;
	struct export_ids ids;
	struct kineto_row *rows; /* threads, then streams */
	uint32_t *row_of_thread;
	uint32_t *row_of_stream; /* several streams of a device with one number share it */
	size_t rows_count;
	struct kineto_arrow {
		int64_t ts;
		uint64_t id;
		uint64_t tid;
	} *arrows; /* begun, not yet written, by ts */
	size_t arrows_count, arrows_cap, arrows_at;
	struct kineto_mark {
		int64_t begin, end;
		enum { MARK_WINDOW, MARK_STEP, MARK_OVERHEAD, MARK_LOSS } kind;
		uint32_t number;
	} *marks; /* by begin */
	size_t marks_count, marks_at;
	struct export_lanes *overhead_lanes;
	struct steps steps;
	uint64_t calls, works, started, ended; /* written: X of calls and works, s, f */
	uint64_t unmatched;
	int err;
};

/* ---- kineto_put.c: text ---- */
void put_long(struct kineto *k, const char *bytes, size_t size); /* of put_bytes() only */

/* Inline, because most of what is written are constants of a few bytes. */
static inline void put_bytes(struct kineto *k, const char *bytes, size_t size)
{
	if (size > KINETO_BUFFER - k->used) {
		put_long(k, bytes, size);
		return;
	}
	memcpy(k->buf + k->used, bytes, size);
	k->used += size;
}

static inline void put(struct kineto *k, const char *text)
{
	put_bytes(k, text, strlen(text));
}

void put_uint(struct kineto *k, uint64_t value);
void put_int(struct kineto *k, int64_t value);
/* ns as microseconds with three decimals. */
void put_us(struct kineto *k, int64_t ns);
/* A time of CLOCK_MONOTONIC relative to the base. */
void put_ts(struct kineto *k, int64_t ns);
void put_fixed(struct kineto *k, double value);	 /* six decimals; value is finite */
void put_general(struct kineto *k, double value); /* as many digits as it takes */
void put_flush(struct kineto *k);
/* Quoted and escaped, to be freed; NULL: out of memory. */
char *kineto_escape(const char *text);
void put_string(struct kineto *k, const char *text);
/* What is between two events. */
void put_event(struct kineto *k);

/* ---- kineto_rows.c ---- */
int kineto_rows(struct kineto *k);
void kineto_rows_free(struct kineto *k);
void kineto_put_rows(struct kineto *k, int64_t ts);
/* The tid to write for something in [begin, end) of this row; names a new row. */
uint64_t kineto_place(struct kineto *k, struct kineto_row *row, int64_t begin, int64_t end);
struct kineto_row *kineto_row_of_call(struct kineto *k, const struct call *c);
struct kineto_row *kineto_row_of_work(struct kineto *k, const struct work *w);

/* ---- kineto_events.c ---- */
int kineto_events(struct kineto *k, struct export_walk *walk, struct export_item *item, bool any);

/* ---- kineto_marks.c: what is neither call nor work ---- */
int kineto_marks(struct kineto *k);
/* Those that begin up to then, in their order. */
void kineto_put_marks(struct kineto *k, int64_t until);
void kineto_put_end(struct kineto *k, int64_t last);
void kineto_marks_free(struct kineto *k);

/* ---- kineto_work.c ---- */
void kineto_work(struct kineto *k, uint32_t work);

/* ---- kineto_about.c: what stands before and after the events ---- */
void kineto_put_head(struct kineto *k);
void kineto_put_tail(struct kineto *k);

#endif
