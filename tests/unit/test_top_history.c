/* SPDX-License-Identifier: BSD-2-Clause */
/* What top keeps: values of the last minutes, and its copy of a snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top/copy.h"
#include "top/history.h"
#include "top/names.h"

#define SECOND INT64_C(1000000000)

/* An interval in which the given processes launch value a second. */
static void add(struct history *h, const uint32_t *pids, size_t count, double value)
{
	struct snapshot_process *p = calloc(count + 1, sizeof(*p));
	struct snapshot s = {.window_ns = SECOND, .processes = p, .processes_count = count};

	assert_non_null(p);
	for (size_t i = 0; i < count; i++) {
		p[i].pid = pids[i];
		p[i].start = 7;
		p[i].launches_per_s = (struct estimate){value >= 0, value, value, value};
		p[i].sync_share = (struct estimate){true, 0.25, 0.25, 0.25};
	}
	history_add(h, &s);
	free(p);
}

static size_t get(const struct history *h, uint32_t pid, float *out)
{
	uint64_t first;

	return history_get(h, pid, 7, HISTORY_LAUNCHES, history_next(h), out, &first);
}

static void values_come_back_oldest_first(void **state)
{
	struct history *h = history_new();
	float out[HISTORY_SAMPLES];
	uint64_t first;

	add(h, (const uint32_t[]){5, 9}, 2, 10);
	add(h, (const uint32_t[]){5}, 1, 20);
	add(h, (const uint32_t[]){5, 6}, 2, -1);
	add(h, (const uint32_t[]){5, 9}, 2, 40);
	assert_int_equal(get(h, 5, out), 4);
	assert_true(out[0] == 10 && out[1] == 20 && isnan(out[2]) && out[3] == 40);
	/* Not there in the second and third. */
	assert_int_equal(get(h, 9, out), 4);
	assert_true(out[0] == 10 && isnan(out[1]) && isnan(out[2]) && out[3] == 40);
	/* Came late, and went. */
	assert_int_equal(history_get(h, 6, 7, HISTORY_SYNC, history_next(h), out, &first), 2);
	assert_true(first == 2 && out[0] == 0.25f && isnan(out[1]));
	/* As it was before the last. */
	assert_int_equal(history_get(h, 5, 7, HISTORY_LAUNCHES, 3, out, &first), 3);
	assert_int_equal(history_get(h, 6, 7, HISTORY_LAUNCHES, 2, out, &first), 0);
	assert_int_equal(history_span(h, history_next(h), 3), 3 * SECOND);
	/* The same pid of another process. */
	assert_int_equal(history_get(h, 5, 8, HISTORY_LAUNCHES, 4, out, &first), 0);
	history_free(h);
	history_free(NULL);
}

static void time_is_bounded(void **state)
{
	struct history *h = history_new();
	float out[HISTORY_SAMPLES];

	for (int i = 0; i < 3 * HISTORY_SAMPLES + 7; i++)
		add(h, (const uint32_t[]){1, 2}, i < 100 ? 2 : 1, i);
	assert_int_equal(get(h, 1, out), HISTORY_SAMPLES);
	assert_true(out[0] == 2 * HISTORY_SAMPLES + 7);
	assert_true(out[HISTORY_SAMPLES - 1] == 3 * HISTORY_SAMPLES + 6);
	assert_int_equal(history_span(h, history_next(h), 10000), HISTORY_SAMPLES * SECOND);
	/* The one that is gone for longer than can be shown is forgotten. */
	assert_int_equal(history_processes(h), 1);
	history_free(h);
}

static void number_is_bounded(void **state)
{
	static uint32_t pids[HISTORY_PROCESSES];
	struct history *h = history_new();
	float out[HISTORY_SAMPLES];
	uint32_t more = 90000;

	for (uint32_t i = 0; i < HISTORY_PROCESSES; i++)
		pids[i] = 10 + i;
	add(h, pids, HISTORY_PROCESSES, 1);
	add(h, pids + 2, HISTORY_PROCESSES - 2, 2);
	/* Those that are there keep their place; the one gone longest gives way. */
	add(h, &more, 1, 3);
	assert_int_equal(history_processes(h), HISTORY_PROCESSES);
	assert_int_equal(get(h, more, out), 1);
	assert_int_equal(get(h, pids[0], out), 0);
	assert_int_equal(get(h, pids[1], out), 3);
	history_free(h);
}

