/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gzip stream. What is to be quick is made by Intel's ISA-L where that is installed (four
 * times as fast as zlib, and not larger), else by zlib. ISA-L is loaded and not linked:
 * Debian ships no archive of it, and nothing depends on it. Internal to export/.
 */
#ifndef GBPF_EXPORT_GZIP_H
#define GBPF_EXPORT_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#define GZIP_ISAL "libisal.so.2"

struct gzip;

/*
 * What is compressed goes to the sink, which returns 0 or what gzip_put() is to return.
 * quick: for text that has much of itself in it, when time matters more than size. isal: the
 * library's name, NULL: GZIP_ISAL. 0 or -ENOMEM.
 */
int gzip_new(struct gzip **out, bool quick, const char *isal,
	     int (*sink)(void *ctx, const void *bytes, size_t size), void *ctx);
/* last: the stream ends with these. 0, or what the sink returned. */
int gzip_put(struct gzip *g, const void *bytes, size_t size, bool last);
bool gzip_is_isal(const struct gzip *g);
void gzip_free(struct gzip *g); /* NULL is accepted */

#endif
