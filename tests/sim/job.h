/* SPDX-License-Identifier: BSD-2-Clause */
/* A job: threads that call the simulated CUDA and write down what they did. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <signal.h>
#include <stdbool.h>

#include "job_throw.h"
#include "table.h"

#define JOB_KERNELS 12
#define JOB_HELPERS 4 /* threads beside the workers that may write down something */
#define JOB_BUFFER (1u << 20) /* bytes of each thread's buffers */

/* Numbers that patterns go by; job_knobs.c names, explains and defaults them. */
struct job_knobs {
	double rate, sync_every, launches, gap_us, period_us, random, jump_after;
	double work_us, wait_us, size, keep_every, timeline, bin_us;
	double profiler_start, profiler_stop;
};

struct job_options {
	const char *pattern, *truth, *lib, *wait_file, *fail, *name_mode;
	bool runtime, per_thread, hold, wait_usr1, quiet;
	unsigned threads, children, parallel;
	uint64_t iterations, seed;
	struct truth_room room;
	struct job_knobs knobs;
	const char *what; /* of pattern waits */
	const char *profiler, *cupti;
	int64_t latency_ns;
	unsigned devices;
	double duration, start_delay, late;
	int64_t kernel_ns, dispatch_ns, cold_ns, cpu_ns, name_offset;
	const char *wait_mode;
	char **argv; /* to start itself again */
};

struct job {
	struct job_options opt;
	struct driver_table drv;
	struct runtime_table rt;
	struct nccl_table nccl;
	void *libcuda;
	CUcontext ctx[SIM_DEVICES]; /* by device */
	CUmodule module;
	CUlibrary library;
	CUfunction func[JOB_KERNELS]; /* some a CUfunction, some a CUkernel */
	uint32_t name[JOB_KERNELS];
	atomic_bool jumped; /* pattern idle-jump */
};

struct gpu;
struct helper; /* the other thread of pattern waits */

struct worker {
	struct job *job;
	unsigned index;
	CUstream stream; /* NULL with --per-thread */
	CUevent event;
	CUgraphExec graph;
	ncclComm_t comm;
	CUdeviceptr acc;   /* where launches leave their mark */
	CUdeviceptr dev;   /* JOB_BUFFER bytes */
	CUdeviceptr other; /* as many */
	char *host;	   /* as many, pinned */
	uint64_t expected; /* what *acc must be */
	uint64_t output;   /* what it was */
	uint64_t steps, unexpected, notes;
	double began, until; /* seconds of CLOCK_MONOTONIC; until 0: no end */
	int64_t next; /* ns, CLOCK_MONOTONIC: when what is paced goes on */
	uint64_t random, unsynced; /* state of its random numbers; launches since the last sync */
	struct helper *helper;
	CUmodule slow; /* pattern longsync */
	CUfunction slow_kernel;
	CUcontext ctx;
	struct gpu *gpu; /* patterns of job_gpu.c */
};

struct job_pattern {
	const char *name;
	const char *help;
	void (*step)(struct worker *w); /* once an iteration */
	void (*whole)(struct job *job); /* instead of threads that step */
	bool driver_only;
};

extern const struct job_pattern job_patterns[];
extern volatile sig_atomic_t job_stop; /* SIGTERM or SIGINT came */

/* job_setup.c */
int job_parse(struct job_options *o, int argc, char **argv);
const struct job_pattern *job_pattern_find(const char *name);
int job_load(struct job *job);	/* opens the libraries */
int job_begin(struct job *job); /* context, module, functions */
void job_wait_start(const struct job_options *o);
/* The library of that name or path, mapped; NULL and a message if there is none. */
void *job_open_library(const struct job_options *o, const char *name);

/* job_profiler.c */
bool job_profiler_known(const char *how);
int job_profiler_begin(struct job *job); /* opens CUPTI if there is to be a profiler */
void job_profiler_end(void);

/* job_knobs.c */
#define JOB_KNOB 1000 /* the first one's value for getopt_long */
struct option;
size_t job_knobs_options(struct option *out, size_t room); /* how many */
void job_knobs_default(struct job_knobs *k);
bool job_knobs_set(struct job_knobs *k, int option, double value); /* false: no such */
void job_knobs_help(void);

/* job.c */
int worker_begin(struct worker *w);
void worker_end(struct worker *w);
void worker_run(struct worker *w, const struct job_pattern *p);
/* Runs the pattern on threads; the combined output, and false in *ok if any thread's was wrong. */
uint64_t job_run_threads(struct job *job, const struct job_pattern *p, bool *ok);

