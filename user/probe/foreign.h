/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does anybody but the sidecar begin to use CUPTI in a process? Probes on the functions of
 * libcupti with which that begins.
 */
#ifndef GBPF_PROBE_FOREIGN_H
#define GBPF_PROBE_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

#include "probe/probes.h"

struct foreign;

struct foreign_range {
	uint64_t begin, end; /* virtual addresses in the process */
};

#define FOREIGN_RANGES 6

struct foreign_call {
	int64_t ts; /* ns */
	uint32_t pid, tid;
	const char *function; /* static text */
};

/* p must outlive it. 0 or -errno. */
int foreign_new(struct foreign **out, struct probes *p);
void foreign_free(struct foreign *f); /* NULL is accepted */
/*
 * Puts probes on the libcupti behind fd (the caller's), once. -ENOENT: it has no functions
 * to watch; -EMFILE: of too many files; or -errno.
 */
int foreign_file(struct foreign *f, int fd);
/*
 * Tells from here on of calls in this process that come from elsewhere than these ranges: the
 * sidecar's code, and libcupti's own. 0, -E2BIG (more than FOREIGN_RANGES), or -errno.
 */
int foreign_watch(struct foreign *f, uint32_t pid, const struct foreign_range *ranges,
		  size_t count);
void foreign_forget(struct foreign *f, uint32_t pid);
int foreign_fd(const struct foreign *f); /* readable when somebody called */
/* Hands over what was called; returns what each returned if not 0, or 0. */
int foreign_consume(struct foreign *f, int (*each)(const struct foreign_call *c, void *ctx),
		    void *ctx);

#endif
