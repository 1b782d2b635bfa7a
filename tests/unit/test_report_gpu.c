// SPDX-License-Identifier: BSD-2-Clause
/* gpu_sum on samples whose sums can be worked out by hand, and on what makes no sense. */
#include "json_check.h"
#include "view.h"

#include "gpu/gpu.h"

static void begin(struct feed *f)
{
	feed_start(f);
	feed_window(f, 1000, 101000);
	feed_gpu(f, 1, 3, "GPU-a", "NVIDIA H200", "");
}

/* Samples come in any order; each number is of the samples that know it. */
static void test_sums(void **state)
{
	const struct record_gpu_sample samples[] = {
		{ .ts = 3000, .gpu = 1, .has = 0xfff & ~GPU_HAS_POWER, .clock_sm_mhz = 1200,
		  .power_mw = 99, .temperature_c = 70, .throttle = 0x20, .energy_mj = 5500,
		  .utilisation_pct = 100, .memory_used = 10, .xid_count = 2, .xid_last = 79 },
		{ .ts = 1000, .gpu = 1, .has = 0xfff, .clock_sm_mhz = 1980, .power_mw = 100000,
		  .temperature_c = 40, .throttle = 0x24, .energy_mj = 1000,
		  .utilisation_pct = 0, .memory_used = 30, .xid_count = 0 },
		{ .ts = 2000, .gpu = 1, .has = 0xfff & ~GPU_HAS_THROTTLE, .clock_sm_mhz = 1500,
		  .power_mw = 200000, .temperature_c = 50, .throttle = 0x80, .energy_mj = 3000,
		  .utilisation_pct = 50, .memory_used = 20, .xid_count = 1, .xid_last = 13 },
		{ .ts = 4000, .gpu = 1, .has = 0xfff, .clock_sm_mhz = 345, .power_mw = 300000,
		  .temperature_c = 60, .throttle = 1, .energy_mj = 5750,
		  .utilisation_pct = 51, .memory_used = 20, .xid_count = 2, .xid_last = 79 },
	};
	static const char *const expected[][2] = {
		{ "gpu", "3" }, { "samples", "4" }, { "sm_clock_min_mhz", "345" },
		{ "sm_clock_p50_mhz", "1200" }, { "sm_clock_max_mhz", "1980" },
		{ "power_avg_w", "200.000" }, { "power_max_w", "300.000" },
		{ "temperature_max_c", "70" }, { "throttled_pct", "66.667" },
		{ "utilisation_avg_pct", "50.250" }, { "memory_used_max_bytes", "30" },
		{ "energy_j", "4.750" }, { "xid_count", "2" }, { "xid_last", "79" },
		{ "name", "NVIDIA H200" }, { "uuid", "GPU-a" }, { "mig_parent", "" },
	};
	struct feed f;
	struct session *s;

	begin(&f);
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		feed_gpu_sample(&f, &samples[i]);
	s = feed_finish(&f);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_field(s, "gpu_sum", 1, expected[i][0], expected[i][1]);
	assert_string_equal(s->gpus[0].throttled_by, "thermal slowdown 66.7 %, power cap 33.3 %");
	feed_stop(&f);
}

/* What no sample knows is not known, and is not 0. */
static void test_unknown(void **state)
{
	static const char *const keys[] = {
		"sm_clock_min_mhz", "sm_clock_p50_mhz", "sm_clock_max_mhz", "memory_clock_p50_mhz",
		"power_avg_w", "power_max_w", "power_limit_w", "temperature_max_c",
		"throttled_pct", "utilisation_avg_pct", "memory_utilisation_avg_pct",
		"memory_used_max_bytes", "memory_total_bytes", "gpm_sm_avg_pct",
		"gpm_occupancy_avg_pct", "gpm_tensor_avg_pct", "gpm_dram_avg_pct", "energy_j",
		"processes_max", "xid_count", "xid_last", "throttled_by",
	};
	struct record_gpu_sample sample = { .ts = 1, .gpu = 1 };
	struct feed f;
	struct session *s;

	begin(&f);
	feed_gpu_sample(&f, &sample);
	sample.gpu = 77; /* of which nothing was said */
	feed_gpu_sample(&f, &sample);
	s = feed_finish(&f);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_field(s, "gpu_sum", 1, keys[i], "");
	assert_field(s, "gpu_sum", 2, "gpu", "");
	assert_field(s, "gpu_sum", 2, "samples", "1");
	assert_field(s, "gpu_sum", 2, "name", "");
	feed_stop(&f);
}

