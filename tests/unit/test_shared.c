// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two processes on one device, made by a script that repeats: what each share must be
 * follows from the script's few numbers.
 */
#include <math.h>

#include "gpu_feed.h"

#include "diagnose/diagnose.h"

#define USEC INT64_C(1000)
#define BEGIN (10 * 1000 * USEC)
#define KERNELS 3 /* a beat, at most */

/* In us from where a beat begins: a launch, its kernel. All 0: there is none. */
struct asked {
	int64_t call, call_end, begin, end;
	uint32_t side; /* on another stream than the others */
};

/* What a process does in each beat: launches, then a wait. */
struct part {
	struct asked kernel[KERNELS];
	int64_t wait, wait_end; /* us */
};

struct scene {
	int64_t beat; /* us */
	int beats;
	const char *uuid[2];   /* of the device that each uses */
	struct part part[2];   /* no kernel: the process was not recorded */
	bool ranks;	       /* they are labelled as the ranks of one job */
};

static void about(struct feed *f, const struct scene *c, int who)
{
	struct record r = { .kind = RECORD_LABEL,
			    .label = { .ts = 1, .pid = f->pid, .key = "rank",
				       .value = who ? "1" : "0" } };

	feed_process(f, 1, RECORD_PROCESS_SEEN, f->pid, f->pid, "job");
	feed_device(f, 0, c->uuid[who]);
	feed_name(f, BEGIN - 1, 0x1000, GBPF_NAME_LAYOUT, "_Z6kernelv");
	feed_shape(f, 0, "_Z6kernelv", 1, 128);
	if (c->ranks)
		feed_add(f, &r);
}

static void beat(struct feed *f, const struct part *p, int64_t at, uint32_t *correlation)
{
	for (int k = 0; k < KERNELS; k++) {
		const struct asked *a = &p->kernel[k];

		if (!a->end)
			continue;
		feed_launched(f, at + a->call * USEC, at + a->call_end * USEC, 0x1000,
			      0x77 + a->side, 1, 128, ++*correlation);
		feed_kernel(f, at + a->begin * USEC, at + a->end * USEC, 7 + a->side, *correlation,
			    0);
	}
	feed_call(f, at + p->wait * USEC, at + p->wait_end * USEC, F_SYNC, SP);
}

/* Whole beats with others around them are recorded: the shares of one are the window's. */
static const struct session *play(struct feed *f, const struct scene *c)
{
	int64_t begin = BEGIN + c->beat * USEC, end = BEGIN + (c->beats - 1) * c->beat * USEC;

	feed_start(f);
	feed_info(f, "probe_pair_ns", "0");
	for (int who = 0; who < 2; who++) {
		uint32_t correlation = 0;

		if (!c->part[who].kernel[0].end)
			continue;
		f->pid = f->tid = 100 + (uint32_t)who;
		about(f, c, who);
		for (int i = 0; i < c->beats; i++)
			beat(f, &c->part[who], BEGIN + i * c->beat * USEC, &correlation);
		feed_cover(f, begin, end);
	}
	feed_window(f, begin, end);
	return feed_finish(f);
}

static const struct diag_process *of_pid(const struct diagnosis *d, uint32_t pid)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->s->processes[d->processes[i].process].pid == pid)
			return &d->processes[i];
	fail_msg("process %u is not judged", pid);
	return NULL;
}

static const struct diag_finding *fired(const struct diag_process *p, const char *rule)
{
	for (size_t i = 0; i < p->findings_count; i++)
		if (!strcmp(p->findings[i].rule->name, rule))
			return &p->findings[i];
	return NULL;
}

static bool has_evidence(const struct diag_finding *f, const char *key, double *value)
{
	assert_non_null(f);
	for (size_t i = 0; i < f->evidence_count; i++)
		if (!strcmp(f->evidence[i].key, key)) {
			*value = f->evidence[i].value;
			return true;
		}
	return false;
}

static double evidence(const struct diag_finding *f, const char *key)
{
	double value = 0;

	if (!has_evidence(f, key, &value))
		fail_msg("%s has no evidence %s", f->rule->name, key);
	return value;
}

/* us a beat, in the order of classes; what is not named is 0. */
static void is(const struct diag_process *p, const struct scene *c, const double want[CLASSES])
{
	double sum = 0;

	for (int i = 0; i < CLASSES; i++) {
		sum += p->shares[i];
		/* What is asked for in the window and begins after it is not known. */
		if (fabs(p->shares[i] - want[i] / (double)c->beat) > 2e-3)
			fail_msg("%s is %f, not %f", diag_class_words[i], p->shares[i],
				 want[i] / (double)c->beat);
	}
	assert_true(fabs(sum - 1) < 1e-9);
}

