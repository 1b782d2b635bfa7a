/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Correlations: what readers join calls and GPU work by. CUPTI's own where it has one and
 * no other call of the process has the same (they wrap, and start anew with each session
 * of CUPTI); otherwise a number above all of CUPTI's, which have 32 bits.
 */
#ifndef GBPF_EXPORT_TRACE_IDS_H
#define GBPF_EXPORT_TRACE_IDS_H

#include "export/trace.h"

struct export_ids {
	const struct session *s;
	uint64_t *twice; /* process and correlation, of several calls; sorted */
	size_t count;
};

int export_ids_new(struct export_ids *ids, const struct session *s); /* -ENOMEM */
void export_ids_free(struct export_ids *ids); /* may be repeated */
uint64_t export_call_id(const struct export_ids *ids, uint32_t call);
/* That of its call, whether it is wanted or not. */
uint64_t export_work_id(const struct export_ids *ids, uint32_t work);

#endif
