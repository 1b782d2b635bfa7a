// SPDX-License-Identifier: BSD-2-Clause
/* What the summary says of the GPUs' own time. */
#include <inttypes.h>
#include <stdlib.h>

#include "model/gpu.h"
#include "report/row.h"
#include "util/text.h"

/* Of one physical device, or of all together. */
struct balance {
	int64_t watched, busy, gaps[GAP_CLASSES];
};

static int balance_of(const struct session *s, uint32_t physical, struct balance *b)
{
	struct spans covered = { 0 }, busy = { 0 };
	struct gap *gaps = NULL;
	size_t count = 0;
	int err = device_covered(s, physical, &covered);

	*b = (struct balance){ 0 };
	if (!err)
		err = device_busy(s, physical, WORK_CLASS_ALL, &busy);
	if (!err)
		err = device_gaps(s, physical, &gaps, &count);
	for (size_t i = 0; i < covered.count && !err; i++) {
		b->watched += covered.items[i].end - covered.items[i].begin;
		b->busy += spans_within(&busy, covered.items[i].begin, covered.items[i].end);
	}
	for (size_t i = 0; i < count; i++)
		b->gaps[gaps[i].class] += gaps[i].end - gaps[i].begin;
	free(gaps);
	spans_free(&covered);
	spans_free(&busy);
	return err;
}

static unsigned largest(const struct balance *b)
{
	unsigned best = 0;

	for (unsigned i = 1; i < GAP_CLASSES; i++)
		if (b->gaps[i] > b->gaps[best])
			best = i;
	return best;
}

static void add(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

/* All devices together; each of them counts by the time that it was watched. */
int gpu_summary_build(struct report_ctx *c, struct row *r)
{
	const struct session *s = c->s;
	struct balance all = { 0 }, one;
	int err = 0;

	for (uint32_t i = 0; i < s->devices_count && i < MOST_DEVICES && !err; i++) {
		if (s->devices[i].physical != i)
			continue;
		err = balance_of(s, i, &one);
		add(&all.watched, one.watched);
		add(&all.busy, one.busy);
		for (unsigned g = 0; g < GAP_CLASSES; g++)
			add(&all.gaps[g], one.gaps[g]);
	}
	if (err || !all.watched)
		return err;
	r->gpu_watched = all.watched;
	r->gpu_busy_share = share(all.busy, all.watched);
	if (all.gaps[largest(&all)]) {
		r->gap = gap_class_words[largest(&all)];
		r->gap_share = share(all.gaps[largest(&all)], all.watched);
	}
	return 0;
}

static void print_balance(const struct session *s, uint32_t device, const struct balance *b,
			  FILE *out)
{
	char name[128], watched[32];
	int64_t index = gpu_index(s, device);

	fputs(text_printable(*s->devices[device].about.name ? s->devices[device].about.name
							     : "a device",
			     name, sizeof(name), 40),
	      out);
	if (index != NA)
		fprintf(out, " (GPU %" PRId64 ")", index);
	fprintf(out, ": busy %.1f %% and idle %.1f %% of the %s in which it was recorded",
		100.0 * (double)b->busy / (double)b->watched,
		100.0 * (double)(b->watched - b->busy) / (double)b->watched,
		text_duration(b->watched, watched, sizeof(watched)));
	if (b->gaps[largest(b)])
		fprintf(out, "; %s alone %.1f %%", gap_class_words[largest(b)],
			100.0 * (double)b->gaps[largest(b)] / (double)b->watched);
	fputc('\n', out);
}

void gpu_summary_print(const struct report_ctx *c, FILE *out, const char *label_start,
		       const char *label_end)
{
	const struct session *s = c->s;
	struct balance b;
	bool any = false;

	for (uint32_t i = 0; i < s->devices_count && i < MOST_DEVICES; i++) {
		if (s->devices[i].physical != i || balance_of(s, i, &b) || !b.watched)
			continue;
		fprintf(out, "%s%-19s%s", label_start, "GPU time", label_end);
		print_balance(s, i, &b, out);
		any = true;
	}
	if (!any)
		fprintf(out,
			"%s%-19s%sn/a: at no time were all processes recorded that use a GPU\n",
			label_start, "GPU time", label_end);
}