/* job_calls.c: one operation each, in the driver's words or the runtime's */
struct shape {
	unsigned grid[3], block[3], smem;
};
void op_launch(struct worker *w, unsigned kernel);
void op_launch_as(struct worker *w, unsigned kernel, const struct shape *shape, unsigned how);
void op_launch_func(struct worker *w, CUfunction f, uint32_t name, const struct shape *shape);
void op_stream_sync(struct worker *w);
void op_device_sync(struct worker *w);
void op_htod(struct worker *w, size_t bytes);
void op_dtoh(struct worker *w, size_t bytes);
void op_dtod(struct worker *w, size_t bytes);
void op_set(struct worker *w, size_t bytes);
void op_event_record(struct worker *w);
void op_event_sync(struct worker *w);
int op_event_query(struct worker *w);
int op_stream_query(struct worker *w);
void op_occupancy(struct worker *w, unsigned kernel);
void op_graph_build(struct worker *w);
void op_graph_launch(struct worker *w);
void op_graph_destroy(struct worker *w);
void op_host_func(struct worker *w, CUhostFn fn, void *user);
void op_cpu(struct worker *w); /* the program's own work between calls */
void worker_check(struct worker *w, int ret); /* counts errors nobody asked for */

enum { LAUNCH_PLAIN, LAUNCH_EX, LAUNCH_COOPERATIVE };

/* job_setup.c: the kernels of the training step */
extern const struct sim_kernel job_kernels[JOB_KERNELS];
extern const struct shape job_shapes[JOB_KERNELS];
extern const rt_func job_stubs[JOB_KERNELS];

/* job_copies.c, job_special.c, job_process.c */
void step_copy(struct worker *w);
void step_names(struct worker *w);
void step_unload(struct worker *w);
void step_nested(struct worker *w);
void step_exception(struct worker *w);
void step_longjmp(struct worker *w);
void step_allocs(struct worker *w);
void step_errors(struct worker *w);
void step_nccl(struct worker *w);
void step_steady(struct worker *w);
void step_nosync(struct worker *w);
void step_burst(struct worker *w);
void step_periodic(struct worker *w);
void step_idle_jump(struct worker *w);
void step_hiccup(struct worker *w);
void step_longsync(struct worker *w);
void step_many(struct worker *w);
void step_leak(struct worker *w);
void step_waits(struct worker *w);
void step_streams(struct worker *w);
void step_overlap(struct worker *w);
void step_mix(struct worker *w);
void step_matmul64(struct worker *w);
void step_matmul4096(struct worker *w);
void step_pageable(struct worker *w);
void step_peer(struct worker *w);
void gpu_free(struct worker *w); /* what these keep */
void helper_free(struct helper *h); /* ends its thread; NULL is accepted */
int job_what(const char *name);	    /* is that a wait that step_waits knows? */
/* job_rates.c: asleep, then spinning, until ns of CLOCK_MONOTONIC or the job is to stop. */
void job_wait_until(int64_t ns);
void whole_cancel(struct job *job);
void whole_opencall(struct job *job);
void whole_fork(struct job *job);
void whole_exec(struct job *job);
void whole_churn(struct job *job);
void whole_forks(struct job *job);
void whole_reset(struct job *job);
void whole_midexit(struct job *job);

#define U(x) ((uintptr_t)(x))
#define D(w, name, actual, ...)                                                                    \
	TRUTH_CALL(truth_self(), &(w)->job->drv, name, actual, __VA_ARGS__)
#define D_OUT(w, name, actual, out, ...)                                                           \
	TRUTH_CALL_OUT(truth_self(), &(w)->job->drv, name, actual, out, __VA_ARGS__)
#define R(w, name, actual, ...)                                                                    \
	TRUTH_CALL(truth_self(), &(w)->job->rt, name, actual, __VA_ARGS__)
#define R_OUT(w, name, actual, out, ...)                                                           \
	TRUTH_CALL_OUT(truth_self(), &(w)->job->rt, name, actual, out, __VA_ARGS__)
#define N(w, name, actual, ...)                                                                    \
	TRUTH_CALL(truth_self(), &(w)->job->nccl, name, actual, __VA_ARGS__)
#define N_OUT(w, name, actual, out, ...)                                                           \
	TRUTH_CALL_OUT(truth_self(), &(w)->job->nccl, name, actual, out, __VA_ARGS__)

#endif
