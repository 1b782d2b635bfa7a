// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "diagnose/html.h"
#include "util/text.h"

#define SHOWN 12 /* rows */

struct entry {
	const char *name;
	int64_t ns;
	uint64_t count;
};

static int most_first(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	return a->ns > b->ns ? -1 : a->ns < b->ns;
}

static void table(const char *title, const char *what, struct entry *entries, size_t count,
		  FILE *out)
{
	char total[32], number[32], mean[32];
	int64_t all = 0;

	qsort(entries, count, sizeof(*entries), most_first);
	for (size_t i = 0; i < count; i++)
		all += entries[i].ns;
	if (!count || !entries[0].count)
		return;
	fprintf(out, "<table><caption>%s</caption><thead><tr><th scope=\"col\">%% listed</th>"
		     "<th scope=\"col\">total</th><th scope=\"col\">number</th>"
		     "<th scope=\"col\">mean</th><th class=\"l\" scope=\"col\">%s</th></tr></thead>"
		     "<tbody>\n", title, what);
	for (size_t i = 0; i < count && i < SHOWN && entries[i].count; i++) {
		const struct entry *e = &entries[i];

		fprintf(out, "<tr><td>%.1f %%</td><td>%s</td><td>%s</td><td>%s</td>"
			     "<td class=\"l\">", all ? 100.0 * (double)e->ns / (double)all : 0,
			text_duration(e->ns, total, sizeof(total)),
			text_count(e->count, number, sizeof(number)),
			text_duration(e->ns / (int64_t)e->count, mean, sizeof(mean)));
		html_text(e->name, out);
		fputs("</td></tr>\n", out);
	}
	fputs("</tbody></table>\n", out);
}

static int functions(const struct session *s, uint32_t process, FILE *out)
{
	struct entry *e = calloc(s->apis_count + 1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < s->apis_count; i++)
		e[i].name = s->apis[i].display;
	for (size_t i = 0; i < s->calls_count; i++) {
		const struct call *c = &s->calls[i];
		int64_t ns = call_self(s, c);

		if (s->threads[c->thread].process != process)
			continue;
		e[c->api].count++;
		e[c->api].ns += ns > 0 ? ns : 0;
	}
	table("Functions, by time of their own", "function", e, s->apis_count, out);
	free(e);
	return 0;
}

static int kernels(const struct session *s, uint32_t process, FILE *out)
{
	struct entry *e = calloc(s->kernels_count + 1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < s->kernels_count; i++)
		e[i].name = s->kernels[i].demangled;
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];

		if (s->streams[w->stream].process != process || w->earlier ||
		    w->kind != RECORD_WORK_KERNEL || w->kernel >= s->kernels_count)
			continue;
		e[w->kernel].count++;
		e[w->kernel].ns += w->end - w->begin;
	}
	table("Kernels, by their time on the GPU", "kernel", e, s->kernels_count, out);
	free(e);
	return 0;
}

int html_tables(const struct session *s, uint32_t process, FILE *out)
{
	int err = functions(s, process, out);

	return err ? err : kernels(s, process, out);
}
