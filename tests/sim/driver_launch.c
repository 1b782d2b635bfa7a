/* SPDX-License-Identifier: BSD-2-Clause */
/* Launches, graphs, streams and events. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* A captured launch: its first parameter is kept by value. */
struct sim_node {
	struct sim_launch launch;
	uint64_t first;
};

struct sim_graph {
	struct sim_node *nodes;
	size_t count, room;
	int64_t duration_ns;
};

#define LAUNCH_OF                                                                                  \
	(&(struct sim_launch){ f, { gx, gy, gz }, { bx, by, bz }, smem, params })
#define LAUNCH_CONFIG                                                                              \
	(&(struct sim_launch){ f,                                                                  \
			       { config->grid[0], config->grid[1], config->grid[2] },              \
			       { config->block[0], config->block[1], config->block[2] },           \
			       config->smem,                                                       \
			       params })

SIM_EXPORT CUresult cuLaunchKernel(LAUNCH_PARAMS, void **extra)
{
	SIM_INJECT();
	return sim_launch(sim_stream(stream, false), LAUNCH_OF);
}

SIM_EXPORT CUresult cuLaunchKernel_ptsz(LAUNCH_PARAMS, void **extra)
{
	SIM_INJECT();
	return sim_launch(sim_stream(stream, true), LAUNCH_OF);
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel(LAUNCH_PARAMS)
{
	SIM_INJECT();
	return sim_launch(sim_stream(stream, false), LAUNCH_OF);
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(LAUNCH_PARAMS)
{
	SIM_INJECT();
	return sim_launch(sim_stream(stream, true), LAUNCH_OF);
}

SIM_EXPORT CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction f,
				     void **params, void **extra)
{
	SIM_INJECT();
	return sim_launch(sim_stream(config->stream, false), LAUNCH_CONFIG);
}

SIM_EXPORT CUresult cuLaunchKernelEx_ptsz(const struct cu_launch_config *config, CUfunction f,
					  void **params, void **extra)
{
	SIM_INJECT();
	return sim_launch(sim_stream(config->stream, true), LAUNCH_CONFIG);
}

/* There is no device thread to call it: the caller does, at once. */
SIM_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
	SIM_INJECT();
	if (!fn)
		return SIM_INVALID_VALUE;
	fn(user);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *user)
{
	SIM_INJECT();
	if (!fn)
		return SIM_INVALID_VALUE;
	fn(user);
	return SIM_SUCCESS;
}

int sim_graph_add(struct sim_graph *g, const struct sim_launch *l)
{
	struct sim_node *n = g->nodes;
	int64_t ns = sim_settings.kernel_ns >= 0 ? sim_settings.kernel_ns : l->func->duration_ns;

	if (g->count == g->room) {
		g->room = g->room * 2 + 16;
		n = realloc(n, g->room * sizeof(*n));
		if (!n)
			return SIM_OUT_OF_MEMORY;
		g->nodes = n;
	}
	n = &g->nodes[g->count++];
	n->launch = *l;
	n->first = l->params && l->params[0] ? *(uint64_t *)l->params[0] : 0;
	g->duration_ns += ns;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	SIM_INJECT();
	*graph = calloc(1, sizeof(**graph));
	return *graph ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

SIM_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
					    const CUgraphNode *needs, size_t need_count,
					    const struct cu_kernel_node *p)
{
	CUfunction f = p->func ? p->func : p->kernel;
	struct sim_launch l = { f, { p->grid[0], p->grid[1], p->grid[2] },
				{ p->block[0], p->block[1], p->block[2] }, p->smem, p->params };
	int err;

	SIM_INJECT();
	if (!f)
		return SIM_INVALID_HANDLE;
	err = sim_graph_add(graph, &l);
	*node = err ? NULL : &graph->nodes[graph->count - 1];
	return err;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
	struct sim_graph *e = graph ? calloc(1, sizeof(*e)) : NULL;

	*exec = e;
	if (!e)
		return graph ? SIM_OUT_OF_MEMORY : SIM_INVALID_HANDLE;
	*e = *graph;
	e->room = e->count;
	e->nodes = malloc((e->count + 1) * sizeof(*e->nodes));
	if (!e->nodes) {
		free(e);
		*exec = NULL;
		return SIM_OUT_OF_MEMORY;
	}
	if (e->count)
		memcpy(e->nodes, graph->nodes, e->count * sizeof(*e->nodes));
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
						unsigned long long flags)
{
	SIM_INJECT();
	return instantiate(exec, graph);
}

SIM_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
{
	SIM_INJECT();
	return instantiate(exec, graph);
}

static CUresult graph_launch(struct sim_graph *e, struct sim_stream *s)
{
	if (!e)
		return SIM_INVALID_HANDLE;
	sim_dispatch();
	sim_enqueue(s, e->duration_ns);
	for (size_t i = 0; i < e->count; i++) {
		void *params[] = { &e->nodes[i].first };
		struct sim_launch l = e->nodes[i].launch;

		l.params = params;
		sim_execute(&l);
	}
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	SIM_INJECT();
	return graph_launch(exec, sim_stream(stream, false));
}

