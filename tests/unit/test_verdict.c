// SPDX-License-Identifier: BSD-2-Clause
/* The live verdict: what follows from counts, from samples, and from what is not known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/verdict.h"
#include "probe/catalogue.h"

#define SECOND INT64_C(1000000000)

/* A process of one thread, all of whose calls are counted; tests change what differs. */
struct scene {
	struct snapshot s;
	struct snapshot_process p;
	struct snapshot_thread threads[3];
	struct snapshot_api apis[4];
	struct histogram launches;
	struct gpu_sample gpu;
};

static struct estimate counted(double v)
{
	return (struct estimate){ true, v, v, v };
}

static struct estimate about(double v, double off)
{
	return (struct estimate){ true, v, v - off, v + off };
}

static void called(struct scene *c, const char *name, double rate)
{
	struct snapshot_api *a = &c->apis[c->p.apis_count++];

	*a = (struct snapshot_api){ .api = catalogue_find(name), .calls_per_s = counted(rate),
				    .seen = (uint64_t)rate };
	assert_non_null(catalogue_get(a->api));
}

static struct snapshot_thread *thread(struct scene *c, double dispatch, double sync, double away)
{
	struct snapshot_thread *t = &c->threads[c->p.threads_count++];

	*t = (struct snapshot_thread){ .tid = 7, .launches = 1000,
				       .dispatch_share = counted(dispatch),
				       .sync_share = counted(sync),
				       .elsewhere_share = counted(1 - dispatch - sync),
				       .away_known = true, .away_share = away,
				       .sched_known = true };
	c->p.elsewhere_share = t->elsewhere_share;
	return t;
}

static void scene(struct scene *c, double launches, double waits, double dispatch, double sync,
		  double away)
{
	memset(c, 0, sizeof(*c));
	c->s.window_ns = SECOND;
	c->s.mono_ns = 100 * SECOND;
	c->s.processes = &c->p;
	c->s.processes_count = 1;
	c->p.threads = c->threads;
	c->p.apis = c->apis;
	c->p.launch_recent = &c->launches;
	c->p.launches_per_s = counted(launches);
	called(c, "cuLaunchKernel", launches);
	if (waits > 0)
		called(c, "cuStreamSynchronize", waits);
	thread(c, dispatch, sync, away);
}

static void is(struct scene *c, enum diag_verdict want)
{
	const struct snapshot_verdict *v = &c->p.verdict;
	double sum = 0;

	verdict_live(&c->s, &c->p);
	assert_string_equal(diag_verdict_words[v->verdict], diag_verdict_words[want]);
	assert_int_equal(v->why != NULL, want == VERDICT_INCONCLUSIVE);
	for (int i = 0; i < CLASSES; i++) {
		assert_true(v->share[i].low <= v->share[i].value + 1e-9);
		assert_true(v->share[i].value <= v->share[i].high + 1e-9);
		sum += v->share[i].value;
	}
	if (v->share[0].known)
		assert_true(fabs(sum - 1) < 0.02);
}

static void counted_calls(void **state)
{
	struct scene c;

	scene(&c, 20000, 100, 0.3, 0.05, 0.01); /* Python between calls */
	is(&c, VERDICT_OVERHEAD_BOUND);
	scene(&c, 20000, 100, 0.1, 0.85, 0);
	is(&c, VERDICT_GPU_BOUND);
	scene(&c, 20000, 100, 0.1, 0.1, 0.75); /* the same, but for long at a time */
	is(&c, VERDICT_STARVED);
	scene(&c, 20000, 100, 0.45, 0.5, 0);
	is(&c, VERDICT_MIXED);
	scene(&c, 200, 100, 0.3, 0, 0.1);
	c.p.cold_ns = (uint64_t)(SECOND / 10 * 9);
	is(&c, VERDICT_OVERHEAD_BOUND); /* no more than what was in calls was loading: 0.3 */
	c.p.cold_ns = (uint64_t)(SECOND / 10 * 7);
	c.threads[0].dispatch_share = counted(0.72);
	c.threads[0].elsewhere_share = counted(0.28);
	is(&c, VERDICT_COLD_START);
}

static void without_a_cpu(void **state)
{
	struct scene c;

	scene(&c, 20000, 100, 0.3, 0.05, 0.01); /* overhead-bound: 0.94 against 0.05 */
	c.threads[0].lost_share = 0.75;
	is(&c, VERDICT_OVERHEAD_BOUND);
	c.threads[0].lost_share = 0.85;
	is(&c, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(c.p.verdict.why, "for a CPU"));
	c.threads[0].sched_known = false;
	is(&c, VERDICT_OVERHEAD_BOUND);
	scene(&c, 20000, 100, 0.45, 0.5, 0);
	c.threads[0].lost_share = 0.5;
	is(&c, VERDICT_MIXED);
}

static void copies(void **state)
{
	struct scene c;

	scene(&c, 1000, 10, 0.05, 0.9, 0);
	called(&c, "cuMemcpyHtoD_v2", 100);
	c.apis[2].interval_ns = SECOND / 10 * 8;
	is(&c, VERDICT_COPY_BOUND);
	c.apis[2].interval_ns = SECOND / 10;
	is(&c, VERDICT_GPU_BOUND);
	/* Of another thread, perhaps: then which is not known. */
	c.apis[2].interval_ns = SECOND / 10 * 8;
	thread(&c, 0, 0.8, 0)->launches = 0;
	is(&c, VERDICT_INCONCLUSIVE);
}

