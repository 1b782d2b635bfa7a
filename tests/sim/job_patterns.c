/* SPDX-License-Identifier: BSD-2-Clause */
/* What a job does, step by step. */
#include "job.h"

/*
 * About eighty launches a step, as a small PyTorch model has: forward,
 * backward, optimiser, and one .item() at the end, which waits.
 */
static void step_train(struct worker *w)
{
	op_set(w, 65536);
	op_htod(w, 16384);
	for (unsigned layer = 0; layer < 8; layer++) {
		op_occupancy(w, layer % 2);
		op_launch(w, layer % 2);
		op_cpu(w);
		op_launch(w, 7);
		op_cpu(w);
		op_launch(w, 5);
		op_cpu(w);
		op_launch(w, 4);
		op_cpu(w);
	}
	op_launch(w, 9);
	op_launch(w, 11);
	op_launch(w, 10);
	for (unsigned layer = 0; layer < 8; layer++) {
		op_occupancy(w, 2);
		op_launch(w, 2);
		op_cpu(w);
		op_launch(w, 3);
		op_cpu(w);
		op_launch(w, 6);
		op_cpu(w);
		op_launch(w, 7);
		op_cpu(w);
		op_launch(w, 5);
		op_cpu(w);
	}
	for (unsigned i = 0; i < 4; i++)
		op_launch(w, 8);
	op_event_record(w);
	op_dtoh(w, 4);
	op_stream_sync(w);
}

static void step_tight(struct worker *w)
{
	for (unsigned i = 0; i < 1000; i++)
		op_launch_as(w, 5, &job_shapes[5], LAUNCH_PLAIN);
}

static void step_sync(struct worker *w)
{
	static const struct shape odd = { { 65535, 7, 3 }, { 5, 3, 2 }, 49152 };

	op_launch(w, 0);
	op_stream_sync(w);
	op_launch_as(w, 1, &odd, LAUNCH_COOPERATIVE);
	op_event_record(w);
	op_event_sync(w);
	op_launch_as(w, 5, &odd, LAUNCH_EX);
	op_device_sync(w);
}

static void step_poll(struct worker *w)
{
	op_launch(w, 8);
	op_event_record(w);
	while (op_event_query(w) == SIM_NOT_READY)
		;
	op_launch(w, 8);
	while (op_stream_query(w) == SIM_NOT_READY)
		;
}

static void step_graph(struct worker *w)
{
	if (!w->graph)
		op_graph_build(w);
	for (unsigned i = 0; i < 4; i++)
		op_graph_launch(w);
	op_stream_sync(w);
}

/* Three thousand launches that the device cannot keep up with, then a wait. */
static void step_backpressure(struct worker *w)
{
	for (unsigned i = 0; i < 3000; i++)
		op_launch(w, 8);
	op_stream_sync(w);
}

