/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver tells: calls, work, modules and contexts that go. */
#include <stdlib.h>

#include "cupti.h"

/* A call of this thread's whose end CUPTI did not see: to CUPTI, it is in it still. */
static _Thread_local struct {
	uint32_t correlation;
	unsigned life;
} stuck;

/*
 * The subscriber may do anything in its callback: unsubscribe, finalize. It is not told of
 * what the runtime calls of the driver.
 */
static void call_back(struct sim_call *c, uint32_t site, int *ret)
{
	struct cupti_callback_data data = {
		.site = site,
		.function = c->function,
		.ret = ret,
		.correlation_data = &c->data,
		.correlation = c->correlation,
	};
	cupti_callback_fn fn;
	void *user;

	if (c->inner ||
	    !atomic_load_explicit(&cupti.callbacks[c->runtime][c->cbid], memory_order_relaxed))
		return;
	pthread_mutex_lock(&cupti.lock);
	fn = cupti.callback;
	user = cupti.callback_user;
	pthread_mutex_unlock(&cupti.lock);
	if (fn)
		fn(user, c->runtime ? CUPTI_DOMAIN_RUNTIME : CUPTI_DOMAIN_DRIVER, c->cbid, &data);
}

/* Of a call of the driver by the runtime there is no record: the outer one's says it all. */
static bool recorded(const struct sim_call *c)
{
	if (c->runtime)
		return atomic_load_explicit(&cupti.on[CUPTI_RUNTIME], memory_order_relaxed);
	return !c->inner &&
	       atomic_load_explicit(&cupti.on[CUPTI_DRIVER], memory_order_relaxed) &&
	       !atomic_load_explicit(&cupti.left_out[c->cbid], memory_order_relaxed);
}

/* As an H200 with CUPTI 13.0 does it: as long as no calls were recorded, launches have ids. */
static bool by_launch(void)
{
	return cupti.set.by_launch && !atomic_load(&cupti.by_call) &&
	       !atomic_load_explicit(&cupti.callbacks_on, memory_order_relaxed);
}

static uint32_t next_id(void)
{
	uint32_t id = 0;

	while (!id)
		id = atomic_fetch_add(&cupti.correlation, 1);
	return id;
}

/* Also of a call that was under way when something began to be recorded. */
static uint32_t number(void)
{
	return atomic_load(&cupti.enabled) ? next_id() : 0;
}

static void enter(struct sim_call *c)
{
	int none = 0;

	c->begin = 0;
	if (by_launch())
		return;
	if (!atomic_load_explicit(&cupti.enabled, memory_order_relaxed) &&
	    !atomic_load_explicit(&cupti.callbacks_on, memory_order_relaxed))
		return;
	if (!c->correlation)
		c->correlation = next_id();
	call_back(c, CUPTI_API_ENTER, &none);
	c->offs = atomic_load(&cupti.offs[c->runtime]);
	if (!recorded(c))
		return;
	c->begin = (int64_t)cupti_clock_now();
	stuck.correlation = 0;
}

static uint32_t told(uint32_t correlation)
{
	bool is = stuck.correlation && stuck.life == atomic_load(&cupti.life);

	return correlation && is ? stuck.correlation : correlation;
}

/* Once calls of its kind are recorded no more, one that had begun before has no end. */
static void ended(const struct sim_call *c, int ret)
{
	if (c->offs == atomic_load(&cupti.offs[c->runtime])) {
		cupti_call_record(c, cupti_clock_now(), ret);
	} else if (told(c->correlation) == c->correlation) {
		stuck.correlation = c->correlation;
		stuck.life = atomic_load(&cupti.life);
	}
}

static void leave(struct sim_call *c, int ret)
{
	if (c->begin)
		ended(c, ret);
	if (c->correlation)
		call_back(c, CUPTI_API_EXIT, &ret);
}

/* What the record of a graph's node tells; lock is held. */
static uint32_t graph_id(const struct sim_work *w)
{
	struct cupti_graph *g = &cupti.graphs[w->graph_exec * 0x9e3779b97f4a7c15ull >> 56];

	if (g->exec != w->graph_exec)
		*g = (struct cupti_graph){ .exec = w->graph_exec, .session = cupti.sessions };
	if (g->session != cupti.sessions) {
		g->earlier = g->last;
		g->session = cupti.sessions;
	}
	if ((uint32_t)w->is.node == 1) {
		g->before = g->last;
		g->last = w->is.told;
	}
	if (cupti.sessions < 2 || cupti.set.graph_ids == GRAPH_IDS_TRUE)
		return w->is.told;
	return cupti.set.graph_ids == GRAPH_IDS_STALE ? g->earlier : g->before;
}

static uint32_t kind_of(const struct sim_work *w)
{
	bool concurrent = atomic_load(&cupti.on[CUPTI_CONCURRENT_KERNEL]);

	switch (w->is.kind) {
	case TRUTH_COPY: return w->is.copy == COPY_PEER ? CUPTI_MEMCPY_PEER : CUPTI_MEMCPY;
	case TRUTH_SET: return CUPTI_MEMSET;
	default: return concurrent ? CUPTI_CONCURRENT_KERNEL : CUPTI_KERNEL;
	}
}

static void work(const struct sim_work *w)
{
	struct cupti_pending *p;
	uint32_t kind = kind_of(w);

	if (!atomic_load(&cupti.on[kind]) || !(p = malloc(sizeof(*p))))
		return;
	*p = (struct cupti_pending){ .work = *w, .correlation = w->is.told, .kind = kind };
	pthread_mutex_lock(&cupti.lock);
	cupti.any_graph |= w->graph_exec != 0;
	if (w->graph_exec)
		p->correlation = graph_id(w);
	cupti_pending_add(&cupti.pending, p);
	pthread_mutex_unlock(&cupti.lock);
	cupti_reserve(kind);
}

static void unload(char *text)
{
	struct cupti_name *n = malloc(sizeof(*n));

	if (!n)
		return;
	pthread_mutex_lock(&cupti.lock);
	*n = (struct cupti_name){ cupti.names, text };
	cupti.names = n;
	pthread_mutex_unlock(&cupti.lock);
}

/* All work of the context has ended. */
static void reset(uint32_t context)
{
	if (cupti.set.reset_loses)
		cupti_forget();
	else
		cupti_deliver(true, false);
}

const struct sim_hooks cupti_hooks = { enter, leave, work, told, number, unload, reset };
