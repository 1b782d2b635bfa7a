/* SPDX-License-Identifier: BSD-2-Clause */
/* The works of a physical device, of all processes and streams, in the order of time. */
#ifndef GBPF_MODEL_MERGE_H
#define GBPF_MODEL_MERGE_H

#include "model/session.h"

struct merge_stream {
	uint32_t next, end; /* works */
};

struct merge {
	const struct session *s;
	struct merge_stream *heap; /* the first one's next work comes first */
	size_t count;
};

int merge_begin(struct merge *m, const struct session *s, uint32_t physical); /* 0 or -ENOMEM */
uint32_t merge_next(struct merge *m); /* index into works; WORK_NONE after the last */
void merge_end(struct merge *m);      /* may be repeated */

#endif
