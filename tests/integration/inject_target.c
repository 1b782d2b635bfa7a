/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_target KIND...: a thread for each kind, which waits as it says and checks that
 * no wait is cut short, no register changed and no memory spoiled. Says "ready", runs
 * until its standard input ends, then prints what each did: "KIND rounds errors", and
 * exits with 1 if there were any errors. "main KIND" in front: in the first thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/inject_regs.h"

#define WAIT_MS 4
#define WAIT_NS (WAIT_MS * 1000000L)
#define PIPE_BIG 300000 /* more than a pipe holds: writing it waits */

struct worker {
	const char *kind;
	void (*round)(struct worker *w);
	pthread_t thread;
	int fds[2];
	unsigned seed;
	unsigned long rounds, errors;
};

static atomic_bool ending;
static atomic_int started;

static void check(struct worker *w, bool good, const char *what)
{
	if (good)
		return;
	w->errors++;
	fprintf(stderr, "%s: %s (errno %d)\n", w->kind, what, errno);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* A wait that only time ends: result as expected, and not before its time. */
static void waited(struct worker *w, int64_t since, bool good)
{
	check(w, good, "not the result of a wait that lasted");
	check(w, now_ns() - since >= WAIT_NS - 200000, "too short");
}

static void do_epoll(struct worker *w)
{
	struct epoll_event event;
	int64_t since = now_ns();

	if (!w->fds[0])
		w->fds[0] = epoll_create1(EPOLL_CLOEXEC);
	waited(w, since, epoll_wait(w->fds[0], &event, 1, WAIT_MS) == 0);
}

static void do_recv(struct worker *w)
{
	const struct timeval limit = {.tv_usec = WAIT_MS * 1000};
	char byte;

	if (!w->fds[0]) {
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, w->fds);
		setsockopt(w->fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	}
	/* It counts in ticks, which come late and all at once in virtual machines: no time here. */
	check(w, recv(w->fds[0], &byte, 1, 0) == -1 && errno == EAGAIN, "recv() cut short");
}

static void do_sigtimedwait(struct worker *w)
{
	const struct timespec limit = {.tv_nsec = WAIT_NS};
	int64_t since = now_ns();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	waited(w, since, sigtimedwait(&set, NULL, &limit) == -1 && errno == EAGAIN);
}

static void do_poll(struct worker *w)
{
	int64_t since = now_ns();

	waited(w, since, poll(NULL, 0, WAIT_MS) == 0);
}

static void do_select(struct worker *w)
{
	struct timeval limit = {.tv_usec = WAIT_MS * 1000};
	int64_t since = now_ns();

	waited(w, since, select(0, NULL, NULL, NULL, &limit) == 0);
}

static void do_nanosleep(struct worker *w)
{
	const struct timespec limit = {.tv_nsec = WAIT_NS};
	int64_t since = now_ns();

	waited(w, since, nanosleep(&limit, NULL) == 0);
}

static void do_futex(struct worker *w)
{
	const struct timespec limit = {.tv_nsec = WAIT_NS};
	int64_t since = now_ns();
	static int word;

	waited(w, since, syscall(SYS_futex, &word, 0, 0, &limit, NULL, 0) == -1 &&
				 errno == ETIMEDOUT);
}

static void do_cond(struct worker *w)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	int64_t since = now_ns();
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	err = pthread_cond_timedwait(&never, &lock, &until);
	pthread_mutex_unlock(&lock);
	waited(w, since, err == ETIMEDOUT);
}

static void *write_slowly(void *arg)
{
	struct worker *w = arg;
	uint64_t n;

	for (n = 0; !ending; n++) {
		usleep(WAIT_MS * 1000);
		if (write(w->fds[1], &n, sizeof(n)) != sizeof(n))
			break;
	}
	close(w->fds[1]);
	return NULL;
}

