/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that are cancelled or never return, and processes that fork, execute and die. */
#include "job.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

/* A stream with a kernel on it that never ends. */
struct endless {
	struct worker worker;
	CUmodule module;
	CUstream stream;
	atomic_bool inside;
	unsigned left; /* frames left by the cancelled thread */
};

static int endless_begin(struct endless *e, struct job *job)
{
	static const struct shape one = { { 1, 1, 1 }, { 1, 1, 1 }, 0 };
	struct sim_kernel kernel = { "never_ends", SIM_FOREVER };
	struct sim_image image = { SIM_IMAGE_MAGIC, 1, &kernel };
	uint32_t name = truth_name(kernel.name, 10);
	struct worker *w = &e->worker;
	CUfunction f = NULL;

	e->worker.job = job;
	if (D_OUT(w, cuModuleLoadData, (&e->module, &image), &e->module) ||
	    D_OUT(w, cuModuleGetFunction, (&f, e->module, kernel.name), &f, .name = name,
		  .source = U(e->module)) ||
	    D_OUT(w, cuStreamCreate, (&e->stream, 1), &e->stream))
		return -1;
	w->stream = e->stream;
	op_launch_func(w, f, name, &one);
	return w->unexpected ? -1 : 0;
}

static void endless_end(struct endless *e)
{
	struct worker *w = &e->worker;

	D(w, cuStreamDestroy_v2, (e->stream), .stream = U(e->stream));
	D(w, cuModuleUnload, (e->module), .pointer = U(e->module));
}

static void endless_wait(void *user)
{
	struct endless *e = user;
	struct worker *w = &e->worker;

	atomic_store(&e->inside, true);
	D(w, cuStreamSynchronize, (e->stream), .stream = U(e->stream));
}

static void *endless_thread(void *user)
{
	struct endless *e = user;

	job_guarded(endless_wait, e, &e->left);
	return NULL;
}

static bool cancel_one(struct job *job, unsigned *left)
{
	struct endless e = { 0 };
	void *result = NULL;
	pthread_t id;

	if (endless_begin(&e, job) || pthread_create(&id, NULL, endless_thread, &e))
		return false;
	while (!atomic_load(&e.inside))
		usleep(100);
	usleep(3000);
	pthread_cancel(id);
	pthread_join(id, &result);
	endless_end(&e);
	*left += e.left;
	return result == PTHREAD_CANCELED;
}

static double now(void)
{
	return (double)truth_now() / 1e9;
}

static double end_of(const struct job *job)
{
	return job->opt.duration > 0 ? now() + job->opt.duration : 1e18;
}

void whole_cancel(struct job *job)
{
	double end = end_of(job);
	unsigned cancelled = 0, left = 0;

	for (uint64_t i = 0; i < job->opt.iterations && !job_stop && now() < end; i++)
		cancelled += cancel_one(job, &left);
	if (!job->opt.quiet)
		printf("output cancelled %u destructors %u\n", cancelled, left);
}

void whole_opencall(struct job *job)
{
	struct endless *e = calloc(1, sizeof(*e)); /* its thread outlives this function */
	pthread_t id;

	if (!e || endless_begin(e, job) || pthread_create(&id, NULL, endless_thread, e))
		abort();
	while (!job_stop)
		usleep(2000);
	if (!job->opt.quiet)
		puts("output opencall");
}

static uint64_t run_train(struct job *job)
{
	bool ok = true;
	uint64_t output = job_run_threads(job, job_pattern_find("train"), &ok);

	if (!ok)
		_exit(1);
	return output;
}

static void truth_beside(const struct job_options *o, const char *suffix)
{
	char path[4096];

	if (!o->truth)
		return;
	snprintf(path, sizeof(path), "%s.%s", o->truth, suffix);
	if (truth_open(path, &o->room))
		_exit(1);
}

void whole_fork(struct job *job)
{
	uint64_t first = run_train(job), second;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		truth_beside(&job->opt, "%p");
		run_train(job);
		truth_close();
		_exit(0);
	}
	second = run_train(job);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		abort();
	if (!job->opt.quiet)
		printf("output %016llx %016llx\n", (unsigned long long)first,
		       (unsigned long long)second);
}

/* Replaces this process by a simjob that does pattern n times; its truth has the suffix. */
static void again(const struct job_options *o, const char *pattern, uint64_t n, const char *suffix)
{
	char truth[4096], count[32];
	const char *argv[20] = { o->argv[0], "--pattern", pattern, "--iterations", count };
	unsigned argc = 5;

	snprintf(count, sizeof(count), "%llu", (unsigned long long)n);
	if (o->truth) {
		snprintf(truth, sizeof(truth), "%s.%s", o->truth, suffix);
		argv[argc++] = "--truth";
		argv[argc++] = truth;
	}
	if (o->lib) {
		argv[argc++] = "--lib";
		argv[argc++] = o->lib;
	}
	argv[argc++] = "--api";
	argv[argc++] = o->runtime ? "runtime" : "driver";
	if (o->quiet)
		argv[argc++] = "--quiet";
	argv[argc] = NULL;
	execv("/proc/self/exe", (char **)argv);
	_exit(127);
}

void whole_exec(struct job *job)
{
	uint64_t output = run_train(job);

	if (!job->opt.quiet)
		printf("output %016llx\n", (unsigned long long)output);
	fflush(stdout);
	truth_close();
	again(&job->opt, "train", job->opt.iterations, "exec");
}

static pid_t churn_start(const struct job_options *o)
{
	struct job_options quiet = *o;
	pid_t pid = fork();

	quiet.quiet = true;
	if (pid == 0)
		again(&quiet, "sync", 20, "%p");
	return pid;
}

void whole_churn(struct job *job)
{
	double end = end_of(job);
	uint64_t started = 0, failed = 0;
	unsigned alive = 0;
	int status;

	while (alive || (started < job->opt.iterations && !job_stop && now() < end)) {
		if (alive < job->opt.parallel && started < job->opt.iterations && !job_stop &&
		    now() < end) {
			if (churn_start(&job->opt) < 0)
				abort();
			started++;
			alive++;
		} else if (wait(&status) > 0) {
			alive--;
			failed += status != 0;
		} else if (errno != EINTR) {
			break;
		}
	}
	if (!job->opt.quiet)
		printf("output churn %llu failed %llu\n", (unsigned long long)started,
		       (unsigned long long)failed);
}
