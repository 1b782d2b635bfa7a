/* SPDX-License-Identifier: BSD-2-Clause */
/* What the printing of findings has in common. */
#ifndef GBPF_DIAGNOSE_WORDS_H
#define GBPF_DIAGNOSE_WORDS_H

#include "diagnose/diagnose.h"

#define WORDS_SIZE 512 /* of a buffer for any of these */

/* "dispatch p50 4.2 us": an evidence for people, its unit by its key. Into buf. */
const char *evidence_words(const struct diag_evidence *e, char *buf, size_t size);

/* "1,234 steps of 95.710 us": those that were seen whole, and their median. Into buf. */
const char *steps_words(const struct steps *v, char *buf, size_t size);

/* "python (pid 71)", fit to be shown. */
const char *process_words(const struct session *s, uint32_t process, char *buf, size_t size);

/* "rank 3, python (pid 71): the others wait 1.2 ms a step for it, …". Into buf. */
const char *straggler_words(const struct session *s, const struct diag_process *p, char *buf,
			    size_t size);
/* Of a job in which there is none. */
const char *no_straggler_words(const struct diag_job *j);

/* The classes that have a share, the largest first: indices into *order; how many. */
int shares_order(const struct diag_process *p, int order[CLASSES]);

/* What a class is called in a sentence, given what is known of the GPU. */
const char *class_words(enum diag_class class, enum diag_basis basis);

#endif
