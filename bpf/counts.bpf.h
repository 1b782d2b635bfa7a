/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Begin and end of a call, counted. */

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY: an answer, not an error */

static __always_inline struct gbpf_thread *thread_at(u32 slot)
{
	return slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&threads, &slot);
}

static __always_inline struct gbpf_thread *thread_find(u64 pid_tgid)
{
	return thread_at(table_find(threads_keys, GBPF_THREADS, pid_tgid));
}

static __noinline struct gbpf_thread *thread_new(u64 pid_tgid)
{
	u32 slot = table_get(threads_keys, GBPF_THREADS, pid_tgid, &counters.threads_full);
	u32 tid = (u32)pid_tgid;
	struct gbpf_thread *t = thread_at(slot);

	if (!t)
		return NULL;
	t->pid = pid_tgid >> 32;
	t->tid = tid;
	__sync_fetch_and_or(&calling[tid / 64 % GBPF_FILTER_WORDS], 1ULL << tid % 64);
	return t;
}

static __noinline void trip(struct gbpf_thread *t)
{
	struct gbpf_trip *r;

	t->tripped = t->period;
	__sync_fetch_and_add(&counters.trips, 1);
	r = ring_reserve(sizeof(*r));
	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), (u64)t->pid << 32 | t->tid, 0,
		 GBPF_TAG(0, GBPF_REC_TRIP, 0));
	r->spent = t->period_spent;
	ring_submit(r);
}

/* What this hit and its return cost the thread. */
static __noinline void spend(struct gbpf_thread *t, u32 hot, u32 cost)
{
	t->spent[hot] += cost;
	if (t->period != mon.period) {
		t->period = mon.period;
		t->period_spent = 0;
	}
	t->period_spent += cost;
	if (mon.allowance && t->period_spent > mon.allowance && t->tripped != t->period)
		trip(t);
}

/* Masked where it is used: verifiers lose track of a bound that was checked before. */
static __always_inline struct gbpf_open *open_at(struct gbpf_thread *t, u32 i)
{
	barrier_var(i);
	return &t->open[i & (GBPF_NESTING - 1)];
}

/* Its window has closed: its return was not seen, or will not be. */
static __always_inline bool open_stale(const struct gbpf_open *o)
{
	u32 state;

	if (!(o->hot & 1))
		return false;
	state = image_state[o->image & (GBPF_MAX_IMAGE - 1)];
	return !(state & GBPF_IMAGE_OPEN) || state / GBPF_IMAGE_WINDOW != o->window;
}

/* Is the thread in a call, as far as is known? The outermost one; else NULL. */
static __always_inline struct gbpf_open *open_outermost(struct gbpf_thread *t)
{
	u32 i, depth = t->depth;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_NESTING; i++) {
		if (i >= depth)
			break;
		if (!open_stale(open_at(t, i)))
			return open_at(t, i);
	}
	return NULL;
}

/* A call below this stack pointer, or at it, is over, however it ended. */
static __noinline void unwind(struct gbpf_thread *t, u32 sp)
{
	u32 i, depth = t->depth;
	struct gbpf_open *o;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_NESTING; i++) {
		if (!depth)
			break;
		o = open_at(t, depth - 1);
		if (o->sp > sp && !open_stale(o))
			break;
		t->depth = --depth;
		__sync_fetch_and_add(&counters.unmatched, 1);
	}
}

static __noinline u32 kernel_slot(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 handle = PT_REGS_PARM1(ctx), other = PT_REGS_PARM2(ctx), key;
	struct gbpf_kernel *k;
	u32 slot;

	barrier_var(other); /* else one load from a computed address, which no verifier takes */
	if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_CONFIG)
		handle = other;
	key = handle ^ pid_tgid >> 32 << 44;
	if (!key)
		return NO_SLOT;
	slot = table_get(kernels_keys, GBPF_KERNELS, key, &counters.kernels_full);
	k = slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&kernels, &slot);
	if (!k)
		return NO_SLOT;
	if (!k->handle) {
		k->handle = handle;
		k->pid = pid_tgid >> 32;
	}
	__sync_fetch_and_add(&k->launches, 1);
	return slot;
}