static void none_gives_way_to_one_too_many(void **state)
{
	static uint32_t pids[HISTORY_PROCESSES + 1];
	struct history *h = history_new();
	float out[HISTORY_SAMPLES];

	for (uint32_t i = 0; i <= HISTORY_PROCESSES; i++)
		pids[i] = 10 + i;
	for (int i = 0; i < 3; i++)
		add(h, pids, HISTORY_PROCESSES + 1, 1);
	assert_int_equal(history_processes(h), HISTORY_PROCESSES);
	assert_int_equal(get(h, pids[0], out), 3);
	assert_int_equal(get(h, pids[HISTORY_PROCESSES], out), 0);
	history_free(h);
}

static void a_copy_stays_when_the_original_goes(void **state)
{
	struct histogram h = {0}, out;
	struct snapshot_api apis[2] = {{.api = 3, .recent = &h}, {.api = 4}};
	struct snapshot_kernel kernel = {.handle = 1};
	struct snapshot_thread thread = {.tid = 11};
	struct snapshot_process p = {.pid = 11, .apis = apis, .apis_count = 2, .kernels = &kernel,
				     .kernels_count = 1, .threads = &thread, .threads_count = 1,
				     .launch_recent = &h};
	struct gpu_sample gpu = {.index = 3};
	char command[] = "job", name[] = "_Z1fv", limit[] = "limited";
	struct snapshot s = {.processes = &p, .processes_count = 1, .gpus = &gpu, .gpus_count = 1,
			     .self.limit = limit};
	struct copy *c = copy_new();
	const struct snapshot *copied;

	p.command = command;
	kernel.name = name;
	histogram_count(&h, 4000);
	histogram_count(&h, 1ull << 40);
	assert_null(copy_snapshot(c));
	for (int i = 0; i < 3; i++) /* memory is used again */
		assert_int_equal(copy_take(c, &s), 0);
	memset(command, 'x', 3);
	memset(name, 'x', 3);
	memset(limit, 'x', 3);
	memset(&thread, 0, sizeof(thread));
	memset(&gpu, 0, sizeof(gpu));
	copied = copy_snapshot(c);
	assert_string_equal(copied->processes[0].command, "job");
	assert_string_equal(copied->processes[0].kernels[0].name, "_Z1fv");
	assert_string_equal(copied->self.limit, "limited");
	assert_int_equal(copied->processes[0].threads[0].tid, 11);
	assert_int_equal(copied->gpus[0].index, 3);
	assert_null(copied->processes[0].launch_recent);
	assert_true(copy_histogram(c, copied->processes, &copied->processes->apis[0], false,
				   &out));
	assert_memory_equal(&out, &h, sizeof(h));
	assert_false(copy_histogram(c, copied->processes, &copied->processes->apis[0], true,
				    &out));
	assert_false(copy_histogram(c, copied->processes, &copied->processes->apis[1], false,
				    &out));
	copy_free(c);
	copy_free(NULL);
}

static void copies_are_bounded(void **state)
{
	size_t count = COPY_BYTES / sizeof(struct snapshot_thread) + 1;
	struct snapshot_thread *threads = calloc(count, sizeof(*threads));
	struct snapshot_process p[2] = {{.pid = 1, .threads = threads, .threads_count = count},
					{.pid = 2, .threads = threads, .threads_count = 2}};
	struct snapshot s = {.processes = p, .processes_count = 2};
	struct copy *c = copy_new();

	assert_non_null(threads);
	assert_true(copy_take(c, &s) < 0);
	/* What there is no room for is left out, the rest is there. */
	assert_int_equal(copy_snapshot(c)->processes_count, 2);
	assert_int_equal(copy_snapshot(c)->processes[0].threads_count, 0);
	assert_int_equal(copy_snapshot(c)->processes[1].threads_count, 2);
	s.processes_count = 0;
	assert_int_equal(copy_take(c, &s), 0);
	copy_free(c);
	free(threads);
}

static void names_are_short_and_the_same_again(void **state)
{
	struct names *n = names_new();
	char mangled[32], expected[32], out[64];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) { /* more than there are slots */
			snprintf(mangled, sizeof(mangled), "_ZN2ns5k%04dEv", i);
			snprintf(expected, sizeof(expected), "k%04d", i);
			assert_string_equal(names_short(n, mangled, out, sizeof(out)), expected);
		}
	}
	assert_string_equal(names_short(n, "", out, sizeof(out)), "");
	assert_string_equal(names_short(n, "plain", out, 4), "pla");
	names_free(n);
	names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back_oldest_first),
		cmocka_unit_test(time_is_bounded),
		cmocka_unit_test(number_is_bounded),
		cmocka_unit_test(none_gives_way_to_one_too_many),
		cmocka_unit_test(a_copy_stays_when_the_original_goes),
		cmocka_unit_test(copies_are_bounded),
		cmocka_unit_test(names_are_short_and_the_same_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
