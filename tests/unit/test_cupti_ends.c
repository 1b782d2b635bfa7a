// SPDX-License-Identifier: BSD-2-Clause
/* How the sidecar's library ends a window, against a CUPTI made of the functions here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_pair.h"

#include "sidecar/lib/buffers.h"
#include "sidecar/lib/window.h"

#define RECORD 216 /* bytes of a kernel's, CUPTI 13.0 */
#define TURN_MS 4
#define GRACE_TURNS 5
#define PATIENCE_TURNS (300 / TURN_MS)

static struct {
	uintptr_t pair[4];
	uint8_t *held;	    /* a buffer of ours; NULL: none */
	unsigned gives;	    /* it back at this flush; 0: by force only */
	unsigned flushes, forced, records;
	bool foreign;	    /* somebody else registers at the third flush */
	int says;	    /* to a flush that is not forced */
} fake;

static struct wire_ring shared;

static void give_back(void)
{
	uint8_t *buffer = fake.held;

	fake.held = NULL;
	if (buffer)
		buffers_complete(NULL, 0, buffer, POOL_BYTES, (size_t)fake.records * RECORD);
}

static int fake_flush(uint32_t flag)
{
	if (flag) {
		fake.forced++;
		give_back();
		return 0;
	}
	assert_int_equal(fake.forced, 0);
	fake.flushes++;
	if (fake.foreign && fake.flushes == 3)
		fake.pair[1] = (uintptr_t)malloc;
	if (fake.flushes == fake.gives)
		give_back();
	return fake.says;
}

static int fake_next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record ? (uint8_t *)*record + RECORD : buffer;

	if (at >= buffer + valid)
		return 12;
	*record = at;
	return 0;
}

static int fake_dropped(void *context, uint32_t stream, size_t *count)
{
	*count = 0;
	return 0;
}

static int fake_timestamp(uint64_t *ns)
{
	*ns = (uint64_t)now_ns();
	return 0;
}

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(&shared, 0, sizeof(shared));
	cupti_session(fake.pair);
	session.taking = true;
	session.devices_told = true;
	session.window.on = true;
	session.window.thread_type = CUPTI_THREAD_SYSTEM;
	session.ring.shared = &shared;
	session.cupti.flush_all = fake_flush;
	session.cupti.next_record = fake_next;
	session.cupti.dropped = fake_dropped;
	session.cupti.get_timestamp = fake_timestamp;
	return pool_fill(&session.pool);
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		free(session.pool.at[i]);
	return 0;
}

/* CUPTI has a buffer with so many kernels, that have no end. */
static void hold(unsigned records)
{
	const uint32_t kind = CUPTI_CONCURRENT_KERNEL;
	const uint64_t start = 5;
	size_t size, most;

	buffers_request(&fake.held, &size, &most);
	assert_int_equal(*(uint32_t *)(void *)fake.held, 0);
	memset(fake.held + sizeof(kind), 0, POOL_BYTES - sizeof(kind));
	for (size_t i = 0; i < records; i++) {
		memcpy(fake.held + i * RECORD, &kind, sizeof(kind));
		memcpy(fake.held + i * RECORD + KERNEL_START, &start, sizeof(start));
	}
	fake.records = records;
}

static void end(enum wire_type type)
{
	struct wire_message answer = { 0 };

	window_end(&session, &answer);
	assert_int_equal(answer.type, type);
	assert_false(session.window.on);
	assert_null(fake.held);
	assert_false(atomic_load(&session.forced));
}

static void nothing_is_out(void **state)
{
	end(WIRE_ENDED);
	assert_in_range(fake.flushes, 1, GRACE_TURNS);
	assert_int_equal(fake.forced, 1);
}

/* Whatever was in it before: CUPTI keeps it, and nothing can be lost with it. */
static void an_empty_one_is_out(void **state)
{
	hold(3);
	give_back();
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 3);
	hold(0);
	assert_int_equal(pool_filling(&session.pool), 0);
	end(WIRE_ENDED);
	assert_in_range(fake.flushes, 1, GRACE_TURNS);
	assert_int_equal(shared.running, 0);
}

static void one_comes_later(void **state)
{
	hold(2);
	assert_int_equal(pool_filling(&session.pool), 1);
	fake.gives = 20;
	end(WIRE_ENDED);
	assert_int_equal(fake.flushes, 20);
	assert_int_equal(fake.forced, 1);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 2); /* it came by itself, and so had ended */
	assert_int_equal(shared.running, 0);
}

static void one_comes_by_force(void **state)
{
	hold(27);
	end(WIRE_ENDED);
	assert_in_range(fake.flushes, 2, PATIENCE_TURNS);
	assert_int_equal(fake.forced, 1);
	assert_int_equal(shared.running, 27);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 0);
}

static void a_flush_fails(void **state)
{
	hold(1);
	fake.says = 999;
	end(WIRE_ENDED); /* the forced one does not */
	assert_in_range(fake.flushes, 2, PATIENCE_TURNS);
}

static void nobody_takes(void **state)
{
	hold(1);
	session.taking = false;
	end(WIRE_ENDED);
	assert_in_range(fake.flushes, 1, GRACE_TURNS);
	assert_int_equal(shared.running, 0);
}

/* What is out is the other's to get: no force. */
static void somebody_else_begins(void **state)
{
	struct wire_message answer = { 0 };

	hold(1);
	fake.foreign = true;
	window_end(&session, &answer);
	assert_int_equal(fake.flushes, 3 + 1); /* so that CUPTI asks for theirs */
	assert_int_equal(fake.forced, 0);
	assert_int_equal(shared.running, 0);
	assert_int_equal(answer.type, WIRE_WITHDREW);
	assert_true(answer.window > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_one_is_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_comes_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_comes_by_force, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flush_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_takes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(somebody_else_begins, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
