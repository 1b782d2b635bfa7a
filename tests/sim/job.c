/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

volatile sig_atomic_t job_stop;

static void stop(int sig)
{
	job_stop = 1;
}

static double seconds(void)
{
	return (double)truth_now() / 1e9;
}

static int alloc_driver(struct worker *w)
{
	int ret = D(w, cuCtxSetCurrent, (w->ctx), .pointer = U(w->ctx));

	if (!w->job->opt.per_thread)
		ret |= D_OUT(w, cuStreamCreate, (&w->stream, 1), &w->stream);
	ret |= D_OUT(w, cuEventCreate, (&w->event, 2), &w->event);
	ret |= D_OUT(w, cuMemAlloc_v2, (&w->acc, 512), &w->acc, .bytes = 512);
	ret |= D_OUT(w, cuMemAlloc_v2, (&w->dev, JOB_BUFFER), &w->dev, .bytes = JOB_BUFFER);
	ret |= D_OUT(w, cuMemAlloc_v2, (&w->other, JOB_BUFFER), &w->other, .bytes = JOB_BUFFER);
	ret |= D_OUT(w, cuMemHostAlloc, ((void **)&w->host, JOB_BUFFER, 0), (void **)&w->host,
		     .bytes = JOB_BUFFER);
	return ret;
}

static int alloc_runtime(struct worker *w)
{
	void **acc = (void **)&w->acc, **dev = (void **)&w->dev, **other = (void **)&w->other;
	void **host = (void **)&w->host;
	int ret = R_OUT(w, cudaMalloc, (acc, 512), acc, .bytes = 512);

	if (!w->job->opt.per_thread)
		ret |= R_OUT(w, cudaStreamCreateWithFlags, (&w->stream, 1), &w->stream);
	ret |= R_OUT(w, cudaEventCreateWithFlags, (&w->event, 2), &w->event);
	ret |= R_OUT(w, cudaMalloc, (dev, JOB_BUFFER), dev, .bytes = JOB_BUFFER);
	ret |= R_OUT(w, cudaMalloc, (other, JOB_BUFFER), other, .bytes = JOB_BUFFER);
	ret |= R_OUT(w, cudaMallocHost, (host, JOB_BUFFER), host, .bytes = JOB_BUFFER);
	return ret;
}

int worker_begin(struct worker *w)
{
	bool runtime = w->job->opt.runtime;
	uint64_t seed = w->job->opt.seed + w->index;
	void *acc;
	int ret = runtime ? alloc_runtime(w) : alloc_driver(w);

	if (ret) {
		fprintf(stderr, "simjob: a thread could not begin: error %d\n", ret);
		return -1;
	}
	acc = (void *)w->acc;
	w->expected = seed;
	if (runtime)
		return R(w, cudaMemcpy, (acc, &seed, 8, KIND_HTOD), .pointer = w->acc,
			 .source = U(&seed), .bytes = 8, .kind = KIND_HTOD);
	return D(w, cuMemcpyHtoD_v2, (w->acc, &seed, 8), .pointer = w->acc, .source = U(&seed),
		 .bytes = 8);
}

static void free_driver(struct worker *w)
{
	worker_check(w, D(w, cuMemFreeHost, (w->host), .pointer = U(w->host)));
	worker_check(w, D(w, cuMemFree_v2, (w->other), .pointer = w->other));
	worker_check(w, D(w, cuMemFree_v2, (w->dev), .pointer = w->dev));
	worker_check(w, D(w, cuMemFree_v2, (w->acc), .pointer = w->acc));
	worker_check(w, D(w, cuEventDestroy_v2, (w->event), .pointer = U(w->event)));
	if (w->stream)
		worker_check(w, D(w, cuStreamDestroy_v2, (w->stream), .stream = U(w->stream)));
}

static void free_runtime(struct worker *w)
{
	worker_check(w, R(w, cudaFreeHost, (w->host), .pointer = U(w->host)));
	worker_check(w, R(w, cudaFree, ((void *)w->other), .pointer = w->other));
	worker_check(w, R(w, cudaFree, ((void *)w->dev), .pointer = w->dev));
	worker_check(w, R(w, cudaFree, ((void *)w->acc), .pointer = w->acc));
	worker_check(w, R(w, cudaEventDestroy, (w->event), .pointer = U(w->event)));
	if (w->stream)
		worker_check(w, R(w, cudaStreamDestroy, (w->stream), .stream = U(w->stream)));
}

