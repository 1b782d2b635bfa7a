// SPDX-License-Identifier: BSD-2-Clause
/* What is read of NVML, compared with what the stand-in was told to answer. */
#include "nvml_file.h"

#include <errno.h>

#include "gpu/private.h"

#define SECOND 1000000000LL
#define T0 (1000 * SECOND)

static struct gpus *start(void)
{
	struct gpus *g;
	char why[256];

	if (gpus_new(&g, why, sizeof(why)))
		fail_msg("%s", why);
	return g;
}

static void test_every_number(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says(ONE_GPU);
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_string_equal(s->uuid, ONE_UUID);
	assert_string_equal(s->name, "NVIDIA H200");
	assert_string_equal(s->pci, "00000000:65:00.0");
	assert_string_equal(s->mig_parent, "");
	assert_int_equal(s->time_ns, T0);
	assert_int_equal(s->index, 0);
	assert_int_equal(s->has, 0xfff & ~(unsigned)GPU_HAS_GPM);
	assert_int_equal(s->clock_sm_mhz, 1980);
	assert_int_equal(s->clock_memory_mhz, 3201);
	assert_int_equal(s->power_mw, 412500);
	assert_int_equal(s->power_limit_mw, 700000);
	assert_int_equal(s->temperature_c, 61);
	assert_int_equal(s->throttle, 4);
	assert_int_equal(s->utilisation_pct, 97);
	assert_int_equal(s->memory_utilisation_pct, 41);
	assert_int_equal(s->memory_used, 1073741824);
	assert_int_equal(s->memory_total, 150754820096);
	assert_int_equal(s->energy_mj, 123456789);
	assert_int_equal(s->processes_count, 2);
	assert_int_equal(s->processes[0], 4242);
	assert_int_equal(s->processes[1], 17);
	assert_null(gpus_trouble(g));
	gpus_free(g);
}

