/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a job writes down about its own calls, into a file it keeps mapped: no
 * allocation and no system call while it runs, and a job that is killed
 * leaves what it wrote. truth.py reads it.
 *
 * The file is chunks of TRUTH_CHUNK bytes: the header, TRUTH_NAME_CHUNKS of
 * names without a break, and others that start with struct truth_chunk; a line
 * (truth_line.h) is one that is followed by more of its own. Native byte order.
 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "truth_api.h"
#include "truth_line.h"

#define TRUTH_MAGIC 0x3148545255544247ull /* "GBTRUTH1" */
#define TRUTH_CHUNK 65536u

#define TRUTH_NAME_CHUNKS 64u /* follow the header: kernel names */

enum truth_chunk_kind { TRUTH_CALLS = 1, TRUTH_TOTALS, TRUTH_LINE, TRUTH_NOTES, TRUTH_WORKS };

struct truth_header {
	uint64_t magic;
	_Atomic uint32_t chunks; /* in use, the header's own among them */
	uint32_t limit;		 /* chunks the file may have */
	uint32_t pid, parent;
	int64_t opened, closed; /* ns, CLOCK_MONOTONIC; closed 0: the job was killed */
	_Atomic uint64_t unwritten; /* calls that only the totals count: no room left */
	uint32_t api_count;
	uint32_t name_used; /* bytes of kernel names */
	char api_names[TRUTH_CHUNK - 68]; /* NUL-separated, in the order of their ids */
	_Atomic uint32_t unlined; /* threads that there was no room for a line for */
	_Atomic uint32_t unworked; /* pieces of the GPU's work that there was no room for */
};

_Static_assert(sizeof(struct truth_header) == TRUTH_CHUNK, "the header is a chunk");

struct truth_chunk {
	uint32_t kind, tid;
	uint32_t count; /* calls, APIs, chunks of a line, notes, pieces of work */
	uint32_t pad;
};

/* What a call was asked to do. Fields a function does not have stay 0. */
struct truth_args {
	uint64_t func;	/* handle, or host stub for the runtime */
	uint64_t stream; /* as passed */
	uint64_t bytes;
	uint64_t pointer; /* destination, allocation, or handle the call is about */
	uint64_t source;
	uint32_t grid[3], block[3];
	uint32_t smem;
	uint32_t kind; /* cudaMemcpyKind, ncclDataType_t */
	uint32_t name; /* id of the kernel's name, 0: none */
	uint32_t pad;
};

struct truth_call {
	int64_t entry, leave; /* ns, CLOCK_MONOTONIC, read by the caller; leave 0: never returned */
	uint32_t tid;
	uint16_t api, depth; /* depth: calls of this thread it is nested in */
	int32_t ret;
	uint32_t pad;
	struct truth_args args;
};

_Static_assert(sizeof(struct truth_call) == 112, "truth.py unpacks 112 bytes");
#define TRUTH_CALLS_PER_CHUNK                                                                      \
	((TRUTH_CHUNK - sizeof(struct truth_chunk)) / sizeof(struct truth_call))

struct truth_total {
	uint64_t calls, errors, ns, max_ns;
};

struct truth_totals {
	struct truth_chunk head;
	struct truth_total of[TRUTH_APIS];
};

_Static_assert(sizeof(struct truth_totals) <= TRUTH_CHUNK, "one chunk a thread");

/* What a thread did for a while because its job is made so, not as it was found out. */
#define TRUTH_WHATS(W)                                                                             \
	W(RUNNING, "running") W(RUNNABLE, "runnable") W(LOCK, "lock") W(PIPE, "pipe")              \
	W(DISK, "disk") W(SLEEP, "sleep") W(STEP, "step") W(MARK, "mark")                          \
	W(PROFILED, "profiled") W(PROFILING, "profiling") W(REFUSED, "refused")

#define TRUTH_WHAT_ID(id, name) TRUTH_WHAT_##id,
enum truth_what { TRUTH_WHAT_NONE, TRUTH_WHATS(TRUTH_WHAT_ID) };

struct truth_note {
	int64_t begin, end; /* ns, CLOCK_MONOTONIC */
	uint32_t what, value;
};

#define TRUTH_NOTES_PER_CHUNK                                                                      \
	((TRUTH_CHUNK - sizeof(struct truth_chunk)) / sizeof(struct truth_note))

enum truth_work_kind { TRUTH_KERNEL = 1, TRUTH_COPY, TRUTH_SET };

/* What the device did, written by the thread that enqueued it. Fields that a kind lacks are 0. */
struct truth_work {
	int64_t enqueued, begin, end; /* ns, CLOCK_MONOTONIC */
	uint64_t call; /* where in the file the record of the call that caused it is; 0: nowhere */
	uint64_t bytes;
	uint64_t node; /* of the graph */
	uint32_t tid, kind;
	uint32_t device, context, stream; /* as CUPTI numbers them */
	uint32_t graph;
	uint32_t correlation; /* CUPTI's for the call; 0: CUPTI did not look */
	uint32_t name;
	uint32_t grid[3], block[3], smem;
	uint8_t copy, from, to; /* CUPTI's kinds of copies and of memory */
	uint8_t async;
	uint32_t value; /* that memory is set to */
	uint32_t registers; /* per thread */
	uint8_t from_device, to_device; /* of a copy between devices */
	uint8_t pad[2];
	uint32_t told; /* the id that CUPTI's record has instead of correlation */
};

