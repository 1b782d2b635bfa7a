/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs: captured or built, launched as a whole. */
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
	int64_t duration_ns; /* of a launch as a whole */
	uint32_t id;
};

int sim_graph_add(struct sim_graph *g, const struct sim_launch *l)
{
	struct sim_node *n = g->nodes;
	int64_t ns = sim_duration(l->func);

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
	if (!sim_settings.graph_concurrent)
		g->duration_ns += ns;
	else if (ns > g->duration_ns)
		g->duration_ns = ns;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	SIM_CALL();
	*graph = calloc(1, sizeof(**graph));
	SIM_RETURN(*graph ? SIM_SUCCESS : SIM_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
					    const CUgraphNode *needs, size_t need_count,
					    const struct cu_kernel_node *p)
{
	CUfunction f = p->func ? p->func : p->kernel;
	struct sim_launch l = { f, { p->grid[0], p->grid[1], p->grid[2] },
				{ p->block[0], p->block[1], p->block[2] }, p->smem, p->params };
	int err;

	SIM_CALL();
	if (!f)
		SIM_RETURN(SIM_INVALID_HANDLE);
	err = sim_graph_add(graph, &l);
	*node = err ? NULL : &graph->nodes[graph->count - 1];
	SIM_RETURN(err);
}

static atomic_uint next_graph = 1;

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
	struct sim_graph *e = graph ? calloc(1, sizeof(*e)) : NULL;

	*exec = e;
	if (!e)
		return graph ? SIM_OUT_OF_MEMORY : SIM_INVALID_HANDLE;
	*e = *graph;
	e->id = atomic_fetch_add(&next_graph, 1);
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
	SIM_CALL();
	SIM_RETURN(instantiate(exec, graph));
}

SIM_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
{
	SIM_CALL();
	SIM_RETURN(instantiate(exec, graph));
}

/* Node after node, or all at once; of all of them the stream remembers only the end. */
static void tell_nodes(const struct sim_graph *e, struct sim_stream *s,
		       const struct sim_span *all)
{
	struct sim_span span = *all;

	for (size_t i = 0; i < e->count; i++) {
		struct sim_work w = { .graph_exec = (uintptr_t)e };

		span.end = span.begin + sim_duration(e->nodes[i].launch.func);
		w.is.graph = e->id;
		w.is.node = (uint64_t)e->id << 32 | (i + 1);
		sim_work_kernel(&w, &e->nodes[i].launch);
		sim_work_tell(s, &span, &w);
		if (!sim_settings.graph_concurrent)
			span.begin = span.end;
	}
}

static CUresult graph_launch(struct sim_graph *e, struct sim_stream *s)
{
	struct sim_span all;

	if (!e)
		return SIM_INVALID_HANDLE;
	sim_dispatch();
	all = sim_enqueue(s, e->duration_ns);
	if (sim_work_wanted())
		tell_nodes(e, s, &all);
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
	SIM_CALL();
	SIM_RETURN(graph_launch(exec, sim_stream(stream, false)));
}

SIM_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	SIM_CALL();
	SIM_RETURN(graph_launch(exec, sim_stream(stream, true)));
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
	SIM_CALL();
	SIM_RETURN(graph_destroy(graph));
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_CALL();
	SIM_RETURN(graph_destroy(exec));
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
	SIM_CALL();
	SIM_RETURN(capture_begin(sim_stream(stream, false)));
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
	SIM_CALL();
	SIM_RETURN(capture_begin(sim_stream(stream, true)));
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	SIM_CALL();
	SIM_RETURN(capture_end(sim_stream(stream, false), graph));
}

SIM_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	SIM_CALL();
	SIM_RETURN(capture_end(sim_stream(stream, true), graph));
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	SIM_CALL();
	*status = sim_stream(stream, false)->capture != NULL;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status)
{
	SIM_CALL();
	*status = sim_stream(stream, true)->capture != NULL;
	SIM_RETURN(SIM_SUCCESS);
}
