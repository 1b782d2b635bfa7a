/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread of another process stopped and let go, by ptrace(2) and without a
 * signal: should we die meanwhile, the kernel lets it go. All of it by the same
 * thread of ours. own: it is our child, whose end is for others to wait for.
 */
#ifndef GBPF_PROBE_STOP_H
#define GBPF_PROBE_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* It will stop before its next instruction. -EPERM: somebody else has it; -ESRCH. */
int stop_request(uint32_t tid, bool own);
/*
 * Until it has stopped; -ESRCH: it ended instead, and needs no release. -ETIMEDOUT:
 * it is in the kernel and did not stop for a second. It may do so at any time, and
 * then waits for us: stop_late() from time to time until that is true, or this
 * thread of ours ends.
 */
int stop_wait(uint32_t tid, bool own);
/* Lets it go if it has stopped now; true also if it has ended. */
bool stop_late(uint32_t tid, bool own);
/* Goes on as if nothing had been. */
void stop_release(uint32_t tid, bool own);

#endif