_Static_assert(sizeof(struct truth_work) == 128, "truth.py unpacks 128 bytes");
#define TRUTH_WORKS_PER_CHUNK                                                                      \
	((TRUTH_CHUNK - sizeof(struct truth_chunk)) / sizeof(struct truth_work))

/* A thread's place in the file. */
struct truth_thread {
	/* The next record's place; entry and args are the caller's to fill. */
	struct truth_call *(*next)(struct truth_thread *t);
	struct truth_chunk *calls, *notes, *works; /* the chunks being filled, NULL: none yet */
	struct truth_call *open[128]; /* calls it is in, by depth */
	struct truth_line *line; /* NULL: none is kept */
	struct truth_line own;
	struct truth_totals *totals;
	struct truth_call spare[128]; /* by depth: written where nothing is to be kept */
	uint32_t tid, depth;
};

/* How much is kept. The file is sparse: what is not used takes no space. */
struct truth_room {
	uint64_t bytes; /* for single calls; 0: none of them */
	int64_t line_ns; /* of time in lines; 0: no lines */
	int64_t bin_ns;
	unsigned lines; /* threads with a line */
};

/*
 * Makes the process's file; in path, "%p" stands for the process id. Forgets any
 * file before, which a forked child has from its parent. -errno.
 */
int truth_open(const char *path, const struct truth_room *room);
void truth_close(void);
/* This thread's place, or NULL when nothing is written down. */
struct truth_thread *truth_self(void);
/* This thread did what from begin to end; nothing where there is no file or no room. */
void truth_note(enum truth_what what, int64_t begin, int64_t end, uint32_t value);
/* Keeps *w, of which tid and call are this thread's and the innermost call it is in. */
void truth_work(struct truth_work *w);
/*
 * The id for a kernel name of len bytes, 0 if there is no room; to be asked for
 * once a name, not once a call. A forked child's file has its parent's names.
 */
uint32_t truth_name(const char *name, uint32_t len);

/* How the libraries under a job find its records. */
typedef struct truth_thread *(*truth_self_fn)(void);
typedef uint32_t (*truth_name_fn)(const char *name, uint32_t len);
typedef void (*truth_work_fn)(struct truth_work *w);

static inline int64_t truth_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static inline struct truth_call *truth_begin(struct truth_thread *t, enum truth_api api)
{
	struct truth_call *c;

	if (!t)
		return NULL;
	c = t->next(t);
	c->api = (uint16_t)api;
	c->tid = t->tid;
	t->open[t->depth % 128] = c;
	c->depth = (uint16_t)t->depth++;
	c->leave = 0;
	c->ret = 0;
	return c;
}

static inline void truth_end(struct truth_thread *t, struct truth_call *c, int64_t leave, int ret)
{
	struct truth_total *sum;

	if (!c)
		return;
	t->depth--;
	c->ret = ret;
	c->leave = leave;
	sum = &t->totals->of[c->api];
	sum->calls++;
	sum->errors += ret != 0;
	sum->ns += (uint64_t)(leave - c->entry);
	if ((uint64_t)(leave - c->entry) > sum->max_ns)
		sum->max_ns = (uint64_t)(leave - c->entry);
	if (t->line)
		truth_line_add(t->line, c->api, c->entry, leave, ret, c->args.bytes);
}

/*
 * One call of a function through its pointer, written down. The record is
 * touched before the first clock reading, so that a page fault is not timed.
 */
#define TRUTH_CALL(self, table, name, actual, ...)                                                 \
	({                                                                                         \
		struct truth_thread *t_ = (self);                                                  \
		struct truth_call *c_ = truth_begin(t_, TRUTH_##name);                             \
		int64_t leave_;                                                                    \
		int ret_;                                                                          \
		if (c_) {                                                                          \
			c_->args = (struct truth_args){ __VA_ARGS__ };                             \
			c_->entry = truth_now();                                                   \
		}                                                                                  \
		ret_ = (table)->name actual;                                                       \
		if (c_) {                                                                          \
			leave_ = truth_now();                                                      \
			truth_end(t_, c_, leave_, ret_);                                           \
		}                                                                                  \
		ret_;                                                                              \
	})

/* The same for calls that store a pointer or handle at *out. */
#define TRUTH_CALL_OUT(self, table, name, actual, out, ...)                                        \
	({                                                                                         \
		struct truth_thread *t_ = (self);                                                  \
		struct truth_call *c_ = truth_begin(t_, TRUTH_##name);                             \
		int64_t leave_;                                                                    \
		int ret_;                                                                          \
		if (c_) {                                                                          \
			c_->args = (struct truth_args){ __VA_ARGS__ };                             \
			c_->entry = truth_now();                                                   \
		}                                                                                  \
		ret_ = (table)->name actual;                                                       \
		if (c_) {                                                                          \
			leave_ = truth_now();                                                      \
			c_->args.pointer = ret_ ? 0 : (uint64_t)*(out);                            \
			truth_end(t_, c_, leave_, ret_);                                           \
		}                                                                                  \
		ret_;                                                                              \
	})

#endif