/* Sleeps in read() until somebody writes. */
static void do_read(struct worker *w)
{
	static pthread_t writer;
	ssize_t n;
	uint64_t value;

	if (!w->fds[0]) {
		if (pipe(w->fds) || pthread_create(&writer, NULL, write_slowly, w))
			exit(2);
	}
	n = read(w->fds[0], &value, sizeof(value));
	check(w, (n == 0 && ending) || (n == sizeof(value) && value == w->rounds),
	      "read() cut short");
}

static void *read_slowly(void *arg)
{
	struct worker *w = arg;
	char bytes[20000];

	while (read(w->fds[0], bytes, sizeof(bytes)) > 0)
		usleep(500);
	return NULL;
}

/* An interrupted write of more than the pipe holds would be a short one. */
static void do_write(struct worker *w)
{
	static pthread_t reader;
	static char bytes[PIPE_BIG];

	if (!w->fds[0]) {
		if (pipe(w->fds) || pthread_create(&reader, NULL, read_slowly, w))
			exit(2);
	}
	check(w, write(w->fds[1], bytes, sizeof(bytes)) == sizeof(bytes), "write() cut short");
}

static void do_malloc(struct worker *w)
{
	static const size_t sizes[] = {24, 700, 5000, 140000};
	unsigned char *p[32];
	size_t i, j, n;

	for (i = 0; i < 32; i++) {
		n = sizes[rand_r(&w->seed) % 4];
		p[i] = malloc(n);
		memset(p[i], (int)i, n);
		if (i % 3 == 2) {
			p[i] = realloc(p[i], n * 2);
			memset(p[i] + n, (int)i, n);
		}
	}
	for (i = 0; i < 32; i++) {
		for (j = 0; j < 24; j++)
			check(w, p[i][j] == i, "memory spoiled");
		free(p[i]);
	}
	if (w->rounds % 8 == 0)
		poll(NULL, 0, 1);
}

static void do_dlopen(struct worker *w)
{
	const char *name = getenv("INJECT_TARGET_LIBRARY");
	void *library = dlopen(name ? name : "libBrokenLocale.so.1", RTLD_NOW);

	check(w, library != NULL, library ? "" : dlerror());
	if (library)
		check(w, !dlclose(library), "dlclose() failed");
	if (name)
		usleep(20000);
	else if (w->rounds % 8 == 0)
		poll(NULL, 0, 1);
}

static void do_spawn(struct worker *w)
{
	char *const argv[] = {"/bin/true", NULL};
	int status = -1;
	pid_t pid;

	check(w, !posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), "posix_spawn() failed");
	check(w, waitpid(pid, &status, 0) == pid && !status, "the child did not end well");
	usleep(2000);
}

static void do_fork(struct worker *w)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(7);
	check(w, pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7,
	      "the child did not end well");
	usleep(2000);
}

static atomic_ulong handled, handled_twice;
static __thread int in_handler;

static void on_signal(int number)
{
	int saved = errno;

	if (in_handler++)
		handled_twice++;
	handled++;
	poll(NULL, 0, 0); /* a wait in a handler that may have interrupted malloc() */
	in_handler--;
	errno = saved;
}

/* Interrupted by signals of its own without SA_RESTART, and by nothing else. */
static void do_storm(struct worker *w)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	const struct itimerspec every = {{0, 700000}, {0, 700000}};
	const struct timespec limit = {.tv_nsec = WAIT_NS};
	static unsigned long interrupted;
	static timer_t timer;
	int i;

	if (!w->rounds) {
		sigaction(SIGUSR1, &action, NULL);
		event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		if (timer_create(CLOCK_MONOTONIC, &event, &timer))
			exit(2);
		timer_settime(timer, 0, &every, NULL);
	}
	for (i = 0; i < 200; i++)
		free(malloc((size_t)rand_r(&w->seed) % 3000));
	errno = 0;
	if (clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL) == EINTR)
		interrupted++;
	check(w, interrupted <= handled, "interrupted without a signal");
	check(w, !handled_twice, "a handler interrupted itself");
}

static void on_interrupted_malloc(int number)
{
	int saved = errno;

	poll(NULL, 0, 1);
	errno = saved;
}

