/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings of a job before and after a change: what differs, and whether it is more
 * than noise. Several of each, taken in turn (A B A B ...), show how much recordings of
 * the same job differ; from one of each that is not known, and COMPARE_DRIFT stands for it.
 */
#ifndef GBPF_DIAGNOSE_COMPARE_H
#define GBPF_DIAGNOSE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/session.h"

/*
 * Standard deviation of the logarithm between two recordings of one job on one machine,
 * where only one of each is at hand: times drift by 10 % (docs/measurements.md).
 */
#define COMPARE_DRIFT 0.05
#define COMPARE_LEVEL 0.05 /* chance to call the same job different, over all measures */

enum measure {
	MEASURE_DISPATCH, /* median duration of a launch, ns; first calls and blocked ones out */
	MEASURE_STEP,	  /* length of a step, ns */
	MEASURE_LAUNCH_RATE, /* launches a second */
	MEASURE_WAIT,	  /* waits, ns a launch */
	MEASURE_KERNEL,	  /* GPU time of a kernel, mean, ns */
	MEASURES,
};
extern const char *const measure_words[MEASURES]; /* as in JSON: "dispatch_p50_ns", … */

/* One measure of both sides. */
struct difference {
	bool known;	   /* both sides have it in every recording */
	double before, after; /* means */
	double change;	   /* after / before - 1 */
	double low, high;  /* of change: 95 % over all measures together */
	double detectable; /* a change this large would have been seen, about */
	bool differs;	   /* 0 is outside of low..high */
};

/* A function or kernel, and how often it was called for each launch. */
struct change {
	const char *name; /* the first session's that has it */
	bool kernel;
	double before, after; /* calls a step, or of a thousand launches where there are no steps */
	double before_ns, after_ns; /* mean duration of a call; of a kernel: of its launch */
};

struct comparison {
	struct difference of[MEASURES];
	struct change *changes; /* those of which the number differs by a tenth, largest first */
	size_t changes_count;
	size_t recordings; /* of each side */
	bool per_step;	   /* changes are counted by step, else by a thousand launches */
};

/* Sessions before[i] and after[i] were taken in turn. 0 or -ENOMEM; free it in any case. */
int compare(const struct session *const *before, const struct session *const *after, size_t n,
	    struct comparison *out);
void comparison_free(struct comparison *c); /* may be repeated */

void comparison_text(const struct comparison *c, FILE *out);
void comparison_json(const struct comparison *c, FILE *out);

/*
 * Student's t: the value that is exceeded in either direction with this chance, df degrees
 * of freedom (G. W. Hill, Algorithm 396, Communications of the ACM 13, 1970).
 */
double student_t(double chance, double df);

#endif
