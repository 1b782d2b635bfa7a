// SPDX-License-Identifier: BSD-2-Clause
/* For people, on a terminal. */
#include <string.h>

#include "diagnose/words.h"
#include "util/term.h"
#include "util/text.h"
#include "util/wrap.h"

#define BAR 30 /* columns of a whole window */

struct printing {
	const struct diagnosis *d;
	const struct diag_look *look;
	FILE *out;
};

static unsigned width_of(const struct printing *p)
{
	return p->look->width ? p->look->width : 80;
}

static const char *style(const struct printing *p, enum term_style s)
{
	return term_style(p->look->colour, s);
}

static void shares(const struct printing *p, const struct diag_process *v)
{
	int order[CLASSES], n = shares_order(v, order);

	for (int i = 0; i < n; i++) {
		double share = v->shares[order[i]];
		int bar = (int)(share * BAR + 0.5);

		fprintf(p->out, "  %5.1f %%  %-16s", 100 * share, diag_class_words[order[i]]);
		fprintf(p->out, "%s%.*s%s%*s  %s\n", style(p, TERM_BOLD), bar,
			"##############################", style(p, TERM_PLAIN), BAR - bar, "",
			class_words((enum diag_class)order[i], v->basis));
	}
}

static void finding(const struct printing *p, const struct diag_finding *f)
{
	static const enum term_style styles[] = { TERM_DIM, TERM_YELLOW, TERM_RED };
	char words[WORDS_SIZE];

	fprintf(p->out, "\n  %s%s%s: %s", style(p, styles[f->severity]),
		diag_severity_words[f->severity], style(p, TERM_PLAIN), f->rule->title);
	if (f->share >= 0.0005)
		fprintf(p->out, " (%.1f %% of the window)", 100 * f->share);
	fputs("\n    ", p->out);
	for (size_t i = 0; i < f->evidence_count; i++)
		fprintf(p->out, "%s%s", i ? ", " : "",
			evidence_words(&f->evidence[i], words, sizeof(words)));
	fprintf(p->out, "  [%s]\n    ", f->rule->name);
	wrap_print(p->out, f->rule->advice, 4, 4, width_of(p));
}

static void steps(const struct printing *p, const struct diag_process *v)
{
	char words[96], won[32];

	if (v->steps.count > 1) {
		fprintf(p->out, "  %s", steps_words(&v->steps, words, sizeof(words)));
		if (v->won_ns > 0)
			fprintf(p->out, "; at most %s of each could be won",
				text_duration(v->won_ns, won, sizeof(won)));
		fputs("\n", p->out);
	} else {
		fputs("  no steps were found\n", p->out);
	}
}

static void process(const struct printing *p, const struct diag_process *v)
{
	char name[WORDS_SIZE], verdict[64], window[32];

	fprintf(p->out, "%s%s%s: %s%s%s", style(p, TERM_BOLD),
		process_words(p->d->s, v->process, name, sizeof(name)), style(p, TERM_PLAIN),
		style(p, TERM_BOLD), diag_verdict_text(v, verdict, sizeof(verdict)),
		style(p, TERM_PLAIN));
	if (v->verdict == VERDICT_INCONCLUSIVE)
		fprintf(p->out, ": %s\n", v->why_inconclusive);
	else
		fprintf(p->out, " (confidence %.0f %%)\n", 100 * v->confidence);
	fprintf(p->out, "  of %s, judged by %s:\n",
		text_duration(v->window_ns, window, sizeof(window)),
		v->basis == BASIS_CPU_GPU ? "what the GPU did" :
		v->basis == BASIS_CPU_NVML ? "the CPU's calls and NVML; --gpu-time would show it" :
					     "the CPU's calls alone; --gpu-time would show it");
	shares(p, v);
	steps(p, v);
	for (size_t i = 0; i < v->findings_count; i++)
		finding(p, &v->findings[i]);
	if (*v->next)
		fprintf(p->out, "\n  next: %s\n", v->next);
}

static void job(const struct printing *p, uint32_t k)
{
	const struct diag_job *j = &p->d->jobs[k];
	char verdict[64], words[WORDS_SIZE];

	fprintf(p->out, "%sjob of %zu ranks%s: %s%s%s\n", style(p, TERM_BOLD), j->ranks,
		style(p, TERM_PLAIN), style(p, TERM_BOLD),
		diag_job_text(j, verdict, sizeof(verdict)), style(p, TERM_PLAIN));
	for (size_t i = 0; i < p->d->count; i++) {
		const struct diag_process *v = &p->d->processes[i];

		if (v->job == k && diag_straggles(v))
			fprintf(p->out, "  %s\n", straggler_words(p->d->s, v, words,
								 sizeof(words)));
	}
	if (!j->stragglers)
		fprintf(p->out, "  %s\n", no_straggler_words(j));
	fputc('\n', p->out);
}

void diagnosis_text(const struct diagnosis *d, const struct diag_look *look, FILE *out)
{
	struct printing p = { d, look, out };

	if (!d->count)
		fputs("no process of this recording made a CUDA call\n", out);
	for (uint32_t i = 0; i < d->jobs_count; i++)
		job(&p, i);
	for (size_t i = 0; i < d->count; i++) {
		if (i)
			fputc('\n', out);
		process(&p, &d->processes[i]);
	}
}

/* A straggler is what explains the others' verdicts. */
static void brief_jobs(const struct diagnosis *d, FILE *out)
{
	char words[WORDS_SIZE];

	for (size_t i = 0; i < d->count; i++)
		if (diag_straggles(&d->processes[i]))
			fprintf(out, "Straggler          %s\n",
				straggler_words(d->s, &d->processes[i], words, sizeof(words)));
}

#define BRIEF 4 /* processes */
void diagnosis_brief(const struct diagnosis *d, FILE *out)
{
	brief_jobs(d, out);
	for (size_t i = 0; i < d->count && i < BRIEF; i++) {
		const struct diag_process *v = &d->processes[i];
		char name[WORDS_SIZE], verdict[64];
		int order[CLASSES], n = shares_order(v, order);

		fprintf(out, "Verdict            %s: %s",
			process_words(d->s, v->process, name, sizeof(name)),
			diag_verdict_text(v, verdict, sizeof(verdict)));
		if (v->verdict == VERDICT_INCONCLUSIVE)
			fprintf(out, ": %s\n", v->why_inconclusive);
		else if (n)
			fprintf(out, ": %.0f %% %s\n", 100 * v->shares[order[0]],
				class_words((enum diag_class)order[0], v->basis));
		else
			fputc('\n', out);
	}
	if (d->count > BRIEF)
		fprintf(out, "                   and of %zu processes more: gbpf diagnose\n",
			d->count - BRIEF);
}
