/* SPDX-License-Identifier: BSD-2-Clause */
/* The state, its pages, and who may touch them when. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/page.h"

#define DEFAULT_SETS 500
#define DEFAULT_STALE_NS (300 * INT64_C(1000000000))

struct kept_page {
	struct metrics_page page; /* first: metrics_page_release() is handed this */
	atomic_int users;
};

struct metrics {
	/*
	 * The monitor's thread holds lock to count; a reader of pages only to copy, so
	 * that no page that is being written keeps the monitor from closing a window.
	 */
	pthread_mutex_t lock;
	struct series_state state;
	uint64_t generation; /* of state */
	pthread_mutex_t pages_lock; /* never taken while lock is held */
	uint64_t pages_generation;
	struct kept_page *pages[METRICS_FORMATS][2]; /* plain, compressed */
};

int metrics_new(struct metrics **out, const struct metrics_options *o)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->pages_lock, NULL);
	m->state.max_sets = o && o->max_sets ? o->max_sets : DEFAULT_SETS;
	m->state.stale_ns = o && o->stale_ns ? o->stale_ns : DEFAULT_STALE_NS;
	m->state.include_pid = o && o->include_pid;
	m->generation = 1;
	*out = m;
	return 0;
}

static void drop_pages(struct metrics *m)
{
	for (int format = 0; format < METRICS_FORMATS; format++)
		for (int gzip = 0; gzip < 2; gzip++) {
			struct kept_page *kept = m->pages[format][gzip];

			m->pages[format][gzip] = NULL;
			metrics_page_release(kept ? &kept->page : NULL);
		}
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	drop_pages(m);
	series_state_free(&m->state);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->pages_lock);
	free(m);
}

int metrics_update(struct metrics *m, const struct snapshot *s)
{
	int err;

	pthread_mutex_lock(&m->lock);
	err = series_update(&m->state, s);
	if (!err)
		m->generation++;
	pthread_mutex_unlock(&m->lock);
	/* what is old need not lie there until somebody asks for what is new */
	if (!err && !pthread_mutex_trylock(&m->pages_lock)) {
		drop_pages(m);
		pthread_mutex_unlock(&m->pages_lock);
	}
	return err;
}

static struct kept_page *keep(struct page *p)
{
	struct kept_page *kept = p->failed ? NULL : malloc(sizeof(*kept));
	char *trimmed;

	if (!kept) {
		page_free(p);
		return NULL;
	}
	trimmed = realloc(p->bytes, p->size + 1);
	if (trimmed)
		p->bytes = trimmed;
	kept->page.bytes = p->bytes;
	kept->page.size = p->size;
	atomic_init(&kept->users, 1);
	return kept;
}

void metrics_page_release(const struct metrics_page *page)
{
	struct kept_page *kept = (struct kept_page *)(uintptr_t)page;

	if (!kept || atomic_fetch_sub(&kept->users, 1) > 1)
		return;
	free((char *)(uintptr_t)kept->page.bytes);
	free(kept);
}

/* A gzip member (RFC 1952). Fast rather than small: pages are very repetitive anyway. */
static struct kept_page *compressed(const struct metrics_page *plain)
{
	struct page p = { .bytes = NULL };
	z_stream z = { .next_in = (Bytef *)(uintptr_t)plain->bytes };
	char *to;

	if (plain->size > UINT32_MAX / 2 ||
	    deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	z.avail_in = (uInt)plain->size;
	z.avail_out = (uInt)deflateBound(&z, plain->size);
	to = page_room(&p, z.avail_out);
	if (to) {
		z.next_out = (Bytef *)to;
		p.failed = deflate(&z, Z_FINISH) != Z_STREAM_END;
		p.size = z.total_out;
	}
	deflateEnd(&z);
	return keep(&p);
}

/* Under pages_lock: pages of the state as it is now. */
static struct kept_page *write_page(struct metrics *m, enum metrics_format format)
{
	struct page p = { .bytes = NULL };
	struct series now;
	uint64_t generation;
	int err;

	pthread_mutex_lock(&m->lock);
	generation = m->generation;
	err = series_copy(&m->state.now, &now);
	pthread_mutex_unlock(&m->lock);
	if (err)
		return NULL;
	if (m->pages_generation != generation)
		drop_pages(m);
	m->pages_generation = generation;
	if (format == METRICS_PROTOBUF)
		page_write_protobuf(&p, &now);
	else
		page_write_text(&p, &now, format == METRICS_OPENMETRICS);
	series_free(&now);
	return keep(&p);
}

static bool is_current(struct metrics *m)
{
	bool current;

	pthread_mutex_lock(&m->lock);
	current = m->pages_generation == m->generation;
	pthread_mutex_unlock(&m->lock);
	return current;
}

/* Under pages_lock. Of what is only made to be compressed nothing is kept. */
static struct kept_page *page_of(struct metrics *m, enum metrics_format format, bool gzip)
{
	struct kept_page **kept = m->pages[format], *plain;

	if (kept[gzip])
		return kept[gzip];
	plain = kept[0] ? kept[0] : write_page(m, format);
	if (!gzip || !plain)
		return kept[0] = plain;
	kept[1] = compressed(&plain->page);
	if (plain != kept[0])
		metrics_page_release(&plain->page);
	return kept[1];
}

int metrics_page(struct metrics *m, enum metrics_format format, bool gzip,
		 const struct metrics_page **out)
{
	struct kept_page *page;

	*out = NULL;
	pthread_mutex_lock(&m->pages_lock);
	if (!is_current(m))
		drop_pages(m);
	page = page_of(m, format, gzip);
	if (page) {
		atomic_fetch_add(&page->users, 1);
		*out = &page->page;
	}
	pthread_mutex_unlock(&m->pages_lock);
	return page ? 0 : -ENOMEM;
}
