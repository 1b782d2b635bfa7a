// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/intake.h"
#include "sidecar/wire.h"

#define SECOND 1000000000LL
#define ANSWER_NS (10 * SECOND) /* to load CUPTI and enable it takes a while */
#define LAST_NS (5 * SECOND)	/* after the end of a window */
#define MESSAGES_MOST 64	/* a step: others have a turn, too */
#define REALTIME_SLACK_NS 2000	/* between two clocks that are taken for one */

struct sidecar {
	int fd;
	enum sidecar_state state;
	uint32_t pid, cupti;
	struct intake in;
	int64_t deadline; /* for its next answer, CLOCK_MONOTONIC ns */
	int64_t window;
	int64_t tick;	  /* losses are told next */
	bool realtime;	  /* its clock was CLOCK_REALTIME at each reading… */
	int64_t apart;	  /* …but for so much, ns */
	bool began;
	bool again;
	bool read_last;	  /* a reading came with its last message */
	struct clock_reading started; /* ours, when it was told to start */
	uint64_t dropped, bad, running;
	int64_t clock_error;
};

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static int emit(struct sidecar *s, uint32_t event, uint64_t count, int64_t ts, const char *text)
{
	struct record r = {.kind = RECORD_SIDECAR};

	r.sidecar = (struct record_sidecar){
		.ts = ts, .pid = s->pid, .event = event, .count = count, .cupti = s->cupti,
		.text = text,
	};
	return s->in.sink(s->in.ctx, &r);
}

/* With the ring's descriptor, where there is one to send. */
static int message_send(int fd, struct wire_message *m, int ring)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *c;

	m->version = WIRE_VERSION;
	if (ring >= 0) {
		h.msg_control = control.bytes;
		h.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &ring, sizeof(int));
	}
	return sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*m) ? 0 : -errno;
}

int sidecar_new(struct sidecar **out, int fd, const struct sidecar_options *o)
{
	struct wire_message hello = {.type = WIRE_HELLO, .flags = o->flags, .size = drain_bytes()};
	struct sidecar *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fd = fd;
	s->pid = o->pid;
	s->state = SIDECAR_GREETED;
	s->again = o->again;
	s->realtime = true;
	s->tick = clock_ns(CLOCK_MONOTONIC) + SECOND;
	s->deadline = clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	snprintf(hello.text, sizeof(hello.text), "%s", o->cupti ? o->cupti : "");
	err = intake_init(&s->in, o->pid, o->sink, o->ctx);
	if (!err)
		err = message_send(fd, &hello, s->in.drain.fd);
	if (err == -EPIPE || err == -ECONNRESET)
		err = 0; /* it has refused already: what it said is to be read */
	drain_sent(&s->in.drain);
	if (err) {
		sidecar_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void sidecar_free(struct sidecar *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	intake_free(&s->in);
	free(s);
}

int sidecar_fd(const struct sidecar *s)
{
	return s->fd;
}

uint32_t sidecar_pid(const struct sidecar *s)
{
	return s->pid;
}

enum sidecar_state sidecar_state(const struct sidecar *s)
{
	return s->state;
}

/* Our own, of CLOCK_REALTIME: the closest of a few. */
static struct clock_reading own_reading(void)
{
	struct clock_reading r, best = {0};
	int i;

	for (i = 0; i < 5; i++) {
		r.before = clock_ns(CLOCK_MONOTONIC);
		r.stamp = clock_ns(CLOCK_REALTIME);
		r.after = clock_ns(CLOCK_MONOTONIC);
		if (!i || r.after - r.before < best.after - best.before)
			best = r;
	}
	return best;
}

/* As a reading of its clock, which is ours as far as was seen; else not at all. */
static void own_use(struct sidecar *s, struct clock_reading own)
{
	own.before -= s->apart;
	own.after += s->apart;
	if (s->realtime)
		cupti_clock_add(&s->in.clock, &own, own.after);
}

/* Readings are believed only if they can be: a hostile or torn one is as good as none. */
static void reading_take(struct sidecar *s, const struct wire_message *m)
{
	struct clock_reading r = {m->before, m->stamp, m->after}, own = own_reading();
	int64_t apart, brackets;

	s->read_last = false;
	if (r.before <= 0 || r.stamp <= 0 || r.after > own.after || r.after < r.before)
		return;
	apart = llabs((r.stamp - r.before) - (own.stamp - own.before));
	brackets = (r.after - r.before) + (own.after - own.before);
	if (apart > brackets + REALTIME_SLACK_NS)
		s->realtime = false;
	if (s->realtime && apart + brackets > s->apart)
		s->apart = apart + brackets;
	/* what it recorded first can have begun before it read its clock */
	if (!s->in.clock.any)
		own_use(s, s->started);
	s->read_last = !cupti_clock_add(&s->in.clock, &r, own.after);
}

/*
 * No reading comes after the last records of a process that ended. Where its clock was
 * the machine's all the time, we can read that ourselves.
 */
static void reading_last(struct sidecar *s)
{
	if (s->in.clock.any && !s->read_last)
		own_use(s, own_reading());
}

static int tell_bad(struct sidecar *s, int64_t now)
{
	enum intake_bad kind;
	uint64_t n;
	int err = 0;

	for (kind = 0; !err && kind < INTAKE_BADS; kind++) {
		n = intake_take_bad(&s->in, kind);
		s->bad += n;
		if (n)
			err = emit(s, RECORD_SIDECAR_BAD, n, now, intake_bad_name(kind));
	}
	return err;
}

static int tell_dropped(struct sidecar *s, uint64_t n, const char *where)
{
	s->dropped += n;
	return n ? emit(s, RECORD_SIDECAR_DROPPED, n, clock_ns(CLOCK_MONOTONIC), where) : 0;
}

static int tell_running(struct sidecar *s, int64_t now)
{
	uint64_t n = intake_take_running(&s->in);

	s->running += n;
	return n ? emit(s, RECORD_SIDECAR_RUNNING, n, now, "") : 0;
}

static int tell_losses(struct sidecar *s)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), error = s->in.error_worst;
	int err = tell_dropped(s, intake_take_dropped(&s->in), "the ring to gbpf was full");

	if (!err)
		err = tell_bad(s, now);
	if (!err)
		err = tell_running(s, now);
	if (!err && error)
		err = emit(s, RECORD_SIDECAR_CLOCK, (uint64_t)error, now, "");
	if (error > s->clock_error)
		s->clock_error = error;
	s->in.error_worst = 0;
	s->tick = now + SECOND;
	return err;
}

