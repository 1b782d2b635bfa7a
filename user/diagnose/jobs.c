// SPDX-License-Identifier: BSD-2-Clause
/* The verdict of several ranks together. */
#include "diagnose/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct diag_finding *diag_straggles(const struct diag_process *p)
{
	for (size_t i = 0; i < p->findings_count; i++)
		if (!strcmp(p->findings[i].rule->name, "straggler"))
			return &p->findings[i];
	return NULL;
}

static enum diag_verdict verdict_of_most(const struct diagnosis *d, uint32_t job, size_t ranks)
{
	size_t votes[VERDICT_INCONCLUSIVE + 1] = { 0 };

	for (size_t i = 0; i < d->count; i++)
		if (d->processes[i].job == job)
			votes[d->processes[i].verdict]++;
	for (int v = 0; v <= VERDICT_INCONCLUSIVE; v++)
		if (votes[v] * 2 > ranks)
			return (enum diag_verdict)v;
	return VERDICT_MIXED;
}

static void take_rank(struct diag_job *j, const struct diag_process *p, bool compared)
{
	j->basis = !j->ranks || p->basis < j->basis ? p->basis : j->basis;
	for (int i = 0; i < CLASSES; i++)
		j->shares[i] += p->shares[i];
	j->stragglers += diag_straggles(p) != NULL;
	j->compared = compared;
	j->ranks++;
}

int diag_jobs(const struct ranks *r, struct diagnosis *d)
{
	if (!r->jobs)
		return 0;
	d->jobs = calloc(r->jobs, sizeof(*d->jobs));
	if (!d->jobs)
		return -ENOMEM;
	d->jobs_count = r->jobs;
	for (size_t i = 0; i < d->count; i++) {
		const struct diag_process *p = &d->processes[i];

		if (p->job != UINT32_MAX)
			take_rank(&d->jobs[p->job], p, ranks_of(r, p->process)->compared);
	}
	for (uint32_t k = 0; k < r->jobs; k++) {
		struct diag_job *j = &d->jobs[k];

		for (int i = 0; i < CLASSES; i++)
			j->shares[i] /= (double)j->ranks;
		j->verdict = verdict_of_most(d, k, j->ranks);
	}
	return 0;
}
