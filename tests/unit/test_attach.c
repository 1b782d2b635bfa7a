// SPDX-License-Identifier: BSD-2-Clause
/* Attaching and detaching on each rung: every call is seen, and nothing stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "children.h"
#include "probe/identity.h"
#include "rig.h"

#define CALLS 1000
#define FOR_RUNGS for (enum rung rung = rig_first_rung(); rung <= RUNG_SINGLE; rung++)

static void call_many(rig_fn function, size_t times)
{
	rig_fn volatile f = function;

	for (size_t i = 0; i < times; i++)
		assert_int_equal(f(NULL, (long)i, 3, 4, 5, 6, 7, 8, 9), i);
}

static size_t events_of(const struct rig *g, uint16_t api, enum event_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < g->count; i++)
		n += g->events[i].api == api && g->events[i].kind == kind;
	return n;
}

/* Begin and end of each call in turn, of this thread, at one depth of the stack. */
static void expect_pairs(const struct rig *g, uint16_t api, size_t calls)
{
	assert_int_equal(g->count, 2 * calls);
	for (size_t i = 0; i < g->count; i++) {
		const struct event *e = &g->events[i];

		assert_int_equal(e->kind, i % 2 ? EVENT_END : EVENT_BEGIN);
		assert_int_equal(e->api, api);
		assert_int_equal(e->image, RIG_IMAGE);
		assert_int_equal(e->pid, getpid());
		assert_int_equal(e->tid, getpid());
		assert_int_equal(e->sp, g->events[0].sp);
		assert_true(!i || e->ts >= e[-1].ts);
		if (i % 2)
			assert_int_equal(e->end.ret, i / 2);
	}
}

static int probed(const struct rig *g, const char *function)
{
	uint64_t offset = rig_offset(g->exe, function);

	return identity_probed(g->exe, &offset, 1);
}

static void every_rung_sees_every_call(void **state)
{
	FOR_RUNGS {
		struct rig *g = rig_on(rung, "rig_call", "cuCtxSynchronize");

		assert_int_equal(probes_rung(g->p), rung);
		assert_true(probes_returns(g->p));
		assert_int_equal(probed(g, "rig_call"), 1);
		assert_int_equal(probed(g, "rig_other"), 0);
		call_many(rig_call, CALLS);
		call_many(rig_other, CALLS);
		rig_read(g);
		expect_pairs(g, rig_api("cuCtxSynchronize"), CALLS);
		rig_detach(g);
		assert_int_equal(probed(g, "rig_call"), 0);
		call_many(rig_call, CALLS);
		rig_read(g);
		assert_int_equal(g->count, 0);
		rig_free(g);
	}
}

static void the_best_rung_is_found(void **state)
{
	struct probes_trial trials[3];
	struct probes_options o = {.buffer_bytes = 1 << 20};
	struct probes *p = NULL;
	enum rung first = rig_first_rung();

	assert_int_equal(probes_new(&p, &o, trials), 0);
	assert_int_equal(probes_rung(p), first);
	for (int i = 0; i < (int)first - RUNG_SESSION; i++) {
		assert_int_equal(trials[i].rung, RUNG_SESSION + i);
		assert_true(trials[i].load < 0 || trials[i].attach < 0);
	}
	assert_int_equal(trials[first - RUNG_SESSION].rung, first);
	assert_int_equal(trials[first - RUNG_SESSION].load, 0);
	assert_int_equal(trials[first - RUNG_SESSION].attach, 0);
	probes_free(p);
}