/* All that it left behind. */
static int take_rest(struct sidecar *s)
{
	size_t waited;
	int err;

	reading_last(s);
	do {
		err = intake_drain(&s->in);
		waited = s->in.count;
		if (!err)
			err = intake_deliver(&s->in, true);
	} while (!err && waited == INTAKE_WAITING_MOST);
	return err ? err : tell_losses(s);
}

/* Nothing more comes. */
static int over(struct sidecar *s)
{
	int err;

	if (s->state == SIDECAR_OVER)
		return 0;
	s->state = SIDECAR_OVER;
	close(s->fd);
	s->fd = -1;
	err = take_rest(s);
	intake_free(&s->in);
	return err;
}

static int rest(struct sidecar *s)
{
	s->state = SIDECAR_READY;
	s->began = false;
	s->deadline = INT64_MAX;
	return take_rest(s);
}

int sidecar_end(struct sidecar *s, uint32_t event, const char *why)
{
	int err = 0;

	if (s->state != SIDECAR_OVER)
		err = emit(s, event, 0, clock_ns(CLOCK_MONOTONIC), why);
	return err ? err : over(s);
}

void sidecar_start(struct sidecar *s, int64_t window)
{
	struct wire_message m = {.type = WIRE_START, .window = window};

	if (s->state != SIDECAR_READY)
		return;
	s->window = window;
	s->started = own_reading();
	message_send(s->fd, &m, -1); /* a socket that is closed tells when it is read */
	s->state = SIDECAR_STARTED;
	s->deadline = clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
}

void sidecar_stop(struct sidecar *s, const char *why)
{
	struct wire_message m = {.type = WIRE_STOP, .flags = why ? WIRE_FOREIGN : 0};

	if (s->state == SIDECAR_OVER || s->state == SIDECAR_STOPPING)
		return;
	snprintf(m.text, sizeof(m.text), "%s", why ? why : "");
	message_send(s->fd, &m, -1);
	s->state = s->state < SIDECAR_STARTED ? s->state : SIDECAR_STOPPING;
	s->deadline = clock_ns(CLOCK_MONOTONIC) + LAST_NS;
}

static int on_ready(struct sidecar *s, const struct wire_message *m)
{
	if (s->state != SIDECAR_GREETED)
		return sidecar_end(s, RECORD_SIDECAR_FAILED, "the sidecar spoke out of turn");
	s->cupti = m->cupti;
	s->state = SIDECAR_READY;
	s->deadline = INT64_MAX;
	return emit(s, RECORD_SIDECAR_ATTACHED, 0, clock_ns(CLOCK_MONOTONIC), m->text);
}