const struct job_pattern job_patterns[] = {
	{ .name = "train", .help = "training-like steps: ~80 launches, copies, one sync",
	  .step = step_train },
	{ .name = "tight", .help = "1000 launches a step and nothing else", .step = step_tight },
	{ .name = "sync", .help = "launches, each waited for: stream, event, context",
	  .step = step_sync },
	{ .name = "copy", .help = "every form of copy and set", .step = step_copy },
	{ .name = "poll", .help = "queries an event and a stream until they are done",
	  .step = step_poll },
	{ .name = "graph", .help = "captures a graph of 20 kernels, launches it four times a step",
	  .step = step_graph },
	{ .name = "backpressure", .help = "3000 launches a step, more than may be outstanding",
	  .step = step_backpressure },
	{ .name = "errors", .help = "calls that fail, beside some that do not",
	  .step = step_errors, .driver_only = true },
	{ .name = "names", .help = "kernels with hostile names", .step = step_names,
	  .driver_only = true },
	{ .name = "unload", .help = "a module a step; handles come again with other names",
	  .step = step_unload, .driver_only = true },
	{ .name = "nested64", .help = "70 calls nested on one thread", .step = step_nested },
	{ .name = "exception", .help = "C++ exceptions thrown between calls, inside callbacks too",
	  .step = step_exception },
	{ .name = "longjmp", .help = "a callback that jumps out of the call it is in",
	  .step = step_longjmp },
	{ .name = "allocs", .help = "every form of allocation", .step = step_allocs },
	{ .name = "nccl", .help = "collectives", .step = step_nccl },
	{ .name = "cancel", .help = "a thread a step, cancelled inside a sync",
	  .whole = whole_cancel, .driver_only = true },
	{ .name = "opencall", .help = "a thread in cuStreamSynchronize until SIGTERM",
	  .whole = whole_opencall, .driver_only = true },
	{ .name = "fork", .help = "steps, then a child with steps of its own, then more",
	  .whole = whole_fork },
	{ .name = "exec", .help = "steps, then the program again in the same process",
	  .whole = whole_exec },
	{ .name = "churn", .help = "a short-lived process a step", .whole = whole_churn },
	{ .name = "steady", .help = "launches at --rate, a sync after every --sync-every",
	  .step = step_steady },
	{ .name = "nosync", .help = "launches at --rate and no sync", .step = step_nosync },
	{ .name = "burst", .help = "--launches at --rate, a sync, a pause of --gap-us; --random",
	  .step = step_burst },
	{ .name = "periodic", .help = "every --period-us exactly: --launches, then a sync",
	  .step = step_periodic },
	{ .name = "idle-jump",
	  .help = "launches at --rate (0: none) until SIGUSR1 or --jump-after, then at full speed",
	  .step = step_idle_jump },
	{ .name = "longsync", .help = "--launches at --rate, a kernel of --wait-us, a sync",
	  .step = step_longsync, .driver_only = true },
	{ .name = "hiccup",
	  .help = "steady, and a kernel of --wait-us, waited for, at --jump-after or each SIGUSR1",
	  .step = step_hiccup, .driver_only = true },
	{ .name = "many", .help = "20 APIs, each --rate times a second", .step = step_many,
	  .driver_only = true },
	{ .name = "leak", .help = "allocates --size --rate times a second, keeps 1 of --keep-every",
	  .step = step_leak, .driver_only = true },
	{ .name = "waits", .help = "launches for --work-us, then waits --wait-us as --what says",
	  .step = step_waits },
	{ .name = "streams", .help = "kernels and graphs on eight streams a thread, streams reused",
	  .step = step_streams, .driver_only = true },
	{ .name = "overlap", .help = "two streams, each with kernels of 1 ms",
	  .step = step_overlap, .driver_only = true },
	{ .name = "mix", .help = "100 kernels of 1.5 us, then one of 1 ms", .step = step_mix,
	  .driver_only = true },
	{ .name = "matmul64", .help = "(a@b)+bias of 64: 4.4 us a step; --cpu-ns: the host's part",
	  .step = step_matmul64, .driver_only = true },
	{ .name = "matmul4096", .help = "the same of 4096: 2.7 ms a step",
	  .step = step_matmul4096, .driver_only = true },
	{ .name = "pageable", .help = "copies from and to memory that is not pinned",
	  .step = step_pageable, .driver_only = true },
	{ .name = "peer", .help = "copies to another device and back: --devices 2",
	  .step = step_peer, .driver_only = true },
	{ .name = "forks", .help = "train, while a thread forks children that do nothing",
	  .whole = whole_forks },
	{ .name = "reset", .help = "train, a reset of the device with work under way, and again",
	  .whole = whole_reset, .driver_only = true },
	{ .name = "midexit", .help = "ends with 50 ms of work under way", .whole = whole_midexit,
	  .driver_only = true },
	{ .name = "dlopen-late", .help = "train; with --late S the libraries come late",
	  .step = step_train },
	{ .name = NULL },
};
