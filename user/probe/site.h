/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a function may a probe go, and what would it cost? */
#ifndef GBPF_PROBE_SITE_H
#define GBPF_PROBE_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/elf.h"

enum site_verdict {
	SITE_OK = 1,	   /* the kernel emulates this instruction */
	SITE_SLOW,	   /* it would be single-stepped: ten times dearer */
	SITE_REFUSED,	   /* must not be probed; the reason says why */
};

struct site {
	enum site_verdict verdict;
	uint64_t offset;    /* where the probe goes: the entry, or just after endbr64 */
	const char *reason; /* static text, "" when OK */
	bool after_endbr;
};

/* Decides from the function's first bytes. */
struct site site_choose(const struct elf *e, const struct elf_symbol *s);
/* The same from bytes alone: code holds the function's first len bytes, of file offset `offset`. */
struct site site_decode(unsigned machine, const uint8_t *code, unsigned len, uint64_t offset);

#endif
