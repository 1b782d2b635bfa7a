/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files we have looked at: what they are, which of their functions are
 * hooked, and why others are not. A real file is probed once, whatever names
 * and mounts lead to it.
 */
#ifndef GBPF_PROBE_IMAGES_H
#define GBPF_PROBE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probes.h"
#include "probe/selection.h"

enum image_kind { /* as in the file: record.h */
	IMAGE_NONE = 0, /* nothing of ours in it */
	IMAGE_DRIVER = 1,
	IMAGE_RUNTIME = 2,
	IMAGE_STATIC_RUNTIME = 3,
	IMAGE_NCCL = 4,
};

enum image_site_state { SITE_HOOKED = 1, SITE_ENTRY_ONLY = 2, SITE_NOT_HOOKED = 3 };

struct image_site {
	uint16_t api;	  /* catalogue id */
	uint8_t state;	  /* enum image_site_state */
	uint64_t offset;  /* in the file, where the probe is */
	const char *reason; /* static text; "" if hooked */
};

struct image {
	uint16_t slot; /* 0: not probed */
	enum image_kind kind;
	uint64_t dev, ino;
	int64_t mapped;	 /* first seen mapped, ns; 0: not seen being mapped */
	int64_t covered; /* probes in place since, ns */
	bool held;	 /* who mapped it was kept from calling it until then (hold.h) */
	char *path, *version;
	char build_id[65];
	bool told;	 /* the user knows of the trouble */
	const char *trouble; /* why nothing is hooked, static text; NULL if something is */
	struct image *same_as; /* the same real file, found under another identity */
	struct image_site *sites;
	size_t sites_count, hooked;
	struct probe_link *link;
};

struct images;

struct images_options {
	const struct selection *selection; /* must outlive the images */
	bool allow_slow;   /* hook what would be single-stepped, too */
	bool static_runtime; /* look into executables for embedded runtimes */
	bool dry;	   /* look, but attach nothing */
	bool few;	   /* of the selection, only what says where the time goes */
};

/* p may be NULL when dry. */
int images_new(struct images **out, struct probes *p, const struct images_options *o);
void images_free(struct images *m); /* NULL is accepted; detaches */

/*
 * Looks at the file behind fd (the caller's, before and after) and attaches if
 * it is one of ours and was not attached before. mapped is when it was mapped,
 * 0 if that was not seen. *out is the image, NULL if the file is none of ours.
 * Returns 1 if it is new, 0 if it was known or is none of ours, or -errno when
 * attaching failed (the image says so in trouble, too).
 */
int images_add(struct images *m, int fd, const char *path, int64_t mapped, struct image **out);

/* Known already by device and inode? Spares opening and reading. */
bool images_known(const struct images *m, uint64_t dev, uint64_t ino);

size_t images_count(const struct images *m);
struct image *images_get(const struct images *m, size_t i);

/* Detaches everything; the images stay to be read. */
void images_detach(struct images *m);

#endif