static void many_sites_in_one_go(void **state)
{
	FOR_RUNGS {
		struct rig *g = rig_new(rung);
		struct probe_site sites[] = {
			rig_site(g, "rig_call", "cuCtxSynchronize"),
			rig_site(g, "rig_other", "cudaDeviceSynchronize"),
			rig_site(g, "rig_query", "cuInit"),
		};

		rig_attach(g, sites, 3);
		call_many(rig_call, 10);
		call_many(rig_other, 20);
		call_many(rig_query, 30);
		rig_read(g);
		assert_int_equal(g->count, 2 * 60);
		for (size_t i = 0; i < 3; i++) {
			uint16_t api = sites[i].cookie & 0xfff;

			assert_int_equal(events_of(g, api, EVENT_BEGIN), 10 * (i + 1));
			assert_int_equal(events_of(g, api, EVENT_END), 10 * (i + 1));
		}
		rig_free(g);
	}
}

/* A site, the whole loader at its start, or the loader from now on. */
static void entry_only_gives_no_ends(void **state)
{
	FOR_RUNGS {
		struct probes_options o = {.rung = rung, .buffer_bytes = 1 << 20,
					   .entry_only = true};
		struct rig *g = rig_new(rung);
		struct probe_site sites[] = {rig_site(g, "rig_call", "cuCtxSynchronize"),
					     rig_site(g, "rig_other", "cuInit")};
		struct probes *p = NULL;

		sites[0].entry_only = true;
		rig_attach(g, sites, 2);
		call_many(rig_call, 50);
		call_many(rig_other, 50);
		rig_read(g);
		assert_int_equal(events_of(g, rig_api("cuCtxSynchronize"), EVENT_BEGIN), 50);
		assert_int_equal(events_of(g, rig_api("cuCtxSynchronize"), EVENT_END), 0);
		assert_int_equal(events_of(g, rig_api("cuInit"), EVENT_BEGIN), 50);
		assert_int_equal(events_of(g, rig_api("cuInit"), EVENT_END), 50);
		rig_detach(g);
		probes_entry_only(g->p);
		assert_false(probes_returns(g->p));
		rig_attach(g, sites, 2);
		call_many(rig_other, 50);
		rig_read(g);
		assert_int_equal(g->count, 50);
		assert_int_equal(events_of(g, rig_api("cuInit"), EVENT_BEGIN), 50);
		rig_free(g);
		assert_int_equal(probes_new(&p, &o, NULL), 0);
		assert_false(probes_returns(p));
		probes_free(p);
	}
}

static void nobody_else_is_recorded(void **state)
{
	FOR_RUNGS {
		struct rig *g = rig_on(rung, "rig_call", "cuInit");
		uint32_t self = (uint32_t)getpid();

		probes_want(g->p, self, false);
		call_many(rig_call, 10);
		rig_read(g);
		assert_int_equal(g->count, 0);
		probes_switches(g->p)->mode = GBPF_MODE_ALL; /* all but the loader */
		call_many(rig_call, 10);
		rig_read(g);
		assert_int_equal(g->count, 0);
		probes_want(g->p, self, true);
		call_many(rig_call, 10);
		rig_read(g);
		assert_int_equal(g->count, 20);
		probes_switches(g->p)->mode = GBPF_MODE_OFF;
		call_many(rig_call, 10);
		rig_read(g);
		assert_int_equal(g->count, 0);
		rig_free(g);
	}
}

static int child_calls(void *ctx)
{
	call_many(rig_call, 25);
	return 0;
}

static void children_are_by_their_own_number(void **state)
{
	FOR_RUNGS {
		struct rig *g = rig_on(rung, "rig_call", "cuInit");

		assert_int_equal(child_run(child_calls, NULL), 0);
		rig_read(g);
		assert_int_equal(g->count, 0);
		probes_switches(g->p)->mode = GBPF_MODE_ALL;
		probes_want(g->p, (uint32_t)getpid(), false);
		assert_int_equal(child_run(child_calls, NULL), 0);
		call_many(rig_call, 25);
		rig_read(g);
		for (size_t i = 0; i < g->count; i++)
			assert_int_not_equal(g->events[i].pid, getpid());
		assert_int_equal(events_of(g, rig_api("cuInit"), EVENT_BEGIN), 25);
		assert_int_equal(events_of(g, rig_api("cuInit"), EVENT_END), 25);
		rig_free(g);
	}
}