/*
 * Each has a kernel of 300 us and waits for it; switching the device takes 100. So a beat is
 * 800: what is asked for at 0, 65 us after the last kernel's wait had ended, begins at 430.
 * (Those 65 us would not be lost without the wait: they are its doing.)
 */
static const struct scene sliced = {
	.beat = 800, .beats = 400, .uuid = { "GPU-1", "GPU-1" },
	.part = { { { { 0, 10, 430, 730 } }, 10, 735 },
		  { { { 400, 410, 830, 1130 } }, 410, 1135 } },
};

static void time_sliced(void **state)
{
	static const double want[CLASSES] = { [CLASS_GPU] = 300, [CLASS_SHARED] = 430,
					      [CLASS_SYNC] = 70 };
	static const char *const not_so[] = { "overhead_bound", "late_start", "anomalous_launch",
					      "low_utilisation", "unexplained_dependency",
					      "graph_candidate", "starved", "cpu_bottleneck" };
	struct diagnosis d;
	struct feed f;

	assert_int_equal(diagnose(play(&f, &sliced), NULL, &d), 0);
	assert_int_equal(d.count, 2);
	for (uint32_t pid = 100; pid < 102; pid++) {
		const struct diag_process *p = of_pid(&d, pid);
		const struct diag_finding *shared = fired(p, "shared_gpu");

		is(p, &sliced, want);
		assert_string_equal(diag_verdict_words[p->verdict], "gpu_bound");
		assert_true(p->confidence < 0.7 * 0.7); /* 0.5 + 0.375 / 2, times 0.7 */
		assert_true(p->confidence > 0.7 * 0.66);
		assert_non_null(fired(p, "heavy_kernel")); /* of a GPU that does not idle */
		for (size_t i = 0; i < sizeof(not_so) / sizeof(not_so[0]); i++)
			if (fired(p, not_so[i]))
				fail_msg("%s fired", not_so[i]);
		assert_true(fabs(evidence(shared, "waited_for_others_pct") - 53.75) < 0.2);
		assert_true(fabs(evidence(shared, "waited_for_others_ns") / 398 / 430e3 - 1) <
			    3e-3);
		assert_true(evidence(shared, "other_processes") == 1);
		assert_int_equal(shared->severity, SEVERITY_WARNING);
		assert_true(fabs(shared->share - p->shares[CLASS_SHARED]) < 1e-9);
		/* A step cannot become shorter by more than what the device idled. */
		assert_true(p->steps.count > 300 && llabs(p->steps.length - 800 * USEC) < USEC);
		assert_true(fabs((double)p->won_ns - 70e3) < 1500);
	}
	diagnosis_free(&d);
	feed_stop(&f);
}

/* 438 us of preparing for a kernel of 20, beside a neighbour that holds it up for 40. */
static void overhead_bound_anyway(void **state)
{
	static const struct scene c = {
		.beat = 500, .beats = 400, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 0, 10, 40, 60 } }, 10, 62 },
			  { { { -35, -30, -20, 40 } }, -30, 42 } },
	};
	/* Alone a beat is 460, 448 of them the CPU's: 10 of 438 are the wait's doing. */
	static const double want[CLASSES] = { [CLASS_GPU] = 20, [CLASS_SHARED] = 40,
					      [CLASS_OVERHEAD] = 428, [CLASS_SYNC] = 12 };
	const struct diag_process *p;
	struct diagnosis d;
	struct feed f;

	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	p = of_pid(&d, 100);
	is(p, &c, want);
	assert_int_equal(p->verdict, VERDICT_OVERHEAD_BOUND);
	assert_non_null(fired(p, "overhead_bound"));
	assert_non_null(fired(p, "shared_gpu"));
	assert_int_equal(fired(p, "shared_gpu")->severity, SEVERITY_NOTICE);
	assert_int_equal(of_pid(&d, 101)->verdict, VERDICT_OVERHEAD_BOUND);
	assert_true(of_pid(&d, 101)->shares[CLASS_SHARED] == 0);
	diagnosis_free(&d);
	feed_stop(&f);
}

/*
 * A neighbour that fills less than half of a wait explains no more than what it ran: of
 * [0, 400), asked for late, 100; of [120, 400), asked for in time, 50.
 */
