/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the stand-in for libcupti. The driver's calls and the device's work
 * come through hooks (work.h); records of calls are made as these return,
 * records of work when it has ended by the clock, by a thread of CUPTI's or by
 * whoever flushes.
 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include <pthread.h>
#include <stdbool.h>

#include "cupti_abi.h"
#include "work.h"

#define SIM_EXPORT __attribute__((visibility("default")))
#define CUPTI_CBIDS 1024

enum cupti_graph_ids { GRAPH_IDS_TRUE, GRAPH_IDS_STALE, GRAPH_IDS_SHIFTED };

/* Read once from the environment, see README.md. */
struct cupti_settings {
	uint32_t version; /* as cuptiGetVersion tells it */
	size_t kernel_size, copy_size, overhead_size;
	enum cupti_graph_ids graph_ids; /* of sessions after the first */
	uint32_t first_correlation;
	bool by_launch; /* only launches have ids, until calls are recorded for the first time */
	unsigned drop, start0, end0, negative; /* of the device's records every Nth, 0: none */
	int64_t offset_ns, drift_ppm;
	const char *fail, *delay, *log;
	bool reset_loses;
	bool spare; /* an empty buffer is kept at hand */
};

struct cupti_buffer {
	struct cupti_buffer *next;
	uint8_t *at;
	size_t size, used, records, max_records;
};

/* Work that has no record yet. */
struct cupti_pending {
	struct cupti_pending *next;
	struct sim_work work;
	uint32_t correlation; /* as its record is to tell it */
	uint32_t kind;
};

struct cupti_list {
	struct cupti_pending *first, **last;
};

/* A name that its module gave back while records not delivered point to it. */
struct cupti_name {
	struct cupti_name *next;
	char *text;
};

struct cupti_pair {
	cupti_request_fn request;
	cupti_complete_fn complete;
};

/* 13.3 has one object a client; its callbacks are where they are in the real one's. */
struct cupti_client {
	uint64_t own[14];
	struct cupti_pair pair;
};

/* The correlation ids of a graph's launches. */
struct cupti_graph {
	uint64_t exec;
	unsigned session;
	uint32_t last, before, earlier; /* before: of the launch before; earlier: last session's */
};

/* The process's, like CUPTI's own. */
struct cupti {
	struct cupti_settings set;
	pthread_mutex_t lock;  /* of all below; never held in a client's function */
	pthread_mutex_t drain; /* before lock; who makes records of work and delivers buffers */
	pthread_cond_t wake;
	bool inited, worker, stopping;
	pthread_t thread;
	const struct sim_driver *driver;
	struct cupti_pair pair;
	struct cupti_client *client; /* where 13.3 has it instead */
	cupti_timestamp_fn timestamp;
	int64_t timestamp_offset; /* of that clock from CLOCK_MONOTONIC, ns */
	unsigned timestamp_set;
	bool clock_broken;
	int64_t mono0, real0;
	atomic_bool on[CUPTI_KINDS], left_out[CUPTI_CBIDS];
	atomic_uint enabled; /* kinds and functions; 0: no session */
	unsigned sessions;
	int thread_type;
	uint32_t period_ms;
	bool subscribed;
	cupti_callback_fn callback;
	void *callback_user;
	atomic_bool callbacks[2][CUPTI_CBIDS]; /* of the driver's functions, of the runtime's */
	atomic_uint callbacks_on;
	bool any_graph; /* was launched */
	struct cupti_list pending;
	uint64_t dropped, device_records;
	atomic_uint correlation; /* the next call's */
	atomic_bool by_call;	 /* calls were recorded, and each has an id from then on */
	atomic_uint offs[2];	 /* calls of the driver, of the runtime: recorded no more */
	atomic_uint life;	 /* finalized, or forked, so often */
	struct cupti_buffer *device; /* being filled, drain's; which one it is: lock's, too */
	struct cupti_buffer *reserved; /* to be the next such one, lock's */
	struct cupti_buffer *calls;  /* being filled, lock's */
	struct cupti_buffer *full;   /* to be delivered, newest first */
	struct cupti_name *names;
	struct cupti_graph graphs[256]; /* by hash of the handle */
	/* who must not be harmed */
	cupti_complete_fn guarded;
	const void *guard; /* module that asked for it */
	uint64_t guard_kinds;
};

extern struct cupti cupti;

static inline struct cupti_pair cupti_pair(void)
{
	return cupti.client ? cupti.client->pair : cupti.pair;
}

/* cupti_settings.c */
void cupti_settings_read(struct cupti_settings *s);
/* What SIMCUPTI_FAIL says of this call, after what SIMCUPTI_DELAY does to it. */
int cupti_inject(const char *function);
void cupti_log(const char *function, long argument, int result);

/* cupti_clock.c */
void cupti_clock_begin(void);
uint64_t cupti_clock(int64_t mono); /* CLOCK_MONOTONIC to what records hold, ns */
uint64_t cupti_clock_now(void);	    /* read as records of calls do */
void cupti_clock_set(cupti_timestamp_fn fn);

/* cupti_hooks.c */
extern const struct sim_hooks cupti_hooks;

/* cupti_records.c */
void cupti_call_record(const struct sim_call *c, uint64_t end, int ret);
/* Work of that kind has begun to have a record: there is a buffer for it. No lock is held. */
void cupti_reserve(uint32_t kind);
void cupti_pending_add(struct cupti_list *l, struct cupti_pending *p);
/* Makes records of what has ended, delivers buffers: full ones, or all. */
void cupti_deliver(bool all, bool forced);
void cupti_names_free(void);
size_t cupti_record_size(uint32_t kind); /* 0: no such */
void cupti_forget(void); /* all that was not delivered */

/* cupti_worker.c */
void cupti_worker_begin(void);
void cupti_worker_end(void);

/* cupti_guard.c */
void cupti_guard_register(cupti_complete_fn complete, const void *caller);
void cupti_guard_enable(uint32_t kind, bool on, const void *caller);
void cupti_guard_finalize(const void *caller);
void cupti_guard_clock(const void *caller);

#endif