/* Waits nowhere but in a handler, which has interrupted malloc() with its lock held, mostly. */
static void do_handler(struct worker *w)
{
	struct sigaction action = {.sa_handler = on_interrupted_malloc, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	const struct itimerspec every = {{0, 3000000}, {0, 3000000}};
	static timer_t timer;
	int i;

	if (!w->rounds) {
		sigaction(SIGALRM, &action, NULL);
		event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		if (timer_create(CLOCK_MONOTONIC, &event, &timer))
			exit(2);
		timer_settime(timer, 0, &every, NULL);
	}
	for (i = 0; i < 1000; i++)
		free(malloc(2000 + (size_t)rand_r(&w->seed) % 30000));
}

/* Every register through a system call, as a program in assembler may expect. */
static void do_regs(struct worker *w)
{
	errno = EXDEV;
	check(w, regs_kept(WAIT_MS, (unsigned)w->rounds), "a register changed");
	check(w, errno == EXDEV, "errno changed");
}

/* On a stack of which nothing is left: what is below belongs to somebody else. */
static void do_deep(struct worker *w)
{
	static unsigned char memory[65536] __attribute__((aligned(4096)));
	size_t i;

	if (!w->rounds)
		memset(memory, 0xee, sizeof(memory));
	check(w, regs_poll_on(memory + 32768, WAIT_MS) == 0, "not the result of a wait");
	for (i = 0; i < 32768 - 512; i++)
		check(w, memory[i] == 0xee, "written below the stack");
}

/* Hardly ever awake. */
static void do_idle(struct worker *w)
{
	struct pollfd ever = {.fd = w->fds[0], .events = POLLIN};

	if (!w->fds[1])
		w->fds[1] = epoll_create1(EPOLL_CLOEXEC);
	ever.fd = w->fds[1];
	check(w, poll(&ever, 1, 100) == 0, "woken for nothing");
}

static void do_spin(struct worker *w)
{
	int64_t since = now_ns();

	while (now_ns() - since < WAIT_NS)
		;
}

static const struct {
	const char *kind;
	void (*round)(struct worker *w);
} kinds[] = {
	{"epoll", do_epoll},   {"recv", do_recv},     {"sigtimedwait", do_sigtimedwait},
	{"poll", do_poll},     {"select", do_select}, {"nanosleep", do_nanosleep},
	{"futex", do_futex},   {"cond", do_cond},     {"read", do_read},
	{"write", do_write},   {"malloc", do_malloc}, {"dlopen", do_dlopen},
	{"spawn", do_spawn},   {"fork", do_fork},     {"storm", do_storm},
	{"regs", do_regs},     {"deep", do_deep},     {"idle", do_idle},
	{"spin", do_spin},     {"handler", do_handler},
};

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!ending) {
		w->round(w);
		if (!w->rounds++)
			started++; /* and with it the thread at the other end of a pipe */
	}
	return NULL;
}

static bool worker_start(struct worker *w, const char *kind)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].kind, kind)) {
			w->kind = kind;
			w->round = kinds[i].round;
			return !pthread_create(&w->thread, NULL, work, w);
		}
	return false;
}

int main(int argc, char **argv)
{
	struct worker *workers = calloc((size_t)argc, sizeof(*workers));
	int i, failed = 0;
	sigset_t set;
	char byte;

	/* A child that ends while posix_spawn() holds signals back wakes another thread. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (i = 1; i < argc; i++)
		if (!workers || !worker_start(&workers[i], argv[i]))
			exit(2);
	while (started < argc - 1)
		usleep(1000);
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	ending = true;
	for (i = 1; i < argc; i++) {
		pthread_join(workers[i].thread, NULL);
		printf("%s %lu %lu\n", workers[i].kind, workers[i].rounds, workers[i].errors);
		failed += workers[i].errors > 0 || !workers[i].rounds;
	}
	free(workers);
	return failed ? 1 : 0;
}
