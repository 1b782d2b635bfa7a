// SPDX-License-Identifier: BSD-2-Clause
/* Triggers: what parses, and what of it can be watched. */
#include "trigger_rig.h"

#include <errno.h>

#include "record/trigger_text.h"

static void parses(const char *text, enum trigger_what what, const char *subject,
		   enum trigger_compare compare, int64_t threshold, int64_t over, uint64_t least)
{
	char why[256] = "";
	struct trigger t;

	if (trigger_parse(&t, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(t.what, what);
	assert_string_equal(t.subject, subject);
	assert_int_equal(t.compare, compare);
	assert_int_equal(t.threshold, threshold);
	assert_int_equal(t.over, over);
	assert_int_equal(t.least, least);
}

static void test_parses(void **state)
{
	(void)state;
	parses("p99(cuStreamSynchronize) > 5ms", TRIGGER_P99, "cuStreamSynchronize",
	       TRIGGER_ABOVE, 5 * MS, 10 * S, 100);
	parses("p50(sync)>=1.5us over 1s min 3", TRIGGER_P50, "sync", TRIGGER_AT_LEAST, 1500, S, 3);
	parses(" p90 ( copy ) < 2 s  min 7 over 250ms ", TRIGGER_P90, "copy", TRIGGER_BELOW, 2 * S,
	       250 * MS, 7);
	parses("max(launch)<=3µs", TRIGGER_MAX, "launch", TRIGGER_AT_MOST, 3000, 10 * S, 1);
	parses("avg(cuMemAlloc_v2) > 0.25ms", TRIGGER_AVG, "cuMemAlloc_v2", TRIGGER_ABOVE, 250000,
	       10 * S, 10);
	parses("count(launch) < 1 over 5s", TRIGGER_COUNT, "launch", TRIGGER_BELOW, 1, 5 * S, 0);
	parses("rate(launch) < 100/s", TRIGGER_RATE, "launch", TRIGGER_BELOW, 100000, 10 * S, 0);
	parses("rate(launch) > 0.5 /s over 60m", TRIGGER_RATE, "launch", TRIGGER_ABOVE, 500,
	       3600 * S, 0);
	parses("errors(alloc) > 0", TRIGGER_ERRORS, "alloc", TRIGGER_ABOVE, 0, 10 * S, 0);
	parses("bytes(copy) >= 1.5GiB over 1m", TRIGGER_BYTES, "copy", TRIGGER_AT_LEAST,
	       (INT64_C(3) << 30) / 2, 60 * S, 0);
}

static void test_refuses(void **state)
{
	/* and a part of the sentence that says why */
	static const char *const texts[][2] = {
		{"", "nothing to watch"},
		{"p98(sync) > 1ms", "did you mean 'p9"},
		{"p99 sync > 1ms", "in parentheses"},
		{"p99() > 1ms", "goes a function"},
		{"p99(sync > 1ms", "')' is missing"},
		{"p99(sync) = 1ms", "comes >"},
		{"p99(sync) > 5", "a time such as 5ms"},
		{"p99(sync) > ms", "a time such as 5ms"},
		{"p99(sync) > -5ms", "a time such as 5ms"},
		{"p99(sync) > 5 parsecs", "a time such as 5ms"},
		{"p99(sync) > 99999999999999999999s", "too large"},
		{"p99(sync) > 9223372037s", "too large"},
		{"p99(sync) > 1.0000000001s", "too exact"},
		{"count(sync) > 5ms", "'ms' is not understood"},
		{"rate(sync) > 5ms", "'ms' is not understood"},
		{"max(sync) > 5ms over 50ms", "100ms to 60m"},
		{"max(sync) > 5ms over 61m", "100ms to 60m"},
		{"max(sync) > 5ms over 1s over 2s", "'over 2s' is not understood"},
		{"max(sync) > 5ms min 0", "from 1 on"},
		{"max(sync) > 5ms min", "from 1 on"},
		{"max(sync) > 5ms or so", "'or so' is not understood"},
		{"count(launch) >= 0", "always so"},
		{"count(launch) < 0", "never so"},
		{"max(aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg) > 1s",
		 "goes a function"},
	};
	char why[256], text[300];
	struct trigger t;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		why[0] = '\0';
		assert_int_equal(trigger_parse(&t, texts[i][0], why, sizeof(why)), -EINVAL);
		if (!strstr(why, texts[i][1]))
			fail_msg("%s: '%s' has not '%s'", texts[i][0], why, texts[i][1]);
	}
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "max(sync) > 1s", 14);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(trigger_parse(&t, text, why, sizeof(why)), -EINVAL);
}

static void refused(const char *text, const char *api, bool returns, const char *part)
{
	char why[256] = "";

	assert_null(make(&text, 1, api, returns, why, sizeof(why)));
	if (!strstr(why, part))
		fail_msg("%s: '%s' has not '%s'", text, why, part);
}

static void test_functions_must_be_recorded(void **state)
{
	char why[256];
	struct triggers *t;

	(void)state;
	refused("max(cuStreamSynchronise) > 1s", "driver", true, "cuStreamSynchronize?");
	refused("max(synk) > 1s", "driver", true, "sync");
	refused("max(cudaMalloc) > 1s", "driver", true, "--api");
	refused("max(sync) > 1s", "cudaMalloc", true, "--api");
	refused("max(sync) > 1s", "driver", false, "no return probes");
	refused("errors(sync) > 1", "driver", false, "no return probes");
	t = one("max(cudaMalloc) > 1s", "runtime", why, sizeof(why));
	assert_non_null(t);
	triggers_free(t);
	t = make((const char *const[]){"count(sync) > 1"}, 1, "driver", false, why, sizeof(why));
	assert_non_null(t);
	assert_int_equal(triggers_count(t), 1);
	assert_string_equal(triggers_get(t, 0)->subject, "sync");
	triggers_free(t);
	triggers_free(NULL);
}

static void test_text(void **state)
{
	struct record_trigger r = {.ts = 20 * S, .cause = RECORD_TRIGGER_FIRED,
				   .text = "p99(sync) > 5ms", .begin = 10 * S, .value = 7100000,
				   .threshold = 5 * MS, .unit = RECORD_TRIGGER_NS, .samples = 1300};
	char buf[128];

	(void)state;
	assert_string_equal(trigger_text(&r, buf, sizeof(buf)),
			    "p99(sync) > 5ms: 7.100 ms (1,300 calls in 10.000 s)");
	r.unit = RECORD_TRIGGER_MILLI_PER_S;
	r.samples = 1;
	assert_string_equal(trigger_text(&r, buf, sizeof(buf)),
			    "p99(sync) > 5ms: 7100.000/s (1 call in 10.000 s)");
	r.begin = INT64_MIN;
	r.value = INT64_MIN;
	assert_non_null(trigger_text(&r, buf, sizeof(buf)));
	r.cause = RECORD_TRIGGER_ASKED;
	assert_string_equal(trigger_text(&r, buf, sizeof(buf)), "a signal asked for it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parses),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_functions_must_be_recorded),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
