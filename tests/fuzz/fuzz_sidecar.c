// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target that says and writes whatever it likes to the loader: messages of any kind, size
 * and order, a ring of any content with its head anywhere, records that are nearly right.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sidecar/client.h"
#include "tests/unit/sidecar_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&v, in->at, bytes);
	in->at += bytes;
	in->left -= bytes;
	return v;
}

static void take_bytes(struct input *in, void *to, size_t size)
{
	if (size > in->left)
		size = in->left;
	memcpy(to, in->at, size);
	in->at += size;
	in->left -= size;
}

/* What whoever reads the file relies on. */
static int on_record(void *ctx, const struct record *r)
{
	int64_t now = peer_clock(CLOCK_MONOTONIC);
	volatile size_t length = 0;

	switch (r->kind) {
	case RECORD_WORK:
		if (r->work.begin < 0 || r->work.begin > now + 10000000 || r->work.kind < 1 ||
		    r->work.kind > 3 || r->work.duration > (uint64_t)now + 10000000)
			abort();
		break;
	case RECORD_WORK_CALL:
		if (r->work_call.begin < 0 || r->work_call.begin > now + 10000000 ||
		    r->work_call.domain < 1 || r->work_call.domain > 2)
			abort();
		break;
	case RECORD_SHAPE:
		length = strlen(r->shape.kernel);
		if (length >= WIRE_NAME_MAX)
			abort();
		break;
	case RECORD_DEVICE:
		length = strlen(r->device.uuid) + strlen(r->device.name);
		break;
	case RECORD_SIDECAR:
		length = strlen(r->sidecar.text);
		if (r->sidecar.event < RECORD_SIDECAR_ATTACHED ||
		    r->sidecar.event >= RECORD_SIDECAR_EVENTS || r->sidecar.ts <= 0)
			abort();
		break;
	default:
		if (r->kind != RECORD_OVERHEAD)
			abort();
	}
	return 0;
}

/* A time about now by CUPTI's clock, or any at all. */
static int64_t take_stamp(struct input *in)
{
	uint8_t how = (uint8_t)take(in, 1);

	if (how > 250)
		return (int64_t)take(in, 8);
	return peer_clock(CLOCK_REALTIME) - (int64_t)how * 1000;
}

static void say(struct input *in, struct peer *p)
{
	struct wire_message m = { .version = WIRE_VERSION };
	uint8_t bits = (uint8_t)take(in, 1);

	m.type = bits & 31;
	peer_read_clock(&m, 0);
	if (bits & 32) {
		m.stamp = take_stamp(in);
		m.before = (int64_t)take(in, 8);
		m.after = (int64_t)((uint64_t)m.before + take(in, 4));
	}
	if (bits & 64) {
		m.code = (int32_t)take(in, 4);
		m.cupti = (uint32_t)take(in, 4);
		m.dropped = take(in, 8);
		m.window = (int64_t)take(in, 8);
		take_bytes(in, m.text, sizeof(m.text));
	}
	(void)peer_say(p, &m);
}

static void say_anything(struct input *in, struct peer *p)
{
	uint8_t bytes[sizeof(struct wire_message) + 8] = { 0 };
	size_t size = take(in, 2) % sizeof(bytes);

	take_bytes(in, bytes, size < 64 ? size : 64);
	(void)!send(p->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void put(struct input *in, struct peer *p)
{
	union {
		struct wire_record r;
		struct wire_work work;
		struct wire_call call;
		struct wire_shape shape;
		struct wire_device device;
		struct wire_overhead overhead;
		uint8_t bytes[sizeof(struct wire_shape) + 256];
	} u = { .r = { 0, 0 } };
	static const uint32_t sizes[] = { 8, sizeof(struct wire_work), sizeof(struct wire_call),
					  sizeof(struct wire_shape) + 16,
					  sizeof(struct wire_device), sizeof(struct wire_overhead),
					  24, 16 };

	memset(&u, 0, sizeof(u));
	u.r.type = take(in, 1) & 7;
	u.r.size = (sizes[u.r.type] + 7) & ~7u;
	if (u.r.type == WIRE_WORK || u.r.type == WIRE_CALL || u.r.type == WIRE_OVERHEAD_RECORD) {
		u.work.begin = take_stamp(in);
		u.work.end = (int64_t)((uint64_t)u.work.begin + (take(in, 3) >> 4));
		take_bytes(in, u.bytes + 24, 12);
	} else {
		take_bytes(in, u.bytes + 8, 32);
		u.shape.name_size = u.r.type == WIRE_SHAPE ? (uint32_t)take(in, 1) & 31 : 0;
	}
	(void)peer_put(p, &u);
}

/* The ring as no sidecar would leave it. */
static void scribble(struct input *in, struct peer *p)
{
	uint64_t at, head = take(in, 2) * 8;

	if (!p->ring)
		abort();
	at = p->ring->tail % WIRE_RING_BYTES;
	take_bytes(in, p->data + (at < WIRE_RING_BYTES - 64 ? at : 0), 64);
	p->ring->head = take(in, 1) & 1 ? p->ring->tail + head % 4096 : take(in, 8);
	p->ring->dropped = take(in, 8);
	p->ring->bad[take(in, 1) & 3] = take(in, 8);
}

static void play(struct input *in, struct sidecar *s, struct peer *p)
{
	while (in->left && sidecar_state(s) != SIDECAR_OVER) {
		switch (take(in, 1) & 15) {
		case 0: case 1: case 2: case 3: say(in, p); break;
		case 4: say_anything(in, p); break;
		case 5: case 6: case 7: case 8: case 9: put(in, p); break;
		case 10: scribble(in, p); break;
		case 11: sidecar_start(s, (int64_t)take(in, 8)); break;
		case 12: sidecar_stop(s, take(in, 1) & 1 ? "why" : NULL); break;
		default:
			if (sidecar_step(s))
				abort();
		}
	}
}

/* Most of what matters happens while it records: half of the inputs begin there. */
static void begin(struct sidecar *s, struct peer *p)
{
	struct wire_message m = { .type = WIRE_READY };

	(void)peer_say(p, &m);
	(void)sidecar_step(s);
	sidecar_start(s, 1000000000);
	m.type = WIRE_BEGAN;
	peer_read_clock(&m, 0);
	(void)peer_say(p, &m);
	(void)sidecar_step(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size > 4096 ? 4096 : size };
	struct sidecar_options o = { .pid = (uint32_t)getpid(), .sink = on_record };
	struct peer p = { .fd = -1 };
	struct wire_message hello;
	struct sidecar_stats stats;
	struct sidecar *s;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return 0;
	p.fd = fds[1];
	if (sidecar_new(&s, fds[0], &o) || peer_receive(&p, &hello) != WIRE_HELLO)
		abort();
	if (take(&in, 1) & 1)
		begin(s, &p);
	play(&in, s, &p);
	peer_close(&p);
	for (int i = 0; i < 3; i++)
		if (sidecar_step(s))
			abort();
	sidecar_stats(s, &stats);
	sidecar_free(s);
	return 0;
}