/* What a device does not support is not there; another one's numbers do not take its place. */
static void test_little_is_supported(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says(ONE_GPU "gpu GPU-b\nsm 300\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 2);
	assert_string_equal(s[1].uuid, "GPU-b");
	assert_int_equal(s[1].index, 1);
	assert_int_equal(s[1].has, GPU_HAS_CLOCK_SM | GPU_HAS_XID);
	assert_int_equal(s[1].clock_sm_mhz, 300);
	assert_int_equal(s[1].power_mw, 0);
	gpus_free(g);
}

/* Clocks that change in between show in the next round. */
static void test_changes(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("gpu GPU-a\nsm 1980\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_int_equal(s->clock_sm_mhz, 1980);
	nvml_says("gpu GPU-a\nsm 345\n");
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 1);
	assert_int_equal(s->clock_sm_mhz, 345);
	gpus_free(g);
}

/* A library without most of it, where some has its older name. */
static void test_missing_symbols(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_use("nvml-bare");
	nvml_says(ONE_GPU "gpm 1 2 3 4\nmig MIG-a\nmemory 1 2\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_int_equal(s->has, GPU_HAS_CLOCK_SM | GPU_HAS_CLOCK_MEMORY | GPU_HAS_POWER |
					 GPU_HAS_POWER_LIMIT | GPU_HAS_TEMPERATURE |
					 GPU_HAS_THROTTLE | GPU_HAS_UTILISATION | GPU_HAS_MEMORY |
					 GPU_HAS_PROCESSES);
	assert_string_equal(s->name, "");
	assert_string_equal(s->pci, "");
	assert_int_equal(s->throttle, 4);
	assert_int_equal(s->power_limit_mw, 700000);
	assert_int_equal(s->processes_count, 2);
	gpus_free(g);
	nvml_use("nvml");
}

static void assert_refused(const char *directory, const char *answers, int err, const char *words)
{
	struct holding before = holding_now();
	struct gpus *g;
	char why[256] = "";

	nvml_use(directory);
	nvml_says(answers);
	assert_int_equal(gpus_new(&g, why, sizeof(why)), err);
	assert_null(g);
	if (!strstr(why, words))
		fail_msg("'%s' does not say '%s'", why, words);
	assert_let_go(before);
	nvml_use("nvml");
}

static void test_no_use(void **state)
{
	assert_refused("nvml-not-there", "", -ENOENT, "No such file");
	assert_refused("nvml-broken", ONE_GPU, -ELIBBAD, "nvmlInit_v2");
	assert_refused("nvml", "fail nvmlInit_v2 18\n", -EPROTO, "reload the driver, or reboot");
	assert_refused("nvml", "fail nvmlInit_v2 9\n", -ENODEV, "not loaded");
	assert_refused("nvml", "fail nvmlInit_v2 4\n", -EACCES, "not permitted");
	assert_refused("nvml", "fail nvmlInit_v2 17\n", -EPERM, "/dev/nvidiactl");
	assert_refused("nvml", "fail nvmlInit_v2 999\n", -EIO, "999");
	assert_refused("nvml", "fail nvmlDeviceGetCount_v2 15\n", -EIO, "off the bus");
}

/* A file that is no library is another matter than none. */
static void test_not_a_library(void **state)
{
	struct gpus *g;
	char why[256];

	nvml_says(ONE_GPU);
	setenv("GBPF_NVML", nvml_path, 1);
	assert_int_equal(gpus_new(&g, why, sizeof(why)), -ELIBACC);
	nvml_use("nvml");
}

static void test_no_gpu(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("# nothing\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 0);
	assert_non_null(gpus_trouble(g));
	gpus_free(g);
}

/* One of two is lost half-way: the other goes on, and it comes back when tried again. */
static void lost(int result)
{
	const struct gpu_sample *s;
	char text[256];
	struct gpus *g;

	nvml_says("gpu GPU-a\nsm 1\ngpu GPU-b\nsm 2\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 2);
	snprintf(text, sizeof(text), "gpu GPU-a\nsm 1\nresult %d\ngpu GPU-b\nsm 3\n", result);
	nvml_says(text);
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 1);
	assert_string_equal(s->uuid, "GPU-b");
	assert_int_equal(s->index, 1);
	assert_int_equal(s->clock_sm_mhz, 3);
	nvml_says("gpu GPU-a\nsm 4\ngpu GPU-b\nsm 3\n");
	assert_int_equal(gpus_sample_at(g, T0 + 10 * SECOND, &s), 1);
	assert_int_equal(gpus_sample_at(g, T0 + 11 * SECOND, &s), 2);
	assert_string_equal(s->uuid, "GPU-a");
	assert_int_equal(s->clock_sm_mhz, 4);
	gpus_free(g);
}

static void test_lost(void **state)
{
	lost(15);
	lost(999);
}

/* A single number that fails in an unknown way does not cost the others. */
static void test_one_number_fails(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("fail nvmlDeviceGetPowerUsage 999\n" ONE_GPU);
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_false(s->has & GPU_HAS_POWER);
	assert_true(s->has & GPU_HAS_CLOCK_SM);
	gpus_free(g);
}

/* Lost in the middle of its numbers, from the third call on. */
static void test_lost_between_calls(void **state)
{
	struct holding before = holding_now();
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("fail nvmlDeviceGetPowerUsage 15 3\n" ONE_GPU);
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 1);
	assert_int_equal(gpus_sample_at(g, T0 + 2 * SECOND, &s), 0);
	assert_string_equal(gpus_trouble(g), "GPU 0 does not answer any more");
	gpus_free(g);
	assert_let_go(before);
}

/* No device left: the library is opened anew, as after a driver that was exchanged. */
static void test_all_lost(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("fail nvmlDeviceGetUUID 999\n" ONE_GPU);
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 0);
	assert_non_null(gpus_trouble(g));
	nvml_says("gpu GPU-other\nsm 7\n");
	assert_int_equal(gpus_sample_at(g, INT64_MAX / 2, &s), 1);
	assert_string_equal(s->uuid, "GPU-other");
	gpus_free(g);
}

