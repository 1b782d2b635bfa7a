/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver tells of its calls and of the device's work: to the job's
 * truth, and to CUPTI where it listens. Where nobody does, a call costs one
 * load more.
 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "truth.h"

struct sim_context;
struct sim_stream;

/* A call of a function of the driver or the runtime, as CUPTI sees it from inside. */
struct sim_call {
	const struct sim_hooks *hooks; /* NULL: nobody listens */
	uint32_t cbid;
	bool runtime;	      /* a call of the runtime */
	bool inner;	      /* of the driver, by the runtime: correlation is that one's */
	uint32_t correlation; /* set by enter() */
	uint32_t outer;	      /* that of the call around it */
	unsigned offs;	      /* CUPTI's, as begin */
	bool inside;	      /* there is a call of the runtime around it */
	const char *function;
	uint64_t data;	      /* a subscriber's */
	int64_t begin;	      /* set by enter() */
};

/* ns, CLOCK_MONOTONIC: handed to the device, begun and ended there. */
struct sim_span {
	int64_t enqueued, begin, end;
};

struct sim_work {
	struct truth_work is;
	const char *name; /* the kernel's, mangled; valid until unload() is given it */
	uint64_t graph_exec; /* which graph was launched, 0: none */
	uint32_t from_context, to_context; /* of a copy between devices */
};

/* CUPTI's part: what the driver and the runtime call. Any thread, no lock held. */
struct sim_hooks {
	void (*enter)(struct sim_call *c);
	void (*leave)(struct sim_call *c, int ret);
	void (*work)(const struct sim_work *w);
	/* What the record of a work says, that this call causes on this thread. */
	uint32_t (*told)(uint32_t correlation);
	/* The id of a call that has none and causes work; 0: nobody numbers. */
	uint32_t (*number)(void);
	void (*unload)(char *name); /* the kernel is gone; its name is the hook's to free */
	void (*reset)(uint32_t context); /* a context goes */
};

/* The driver's part: what CUPTI asks. */
struct sim_driver {
	uint32_t (*context_id)(struct sim_context *c);
	uint32_t (*device_of)(struct sim_context *c);
	uint32_t (*stream_id)(struct sim_stream *s, bool per_thread);
};

extern const struct sim_hooks *_Atomic sim_hooks;

/* Exported by libcuda: from now on hooks is called, NULL: nobody is. */
typedef const struct sim_driver *(*sim_hooks_fn)(const struct sim_hooks *hooks);
const struct sim_driver *simHooks(const struct sim_hooks *hooks);
/* Exported by libcuda: where the job keeps what the device did, and kernels' names. */
typedef void (*sim_attach_fn)(truth_work_fn work, truth_name_fn name);
void simWorkAttach(truth_work_fn work, truth_name_fn name);

/*
 * Exported by libcuda for the runtime: the first and last thing in each of its functions that
 * has reached the driver. cbid is the function's own, as below.
 */
typedef void (*sim_enter_fn)(struct sim_call *c, uint16_t *cbid, const char *function);
typedef void (*sim_leave_fn)(struct sim_call *c, int ret);
void simRuntimeEnter(struct sim_call *c, uint16_t *cbid, const char *function);
void simRuntimeLeave(struct sim_call *c, int ret);

void sim_call_enter(struct sim_call *c, uint16_t *cbid, const char *function);
void sim_call_leave(struct sim_call *c, int ret);
/* Whether anybody wants to know what is told with sim_work_tell(). */
bool sim_work_wanted(void);
/* Fills in where, when and why, and tells of it. */
void sim_work_tell(const struct sim_stream *s, const struct sim_span *when, struct sim_work *w);
uint32_t sim_work_name(const char *name); /* its id in the truth, 0: none */
void sim_work_unload(char *name);	  /* frees it, or lets CUPTI do so */

/* memory.c: what addresses are, in CUPTI's words */
enum sim_memory { MEMORY_UNKNOWN, MEMORY_PAGEABLE, MEMORY_PINNED, MEMORY_DEVICE,
		  MEMORY_ARRAY, MEMORY_MANAGED };
enum { COPY_PEER = 10 }; /* CUPTI_ACTIVITY_MEMCPY_KIND_PTOP */

void sim_memory_add(const void *at, size_t bytes, enum sim_memory kind);
void sim_memory_remove(const void *at);
/* Stores where the device's memory is, and in which context it was got; else leaves them. */
enum sim_memory sim_memory_kind(const void *at, uint8_t *device, uint32_t *context);
/* CUpti_ActivityMemcpyKind of a copy between such memory. */
unsigned sim_copy_kind(enum sim_memory from, enum sim_memory to);

#endif
