// SPDX-License-Identifier: BSD-2-Clause
/* What is said of processes beside what the kernel knows: ranks, hosts of merged files. */
#include "model/internal.h"

#define LABELS_MAX (1u << 20) /* of a hostile file; a job has a handful a process */

int builder_label(struct session_builder *b, const struct record_label *r)
{
	struct session *s = b->s;
	char *key, *value;
	int err;

	if (s->labels_count == LABELS_MAX)
		return 0;
	err = GROW(s->labels, b->labels_cap, s->labels_count + 1);
	if (err)
		return err;
	key = strdup(r->key ? r->key : "");
	value = strdup(r->value ? r->value : "");
	if (!key || !value) {
		free(key);
		free(value);
		return -ENOMEM;
	}
	s->labels[s->labels_count++] =
		(struct session_label){ clamp_ts(r->ts), r->pid, NO_INDEX, key, value };
	return 0;
}

static int label_order(const void *pa, const void *pb)
{
	const struct session_label *a = pa, *b = pb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

void builder_labels(struct session_builder *b)
{
	struct session *s = b->s;

	for (size_t i = 0; i < s->labels_count; i++) {
		uint32_t epoch = epoch_at(b, s->labels[i].pid, s->labels[i].ts);

		if (epoch != NO_INDEX)
			s->labels[i].process = b->epochs[epoch].process;
	}
	if (s->labels_count)
		qsort(s->labels, s->labels_count, sizeof(*s->labels), label_order);
}

/* The first label of a process, or where it would be. */
static size_t first_of(const struct session *s, uint32_t process)
{
	size_t low = 0, high = s->labels_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->labels[middle].process < process)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *session_label(const struct session *s, uint32_t process, const char *key)
{
	const char *value = NULL;

	for (size_t i = first_of(s, process);
	     i < s->labels_count && s->labels[i].process == process; i++)
		if (!strcmp(s->labels[i].key, key))
			value = s->labels[i].value;
	return value;
}
