/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is this job overhead-bound or GPU-bound, why, and what to do: a verdict for each
 * process, the shares of its time behind it, and findings with their evidence. Reads
 * the model and nothing else. docs/diagnosis.md has every definition.
 */
#ifndef GBPF_DIAGNOSE_DIAGNOSE_H
#define GBPF_DIAGNOSE_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/session.h"
#include "model/steps.h"
#include "util/verdict.h"

/* How much a finding matters: informs, is worth a look, is what to do first. */
enum diag_severity { SEVERITY_INFO, SEVERITY_NOTICE, SEVERITY_WARNING };

extern const char *const diag_severity_words[];		 /* "info", … */

#define IDLE_MATTERS 0.15 /* of the window; TraceLens' threshold for an overhead-bound job */

#define EVIDENCE_MAX 8
struct diag_evidence {
	const char *key;  /* as in JSON, with its unit; constant */
	const char *text; /* the session's or constant; NULL: value */
	double value;
};

struct diag_finding {
	const struct diag_rule *rule;
	enum diag_severity severity;
	double share; /* of the window, 0..1; negative: has none */
	struct diag_evidence evidence[EVIDENCE_MAX];
	size_t evidence_count;
};

/* A rule's words; what makes it fire is in rules*.c. All constant. */
struct diag_rule {
	const char *name;     /* "short_kernels" */
	const char *title;    /* one line for people */
	const char *advice;   /* what to do, or why there is nothing to be done */
	const char *refuted_by; /* what would show that it is not so */
};
const struct diag_rule *diag_rule(size_t i); /* all of them; NULL after the last */

#define FINDINGS_MAX 48
struct diag_process {
	uint32_t process; /* index into the session's */
	uint32_t job;	  /* index into jobs: it is a rank of that one; UINT32_MAX: of none */
	const char *rank; /* as labelled; NULL */
	enum diag_verdict verdict;
	enum diag_basis basis;
	double confidence; /* 0..1 */
	const char *why_inconclusive; /* a sentence; NULL otherwise */
	int64_t window_ns; /* what the shares are of; of each device with GPU time */
	double shares[CLASSES]; /* add up to 1, or all 0 */
	struct steps steps;
	int64_t won_ns; /* a step, or of the window without steps: at most to be won; -1 unknown */
	struct diag_finding findings[FINDINGS_MAX]; /* the heaviest first */
	size_t findings_count;
	char next[512]; /* the command to run next; "" where there is none */
};

/* Several processes that are ranks of one job (ranks.h), together. */
struct diag_job {
	size_t ranks;
	enum diag_verdict verdict; /* of more than half of them; else mixed */
	enum diag_basis basis;	   /* the least of them */
	double shares[CLASSES];	   /* mean over the ranks */
	size_t stragglers;	   /* ranks that the others wait for */
	bool compared;		   /* there was enough to tell */
};

struct diagnosis {
	const struct session *s;
	int64_t window_ns; /* in which probes were attached */
	struct diag_process *processes; /* that gave work to a GPU, the busiest first */
	size_t count;
	struct diag_job *jobs;
	size_t jobs_count;
};

/* file: how commands to run next name the recording. 0 or -ENOMEM; free it in any case. */
int diagnose(const struct session *s, const char *file, struct diagnosis *out);
void diagnosis_free(struct diagnosis *d); /* may be repeated */

/* "overhead-bound", "suspected overhead-bound": what people read. Into buf. */
const char *diag_verdict_text(const struct diag_process *p, char *buf, size_t size);

/* The same of a job. */
const char *diag_job_text(const struct diag_job *j, char *buf, size_t size);
/* What says that the other ranks wait for this one; NULL: nothing does. */
const struct diag_finding *diag_straggles(const struct diag_process *p);

/* ---- print_*.c ---- */
struct json;
struct diag_look {
	bool colour;
	unsigned width; /* columns, 0: do not wrap */
};
void diagnosis_text(const struct diagnosis *d, const struct diag_look *look, FILE *out);
/* One line a process, for the end of a recording. */
void diagnosis_brief(const struct diagnosis *d, FILE *out);
/* quality: writes the value of the member "quality"; NULL: there is none. */
void diagnosis_json(const struct diagnosis *d,
		    void (*quality)(const struct session *s, struct json *j), FILE *out);
void diagnosis_markdown(const struct diagnosis *d, FILE *out);
/* 0 or -ENOMEM: then the page is not complete. */
int diagnosis_html(const struct diagnosis *d, FILE *out);

#endif
