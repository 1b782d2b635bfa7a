/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of a sidecar and, as the sidecar, the test itself; what the client hands over. */
#ifndef GBPF_TESTS_SIDECAR_RIG_H
#define GBPF_TESTS_SIDECAR_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "sidecar/client.h"
#include "sidecar_peer.h"

#define MS 1000000LL
#define SEEN_MOST 4096

struct rig {
	struct sidecar *client;
	struct peer peer;
	struct record seen[SEEN_MOST]; /* strings in texts */
	char texts[SEEN_MOST][128];
	size_t count;
	int sink_error;
};

static inline int on_record(void *ctx, const struct record *r)
{
	struct rig *rig = ctx;
	struct record *to;

	if (rig->sink_error)
		return rig->sink_error;
	if (rig->count == SEEN_MOST)
		return 0;
	to = &rig->seen[rig->count];
	*to = *r;
	snprintf(rig->texts[rig->count], 128, "%s",
		 r->kind == RECORD_SHAPE   ? r->shape.kernel :
		 r->kind == RECORD_DEVICE  ? r->device.uuid :
		 r->kind == RECORD_SIDECAR ? r->sidecar.text : "");
	rig->count++;
	return 0;
}

static inline int setup_for(void **state, bool again)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct sidecar_options o = { .pid = (uint32_t)getpid(), .flags = WIRE_OVERHEAD,
				     .cupti = "/opt/libcupti.so.13", .sink = on_record,
				     .ctx = rig, .again = again };
	struct wire_message m;
	int fds[2];

	assert_non_null(rig);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(sidecar_new(&rig->client, fds[0], &o), 0);
	rig->peer.fd = fds[1];
	assert_int_equal(peer_receive(&rig->peer, &m), WIRE_HELLO);
	assert_int_equal(m.version, WIRE_VERSION);
	assert_int_equal(m.flags, WIRE_OVERHEAD);
	assert_string_equal(m.text, "/opt/libcupti.so.13");
	assert_non_null(rig->peer.ring);
	*state = rig;
	return 0;
}

static inline int setup(void **state)
{
	return setup_for(state, false);
}

static inline int teardown(void **state)
{
	struct rig *rig = *state;

	sidecar_free(rig->client);
	peer_close(&rig->peer);
	free(rig);
	return 0;
}

static inline void step(struct rig *rig)
{
	assert_int_equal(sidecar_step(rig->client), 0);
}

/* How many of this kind (and event, for RECORD_SIDECAR; 0: any), and the last of them. */
static inline size_t seen(struct rig *rig, unsigned kind, unsigned event,
			  const struct record **last)
{
	static const struct record none;
	size_t i, n = 0;

	if (last)
		*last = &none;
	for (i = 0; i < rig->count; i++) {
		if (rig->seen[i].kind != kind || (event && rig->seen[i].sidecar.event != event))
			continue;
		n++;
		if (last)
			*last = &rig->seen[i];
	}
	return n;
}

static inline const char *text_of(struct rig *rig, const struct record *r)
{
	return rig->texts[r - rig->seen];
}

static inline void say(struct rig *rig, uint32_t type, int64_t ahead)
{
	struct wire_message m = { .type = type };

	if (type == WIRE_READY) {
		m.cupti = 130001;
		strcpy(m.text, "/lib/libcupti.so.13");
	} else {
		peer_read_clock(&m, ahead);
	}
	assert_int_equal(peer_say(&rig->peer, &m), 0);
}

/* Ready, started, begun. */
static inline void begin(struct rig *rig, int64_t ahead)
{
	struct wire_message m;

	say(rig, WIRE_READY, 0);
	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_READY);
	sidecar_start(rig->client, 1000 * MS);
	assert_int_equal(peer_receive(&rig->peer, &m), WIRE_START);
	assert_int_equal(m.window, 1000 * MS);
	say(rig, WIRE_BEGAN, ahead);
	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_RECORDING);
	usleep(100); /* nothing that begins before the first reading of the clocks can be placed */
}

static inline struct wire_work work_at(int64_t begin, int64_t end, uint32_t correlation)
{
	return (struct wire_work){ .r = { sizeof(struct wire_work), WIRE_WORK }, .begin = begin,
				   .end = end, .kind = RECORD_WORK_KERNEL, .device = 1,
				   .context = 2, .stream = 7, .correlation = correlation,
				   .shape = 3, .graph = 4, .graph_node = 5, .bytes = 6,
				   .priority = -1, .peer = UINT32_MAX };
}

static inline void put_now(struct rig *rig, int64_t ahead, uint32_t correlation)
{
	int64_t now = peer_clock(CLOCK_REALTIME) + ahead;
	struct wire_work w = work_at(now - 5000, now - 1000, correlation);

	assert_int_equal(peer_put(&rig->peer, &w), 0);
}

#endif