static void full_queue(void **state)
{
	struct scene c;

	scene(&c, 16000, 0, 0.97, 0, 0);
	c.p.back_pressured_per_s = counted(15900);
	for (int i = 0; i < 1000; i++)
		histogram_count(&c.launches, 60000);
	is(&c, VERDICT_BACK_PRESSURED);
	/* With a wait for every hundred the queue cannot be full: launches are slow. */
	called(&c, "cuStreamSynchronize", 160);
	is(&c, VERDICT_OVERHEAD_BOUND);
}

/* Of what is sampled: a range each. */
static void sampled(struct scene *c, double spread)
{
	struct snapshot_thread *t = &c->threads[0];

	c->p.launches_per_s = about(c->p.launches_per_s.value, c->p.launches_per_s.value * spread);
	t->away_known = false;
	t->away_share = t->elsewhere_share.value; /* most launches were not seen */
}

static void sampled_calls(void **state)
{
	struct scene c;

	scene(&c, 20000, 0, 0.3, 0.05, 0);
	sampled(&c, 0.03);
	is(&c, VERDICT_OVERHEAD_BOUND); /* even: nothing long can be between */
	scene(&c, 20000, 0, 0.3, 0.05, 0);
	sampled(&c, 0.6);
	is(&c, VERDICT_INCONCLUSIVE); /* bursts: who knows */
	scene(&c, 1000, 0, 0.3, 0.05, 0);
	sampled(&c, 0.03);
	is(&c, VERDICT_INCONCLUSIVE); /* even, and too far from each other */
	scene(&c, 20000, 0, 0.1, 0.05, 0);
	sampled(&c, 0.6);
	c.threads[0].asleep_share = 0.7; /* sleep is known */
	is(&c, VERDICT_STARVED);
	scene(&c, 20000, 0, 0.1, 0.8, 0);
	sampled(&c, 0.6);
	is(&c, VERDICT_GPU_BOUND); /* waits are counted */
	scene(&c, 20000, 500, 0.3, 0.05, 0);
	sampled(&c, 0.6);
	c.threads[0].away_share = 0.05; /* syncs come so often that nothing long is between */
	is(&c, VERDICT_OVERHEAD_BOUND);
}

/* Sleep may have been in a wait that no window saw. */
static void sampled_waits(void **state)
{
	struct scene c;

	scene(&c, 2000, 250, 0.02, 0.1, 0.8);
	c.threads[0].away_known = false;
	c.threads[0].asleep_share = 0.75;
	is(&c, VERDICT_STARVED);
	c.apis[1].sampled = true;
	is(&c, VERDICT_INCONCLUSIVE);
}

static void polls(void **state)
{
	struct scene c;

	scene(&c, 2000, 0, 0.05, 0.3, 0);
	called(&c, "cuEventQuery", 500000);
	is(&c, VERDICT_INCONCLUSIVE); /* waiting as it may be, it is not called overhead */
	assert_true(c.p.verdict.share[CLASS_GPU].value > 0.9);
}

static void several_threads(void **state)
{
	struct scene c;

	/* Forward on one, backward on the other: each is half of the time away. */
	scene(&c, 20000, 100, 0.48, 0.02, 0.5);
	thread(&c, 0.48, 0, 0.52);
	is(&c, VERDICT_INCONCLUSIVE); /* or both are away at the same time */
	assert_true(c.p.verdict.share[CLASS_OVERHEAD].value > 0.9);
	scene(&c, 20000, 100, 0.9, 0.02, 0);
	thread(&c, 0.02, 0.9, 0);
	is(&c, VERDICT_OVERHEAD_BOUND); /* whatever the second does */
	scene(&c, 20000, 100, 0.02, 0.95, 0);
	thread(&c, 0, 0, 1)->launches = 0; /* a thread that launches nothing does not count */
	is(&c, VERDICT_GPU_BOUND);
}

static void nvml(void **state)
{
	struct scene c;

	scene(&c, 20000, 100, 0.9, 0.02, 0);
	strcpy(c.p.gpu_uuid, "GPU-1");
	strcpy(c.gpu.uuid, "GPU-1");
	c.gpu.has = GPU_HAS_UTILISATION;
	c.gpu.utilisation_pct = 60;
	c.s.gpus = &c.gpu;
	c.s.gpus_count = 1;
	is(&c, VERDICT_OVERHEAD_BOUND);
	assert_int_equal(c.p.verdict.basis, BASIS_CPU_NVML);
	c.gpu.utilisation_pct = 99;
	is(&c, VERDICT_MIXED);
	c.p.gpu_shared = true; /* it may be the others that use it */
	is(&c, VERDICT_OVERHEAD_BOUND);
	assert_int_equal(c.p.verdict.basis, BASIS_CPU);
}

static void nothing_to_say(void **state)
{
	struct scene c;

	scene(&c, 0, 0, 0, 0, 1);
	is(&c, VERDICT_INCONCLUSIVE);
	scene(&c, 8, 8, 0.1, 0.85, 0);
	is(&c, VERDICT_INCONCLUSIVE);
	scene(&c, 20000, 100, 0.9, 0.02, 0);
	c.p.seen = c.s.mono_ns - SECOND / 2;
	is(&c, VERDICT_INCONCLUSIVE);
	scene(&c, 20000, 100, 0.9, 0.02, 0);
	c.p.launches_per_s.known = false;
	is(&c, VERDICT_INCONCLUSIVE);
	scene(&c, 20000, 100, 0.9, 0.02, 0);
	c.threads[0].dispatch_share.known = false;
	is(&c, VERDICT_INCONCLUSIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_calls), cmocka_unit_test(without_a_cpu),
		cmocka_unit_test(copies), cmocka_unit_test(full_queue),
		cmocka_unit_test(sampled_calls), cmocka_unit_test(sampled_waits),
		cmocka_unit_test(polls), cmocka_unit_test(several_threads),
		cmocka_unit_test(nvml), cmocka_unit_test(nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
