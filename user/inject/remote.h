/* SPDX-License-Identifier: BSD-2-Clause */
/* What remote.c and call.c share. */
#ifndef GBPF_INJECT_REMOTE_H
#define GBPF_INJECT_REMOTE_H

#include "inject/frame.h"
#include "inject/private.h"

#ifdef __x86_64__

#define WAIT_NS 1000000000 /* for a stop that is certain to come */
#define SPARE_MAX 4096

struct tracee {
	const struct inject_plan *plan;
	struct caught caught;
	struct user_regs_struct regs; /* when it was stopped */
	uint64_t mask;
	size_t xstate_size;
	bool entered, held_back;
	uint64_t memory; /* 0: none */
	size_t spare_used;
	int64_t released; /* 0: not yet */
	uint8_t spare[SPARE_MAX]; /* what was there */
	uint8_t xstate[INJECT_XSTATE_MAX];
};

bool tracee_in_stub(struct tracee *t);

#endif
#endif
