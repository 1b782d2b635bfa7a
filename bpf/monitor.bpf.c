// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counting in the kernel: no record a call. The rules of gbpf.bpf.c hold here,
 * too. What a call was entered with is kept by thread, and dropped when the
 * thread's stack pointer shows that the call is gone, or when the window that
 * saw it has closed.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "gbpf.h"
#include "switches.h"
#include "monitor.h"
#include "common.bpf.h"
#include "tables.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Rare things, each of which wakes the monitor: processes that begin and end, trips. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} notices SEC(".maps");

struct live_key {
	u64 pointer;
	u32 pid, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GBPF_LIVE);
	__type(key, struct live_key);
	__type(value, u64); /* bytes */
} live SEC(".maps");

struct gbpf_monitor_switches mon;
struct gbpf_monitor_counters counters;
__u8 api_class[GBPF_MAX_API];	 /* enum gbpf_class */
__u32 image_state[GBPF_MAX_IMAGE]; /* enum gbpf_image_state */
__u8 syscall_wait[GBPF_SYSCALLS];	 /* enum gbpf_wait: what a thread waits for in one */
__u64 calling[GBPF_FILTER_WORDS];	 /* a bit for each thread that has a slot */

static __always_inline void *ring_reserve(u64 size)
{
	void *record = bpf_ringbuf_reserve(&notices, size, 0);

	if (!record)
		__sync_fetch_and_add(&counters.ring_full, 1);
	return record;
}

static __always_inline void ring_submit(void *record)
{
	bpf_ringbuf_submit(record, 0);
}

#include "copies.bpf.h"
#include "counts.bpf.h"
#include "waits.bpf.h"

static __always_inline void task_execs(u32 pid)
{
}

static __always_inline void task_thread_ends(u32 pid, u32 tid)
{
	thread_ends(pid, tid);
}

static __always_inline void task_ends(u32 pid)
{
}

#include "tasks.bpf.h"

SEC("uprobe")
int monitor_session(struct pt_regs *ctx)
{
	if (PT_REGS_IP(ctx) != bpf_get_func_ip(ctx)) {
		count_end(ctx);
		return 0;
	}
	return count_begin(ctx) ? 0 : 1;
}

SEC("uprobe")
int monitor_multi_entry(struct pt_regs *ctx)
{
	count_begin(ctx);
	return 0;
}

SEC("uretprobe")
int monitor_multi_return(struct pt_regs *ctx)
{
	count_end(ctx);
	return 0;
}

SEC("uprobe")
int monitor_single_entry(struct pt_regs *ctx)
{
	count_begin(ctx);
	return 0;
}

SEC("uretprobe")
int monitor_single_return(struct pt_regs *ctx)
{
	count_end(ctx);
	return 0;
}
