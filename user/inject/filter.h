/* SPDX-License-Identifier: BSD-2-Clause */
/* The seccomp filters of a thread: would they let us do what we do? */
#ifndef GBPF_INJECT_FILTER_H
#define GBPF_INJECT_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTERS_MAX 32

/* Of one thread, the last one installed first; the strictest answer counts. */
struct filters {
	size_t count;
	struct {
		struct sock_filter *code;
		size_t length;
	} programs[FILTERS_MAX];
};

/*
 * Of a thread that this thread of ours has stopped. Takes CAP_SYS_ADMIN and a kernel with
 * CONFIG_CHECKPOINT_RESTORE. 0; -E2BIG: more than we look at; -ENOMEM; or what ptrace(2) says.
 */
int filters_read(struct filters *f, uint32_t tid);
void filters_free(struct filters *f);
bool filters_equal(const struct filters *a, const struct filters *b);
/*
 * 0: every call that dlopen(3), a new thread and we make is allowed, and no call at all
 * has consequences but an error. Else -EOPNOTSUPP and *nr is a call that is not so.
 */
int filters_judge(const struct filters *f, long *nr);
/* What one program (checked by the kernel, or not) answers: SECCOMP_RET_KILL_PROCESS if broken. */
uint32_t filter_run(const struct sock_filter *code, size_t length, const struct seccomp_data *d);

#endif
