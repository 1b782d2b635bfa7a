/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/inject.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "inject/load.h"
#include "inject/private.h"

#ifdef __x86_64__

#define BUSY_NS 5000000 /* until we try again when others keep the dynamic linker busy */

/*
 * A thread of ours that traced can be gone for pthread_join(), and still be about to let go:
 * until then ptrace() says of whom it traced that it is not permitted.
 */
#define DENIED_NS 200000000

#define STOPPED_MAX 64 /* threads told apart; the last ones count as one */

struct stopped {
	uint32_t tid;
	int64_t ns; /* in all */
};

/* One thread of ours that traces: when it ends, the kernel lets go of whom it traced. */
struct attempt {
	struct inject_plan *plan;
	struct catcher *catcher;
	const struct inject_options *options;
	struct inject_result *result;
	int64_t until;
	int64_t denied; /* since when ptrace() is not permitted; 0: it is */
	int err, filters_err;
	struct stopped stopped[STOPPED_MAX];
};

static void account(struct attempt *a, uint32_t tid, int64_t ns)
{
	struct stopped *s = a->stopped, *end = a->stopped + STOPPED_MAX;

	while (s + 1 < end && s->tid && s->tid != tid)
		s++;
	s->tid = tid;
	s->ns += ns;
	if (s->ns > a->result->stopped_ns)
		a->result->stopped_ns = s->ns;
	if (ns > a->result->longest_ns)
		a->result->longest_ns = ns;
}

/*
 * The filters of a stopped thread are read in microseconds, and judged when it has been
 * let go: a thread with the same ones can be used then.
 */
static bool filters_allow(struct attempt *a, uint32_t tid)
{
	struct filters now;
	bool known;

	a->filters_err = 0;
	if (!a->plan->filtered)
		return true;
	a->filters_err = filters_read(&now, tid);
	if (a->filters_err)
		return false;
	known = a->plan->filters_good && filters_equal(&now, &a->plan->filters);
	filters_free(&a->plan->filters);
	a->plan->filters = now;
	a->plan->filters_good = known;
	return known;
}

/* -EAGAIN: try another thread now. */
static int filters_look(struct attempt *a)
{
	struct inject_plan *p = a->plan;
	long nr;

	if (!p->filtered || p->filters_good)
		return -EAGAIN;
	if (a->filters_err)
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process has a seccomp filter, which cannot be read (%s): "
				     "it could kill the process for our system calls.",
				     strerror(-a->filters_err));
	p->filters_good = !filters_judge(&p->filters, &nr);
	if (p->filters_good)
		return -EAGAIN;
	return inject_refuse(p, -EOPNOTSUPP,
			     "The process has a seccomp filter that does not allow what is needed "
			     "(system call %ld), or would do worse than refuse it.",
			     nr);
}

/* With the thread stopped where it was caught. */
static int use(struct attempt *a, struct tracee *t, uint32_t tid)
{
	struct loading l = {
		.plan = a->plan,
		.tracee = t,
		.options = a->options,
		.result = a->result,
		.until = a->until,
	};
	bool stands = true;
	int left, err = -EAGAIN;

	if (inject_safe(a->plan, tracee_sp(t)) && filters_allow(a, tid))
		err = load(&l, &stands);
	left = stands ? tracee_leave(t) : 0; /* also where it gave up waiting for us */
	a->result->left += !stands || left;
	if (left && !err)
		err = inject_refuse(a->plan, left, "The thread was lost (%s).", strerror(-left));
	left = stands ? tracee_release(t) : -ESTALE;
	if (left && err == -EAGAIN)
		err = -ESTALE; /* it has gone on and is still ours: this thread has to end */
	account(a, tid, tracee_stopped_ns(t));
	return err == -EAGAIN ? filters_look(a) : err;
}

static bool denied_for_long(struct attempt *a)
{
	int64_t now = inject_now();

	if (!a->denied)
		a->denied = now;
	return now - a->denied >= DENIED_NS;
}

/* -EAGAIN: this thread was not the right one. -ESTALE: likewise, and we must let go of it. */
static int try_thread(struct attempt *a, uint32_t *tid)
{
	struct caught c = {0};
	struct tracee *t;
	int err = catcher_catch(a->catcher, a->until, &c);

	*tid = c.tid;
	if (err == -EPERM && !denied_for_long(a))
		return -EBUSY;
	if (err != -EPERM)
		a->denied = 0;
	if (err == -EPERM)
		return inject_refuse(a->plan, err,
				     "ptrace(2) is not permitted on the process: it takes "
				     "CAP_SYS_PTRACE, no other tracer, and "
				     "kernel.yama.ptrace_scope below 3.");
	if (err)
		return err;
	err = tracee_new(&t, a->plan, &c);
	if (err)
		return err;
	err = tracee_begin(t);
	if (!err)
		err = use(a, t, c.tid);
	tracee_free(t);
	return err;
}

static void *attempt_run(void *arg)
{
	const struct timespec busy = {.tv_nsec = BUSY_NS};
	struct attempt *a = arg;
	uint32_t tid;

	prctl(PR_SET_TIMERSLACK, 1); /* of this thread: it sleeps for microseconds */
	do {
		a->err = try_thread(a, &tid);
		if (a->err == -EBUSY)
			nanosleep(&busy, NULL);
		catcher_next(a->catcher, tid);
	} while ((a->err == -EAGAIN || a->err == -EBUSY) && inject_now() < a->until);
	return NULL;
}

/* Signals are for other threads. */
static int attempt(struct attempt *a)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, attempt_run, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return a->err;
}

static int none_came(struct attempt *a)
{
	if (!catcher_passed(a->catcher))
		return inject_refuse(a->plan, -EAGAIN,
				     "No thread of the process completed a wait (poll, "
				     "sleep, a condition variable ...) in this time, "
				     "where alone it is safe; try for longer.");
	return inject_refuse(a->plan, -EAGAIN,
			     "No thread of the process was at a safe place in this "
			     "time; try again or for longer.");
}

static int attempts(struct inject_plan *p, const struct inject_options *o, struct inject_result *r,
		    int64_t until)
{
	struct attempt a = {.plan = p, .options = o, .result = r, .until = until};
	int err = catcher_new(&a.catcher, p);

	if (err)
		return err;
	do {
		err = attempt(&a);
	} while ((err == -EAGAIN || err == -ESTALE) && inject_now() < until);
	if (err == -EAGAIN || err == -ESTALE)
		err = none_came(&a);
	else if (err == -ESRCH)
		inject_refuse(p, err, "The process, or the thread that was borrowed, has ended.");
	else if (err && !p->why[0])
		inject_refuse(p, err, "Injecting failed (%s).", strerror(-err));
	catcher_free(a.catcher);
	return err;
}

int inject(uint32_t pid, const struct inject_options *o, struct inject_result *r)
{
	struct inject_plan p = {.pid = pid, .pidfd = -1, .why = r->why};
	int64_t until = inject_now() + o->limit_ns;
	int err;

	*r = (struct inject_result){.socket = -1};
	err = inject_look(&p, o);
	if (!err)
		err = inject_find(&p, o);
	if (!err)
		err = attempts(&p, o, r, until);
	inject_plan_free(&p);
	if (!err)
		r->why[0] = '\0';
	else if (r->socket >= 0)
		close(r->socket);
	if (err)
		r->socket = -1;
	return err;
}

#else

int inject(uint32_t pid, const struct inject_options *o, struct inject_result *r)
{
	*r = (struct inject_result){
		.socket = -1,
		.why = "Loading a library into a running process works on x86-64 only.",
	};
	return -ENOTSUP;
}

#endif
