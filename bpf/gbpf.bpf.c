// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One event path for every API: what a site is comes in its attach cookie.
 *
 * Rules that keep targets safe, each learnt from a failure (docs/architecture.md):
 * stacks stay under 64 bytes, so that no kernel gives a program a private stack
 * while uprobes are preemptible; nothing is kept per CPU, because a program can
 * be preempted between two of its instructions; no state is needed to pair a
 * call's begin with its end.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "gbpf.h"
#include "steps.h"
#include "switches.h"
#include "common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a template: the loader makes the real ones */
};

/* Rings are sharded by CPU, so that two CPUs do not fight for one lock. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* What a return must know of its entry: only for calls with an out argument. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* thread and API */
	__type(value, struct gbpf_pending);
} pendings SEC(".maps");

/* A run of queries of one thread that answered "not ready", see poll_*(). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* thread and level */
	__type(value, struct gbpf_poll_state);
} polls SEC(".maps");

struct gbpf_counters counters;	  /* read by the loader */
__u8 name_offset[GBPF_MAX_IMAGE]; /* of the name pointer in a handle; GBPF_NO_NAMES: unknown */
__u64 named[GBPF_NAMED_SLOTS];	  /* handles whose name was sent: two-way cache */
__u32 name_generation[GBPF_NAME_GENERATIONS]; /* by process: bumped when modules go */
const struct gbpf_pending no_pending;
const struct gbpf_poll_state no_poll;

static __always_inline void *ring_reserve(u64 size)
{
	u32 shard = bpf_get_smp_processor_id() & sw.ring_mask;
	void *ring = bpf_map_lookup_elem(&rings, &shard);
	void *record = ring ? bpf_ringbuf_reserve(ring, size, 0) : NULL;

	if (!record)
		__sync_fetch_and_add(&counters.ring_full, 1);
	return record;
}

/* No wake-up an event: the loader looks by itself, or is woken by ring_urgent(). */
static __always_inline void ring_submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* What comes before a window, or after it, is not kept. */
static __always_inline void call_submit(struct gbpf_hdr *r)
{
	if (sw.gate || r->ts < sw.gate_begin)
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
	else
		ring_submit(r);
}

#include "names.bpf.h"
#include "steps.bpf.h"
#include "polls.bpf.h"
#include "copies.bpf.h"
#include "calls.bpf.h"

static __always_inline void task_execs(u32 pid)
{
	name_forget(pid);
}

static __always_inline void task_thread_ends(u32 pid, u32 tid)
{
	poll_interrupt(tid);
}

static __always_inline void task_ends(u32 pid)
{
	name_forget(pid);
}

#include "tasks.bpf.h"

/*
 * The three rungs. Where a session exists, one program sees both ends of a
 * call. On return the instruction pointer is the return address; on entry it
 * is the function itself. (bpf_session_is_return() says the same, but changed
 * its signature in 7.0.)
 */
SEC("uprobe")
int gbpf_session(struct pt_regs *ctx)
{
	if (PT_REGS_IP(ctx) != bpf_get_func_ip(ctx)) {
		call_end(ctx);
		return 0;
	}
	return call_begin(ctx) ? 0 : 1; /* 1: spare this call the return probe */
}

SEC("uprobe")
int gbpf_multi_entry(struct pt_regs *ctx)
{
	call_begin(ctx);
	return 0;
}

SEC("uretprobe")
int gbpf_multi_return(struct pt_regs *ctx)
{
	if (wanted(bpf_get_current_pid_tgid() >> 32))
		call_end(ctx);
	return 0;
}

SEC("uprobe")
int gbpf_single_entry(struct pt_regs *ctx)
{
	call_begin(ctx);
	return 0;
}

SEC("uretprobe")
int gbpf_single_return(struct pt_regs *ctx)
{
	if (wanted(bpf_get_current_pid_tgid() >> 32))
		call_end(ctx);
	return 0;
}