/* The counter begins anew with the driver; one sample alone has no difference. */
static void test_energy(void **state)
{
	static const uint64_t counter[] = { 5000, 7000, 100, 1100 };
	struct record_gpu_sample sample = { .gpu = 1, .has = GPU_HAS_ENERGY };
	struct feed f;
	struct session *s;

	begin(&f);
	feed_gpu(&f, 2, 4, "GPU-b", "", "");
	for (int i = 0; i < 4; i++) {
		sample.ts = i;
		sample.energy_mj = counter[i];
		feed_gpu_sample(&f, &sample);
	}
	sample.gpu = 2;
	feed_gpu_sample(&f, &sample);
	s = feed_finish(&f);
	assert_field(s, "gpu_sum", 1, "energy_j", "3.000");
	assert_field(s, "gpu_sum", 2, "energy_j", "");
	feed_stop(&f);
}

/* Numbers at their ends, and names that would write on the terminal. */
static void test_hostile(void **state)
{
	struct record_gpu_sample sample;
	struct feed f;
	struct session *s;
	char *text;

	feed_start(&f);
	feed_window(&f, 1000, 101000);
	feed_gpu(&f, 1, UINT32_MAX, "\x1b[31m", "a\nb\xff", "\x1b");
	feed_gpu(&f, 1, 5, "another", "of the same id", "");
	memset(&sample, 0xff, sizeof(sample));
	sample.gpu = 1;
	sample.pids = NULL;
	for (int i = 0; i < 3; i++) {
		sample.energy_mj = i % 2 ? UINT64_MAX : 0;
		feed_gpu_sample(&f, &sample);
	}
	s = feed_finish(&f);
	assert_int_equal(s->gpus_count, 1);
	for (unsigned format = 0; format < 4; format++) {
		text = print_view(s, (struct report_options){ .view = "gpu_sum",
							      .format = format });
		assert_null(strchr(text, '\x1b'));
		assert_true(format != REPORT_JSON || json_check(text));
		free(text);
	}
	text = print_view(s, (struct report_options){ .view = "summary" });
	assert_null(strchr(text, '\x1b'));
	free(text);
	feed_stop(&f);
}

/* The summary has a line of each GPU, where there is one, and otherwise none. */
static void test_summary(void **state)
{
	struct record_gpu_sample sample = { .ts = 1, .gpu = 1, .has = 0xfff & ~GPU_HAS_GPM,
					    .clock_sm_mhz = 1980, .power_mw = 412500,
					    .temperature_c = 61, .memory_used = 1 << 30,
					    .throttle = 4, .xid_count = 1 };
	struct feed f;
	char *text;

	begin(&f);
	feed_call(&f, 2000, 3000, F_SYNC, SP);
	feed_gpu_sample(&f, &sample);
	text = print_view(feed_finish(&f), (struct report_options){ .view = "summary" });
	assert_non_null(strstr(text, "\nGPU 3              NVIDIA H200, SM clock 1980 MHz (1980 to "
				     "1980), 412 W, at most 61 °C, 1.0 GiB used; held back in "
				     "100.0 % of samples: power cap 100.0 %; 1 XID errors\n"));
	free(text);
	feed_stop(&f);
	begin(&f); /* known, but never sampled */
	feed_call(&f, 2000, 3000, F_SYNC, SP);
	text = print_view(feed_finish(&f), (struct report_options){ .view = "summary" });
	assert_null(strstr(text, "\nGPU 3"));
	free(text);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),	cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_energy),	cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
