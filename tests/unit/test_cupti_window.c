// SPDX-License-Identifier: BSD-2-Clause
/* The sidecar's library against a CUPTI made of the functions here, and other clients of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_pair.h"

#include "sidecar/lib/buffers.h"
#include "sidecar/lib/code.h"
#include "sidecar/lib/window.h"

static struct {
	cupti_callback_fn callback; /* of the subscriber; NULL: none */
	unsigned subscribed, unsubscribed;
	int subscribe_says;
	uintptr_t pair[4]; /* CUPTI's data: who gets buffers is in the middle of it */
	void **records;	   /* that next_record() gives out */
	size_t count, at;
} fake;

static int fake_subscribe(void **subscriber, cupti_callback_fn callback, void *user)
{
	if (fake.subscribe_says)
		return fake.subscribe_says;
	fake.subscribed++;
	fake.callback = callback;
	*subscriber = &fake;
	return 0;
}

static int fake_unsubscribe(void *subscriber)
{
	fake.unsubscribed++;
	fake.callback = NULL;
	return 0;
}

static int fake_next(uint8_t *buffer, size_t valid, void **record)
{
	if (fake.at == fake.count)
		return 12;
	*record = fake.records[fake.at++];
	return 0;
}

static int fake_dropped(void *context, uint32_t stream, size_t *count)
{
	*count = 3;
	return 0;
}

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	cupti_session(fake.pair);
	session.cupti.subscribe = fake_subscribe;
	session.cupti.unsubscribe = fake_unsubscribe;
	session.cupti.next_record = fake_next;
	session.cupti.dropped = fake_dropped;
	return 0;
}

/* ---- who else ---- */

static void ours_until_replaced(void **state)
{
	assert_true(window_ours(&session));
	assert_false(window_taken(&session));
	fake.pair[1] = (uintptr_t)malloc;
	assert_true(window_taken(&session));
	fake.pair[1] = (uintptr_t)buffers_request;
	assert_false(window_taken(&session));
	atomic_store(&session.strange, true);
	assert_true(window_taken(&session));
	session.neighbour.pair = 0;
	atomic_store(&session.strange, false);
	assert_true(window_taken(&session));
}

static int registered(uintptr_t first, uintptr_t second, char *why, size_t size)
{
	fake.pair[1] = first;
	fake.pair[2] = second;
	return neighbour_registered(&session.neighbour, buffers_request, why, size);
}

static void code_of_others_is_known(void **state)
{
	uintptr_t theirs = (uintptr_t)_cmocka_run_group_tests, libc = (uintptr_t)malloc;
	uintptr_t ours = (uintptr_t)buffers_request;
	char why[64] = "";

	libc = (uintptr_t)getpid;
	assert_int_equal(registered(ours, ours, why, sizeof(why)), 0);
	assert_int_equal(registered(0, 0, why, sizeof(why)), 0);
	assert_int_equal(registered(libc, libc, why, sizeof(why)), 0);
	assert_int_equal(registered(theirs, libc, why, sizeof(why)), 0);
	assert_int_equal(registered((uintptr_t)&fake, (uintptr_t)&fake, why, sizeof(why)), 0);
	assert_int_equal(registered(theirs, theirs + 1, why, sizeof(why)), 1);
	assert_non_null(strstr(why, "libcmocka"));
	fake.pair[0] = fake.pair[3] = theirs; /* not where they would be */
	assert_int_equal(registered(theirs, libc, why, sizeof(why)), 0);
	session.neighbour.pair = 0; /* anywhere */
	assert_int_equal(registered(theirs, libc, why, sizeof(why)), 1);
}

/* As CUPTI 13.3 keeps them: in an object that its data points to. */
static void code_behind_a_pointer(void **state)
{
	uintptr_t object[32] = { 0 }, theirs = (uintptr_t)_cmocka_run_group_tests;
	char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char why[64];

	assert_int_equal(neighbour_deep(CUPTI_13_1), 0);
	assert_int_equal(neighbour_deep(CUPTI_13_2), 0);
	session.neighbour.deep = neighbour_deep(CUPTI_13_3);
	session.neighbour.pair = 0;
	munmap(hole, 8192);
	assert_int_equal(registered((uintptr_t)object, (uintptr_t)hole, why, sizeof(why)), 0);
	object[14] = theirs;
	object[15] = theirs;
	assert_int_equal(registered((uintptr_t)hole + 4, (uintptr_t)object, why, sizeof(why)), 1);
	object[14] = (uintptr_t)buffers_request;
	object[15] = (uintptr_t)buffers_complete;
	assert_int_equal(registered(8, (uintptr_t)object, why, sizeof(why)), 0);
	assert_true(neighbour_note(&session.neighbour, buffers_request, buffers_complete));
	assert_true(window_ours(&session));
	object[15] = theirs;
	assert_true(window_taken(&session));
	object[15] = (uintptr_t)buffers_complete;
	fake.pair[2] = (uintptr_t)hole; /* the object is gone */
	assert_true(window_taken(&session));
}

