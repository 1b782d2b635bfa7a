/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's window divided into classes; what rules and the verdict are made from. */
#ifndef GBPF_DIAGNOSE_SHARES_H
#define GBPF_DIAGNOSE_SHARES_H

#include "diagnose/diagnose.h"
#include "diagnose/timeline.h"

#define SHARE_CHUNKS 30 /* of the window: Nsight Systems' "GPU time utilization" */

/* All in ns, of the window: with GPU time, of all devices of the process together. */
struct shares {
	enum diag_basis basis;
	int64_t window;	 /* ns that are divided */
	int64_t ns[CLASSES];
	int64_t feed[FEED_STATES]; /* of the launching threads, in the same time of one device */
	int64_t busy;	 /* with GPU time: the devices did any work of this process */
	int64_t drained; /* with GPU time: idle although the CPU prepared, after a drained queue */
	int64_t slack;	 /* with GPU time: idle while threads waited */
	uint32_t devices;
	/* With GPU time, by chunk: time, of all devices; in which they worked; of CPU preparing */
	int64_t chunk_ns[SHARE_CHUNKS], chunk_prepares[SHARE_CHUNKS];
	int64_t chunk_busy[SHARE_CHUNKS]; /* with others' work that this process waited for */
	int64_t chunk_from; /* where the first begins */
};

/* Was GPU time recorded for at least half of the recording of this process? */
bool shares_have_gpu(const struct session *s, uint32_t process);

/*
 * With GPU time by what the devices of the process did (shares_gpu.c), else by its threads
 * alone. 0 or -ENOMEM.
 */
int shares_of(const struct session *s, uint32_t process, const struct feed_timeline *feed,
	      struct shares *out);

/* shares_gpu.c: within the sidecar's windows. */
int shares_gpu(const struct session *s, uint32_t process, const struct feed_timeline *feed,
	       struct shares *out);

#endif