static void test_release(void **state)
{
	struct holding before = holding_now();
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says(ONE_GPU "gpm 10 20 30 40\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_true(library_mapped());
	assert_true(holding_now().fds >= before.fds + 4); /* its own, events, two GPM samples */
	assert_int_equal(holding_now().threads, before.threads + 1);
	gpus_release_at(g, T0);
	assert_let_go(before);
	assert_int_equal(gpus_sample_at(g, T0 + 5 * SECOND - 1, &s), 0);
	assert_non_null(gpus_trouble(g));
	assert_let_go(before);
	assert_int_equal(gpus_sample_at(g, T0 + 5 * SECOND, &s), 1);
	assert_null(gpus_trouble(g));
	gpus_release_at(g, T0 + 6 * SECOND);
	gpus_release_at(g, T0 + 6 * SECOND); /* twice does no harm */
	nvml_says("fail nvmlInit_v2 18\n");
	assert_int_equal(gpus_sample_at(g, T0 + 11 * SECOND, &s), 0);
	assert_non_null(strstr(gpus_trouble(g), "reload the driver"));
	nvml_says(ONE_GPU);
	assert_int_equal(gpus_sample_at(g, T0 + 12 * SECOND, &s), 0);
	assert_int_equal(gpus_sample_at(g, T0 + 21 * SECOND, &s), 1);
	gpus_free(g);
	gpus_free(NULL);
	assert_let_go(before);
}

static void test_gpm(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says(ONE_GPU "gpm 50.5 25 12.25 80\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_false(s->has & GPU_HAS_GPM); /* there is nothing to compare with */
	assert_int_equal(gpus_sample_at(g, T0 + SECOND / 20, &s), 1);
	assert_false(s->has & GPU_HAS_GPM); /* too near */
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 1);
	assert_true(s->has & GPU_HAS_GPM);
	assert_true(s->gpm_sm_pct == 50.5 && s->gpm_occupancy_pct == 25);
	assert_true(s->gpm_tensor_pct == 12.25 && s->gpm_dram_pct == 80);
	gpus_free(g);
}

static void test_instances(void **state)
{
	struct holding before = holding_now();
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says(ONE_GPU "mig MIG-a\nname H200 MIG 1g.18gb\nmemory 100 200\nprocesses 5\nsm 1980\n"
			  "power 412500\ngpm 1 2 3 4\nmig MIG-b\nmemory 7 200\n"
			  "gpu GPU-other\nsm 5\n");
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 4);
	assert_string_equal(s[1].uuid, "MIG-a");
	assert_string_equal(s[1].mig_parent, ONE_UUID);
	assert_string_equal(s[1].name, "H200 MIG 1g.18gb");
	assert_int_equal(s[1].index, 0);
	/* the device's clock and power are not one instance's own */
	assert_int_equal(s[1].has, GPU_HAS_MEMORY | GPU_HAS_PROCESSES);
	assert_int_equal(s[1].memory_used, 100);
	assert_int_equal(s[1].processes[0], 5);
	assert_string_equal(s[2].uuid, "MIG-b");
	assert_string_equal(s[3].uuid, "GPU-other");
	assert_string_equal(s[3].mig_parent, "");
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 4);
	assert_true(s[1].has & GPU_HAS_GPM && s[1].gpm_sm_pct == 1);
	nvml_says(ONE_GPU "mig MIG-c\nmemory 1 2\ngpu GPU-other\nsm 5\n");
	assert_int_equal(gpus_sample_at(g, T0 + 2 * SECOND, &s), 3);
	assert_string_equal(s[1].uuid, "MIG-c");
	gpus_free(g);
	assert_let_go(before);
}

