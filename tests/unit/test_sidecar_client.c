// SPDX-License-Identifier: BSD-2-Clause
/* The loader's side of a sidecar, with the test as the other side: polite, and not. */
#include <errno.h>
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

static int on_record(void *ctx, const struct record *r)
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

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct sidecar_options o = { .pid = (uint32_t)getpid(), .flags = WIRE_OVERHEAD,
				     .cupti = "/opt/libcupti.so.13", .sink = on_record,
				     .ctx = rig };
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

static int teardown(void **state)
{
	struct rig *rig = *state;

	sidecar_free(rig->client);
	peer_close(&rig->peer);
	free(rig);
	return 0;
}

static void step(struct rig *rig)
{
	assert_int_equal(sidecar_step(rig->client), 0);
}

/* How many of this kind (and event, for RECORD_SIDECAR; 0: any), and the last of them. */
static size_t seen(struct rig *rig, unsigned kind, unsigned event, const struct record **last)
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

static const char *text_of(struct rig *rig, const struct record *r)
{
	return rig->texts[r - rig->seen];
}

static void say(struct rig *rig, uint32_t type, int64_t ahead)
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
static void begin(struct rig *rig, int64_t ahead)
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
}

static struct wire_work work_at(int64_t begin, int64_t end, uint32_t correlation)
{
	return (struct wire_work){ .r = { sizeof(struct wire_work), WIRE_WORK }, .begin = begin,
				   .end = end, .kind = RECORD_WORK_KERNEL, .device = 1,
				   .context = 2, .stream = 7, .correlation = correlation,
				   .shape = 3, .graph = 4, .graph_node = 5, .bytes = 6,
				   .priority = -1, .peer = UINT32_MAX };
}

static void put_now(struct rig *rig, int64_t ahead, uint32_t correlation)
{
	int64_t now = peer_clock(CLOCK_REALTIME) + ahead;
	struct wire_work w = work_at(now - 5000, now - 1000, correlation);

	assert_int_equal(peer_put(&rig->peer, &w), 0);
}

static void conversation(void **state)
{
	struct rig *rig = *state;
	const int64_t ahead = 12345678901LL; /* CUPTI has a clock of its own */
	struct wire_call call = { .r = { sizeof(call), WIRE_CALL }, .tid = (uint32_t)getpid(),
				  .domain = 1, .cbid = 307, .correlation = 9, .ret = 2 };
	int64_t before = peer_clock(CLOCK_MONOTONIC);
	struct sidecar_stats stats;
	const struct record *r;

	begin(rig, ahead);
	put_now(rig, ahead, 8);
	call.begin = peer_clock(CLOCK_REALTIME) + ahead;
	call.end = call.begin + 777;
	assert_int_equal(peer_put(&rig->peer, &call), 0);
	step(rig);
	step(rig);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 0); /* no reading after them yet */
	say(rig, WIRE_CLOCK, ahead);
	step(rig);
	assert_int_equal(seen(rig, RECORD_WORK, 0, &r), 1);
	assert_true(r->work.begin >= before - 5000 - MS);
	assert_true(r->work.begin <= peer_clock(CLOCK_MONOTONIC));
	assert_int_equal(r->work.duration, 4000);
	assert_int_equal(r->work.pid, getpid());
	assert_int_equal(r->work.stream, 7);
	assert_int_equal(r->work.graph_node, 5);
	assert_int_equal(r->work.priority, -1);
	assert_int_equal(seen(rig, RECORD_WORK_CALL, 0, &r), 1);
	assert_int_equal(r->work_call.duration, 777);
	assert_int_equal(r->work_call.tid, getpid());
	assert_int_equal(r->work_call.ret, 2);
	put_now(rig, ahead, 10);
	say(rig, WIRE_ENDED, ahead);
	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_OVER);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 2);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_ATTACHED, &r), 1);
	assert_int_equal(r->sidecar.cupti, 130001);
	assert_string_equal(text_of(rig, r), "/lib/libcupti.so.13");
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BEGAN, NULL), 1);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_ENDED, NULL), 1);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_CLOCK, &r), 1);
	assert_true(r->sidecar.count > 0 && r->sidecar.count < (uint64_t)MS);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BAD, NULL), 0);
	sidecar_stats(rig->client, &stats);
	assert_int_equal(stats.works, 2);
	assert_int_equal(stats.calls, 1);
	assert_int_equal(stats.dropped + stats.bad, 0);
	assert_int_equal(sidecar_fd(rig->client), -1);
}

