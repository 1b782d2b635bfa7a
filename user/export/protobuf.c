/* SPDX-License-Identifier: BSD-2-Clause */
/* MetricFamily messages of io.prometheus.client, each after its length as a varint. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/page.h"
#include "metrics.pb-c.h"

#define BLOCK 65536
#define LABELS (SET_LABELS + 3) /* a set's, pid, api and kind; a GPU has five */

/* Memory for one family's messages, let go of as a whole. */
struct block {
	struct block *next;
	size_t used;
	_Alignas(16) unsigned char bytes[BLOCK];
};

struct protobuf {
	struct page *page;
	const struct series *series;
	struct block *blocks;
	Prom__Metric **metrics; /* of the family at hand */
	size_t count, cap;
};

/* size is far below BLOCK. NULL: out of memory, and the page has failed. */
static void *get(struct protobuf *pb, size_t size)
{
	struct block *b = pb->blocks;

	size = (size + 15) & ~(size_t)15;
	if (!b || b->used + size > BLOCK) {
		b = malloc(sizeof(*b));
		if (!b) {
			pb->page->failed = true;
			return NULL;
		}
		b->used = 0;
		b->next = pb->blocks;
		pb->blocks = b;
	}
	b->used += size;
	return b->bytes + b->used - size;
}

static void release(struct protobuf *pb)
{
	while (pb->blocks) {
		struct block *next = pb->blocks->next;

		free(pb->blocks);
		pb->blocks = next;
	}
}

static char *copied(struct protobuf *pb, const char *s)
{
	size_t size = strlen(s) + 1;
	char *to = get(pb, size);

	if (to)
		memcpy(to, s, size);
	return to;
}

static void add_label(struct protobuf *pb, Prom__Metric *m, const char *name, const char *value)
{
	Prom__Label *l;

	if (!*value || !(l = get(pb, sizeof(*l))))
		return;
	prom__label__init(l);
	l->name = (char *)(uintptr_t)name; /* packing only reads */
	l->value = (char *)(uintptr_t)value;
	m->label[m->n_label++] = l;
}

static void add_number(struct protobuf *pb, Prom__Metric *m, const char *name, uint32_t number)
{
	char text[16];
	char *value;

	snprintf(text, sizeof(text), "%" PRIu32, number);
	value = copied(pb, text);
	if (value)
		add_label(pb, m, name, value);
}

static void add_set(struct protobuf *pb, Prom__Metric *m, const struct page_row *row)
{
	for (int i = 0; i < SET_LABELS; i++)
		add_label(pb, m, set_label_name(i), row->set->labels.text[i]);
	if (row->set->labels.pid)
		add_number(pb, m, "pid", row->set->labels.pid);
}

static void add_api(struct protobuf *pb, Prom__Metric *m, const struct page_row *row)
{
	struct page_api api;
	char *name;

	page_api(row->api, &api);
	name = copied(pb, api.name);
	if (name)
		add_label(pb, m, "api", name);
	add_label(pb, m, "kind", api.kind);
}

static void add_info(struct protobuf *pb, Prom__Metric *m, const struct page_row *row)
{
	if (!row->gpu) {
		add_label(pb, m, "version", GBPF_VERSION);
		return;
	}
	add_number(pb, m, "index", row->gpu->index);
	add_label(pb, m, "name", row->gpu->name);
	add_label(pb, m, "pci", row->gpu->pci);
	add_label(pb, m, "mig_parent", row->gpu->mig_parent);
}

static bool remember(struct protobuf *pb, Prom__Metric *m)
{
	if (pb->count == pb->cap) {
		size_t cap = pb->cap ? pb->cap * 2 : 64;
		Prom__Metric **grown = realloc(pb->metrics, cap * sizeof(Prom__Metric *));

		if (!grown) {
			pb->page->failed = true;
			return false;
		}
		pb->metrics = grown;
		pb->cap = cap;
	}
	pb->metrics[pb->count++] = m;
	return true;
}

/* A metric of the family with the row's labels; NULL: out of memory. */
static Prom__Metric *metric(struct protobuf *pb, const struct family *f, const struct page_row *row)
{
	Prom__Metric *m = get(pb, sizeof(*m));
	Prom__Label **labels = get(pb, LABELS * sizeof(Prom__Label *));

	if (!m || !labels || !remember(pb, m))
		return NULL;
	prom__metric__init(m);
	m->label = labels;
	if (row->gpu)
		add_label(pb, m, "gpu", row->gpu->uuid);
	if (row->set)
		add_set(pb, m, row);
	if (row->api)
		add_api(pb, m, row);
	if (f->type == FAMILY_INFO)
		add_info(pb, m, row);
	return m;
}

static void add_values(struct protobuf *pb, const struct family_walk *w, const struct page_row *row)
{
	const struct family *f = w->family;

	for (unsigned i = 0; i < family_values(f); i++) {
		Prom__Metric *m;
		double value;

		if (!page_value(row, w, i, &value))
			continue;
		m = metric(pb, f, row);
		if (!m)
			return;
		if (f->label)
			add_label(pb, m, f->label, f->variant(i));
		if (f->type == FAMILY_COUNTER && (m->counter = get(pb, sizeof(*m->counter)))) {
			prom__counter__init(m->counter);
			m->counter->has_value = 1;
			m->counter->value = value;
		} else if (f->type != FAMILY_COUNTER && (m->gauge = get(pb, sizeof(*m->gauge)))) {
			prom__gauge__init(m->gauge);
			m->gauge->has_value = 1;
			m->gauge->value = value;
		}
	}
}

