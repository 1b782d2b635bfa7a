/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

bool family_walk(struct family_walk *w)
{
	const struct family *f = w->family;
	unsigned how;

	if (f) {
		how = f->gauge ? 0 : f->count ? 1 : 2;
		w->used[f->scope][how] += family_values(f);
	}
	f = w->family = family_get(w->next++);
	if (!f)
		return false;
	how = f->gauge ? 0 : f->count ? 1 : 2;
	w->slot = w->used[f->scope][how];
	return true;
}

/* C0, DEL and C1, which no label has a use for. */
static bool is_control(const unsigned char *c, size_t length)
{
	return *c < 0x20 || *c == 0x7f || (length == 2 && *c == 0xc2 && c[1] < 0xa0);
}

void series_label(char *to, const char *src, size_t size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t left = strnlen(src, size), used = 0;

	while (left) {
		size_t length = text_utf8_length(src, left);
		size_t skip = length ? length : 1;
		const char *from = src;

		if (!length || is_control((const unsigned char *)src, length)) {
			from = replacement;
			length = sizeof(replacement) - 1;
		}
		if (used + length >= SERIES_LABEL)
			break;
		memcpy(to + used, from, length);
		used += length;
		src += skip;
		left -= skip;
	}
	to[used] = '\0';
}

void series_labels_of(struct series_labels *to, const struct snapshot_process *p, bool with_pid)
{
	const struct labels *l = &p->labels;

	series_label(to->text[LABEL_COMM], p->comm, sizeof(p->comm));
	series_label(to->text[LABEL_CONTAINER], l->container, sizeof(l->container));
	series_label(to->text[LABEL_POD], l->pod, sizeof(l->pod));
	series_label(to->text[LABEL_NAMESPACE], l->namespace, sizeof(l->namespace));
	series_label(to->text[LABEL_SLURM_JOB], l->slurm_job, sizeof(l->slurm_job));
	series_label(to->text[LABEL_RANK], l->rank, sizeof(l->rank));
	series_label(to->text[LABEL_GPU], p->gpu_uuid, sizeof(p->gpu_uuid));
	to->pid = with_pid ? p->pid : 0;
}

int series_labels_compare(const struct series_labels *a, const struct series_labels *b)
{
	for (int i = 0; i < SET_LABELS; i++) {
		int order = strcmp(a->text[i], b->text[i]);

		if (order)
			return order;
	}
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

bool series_find(const struct series *s, const struct series_labels *labels, size_t *at)
{
	size_t low = 0, high = s->sets_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = series_labels_compare(&s->sets[middle]->labels, labels);

		if (!order) {
			*at = middle;
			return true;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*at = low;
	return false;
}

static void combine(struct series_values *v, unsigned slot, enum family_combine how, double value)
{
	double *to = &v->value[slot];
	double from = ++v->from[slot];

	if (from == 1)
		*to = value;
	else if (how == COMBINE_SUM)
		*to += value;
	else if (how == COMBINE_MEAN)
		*to += (value - *to) / from;
	else if (how == COMBINE_MAX ? value > *to : value < *to)
		*to = value;
}

void series_gauges(struct series_values *v, enum family_scope scope,
		   const struct family_source *from)
{
	struct family_walk w = { 0 };

	while (family_walk(&w)) {
		const struct family *f = w.family;
		double value;

		if (f->scope != scope || !f->gauge)
			continue;
		for (unsigned i = 0; i < family_values(f); i++)
			if (f->gauge(from, i, &value))
				combine(v, w.slot + i, f->combine, value);
	}
}

int series_copy(const struct series *from, struct series *to)
{
	*to = *from;
	to->sets_count = to->gpus_count = 0;
	to->gpus = malloc((from->gpus_count + 1) * sizeof(*to->gpus));
	to->sets = malloc((from->sets_count + 1) * sizeof(struct series_set *));
	if (!to->gpus || !to->sets) {
		series_free(to);
		return -ENOMEM;
	}
	if (from->gpus_count)
		memcpy(to->gpus, from->gpus, from->gpus_count * sizeof(*to->gpus));
	to->gpus_count = from->gpus_count;
	for (size_t i = 0; i < from->sets_count; i++) {
		struct series_set *copy = malloc(sizeof(*copy));

		if (!copy) {
			series_free(to);
			return -ENOMEM;
		}
		*copy = *from->sets[i];
		to->sets[to->sets_count++] = copy;
	}
	return 0;
}

void series_free(struct series *s)
{
	for (size_t i = 0; i < s->sets_count; i++)
		free(s->sets[i]);
	free(s->sets);
	free(s->gpus);
	s->sets = NULL;
	s->gpus = NULL;
	s->sets_count = s->gpus_count = 0;
}