static int on_began(struct sidecar *s, const struct wire_message *m)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), took;

	if (s->began || (s->state != SIDECAR_STARTED && s->state != SIDECAR_STOPPING))
		return sidecar_end(s, RECORD_SIDECAR_FAILED, "the sidecar spoke out of turn");
	s->began = true;
	reading_take(s, m);
	if (!s->read_last) /* as in a time namespace of its own */
		return sidecar_end(s, RECORD_SIDECAR_FAILED,
				   "the times of the process's clocks cannot be compared with "
				   "the machine's");
	s->read_last = false;
	if (s->state == SIDECAR_STARTED) {
		s->state = SIDECAR_RECORDING;
		s->deadline = s->window < INT64_MAX - now - LAST_NS ? now + s->window + LAST_NS :
								      INT64_MAX;
	}
	took = m->window > 0 && m->window < m->after ? m->after - m->window : 0;
	return emit(s, RECORD_SIDECAR_BEGAN, (uint64_t)took, m->after, "");
}

/* It says that it is done, and why: what it had is in the ring. */
static int on_last(struct sidecar *s, const struct wire_message *m, uint32_t event)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), ts = now;
	uint64_t count = 0;
	int err;

	s->read_last = false;
	if (event == RECORD_SIDECAR_FAILED)
		count = (uint64_t)(int64_t)m->code;
	if (event == RECORD_SIDECAR_WITHDREW)
		count = m->dropped < UINT32_MAX ? m->dropped : UINT32_MAX;
	if (event == RECORD_SIDECAR_ENDED)
		reading_take(s, m);
	if (m->window > 0 && m->window < now)
		ts = m->window;
	err = intake_drain(&s->in);
	if (!err && event == RECORD_SIDECAR_ENDED)
		err = tell_dropped(s, m->dropped < UINT32_MAX ? m->dropped : UINT32_MAX,
				   "CUPTI's own buffers were full");
	if (!err)
		err = emit(s, event, count, ts, m->text);
	if (err)
		return err;
	return event == RECORD_SIDECAR_ENDED && s->again && s->state >= SIDECAR_STARTED ?
		       rest(s) : over(s);
}

static int message_take(struct sidecar *s, struct wire_message *m)
{
	m->text[sizeof(m->text) - 1] = '\0';
	if (m->version != WIRE_VERSION)
		return sidecar_end(s, RECORD_SIDECAR_FAILED,
				   "the process has a sidecar of another version of gbpf");
	switch (m->type) {
	case WIRE_READY:
		return on_ready(s, m);
	case WIRE_BEGAN:
		return on_began(s, m);
	case WIRE_CLOCK:
		reading_take(s, m);
		s->read_last = false;
		return 0;
	case WIRE_ENDED:
		return on_last(s, m, RECORD_SIDECAR_ENDED);
	case WIRE_REFUSED:
		return on_last(s, m, RECORD_SIDECAR_REFUSED);
	case WIRE_WITHDREW:
		return on_last(s, m, RECORD_SIDECAR_WITHDREW);
	case WIRE_FAILED:
		return on_last(s, m, RECORD_SIDECAR_FAILED);
	default:
		return sidecar_end(s, RECORD_SIDECAR_FAILED,
				   "the sidecar said something that is not known");
	}
}

static int messages_read(struct sidecar *s)
{
	struct wire_message m;
	int err = 0, i;
	ssize_t n;

	for (i = 0; !err && i < MESSAGES_MOST && s->state != SIDECAR_OVER; i++) {
		/* without a place for them, descriptors that the target sends are dropped */
		n = recv(s->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n == sizeof(m))
			err = message_take(s, &m);
		else if (n > 0)
			err = sidecar_end(s, RECORD_SIDECAR_FAILED,
					  "the sidecar sent a message of a wrong size");
		else
			err = sidecar_end(s, RECORD_SIDECAR_GONE, "");
	}
	return err;
}

int sidecar_step(struct sidecar *s)
{
	int err;

	if (s->state == SIDECAR_OVER)
		return 0;
	err = intake_drain(&s->in);
	if (!err && s->in.drain.broken)
		return sidecar_end(s, RECORD_SIDECAR_FAILED, "the ring to gbpf was damaged");
	if (!err)
		err = messages_read(s);
	if (!err && s->state != SIDECAR_OVER)
		err = intake_deliver(&s->in, false);
	if (err || s->state == SIDECAR_OVER)
		return err;
	if (clock_ns(CLOCK_MONOTONIC) >= s->deadline)
		return sidecar_end(s, RECORD_SIDECAR_FAILED,
				   s->state == SIDECAR_STOPPING ? "the sidecar did not stop" :
								  "the sidecar did not answer");
	return clock_ns(CLOCK_MONOTONIC) >= s->tick ? tell_losses(s) : 0;
}

void sidecar_stats(const struct sidecar *s, struct sidecar_stats *out)
{
	*out = (struct sidecar_stats){
		.works = s->in.works, .calls = s->in.calls, .dropped = s->dropped, .bad = s->bad,
		.running = s->running, .clock_error = s->clock_error, .cupti = s->cupti,
	};
	if (s->in.error_worst > out->clock_error)
		out->clock_error = s->in.error_worst;
}