/* What is moved or allocated: bytes, or elements of a size that the monitor knows. */
static __noinline u64 size_of_call(struct pt_regs *ctx, struct gbpf_thread *t, u64 cookie)
{
	u32 shape = COOKIE_SHAPE(cookie);

	if (shape >= GBPF_SHAPE_COPY2D && shape <= GBPF_SHAPE_RT_COPY3D) {
		argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OBJECT), &t->scratch[GBPF_ARG_OBJECT]);
		copy_fields(t->scratch, t->scratch[GBPF_ARG_OBJECT], shape - GBPF_SHAPE_COPY2D);
		return t->scratch[GBPF_ARG_BYTES] * t->scratch[GBPF_ARG_BYTES2];
	}
	if (!COOKIE_ARG(cookie, GBPF_ARG_BYTES))
		return 0;
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_BYTES), &t->scratch[0]);
	if (!COOKIE_ARG(cookie, GBPF_ARG_BYTES2))
		return t->scratch[0];
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_BYTES2), &t->scratch[1]);
	return t->scratch[0] * t->scratch[1];
}

static __noinline void open_arguments(struct pt_regs *ctx, struct gbpf_thread *t,
					   struct gbpf_open *o, u64 cookie)
{
	u32 class = o->class & ~GBPF_CLASS_WAITS;

	o->bytes = 0;
	if (class == GBPF_CLASS_COPY || class == GBPF_CLASS_ALLOC)
		o->bytes = size_of_call(ctx, t, cookie);
	if (class == GBPF_CLASS_ALLOC)
		argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OUT), &o->pointer);
	else if (class == GBPF_CLASS_FREE)
		argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OBJECT), &o->pointer);
}

static __noinline int call_open(struct pt_regs *ctx, struct gbpf_thread *t, u64 cookie, u32 cell,
				u32 kernel)
{
	struct gbpf_open *o;
	u32 depth = t->depth;

	if (depth >= GBPF_NESTING) {
		__sync_fetch_and_add(&counters.nesting, 1);
		return 0;
	}
	o = open_at(t, depth);
	o->sp = (u32)PT_REGS_SP(ctx);
	o->cell = cell;
	o->kernel = kernel;
	o->api = COOKIE_API(cookie);
	o->class = api_class[COOKIE_API(cookie)];
	o->hot = cookie >> 63 | t->timed << 1;
	o->image = COOKIE_IMAGE(cookie);
	o->window = image_state[o->image] / GBPF_IMAGE_WINDOW;
	open_arguments(ctx, t, o, cookie);
	o->ts = bpf_ktime_get_ns();
	t->depth = depth + 1;
	return 1;
}

/*
 * A launch in windows: is its return wanted? One in GBPF_SPARSE, by a sequence that keeps
 * step with no job (multiples of the golden ratio, Weyl 1916). And how long after the
 * launch before it came, by whether that one was timed.
 */
static __noinline bool launch_chosen(struct gbpf_thread *t, u64 state)
{
	struct gbpf_gap *g = &t->gap[t->timed & 1];
	u64 now = t->last, gap = now - t->gap_at;
	u32 early = (now - mon.opened < GBPF_EARLY_NS) << 1;

	if (!(state & GBPF_IMAGE_SPARSE)) {
		t->gap_at = 0;
		t->timed = early;
		return true;
	}
	if (t->gap_at) {
		g->count++;
		if (gap < GBPF_GAP_MOST_NS)
			g->below++;
		else
			gap = GBPF_GAP_MOST_NS;
		g->sum += gap;
		g->squares += gap * gap;
	}
	t->gap_at = now;
	t->timed = (u32)t->calls[1] * 0x9e3779b1u < 0xffffffffu / GBPF_SPARSE;
	t->timed |= early;
	return t->timed & 1;
}

/* One that is always probed, or does not launch: nothing is measured from here. */
static __always_inline void gap_ends(struct gbpf_thread *t)
{
	t->gap_at = t->timed = 0;
}

static __always_inline u32 cost_of(u32 class, bool returns)
{
	if (!returns)
		return class == GBPF_CLASS_LAUNCH ? mon.cost_untimed : mon.cost_entry;
	return class == GBPF_CLASS_LAUNCH ? mon.cost_launch : mon.cost_pair;
}

