// SPDX-License-Identifier: BSD-2-Clause
/* The moments in which calls are recorded, against a CUPTI made of the functions here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_pair.h"

#include "sidecar/lib/anchors.h"
#include "sidecar/lib/buffers.h"
#include "sidecar/lib/window.h"

static struct {
	uintptr_t pair[4]; /* CUPTI's data: who gets buffers is in the middle of it */
	uint64_t on;	   /* kinds of records */
	unsigned flushed;
	uint32_t stuck; /* a kind that cannot be switched */
} fake;

static int fake_enable(uint32_t kind)
{
	if (kind == fake.stuck)
		return 8;
	fake.on |= 1ull << kind;
	return 0;
}

static int fake_disable(uint32_t kind)
{
	if (kind == fake.stuck)
		return 9;
	fake.on &= ~(1ull << kind);
	return 0;
}

static int fake_flush(uint32_t flag)
{
	fake.flushed++;
	return 0;
}

static int fake_timestamp(uint64_t *ns)
{
	*ns = 1000;
	return 0;
}

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	session = (struct session){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.pool.lock = PTHREAD_MUTEX_INITIALIZER,
		.pid = getpid(),
		.layout = layout_of(CUPTI_13_0),
		.window = { .thread_type = CUPTI_THREAD_SYSTEM, .flags = WIRE_CALLS },
		.cupti = {
			.enable = fake_enable,
			.disable = fake_disable,
			.flush_all = fake_flush,
			.get_timestamp = fake_timestamp,
		},
	};
	cupti_pair(fake.pair);
	return 0;
}

#define CALLS (1ull << CUPTI_DRIVER | 1ull << CUPTI_RUNTIME)
#define MS 1000000

/* Does what is due, when it is due. */
static int step(void)
{
	return anchors_step(&session, session.anchors.due);
}

/* As many as the first moment waits for. */
static void saw_some(void)
{
	for (int i = 0; i < 32; i++)
		anchors_saw(&session, 1000);
}

static void a_moment_lasts_until_a_call_was_seen(void **state)
{
	int64_t begun = now_ns();

	assert_int_equal(anchors_begin(&session), 0);
	assert_int_equal(fake.on, CALLS);
	assert_true(session.anchors.due >= begun + 10 * MS);
	assert_int_equal(anchors_step(&session, session.anchors.due - 1), 0);
	assert_int_equal(fake.flushed, 0);
	for (unsigned i = 1; i < 10; i++) {
		assert_int_equal(step(), 0);
		assert_int_equal(fake.flushed, i);
	}
	for (int i = 0; i < 99; i++)
		anchors_saw(&session, 999); /* of before */
	for (int i = 0; i < 31; i++)
		anchors_saw(&session, 1000);
	assert_int_equal(step(), 0);
	assert_int_equal(fake.on, CALLS);
	anchors_saw(&session, 1000);
	begun = now_ns();
	assert_int_equal(step(), 0);
	assert_int_equal(fake.on | session.window.kinds, 0);
	assert_true(session.anchors.due >= begun + 500 * MS);
}

