/* SPDX-License-Identifier: BSD-2-Clause */
/* What the threads that launch did, and what the devices did, as stretches of time. */
#ifndef GBPF_DIAGNOSE_TIMELINE_H
#define GBPF_DIAGNOSE_TIMELINE_H

#include "model/gpu.h"
#include "model/steps.h"

/*
 * What the launching threads of a process do together at a moment: the first of these
 * that any of them does. A thread that sleeps while another launches does not count, and
 * threads are merged, never averaged.
 */
enum feed_state {
	FEED_DISPATCH,	 /* in a call that does not wait, or shortly between two calls */
	FEED_COLD,	 /* loading modules, making contexts, first calls */
	FEED_BLOCKED,	 /* in a launch that a full queue holds up */
	FEED_COMM,	 /* in a collective */
	FEED_COPY,	 /* waiting for a copy or set */
	FEED_WAIT,	 /* waiting for the GPU */
	FEED_AWAY,	 /* in none of these */
	FEED_STATES,
};

struct feed_span {
	int64_t begin, end; /* ns */
	enum feed_state state;
};

/*
 * Is a launch held up by a full queue? Seen from the CPU: it takes BACK_PRESSURE_NS, or
 * less but BLOCKED_TIMES a quick launch and BLOCKED_NS, and so many launches came since
 * its thread last waited that the queue can be full. (A thread that lost its CPU looks
 * alike but for that.)
 */
#define BLOCKED_TIMES 5
#define BLOCKED_NS 10000
/* Of the durations of steady launches, which are reordered: a quick one, ns. */
int64_t quick_launch(int64_t *ns, size_t count);
struct queue_guess {
	uint64_t launches; /* since the thread last waited, or its first call that was seen */
};
/* To be told of each call of a thread outside other calls, in order. */
bool queue_blocked(struct queue_guess *q, const struct session *s, const struct call *c,
		   int64_t quick);

/* Sorted, disjoint; neighbours differ. FEED_AWAY is what lies between. */
struct feed_timeline {
	struct feed_span *items;
	size_t count;
	int64_t first, last; /* when the process's calls began and ended */
};

/* 0 or -ENOMEM; then nothing is to be freed. */
int timeline_feed(const struct session *s, const struct feeders *f, struct feed_timeline *out);
void timeline_free(struct feed_timeline *t); /* may be repeated */

/* Adds the ns of each state in [from, to) to ns[]. */
void timeline_sum(const struct feed_timeline *t, int64_t from, int64_t to,
		  int64_t ns[FEED_STATES]);
/* The same; near, which is 0 at first, makes it quick from one stretch of time to the next. */
void timeline_sum_near(const struct feed_timeline *t, int64_t from, int64_t to,
		       int64_t ns[FEED_STATES], size_t *near);

/* Union of a process's works of these classes (enum work_class) on a physical device. */
int timeline_device(const struct session *s, uint32_t process, uint32_t physical,
		    unsigned classes, struct spans *out);

/* Did any of its works run there? */
bool timeline_works_on(const struct session *s, uint32_t process, uint32_t physical);

/*
 * When a device worked, for anybody and for one process. Empty, so that nobody else ever
 * worked, where no other process is known to have used the device.
 */
struct neighbours {
	struct spans all, own;
};

bool timeline_shared(const struct session *s, uint32_t process, uint32_t physical);
/* 0 or -ENOMEM; free it in any case. */
int neighbours_find(const struct session *s, uint32_t process, uint32_t physical,
		    struct neighbours *out);
void neighbours_free(struct neighbours *n); /* may be repeated */
/* ns of [from, to) in which the device did others' work and not this process's. */
int64_t neighbours_ran(const struct neighbours *n, int64_t from, int64_t to);
/*
 * ns of a wait for the device, from asking to beginning, that are the others' doing: all of it
 * if their work fills half or more, because a time slice and the switching to and from it are
 * as long as the gaps between what runs in it; else what they ran.
 */
int64_t neighbours_held(const struct neighbours *n, int64_t from, int64_t to);

#endif
