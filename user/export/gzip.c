/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/gzip.h"

#include <dlfcn.h>
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define OUT (256 * 1024)
#define PIECE (1u << 30)      /* both libraries count with 32 bits */
#define GZIP_FORMAT (15 + 16) /* zlib's words for a 32 KiB window, and gzip's header */
#define LEVEL 6
#define QUICK_LEVEL 2
#define ISAL_LEVEL 2 /* 3 takes eight times as long and is not smaller: docs/measurements.md */
#define ISAL_LEVEL_BYTES ISAL_DEF_LVL2_DEFAULT
#define ISAL_SLACK 65536 /* a newer library's stream may be larger than the one in the header */

struct isal {
	void *handle;
	void (*init)(struct isal_zstream *s);
	int (*deflate)(struct isal_zstream *s);
	struct isal_zstream *stream; /* NULL: zlib does it */
	uint8_t *buffer;
};

struct gzip {
	int (*sink)(void *ctx, const void *bytes, size_t size);
	void *ctx;
	struct isal isal;
	z_stream zlib;
	bool zlib_on;
	uint8_t out[OUT];
};

static void isal_free(struct isal *i)
{
	free(i->stream);
	free(i->buffer);
	if (i->handle)
		dlclose(i->handle);
	*i = (struct isal){0};
}

static void isal_begin(struct isal *i)
{
	i->init(i->stream);
	i->stream->level = ISAL_LEVEL;
	i->stream->level_buf = i->buffer;
	i->stream->level_buf_size = ISAL_LEVEL_BYTES;
	i->stream->gzip_flag = IGZIP_GZIP;
}

/* Addresses of functions come out of dlsym() as void *, which ISO C does not convert. */
static bool load(void *handle, const char *name, void *field)
{
	void *symbol = dlsym(handle, name);

	memcpy(field, &symbol, sizeof(symbol));
	return symbol != NULL;
}

/* Its stream has no version that one could ask for: what it makes has to come back. */
static bool isal_works(struct isal *i)
{
	static const char text[] = "{\"ph\": \"X\", \"ph\": \"X\", \"ph\": \"X\", \"dur\": 1.250}";
	unsigned char packed[512], back[sizeof(text)] = {0};
	z_stream z = {0};
	int done;

	isal_begin(i);
	i->stream->next_in = (uint8_t *)(uintptr_t)text;
	i->stream->avail_in = sizeof(text);
	i->stream->next_out = packed;
	i->stream->avail_out = sizeof(packed);
	i->stream->end_of_stream = 1;
	if (i->deflate(i->stream) != COMP_OK || inflateInit2(&z, GZIP_FORMAT) != Z_OK)
		return false;
	z.next_in = packed;
	z.avail_in = (uInt)(sizeof(packed) - i->stream->avail_out);
	z.next_out = back;
	z.avail_out = sizeof(back);
	done = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return done == Z_STREAM_END && !z.avail_out && !memcmp(back, text, sizeof(text));
}

static void isal_new(struct isal *i, const char *library)
{
	i->handle = dlopen(library ? library : GZIP_ISAL, RTLD_NOW | RTLD_LOCAL);
	if (i->handle && load(i->handle, "isal_deflate_init", &i->init) &&
	    load(i->handle, "isal_deflate", &i->deflate)) {
		i->stream = calloc(1, sizeof(*i->stream) + ISAL_SLACK);
		i->buffer = malloc(ISAL_LEVEL_BYTES);
		if (i->stream && i->buffer && isal_works(i)) {
			isal_begin(i);
			return;
		}
	}
	isal_free(i);
}

int gzip_new(struct gzip **out, bool quick, const char *isal,
	     int (*sink)(void *ctx, const void *bytes, size_t size), void *ctx)
{
	struct gzip *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->sink = sink;
	g->ctx = ctx;
	if (quick)
		isal_new(&g->isal, isal);
	g->zlib_on = !g->isal.stream &&
		     deflateInit2(&g->zlib, quick ? QUICK_LEVEL : LEVEL, Z_DEFLATED, GZIP_FORMAT, 8,
				  Z_DEFAULT_STRATEGY) == Z_OK;
	if (!g->isal.stream && !g->zlib_on) {
		gzip_free(g);
		return -ENOMEM;
	}
	*out = g;
	return 0;
}

/* left: bytes of out that are not used. */
static int give(struct gzip *g, size_t left)
{
	return left < sizeof(g->out) ? g->sink(g->ctx, g->out, sizeof(g->out) - left) : 0;
}

static int isal_put(struct gzip *g, const void *bytes, size_t size, bool last)
{
	struct isal_zstream *s = g->isal.stream;
	int err;

	s->next_in = (uint8_t *)(uintptr_t)bytes;
	s->avail_in = (uint32_t)size;
	s->end_of_stream = last;
	do {
		s->next_out = g->out;
		s->avail_out = sizeof(g->out);
		if (g->isal.deflate(s) != COMP_OK)
			return -EIO;
		err = give(g, s->avail_out);
		if (err)
			return err;
	} while (!s->avail_out || s->avail_in);
	return 0;
}

static int zlib_put(struct gzip *g, const void *bytes, size_t size, bool last)
{
	int done, err;

	g->zlib.next_in = (unsigned char *)(uintptr_t)bytes;
	g->zlib.avail_in = (uInt)size;
	do {
		g->zlib.next_out = g->out;
		g->zlib.avail_out = sizeof(g->out);
		done = deflate(&g->zlib, last ? Z_FINISH : Z_NO_FLUSH);
		err = give(g, g->zlib.avail_out);
		if (err)
			return err;
	} while (last ? done == Z_OK : g->zlib.avail_in);
	return 0;
}

int gzip_put(struct gzip *g, const void *bytes, size_t size, bool last)
{
	const char *at = bytes;
	int err = 0;

	do {
		size_t piece = size > PIECE ? PIECE : size;
		bool end = last && piece == size;

		err = g->isal.stream ? isal_put(g, at, piece, end) : zlib_put(g, at, piece, end);
		at += piece;
		size -= piece;
	} while (!err && size);
	return err;
}

bool gzip_is_isal(const struct gzip *g)
{
	return g->isal.stream;
}

void gzip_free(struct gzip *g)
{
	if (!g)
		return;
	if (g->zlib_on)
		deflateEnd(&g->zlib);
	isal_free(&g->isal);
	free(g);
}
