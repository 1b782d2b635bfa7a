/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot of our own, which stays when the monitor's goes. */
#ifndef GBPF_TOP_COPY_H
#define GBPF_TOP_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/snapshot.h"

#define COPY_BYTES (40u << 20)	/* at most; details of further processes are left out */
#define COPY_NAME 2048		/* bytes of a kernel's name or a command line that are kept */

struct copy;

struct copy *copy_new(void); /* NULL: out of memory */
void copy_free(struct copy *c); /* NULL is accepted */

/* Forgets what it held. -ENOMEM: some or all details are missing. */
int copy_take(struct copy *c, const struct snapshot *s);

/*
 * What it holds, valid until the next copy_take(). Pointers to histograms in it
 * are NULL; they are packed and come from copy_histogram(). NULL: nothing yet.
 */
const struct snapshot *copy_snapshot(const struct copy *c);

/* Of an API of a process, both of this copy. False: there is none. */
bool copy_histogram(const struct copy *c, const struct snapshot_process *p,
		    const struct snapshot_api *api, bool ever, struct histogram *out);

#endif
