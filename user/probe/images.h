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

#include "probe/catalogue.h"
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
	bool hot;	    /* hooked in windows only (image_links.c) */
	bool need;	    /* would have to be: for whoever plans */
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
	/* with options.windows: */
	int fd;			 /* the file, to attach again; -1: not kept */
	uint8_t parity;		 /* of link's cookies, GBPF_COOKIE_PARITY */
	uint64_t always_flags;	 /* of link's cookies */
	struct probe_link *window; /* of the hot sites, while it is open */
};

struct images;

struct images_options {
	const struct selection *selection; /* must outlive the images */
	bool allow_slow;   /* hook what would be single-stepped, too */
	bool static_runtime; /* look into executables for embedded runtimes */
	bool dry;	   /* look, but attach nothing */
	bool few;	   /* of the selection, only what says where the time goes */
	bool windows;	   /* for programs that count: sites can be attached in windows */
	bool (*hot)(const struct api *api); /* which begin so; windows only */
	/* Or all but these are hot, by catalogue id; their cookies have these bits besides. */
	const uint8_t *always;
	uint64_t always_flags;
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

/* ---- image_links.c: what is attached always, and what in windows ---- */

/*
 * Attaches to the sites whose hot flag is not set, besides the link that does so
 * now, which comes back in *old, to be freed when the new one counts (the
 * caller's turn: its cookies have the other parity, i->parity). NULL in *old, or
 * in i->link, where there is none. -errno: all is as it was.
 */
int image_replan(struct image *i, struct probes *p, struct probe_link **old);
/* Attaches to the hot sites, in i->window. -EALREADY: it is open; -ENOENT: no site is hot. */
int image_window_open(struct image *i, struct probes *p);
/* The window's link, to be freed, by somebody who may wait: the image has none any more. */
struct probe_link *image_window_take(struct image *i);

#endif
