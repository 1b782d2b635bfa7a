/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

void worker_check(struct worker *w, int ret)
{
	if (ret)
		w->unexpected++;
}

void op_cpu(struct worker *w)
{
	int64_t until;

	if (w->job->opt.cpu_ns <= 0)
		return;
	until = truth_now() + w->job->opt.cpu_ns;
	while (truth_now() < until)
		;
}

#define SHAPE_ARGS                                                                                 \
	.stream = U(w->stream), .grid = { s->grid[0], s->grid[1], s->grid[2] },                    \
	.block = { s->block[0], s->block[1], s->block[2] }, .smem = s->smem, .name = name
#define SHAPE_ACTUAL                                                                               \
	s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->smem,        \
		w->stream, params

static int launch_driver(struct worker *w, CUfunction f, uint32_t name, const struct shape *s,
			 unsigned how)
{
	bool twin = w->job->opt.per_thread;
	void *params[] = { &w->acc };
	struct cu_launch_config c = {
		.grid = { s->grid[0], s->grid[1], s->grid[2] },
		.block = { s->block[0], s->block[1], s->block[2] },
		.smem = s->smem,
		.stream = w->stream,
	};

	if (how == LAUNCH_EX)
		return twin ? D(w, cuLaunchKernelEx_ptsz, (&c, f, params, NULL), .func = U(f),
				SHAPE_ARGS) :
			      D(w, cuLaunchKernelEx, (&c, f, params, NULL), .func = U(f),
				SHAPE_ARGS);
	if (how == LAUNCH_COOPERATIVE)
		return twin ? D(w, cuLaunchCooperativeKernel_ptsz, (f, SHAPE_ACTUAL), .func = U(f),
				SHAPE_ARGS) :
			      D(w, cuLaunchCooperativeKernel, (f, SHAPE_ACTUAL), .func = U(f),
				SHAPE_ARGS);
	return twin ? D(w, cuLaunchKernel_ptsz, (f, SHAPE_ACTUAL, NULL), .func = U(f), SHAPE_ARGS) :
		      D(w, cuLaunchKernel, (f, SHAPE_ACTUAL, NULL), .func = U(f), SHAPE_ARGS);
}

#define RT_ACTUAL(f) (f, c.grid, c.block, params, c.smem, c.stream)

static int launch_runtime(struct worker *w, rt_func f, uint32_t name, const struct shape *s,
			  unsigned how)
{
	bool twin = w->job->opt.per_thread;
	void *params[] = { &w->acc };
	struct cuda_launch_config c = {
		.grid = { s->grid[0], s->grid[1], s->grid[2] },
		.block = { s->block[0], s->block[1], s->block[2] },
		.smem = s->smem,
		.stream = w->stream,
	};

	if (how == LAUNCH_EX)
		return twin ? R(w, cudaLaunchKernelExC_ptsz, (&c, f, params), .func = U(f),
				SHAPE_ARGS) :
			      R(w, cudaLaunchKernelExC, (&c, f, params), .func = U(f), SHAPE_ARGS);
	if (how == LAUNCH_COOPERATIVE && !twin)
		return R(w, cudaLaunchCooperativeKernel, RT_ACTUAL(f), .func = U(f), SHAPE_ARGS);
	return twin ? R(w, cudaLaunchKernel_ptsz, RT_ACTUAL(f), .func = U(f), SHAPE_ARGS) :
		      R(w, cudaLaunchKernel, RT_ACTUAL(f), .func = U(f), SHAPE_ARGS);
}

static void launched(struct worker *w, const struct shape *s, int ret)
{
	worker_check(w, ret);
	if (!ret)
		w->expected = w->expected * SIM_MIX + sim_launch_word(s->grid, s->block, s->smem);
}

void op_launch_func(struct worker *w, CUfunction f, uint32_t name, const struct shape *s)
{
	launched(w, s, launch_driver(w, f, name, s, LAUNCH_PLAIN));
}

void op_launch_as(struct worker *w, unsigned k, const struct shape *s, unsigned how)
{
	struct job *job = w->job;

	launched(w, s,
		 job->opt.runtime ? launch_runtime(w, job_stubs[k], job->name[k], s, how) :
				    launch_driver(w, job->func[k], job->name[k], s, how));
}

/* Matrix products go through the Ex form, as PyTorch's do. */
void op_launch(struct worker *w, unsigned k)
{
	op_launch_as(w, k, &job_shapes[k], k < 4 ? LAUNCH_EX : LAUNCH_PLAIN);
}

