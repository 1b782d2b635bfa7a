/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A loop around cuEventQuery() is one wait, not a million calls. Queries of a
 * thread that say "not ready" about one object, at most POLL_GAP apart and with
 * no other CUDA call between, are summed here and sent as one record: when the
 * answer changes, when the thread does something else, and at the latest every
 * POLL_SEGMENT, so that a wait still going on is seen.
 */
#define POLL_NOT_READY 600 /* CUDA_ERROR_NOT_READY and cudaErrorNotReady */
#define POLL_GAP 1000000ULL
#define POLL_SEGMENT 100000000ULL

static __always_inline u64 poll_key(u64 pid_tgid, u32 level)
{
	return (pid_tgid & 0xffffffff) << 1 | level;
}

static __always_inline void poll_send(struct gbpf_poll_state *s)
{
	struct gbpf_poll *p;

	if (!s->count)
		return;
	__sync_fetch_and_sub(&counters.polls_open, 1);
	p = ring_reserve(sizeof(*p));
	if (p) {
		p->hdr.ts = s->first;
		p->hdr.pid = s->pid;
		p->hdr.tid = s->tid;
		p->hdr.sp = s->sp;
		p->hdr.tag = s->tag;
		p->object = s->object;
		p->last_end = s->last_end;
		p->inside = s->inside;
		p->min = s->min;
		p->max = s->max;
		p->count = s->count;
		p->ret = s->ret;
		call_submit(&p->hdr);
	}
	s->count = 0;
}

static __noinline void poll_begin(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 key = poll_key(pid_tgid, COOKIE_LEVEL(cookie));
	struct gbpf_poll_state *s = bpf_map_lookup_elem(&polls, &key);

	if (!s) {
		bpf_map_update_elem(&polls, &key, &no_poll, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&polls, &key);
		if (!s) {
			__sync_fetch_and_add(&counters.state_full, 1);
			return;
		}
	}
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OBJECT), &s->entered_object);
	if (s->count && s->first < sw.gate_begin)
		poll_send(s); /* what the loader took when that window ended */
	if (s->count && (s->object != s->entered_object ||
			 s->tag != COOKIE_TAG(cookie, GBPF_REC_POLL)))
		poll_send(s);
	if (!s->count) {
		s->tag = COOKIE_TAG(cookie, GBPF_REC_POLL);
		s->sp = (u32)PT_REGS_SP(ctx);
		s->pid = pid_tgid >> 32;
		s->tid = (u32)pid_tgid;
	}
	s->entered = bpf_ktime_get_ns();
}

static __noinline void poll_end(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 key = poll_key(pid_tgid, COOKIE_LEVEL(cookie));
	struct gbpf_poll_state *s = bpf_map_lookup_elem(&polls, &key);
	u64 now = bpf_ktime_get_ns(), inside;

	if (!s || !s->entered || sw.gate)
		return; /* entered before the probes were there, or the loader takes it now */
	inside = now - s->entered;
	if (s->count && (s->entered - s->last_end > POLL_GAP ||
			 s->entered - s->first > POLL_SEGMENT))
		poll_send(s);
	if (!s->count) {
		s->object = s->entered_object;
		s->first = s->entered;
		s->inside = 0;
		s->min = (u32)-1;
		s->max = 0;
		__sync_fetch_and_add(&counters.polls_open, 1);
	}
	s->entered = 0;
	s->last_end = now;
	s->inside += inside;
	if (inside > (u32)-1)
		inside = (u32)-1;
	if (inside < s->min)
		s->min = inside;
	if (inside > s->max)
		s->max = inside;
	s->count++;
	s->ret = (s32)PT_REGS_RC(ctx);
	if (s->ret != POLL_NOT_READY)
		poll_send(s);
}

static __noinline void poll_interrupt_level(u64 pid_tgid, u32 level)
{
	u64 key = poll_key(pid_tgid, level);
	struct gbpf_poll_state *s = bpf_map_lookup_elem(&polls, &key);

	/* a driver call inside a runtime query does not end the runtime's wait */
	if (s && !s->entered)
		poll_send(s);
}

/* The thread calls something else: what it polled for until now is over. */
static __always_inline void poll_interrupt(u64 pid_tgid)
{
	if (!counters.polls_open || sw.gate)
		return;
	poll_interrupt_level(pid_tgid, 0);
	poll_interrupt_level(pid_tgid, 1);
}
