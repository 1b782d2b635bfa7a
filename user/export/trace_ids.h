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
	uint64_t *twice; /* process and correlation, of several calls; sorted, with repeats */
	size_t count;
};

int export_ids_new(struct export_ids *ids, const struct session *s); /* -ENOMEM */
void export_ids_free(struct export_ids *ids); /* may be repeated */
uint64_t export_call_id(const struct export_ids *ids, uint32_t call);
/* That of the call it is linked to, whether that is wanted or not. */
uint64_t export_work_id(const struct export_ids *ids, uint32_t work);

/*
 * The call that readers take for the cause: the runtime's, where the driver's is inside of
 * one. PyTorch and nsys know only that, and CUPTI has one correlation for both.
 */
uint32_t export_linked(const struct session *s, uint32_t call);
/* Past the last call that is inside of this one. */
uint32_t export_inside_end(const struct session *s, uint32_t call);

#endif
