// SPDX-License-Identifier: BSD-2-Clause
/* What --api means: sets, names, their sums, and what is wrong with the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/catalogue.h"
#include "probe/selection.h"

static struct selection *parse(const char *spec)
{
	struct selection *s = malloc(sizeof(*s));
	char why[256] = "";

	assert_non_null(s);
	memset(s, 0xa5, sizeof(*s));
	if (selection_parse(s, spec, why, sizeof(why)))
		fail_msg("%s: %s", spec, why);
	return s;
}

static void expect_tiers(const char *spec, unsigned tiers)
{
	struct selection *s = parse(spec);
	size_t count = 0;

	for (size_t id = 0; id < GBPF_MAX_API; id++) {
		const struct api *api = catalogue_get((uint16_t)id);
		bool wanted = api && api->tier & tiers;

		if (!!s->wanted[id] != wanted)
			fail_msg("%s: %s", spec, api ? api->name : "an id of no function");
		count += wanted;
	}
	assert_int_equal(s->count, count);
	assert_true(count > 0);
	free(s);
}

static void sets_are_tiers(void **state)
{
	expect_tiers("driver", TIER_DEFAULT);
	expect_tiers("runtime", TIER_DEFAULT | TIER_RUNTIME);
	expect_tiers("all", TIER_DEFAULT | TIER_RUNTIME | TIER_ALL);
	expect_tiers("driver,runtime", TIER_DEFAULT | TIER_RUNTIME);
	expect_tiers("all,driver,all", TIER_DEFAULT | TIER_RUNTIME | TIER_ALL);
}

/* Known functions in the sets where everybody expects them. */
static void sets_hold_what_their_names_say(void **state)
{
	static const struct { const char *name; bool driver, runtime; } known[] = {
		{"cuLaunchKernel", true, true},	   {"cuStreamSynchronize", true, true},
		{"ncclAllReduce", true, true},	   {"cudaLaunchKernel", false, true},
		{"cudaMemcpyAsync", false, true},  {"cudaDeviceSynchronize", false, true},
		{"cuCtxGetCurrent", false, false},
	};
	struct selection *driver = parse("driver"), *runtime = parse("runtime");
	struct selection *all = parse("all");

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		uint16_t id = catalogue_find(known[i].name);

		if (!id) /* a getter that is in no set may be left out altogether */
			assert_non_null(catalogue_excluded(known[i].name));
		assert_int_equal(driver->wanted[id], known[i].driver);
		assert_int_equal(runtime->wanted[id], known[i].runtime);
		assert_int_equal(all->wanted[id], !!id);
	}
	assert_int_equal(all->count, catalogue_count());
	free(driver);
	free(runtime);
	free(all);
}

static void every_function_can_be_named(void **state)
{
	for (size_t id = 1; id <= catalogue_count(); id++) {
		struct selection *s = parse(catalogue_get((uint16_t)id)->name);

		assert_int_equal(s->count, 1);
		assert_int_equal(s->wanted[id], 1);
		for (unsigned library = API_DRIVER; library <= API_NCCL; library++)
			assert_int_equal(selection_wants_library(s, library),
					 library == catalogue_get((uint16_t)id)->library);
		free(s);
	}
}

static void names_and_sets_add_up(void **state)
{
	struct selection *two = parse("cuLaunchKernel,cudaMalloc"), *set = parse("driver");
	struct selection *one = parse("cuLaunchKernel,cuLaunchKernel");
	struct selection *more = parse("cudaMalloc,driver,cuLaunchKernel,cudaMalloc");

	assert_int_equal(two->count, 2);
	assert_int_equal(one->count, 1);
	assert_int_equal(two->wanted[catalogue_find("cudaMalloc")], 1);
	assert_int_equal(two->wanted[catalogue_find("cuLaunchKernel")], 1);
	assert_int_equal(more->count, set->count + 1);
	free(two);
	free(one);
	free(set);
	free(more);
}

static void libraries_of_a_selection(void **state)
{
	struct selection *driver = parse("driver"), *runtime = parse("runtime");

	assert_true(selection_wants_library(driver, API_DRIVER));
	assert_true(selection_wants_library(driver, API_NCCL));
	assert_false(selection_wants_library(driver, API_RUNTIME));
	assert_true(selection_wants_library(runtime, API_RUNTIME));
	assert_false(selection_wants_library(runtime, API_NCCL + 1));
	free(driver);
	free(runtime);
}

static void refuse(const char *spec, const char *part)
{
	struct selection *s = malloc(sizeof(*s));
	char why[256] = "";

	assert_non_null(s);
	assert_int_equal(selection_parse(s, spec, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("'%s': \"%s\" does not say \"%s\"", spec, why, part);
	assert_null(strchr(why, '\n'));
	free(s);
}

static void what_is_wrong_is_said(void **state)
{
	char longest[129];

	refuse("", "empty");
	refuse(",", "empty");
	refuse(",driver", "empty");
	refuse("driver,", "empty");
	refuse("driver,,runtime", "empty");
	refuse("cuLaunchKernal", "unknown API 'cuLaunchKernal'");
	refuse("driver,cuNothing,all", "unknown API 'cuNothing'");
	refuse("Driver", "unknown API 'Driver'");
	refuse(" driver", "unknown API ' driver'");
	refuse("driver ", "unknown API");
	refuse("culaunchkernel", "unknown API");
	memset(longest, 'c', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refuse(longest, "over 127 bytes");
	longest[127] = '\0';
	refuse(longest, "unknown API");
}

/* The reason of the catalogue is what the user reads. */
static void what_is_left_out_says_why(void **state)
{
	const char *reason = catalogue_excluded("cuGetExportTable");
	char expected[256];

	assert_non_null(reason);
	assert_int_equal(catalogue_find("cuGetExportTable"), 0);
	refuse("cuGetExportTable", reason);
	snprintf(expected, sizeof(expected), "cuGetExportTable is left out on purpose: ");
	refuse("cuLaunchKernel,cuGetExportTable", expected);
}

static void little_room_for_the_reason(void **state)
{
	struct selection *s = malloc(sizeof(*s));
	char why[9] = "12345678";

	assert_non_null(s);
	assert_int_equal(selection_parse(s, "cuNothing", why, 5), -EINVAL);
	assert_memory_equal(why, "unkn\0" "678", 9);
	assert_int_equal(selection_parse(s, "cuNothing", NULL, 0), -EINVAL);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_are_tiers),
		cmocka_unit_test(sets_hold_what_their_names_say),
		cmocka_unit_test(every_function_can_be_named),
		cmocka_unit_test(names_and_sets_add_up),
		cmocka_unit_test(libraries_of_a_selection),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(what_is_left_out_says_why),
		cmocka_unit_test(little_room_for_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
