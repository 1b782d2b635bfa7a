// SPDX-License-Identifier: BSD-2-Clause
/* The loader's side of a sidecar that behaves. */
#include <errno.h>

#include "sidecar_rig.h"

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
	struct sidecar_stats stats;
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
	rig->peer.ring->running = 27;
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
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_RUNNING, &r), 1);
	assert_int_equal(r->sidecar.count, 27);
	sidecar_stats(rig->client, &stats);
	assert_int_equal(stats.running, 27);
	assert_int_equal(stats.bad, 9 + 7);
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

static int setup_again(void **state)
{
	return setup_for(state, true);
}

/* A schedule has several windows, and what the sidecar told once is known in all of them. */
static void window_after_window(void **state)
{
	struct rig *rig = *state;
	struct wire_message m;

	begin(rig, 0);
	for (uint32_t i = 1; i < 4; i++) {
		put_now(rig, 0, i);
		sidecar_stop(rig->client, NULL);
		assert_int_equal(peer_receive(&rig->peer, &m), WIRE_STOP);
		assert_int_equal(sidecar_state(rig->client), SIDECAR_STOPPING);
		say(rig, WIRE_ENDED, 0);
		step(rig);
		assert_int_equal(sidecar_state(rig->client), SIDECAR_READY);
		assert_true(sidecar_fd(rig->client) >= 0);
		assert_int_equal(seen(rig, RECORD_WORK, 0, NULL), i);
		assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_ENDED, NULL), i);
		step(rig); /* nothing is waited for */
		sidecar_start(rig->client, 1000 * MS);
		assert_int_equal(peer_receive(&rig->peer, &m), WIRE_START);
		say(rig, WIRE_BEGAN, 0);
		step(rig);
		assert_int_equal(sidecar_state(rig->client), SIDECAR_RECORDING);
		assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BEGAN, NULL), i + 1);
		usleep(100);
	}
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_BAD, NULL), 0);
}

/* Only an end that was begun can be followed by another window. */
static void ends_out_of_turn(void **state)
{
	struct rig *rig = *state;

	begin(rig, 0);
	say(rig, WIRE_ENDED, 0);
	say(rig, WIRE_ENDED, 0);
	say(rig, WIRE_ENDED, 0);
	step(rig);
	assert_int_equal(sidecar_state(rig->client), SIDECAR_OVER);
	assert_int_equal(seen(rig, RECORD_SIDECAR, RECORD_SIDECAR_ENDED, NULL), 2);
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
		cmocka_unit_test_setup_teardown(refused_and_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_is_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(window_after_window, setup_again, teardown),
		cmocka_unit_test_setup_teardown(ends_out_of_turn, setup_again, teardown),
		cmocka_unit_test_setup_teardown(sink_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
