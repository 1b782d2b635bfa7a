// SPDX-License-Identifier: BSD-2-Clause
/* step_sum, variation_sum, sync_sites, mem_sum and leak_sum, worked out by hand. */
#include "labelled_jobs.h"
#include "view.h"

static void allocate(struct job *j, uint64_t pointer, uint64_t bytes)
{
	struct event begin = { .args = EVENT_ARGS_CALL, .call = { .bytes = bytes } };
	struct event end = { .ts = j->now + 10, .pid = 100, .tid = 100, .sp = SP, .api = F_ALLOC,
			     .image = 1, .kind = EVENT_END, .has_out = 1,
			     .end = { .out = pointer } };

	feed_begin_with(&j->f, j->now, F_ALLOC, SP, &begin);
	feed_event(&j->f, &end);
	j->now += 20;
}

static void steps_and_sites(void **state)
{
	const struct session *s;
	struct job j;

	job_start(&j, true);
	for (int i = 0; i < 10; i++) {
		for (unsigned k = 0; k < 5; k++)
			job_kernel(&j, k, 5 * USEC, k == 4 && i % 2 ? 30 * USEC : 10 * USEC);
		job_sync(&j);
	}
	s = job_finish(&j);
	assert_field(s, "step_sum", 1, "steps", "9");
	assert_field(s, "step_sum", 1, "tokens_per_step", "6");
	assert_field(s, "step_sum", 1, "pid", "100");
	/* Five kernels of 10 us behind each other, 4 us after the launch, 2 us to wake. */
	assert_field(s, "step_sum", 1, "min_ns", "56000");
	assert_field(s, "step_sum", 1, "max_ns", "76000");
	assert_field(s, "variation_sum", 1, "kernel", "kernel04");
	assert_field(s, "variation_sum", 1, "avg_ns", "20000");
	assert_field(s, "variation_sum", 1, "p99_to_p50", "3.000");
	assert_field(s, "variation_sum", 2, "cv_pct", "0.000");
	assert_field(s, "sync_sites", 1, "waits", "10");
	assert_field(s, "sync_sites", 1, "after", "cuLaunchKernel");
	assert_field(s, "sync_sites", 1, "kernel", "kernel04");
	assert_field(s, "sync_sites", 2, "waits", "1"); /* the last one comes after a wait */
	assert_field(s, "sync_sites", 2, "after", "cuStreamSynchronize");
	feed_stop(&j.f);
}

static void memory(void **state)
{
	const struct session *s;
	struct job j;

	job_start(&j, false);
	for (uint64_t i = 0; i < 4; i++)
		allocate(&j, 0xa000 + i * 0x1000, 4096);
	allocate(&j, 0xf000, 100);
	s = job_finish(&j);
	assert_field(s, "mem_sum", 1, "live_bytes", "16484");
	assert_field(s, "mem_sum", 1, "peak_bytes", "16484");
	assert_field(s, "mem_sum", 1, "allocations", "5");
	assert_field(s, "mem_sum", 1, "failed", "0");
	assert_field(s, "leak_sum", 1, "live_bytes", "16384");
	assert_field(s, "leak_sum", 1, "not_freed", "4");
	assert_field(s, "leak_sum", 1, "bytes", "4096");
	assert_field(s, "leak_sum", 1, "memory", "device");
	assert_field(s, "leak_sum", 2, "live_bytes", "100");
	feed_stop(&j.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_sites),
		cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