static void lines_of_maps(void **state)
{
	static const struct {
		const char *line, *path;
		bool code;
	} cases[] = {
		{ "1000-2000 r-xp 00001000 08:01 12 /lib/x y.so", "/lib/x y.so", true },
		{ "7f0000001000-7f0000002000 --xp 0 0:0 0", "", true },
		{ "1000-2000 rwxp 00000000 00:00 0 [heap]", "[heap]", true },
		{ "1000-2000 rw-p 00000000 00:00 0 [heap]", "", false },
		{ "2000-1000 r-xp 00000000 00:00 0 x", "", false },
		{ "1000-2000 r-xp", "", false },
		{ "1000-2000 r-x", "", false },
		{ "1000-2000", "", false },
		{ "1000", "", false },
		{ "", "", false },
		{ "zz-yy r-xp 0 0 0 x", "", false },
	};
	const char *path;
	uintptr_t from, to;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(code_line(cases[i].line, &from, &to, &path), cases[i].code);
		if (cases[i].code)
			assert_string_equal(path, cases[i].path);
	}
}

/* ---- buffers ---- */

static void buffers_go_and_come(void **state)
{
	uint8_t *all[POOL_BUFFERS + 1], *again, strange[64];
	size_t size, most = 9;

	assert_int_equal(pool_fill(&session.pool), 0);
	for (unsigned i = 0; i <= POOL_BUFFERS; i++) {
		buffers_request(&all[i], &size, &most);
		assert_int_equal(size, i < POOL_BUFFERS ? POOL_BYTES : 0);
		assert_int_equal(all[i] != NULL, i < POOL_BUFFERS);
		assert_int_equal(most, 0);
		for (unsigned k = 0; k < i && all[i]; k++)
			assert_ptr_not_equal(all[i], all[k]);
	}
	buffers_complete(NULL, 0, all[3], POOL_BYTES, SIZE_MAX);
	assert_int_equal(session.dropped, 3);
	buffers_request(&again, &size, &most);
	assert_ptr_equal(again, all[3]);
	assert_false(atomic_load(&session.strange));
	buffers_complete(NULL, 0, strange, sizeof(strange), sizeof(strange));
	assert_true(atomic_load(&session.strange));
	assert_int_equal(pool_lose(&session.pool), POOL_BUFFERS);
	buffers_complete(NULL, 0, all[0], POOL_BYTES, 0); /* not ours any more */
	assert_int_equal(pool_fill(&session.pool), 0);
	buffers_request(&all[POOL_BUFFERS], &size, &most);
	assert_int_equal(size, POOL_BYTES);
	buffers_complete(NULL, 0, all[POOL_BUFFERS], POOL_BYTES, 0);
	pool_rest(&session.pool);
	for (unsigned i = 0; i < POOL_BUFFERS; i++) {
		assert_int_equal(session.pool.state[i], BUFFER_FREE);
		free(session.pool.at[i]);
	}
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		free(all[i]);
}

static void none_in_a_child(void **state)
{
	uint8_t *buffer, some[64];
	size_t size = 1, most = 1;

	assert_int_equal(pool_fill(&session.pool), 0);
	session.pid++;
	buffers_request(&buffer, &size, &most);
	assert_null(buffer);
	assert_int_equal(size, 0);
	buffers_complete(NULL, 0, some, sizeof(some), sizeof(some));
	assert_false(atomic_load(&session.strange));
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		free(session.pool.at[i]);
}

/* Records outside of the buffer, across its end, and one again and again. */
static void records_that_cannot_be(void **state)
{
	_Alignas(8) static uint8_t buffer[4096];
	uint32_t kind = CUPTI_CONCURRENT_KERNEL;
	struct wire_ring shared = { 0 };
	void *outside[] = { buffer, buffer - 8 }, *beyond[] = { buffer + 4096 };
	void *across[] = { buffer, buffer + 4092 };
	void *same[] = { buffer + 8, buffer + 8, buffer + 8 };

	session.ring.shared = &shared;
	session.taking = true;
	memcpy(buffer, &kind, sizeof(kind));
	memcpy(buffer + 8, &kind, sizeof(kind));
	memcpy(buffer + 4092, &kind, sizeof(kind));
#define TAKE(list)                                                                                 \
	do {                                                                                       \
		fake.records = list;                                                               \
		fake.count = sizeof(list) / sizeof(*(list));                                       \
		fake.at = 0;                                                                       \
		buffers_take(&session, buffer, sizeof(buffer));                                    \
	} while (0)
	TAKE(outside);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 1);
	TAKE(beyond);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 1);
	TAKE(same);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 2);
	TAKE(across);
	assert_int_equal(shared.bad[WIRE_BAD_ZERO], 3);
	assert_int_equal(shared.bad[WIRE_BAD_FORM], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ours_until_replaced, set_up),
		cmocka_unit_test_setup(code_of_others_is_known, set_up),
		cmocka_unit_test_setup(code_behind_a_pointer, set_up),
		cmocka_unit_test(lines_of_maps),
		cmocka_unit_test_setup(buffers_go_and_come, set_up),
		cmocka_unit_test_setup(none_in_a_child, set_up),
		cmocka_unit_test_setup(records_that_cannot_be, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