SIM_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	SIM_INJECT();
	return graph_launch(exec, sim_stream(stream, true));
}

static CUresult graph_destroy(struct sim_graph *g)
{
	if (!g)
		return SIM_INVALID_HANDLE;
	free(g->nodes);
	free(g);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
	SIM_INJECT();
	return graph_destroy(graph);
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_INJECT();
	return graph_destroy(exec);
}

static CUresult capture_begin(struct sim_stream *s)
{
	if (s->capture)
		return 901;
	s->capture = calloc(1, sizeof(*s->capture));
	return s->capture ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

static CUresult capture_end(struct sim_stream *s, CUgraph *graph)
{
	*graph = s->capture;
	s->capture = NULL;
	return *graph ? SIM_SUCCESS : 901;
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	SIM_INJECT();
	return capture_begin(sim_stream(stream, false));
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
	SIM_INJECT();
	return capture_begin(sim_stream(stream, true));
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	SIM_INJECT();
	return capture_end(sim_stream(stream, false), graph);
}

SIM_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	SIM_INJECT();
	return capture_end(sim_stream(stream, true), graph);
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	SIM_INJECT();
	*status = sim_stream(stream, false)->capture != NULL;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status)
{
	SIM_INJECT();
	*status = sim_stream(stream, true)->capture != NULL;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	SIM_INJECT();
	*stream = sim_stream_new();
	return *stream ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	SIM_INJECT();
	*stream = sim_stream_new();
	return *stream ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	SIM_INJECT();
	if (!stream || stream == SIM_STREAM_LEGACY || stream == SIM_STREAM_PER_THREAD)
		return SIM_INVALID_HANDLE;
	sim_stream_free(stream);
	return SIM_SUCCESS;
}

#define TWINS(name, params, ...)                                                                   \
	SIM_EXPORT CUresult name params                                                            \
	{                                                                                          \
		const bool per_thread = false;                                                     \
		SIM_INJECT();                                                                      \
		return __VA_ARGS__;                                                                \
	}                                                                                          \
	SIM_EXPORT CUresult name##_ptsz params                                                     \
	{                                                                                          \
		const bool per_thread = true;                                                      \
		SIM_INJECT();                                                                      \
		return __VA_ARGS__;                                                                \
	}

static CUresult wait_end(int64_t end)
{
	sim_wait(end);
	return SIM_SUCCESS;
}

static CUresult reached(int64_t end)
{
	return end <= sim_now() ? SIM_SUCCESS : SIM_NOT_READY;
}

static CUresult wait_event(struct sim_stream *s, CUevent event)
{
	if (!event)
		return SIM_INVALID_HANDLE;
	sim_stream_after(s, atomic_load(&event->at));
	return SIM_SUCCESS;
}

static CUresult record(CUevent event, struct sim_stream *s)
{
	int64_t end = atomic_load(&s->end), now;

	if (!event)
		return SIM_INVALID_HANDLE;
	now = sim_now();
	atomic_store(&event->at, end > now ? end : now);
	return SIM_SUCCESS;
}

static CUresult add_callback(CUstream stream, CUstreamCallback fn, void *user)
{
	fn(stream, SIM_SUCCESS, user);
	return SIM_SUCCESS;
}

TWINS(cuStreamSynchronize, (CUstream stream),
      wait_end(atomic_load(&sim_stream(stream, per_thread)->end)))
TWINS(cuStreamQuery, (CUstream stream), reached(atomic_load(&sim_stream(stream, per_thread)->end)))
TWINS(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
      wait_event(sim_stream(stream, per_thread), event))
TWINS(cuEventRecord, (CUevent event, CUstream stream),
      record(event, sim_stream(stream, per_thread)))
TWINS(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
      record(event, sim_stream(stream, per_thread)))
TWINS(cuStreamAddCallback, (CUstream stream, CUstreamCallback fn, void *user, unsigned flags),
      (void)per_thread, add_callback(stream, fn, user))

SIM_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	SIM_INJECT();
	*event = calloc(1, sizeof(**event));
	return *event ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	SIM_INJECT();
	free(event);
	return event ? SIM_SUCCESS : SIM_INVALID_HANDLE;
}

SIM_EXPORT CUresult cuEventQuery(CUevent event)
{
	SIM_INJECT();
	return event ? reached(atomic_load(&event->at)) : SIM_INVALID_HANDLE;
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent event)
{
	SIM_INJECT();
	return event ? wait_end(atomic_load(&event->at)) : SIM_INVALID_HANDLE;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	if (!start || !end)
		return SIM_INVALID_HANDLE;
	*ms = (float)(atomic_load(&end->at) - atomic_load(&start->at)) / 1e6f;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	SIM_INJECT();
	return elapsed(ms, start, end);
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	SIM_INJECT();
	return elapsed(ms, start, end);
}
