// SPDX-License-Identifier: BSD-2-Clause
/* One page that needs nothing else: to be mailed, printed and kept. */
#include <inttypes.h>
#include <string.h>

#include "diagnose/html.h"
#include "util/text.h"

static const char style[] =
	":root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--dim:#57606a;--line:#d0d7de;"
	"--gpu:#2f6f3e;--comm:#7a4fa3;--copy:#1f6f8b;--overhead:#b3402a;--sync:#a66a00;"
	"--starved:#8a2450;--back:#4b5a2a;--cold:#3b5ea8;--other:#6e7781;--shared:#6b7d00}"
	"@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#9198a1;"
	"--line:#3d444d;--gpu:#57ab5a;--comm:#b083f0;--copy:#39c5cf;--overhead:#f47067;"
	"--sync:#daaa3f;--starved:#e275ad;--back:#a0b060;--cold:#6cb6ff;--other:#9198a1;"
	"--shared:#d3e05c}}"
	"body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);"
	"max-width:60rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.25rem;"
	"border-top:1px solid var(--line);padding-top:1rem;margin-top:2rem}h3{font-size:1rem}"
	"table{border-collapse:collapse;width:100%;font-size:.9rem}caption{text-align:left;"
	"font-weight:600;padding:.5rem 0}th,td{padding:.2rem .6rem;border-bottom:1px solid "
	"var(--line);text-align:right;vertical-align:top}th.l,td.l{text-align:left;"
	"overflow-wrap:anywhere}.scroll{overflow-x:auto}.dim{color:var(--dim)}svg{width:100%;"
	"height:auto;display:block}svg text{fill:var(--fg);font:12px system-ui,sans-serif}"
	".finding{margin:.8rem 0;padding-left:.8rem;border-left:.3rem solid var(--line)}"
	".warning{border-color:var(--overhead)}.notice{border-color:var(--sync)}"
	"code{overflow-wrap:anywhere}a:focus,[tabindex]:focus{outline:2px solid var(--cold)}"
	"@media print{body{margin:0;max-width:none;font-size:11pt}h2{break-after:avoid}"
	".finding,figure{break-inside:avoid}}figure{margin:1rem 0}figcaption{font-weight:600;"
	"font-size:.9rem}";

void html_text(const char *text, FILE *out)
{
	char safe[4096];

	for (const char *c = text_printable(text, safe, sizeof(safe), 0); *c; c++) {
		switch (*c) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: fputc(*c, out);
		}
	}
}

static void finding(const struct diag_finding *f, FILE *out)
{
	char words[WORDS_SIZE];

	fprintf(out, "<div class=\"finding %s\"><h3>%s: ", diag_severity_words[f->severity],
		diag_severity_words[f->severity]);
	html_text(f->rule->title, out);
	if (f->share >= 0.0005)
		fprintf(out, " (%.1f %% of the window)", 100 * f->share);
	fputs("</h3><p>", out);
	for (size_t i = 0; i < f->evidence_count; i++) {
		fputs(i ? ", " : "", out);
		html_text(evidence_words(&f->evidence[i], words, sizeof(words)), out);
	}
	fprintf(out, " <span class=\"dim\">[%s]</span></p><p>", f->rule->name);
	html_text(f->rule->advice, out);
	if (*f->rule->refuted_by) {
		fputs(" <span class=\"dim\">What would speak against it: ", out);
		html_text(f->rule->refuted_by, out);
		fputs("</span>", out);
	}
	fputs("</p></div>\n", out);
}

static void heading(const struct session *s, const struct diag_process *p, FILE *out)
{
	char name[WORDS_SIZE], verdict[64], window[32];

	fprintf(out, "<h2 id=\"p%" PRIu32 "\">", s->processes[p->process].pid);
	html_text(process_words(s, p->process, name, sizeof(name)), out);
	fprintf(out, ": %s</h2>\n<p>", diag_verdict_text(p, verdict, sizeof(verdict)));
	if (p->why_inconclusive)
		fprintf(out, "%s. ", p->why_inconclusive);
	fprintf(out, "Of %s, judged by %s; confidence %.0f %%.",
		text_duration(p->window_ns, window, sizeof(window)),
		p->basis == BASIS_CPU_GPU ? "what the GPU did" : "the CPU's calls",
		100 * p->confidence);
}

