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
#include "switches.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* libbpf before 1.2 does not have it */
#ifndef PT_REGS_PARM6
#if defined(__TARGET_ARCH_x86)
#define PT_REGS_PARM6(x) ((x)->r9)
#else
#define PT_REGS_PARM6(x) ((x)->user_regs.regs[5])
#endif
#endif

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

struct gbpf_switches sw;	  /* set by the loader, at any time */
struct gbpf_counters counters;	  /* read by the loader */
__u64 filter[GBPF_FILTER_WORDS];	  /* one bit a process id */
__u8 name_offset[GBPF_MAX_IMAGE]; /* of the name pointer in a handle; GBPF_NO_NAMES: unknown */
__u64 named[GBPF_NAMED_SLOTS];	  /* handles whose name was sent: two-way cache */
__u32 name_generation[GBPF_NAME_GENERATIONS]; /* by process: bumped when modules go */
const struct gbpf_pending no_pending;
const struct gbpf_poll_state no_poll;

#define COOKIE_API(c) ((u32)(c) & 0xfff)
#define COOKIE_TAG(c, type) (COOKIE_API(c) | (type) << 12 | (u32)((c) >> 12 & 0xffff) << 16)
#define COOKIE_IMAGE(c) ((u32)((c) >> 12) & 0xffff)
#define COOKIE_SHAPE(c) ((u32)((c) >> 28) & 0xf)
#define COOKIE_ARG(c, a) ((u32)((c) >> (32 + 4 * (a))) & 0xf)
#define COOKIE_LEVEL(c) ((u32)((c) >> 60) & 1)

static __always_inline bool bit_test(u32 pid)
{
	return filter[pid / 64 % GBPF_FILTER_WORDS] >> (pid % 64) & 1;
}

static __always_inline void bit_set(u32 pid)
{
	__sync_fetch_and_or(&filter[pid / 64 % GBPF_FILTER_WORDS], 1ULL << pid % 64);
}

/*
 * Where all of a cgroup or machine are wanted, whoever calls something gets its
 * bit: then its exec and exit are told, however soon they come.
 */
static __always_inline bool wanted(u32 pid)
{
	u32 mode = sw.mode;

	if (mode == GBPF_MODE_OFF)
		return false;
	if (bit_test(pid))
		return true;
	if (mode == GBPF_MODE_PIDS || pid == sw.self)
		return false;
	if (mode == GBPF_MODE_CGROUP &&
	    bpf_get_current_ancestor_cgroup_id(sw.cgroup_level) != sw.cgroup_id)
		return false;
	bit_set(pid);
	return true;
}

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

static __always_inline void hdr_fill(struct gbpf_hdr *h, u64 now, u64 pid_tgid, u64 sp, u32 tag)
{
	h->ts = now;
	h->pid = pid_tgid >> 32;
	h->tid = (u32)pid_tgid;
	h->sp = (u32)sp;
	h->tag = tag;
}

/*
 * An argument by position (gbpf.h): 1..6 registers, 7.. above the return
 * address. Written straight to where it is wanted, to spare the stack; a
 * failed read leaves zero there.
 */
static __always_inline void argument(struct pt_regs *ctx, u32 position, u64 *to)
{
	switch (position) {
	case 0:
		*to = 0;
		break;
	case 1:
		*to = PT_REGS_PARM1(ctx);
		break;
	case 2:
		*to = PT_REGS_PARM2(ctx);
		break;
	case 3:
		*to = PT_REGS_PARM3(ctx);
		break;
	case 4:
		*to = PT_REGS_PARM4(ctx);
		break;
	case 5:
		*to = PT_REGS_PARM5(ctx);
		break;
	case 6:
		*to = PT_REGS_PARM6(ctx);
		break;
	default:
		bpf_probe_read_user(to, 8, (void *)(PT_REGS_SP(ctx) + 8 * (position - 6)));
	}
}

#include "names.bpf.h"
#include "polls.bpf.h"
#include "calls.bpf.h"
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
