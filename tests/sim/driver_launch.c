/* SPDX-License-Identifier: BSD-2-Clause */
/* Launches, streams and events. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

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
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(stream, false), LAUNCH_OF));
}

SIM_EXPORT CUresult cuLaunchKernel_ptsz(LAUNCH_PARAMS, void **extra)
{
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(stream, true), LAUNCH_OF));
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel(LAUNCH_PARAMS)
{
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(stream, false), LAUNCH_OF));
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(LAUNCH_PARAMS)
{
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(stream, true), LAUNCH_OF));
}

SIM_EXPORT CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction f,
				     void **params, void **extra)
{
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(config->stream, false), LAUNCH_CONFIG));
}

SIM_EXPORT CUresult cuLaunchKernelEx_ptsz(const struct cu_launch_config *config, CUfunction f,
					  void **params, void **extra)
{
	SIM_CALL();
	SIM_RETURN(sim_launch(sim_stream(config->stream, true), LAUNCH_CONFIG));
}

/* There is no device thread to call it: the caller does, at once. */
SIM_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
	SIM_CALL();
	if (!fn)
		SIM_RETURN(SIM_INVALID_VALUE);
	fn(user);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *user)
{
	SIM_CALL();
	if (!fn)
		SIM_RETURN(SIM_INVALID_VALUE);
	fn(user);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	SIM_CALL();
	*stream = sim_stream_new();
	SIM_RETURN(*stream ? SIM_SUCCESS : SIM_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	SIM_CALL();
	*stream = sim_stream_new();
	SIM_RETURN(*stream ? SIM_SUCCESS : SIM_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	SIM_CALL();
	if (!stream || stream == SIM_STREAM_LEGACY || stream == SIM_STREAM_PER_THREAD)
		SIM_RETURN(SIM_INVALID_HANDLE);
	sim_stream_free(stream);
	SIM_RETURN(SIM_SUCCESS);
}

#define TWINS(name, params, ...)                                                                   \
	SIM_EXPORT CUresult name params                                                            \
	{                                                                                          \
		const bool per_thread = false;                                                     \
		SIM_CALL();                                                                      \
		SIM_RETURN((__VA_ARGS__));                                                         \
	}                                                                                          \
	SIM_EXPORT CUresult name##_ptsz params                                                     \
	{                                                                                          \
		const bool per_thread = true;                                                      \
		SIM_CALL();                                                                      \
		SIM_RETURN((__VA_ARGS__));                                                         \
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
	SIM_CALL();
	*event = calloc(1, sizeof(**event));
	SIM_RETURN(*event ? SIM_SUCCESS : SIM_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	SIM_CALL();
	free(event);
	SIM_RETURN(event ? SIM_SUCCESS : SIM_INVALID_HANDLE);
}

SIM_EXPORT CUresult cuEventQuery(CUevent event)
{
	SIM_CALL();
	SIM_RETURN(event ? reached(atomic_load(&event->at)) : SIM_INVALID_HANDLE);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent event)
{
	SIM_CALL();
	SIM_RETURN(event ? wait_end(atomic_load(&event->at)) : SIM_INVALID_HANDLE);
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
	SIM_CALL();
	SIM_RETURN(elapsed(ms, start, end));
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	SIM_CALL();
	SIM_RETURN(elapsed(ms, start, end));
}
