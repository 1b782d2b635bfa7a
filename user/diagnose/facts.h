/* SPDX-License-Identifier: BSD-2-Clause */
/* What is counted of a process once, for all rules. Times in ns; -1: not known. */
#ifndef GBPF_DIAGNOSE_FACTS_H
#define GBPF_DIAGNOSE_FACTS_H

#include "diagnose/shares.h"

#define AT_ONCE_NS 10000 /* a wait this short had nothing to wait for */

/* Calls of one sort: how many, their time, the longest and its function. */
struct tally {
	uint64_t count, bytes;
	int64_t ns, longest;
	uint32_t api; /* index into apis; means nothing where count is 0 */
};

struct facts {
	const struct session *s;
	const struct session_process *p;
	uint32_t process;
	const struct shares *shares;
	const struct steps *steps;
	const struct rank_verdict *rank; /* against its peers; NULL: it has none */
	int64_t window; /* of the recording in which the process lived */

	/* calls */
	uint64_t calls, launches, graph_launches; /* outermost ones */
	int64_t launch_p50, launch_p99;	/* steady, not blocked */
	int64_t launch_ns;		/* their sum */
	struct tally blocked;		/* launches held up by a full queue */
	struct tally slow;		/* launches over 50 us that are neither blocked nor cold */
	struct tally syncs, at_once;	/* waits for stream, event, context; short ones */
	struct tally blocking_copies, blocking_sets, polls;
	struct tally allocs, frees;	/* that wait for the device, after the first tenth */
	struct tally cold, loads;	/* first calls; modules and libraries loaded */
	struct tally late_loads;	/* after half of the recording */
	struct tally occupancy, instantiated, collectives;
	uint64_t repeated_launches;	/* in a usual step, outside graphs */

	/* GPU time; all 0 without */
	uint64_t kernels, works, nodes; /* nodes: kernels of graphs */
	int64_t kernel_ns, kernel_p50;
	uint64_t short_kernels; /* WORK_SHORT, and not of a graph */
	int64_t queue_delay_p50, launch_to_start_p50; /* the latter where no neighbour ran */
	uint64_t uncontended;
	uint32_t depth_most, depth_p50;
	struct tally pageable;	/* copies of pageable memory by asynchronous calls */
	struct tally device_copies; /* from device to device, right before a product */
	int64_t gap_ns[GAP_CLASSES];
	int64_t longest_gap;
	struct tally late;	/* kernels over 100 us after their launch, on a free stream and not
				   for others' work */
	struct tally delayed;	/* gaps over 1.5 ms before work that had been asked for */
	struct tally anomalous; /* gaps of which launch to start is over a quarter, and unusual */
	uint32_t heaviest;	/* kernel with most time, UINT32_MAX; ns and launches of it */
	int64_t heaviest_ns;
	uint64_t heaviest_count;
	uint32_t unsteady;	/* kernel and shape whose times vary most, UINT32_MAX */
	double unsteady_cv, unsteady_ratio; /* deviation / mean; p99 / p50 */
	uint64_t unsteady_count;
	int64_t comm_ns;
	int64_t overhead_records_ns; /* CUPTI's own */
	uint32_t sharers;	/* other processes whose work ran on its devices */

	/* NVML, of its devices or all there are; -1: no samples */
	double utilisation, throttled; /* %; share of samples */
	int64_t clock_min, clock_max;  /* MHz, SM */
	const char *throttled_by;

	/* quality */
	uint64_t lost;
	double missing; /* of launches in the sidecar's windows: no work of theirs is known */
	double unmatched; /* of works in the sidecar's windows; 0 without */
	double probe_share; /* of the window that the probes took the busiest thread */
};

/*
 * Begun, then found from calls and, where shares_have_gpu(), from GPU time: in any order, or
 * each in a thread, for they fill in different ones. Rules need them ended. 0 or -ENOMEM.
 */
void diag_facts_begin(struct facts *f, const struct session *s, uint32_t process);
int diag_facts_calls(struct facts *f);
int diag_facts_gpu(struct facts *f);   /* facts_gpu.c */
void diag_facts_nvml(struct facts *f); /* facts_gpu.c, of diag_facts_calls() */
void diag_facts_end(struct facts *f, const struct shares *shares, const struct steps *steps);

/* Median and other quantiles of values, which are reordered; -1 of none. q in 1/1000. */
int64_t quantile(int64_t *values, size_t count, unsigned q);

#endif
