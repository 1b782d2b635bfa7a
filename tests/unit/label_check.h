/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of jobs, and whether a job is judged as it is labelled. */
#ifndef GBPF_TESTS_LABEL_CHECK_H
#define GBPF_TESTS_LABEL_CHECK_H

#include <math.h>

#include "labelled_jobs.h"

#include "diagnose/diagnose.h"

#define ANY (-1)

struct label {
	const char *name;
	void (*run)(struct job *j);
	int with_gpu, without; /* enum diag_verdict; ANY: not labelled */
	const char *fires[4], *must_not[6];
};

#define NEAR 0.03 /* of the window */

static inline const struct diag_finding *fired(const struct diag_process *p,
					       const char *rule)
{
	for (size_t i = 0; i < p->findings_count; i++)
		if (!strcmp(p->findings[i].rule->name, rule))
			return &p->findings[i];
	return NULL;
}

static inline bool known_rule(const char *name)
{
	const struct diag_rule *r;

	for (size_t i = 0; (r = diag_rule(i)); i++)
		if (!strcmp(r->name, name))
			return true;
	return false;
}

/* Says on stderr what is not as labelled; how many things are not. */
static inline int compare(const struct label *l, bool gpu, const struct job *j,
			  const struct diag_process *p)
{
	double busy = p->shares[CLASS_GPU] + p->shares[CLASS_COMM] + p->shares[CLASS_COPY];
	int want = gpu ? l->with_gpu : l->without, wrong = 0;
	double sum = 0;

	for (int i = 0; i < CLASSES; i++)
		sum += p->shares[i];
	if (fabs(sum - 1) > 1e-6 && ++wrong)
		print_error("%s: shares add up to %f\n", l->name, sum);
	if (want != ANY && want != (int)p->verdict && ++wrong)
		print_error("%s%s: %s, not %s\n", l->name, gpu ? " with GPU time" : "",
			    diag_verdict_words[p->verdict], diag_verdict_words[want]);
	if (gpu && fabs(busy - job_busy(j)) > NEAR && ++wrong)
		print_error("%s: busy %.3f, not %.3f\n", l->name, busy, job_busy(j));
	for (size_t i = 0; gpu && i < 4 && l->fires[i]; i++) {
		assert_true(known_rule(l->fires[i]));
		if (!fired(p, l->fires[i]) && ++wrong)
			print_error("%s: %s did not fire\n", l->name, l->fires[i]);
	}
	for (size_t i = 0; i < 6 && l->must_not[i]; i++) {
		assert_true(known_rule(l->must_not[i]));
		if (gpu && fired(p, l->must_not[i]) && ++wrong)
			print_error("%s: %s fired\n", l->name, l->must_not[i]);
	}
	return wrong;
}

/* Makes the job, with GPU time or without, and judges it; how many things are not as labelled. */
static inline int run(const struct label *l, bool gpu)
{
	const struct session *s;
	struct diagnosis d;
	struct job j;
	int wrong;

	job_start(&j, gpu);
	l->run(&j);
	s = job_finish(&j);
	assert_int_equal(diagnose(s, NULL, &d), 0);
	assert_int_equal(d.count, 1);
	assert_true(gpu || d.processes[0].basis == BASIS_CPU);
	assert_true(!gpu || d.processes[0].basis == BASIS_CPU_GPU);
	wrong = compare(l, gpu, &j, &d.processes[0]);
	diagnosis_free(&d);
	feed_stop(&j.f);
	return wrong;
}

#endif