/* ---- what cannot be attached to ---- */

static void expect_refused(struct rig *g, int fd, const struct probe_site *sites, size_t count,
			   int err)
{
	struct probe_link *const mark = (struct probe_link *)g;
	struct probe_link *link = mark;
	size_t before = rig_descriptors();
	int got = probes_attach(g->p, fd, sites, count, &link);

	if (got != err)
		fail_msg("%s: %d in place of %d", rung_name(probes_rung(g->p)), got, err);
	assert_ptr_equal(link, mark);
	assert_int_equal(rig_descriptors(), before);
}

static void what_cannot_be_attached_to(void **state)
{
	FOR_RUNGS {
		struct rig *g = rig_new(rung);
		struct probe_site good = rig_site(g, "rig_call", "cuInit"), beyond = good;
		struct probe_site both[2] = {good, good};
		int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		beyond.offset = 1ULL << 40;
		both[1].offset = 1ULL << 40;
		expect_refused(g, g->exe, &beyond, 1, -EINVAL);
		expect_refused(g, g->exe, both, 2, -EINVAL);
		expect_refused(g, g->exe, &good, 0, -EINVAL);
		expect_refused(g, -1, &good, 1, -ENOENT);
		expect_refused(g, dir, &good, 1, rung == RUNG_SINGLE ? -EINVAL : -EBADF);
		assert_int_equal(probed(g, "rig_call"), 0);
		call_many(rig_call, 10);
		rig_read(g);
		assert_int_equal(g->count, 0);
		close(dir);
		rig_free(g);
	}
}

static void nothing_of_ours_stays_open(void **state)
{
	FOR_RUNGS {
		size_t before = rig_descriptors();
		struct rig *g = rig_on(rung, "rig_call", "cuInit");

		assert_int_equal(probes_attach_tasks(g->p), 0);
		rig_free(g);
		assert_int_equal(rig_descriptors(), before);
	}
	probes_free(NULL);
	probe_link_free(NULL);
	rings_free(NULL);
}

static int without_rights(void *ctx)
{
	struct probes_options o = {0};
	struct probes *p = NULL;

	CHECK(!drop_capabilities());
	CHECK(probes_new(&p, &o, NULL) == -EPERM);
	CHECK(!p);
	return 0;
}

static void rights_are_needed(void **state)
{
	assert_int_equal(child_run(without_rights, NULL), 0);
}

static void wanted_is_a_bit_a_process(void **state)
{
	static const uint32_t pids[] = {0, 1, 63, 64, 65, 127, 128, 4194303};
	struct rig *g = rig_new(RUNG_AUTO);

	probes_want(g->p, (uint32_t)getpid(), false);
	assert_false(probes_any_wanted(g->p));
	for (size_t i = 0; i < sizeof(pids) / sizeof(*pids); i++) {
		probes_want(g->p, pids[i], true);
		probes_want(g->p, pids[i], true);
		assert_true(probes_any_wanted(g->p));
		for (size_t k = 0; k < sizeof(pids) / sizeof(*pids); k++)
			assert_int_equal(probes_wanted(g->p, pids[k]), k == i);
		probes_want(g->p, pids[i], false);
		assert_false(probes_any_wanted(g->p));
	}
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rung_sees_every_call),
		cmocka_unit_test(the_best_rung_is_found),
		cmocka_unit_test(many_sites_in_one_go),
		cmocka_unit_test(entry_only_gives_no_ends),
		cmocka_unit_test(nobody_else_is_recorded),
		cmocka_unit_test(children_are_by_their_own_number),
		cmocka_unit_test(what_cannot_be_attached_to),
		cmocka_unit_test(nothing_of_ours_stays_open),
		cmocka_unit_test(rights_are_needed),
		cmocka_unit_test(wanted_is_a_bit_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
