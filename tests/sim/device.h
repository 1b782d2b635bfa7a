/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated device: no thread, only arithmetic. A stream remembers when
 * its last piece of work ends; work enqueued now ends at max(now, that) plus
 * its duration, and who waits, waits until the clock is there.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "simcuda.h"
#include "work.h"


#define SIM_DEVICES 8
#define SIM_DEPTH_MAX 1021
#define SIM_STREAMS 1024
#define SIM_FOREVER (INT64_MAX / 4)

#define SIM_EXPORT __attribute__((visibility("default")))
#define sim_unlikely(x) __builtin_expect(!!(x), 0)

enum sim_name_mode { NAME_PLAIN, NAME_COLD, NAME_UNREADABLE, NAME_GARBAGE };

/* Read once from the environment, see README.md. */
struct sim_settings {
	int64_t dispatch_ns, kernel_ns, copy_ns, cold_ns, latency_ns;
	unsigned depth, name_word;
	int devices;
	enum sim_name_mode name_mode;
	bool sleep, inject, graph_concurrent;
	char fail_api[64];
	int fail_code;
	unsigned fail_every;
};

extern struct sim_settings sim_settings;

#define SIM_FUNC_WORDS 16
#define SIM_REGISTERS 32 /* per thread, of any kernel */

/*
 * CUfunction and CUkernel. Like driver 580's, the word at offset 8 points to
 * the mangled name; SIMCUDA_NAME_OFFSET moves it to another word.
 */
struct sim_func {
	uint64_t word[SIM_FUNC_WORDS];
	const char *name; /* the driver's own copy, always readable */
	int64_t duration_ns;
	struct sim_module *module;
	struct sim_func *next; /* in its module, or on the free list */
	struct sim_func *twin; /* a kernel's function */
	bool warm; /* launched before */
	uint32_t name_id; /* in the truth */
};

struct sim_module {
	struct sim_func *funcs;
};

struct sim_stream {
	struct sim_context *ctx;
	uint32_t id; /* CUPTI's, never used again */
	atomic_flag busy;
	_Atomic int64_t end; /* ns, CLOCK_MONOTONIC */
	unsigned head, used;
	int64_t done[SIM_DEPTH_MAX]; /* ends of what is outstanding, a ring */
	struct sim_graph *capture;
};

struct sim_context {
	int device;
	_Atomic uint32_t id; /* CUPTI's; 0: not made yet */
	struct sim_stream legacy; /* the default stream */
};

struct sim_event {
	_Atomic int64_t at; /* ns at which it is reached, 0: never recorded */
};

/* A launch, however it was asked for. */
struct sim_launch {
	struct sim_func *func;
	unsigned grid[3], block[3], smem;
	void **params;
};

static inline int64_t sim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* An error that SIMCUDA_FAIL asks for at this function, or 0. */
int sim_inject(const char *api);
/* The first statement of every function of the driver, and the last. */
#define SIM_CALL()                                                                                 \
	static uint16_t cbid_;                                                                     \
	struct sim_call call_;                                                                     \
	call_.hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);                      \
	if (sim_unlikely(call_.hooks))                                                             \
		sim_call_enter(&call_, &cbid_, __func__);                                          \
	if (sim_unlikely(sim_settings.inject)) {                                                   \
		int code_ = sim_inject(__func__);                                                  \
		if (code_)                                                                         \
			SIM_RETURN(code_);                                                         \
	}
#define SIM_RETURN(value)                                                                          \
	do {                                                                                       \
		int ret_ = (value);                                                                \
		if (sim_unlikely(call_.hooks))                                                     \
			sim_call_leave(&call_, ret_);                                              \
		return ret_;                                                                       \
	} while (0)

/* Spins for the cost that one dispatch has on the CPU. */
void sim_dispatch(void);
/* Spins for what happens only the first time: loading code, the first allocation. */
void sim_cold(unsigned times);
/* Waits, spinning or asleep as set, until ns. A cancellation point when asleep. */
void sim_wait(int64_t ns);

/* The thread's context: the one made current, or else device 0's primary one. */
struct sim_context *sim_context(void);
void sim_context_set(struct sim_context *c);
struct sim_context *sim_context_primary(int device);
struct sim_context *sim_context_new(int device); /* NULL: no memory */
uint32_t sim_context_id(struct sim_context *c);
/* Waits for all its work and forgets its streams; a primary one gets another id when used again. */
void sim_context_reset(struct sim_context *c);

/* NULL and the two special handles become streams of the context; twins say per_thread. */
struct sim_stream *sim_stream(CUstream handle, bool per_thread);
struct sim_stream *sim_stream_new(void); /* NULL: too many */
void sim_stream_free(struct sim_stream *s);
int64_t sim_device_end(int device); /* when everything enqueued on it so far is done */

/* Enqueues work; blocks while the stream has too much outstanding. */
struct sim_span sim_enqueue(struct sim_stream *s, int64_t duration_ns);
/* Makes later work on s wait until ns. */
void sim_stream_after(struct sim_stream *s, int64_t ns);
int sim_launch(struct sim_stream *s, const struct sim_launch *l);
int64_t sim_duration(const struct sim_func *f); /* ns */
/* What a work that is this kernel tells of it. */
void sim_work_kernel(struct sim_work *w, const struct sim_launch *l);
/* What the launch does to memory. */
void sim_execute(const struct sim_launch *l);
/* One node more in a graph being captured or built; 0 or a CUresult. */
int sim_graph_add(struct sim_graph *g, const struct sim_launch *l);

#endif
