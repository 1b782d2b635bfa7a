/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations and what became of them, from calls alone: stream-ordered pools, host and
 * array memory included. Where runtime and driver were both recorded, the outer call counts.
 * A call that failed neither allocates nor frees.
 */
#ifndef GBPF_MODEL_MEMORY_H
#define GBPF_MODEL_MEMORY_H

#include "model/session.h"

#define NOT_FREED INT64_MAX

struct allocation {
	int64_t begin, end; /* ns: from the allocating call's return to the freeing call's entry */
	uint64_t bytes;
	uint64_t pointer;
	uint32_t process;
	uint32_t call;	    /* index into calls: what allocated it */
	uint32_t free_call; /* CALL_NONE: it was not freed within the trace */
	bool host;	    /* pinned or registered memory of the host */
};

/* Of a process; bytes of device memory, as far as the trace saw it allocated. */
struct memory_use {
	uint64_t allocations, frees;
	uint64_t failed;	/* calls that returned an error */
	uint64_t before;	/* frees of what was allocated before the trace */
	uint64_t twice;		/* frees of what had been freed, and not been given out again */
	uint64_t bytes;		/* allocated in all */
	uint64_t live, peak;	/* at the end; at most */
	int64_t peak_at;	/* ns */
	uint64_t host_live;
};

struct memory {
	struct allocation *items; /* by process, then begin */
	size_t count;
	struct memory_use *uses; /* by process */
};

/* 0 or -ENOMEM; then nothing is to be freed. */
int memory_find(const struct session *s, struct memory *out);
void memory_free(struct memory *m); /* may be repeated */

#endif