static void test_xid(void **state)
{
	const struct gpu_sample *s;
	struct gpus *g;

	nvml_says("gpu GPU-a\nsm 1\nxid 13\ngpu GPU-b\nsm 1\n"); /* before us */
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 2);
	assert_int_equal(s[0].xid_count + s[1].xid_count, 0);
	nvml_says("gpu GPU-a\nsm 1\nxid 13\ngpu GPU-b\nsm 1\nxid 31\nxid 79\n");
	assert_int_equal(gpus_sample_at(g, T0 + SECOND, &s), 2);
	assert_int_equal(s[0].xid_count, 0);
	assert_int_equal(s[1].xid_count, 2);
	assert_int_equal(s[1].xid_last, 79);
	gpus_release_at(g, T0 + SECOND); /* what was counted stays */
	assert_int_equal(gpus_sample_at(g, T0 + 7 * SECOND, &s), 2);
	assert_int_equal(s[1].xid_count, 2);
	assert_int_equal(s[1].xid_last, 79);
	gpus_free(g);
}

/* Without events, or with a set that the manual calls void, all else is sampled. */
static void test_events_fail(void **state)
{
	static const char *const ways[] = {
		"fail nvmlEventSetCreate 3\n", "fail nvmlDeviceRegisterEvents 999\n",
		"fail nvmlDeviceRegisterEvents 3\n", "fail nvmlEventSetWait_v2 999\n",
	};
	struct holding before = holding_now();
	const struct gpu_sample *s;
	char text[1024];

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct gpus *g;

		snprintf(text, sizeof(text), "%s" ONE_GPU, ways[i]);
		nvml_says(text);
		g = start();
		assert_int_equal(gpus_sample_at(g, T0, &s), 1);
		assert_int_equal(s->clock_sm_mhz, 1980);
		assert_int_equal(!!(s->has & GPU_HAS_XID), i == 3);
		gpus_free(g);
		assert_let_go(before);
	}
}

/* More processes than are listed are counted, in both layouts of an entry. */
static void many(int count, const char *layout)
{
	const struct gpu_sample *s;
	char *text = NULL;
	struct gpus *g;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	fprintf(out, "%sgpu GPU-a\nprocesses", layout);
	for (int i = 0; i < count; i++)
		fprintf(out, " %d", 1000 + i);
	fputc('\n', out);
	fclose(out);
	nvml_says(text);
	free(text);
	g = start();
	assert_int_equal(gpus_sample_at(g, T0, &s), 1);
	assert_true(s->has & GPU_HAS_PROCESSES);
	assert_int_equal(s->processes_count, count);
	for (int i = 0; i < count && i < GPU_PROCESSES; i++)
		assert_int_equal(s->processes[i], 1000 + i);
	gpus_free(g);
}

static void test_processes(void **state)
{
	static const int counts[] = {0, 1, 2, GPU_PROCESSES, GPU_PROCESSES + 1, 500};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		many(counts[i], "");
		many(counts[i], "long_processes\n");
	}
}

static void test_throttle_words(void **state)
{
	char buf[256], small[12];

	assert_string_equal(gpu_throttle_text(0, buf, sizeof(buf)), "none");
	assert_string_equal(gpu_throttle_text(1, buf, sizeof(buf)), "none");
	assert_string_equal(gpu_throttle_text(4, buf, sizeof(buf)), "power cap");
	assert_string_equal(gpu_throttle_text(0x45, buf, sizeof(buf)),
			    "power cap, hardware thermal slowdown");
	assert_string_equal(gpu_throttle_text(UINT64_C(1) << 63 | 0x80, buf, sizeof(buf)),
			    "hardware power brake, reason 0x8000000000000000");
	assert_string_equal(gpu_throttle_text(0x44, small, sizeof(small)), "power cap, ");
	assert_false(gpu_throttled(1));
	assert_true(gpu_throttled(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_little_is_supported),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_missing_symbols),
		cmocka_unit_test(test_no_use),
		cmocka_unit_test(test_not_a_library),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_one_number_fails),
		cmocka_unit_test(test_lost_between_calls),
		cmocka_unit_test(test_all_lost),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_gpm),
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_xid),
		cmocka_unit_test(test_events_fail),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_throttle_words),
	};

	return cmocka_run_group_tests(tests, nvml_setup, nvml_teardown);
}
