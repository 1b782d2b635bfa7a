/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip for text that repeats itself, in half of the time of zlib's fastest levels and of their
 * size: one earlier place is looked at, where the same four bytes were last. Any gzip reads it.
 */
#ifndef GBPF_UTIL_GZIP_H
#define GBPF_UTIL_GZIP_H

#include <stddef.h>

/* Takes what was compressed; 0 or -errno, which then comes back from all that follows. */
typedef int gzip_put(void *context, const void *bytes, size_t size);

struct gzip;

/* NULL: no memory. Nothing is put before the first 256 KiB or the end. */
struct gzip *gzip_new(gzip_put *put, void *context);
int gzip_write(struct gzip *z, const void *bytes, size_t size);
int gzip_end(struct gzip *z); /* of the file: once, and last */
void gzip_free(struct gzip *z);

#endif