static void shape_and_device(void **state)
{
	struct rig *rig = *state;
	static const char name[] = "_Z6kernelPf";
	struct {
		struct wire_shape s;
		char name[16];
	} s = { { .r = { sizeof(s), WIRE_SHAPE }, .id = 5, .registers = 32, .grid = { 1, 2, 3 },
		  .block = { 64, 1, 1 }, .smem_dynamic = 99, .name_size = sizeof(name) }, "" };
	struct wire_device d = { .r = { sizeof(d), WIRE_DEVICE }, .ordinal = 0, .sms = 132,
				 .memory = 1LL << 37, .sm_blocks = -1,
				 .uuid = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3,
					   4, 5, 6, 7, 255 },
				 .name = "NVIDIA H200" };
	const struct record *r;

	memcpy(s.name, name, sizeof(name));
	begin(rig, 0);
	assert_int_equal(peer_put(&rig->peer, &s), 0);
	assert_int_equal(peer_put(&rig->peer, &d), 0);
	strcpy(d.name, "NVIDIA H200 MIG 1g.18gb");
	step(rig);
	assert_int_equal(seen(rig, RECORD_SHAPE, 0, &r), 1);
	assert_string_equal(text_of(rig, r), name);
	assert_int_equal(r->shape.grid[2], 3);
	assert_int_equal(r->shape.smem_dynamic, 99);
	assert_int_equal(seen(rig, RECORD_DEVICE, 0, &r), 1);
	assert_string_equal(text_of(rig, r), "GPU-12345678-9abc-def0-0102-0304050607ff");
	assert_int_equal(r->device.sms, 132);
	assert_int_equal(r->device.sm_blocks, -1);
	assert_int_equal(peer_put(&rig->peer, &d), 0);
	step(rig);
	seen(rig, RECORD_DEVICE, 0, &r);
	assert_memory_equal(text_of(rig, r), "MIG-", 4);
}

/* Killed: what is in the ring is read, and times are known, as its clock was the machine's. */
static void gone(void **state)
{
	struct rig *rig = *state;
	uint32_t i;

	begin(rig, 0);
	for (i = 0; i < 100; i++)
		put_now(rig, 0, i);
	close(rig->peer.fd);
	rig->peer.fd = -1;
	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_OVER);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 100);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_GONE, NULL), 1);
	step(rig); /* nothing more */
}

/* Its clock was not the machine's: nobody knows what it said in the end. */
static void gone_with_its_clock(void **state)
{
	struct rig *rig = *state;
	const struct record *r;

	begin(rig, 55 * MS);
	put_now(rig, 55 * MS, 1);
	close(rig->peer.fd);
	rig->peer.fd = -1;
	step(rig);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 0);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BAD, &r), 1);
	assert_int_equal(r->sidecar.count, 1);
}

static void bad_records(void **state)
{
	struct rig *rig = *state;
	int64_t now = peer_clock(CLOCK_REALTIME);
	struct wire_work w[] = {
		work_at(0, now, 1),	     work_at(now, 0, 1),	 work_at(-5, now, 1),
		work_at(now, now - 1, 1),    work_at(1, 2, 1),		 work_at(now, INT64_MAX, 1),
		work_at(INT64_MIN, INT64_MAX, 1), work_at(now, now, 1), work_at(now, now, 1),
	};
	const struct record *r;
	uint64_t bad = 0;
	size_t i;

	w[7].kind = 4;
	w[8].direction = 11;
	begin(rig, 0);
	for (i = 0; i < 9; i++)
		assert_int_equal(peer_put(&rig->peer, &w[i]), 0);
	rig->peer.ring->bad[WIRE_BAD_NAME] = 7;
	rig->peer.ring->dropped = 12;
	say(rig, WIRE_ENDED, 0);
	step(rig);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 0);
	for (i = 0; i < rig->count; i++)
		if (rig->seen[i].kind == RECORD_SIDECAR &&
		    rig->seen[i].sidecar.event == RECORD_SIDECAR_BAD)
			bad += rig->seen[i].sidecar.count;
	assert_int_equal(bad, 9 + 7);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_DROPPED, &r), 1);
	assert_int_equal(r->sidecar.count, 12);
}

/* Several times around the ring, read now and then. */
static void around(void **state)
{
	struct rig *rig = *state;
	struct sidecar_stats stats;
	uint32_t i, put = 0;

	begin(rig, 0);
	for (i = 0; i < 300000; i++) {
		int64_t now = peer_clock(CLOCK_REALTIME);
		struct wire_work w = work_at(now - 10, now, i);

		put += !peer_put(&rig->peer, &w);
		if (i % 20000 == 0) {
			say(rig, WIRE_CLOCK, 0);
			step(rig);
			step(rig);
			step(rig);
			rig->count = 0; /* counted by the client itself */
		}
	}
	assert_true(put < 300000 || rig->peer.ring->head > 3 * WIRE_RING_BYTES);
	say(rig, WIRE_ENDED, 0);
	step(rig);
	sidecar_stats(rig->client, &stats);
	assert_int_equal(stats.works, put);
}

/* A sidecar that is out of its mind: over, with a word, and never more. */
static void refuses(struct rig *rig, const char *why)
{
	const struct record *r;

	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_OVER);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_FAILED, &r), 1);
	assert_non_null(strstr(text_of(rig, r), why));
	step(rig);
}

static void out_of_turn(void **state)
{
	say(*state, WIRE_BEGAN, 0);
	refuses(*state, "out of turn");
}