void worker_end(struct worker *w)
{
	uint64_t *out = &w->output;
	void *acc = (void *)w->acc;

	op_device_sync(w);
	worker_check(w, w->job->opt.runtime ?
				R(w, cudaMemcpy, (out, acc, 8, KIND_DTOH), .pointer = U(out),
				  .source = w->acc, .bytes = 8, .kind = KIND_DTOH) :
				D(w, cuMemcpyDtoH_v2, (out, w->acc, 8), .pointer = U(out),
				  .source = w->acc, .bytes = 8));
	helper_free(w->helper);
	if (w->slow)
		worker_check(w, D(w, cuModuleUnload, (w->slow), .pointer = U(w->slow)));
	if (w->graph)
		op_graph_destroy(w);
	gpu_free(w);
	if (w->comm)
		worker_check(w, N(w, ncclCommDestroy, (w->comm), .pointer = U(w->comm)));
	if (w->job->opt.runtime)
		free_runtime(w);
	else
		free_driver(w);
}

void worker_run(struct worker *w, const struct job_pattern *p)
{
	double duration = w->job->opt.duration;

	w->began = seconds();
	w->until = duration > 0 ? w->began + duration : 0;
	while (!job_stop && w->steps < w->job->opt.iterations &&
	       (w->until == 0 || seconds() < w->until)) {
		p->step(w);
		w->steps++;
	}
}

struct thread {
	pthread_t id;
	struct worker worker;
	const struct job_pattern *pattern;
	bool begun;
};

static void *thread_main(void *user)
{
	struct thread *t = user;

	t->begun = !worker_begin(&t->worker);
	if (t->begun) {
		worker_run(&t->worker, t->pattern);
		worker_end(&t->worker);
	}
	return NULL;
}

static bool worker_right(const struct worker *w)
{
	if (w->output == w->expected && (!w->unexpected || w->job->opt.fail))
		return true;
	fprintf(stderr, "simjob: thread %u: %llu errors, output %016llx, not %016llx\n", w->index,
		(unsigned long long)w->unexpected, (unsigned long long)w->output,
		(unsigned long long)w->expected);
	return false;
}

/* The first worker is the main thread, as in most programs. */
uint64_t job_run_threads(struct job *job, const struct job_pattern *p, bool *ok)
{
	unsigned n = job->opt.threads;
	struct thread *threads = calloc(n, sizeof(*threads));
	uint64_t output = 0;

	if (!threads)
		abort();
	for (unsigned i = 0; i < n; i++)
		threads[i] = (struct thread){ .worker = { .job = job, .index = i,
							  .ctx = job->ctx[i % job->opt.devices] },
					      .pattern = p };
	for (unsigned i = 1; i < n; i++)
		if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]))
			abort();
	thread_main(&threads[0]);
	for (unsigned i = 1; i < n; i++)
		pthread_join(threads[i].id, NULL);
	for (unsigned i = 0; i < n; i++) {
		struct worker *w = &threads[i].worker;

		if (!threads[i].begun || !worker_right(w))
			*ok = false;
		output = output * SIM_MIX + w->output;
	}
	free(threads);
	return output;
}

static void pause_until_stop(void)
{
	while (!job_stop)
		usleep(5000);
}

static int run(struct job *job, const struct job_pattern *p)
{
	bool ok = true;
	uint64_t output;

	if (job_begin(job)) {
		fprintf(stderr, "simjob: no context or kernels\n");
		return 1;
	}
	if (p->whole) {
		p->whole(job);
	} else {
		output = job_run_threads(job, p, &ok);
		if (!job->opt.quiet)
			printf("output %016llx\n", (unsigned long long)output);
	}
	fflush(stdout);
	if (job->opt.hold)
		pause_until_stop();
	return ok ? 0 : 1;
}

/* Children are forked before anything is loaded, as launchers do. The truth file is FILE.PID. */
static bool fork_children(struct job_options *o)
{
	static char path[4096];

	for (unsigned i = 0; i < o->children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid)
			continue;
		if (o->truth) {
			snprintf(path, sizeof(path), "%s.%d", o->truth, getpid());
			o->truth = path;
		}
		o->seed += i + 1;
		return true;
	}
	return false;
}

static int wait_children(unsigned children)
{
	int bad = 0, status;

	while (children > 0 && wait(&status) > 0) {
		children--;
		bad |= status != 0;
	}
	return bad;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = stop };
	sigset_t usr1;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
}

int main(int argc, char **argv)
{
	static struct job job;
	struct job_options *o = &job.opt;
	int err = 0;
	bool child;

	if (job_parse(o, argc, argv))
		return 2;
	signals();
	child = fork_children(o);
	if (o->truth && (err = truth_open(o->truth, &o->room))) {
		fprintf(stderr, "simjob: %s: %s\n", o->truth, strerror(-err));
		return 1;
	}
	if (!o->quiet)
		printf("ready %d\n", getpid());
	fflush(stdout);
	if (o->late > 0)
		usleep((useconds_t)(o->late * 1e6));
	if (job_load(&job))
		return 1;
	job_wait_start(o);
	if (job_profiler_begin(&job))
		return 1;
	err = run(&job, job_pattern_find(o->pattern));
	job_profiler_end();
	truth_close();
	if (!child)
		err |= wait_children(o->children);
	fflush(stdout);
	exit(err);
}
