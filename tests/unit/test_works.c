// SPDX-License-Identifier: BSD-2-Clause
/* What the sidecar recorded, as the session has it: whole, sorted, and nothing believed. */
#include "gpu_session.h"

#include "model/gpu.h"

static const struct work *work_at(const struct session *s, int64_t begin)
{
	for (size_t i = 0; i < s->works_count; i++)
		if (s->works[i].begin == begin)
			return &s->works[i];
	fail_msg("no work begins at %lld", (long long)begin);
	return NULL;
}

static void test_small(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);
	const struct work *w = work_at(s, 120000);

	assert_int_equal(s->works_count, 9);
	assert_int_equal(s->streams_count, 3);
	assert_int_equal(s->devices_count, 2);
	assert_int_equal(s->devices[0].physical, 0);
	assert_int_equal(s->devices[1].physical, 0);
	assert_int_equal(s->devices[1].gpu, 0);
	assert_int_equal(s->processes[s->devices[1].process].pid, 200);
	assert_string_equal(s->kernels[w->kernel].mangled, SMALL_NCCL);
	assert_true(s->kernels[w->kernel].comm);
	assert_int_equal(work_class(s, w), WORK_CLASS_COMM);
	assert_int_equal(w->end, 140000);
	assert_int_equal(s->streams[w->stream].id, 13);
	assert_int_equal(s->shapes[w->shape].block[0], 512);
	w = work_at(s, 210000);
	assert_int_equal(w->bytes, 4096);
	assert_int_equal(w->kernel, UINT32_MAX);
	assert_int_equal(w->source, RECORD_MEMORY_PAGEABLE);
	assert_int_equal(work_at(s, 240000)->graph_node, 1001);
	assert_int_equal(s->join.bad, 0);
	assert_int_equal(s->join.clock_error, 150);
	feed_stop(&f);
}

/* Launches and works of one kernel are of one kernel. */
static void test_kernels_are_shared(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);

	assert_int_equal(nth(s, 0)->kernel, work_at(s, 106000)->kernel);
	feed_stop(&f);
}

static void test_covers(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_kernel(&f, 1000, 2000, 7, 9, 1);
	feed_cover(&f, 1000, 2000);
	feed_sidecar(&f, 2001, RECORD_SIDECAR_RUNNING, 27, "");
	feed_sidecar(&f, 3000, RECORD_SIDECAR_BEGAN, 0, "");
	feed_sidecar(&f, 3500, RECORD_SIDECAR_DROPPED, 7, "ring");
	feed_sidecar(&f, 4000, RECORD_SIDECAR_ENDED, 0, "");
	feed_sidecar(&f, 5000, RECORD_SIDECAR_BEGAN, 0, "");
	feed_kernel(&f, 5500, 6000, 7, 1, 1);
	f.pid = 200;
	feed_sidecar(&f, 100, RECORD_SIDECAR_REFUSED, 0, "torch.profiler is on");
	s = feed_finish(&f);
	assert_int_equal(s->covers_count, 3);
	assert_true(s->covers[0].whole);
	assert_false(s->covers[1].whole);
	assert_int_equal(s->covers[2].end, 6000);
	assert_false(s->covers[2].whole);
	assert_int_equal(s->join.dropped, 7);
	assert_int_equal(s->join.running, 27);
	assert_int_equal(s->join.bad, 2); /* the kernels have no shape */
	assert_true(work_covered(s, 0, 1000, 2000));
	assert_false(work_covered(s, 0, 1000, 2001));
	assert_false(work_covered(s, 0, 999, 1500));
	assert_false(work_covered(s, 1, 1000, 1500));
	assert_int_equal(work_covered_ns(s, 0, 1500, 3200), 700);
	assert_int_equal(work_covered_ns(s, 0, 0, INT64_MAX), 3000);
	assert_null(session_no_work(s, 0));
	assert_string_equal(session_no_work(s, 1), "torch.profiler is on");
	assert_null(session_no_work(s, UINT32_MAX));
	feed_stop(&f);
}

static void test_without_sidecar(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_call(&f, 1000, 2000, F_SYNC, SP);
	s = feed_finish(&f);
	assert_false(session_has_work(s));
	assert_string_equal(session_no_work(s, 0), "recorded without --gpu-time");
	assert_int_equal(s->join.clock_error, -1);
	feed_stop(&f);
}

