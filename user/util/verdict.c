// SPDX-License-Identifier: BSD-2-Clause
#include "util/verdict.h"

#include <stdio.h>
#include <string.h>

#define NVML_BUSY 95 /* %: no job that the CPU cannot feed */
#define NVML_IDLE 20 /* %: no job that is bound by its GPU */

const char *const diag_class_words[CLASSES + 1] = {
	[CLASS_GPU] = "gpu", [CLASS_COMM] = "comm", [CLASS_COPY] = "copy",
	[CLASS_OVERHEAD] = "overhead", [CLASS_SYNC] = "sync", [CLASS_STARVED] = "starved",
	[CLASS_BACK_PRESSURED] = "back_pressured", [CLASS_COLD] = "cold",
	[CLASS_OTHER] = "other", [CLASS_SHARED] = "shared",
};

const char *const diag_verdict_words[VERDICTS] = {
	[VERDICT_GPU_BOUND] = "gpu_bound", [VERDICT_COMM_BOUND] = "comm_bound",
	[VERDICT_COPY_BOUND] = "copy_bound", [VERDICT_OVERHEAD_BOUND] = "overhead_bound",
	[VERDICT_SYNC_BOUND] = "sync_bound", [VERDICT_STARVED] = "starved",
	[VERDICT_BACK_PRESSURED] = "back_pressured", [VERDICT_COLD_START] = "cold_start",
	[VERDICT_MIXED] = "mixed", [VERDICT_INCONCLUSIVE] = "inconclusive",
};

const char *const diag_basis_words[] = { "cpu", "cpu+nvml", "cpu+gpu" };

enum diag_verdict verdict_of_class(enum diag_class class)
{
	static const enum diag_verdict of[CLASSES] = {
		[CLASS_GPU] = VERDICT_GPU_BOUND, [CLASS_COMM] = VERDICT_COMM_BOUND,
		[CLASS_COPY] = VERDICT_COPY_BOUND, [CLASS_OVERHEAD] = VERDICT_OVERHEAD_BOUND,
		[CLASS_SYNC] = VERDICT_SYNC_BOUND, [CLASS_STARVED] = VERDICT_STARVED,
		[CLASS_BACK_PRESSURED] = VERDICT_BACK_PRESSURED,
		[CLASS_COLD] = VERDICT_COLD_START, [CLASS_OTHER] = VERDICT_MIXED,
		[CLASS_SHARED] = VERDICT_MIXED,
	};

	return of[class];
}

enum diag_class verdict_largest(const double shares[CLASSES], enum diag_class *second)
{
	int first = 0, next = -1;

	for (int i = 1; i < CLASSES; i++)
		first = shares[i] > shares[first] ? i : first;
	for (int i = 0; i < CLASSES; i++)
		if (i != first && (next < 0 || shares[i] > shares[next]))
			next = i;
	*second = (enum diag_class)next;
	return (enum diag_class)first;
}

void verdict_evidence(const double shares[CLASSES], double out[CLASSES])
{
	memmove(out, shares, CLASSES * sizeof(*out));
	out[CLASS_GPU] += out[CLASS_BACK_PRESSURED];
	out[CLASS_BACK_PRESSURED] = 0;
}

enum diag_verdict verdict_of_threads(const double shares[CLASSES])
{
	enum diag_class first, second;
	double evidence[CLASSES];

	verdict_evidence(shares, evidence);
	first = verdict_largest(evidence, &second);
	if (evidence[first] - evidence[second] < 2 * VERDICT_CLOSE)
		return VERDICT_MIXED;
	if (first == CLASS_GPU && shares[CLASS_BACK_PRESSURED] > shares[CLASS_GPU])
		return VERDICT_BACK_PRESSURED;
	return verdict_of_class(first);
}

enum diag_verdict verdict_weigh_nvml(enum diag_verdict v, double utilisation, bool shared)
{
	if (v == VERDICT_OVERHEAD_BOUND && utilisation > NVML_BUSY && !shared)
		return VERDICT_MIXED;
	if (v == VERDICT_GPU_BOUND && utilisation < NVML_IDLE)
		return VERDICT_MIXED;
	return v;
}

const char *verdict_word(enum diag_verdict v, char *buf, size_t size)
{
	snprintf(buf, size, "%s", diag_verdict_words[v]);
	for (char *c = buf; size && *c; c++)
		if (*c == '_')
			*c = '-';
	return buf;
}

const char *verdict_text(enum diag_verdict v, enum diag_basis basis, char *buf, size_t size)
{
	bool sure = basis == BASIS_CPU_GPU || v == VERDICT_INCONCLUSIVE || v == VERDICT_MIXED;
	char word[32];

	snprintf(buf, size, "%s%s", sure ? "" : "suspected ", verdict_word(v, word, sizeof(word)));
	return buf;
}
