// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ways in: gbpf_sidecar_begin(), called by whoever put this library into a running
 * process, and InitializeInjection(), called by libcuda for CUDA_INJECTION64_PATH.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

#define EXPORT __attribute__((visibility("default")))
#define STACK_BYTES (1u << 20) /* CUPTI and the driver run on it */
#define BEGIN_MS 1000	       /* for a loader that listens, inside of cuInit() */
#define EXIT_MS 500	       /* for what the control thread is in the middle of */

EXPORT int gbpf_sidecar_begin(int fd);
EXPORT int InitializeInjection(void);

struct session session = {
	.control = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.pool.lock = PTHREAD_MUTEX_INITIALIZER,
};
static bool watched;   /* for forks */
static bool inherited; /* CUPTI was used by us in a process that forked this one */

/* There is one place. While a session comes to its end, the next may wait for it. */
enum place_state { PLACE_FREE, PLACE_TAKEN, PLACE_ENDING };
static struct {
	pthread_mutex_t lock;
	enum place_state state;
	int waiting; /* a socket; -1: none */
} place = { .lock = PTHREAD_MUTEX_INITIALIZER, .waiting = -1 };

bool session_here(void)
{
	return session.pid == getpid();
}

/*
 * A child has none of the threads, and whatever they held is held forever. What it has of a
 * session is forgotten; CUPTI's state cannot be told from the parent's, so it is left alone.
 */
static void forget(void)
{
	if (session.fd >= 0)
		close(session.fd);
	if (place.waiting >= 0)
		close(place.waiting);
	pthread_mutex_init(&place.lock, NULL);
	place.state = PLACE_FREE;
	place.waiting = -1;
	inherited = inherited || session.neighbour.pair;
	session = (struct session){
		.control = PTHREAD_MUTEX_INITIALIZER,
		.fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.pool.lock = PTHREAD_MUTEX_INITIALIZER,
	};
}

/* Holds control for good then: CUPTI is about to go. */
static void on_exit_of_process(void)
{
	struct timespec t = { 0, 1000000 };

	if (!session_here())
		return;
	for (int i = 0; pthread_mutex_trylock(&session.control); i++) {
		if (i == EXIT_MS)
			return;
		(void)nanosleep(&t, NULL);
	}
	control_exit(&session);
}

int session_watch_exit(void)
{
	return atexit(on_exit_of_process) ? -ENOMEM : 0;
}

/* Ends the session, and begins that of who waits. False: nobody does. */
static bool next_session(void)
{
	int fd;

	pthread_mutex_lock(&place.lock);
	place.state = PLACE_ENDING;
	pthread_mutex_unlock(&place.lock);
	control_end(&session);
	pthread_mutex_lock(&place.lock);
	fd = place.waiting;
	place.waiting = -1;
	place.state = fd >= 0 ? PLACE_TAKEN : PLACE_FREE;
	if (fd >= 0)
		session.fd = fd;
	pthread_mutex_unlock(&place.lock);
	return fd >= 0;
}

static void *run(void *user)
{
	control_thread();
	do {
		while (control_step(&session, -1))
			;
	} while (next_session());
	return NULL;
}

/* No signal of the job's may end in this thread. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	(void)sigfillset(&all);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, run, NULL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -err;
}

static int set_up(int fd)
{
	session.pid = getpid();
	session.fd = fd;
	if (!watched && pthread_atfork(NULL, NULL, forget))
		return -ENOMEM;
	watched = true;
	if (!session.shapes.slots && shapes_init(&session.shapes))
		return -ENOMEM;
	return 0;
}

static bool loader_gone(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

static int refuse(int fd, const char *why)
{
	control_refuse(fd, why);
	return -EBUSY;
}

/* 1: it has the place; 0: it will get it; -errno: it does not, and is closed. */
static int take_place(int fd)
{
	int flags = fcntl(fd, F_GETFD), err = 1;

	if (flags < 0)
		return -errno;
	(void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	if (!session_here() && session.pid)
		forget(); /* a child by a bare clone() */
	if (inherited)
		return refuse(fd, "this process was forked by one that gbpf recorded");
	pthread_mutex_lock(&place.lock);
	if (place.state == PLACE_FREE)
		place.state = PLACE_TAKEN;
	else if (place.waiting < 0 && (place.state == PLACE_ENDING || loader_gone(session.fd)))
		err = 0;
	else
		err = -EBUSY;
	if (!err)
		place.waiting = fd;
	pthread_mutex_unlock(&place.lock);
	if (err < 0)
		return refuse(fd, "another gbpf is in this process");
	return err;
}

/* What took the place, and could not begin, gives it back. */
static void give_place(void)
{
	if (next_session())
		(void)next_session();
}

/* Another copy of this library, which was here first, has CUPTI's functions. */
static int (*first_copy(void))(int)
{
	void *handle = dlopen("libgbpf-cupti.so", RTLD_LAZY | RTLD_NOLOAD);
	int (*begin)(int) = NULL;
	void *at;

	if (!handle)
		return NULL;
	at = dlsym(handle, "gbpf_sidecar_begin");
	memcpy(&begin, &at, sizeof(at));
	dlclose(handle);
	return begin == gbpf_sidecar_begin ? NULL : begin;
}

/*
 * Serves the loader at the other end of fd, which is taken over whatever happens. Returns at
 * once: 0, or -errno.
 */
int gbpf_sidecar_begin(int fd)
{
	int (*first)(int) = first_copy();
	int err;

	if (first)
		return first(fd);
	err = take_place(fd);
	if (err <= 0)
		return err;
	err = set_up(fd);
	if (!err)
		err = start_thread();
	if (err)
		give_place();
	return err;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * Inside of cuInit(): the first kernels are recorded, too, if the loader starts a window
 * now. CUPTI wants to be called by this thread, as the driver holds its locks. Without a
 * loader nothing happens, and nothing is said.
 */
int InitializeInjection(void)
{
	const char *path = getenv("GBPF_SIDECAR_SOCKET");
	int64_t until = now_ns() + BEGIN_MS * 1000000LL;
	int fd = path && path[0] && !first_copy() ? connect_to(path) : -1;
	bool ok = true;

	if (fd < 0 || take_place(fd) <= 0)
		return 1;
	ok = !set_up(fd);
	while (ok && !session.window.on && now_ns() < until)
		ok = control_step(&session, (int)((until - now_ns()) / 1000000) + 1);
	if (!ok || start_thread())
		give_place();
	return 1;
}