/* A pid that names one process after another: works, streams and devices follow. */
static void test_pid_used_again(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 100, RECORD_PROCESS_SEEN, 100, 5000000000, "first");
	feed_process(&f, 2000, RECORD_PROCESS_EXIT, 100, 5000000000, "first");
	feed_process(&f, 3000, RECORD_PROCESS_FORK, 100, 9000000000, "second");
	feed_device(&f, 0, "GPU-1");
	feed_kernel(&f, 1000, 1100, 7, 1, 1);
	feed_kernel(&f, 4000, 4100, 7, 1, 1);
	feed_kernel(&f, 1200, 1300, 7, 2, 1);
	s = feed_finish(&f);
	assert_int_equal(s->processes_count, 2);
	assert_int_equal(s->streams_count, 2);
	assert_int_equal(s->streams[0].works, 2);
	assert_int_equal(s->streams[1].works, 1);
	assert_int_equal(s->devices_count, 2);
	assert_int_not_equal(s->devices[0].process, s->devices[1].process);
	assert_int_equal(s->devices[1].physical, 0);
	feed_stop(&f);
}

static void test_order(void **state)
{
	static const struct gpu_random_options o = { .seed = 3, .processes = 2, .threads = 4,
						     .streams = 12, .devices = 2, .calls = 200 };
	struct feed f;
	struct gpu_truth *truth;
	size_t count, works = 0;
	struct session *s = gpu_random(&f, &o, &truth, &count);

	assert_int_equal(s->works_count, count);
	assert_int_equal(s->streams_count, 2 * 12);
	for (uint32_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		assert_int_equal(st->first_work, works);
		works += st->works;
		for (uint32_t w = st->first_work; w < works; w++) {
			assert_int_equal(s->works[w].stream, i);
			assert_true(w == st->first_work ||
				    s->works[w - 1].begin <= s->works[w].begin);
		}
	}
	assert_int_equal(works, count);
	free(truth);
	feed_stop(&f);
}

/* Whatever a file claims: bounded times, indices that hold, and what cannot be is counted. */
static void test_hostile(void **state)
{
	struct gpu_random_options o = { .processes = 3, .threads = 2, .streams = 5, .devices = 3,
					.calls = 60, .hostile = true };

	for (o.seed = 1; o.seed < 20; o.seed++) {
		struct feed f;
		struct session *s = gpu_random(&f, &o, NULL, NULL);

		assert_true(s->join.bad >= 5 * 3);
		for (size_t i = 0; i < s->works_count; i++) {
			const struct work *w = &s->works[i];

			assert_true(w->begin > 0 && w->begin < w->end);
			assert_true(w->end <= INT64_C(1) << 62);
			assert_true(w->stream < s->streams_count);
			assert_true(w->kind == RECORD_WORK_KERNEL ? w->kernel < s->kernels_count
								   : w->kernel == UINT32_MAX);
			assert_true(w->shape < s->shapes_count || w->shape == SHAPE_NONE);
			assert_true(w->call < s->calls_count || w->call == CALL_NONE);
		}
		for (size_t i = 0; i < s->devices_count; i++) {
			assert_true(s->devices[i].process < s->processes_count);
			assert_true(s->devices[i].physical < s->devices_count);
			assert_non_null(s->devices[i].about.uuid);
		}
		feed_stop(&f);
	}
}

static void test_comm_names(void **state)
{
	assert_true(kernel_is_comm("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclArgs<4096ul>)"));
	assert_true(kernel_is_comm(SMALL_NCCL));
	assert_true(kernel_is_comm("void ncclKernel_SendRecv(ncclWork*)"));
	assert_true(kernel_is_comm("ncclSymkDevKernel_AllGather"));
	assert_false(kernel_is_comm("void gemm(ncclDevKernelArgs)"));
	assert_false(kernel_is_comm("nccl"));
	assert_false(kernel_is_comm("ncclHelper"));
	assert_false(kernel_is_comm(""));
	assert_false(kernel_is_comm("void at::native::vectorized_elementwise_kernel<4>(int)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_kernels_are_shared),
		cmocka_unit_test(test_covers),
		cmocka_unit_test(test_without_sidecar),
		cmocka_unit_test(test_pid_used_again),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_comm_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
