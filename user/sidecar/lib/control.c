// SPDX-License-Identifier: BSD-2-Clause
#include "control.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "anchors.h"
#include "buffers.h"
#include "devices.h"
#include "window.h"

#define MS 1000000LL
#define WATCH_MS 50   /* whether somebody else has begun */
#define CLOCK_MS 100
#define FLUSH_MS 200  /* so that a job that ends suddenly takes little with it */
#define LINGER_MS 2000 /* for somebody who has begun to take CUPTI over */

static struct {
	int64_t clock, flush, off; /* when they are due, ns; off 0: it is not */
} due;

static char job_name[16]; /* of the thread that ours was made by; "": this is not ours */

void control_thread(void)
{
	(void)prctl(PR_GET_NAME, job_name);
	(void)prctl(PR_SET_NAME, "gbpf-sidecar");
}

/* Threads that CUPTI begins meanwhile, and keeps, do not look as if they were ours. */
static void name_thread(bool ours)
{
	if (job_name[0])
		(void)prctl(PR_SET_NAME, ours ? "gbpf-sidecar" : job_name);
}

int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* False: the loader is gone, or does not read. Nobody waits for it. */
static bool say(int fd, struct wire_message *m)
{
	ssize_t sent;

	m->version = WIRE_VERSION;
	sent = send(fd, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent == (ssize_t)sizeof(*m) ||
	       (sent < 0 && errno == EAGAIN && m->type == WIRE_CLOCK);
}

void control_refuse(int fd, const char *why)
{
	struct wire_message m = { 0 };

	answer_with(&m, WIRE_REFUSED, "%s", why);
	(void)say(fd, &m);
	close(fd);
}

/* Takes the first descriptor that came with a message, closes others. -1: none came. */
static int take_descriptor(struct msghdr *h)
{
	int found = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (found < 0)
				found = fd;
			else
				close(fd);
		}
	}
	return found;
}

