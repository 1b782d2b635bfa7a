/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call waited for on a GPU, as CUPTI_ACTIVITY_KIND_SYNCHRONIZATION has it. gbpf
 * does not ask CUPTI for these: they follow from the calls, and have their times.
 */
#ifndef GBPF_EXPORT_TRACE_SYNC_H
#define GBPF_EXPORT_TRACE_SYNC_H

#include "export/trace.h"
#include "model/map.h"

enum export_sync_kind { /* CUpti_ActivitySynchronizationType */
	SYNC_NONE = 0,
	SYNC_STREAM = 3,
	SYNC_CONTEXT = 4,
};

struct export_syncs {
	const struct session *s;
	struct map stream_of; /* (process, handle) to streams */
	uint32_t *only;	      /* by process: its only context, as a stream; or NO, or MANY */
	uint8_t *kinds;	      /* by API: enum export_sync_kind */
};

int export_syncs_new(struct export_syncs *y, const struct session *s); /* -ENOMEM */
void export_syncs_free(struct export_syncs *y); /* may be repeated */
/*
 * SYNC_NONE where it waited for nothing of the kind, or for what is not known. *stream:
 * index of the stream; of SYNC_CONTEXT, of any stream of the context.
 */
enum export_sync_kind export_sync_of(const struct export_syncs *y, uint32_t call, uint32_t *stream);

#endif
