/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean …?": the candidate closest to a mistyped word. */
#ifndef GBPF_UTIL_NEAREST_H
#define GBPF_UTIL_NEAREST_H

struct nearest {
	const char *word;
	const char *best; /* NULL: none is close enough to be meant */
	unsigned distance;
};

/* word and every candidate must outlive n. */
void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

#endif