/* A call begins that is inside no other: has the thread been away? */
static __always_inline void call_follows(struct gbpf_thread *t, u64 now)
{
	u64 gap = now - t->last;

	if (!t->depth && t->last && (s64)gap >= GBPF_AWAY_NS)
		t->away += gap;
	t->last = now;
}

static __noinline int call_count(struct pt_regs *ctx, struct gbpf_thread *t, u64 pid_tgid,
				 u64 cookie)
{
	u32 class = api_class[COOKIE_API(cookie)], kernel = NO_SLOT, slot;
	bool returns = sw.returns && !(cookie & GBPF_COOKIE_ENTRY_ONLY);
	struct gbpf_cell *cell;

	slot = table_get(cells_keys, GBPF_CELLS, GBPF_CELL_KEY(pid_tgid >> 32, COOKIE_API(cookie)),
			 &counters.cells_full);
	cell = slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&cells, &slot);
	if (!cell)
		return 0;
	__sync_fetch_and_add(&cell->calls, 1);
	t->calls[cookie >> 63]++;
	unwind(t, (u32)PT_REGS_SP(ctx));
	call_follows(t, bpf_ktime_get_ns());
	if (class == GBPF_CLASS_LAUNCH) {
		t->launches++;
		kernel = kernel_slot(ctx, pid_tgid, cookie);
	}
	if (class == GBPF_CLASS_LAUNCH && cookie & GBPF_COOKIE_HOT)
		returns &= launch_chosen(t, image_state[COOKIE_IMAGE(cookie)]);
	else
		gap_ends(t);
	spend(t, cookie >> 63, cost_of(class, returns));
	return returns ? call_open(ctx, t, cookie, slot, kernel) : 0;
}

/*
 * Two links of an image overlap while one replaces the other: only one counts. A
 * window counts from when all its probes are there until the first goes.
 */
static __always_inline bool link_counts(u64 cookie)
{
	u32 state = image_state[COOKIE_IMAGE(cookie)];

	if (cookie & GBPF_COOKIE_HOT)
		return state & GBPF_IMAGE_OPEN;
	return (state & GBPF_IMAGE_PARITY) == (cookie >> 62 & 1);
}

/* Returns whether the return of this call is wanted, too. */
static __always_inline bool count_begin(struct pt_regs *ctx)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct gbpf_thread *t;
	u64 cookie;

	if (!wanted(pid_tgid >> 32))
		return false;
	cookie = bpf_get_attach_cookie(ctx);
	t = thread_find(pid_tgid);
	if (!t)
		t = thread_new(pid_tgid);
	if (!t)
		return false;
	if (link_counts(cookie))
		return call_count(ctx, t, pid_tgid, cookie);
	spend(t, cookie >> 63, mon.cost_entry);
	return false;
}

static __always_inline struct gbpf_proc *proc_get(u32 pid)
{
	u32 slot = table_get(procs_keys, GBPF_PROCS, (u64)pid, &counters.procs_full);
	struct gbpf_proc *p = slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&procs, &slot);

	if (p)
		p->pid = pid;
	return p;
}

static __noinline void live_add(u32 pid, u64 where, u64 bytes)
{
	struct live_key key = {.pid = pid};
	struct gbpf_proc *p = proc_get(pid);

	if (!p || bpf_probe_read_user(&key.pointer, 8, (void *)where) || !key.pointer)
		return;
	if (bpf_map_update_elem(&live, &key, &bytes, BPF_ANY)) {
		__sync_fetch_and_add(&counters.live_full, 1);
		return;
	}
	__sync_fetch_and_add(&p->live, 1);
	__sync_fetch_and_add(&p->live_bytes, (s64)bytes);
}

static __noinline void live_remove(u32 pid, u64 pointer)
{
	struct live_key key = {.pointer = pointer, .pid = pid};
	struct gbpf_proc *p = proc_get(pid);
	u64 *bytes = bpf_map_lookup_elem(&live, &key), was;

	if (!p || !bytes)
		return; /* allocated before we were there */
	was = *bytes;
	if (bpf_map_delete_elem(&live, &key))
		return;
	__sync_fetch_and_add(&p->live, -1);
	__sync_fetch_and_add(&p->live_bytes, -(s64)was);
}

