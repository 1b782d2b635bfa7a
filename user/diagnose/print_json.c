// SPDX-License-Identifier: BSD-2-Clause
/* For programs: a contract (docs/diagnosis.md, "JSON"). */
#include "diagnose/words.h"
#include "util/json.h"

static void shares(struct json *j, const double *share)
{
	json_key(j, "shares");
	json_begin_object(j);
	for (int i = 0; i < CLASSES; i++) {
		json_key(j, diag_class_words[i]);
		json_double(j, share[i], 6);
	}
	json_end_object(j);
}

static void steps(struct json *j, const struct diag_process *p)
{
	bool any = p->steps.count > 1;

	json_key(j, "step_ns");
	if (any)
		json_int(j, p->steps.length);
	else
		json_null(j);
	json_key(j, "steps");
	json_uint(j, steps_whole(&p->steps));
	json_key(j, "steps_confidence");
	json_double(j, p->steps.confidence, 3);
	json_key(j, "could_be_won_ns");
	if (p->won_ns < 0)
		json_null(j);
	else
		json_int(j, p->won_ns);
}

static void evidence(struct json *j, const struct diag_finding *f)
{
	json_key(j, "evidence");
	json_begin_object(j);
	for (size_t i = 0; i < f->evidence_count; i++) {
		const struct diag_evidence *e = &f->evidence[i];

		json_key(j, e->key);
		if (e->text)
			json_string(j, e->text);
		else if (e->value == (double)(int64_t)e->value)
			json_int(j, (int64_t)e->value);
		else
			json_double(j, e->value, 6);
	}
	json_end_object(j);
}

static void finding(struct json *j, const struct diag_finding *f)
{
	json_begin_object(j);
	json_key(j, "rule");
	json_string(j, f->rule->name);
	json_key(j, "title");
	json_string(j, f->rule->title);
	json_key(j, "severity");
	json_string(j, diag_severity_words[f->severity]);
	json_key(j, "share");
	if (f->share < 0)
		json_null(j);
	else
		json_double(j, f->share, 6);
	evidence(j, f);
	json_key(j, "advice");
	json_string(j, f->rule->advice);
	json_key(j, "refuted_by");
	json_string(j, f->rule->refuted_by);
	json_end_object(j);
}

static void process(struct json *j, const struct session *s, const struct diag_process *p)
{
	const struct session_process *about = &s->processes[p->process];

	json_begin_object(j);
	json_key(j, "pid");
	json_uint(j, about->pid);
	json_key(j, "command");
	json_string(j, about->cmdline && *about->cmdline ? about->cmdline : about->comm);
	json_key(j, "rank");
	json_string(j, p->rank);
	json_key(j, "verdict");
	json_string(j, diag_verdict_words[p->verdict]);
	json_key(j, "why_inconclusive");
	json_string(j, p->why_inconclusive);
	json_key(j, "confidence");
	json_double(j, p->confidence, 3);
	json_key(j, "basis");
	json_string(j, diag_basis_words[p->basis]);
	json_key(j, "window_ns");
	json_int(j, p->window_ns);
	shares(j, p->shares);
	steps(j, p);
	json_key(j, "findings");
	json_begin_array(j);
	for (size_t i = 0; i < p->findings_count; i++)
		finding(j, &p->findings[i]);
	json_end_array(j);
	json_key(j, "next");
	json_string(j, *p->next ? p->next : NULL);
	json_end_object(j);
}

/* Pids of a job's ranks, or of its stragglers only. */
static void pids(struct json *j, const struct diagnosis *d, uint32_t job, bool stragglers)
{
	json_key(j, stragglers ? "stragglers" : "pids");
	json_begin_array(j);
	for (size_t i = 0; i < d->count; i++)
		if (d->processes[i].job == job &&
		    (!stragglers || diag_straggles(&d->processes[i])))
			json_uint(j, d->s->processes[d->processes[i].process].pid);
	json_end_array(j);
}

static void jobs(struct json *j, const struct diagnosis *d)
{
	json_key(j, "jobs");
	json_begin_array(j);
	for (uint32_t i = 0; i < d->jobs_count; i++) {
		const struct diag_job *job = &d->jobs[i];

		json_begin_object(j);
		pids(j, d, i, false);
		json_key(j, "verdict");
		json_string(j, diag_verdict_words[job->verdict]);
		json_key(j, "basis");
		json_string(j, diag_basis_words[job->basis]);
		shares(j, job->shares);
		json_key(j, "compared");
		json_bool(j, job->compared);
		pids(j, d, i, true);
		json_end_object(j);
	}
	json_end_array(j);
}

void diagnosis_json(const struct diagnosis *d,
		    void (*quality)(const struct session *s, struct json *j), FILE *out)
{
	struct json j;

	json_init(&j, out);
	json_begin_object(&j);
	json_key(&j, "window_ns");
	json_int(&j, d->window_ns);
	json_key(&j, "processes");
	json_begin_array(&j);
	for (size_t i = 0; i < d->count; i++)
		process(&j, d->s, &d->processes[i]);
	json_end_array(&j);
	jobs(&j, d);
	if (quality) {
		json_key(&j, "quality");
		quality(d->s, &j);
	}
	json_end_object(&j);
	fputc('\n', out);
}