/* 1: a message; 0: none yet; -1: the loader is gone. */
static int hear(int socket, struct wire_message *m, int *fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec part = { m, sizeof(*m) };
	struct msghdr h = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t got = recvmsg(socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	*fd = take_descriptor(&h);
	if (got != (ssize_t)sizeof(*m) || (h.msg_flags & MSG_TRUNC))
		return -1;
	m->text[sizeof(m->text) - 1] = '\0';
	return 1;
}

/* The libcupti of an earlier session is kept: our functions are registered with it. */
static int open_cupti(struct session *s, const char *wanted, struct wire_message *answer)
{
	int err;

	if (s->cupti.handle && (!wanted[0] || !strcmp(wanted, s->cupti.path)))
		return 0;
	err = cupti_open(&s->cupti, wanted, answer->text, sizeof(answer->text));
	s->neighbour.pair = 0;
	s->neighbour.deep = err ? 0 : neighbour_deep(s->cupti.version);
	if (!err && !neighbour_data(&s->neighbour.data, (const void *)(uintptr_t)
							       s->cupti.register_callbacks))
		err = -ENOTSUP;
	if (!err)
		err = session_watch_exit();
	if (err && !answer->text[0])
		answer_with(answer, WIRE_REFUSED, "libcupti cannot be used: %s", strerror(-err));
	return err;
}

static bool on_hello(struct session *s, const struct wire_message *m, int ring)
{
	struct wire_message answer = { .pid = (uint32_t)s->pid };
	int err = -EINVAL;

	if (m->version != WIRE_VERSION)
		answer_with(&answer, WIRE_REFUSED, "a gbpf of another version is in this process");
	else if (!devices_cuda())
		answer_with(&answer, WIRE_REFUSED, "CUDA is not loaded in this process");
	else if (ring < 0 || s->ring.shared || (err = ring_map(&s->ring, ring, m->size)))
		answer_with(&answer, WIRE_REFUSED, "the ring cannot be mapped: %s", strerror(-err));
	else if (open_cupti(s, m->text, &answer))
		answer.type = WIRE_REFUSED;
	else
		answer_with(&answer, WIRE_READY, "%s", s->cupti.path);
	if (answer.type == WIRE_READY) {
		s->layout = layout_of(s->cupti.version);
		s->flags = m->flags & (WIRE_ALL_API | WIRE_OVERHEAD | WIRE_CALLS);
		shapes_forget(&s->shapes);
		pthread_mutex_lock(&s->lock);
		s->taking = true;
		pthread_mutex_unlock(&s->lock);
		answer.cupti = s->cupti.version;
		answer.flags = s->cupti.ours ? WIRE_OWN_CUPTI : 0u;
	}
	return say(s->fd, &answer) && answer.type == WIRE_READY;
}

static bool on_start(struct session *s, const struct wire_message *m)
{
	struct wire_message answer = { 0 };

	if (due.off)
		answer_with(&answer, WIRE_REFUSED, "another profiler has begun to use CUPTI");
	else
		window_begin(s, m->window, &answer);
	due.clock = answer.after + CLOCK_MS * MS;
	due.flush = answer.after + FLUSH_MS * MS;
	return say(s->fd, &answer);
}

static bool withdraw(struct session *s, const char *why)
{
	struct wire_message answer = { 0 };

	if (window_withdraw(s, why, &answer))
		due.off = now_ns() + LINGER_MS * MS;
	return say(s->fd, &answer);
}

static bool on_stop(struct session *s, const struct wire_message *m)
{
	struct wire_message answer = { 0 };

	if (!s->window.on)
		return true;
	if (m->flags & WIRE_FOREIGN)
		return withdraw(s, m->text);
	window_end(s, &answer);
	return say(s->fd, &answer);
}

static bool on_message(struct session *s, const struct wire_message *m, int fd)
{
	bool ok = false;

	name_thread(false);
	if (m->type == WIRE_HELLO)
		ok = on_hello(s, m, fd);
	else if (m->type == WIRE_START && s->layout)
		ok = on_start(s, m);
	else if (m->type == WIRE_STOP && s->layout)
		ok = on_stop(s, m);
	name_thread(true);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool fail(struct session *s, const char *what, int result)
{
	struct wire_message answer = { 0 };

	window_fail(s, what, result, &answer);
	return say(s->fd, &answer);
}

/* Everything else that a window needs now and then. */
static bool tick(struct session *s)
{
	int64_t now = now_ns();
	struct wire_message m = { .type = WIRE_CLOCK };
	int result;

	if (due.off && (window_taken(s) || now >= due.off)) {
		due.off = 0;
		if (window_taken(s))
			s->window.kinds = 0;
		window_off(s);
	}
	if (!s->window.on)
		return true;
	if (window_taken(s))
		return withdraw(s, "");
	if (now >= s->window.until) {
		m.type = 0;
		window_end(s, &m);
		return say(s->fd, &m);
	}
	result = anchors_step(s, now);
	if (result)
		return fail(s, "recording of calls cannot be switched", result);
	if (now >= due.flush) {
		(void)s->cupti.flush_all(0);
		due.flush = now_ns() + FLUSH_MS * MS;
		if (!s->devices_told)
			s->devices_told = devices_tell(s);
	}
	if (now < due.clock)
		return true;
	due.clock = now + CLOCK_MS * MS;
	return window_clock(s, &m) || say(s->fd, &m);
}

static int until_due(const struct session *s, int most_ms)
{
	int64_t left, next = s->window.until;

	if (!s->window.on && !due.off)
		return most_ms;
	if (s->anchors.due < next)
		next = s->anchors.due;
	left = s->window.on ? (next - now_ns() + MS - 1) / MS : WATCH_MS;
	if (left > WATCH_MS)
		left = WATCH_MS;
	if (left < 0)
		left = 0;
	return most_ms < 0 || left < most_ms ? (int)left : most_ms;
}

bool control_step(struct session *s, int most_ms)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct wire_message m;
	bool ok = true;
	int got, fd;

	pthread_mutex_lock(&s->control);
	most_ms = until_due(s, most_ms);
	pthread_mutex_unlock(&s->control);
	(void)poll(&p, 1, most_ms);
	pthread_mutex_lock(&s->control);
	got = hear(s->fd, &m, &fd);
	if (got < 0 && fd >= 0)
		close(fd);
	if (got < 0)
		ok = false;
	else if (got)
		ok = on_message(s, &m, fd);
	ok = ok && tick(s);
	pthread_mutex_unlock(&s->control);
	return ok;
}

/* The loader is gone while somebody may be taking CUPTI over. */
static void linger(struct session *s)
{
	struct timespec t = { 0, WATCH_MS * MS };

	while (due.off) {
		pthread_mutex_unlock(&s->control);
		(void)nanosleep(&t, NULL);
		pthread_mutex_lock(&s->control);
		(void)tick(s);
	}
}

/*
 * CUPTI stays: cuptiFinalize() (13.0, on an H200, from the end of a call as it has to be) made
 * a job that was launching a graph fail.
 */
void control_end(struct session *s)
{
	struct wire_message m = { 0 };

	pthread_mutex_lock(&s->control);
	pthread_mutex_lock(&s->lock);
	s->taking = false;
	pthread_mutex_unlock(&s->lock);
	linger(s);
	if (s->window.on)
		window_end(s, &m);
	pthread_mutex_lock(&s->lock);
	ring_unmap(&s->ring);
	pthread_mutex_unlock(&s->lock);
	pool_rest(&s->pool);
	s->layout = NULL;
	s->window.withdrew = false;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	pthread_mutex_unlock(&s->control);
}

void control_exit(struct session *s)
{
	struct wire_message m = { 0 };

	if (!s->window.on)
		return;
	window_end(s, &m);
	(void)say(s->fd, &m);
}
