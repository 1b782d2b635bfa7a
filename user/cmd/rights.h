/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_CMD_RIGHTS_H
#define GBPF_CMD_RIGHTS_H

#include <stdbool.h>

/*
 * Root by way of sudo, about to parse what others wrote: becomes the user who
 * called sudo (SUDO_UID, SUDO_GID), for good. Does nothing for anybody else,
 * and for root who called as root. Returns 0, or -errno with the old rights
 * possibly still there: do not go on.
 */
int rights_become_invoker(void);

/*
 * What `gbpf trace` still has to do. Each step needs less than the one before;
 * what it does not need is given up for good.
 */
enum rights_need {
	RIGHTS_ATTACH, /* load programs, make the file, find and probe the first images */
	RIGHTS_WATCH,  /* for monitor and top: probe, look at processes; no files */
	RIGHTS_RECORD, /* probe what comes later, look at new processes, rename the file */
};
struct rights {
	bool perf_uprobes; /* attached as perf events: some kernels ask CAP_SYS_ADMIN for these */
	bool files;	   /* more of them are made while recording */
	bool command;	   /* signals are handed on to one that is another user's */
};

/*
 * Gives up every capability of the calling thread, and of threads it makes, that
 * is not needed from here on, and the way back through setuid programs. What is
 * not held is not missed here: the step that needs it says so. 0 or -errno.
 */
int rights_keep(enum rights_need need, const struct rights *r);

#endif