static __noinline void cold_add(u32 pid, u64 ns)
{
	struct gbpf_proc *p = proc_get(pid);

	if (!p)
		return;
	__sync_fetch_and_add(&p->cold, 1);
	__sync_fetch_and_add(&p->cold_ns, ns);
}

static __always_inline u64 stands_for(const struct gbpf_open *o)
{
	return o->hot & 2 ? GBPF_SPARSE : 1;
}

static __always_inline void cell_end(struct gbpf_cell *c, const struct gbpf_open *o, u64 ns,
				     s32 ret)
{
	u32 bucket = gbpf_bucket(ns);

	__sync_fetch_and_add(&c->sum_ns, ns * stands_for(o));
	if (bucket < GBPF_BUCKETS && !(o->hot & 4))
		__sync_fetch_and_add(&c->bucket[bucket], stands_for(o));
	if (ns > c->max_ns)
		c->max_ns = ns; /* two at once may lose the smaller one, or rarely the larger */
	if (ret && ret != NOT_READY)
		__sync_fetch_and_add(&c->errors, stands_for(o));
	else if (o->bytes)
		__sync_fetch_and_add(&c->bytes, o->bytes);
	if (ns > GBPF_SLOW_NS && o->class == GBPF_CLASS_LAUNCH)
		__sync_fetch_and_add(&c->slow, stands_for(o));
}

static __noinline void class_end(const struct gbpf_open *o, u32 pid, u64 ns, s32 ret)
{
	struct gbpf_kernel *k;
	u32 slot = o->kernel;

	switch (o->class & ~GBPF_CLASS_WAITS) {
	case GBPF_CLASS_LAUNCH:
		k = slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&kernels, &slot);
		if (k)
			__sync_fetch_and_add(&k->sum_ns, ns * stands_for(o));
		break;
	case GBPF_CLASS_ALLOC:
		if (!ret)
			live_add(pid, o->pointer, o->bytes);
		break;
	case GBPF_CLASS_FREE:
		if (!ret)
			live_remove(pid, o->pointer);
		break;
	case GBPF_CLASS_MODULE:
		cold_add(pid, ns);
		break;
	}
}

/* The innermost call that was entered with this stack pointer; whatever is inside it is over. */
static __always_inline struct gbpf_open *call_close(struct gbpf_thread *t, u32 sp, u32 api)
{
	u32 i, at = t->depth;
	struct gbpf_open *o;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_NESTING; i++) {
		if (!at)
			break;
		o = open_at(t, --at);
		if (o->sp == sp && o->api == api) {
			t->depth = at;
			return o;
		}
	}
	return NULL;
}

static __noinline void count_return(struct pt_regs *ctx, struct gbpf_thread *t, u64 cookie, u64 now)
{
	struct gbpf_open *o = call_close(t, (u32)PT_REGS_SP(ctx) - 8, COOKIE_API(cookie));
	s32 ret = (s32)PT_REGS_RC(ctx);
	struct gbpf_cell *cell;
	u64 ns;

	if (!o) {
		__sync_fetch_and_add(&counters.unmatched, 1);
		return;
	}
	ns = now - o->ts;
	ns = ns > mon.inside_ns ? ns - mon.inside_ns : 0;
	if (!t->depth || !open_outermost(t)) {
		t->time[o->hot & 1][!!(o->class & GBPF_CLASS_WAITS)] += ns * stands_for(o);
		t->last = now;
	}
	cell = bpf_map_lookup_elem(&cells, &o->cell);
	if (cell)
		cell_end(cell, o, ns, ret);
	class_end(o, t->pid, ns, ret);
}

static __always_inline void count_end(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(); /* before anything that takes time */
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct gbpf_thread *t;

	if (!bit_test(pid_tgid >> 32))
		return;
	t = thread_find(pid_tgid);
	if (t)
		count_return(ctx, t, bpf_get_attach_cookie(ctx), now);
}
