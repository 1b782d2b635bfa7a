/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules: what each looks for is beside its words, and in no other place. */
#ifndef GBPF_DIAGNOSE_RULES_H
#define GBPF_DIAGNOSE_RULES_H

#include "diagnose/facts.h"

struct rule {
	struct diag_rule words;
	/* Fills severity, share (-1 before) and evidence; false: it does not apply. */
	bool (*fires)(const struct facts *f, struct diag_finding *out);
};

/* end: no name */
extern const struct rule rules_launch[], rules_wait[], rules_gpu[], rules_run[], rules_ranks[];

/* Everything that fires, the heaviest first. */
void rules_run_all(const struct facts *f, struct diag_process *out);

/* Adds to a finding's evidence; what does not fit is left out. */
void evidence_number(struct diag_finding *out, const char *key, double value);
void evidence_text(struct diag_finding *out, const char *key, const char *text);

static inline double of_window(const struct facts *f, int64_t ns)
{
	return f->window > 0 ? (double)ns / (double)f->window : 0;
}

static inline double share_of(const struct facts *f, enum diag_class class)
{
	return f->shares->window > 0 ?
		       (double)f->shares->ns[class] / (double)f->shares->window : 0;
}

static inline bool has_gpu(const struct facts *f)
{
	return f->shares->basis == BASIS_CPU_GPU;
}

/* Share of the time in which the devices did neither its work nor what it gave way to. */
static inline double idle_share(const struct facts *f)
{
	const struct shares *v = f->shares;

	return v->window > 0 ?
		       1 - (double)(v->busy + v->ns[CLASS_SHARED]) / (double)v->window : 0;
}

/* Kinds of kernels a rule speaks of, for people. */
const char *kernel_text(const struct facts *f, uint32_t kernel);
const char *api_text(const struct facts *f, const struct tally *t);

#endif