static void explains_a_part(void **state)
{
	static const struct scene late = {
		.beat = 800, .beats = 400, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 0, 10, 400, 700 } }, 10, 705 },
			  { { { 50, 60, 100, 200 } }, 60, 205 } },
	}, in_time = {
		.beat = 800, .beats = 400, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 0, 5, 20, 120 }, { 10, 15, 400, 700 } }, 15, 705 },
			  { { { 130, 140, 150, 200 } }, 140, 205 } },
	};
	static const double of_late[CLASSES] = { [CLASS_GPU] = 300, [CLASS_SHARED] = 100,
						 [CLASS_OVERHEAD] = 300, [CLASS_SYNC] = 100 };
	/* 20 from the call to the first kernel, 230 of the second's 280 that nothing explains. */
	static const double of_in_time[CLASSES] = { [CLASS_GPU] = 400, [CLASS_SHARED] = 50,
						    [CLASS_OTHER] = 230, [CLASS_OVERHEAD] = 20,
						    [CLASS_SYNC] = 100 };
	const struct diag_finding *said;
	struct diagnosis d;
	struct feed f;
	double usual;

	assert_int_equal(diagnose(play(&f, &late), NULL, &d), 0);
	is(of_pid(&d, 100), &late, of_late);
	/* From the launch's return at 10 to 400, without those 100. */
	said = fired(of_pid(&d, 100), "late_start");
	assert_true(evidence(said, "longest_ns") == 290e3);
	/* How long it takes undisturbed was never seen. */
	assert_false(has_evidence(said, "usual_launch_to_start_ns", &usual));
	diagnosis_free(&d);
	feed_stop(&f);
	assert_int_equal(diagnose(play(&f, &in_time), NULL, &d), 0);
	is(of_pid(&d, 100), &in_time, of_in_time);
	assert_non_null(fired(of_pid(&d, 100), "unexplained_dependency"));
	diagnosis_free(&d);
	feed_stop(&f);
}

/*
 * Two launches are 4 us on their way. A third comes when a neighbour has just ended, and the
 * device is switched back: 140 us of a gap of 150, beside which nothing is anomalous.
 */
static void switched_back(void **state)
{
	struct scene c = {
		.beat = 1000, .beats = 200, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 110, 115, 250, 400 }, { 500, 505, 504, 520 },
			      { 530, 535, 534, 550 } }, 540, 560 },
			  { { { 20, 30, 40, 100 } }, 30, 105 } },
	};
	struct diagnosis d;
	struct feed f;

	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	assert_null(fired(of_pid(&d, 100), "anomalous_launch"));
	diagnosis_free(&d);
	feed_stop(&f);
	/* The same way without anybody before it is one. */
	c.part[1].kernel[0] = (struct asked){ 700, 710, 720, 780, 0 };
	c.part[1].wait = 710;
	c.part[1].wait_end = 785;
	c.part[0].kernel[0] = (struct asked){ 560, 565, 700, 710, 0 };
	c.part[0].wait = 565;
	c.part[0].wait_end = 712;
	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	assert_true(evidence(fired(of_pid(&d, 100), "anomalous_launch"), "longest_ns") == 140e3);
	diagnosis_free(&d);
	feed_stop(&f);
}

/* A kernel waits for one of its own process, on another stream, not for a neighbour. */
static void own_streams(void **state)
{
	static const struct scene c = {
		.beat = 1000, .beats = 200, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 0, 5, 10, 500, 1 }, { 20, 25, 500, 520 } }, 30, 525 },
			  { { { 590, 595, 600, 650 } }, 595, 655 } },
	};
	static const double want[CLASSES] = { [CLASS_GPU] = 510, [CLASS_OVERHEAD] = 10,
					      [CLASS_SYNC] = 480 };
	struct diagnosis d;
	struct feed f;

	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	is(of_pid(&d, 100), &c, want);
	assert_true(evidence(fired(of_pid(&d, 100), "late_start"), "longest_ns") == 475e3);
	assert_true(evidence(fired(of_pid(&d, 100), "shared_gpu"), "waited_for_others_ns") == 0);
	diagnosis_free(&d);
	feed_stop(&f);
}

