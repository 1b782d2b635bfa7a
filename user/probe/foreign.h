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

struct foreign_call {
	int64_t ts; /* ns */
	uint32_t pid, tid;
	const char *function; /* static text */
};

/* p must outlive it. 0 or -errno. */
int foreign_new(struct foreign **out, struct probes *p);
void foreign_free(struct foreign *f); /* NULL is accepted */
/*
 * Watches a process from here on. fd is its libcupti's file (the caller's), cupti where that
 * is mapped, own the code of the sidecar: calls from these two are not foreign. -ENOENT:
 * the file has no functions to watch; -EMFILE: of too many files; or -errno.
 */
int foreign_watch(struct foreign *f, uint32_t pid, int fd, struct foreign_range own,
		  struct foreign_range cupti);
void foreign_forget(struct foreign *f, uint32_t pid);
int foreign_fd(const struct foreign *f); /* readable when somebody called */
/* Hands over what was called; returns what each returned if not 0, or 0. */
int foreign_consume(struct foreign *f, int (*each)(const struct foreign_call *c, void *ctx),
		    void *ctx);

#endif
