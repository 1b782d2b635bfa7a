// SPDX-License-Identifier: BSD-2-Clause
/* For an issue, a chat or a log book. */
#include "diagnose/words.h"
#include "util/text.h"

/* Names of a target may hold what Markdown takes for its own. */
static void escaped(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '\\': case '`': case '*': case '_': case '{': case '}': case '[': case ']':
		case '<': case '>': case '#': case '|': case '!': case '~': case '&':
			fputc('\\', out);
			break;
		default: break;
		}
		fputc(*text, out);
	}
}

static void shares(const struct diag_process *p, FILE *out)
{
	int order[CLASSES], n = shares_order(p, order);

	fputs("| share | class | |\n|-:|-|-|\n", out);
	for (int i = 0; i < n; i++)
		fprintf(out, "| %.1f %% | `%s` | %s |\n", 100 * p->shares[order[i]],
			diag_class_words[order[i]],
			class_words((enum diag_class)order[i], p->basis));
	fputc('\n', out);
}

static void finding(const struct diag_finding *f, FILE *out)
{
	char words[WORDS_SIZE];

	fprintf(out, "- **%s** (%s", f->rule->title, diag_severity_words[f->severity]);
	if (f->share >= 0.0005)
		fprintf(out, ", %.1f %% of the window", 100 * f->share);
	fprintf(out, ", `%s`)", f->rule->name);
	for (size_t i = 0; i < f->evidence_count; i++) {
		fputs(i ? ", " : ": ", out);
		escaped(evidence_words(&f->evidence[i], words, sizeof(words)), out);
	}
	fprintf(out, ". %s\n", f->rule->advice);
}

static void process(const struct session *s, const struct diag_process *p, FILE *out)
{
	char name[WORDS_SIZE], verdict[64], ns[32], words[96];

	fputs("## ", out);
	escaped(process_words(s, p->process, name, sizeof(name)), out);
	fprintf(out, ": %s\n\n", diag_verdict_text(p, verdict, sizeof(verdict)));
	if (p->why_inconclusive)
		fprintf(out, "%s.\n\n", p->why_inconclusive);
	fprintf(out, "Of %s, basis `%s`, confidence %.0f %%.",
		text_duration(p->window_ns, ns, sizeof(ns)), diag_basis_words[p->basis],
		100 * p->confidence);
	if (p->steps.count > 1)
		fprintf(out, " %s.", steps_words(&p->steps, words, sizeof(words)));
	if (p->steps.count > 1 && p->won_ns > 0)
		fprintf(out, " At most %s of each could be won.",
			text_duration(p->won_ns, ns, sizeof(ns)));
	fputs("\n\n", out);
	shares(p, out);
	for (size_t i = 0; i < p->findings_count; i++)
		finding(&p->findings[i], out);
	if (*p->next)
		fprintf(out, "\nNext:\n\n    %s\n", p->next);
}

static void job(const struct diagnosis *d, uint32_t k, FILE *out)
{
	const struct diag_job *j = &d->jobs[k];
	char verdict[64], words[WORDS_SIZE];

	fprintf(out, "## Job of %zu ranks: %s\n\n", j->ranks,
		diag_job_text(j, verdict, sizeof(verdict)));
	for (size_t i = 0; i < d->count; i++) {
		if (d->processes[i].job != k || !diag_straggles(&d->processes[i]))
			continue;
		fputs("- ", out);
		escaped(straggler_words(d->s, &d->processes[i], words, sizeof(words)), out);
		fputc('\n', out);
	}
	if (!j->stragglers)
		fprintf(out, "- %s\n", no_straggler_words(j));
	fputc('\n', out);
}

void diagnosis_markdown(const struct diagnosis *d, FILE *out)
{
	if (!d->count)
		fputs("No process of this recording made a CUDA call.\n", out);
	for (uint32_t i = 0; i < d->jobs_count; i++)
		job(d, i, out);
	for (size_t i = 0; i < d->count; i++) {
		if (i)
			fputc('\n', out);
		process(d->s, &d->processes[i], out);
	}
}
