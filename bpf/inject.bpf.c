// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keeps a thread that has just completed a system call from returning to its
 * program, for the moment that the loader needs to ask it to stop: asked any other
 * time, it could be sleeping in the next one, which would be cut short. Nothing of
 * the target is changed, and time ends the wait if the loader does not.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "inject.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SPINS_MAX (1 << 20)
#define FUTEX 202
#define FUTEX_WAIT_BITSET 9
#define FUTEX_COMMAND 0x7f
#define EINTR 4
#define ERESTART_FIRST 512 /* ERESTARTSYS (linux/errno.h, the kernel's own) */
#define ERESTART_LAST 530

struct gbpf_inject_shared shared;

struct spinning {
	u64 tid, until;
};

static long spin(u32 n, struct spinning *s)
{
	u64 held = GBPF_INJECT_WORD(s->tid, GBPF_INJECT_HELD);
	u64 armed = GBPF_INJECT_WORD(s->tid, GBPF_INJECT_ARMED);
	u64 busy = GBPF_INJECT_WORD(s->tid, GBPF_INJECT_BUSY);
	u64 word = *(volatile u64 *)&shared.word, now;

	if (word != held && word != armed)
		return 1;
	now = bpf_ktime_get_ns();
	if (now < s->until)
		return 0;
	if (word == held) {
		if (__sync_val_compare_and_swap(&shared.word, held, GBPF_INJECT_IDLE) != held)
			return 0; /* armed this moment */
	}
	if (word == armed) {
		if (now < s->until + GBPF_INJECT_ARMED_NS)
			return 0;
		__sync_val_compare_and_swap(&shared.word, armed, busy);
	}
	__sync_fetch_and_add(&shared.late, 1);
	return 1;
}

static __noinline void hold(u64 tid, u64 ip, u64 ax)
{
	struct spinning s = {.tid = tid};
	u64 now = bpf_ktime_get_ns();

	if (now > *(volatile u64 *)&shared.beat + GBPF_INJECT_BEAT_NS) {
		shared.missed_cpu = bpf_get_smp_processor_id();
		__sync_fetch_and_add(&shared.missed, 1);
		return; /* the loader has not got a CPU now: perhaps this one was its */
	}
	if (__sync_val_compare_and_swap(&shared.word, GBPF_INJECT_IDLE,
					GBPF_INJECT_WORD(tid, GBPF_INJECT_BUSY)))
		return;
	shared.held_at = now;
	shared.ip = ip;
	shared.ax = ax;
	__sync_val_compare_and_swap(&shared.word, GBPF_INJECT_WORD(tid, GBPF_INJECT_BUSY),
				    GBPF_INJECT_WORD(tid, GBPF_INJECT_HELD));
	s.until = now + GBPF_INJECT_HELD_NS;
	bpf_loop(SPINS_MAX, spin, &s, 0);
}

#ifdef __TARGET_ARCH_x86
static __always_inline bool completed(u64 result)
{
	s64 error = -(s64)result;

	return error != EINTR && (error < ERESTART_FIRST || error > ERESTART_LAST);
}

static __always_inline bool wanted(u64 nr, u64 option)
{
	if (nr >= GBPF_INJECT_CALLS || !(shared.calls[nr / 64] >> (nr % 64) & 1))
		return false;
	/* The plain wait is that of locks, the allocator's among them. */
	return nr != FUTEX || (option & FUTEX_COMMAND) == FUTEX_WAIT_BITSET;
}

static __always_inline bool in_ranges(u64 ip)
{
	u32 i;

	for (i = 0; i < GBPF_INJECT_RANGES; i++)
		if (i < shared.ranges_count && ip >= shared.ranges[i][0] &&
		    ip < shared.ranges[i][1])
			return true;
	return false;
}

SEC("raw_tp/sys_exit")
int gbpf_inject(struct bpf_raw_tracepoint_args *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct pt_regs regs;

	if (id >> 32 != shared.tgid || (u32)id == *(volatile u32 *)&shared.skip ||
	    !completed(ctx->args[1]) ||
	    *(volatile u64 *)&shared.word != GBPF_INJECT_IDLE)
		return 0;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)ctx->args[0]) ||
	    !wanted(regs.orig_ax, regs.si))
		return 0;
	if (!in_ranges(regs.ip)) {
		__sync_fetch_and_add(&shared.elsewhere, 1);
		return 0;
	}
	__sync_fetch_and_add(&shared.passed, 1);
	hold((u32)id, regs.ip, regs.ax);
	return 0;
}
#endif
