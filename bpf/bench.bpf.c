// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs for benchmarks: empty ones, which are the floor of what a probe can
 * cost, and one that fills the rings as fast as it is told to.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "gbpf.h"
#include "bench.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* One program an attach type, loaded as such by the loader. */
SEC("uprobe")
int empty_multi_entry(struct pt_regs *ctx)
{
	return 0;
}

SEC("uretprobe")
int empty_multi_return(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe")
int empty_session(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe")
int empty_single_entry(struct pt_regs *ctx)
{
	return 0;
}

SEC("uretprobe")
int empty_single_return(struct pt_regs *ctx)
{
	return 0;
}

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a template, as in gbpf.bpf.c */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct bench_fill_options options;

static __always_inline u32 random_below(struct bench_fill *f, u32 limit)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (u32)(f->random >> 11) % limit;
}

static __always_inline void header(struct bench_fill *f, struct gbpf_hdr *h, u32 api, u32 type,
				   u32 sp)
{
	h->ts = f->clock;
	h->pid = options.pid;
	h->tid = f->tid;
	h->sp = 0x7ffe1000 - sp * 16;
	h->tag = GBPF_TAG(api, type, 1);
}

static __always_inline bool put_launch(struct bench_fill *f, void *ring, u32 kernel)
{
	struct gbpf_begin_launch *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);

	if (!r)
		return false;
	header(f, &r->hdr, options.launch, GBPF_REC_BEGIN_LAUNCH, kernel);
	r->func = 0x55d0c4a00000 + kernel * 1616;
	r->grid[0] = 64 + kernel * 96;
	r->grid[1] = kernel % 3 + 1;
	r->grid[2] = 1;
	r->block_x = 32 << kernel % 5;
	r->block_y = 1;
	r->pad = 0;
	r->block_z = 1;
	r->smem = kernel % 4 * 1024;
	r->stream = 0x55d0b1234560;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline bool put_copy(struct bench_fill *f, void *ring, u32 which)
{
	struct gbpf_begin_call *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);

	if (!r)
		return false;
	header(f, &r->hdr, options.copy, GBPF_REC_BEGIN_CALL, which);
	r->arg[GBPF_ARG_OBJECT] = 0x7f3200000000 + which * 0x200000ULL;
	r->arg[GBPF_ARG_BYTES] = 16384;
	r->arg[GBPF_ARG_BYTES2] = 0;
	r->arg[GBPF_ARG_STREAM] = 0x55d0b1234560;
	r->arg[GBPF_ARG_SOURCE] = 0x7f1a40000000 + random_below(f, 512) * 0x1000ULL;
	r->arg[GBPF_ARG_KIND] = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline bool put_sync(struct bench_fill *f, void *ring)
{
	struct gbpf_begin_object *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);

	if (!r)
		return false;
	header(f, &r->hdr, options.sync, GBPF_REC_BEGIN_OBJECT, 0);
	r->object = 0x55d0b1234560;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline bool put_end(struct bench_fill *f, void *ring, u32 api, u32 sp)
{
	struct gbpf_end *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);

	if (!r)
		return false;
	header(f, &r->hdr, api, GBPF_REC_END, sp);
	r->ret = 0;
	r->pad = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

/* 80 calls are a training step: 76 launches, three copies, and a wait. */
static __always_inline bool put(struct bench_fill *f, void *ring, u32 at)
{
	u32 call = at / 2 % 80;

	if (call == 79)
		return at & 1 ? put_end(f, ring, options.sync, 0) : put_sync(f, ring);
	if (call >= 76)
		return at & 1 ? put_end(f, ring, options.copy, call - 76)
			      : put_copy(f, ring, call - 76);
	return at & 1 ? put_end(f, ring, options.launch, call % 12)
		      : put_launch(f, ring, call % 12);
}

static long fill_one(u32 i, struct bench_fill **arg)
{
	struct bench_fill *f = *arg;
	u32 shard = bpf_get_smp_processor_id() & options.ring_mask;
	void *ring = bpf_map_lookup_elem(&rings, &shard);

	f->clock += 1500 + random_below(f, 4000);
	if (!ring || !put(f, ring, f->position)) {
		f->refused++;
		if (options.stop_when_full)
			return 1;
	} else {
		f->written++;
	}
	f->position++;
	return 0;
}

SEC("syscall")
int fill(struct bench_fill *f)
{
	struct bench_fill *arg = f;

	if (!f->clock) {
		f->clock = bpf_ktime_get_ns();
		f->random = f->clock | 1;
	}
	bpf_loop(f->count, fill_one, &arg, 0);
	return 0;
}
