/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that are ranks of one job, held against each other: does one of them keep the
 * others waiting, or dispatch slower than they do?
 *
 * The traced time is cut into RANK_BLOCKS parts. What a rank did in a part is compared with
 * the median of what the others did in the same part, so that whatever happens to all of
 * them cancels out; Student's t over the parts tells a difference from noise.
 */
#ifndef GBPF_DIAGNOSE_RANKS_H
#define GBPF_DIAGNOSE_RANKS_H

#include "diagnose/compare.h"
#include "diagnose/facts.h"

#define RANK_BLOCKS 20
#define RANKS_MAX 1024	       /* processes; of more than that none is compared */
#define RANK_ALIKE 0.9	       /* of the launches of two ranks are of the same kernels */
#define RANK_IN_STEP 0.02      /* their steps, or their launches, differ by at most this */
#define RANK_SAME_WAITS 0.1    /* more or fewer waits a launch: their lengths say nothing */
#define STRAGGLER_MATTERS 0.03 /* of the window that the others wait for it */
#define RANK_COLLECTIVES 20    /* fewer say nothing */

/* How many launches were of one kernel, or of one function where the kernel has no name. */
struct rank_part {
	uint32_t key;
	uint64_t launches;
};

/* A process in each part of the traced time. */
struct rank_look {
	uint32_t process;
	const char *rank, *host; /* labels; NULL: it has none */
	const struct steps *steps;
	bool whole; /* its durations are known and nothing is missing */
	struct rank_part *parts; /* by key */
	size_t parts_count;
	uint64_t launches, waits, collectives; /* collectives: launched, called, or in a graph */
	double ns[RANK_BLOCKS];	  /* in which it was traced */
	double waited[RANK_BLOCKS], launched[RANK_BLOCKS]; /* ns; launches */
	double dispatch[RANK_BLOCKS]; /* median duration of a launch, ns; 0: none */
	double bound_ns[RANK_BLOCKS], bound[RANK_BLOCKS]; /* collectives that bind all, GPU time */
	/* of the whole window */
	double share_dispatch, share_away, share_cold, share_kernels;
	uint64_t bound_all;
};

/* What the comparison says of one rank. Shares are of the window. */
struct rank_verdict {
	uint32_t job; /* index among the session's jobs; UINT32_MAX: no rank of any */
	size_t ranks; /* of that job, this one too */
	const char *rank; /* as labelled; NULL */
	bool compared;	  /* there was enough to compare */
	bool straggles;	  /* the others wait for it, more than noise */
	bool by_collectives; /* known by collectives on the GPU, else by waits of threads */
	double wait_share, others_share; /* in collectives, or in waits; median of the others */
	double lost; /* of the window: what the others wait for it */
	double lost_error; /* half of its interval */
	const char *more_time; /* "away from CUDA": where it spends more; NULL: not known */
	struct difference dispatch; /* of the others' median against its own */
};

/* Durations of launches, ns: room that one process after the other uses. */
struct rank_launches {
	int64_t *ns;
	size_t count, cap;
};

struct ranks {
	const struct session *s;
	int64_t edge[RANK_BLOCKS + 1];
	double block_ns; /* traced in each */
	uint8_t *binds;	 /* by kernel: a collective that none leaves before all entered */
	uint32_t *seen;	 /* by kernel, then by function: launches of the process looked at */
	struct rank_launches launches[RANK_BLOCKS];
	struct rank_look *looks;
	struct rank_verdict *of; /* by look */
	size_t count;
	uint32_t jobs;
};

/* For that many processes. 0 or -ENOMEM; free it in any case. */
int ranks_new(struct ranks *r, const struct session *s, size_t processes);
/* whole: the process can be judged at all. f and its steps must outlive r. 0 or -ENOMEM. */
int ranks_look(struct ranks *r, const struct facts *f, const struct feed_timeline *feed,
	       bool whole);
/* After the last look: finds jobs and compares. 0 or -ENOMEM. */
int ranks_compare(struct ranks *r);
/* NULL: it is no rank of a job. */
const struct rank_verdict *ranks_of(const struct ranks *r, uint32_t process);
void ranks_free(struct ranks *r); /* may be repeated */

/* ranks_job.c: gives looks that belong to one job the same number; ranks of that job. */
void ranks_group(struct ranks *r);

#endif