static void add_classic(struct protobuf *pb, Prom__Histogram *to, const struct family *f,
			const struct histogram *h)
{
	to->bucket = get(pb, FAMILY_CLASSIC * sizeof(Prom__Bucket *));
	for (int i = 0; to->bucket && i < FAMILY_CLASSIC; i++) {
		Prom__Bucket *b = get(pb, sizeof(*b));

		if (!b)
			return;
		prom__bucket__init(b);
		b->has_cumulative_count = b->has_upper_bound = 1;
		b->cumulative_count = page_classic(h, f->classic[i]);
		b->upper_bound = f->classic[i];
		to->bucket[to->n_bucket++] = b;
	}
}

/* Counts as differences from the one before; spans say which buckets they are of. */
static void add_native(struct protobuf *pb, Prom__Histogram *to, const struct native *n)
{
	int64_t before = 0;
	int next = 0; /* index after the last bucket; spans of indices begin at 0 */

	to->positive_delta = get(pb, NATIVE_BUCKETS * sizeof(int64_t));
	to->positive_span = get(pb, NATIVE_BUCKETS * sizeof(Prom__Span *));
	if (!to->positive_delta || !to->positive_span)
		return;
	for (int i = 0; i < NATIVE_BUCKETS; i++) {
		Prom__Span *span;
		int index = NATIVE_MIN + i;

		if (!n->count[i])
			continue;
		if (!to->n_positive_span || index != next) {
			span = get(pb, sizeof(*span));
			if (!span)
				return;
			prom__span__init(span);
			span->has_offset = span->has_length = 1;
			span->offset = index - next;
			to->positive_span[to->n_positive_span++] = span;
		}
		to->positive_span[to->n_positive_span - 1]->length++;
		to->positive_delta[to->n_positive_delta++] = (int64_t)n->count[i] - before;
		before = (int64_t)n->count[i];
		next = index + 1;
	}
}

static void add_histogram(struct protobuf *pb, const struct family *f, const struct page_row *row,
			  const struct histogram *h)
{
	Prom__Metric *m = metric(pb, f, row);
	Prom__Histogram *to = m ? get(pb, sizeof(*to)) : NULL;
	struct native n;

	if (!to)
		return;
	prom__histogram__init(to);
	m->histogram = to;
	native_from(h, &n);
	to->has_sample_count = to->has_sample_sum = 1;
	to->sample_count = h->count;
	to->sample_sum = (double)h->sum_ns * 1e-9;
	to->has_schema = to->has_zero_threshold = to->has_zero_count = 1;
	to->schema = NATIVE_SCHEMA;
	to->zero_threshold = NATIVE_ZERO_THRESHOLD;
	to->zero_count = n.zero;
	add_classic(pb, to, f, h);
	add_native(pb, to, &n);
}

static size_t varint(uint64_t v, char *to)
{
	size_t n = 0;

	while (v > 0x7f) {
		to[n++] = (char)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (char)v;
	return n;
}

static void pack(struct protobuf *pb, const struct family *f)
{
	static const Prom__Type types[] = {
		[FAMILY_COUNTER] = PROM__TYPE__COUNTER,
		[FAMILY_GAUGE] = PROM__TYPE__GAUGE,
		[FAMILY_HISTOGRAM] = PROM__TYPE__HISTOGRAM,
		[FAMILY_INFO] = PROM__TYPE__GAUGE,
	};
	Prom__Family family = PROM__FAMILY__INIT;
	char name[128], length[10], *to;
	size_t size;

	snprintf(name, sizeof(name), "%s%s", f->name, family_suffix(f));
	family.name = name;
	family.help = (char *)(uintptr_t)f->help;
	family.has_type = 1;
	family.type = types[f->type];
	if (f->unit[0])
		family.unit = (char *)(uintptr_t)f->unit;
	family.metric = pb->metrics;
	family.n_metric = pb->count;
	size = prom__family__get_packed_size(&family);
	page_add(pb->page, length, varint(size, length));
	to = page_room(pb->page, size);
	if (to)
		pb->page->size += prom__family__pack(&family, (uint8_t *)to);
}

void page_write_protobuf(struct page *p, const struct series *s)
{
	struct protobuf pb = { .page = p, .series = s };
	struct family_walk w = { 0 };

	while (!p->failed && family_walk(&w)) {
		struct page_row row = { 0 };

		pb.count = 0;
		while (!p->failed && page_next_row(s, w.family->scope, &row)) {
			const struct histogram *h = page_histogram(&row, &w);

			if (h)
				add_histogram(&pb, w.family, &row, h);
			else
				add_values(&pb, &w, &row);
		}
		if (!p->failed && pb.count)
			pack(&pb, w.family);
		release(&pb);
	}
	free(pb.metrics);
}