#define ON .stream = U(w->stream)
/* One operation in four words: driver, runtime, and each one's per-thread twin. */
#define EITHER(d, d_twin, r, r_twin)                                                               \
	(w->job->opt.runtime ? (w->job->opt.per_thread ? (r_twin) : (r)) :                         \
			       (w->job->opt.per_thread ? (d_twin) : (d)))

void op_stream_sync(struct worker *w)
{
	worker_check(w, EITHER(D(w, cuStreamSynchronize, (w->stream), ON),
			       D(w, cuStreamSynchronize_ptsz, (w->stream), ON),
			       R(w, cudaStreamSynchronize, (w->stream), ON),
			       R(w, cudaStreamSynchronize_ptsz, (w->stream), ON)));
}

void op_device_sync(struct worker *w)
{
	worker_check(w, EITHER(D(w, cuCtxSynchronize, (), 0),
			       D(w, cuCtxSynchronize_v2, (w->ctx), .pointer = U(w->ctx)),
			       R(w, cudaDeviceSynchronize, (), 0),
			       R(w, cudaDeviceSynchronize, (), 0)));
}

#define HTOD .pointer = w->dev, .source = U(w->host), .bytes = bytes, ON
#define DTOH .pointer = U(w->host), .source = w->dev, .bytes = bytes, ON
#define DTOD .pointer = w->other, .source = w->dev, .bytes = bytes, ON

void op_htod(struct worker *w, size_t bytes)
{
	void *dev = (void *)w->dev;

	worker_check(w, EITHER(D(w, cuMemcpyHtoDAsync_v2, (w->dev, w->host, bytes, w->stream),
				 HTOD),
			       D(w, cuMemcpyHtoDAsync_v2_ptsz,
				 (w->dev, w->host, bytes, w->stream), HTOD),
			       R(w, cudaMemcpyAsync, (dev, w->host, bytes, KIND_HTOD, w->stream),
				 HTOD, .kind = KIND_HTOD),
			       R(w, cudaMemcpyAsync_ptsz,
				 (dev, w->host, bytes, KIND_HTOD, w->stream), HTOD,
				 .kind = KIND_HTOD)));
}

void op_dtoh(struct worker *w, size_t bytes)
{
	void *dev = (void *)w->dev;

	worker_check(w, EITHER(D(w, cuMemcpyDtoHAsync_v2, (w->host, w->dev, bytes, w->stream),
				 DTOH),
			       D(w, cuMemcpyDtoHAsync_v2_ptsz,
				 (w->host, w->dev, bytes, w->stream), DTOH),
			       R(w, cudaMemcpyAsync, (w->host, dev, bytes, KIND_DTOH, w->stream),
				 DTOH, .kind = KIND_DTOH),
			       R(w, cudaMemcpyAsync_ptsz,
				 (w->host, dev, bytes, KIND_DTOH, w->stream), DTOH,
				 .kind = KIND_DTOH)));
}

void op_dtod(struct worker *w, size_t bytes)
{
	void *dev = (void *)w->dev, *other = (void *)w->other;

	worker_check(w, EITHER(D(w, cuMemcpyDtoDAsync_v2, (w->other, w->dev, bytes, w->stream),
				 DTOD),
			       D(w, cuMemcpyDtoDAsync_v2_ptsz,
				 (w->other, w->dev, bytes, w->stream), DTOD),
			       R(w, cudaMemcpyAsync, (other, dev, bytes, KIND_DTOD, w->stream),
				 DTOD, .kind = KIND_DTOD),
			       R(w, cudaMemcpyAsync_ptsz,
				 (other, dev, bytes, KIND_DTOD, w->stream), DTOD,
				 .kind = KIND_DTOD)));
}

#define SET .pointer = w->other, .bytes = bytes, ON

void op_set(struct worker *w, size_t bytes)
{
	void *other = (void *)w->other;

	worker_check(w, EITHER(D(w, cuMemsetD8Async, (w->other, 0, bytes, w->stream), SET),
			       D(w, cuMemsetD8Async_ptsz, (w->other, 0, bytes, w->stream), SET),
			       R(w, cudaMemsetAsync, (other, 0, bytes, w->stream), SET),
			       R(w, cudaMemsetAsync_ptsz, (other, 0, bytes, w->stream), SET)));
}

#define EVENT .pointer = U(w->event)

