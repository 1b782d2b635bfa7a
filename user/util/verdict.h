/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a job is bound by: the classes its time is divided into, the verdicts, their words,
 * and the thresholds that recordings and live numbers are judged by alike. docs/diagnosis.md
 * defines them.
 */
#ifndef GBPF_UTIL_VERDICT_H
#define GBPF_UTIL_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What a process's window is divided into. With GPU time, what its devices did and, while
 * they did nothing, why; without, what its launching threads did and what that suggests.
 */
enum diag_class {
	CLASS_GPU,	   /* kernels ran; without GPU time: threads waited for the GPU */
	CLASS_COMM,	   /* only collectives did; or threads were in them */
	CLASS_COPY,	   /* only copies and sets did; or threads waited for them */
	CLASS_OVERHEAD,	   /* the CPU was preparing work, or between two calls */
	CLASS_SYNC,	   /* idle because a wait had drained the queue */
	CLASS_STARVED,	   /* the CPU was away from CUDA for longer (AWAY_NS) */
	CLASS_BACK_PRESSURED, /* launches blocked on a full queue */
	CLASS_COLD,	   /* modules, contexts, first calls */
	CLASS_OTHER,	   /* work was asked for and had not begun: dependencies, resources */
	CLASS_SHARED,	   /* and meanwhile the device did other processes' work: not idle */
	CLASSES,
};

enum diag_verdict {
	VERDICT_GPU_BOUND,
	VERDICT_COMM_BOUND,
	VERDICT_COPY_BOUND,
	VERDICT_OVERHEAD_BOUND,
	VERDICT_SYNC_BOUND,
	VERDICT_STARVED,
	VERDICT_BACK_PRESSURED,
	VERDICT_COLD_START,
	VERDICT_MIXED,
	VERDICT_INCONCLUSIVE,
};
#define VERDICTS (VERDICT_INCONCLUSIVE + 1)

enum diag_basis { BASIS_CPU, BASIS_CPU_NVML, BASIS_CPU_GPU };

extern const char *const diag_class_words[CLASSES + 1];	 /* "gpu", …; NULL at the end */
extern const char *const diag_verdict_words[VERDICTS];	 /* "gpu_bound", … */
extern const char *const diag_basis_words[];		 /* "cpu", "cpu+nvml", "cpu+gpu" */

#define AWAY_NS 1000000 /* longer between two calls is absence, shorter is overhead */
#define VERDICT_CALLS 20 /* less says nothing */
#define VERDICT_CLOSE 0.05 /* two classes this near are both the answer; twice without GPU time */

enum diag_verdict verdict_of_class(enum diag_class class);

/* The largest of shares; *second becomes the next. */
enum diag_class verdict_largest(const double shares[CLASSES], enum diag_class *second);

/*
 * Of threads alone: waiting for the GPU and being held up by its full queue say the same,
 * that it is busy. So they are one class in out, and nothing says that it is idle.
 */
void verdict_evidence(const double shares[CLASSES], double out[CLASSES]);

/* What shares of threads' time suggest. */
enum diag_verdict verdict_of_threads(const double shares[CLASSES]);

/*
 * NVML's utilisation (%, of a GPU that no other process uses) can only speak against what
 * threads suggest: then both are part of the answer.
 */
enum diag_verdict verdict_weigh_nvml(enum diag_verdict v, double utilisation, bool shared);

/* "overhead-bound", or where the GPU was not seen "suspected overhead-bound". Into buf. */
const char *verdict_text(enum diag_verdict v, enum diag_basis basis, char *buf, size_t size);
/* Without "suspected", for columns that say so in their header. */
const char *verdict_word(enum diag_verdict v, char *buf, size_t size);

#endif
