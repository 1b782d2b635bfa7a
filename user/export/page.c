/* SPDX-License-Identifier: BSD-2-Clause */
/* What the writers of all formats share: rows, values and buckets. */
#include "export/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/catalogue.h"

char *page_room(struct page *p, size_t more)
{
	size_t cap = p->cap ? p->cap : 512;
	char *grown;

	if (p->failed)
		return NULL;
	if (more <= p->cap - p->size)
		return p->bytes + p->size;
	while (cap < p->size + more)
		cap *= 2;
	grown = realloc(p->bytes, cap);
	if (!grown) {
		p->failed = true;
		return NULL;
	}
	p->bytes = grown;
	p->cap = cap;
	return p->bytes + p->size;
}

void page_add(struct page *p, const char *bytes, size_t size)
{
	char *to = page_room(p, size);

	if (to && size) {
		memcpy(to, bytes, size);
		p->size += size;
	}
}

void page_string(struct page *p, const char *s)
{
	page_add(p, s, strlen(s));
}

void page_free(struct page *p)
{
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

static bool next_api(const struct series *s, struct page_row *row)
{
	if (row->begun)
		row->api_at++;
	while (row->at < s->sets_count && row->api_at >= s->sets[row->at]->apis_count) {
		row->at++;
		row->api_at = 0;
	}
	if (row->at >= s->sets_count)
		return false;
	row->set = s->sets[row->at];
	row->api = &row->set->apis[row->api_at];
	return true;
}

bool page_next_row(const struct series *s, enum family_scope scope, struct page_row *row)
{
	bool found;

	if (scope == SCOPE_API) {
		found = next_api(s, row);
	} else {
		row->at += row->begun;
		found = scope == SCOPE_SELF ? s->any && !row->at :
			row->at < (scope == SCOPE_PROCESS ? s->sets_count : s->gpus_count);
		if (found && scope == SCOPE_PROCESS)
			row->set = s->sets[row->at];
		else if (found && scope == SCOPE_GPU)
			row->gpu = &s->gpus[row->at];
	}
	row->self = s;
	row->begun = true;
	return found;
}

bool page_value(const struct page_row *row, const struct family_walk *w, unsigned i, double *value)
{
	const struct series_values *v = w->family->scope == SCOPE_PROCESS ? &row->set->gauges :
					w->family->scope == SCOPE_GPU	  ? &row->gpu->gauges :
									    &row->self->self;
	uint64_t count;

	if (w->family->type == FAMILY_INFO) {
		*value = 1;
		return true;
	}
	if (page_count(row, w, &count)) {
		*value = (double)count * (w->family->scale != 0 ? w->family->scale : 1);
		return count || !w->family->sparse;
	}
	if (!w->family->gauge || !v->from[w->slot + i])
		return false;
	*value = v->value[w->slot + i];
	return true;
}

bool page_count(const struct page_row *row, const struct family_walk *w, uint64_t *count)
{
	if (!w->family->count)
		return false;
	if (w->family->scope == SCOPE_API)
		*count = row->api->count[w->slot];
	else
		*count = w->family->scope == SCOPE_PROCESS ? row->set->count[w->slot] :
							     row->self->self_count[w->slot];
	return true;
}

const struct histogram *page_histogram(const struct page_row *row, const struct family_walk *w)
{
	return w->family->histogram ? &row->set->histogram[w->slot] : NULL;
}

void page_api(const struct series_api *api, struct page_api *out)
{
	const struct api *known = catalogue_get(api->api);

	out->name = known ? catalogue_display(known->name, out->buf, sizeof(out->buf)) : "other";
	out->kind = known ? api_kind_name(known->kind) : "other";
}

uint64_t page_classic(const struct histogram *h, double bound)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < GBPF_BUCKETS && (double)bucket_value(i) <= bound * 1e9; i++)
		count += h->bucket[i];
	return count;
}

int native_index(unsigned bucket)
{
	return (int)ceil(8 * log2((double)bucket_value(bucket) * 1e-9));
}

void native_from(const struct histogram *h, struct native *out)
{
	memset(out, 0, sizeof(*out));
	out->zero = h->bucket[0];
	for (unsigned i = 1; i < GBPF_BUCKETS; i++)
		if (h->bucket[i])
			out->count[native_index(i) - NATIVE_MIN] += h->bucket[i];
}