static void steps(const struct diag_process *p, FILE *out)
{
	char words[96], won[32];

	if (p->steps.count < 2) {
		fputs(" No steps were found.</p>\n", out);
		return;
	}
	fprintf(out, " %s.", steps_words(&p->steps, words, sizeof(words)));
	if (p->won_ns > 0)
		fprintf(out, " At most %s of each could be won.",
			text_duration(p->won_ns, won, sizeof(won)));
	fputs("</p>\n", out);
}

/* The step whose length is the median, and the longest. */
static int timelines(const struct session *s, const struct diag_process *p, FILE *out)
{
	const struct steps *v = &p->steps;
	size_t typical = 0, worst = 0;
	int err;

	if (v->count < 2)
		return 0;
	for (size_t i = 0; i + 1 < v->count; i++) {
		int64_t ns = steps_length(v, i);

		if (ns == v->length)
			typical = i;
		if (ns == v->longest)
			worst = i;
	}
	err = html_step(s, p, "A typical step", v->begins[typical], v->begins[typical + 1], out);
	if (!err && worst != typical)
		err = html_step(s, p, "The longest step", v->begins[worst], v->begins[worst + 1],
				out);
	return err;
}

static int process(const struct session *s, const struct diag_process *p, FILE *out)
{
	int err;

	heading(s, p, out);
	steps(p, out);
	html_shares(p, out);
	for (size_t i = 0; i < p->findings_count; i++)
		finding(&p->findings[i], out);
	err = timelines(s, p, out);
	if (!err)
		err = html_launches(s, p->process, out);
	if (!err)
		err = html_tables(s, p->process, out);
	html_clocks(s, p->process, out);
	if (*p->next) {
		fputs("<p>Next: <code>", out);
		html_text(p->next, out);
		fputs("</code></p>\n", out);
	}
	return err;
}

static void job(const struct diagnosis *d, uint32_t k, FILE *out)
{
	const struct diag_job *j = &d->jobs[k];
	char verdict[64], words[WORDS_SIZE];

	fprintf(out, "<h2>Job of %zu ranks: %s</h2>\n<ul>", j->ranks,
		diag_job_text(j, verdict, sizeof(verdict)));
	for (size_t i = 0; i < d->count; i++) {
		if (d->processes[i].job != k || !diag_straggles(&d->processes[i]))
			continue;
		fputs("<li>", out);
		html_text(straggler_words(d->s, &d->processes[i], words, sizeof(words)), out);
		fputs("</li>", out);
	}
	if (!j->stragglers)
		fprintf(out, "<li>%s</li>", no_straggler_words(j));
	fputs("</ul>\n", out);
}

int diagnosis_html(const struct diagnosis *d, FILE *out)
{
	char window[32];
	int err = 0;

	fprintf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
		     "<title>gbpf diagnosis</title><style>%s</style></head><body><main>\n"
		     "<h1>gbpf diagnosis</h1>\n<p>%s traced, %zu process%s, by gbpf %s.</p>\n",
		style, text_duration(d->window_ns, window, sizeof(window)), d->count,
		d->count == 1 ? "" : "es", GBPF_VERSION);
	if (!d->count)
		fputs("<p>No process of this recording made a CUDA call.</p>\n", out);
	for (uint32_t i = 0; i < d->jobs_count; i++)
		job(d, i, out);
	for (size_t i = 0; i < d->count && !err; i++)
		err = process(d->s, &d->processes[i], out);
	fputs("</main></body></html>\n", out);
	return err;
}
