// SPDX-License-Identifier: BSD-2-Clause
/* The thread that samples: nobody waits for the driver, and it leaves nothing behind. */
#include "nvml_file.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "gpu/sampler.h"

#define MS 1000000LL
#define SOON (5000 * MS)

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct gpu_sampler *start(int64_t interval)
{
	struct gpu_sampler *s;

	assert_int_equal(gpu_sampler_new(&s, interval), 0);
	return s;
}

/* Until a round says it; what it says is in into. */
static void wait_for(struct gpu_sampler *s, struct gpu_samples *into, size_t count,
		     const char *trouble)
{
	int64_t end = now_ns() + SOON;

	for (;;) {
		assert_true(gpu_sampler_latest(s, into) >= 0);
		if (into->round && into->count == count && strstr(into->trouble, trouble))
			return;
		if (now_ns() > end)
			fail_msg("round %lu: %zu samples, '%s'", (unsigned long)into->round,
				 into->count, into->trouble);
		usleep(2000);
	}
}

static void test_rounds(void **state)
{
	struct holding before = holding_now();
	struct gpu_samples mine = {0};
	struct gpu_sampler *s;
	uint64_t round;

	nvml_says(ONE_GPU);
	s = start(20 * MS);
	wait_for(s, &mine, 1, "");
	assert_string_equal(mine.items->uuid, ONE_UUID);
	assert_int_equal(mine.items->clock_sm_mhz, 1980);
	nvml_says("gpu GPU-a\nsm 345\ngpu GPU-b\nsm 7\n");
	gpu_sampler_free(s);
	assert_let_go(before);
	s = start(20 * MS);
	mine.round = 0;
	wait_for(s, &mine, 2, "");
	assert_int_equal(mine.items[1].clock_sm_mhz, 7);
	round = mine.round;
	while (mine.round < round + 3) /* it goes on by itself */
		assert_true(gpu_sampler_latest(s, &mine) >= 0);
	gpu_sampler_free(s);
	gpu_sampler_free(NULL);
	gpu_samples_free(&mine);
	assert_let_go(before);
}

/* The same round is not given twice; one out of turn is waited for. */
static void test_out_of_turn(void **state)
{
	struct gpu_samples mine = {0};
	struct gpu_sampler *s;

	nvml_says(ONE_GPU);
	s = start(3600 * 1000 * MS);
	wait_for(s, &mine, 1, "");
	assert_int_equal(gpu_sampler_latest(s, &mine), 0);
	nvml_says("gpu " ONE_UUID "\nsm 345\n");
	assert_true(gpu_sampler_now(s, SOON));
	assert_int_equal(gpu_sampler_latest(s, &mine), 1);
	assert_int_equal(mine.items->clock_sm_mhz, 345);
	gpu_sampler_free(s);
	gpu_samples_free(&mine);
}

static void test_trouble(void **state)
{
	struct holding before = holding_now();
	struct gpu_samples mine = {0};
	struct gpu_sampler *s;

	nvml_says("fail nvmlInit_v2 18\n");
	s = start(20 * MS);
	wait_for(s, &mine, 0, "reload the driver");
	gpu_sampler_free(s);
	nvml_use("nvml-not-there"); /* which is no trouble */
	memset(&mine, 0, sizeof(mine));
	s = start(20 * MS);
	wait_for(s, &mine, 0, "");
	assert_string_equal(mine.trouble, "");
	gpu_sampler_free(s);
	nvml_use("nvml");
	gpu_samples_free(&mine);
	assert_let_go(before);
}

static void test_release(void **state)
{
	struct holding before = holding_now();
	struct gpu_samples mine = {0};
	struct gpu_sampler *s;

	nvml_says(ONE_GPU);
	s = start(20 * MS);
	wait_for(s, &mine, 1, "");
	assert_true(library_mapped());
	gpu_sampler_release(s);
	wait_for(s, &mine, 0, "let go of");
	before.threads++; /* ours */
	assert_let_go(before);
	gpu_sampler_free(s);
	gpu_samples_free(&mine);
}

/* A driver that keeps a call: neither a look at the samples nor the end waits for it. */
static void test_hang(void **state)
{
	struct holding before = holding_now();
	struct gpu_samples mine = {0};
	struct gpu_sampler *s;
	int64_t end = now_ns() + SOON;

	nvml_says("hang nvmlDeviceGetPowerUsage 3000 2 1\n" ONE_GPU);
	s = start(20 * MS);
	wait_for(s, &mine, 1, "");
	assert_false(gpu_sampler_now(s, 100 * MS));
	assert_int_equal(gpu_sampler_latest(s, &mine), 0);
	gpu_sampler_free(s);
	assert_int_equal(holding_now().threads, before.threads + 2); /* it was not waited for */
	while (holding_now().threads > before.threads && now_ns() < end)
		usleep(2000);
	assert_let_go(before);
	gpu_samples_free(&mine);
}

struct status {
	char name[32];
	unsigned long long effective, permitted, blocked;
	int no_new; /* rights by way of setuid programs */
};

static void status_read(const char *path, struct status *st)
{
	FILE *in = fopen(path, "re");
	char line[256];

	assert_non_null(in);
	memset(st, 0, sizeof(*st));
	while (fgets(line, sizeof(line), in)) {
		sscanf(line, "Name: %31s", st->name);
		sscanf(line, "CapEff: %llx", &st->effective);
		sscanf(line, "CapPrm: %llx", &st->permitted);
		sscanf(line, "SigBlk: %llx", &st->blocked);
		sscanf(line, "NoNewPrivs: %d", &st->no_new);
	}
	fclose(in);
}

/* Of the sampling thread. */
static void status_find(struct status *st)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	char path[300];

	assert_non_null(dir);
	memset(st, 0, sizeof(*st));
	while (strcmp(st->name, "gbpf-gpu") && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		status_read(path, st);
	}
	closedir(dir);
	assert_string_equal(st->name, "gbpf-gpu");
}

/* Whatever rights the process has, the thread that asks a library has none. */
static void test_no_rights(void **state)
{
	struct gpu_samples mine = {0};
	struct status before, after, thread;
	struct gpu_sampler *s;

	nvml_says(ONE_GPU);
	status_read("/proc/self/status", &before);
	s = start(20 * MS);
	wait_for(s, &mine, 1, "");
	status_find(&thread);
	assert_int_equal(thread.effective, 0);
	assert_int_equal(thread.permitted, 0);
	assert_int_equal(thread.no_new, 1);
	assert_true(thread.blocked & 1ull << (SIGTERM - 1));
	status_read("/proc/self/status", &after);
	assert_int_equal(after.effective, before.effective);
	assert_int_equal(after.no_new, before.no_new);
	assert_int_equal(after.blocked, before.blocked);
	gpu_sampler_free(s);
	gpu_samples_free(&mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_out_of_turn),
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_no_rights),
	};

	return cmocka_run_group_tests(tests, nvml_setup, nvml_teardown);
}
