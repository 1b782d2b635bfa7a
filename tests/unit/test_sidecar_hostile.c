// SPDX-License-Identifier: BSD-2-Clause
/* The loader's side of a sidecar that does not behave: messages and a ring of anybody's. */
#include "sidecar_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