/* Slices that are longer than the thirtieths which low_utilisation looks at. */
static void long_slices(void **state)
{
	static const struct scene c = {
		.beat = 100000, .beats = 30, .uuid = { "GPU-1", "GPU-1" },
		.part = { { { { 0, 10, 65000, 95000 } }, 10, 95010 },
			  { { { 5000, 5010, 20000, 60000 } }, 5010, 60010 } },
	};
	static const double want[CLASSES] = { [CLASS_GPU] = 30000, [CLASS_SHARED] = 65000,
					      [CLASS_SYNC] = 10, [CLASS_STARVED] = 4990 };
	struct diagnosis d;
	struct feed f;

	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	is(of_pid(&d, 100), &c, want);
	assert_int_equal(of_pid(&d, 100)->verdict, VERDICT_GPU_BOUND);
	assert_null(fired(of_pid(&d, 100), "low_utilisation"));
	/* The other is away while this one runs, and that is its own doing. */
	assert_int_equal(of_pid(&d, 101)->verdict, VERDICT_STARVED);
	assert_non_null(fired(of_pid(&d, 101), "low_utilisation"));
	diagnosis_free(&d);
	feed_stop(&f);
}

/* What is judged of process 100 without a neighbour is judged so beside one elsewhere. */
static void on_another_device(void **state)
{
	struct scene apart = sliced, alone = sliced;
	double shares[CLASSES];
	size_t findings;
	struct diagnosis d;
	struct feed f;

	alone.part[1] = (struct part){ 0 };
	assert_int_equal(diagnose(play(&f, &alone), NULL, &d), 0);
	assert_int_equal(d.count, 1);
	memcpy(shares, d.processes[0].shares, sizeof(shares));
	findings = d.processes[0].findings_count;
	assert_true(fabs(shares[CLASS_OVERHEAD] - 430.0 / 800) < 0.01);
	assert_int_equal(d.processes[0].verdict, VERDICT_OVERHEAD_BOUND);
	assert_non_null(fired(&d.processes[0], "late_start"));
	diagnosis_free(&d);
	feed_stop(&f);
	apart.uuid[1] = "GPU-2";
	assert_int_equal(diagnose(play(&f, &apart), NULL, &d), 0);
	for (int i = 0; i < CLASSES; i++)
		assert_true(of_pid(&d, 100)->shares[i] == shares[i]);
	assert_true(shares[CLASS_SHARED] == 0);
	assert_int_equal(of_pid(&d, 100)->findings_count, findings);
	assert_null(fired(of_pid(&d, 100), "shared_gpu"));
	diagnosis_free(&d);
	feed_stop(&f);
}

/* Two ranks that were given the same device. */
static void of_one_job(void **state)
{
	struct scene c = sliced;
	double sum = 0;
	struct diagnosis d;
	struct feed f;

	c.ranks = true;
	assert_int_equal(diagnose(play(&f, &c), NULL, &d), 0);
	assert_int_equal(d.jobs_count, 1);
	assert_int_equal(d.jobs[0].verdict, VERDICT_GPU_BOUND);
	for (int i = 0; i < CLASSES; i++) {
		sum += d.jobs[0].shares[i];
		assert_true(fabs(d.jobs[0].shares[i] - (d.processes[0].shares[i] +
							d.processes[1].shares[i]) / 2) < 1e-9);
	}
	assert_true(fabs(sum - 1) < 1e-9 && d.jobs[0].shares[CLASS_SHARED] > 0.5);
	diagnosis_free(&d);
	feed_stop(&f);
}

/* Every form says so, in words and beside the colour. */
static void printed(void **state)
{
	static const char *const must[] = {
		"53.8 %  shared ", "| 53.8 % | `shared` | GPU ran other processes' work |",
		"\"shared\":0.53", "waited for others 53.", "waited_for_others_ns",
		"color:var(--shared)\">&#9632;</span> shared", "GPU 0: other processes' work",
		"gpu-bound",
	};
	struct diagnosis d;
	char *text = NULL;
	struct feed f;
	size_t size;
	FILE *out;

	assert_int_equal(diagnose(play(&f, &sliced), NULL, &d), 0);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	diagnosis_text(&d, &(struct diag_look){ 0 }, out);
	diagnosis_json(&d, NULL, out);
	diagnosis_markdown(&d, out);
	assert_int_equal(diagnosis_html(&d, out), 0);
	fclose(out);
	for (size_t i = 0; i < sizeof(must) / sizeof(must[0]); i++)
		if (!strstr(text, must[i]))
			fail_msg("nothing says %s:\n%.6000s", must[i], text);
	free(text);
	diagnosis_free(&d);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_sliced), cmocka_unit_test(overhead_bound_anyway),
		cmocka_unit_test(explains_a_part), cmocka_unit_test(switched_back),
		cmocka_unit_test(own_streams), cmocka_unit_test(long_slices),
		cmocka_unit_test(on_another_device), cmocka_unit_test(of_one_job),
		cmocka_unit_test(printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