void op_event_record(struct worker *w)
{
	worker_check(w, EITHER(D(w, cuEventRecord, (w->event, w->stream), EVENT, ON),
			       D(w, cuEventRecord_ptsz, (w->event, w->stream), EVENT, ON),
			       R(w, cudaEventRecord, (w->event, w->stream), EVENT, ON),
			       R(w, cudaEventRecord_ptsz, (w->event, w->stream), EVENT, ON)));
}

void op_event_sync(struct worker *w)
{
	worker_check(w, w->job->opt.runtime ? R(w, cudaEventSynchronize, (w->event), EVENT) :
					      D(w, cuEventSynchronize, (w->event), EVENT));
}

int op_event_query(struct worker *w)
{
	return w->job->opt.runtime ? R(w, cudaEventQuery, (w->event), EVENT) :
				     D(w, cuEventQuery, (w->event), EVENT);
}

int op_stream_query(struct worker *w)
{
	return EITHER(D(w, cuStreamQuery, (w->stream), ON),
		      D(w, cuStreamQuery_ptsz, (w->stream), ON),
		      R(w, cudaStreamQuery, (w->stream), ON),
		      R(w, cudaStreamQuery_ptsz, (w->stream), ON));
}

void op_occupancy(struct worker *w, unsigned k)
{
	int blocks, ret;

	if (w->job->opt.runtime)
		ret = R(w, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
			(&blocks, job_stubs[k], 128, 0, 0), .func = U(job_stubs[k]),
			.name = w->job->name[k]);
	else
		ret = D(w, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
			(&blocks, w->job->func[k], 128, 0, 0), .func = U(w->job->func[k]),
			.name = w->job->name[k]);
	worker_check(w, ret);
}

void op_host_func(struct worker *w, CUhostFn fn, void *user)
{
	worker_check(w, w->job->opt.runtime ? R(w, cudaLaunchHostFunc, (w->stream, fn, user), ON) :
					      D(w, cuLaunchHostFunc, (w->stream, fn, user), ON));
}

/* Captures twenty launches. What they leave in memory comes with each launch of the graph. */
void op_graph_build(struct worker *w)
{
	bool runtime = w->job->opt.runtime;
	CUstream s = w->job->opt.per_thread ? SIM_STREAM_PER_THREAD : w->stream;
	uint64_t before = w->expected;
	CUgraph graph = NULL;

	worker_check(w, runtime ? R(w, cudaStreamBeginCapture, (s, 0), .stream = U(s)) :
				  D(w, cuStreamBeginCapture_v2, (s, 0), .stream = U(s)));
	for (unsigned i = 0; i < 20; i++)
		op_launch(w, i % JOB_KERNELS);
	w->expected = before;
	worker_check(w, runtime ? R_OUT(w, cudaStreamEndCapture, (s, &graph), &graph,
					.stream = U(s)) :
				  D_OUT(w, cuStreamEndCapture, (s, &graph), &graph,
					.stream = U(s)));
	worker_check(w, runtime ? R_OUT(w, cudaGraphInstantiate, (&w->graph, graph, 0), &w->graph,
					.source = U(graph)) :
				  D_OUT(w, cuGraphInstantiateWithFlags, (&w->graph, graph, 0),
					&w->graph, .source = U(graph)));
	worker_check(w, runtime ? R(w, cudaGraphDestroy, (graph), .pointer = U(graph)) :
				  D(w, cuGraphDestroy, (graph), .pointer = U(graph)));
}

#define GRAPH .pointer = U(w->graph)

void op_graph_launch(struct worker *w)
{
	int ret = EITHER(D(w, cuGraphLaunch, (w->graph, w->stream), GRAPH, ON),
			 D(w, cuGraphLaunch_ptsz, (w->graph, w->stream), GRAPH, ON),
			 R(w, cudaGraphLaunch, (w->graph, w->stream), GRAPH, ON),
			 R(w, cudaGraphLaunch_ptsz, (w->graph, w->stream), GRAPH, ON));

	worker_check(w, ret);
	for (unsigned i = 0; !ret && i < 20; i++) {
		const struct shape *s = &job_shapes[i % JOB_KERNELS];

		w->expected = w->expected * SIM_MIX + sim_launch_word(s->grid, s->block, s->smem);
	}
}

void op_graph_destroy(struct worker *w)
{
	worker_check(w, w->job->opt.runtime ? R(w, cudaGraphExecDestroy, (w->graph), GRAPH) :
					      D(w, cuGraphExecDestroy, (w->graph), GRAPH));
}
