/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the pages and those that write them. Internal to export/. */
#ifndef GBPF_EXPORT_PAGE_H
#define GBPF_EXPORT_PAGE_H

#include "export/openmetrics.h"
#include "export/series.h"

struct page {
	char *bytes;
	size_t size, cap;
	bool failed; /* out of memory: what was written is of no use */
};

/* Room for more bytes, which are then written there and added to size; NULL: none. */
char *page_room(struct page *p, size_t more);
void page_add(struct page *p, const char *bytes, size_t size);
void page_string(struct page *p, const char *s);
void page_free(struct page *p);

void page_write_text(struct page *p, const struct series *s, bool openmetrics);
void page_write_protobuf(struct page *p, const struct series *s);

/* A row of a scope: what a family has its values of. */
struct page_row {
	const struct series_set *set;
	const struct series_api *api;
	const struct series_gpu *gpu;
	const struct series *self;
	size_t at, api_at; /* of the set or GPU, and of the API within its set */
	bool begun;
};

/* The next row of a scope; zeroed at first. false: there is none left. */
bool page_next_row(const struct series *s, enum family_scope scope, struct page_row *row);
/* The value (of variant i) that w stands at; false: not known, or of another kind. */
bool page_value(const struct page_row *row, const struct family_walk *w, unsigned i, double *value);
bool page_count(const struct page_row *row, const struct family_walk *w, uint64_t *count);
const struct histogram *page_histogram(const struct page_row *row, const struct family_walk *w);

/* Labels api and kind; name is written into buf where need be. */
struct page_api {
	const char *name, *kind;
	char buf[128];
};
void page_api(const struct series_api *api, struct page_api *out);

/*
 * Calls that took up to bound seconds, of a histogram whose buckets count as what
 * stands for them (bucket_value).
 */
uint64_t page_classic(const struct histogram *h, double bound);

/*
 * Prometheus's native buckets, schema 3: bucket i holds what is over 2^((i-1)/8) and
 * up to 2^(i/8) seconds. What is below 64 ns is its zero bucket.
 * https://prometheus.io/docs/specs/native_histograms
 */
#define NATIVE_SCHEMA 3
#define NATIVE_MIN (-192) /* below the index of any duration */
#define NATIVE_BUCKETS (192 + 8 * 9)
#define NATIVE_ZERO_THRESHOLD 5.9604644775390625e-08 /* 2^-24 s, the bound of bucket -192 */

struct native {
	uint64_t zero, count[NATIVE_BUCKETS]; /* count[i]: of bucket NATIVE_MIN + i */
};
void native_from(const struct histogram *h, struct native *out);
int native_index(unsigned bucket); /* of one of ours but the first */

#endif