static void ready_twice(void **state)
{
	say(*state, WIRE_READY, 0);
	say(*state, WIRE_READY, 0);
	refuses(*state, "out of turn");
}

static void unknown_message(void **state)
{
	say(*state, 77, 0);
	refuses(*state, "not known");
}

static void wrong_size(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(send(rig->peer.fd, "hello", 5, 0), 5);
	refuses(rig, "wrong size");
}

static void long_message(void **state)
{
	struct rig *rig = *state;
	char bytes[sizeof(struct wire_message) + 1] = { WIRE_READY };

	assert_int_equal(send(rig->peer.fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	refuses(rig, "wrong size");
}

static void other_version(void **state)
{
	struct rig *rig = *state;
	struct wire_message m = { .type = WIRE_READY, .version = WIRE_VERSION + 1 };

	assert_int_equal(send(rig->peer.fd, &m, sizeof(m), 0), sizeof(m));
	refuses(rig, "version");
}

static void times_of_another_world(void **state)
{
	struct rig *rig = *state;
	struct wire_message m = { .type = WIRE_BEGAN, .before = 1LL << 61, .stamp = 5,
				  .after = (1LL << 61) + 5 };

	say(rig, WIRE_READY, 0);
	step(rig);
	sidecar_start(rig->client, MS);
	assert_int_equal(peer_say(&rig->peer, &m), 0);
	refuses(rig, "cannot be compared");
}

static void head_anywhere(void **state)
{
	struct rig *rig = *state;

	begin(rig, 0);
	rig->peer.ring->head = UINT64_MAX - 7;
	refuses(rig, "damaged");
}

static void size_of_nothing(void **state)
{
	struct rig *rig = *state;

	begin(rig, 0);
	memset(rig->peer.data, 0, 64); /* a record of 0 bytes */
	rig->peer.ring->head = 64;
	refuses(rig, "damaged");
}

static void name_without_end(void **state)
{
	struct rig *rig = *state;
	struct {
		struct wire_shape s;
		char name[8];
	} s = { { .r = { sizeof(s), WIRE_SHAPE }, .name_size = 8 }, "" };
	const struct record *r;

	memset(s.name, 'x', 8);
	begin(rig, 0);
	assert_int_equal(peer_put(&rig->peer, &s), 0);
	s.s.name_size = 5000; /* beyond the record */
	assert_int_equal(peer_put(&rig->peer, &s), 0);
	put_now(rig, 0, 1);
	say(rig, WIRE_ENDED, 0);
	step(rig);
	assert_int_equal(seen(rig, RECORD_SHAPE, 0, NULL), 0);
	assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), 1);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BAD, &r), 1);
	assert_int_equal(r->sidecar.count, 2);
}

static void refused_and_failed(void **state)
{
	struct rig *rig = *state;
	struct wire_message m = { .type = WIRE_REFUSED };
	const struct record *r;

	memset(m.text, 'a', sizeof(m.text)); /* without an end */
	assert_int_equal(peer_say(&rig->peer, &m), 0);
	step(rig);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_REFUSED, &r), 1);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_OVER);
}

static void stop_is_passed_on(void **state)
{
	struct rig *rig = *state;
	struct wire_message m;
	const struct record *r;

	begin(rig, 0);
	sidecar_stop(rig->client, "somebody else");
	sidecar_stop(rig->client, NULL);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_STOPPING);
	assert_int_equal(peer_receive(&rig->peer, &m), WIRE_STOP);
	assert_int_equal(m.flags, WIRE_FOREIGN);
	assert_string_equal(m.text, "somebody else");
	assert_int_equal(peer_receive(&rig->peer, &m), 0);
	m = (struct wire_message){ .type = WIRE_WITHDREW, .dropped = 17, .text = "why" };
	assert_int_equal(peer_say(&rig->peer, &m), 0);
	step(rig);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_WITHDREW, &r), 1);
	assert_int_equal(r->sidecar.count, 17);
}

static void sink_fails(void **state)
{
	struct rig *rig = *state;

	begin(rig, 0);
	put_now(rig, 0, 1);
	say(rig, WIRE_CLOCK, 0);
	rig->sink_error = -ENOSPC;
	assert_int_equal(sidecar_step(rig->client), 0); /* the reading was before it was seen */
	say(rig, WIRE_CLOCK, 0);
	assert_int_equal(sidecar_step(rig->client), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(conversation, setup, teardown),
		cmocka_unit_test_setup_teardown(shape_and_device, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_with_its_clock, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_records, setup, teardown),
		cmocka_unit_test_setup_teardown(around, setup, teardown),
		cmocka_unit_test_setup_teardown(out_of_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(ready_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_message, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_size, setup, teardown),
		cmocka_unit_test_setup_teardown(long_message, setup, teardown),
		cmocka_unit_test_setup_teardown(other_version, setup, teardown),
		cmocka_unit_test_setup_teardown(times_of_another_world, setup, teardown),
		cmocka_unit_test_setup_teardown(head_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(size_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(name_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_and_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_is_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(sink_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
