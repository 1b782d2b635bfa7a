/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "cbid.h"

const struct sim_hooks *_Atomic sim_hooks;

static truth_work_fn _Atomic work_of_caller;
static truth_name_fn _Atomic name_of_caller;
static _Thread_local uint32_t correlation; /* of the call this thread is in */
static _Thread_local bool inside;	   /* of a call of the runtime */

#define CBID_ROW(name, id) { #name, id },
static const struct cbid {
	const char *name;
	uint16_t id;
} driver_cbids[] = { SIM_CBIDS(CBID_ROW) }, runtime_cbids[] = { SIM_RUNTIME_CBIDS(CBID_ROW) };

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

#define NO_CBID UINT16_MAX

static uint32_t context_id(struct sim_context *c)
{
	return sim_context_id(c ? c : sim_context());
}

static uint32_t device_of(struct sim_context *c)
{
	return (uint32_t)(c ? c : sim_context())->device;
}

static uint32_t stream_id(struct sim_stream *s, bool per_thread)
{
	return sim_stream(s, per_thread)->id;
}

SIM_EXPORT const struct sim_driver *simHooks(const struct sim_hooks *hooks)
{
	static const struct sim_driver driver = { context_id, device_of, stream_id };

	atomic_store(&sim_hooks, hooks);
	return &driver;
}

SIM_EXPORT void simWorkAttach(truth_work_fn work, truth_name_fn name)
{
	atomic_store(&work_of_caller, work);
	atomic_store(&name_of_caller, name);
}

static uint16_t find_cbid(const struct cbid *table, size_t count, const char *function)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].name, function))
			return table[i].id;
	return NO_CBID;
}

/* cbid is the function's own, 0 until it is known: two threads find the same. */
static void enter(struct sim_call *c, uint16_t *cbid, const char *function, bool runtime)
{
	uint16_t id = __atomic_load_n(cbid, __ATOMIC_RELAXED);

	if (!id) {
		id = runtime ? find_cbid(runtime_cbids, COUNT(runtime_cbids), function) :
			       find_cbid(driver_cbids, COUNT(driver_cbids), function);
		__atomic_store_n(cbid, id, __ATOMIC_RELAXED);
	}
	if (id == NO_CBID) {
		c->hooks = NULL;
		return;
	}
	c->cbid = id;
	c->runtime = runtime;
	c->inner = inside && !runtime;
	c->outer = correlation;
	c->inside = inside;
	c->correlation = c->inner ? correlation : 0;
	c->function = function;
	c->data = 0;
	c->hooks->enter(c);
	correlation = c->correlation;
	inside |= runtime;
}

void sim_call_enter(struct sim_call *c, uint16_t *cbid, const char *function)
{
	enter(c, cbid, function, false);
}

void sim_call_leave(struct sim_call *c, int ret)
{
	correlation = c->outer;
	inside = c->inside;
	c->hooks->leave(c, ret);
}

SIM_EXPORT void simRuntimeEnter(struct sim_call *c, uint16_t *cbid, const char *function)
{
	c->hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
	if (c->hooks)
		enter(c, cbid, function, true);
}

SIM_EXPORT void simRuntimeLeave(struct sim_call *c, int ret)
{
	if (c->hooks)
		sim_call_leave(c, ret);
}

bool sim_work_wanted(void)
{
	return atomic_load_explicit(&work_of_caller, memory_order_relaxed) ||
	       atomic_load_explicit(&sim_hooks, memory_order_relaxed);
}

void sim_work_tell(const struct sim_stream *s, const struct sim_span *when, struct sim_work *w)
{
	truth_work_fn keep = atomic_load_explicit(&work_of_caller, memory_order_acquire);
	const struct sim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);

	w->is.enqueued = when->enqueued;
	w->is.begin = when->begin;
	w->is.end = when->end;
	w->is.device = (uint32_t)s->ctx->device;
	w->is.context = sim_context_id(s->ctx);
	w->is.stream = s->id;
	if (hooks && !correlation)
		correlation = hooks->number();
	w->is.correlation = hooks ? correlation : 0;
	w->is.told = hooks ? hooks->told(correlation) : 0;
	if (keep)
		keep(&w->is);
	if (hooks)
		hooks->work(w);
}

uint32_t sim_work_name(const char *name)
{
	truth_name_fn id = atomic_load(&name_of_caller);

	return id && name ? id(name, (uint32_t)strlen(name)) : 0;
}

void sim_work_unload(char *name)
{
	const struct sim_hooks *hooks = atomic_load(&sim_hooks);

	if (hooks && name)
		hooks->unload(name);
	else
		free(name);
}