/* Versions that number works without need none, unless they are asked for. */
static void numbers_need_no_calls(void **state)
{
	static const struct {
		uint32_t version, flags;
		uint64_t on;
	} cases[] = {
		{ 18, 0, CALLS }, { 28, 0, CALLS }, { CUPTI_13_0, 0, 0 }, { CUPTI_13_3, 0, 0 },
		{ CUPTI_13_4, 0, 0 }, { CUPTI_13_0, WIRE_CALLS, CALLS },
		{ CUPTI_13_0, WIRE_ALL_API, CALLS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		session.layout = layout_of(cases[i].version);
		session.window.flags = cases[i].flags;
		assert_int_equal(anchors_begin(&session), 0);
		assert_int_equal(fake.on, cases[i].on);
		if (!cases[i].on)
			assert_int_equal(anchors_step(&session, INT64_MAX - 1), 0);
		assert_int_equal(fake.on, cases[i].on);
		assert_int_equal(anchors_off(&session), 0);
	}
}

static void a_later_one_ends_without(void **state)
{
	assert_int_equal(anchors_begin(&session), 0);
	saw_some();
	assert_int_equal(step(), 0);
	assert_int_equal(fake.on, 0);
	assert_int_equal(step(), 0);
	assert_int_equal(fake.on, CALLS);
	assert_int_equal(anchors_step(&session, session.anchors.until - 1), 0);
	assert_int_equal(fake.on, CALLS);
	assert_int_equal(fake.flushed, 2);
	session.anchors.due = session.anchors.until;
	assert_int_equal(step(), 0);
	assert_int_equal(fake.on, 0);
	assert_int_equal(fake.flushed, 3);
}

static void all_calls_are_no_moments(void **state)
{
	session.window.flags = WIRE_ALL_API;
	assert_int_equal(anchors_begin(&session), 0);
	saw_some();
	assert_int_equal(anchors_step(&session, INT64_MAX - 1), 0);
	assert_int_equal(fake.on, CALLS);
	assert_int_equal(fake.flushed, 0);
	assert_int_equal(anchors_off(&session), 0);
	assert_int_equal(anchors_off(&session), 0);
	assert_int_equal(fake.on | session.window.kinds, 0);
}

static void what_cannot_be_switched_is_told(void **state)
{
	fake.stuck = CUPTI_RUNTIME;
	assert_int_equal(anchors_begin(&session), 8);
	assert_int_equal(anchors_off(&session), 0);
	assert_int_equal(fake.on, 0);
	fake.stuck = 0;
	assert_int_equal(anchors_begin(&session), 0);
	fake.stuck = CUPTI_DRIVER;
	saw_some();
	assert_int_equal(step(), 9);
	assert_int_equal(fake.on, 1ull << CUPTI_DRIVER);
	fake.stuck = 0;
	window_off(&session); /* tries it again */
	assert_int_equal(fake.on, 0);
}

static void withdrawn_within_a_moment(void **state)
{
	struct wire_message answer = { 0 };
	size_t size, most;
	uint8_t *buffer;

	for (int taken = 0; taken < 2; taken++) {
		assert_int_equal(anchors_begin(&session), 0);
		assert_int_equal(pool_fill(&session.pool), 0);
		buffers_request(&buffer, &size, &most);
		assert_non_null(buffer);
		if (taken)
			fake.pair[1] = (uintptr_t)malloc;
		assert_int_equal(window_withdraw(&session, "why", &answer), !taken);
		assert_int_equal(fake.on, taken ? 1ull << CUPTI_RUNTIME : 0);
		assert_non_null(strstr(answer.text, "another profiler has begun"));
		assert_int_equal(strstr(answer.text, "lost to both") != NULL, taken);
	}
	assert_non_null(strstr(answer.text, "up to 2 buffers"));
	free(buffer);
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		if (session.pool.at[i] != buffer)
			free(session.pool.at[i]);
}

/* Of the driver and the runtime, what launches; with WIRE_ALL_API, all. */
static void calls_that_launch(void **state)
{
	static const struct {
		uint32_t kind, cbid;
		bool launches;
	} cases[] = {
		{ CUPTI_DRIVER, 307, true }, { CUPTI_DRIVER, 17, false },
		{ CUPTI_RUNTIME, 211, true },  { CUPTI_RUNTIME, 165, false },
		{ CUPTI_RUNTIME, 5000, true }, { CUPTI_RUNTIME, 307, false },
	};
	struct wire_ring shared = { 0 };
	static uint8_t data[4096];

	session.ring = (struct ring){ .shared = &shared, .data = data, .size = sizeof(data) };
	session.taking = true;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		uint32_t record[10] = { cases[i / 2].kind, cases[i / 2].cbid, 2000, 0, 3000 };
		uint64_t head = shared.head;

		session.window.flags = i % 2 ? WIRE_ALL_API : 0;
		atomic_store(&session.anchors.seen, 0);
		buffers_record(&session, record, sizeof(record));
		assert_int_equal(shared.head - head,
				 i % 2 || cases[i / 2].launches ? sizeof(struct wire_call) : 0);
		assert_int_equal(atomic_load(&session.anchors.seen), cases[i / 2].launches);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_moment_lasts_until_a_call_was_seen, set_up),
		cmocka_unit_test_setup(numbers_need_no_calls, set_up),
		cmocka_unit_test_setup(a_later_one_ends_without, set_up),
		cmocka_unit_test_setup(all_calls_are_no_moments, set_up),
		cmocka_unit_test_setup(what_cannot_be_switched_is_told, set_up),
		cmocka_unit_test_setup(withdrawn_within_a_moment, set_up),
		cmocka_unit_test_setup(calls_that_launch, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
