/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads that call CUDA do otherwise: each time one leaves a CPU, why, and
 * each time it comes back, how long it was away. Who else of its process ran
 * while it waited for a lock.
 */

static __always_inline bool thread_calls(u32 tid)
{
	return calling[tid / 64 % GBPF_FILTER_WORDS] >> (tid % 64) & 1;
}

static __always_inline void thread_ends(u32 pid, u32 tid)
{
	struct gbpf_thread *t;

	if (!thread_calls(tid))
		return;
	__sync_fetch_and_and(&calling[tid / 64 % GBPF_FILTER_WORDS], ~(1ULL << tid % 64));
	t = thread_find(GBPF_THREAD_KEY(pid, tid));
	if (t)
		t->ended = 1; /* its slot is the monitor's to give back, once it has read it */
}

/* The system call that a sleeping thread is in says what it waits for. */
static __always_inline u32 wait_of_syscall(void)
{
#if defined(__TARGET_ARCH_x86)
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 nr = 0;

	bpf_probe_read_kernel(&nr, sizeof(nr), &regs->orig_ax);
	if (nr < GBPF_SYSCALLS && syscall_wait[nr])
		return syscall_wait[nr];
#endif
	return GBPF_WAIT_OTHER;
}

static __always_inline u32 wait_kind(struct task_struct *task)
{
	if (!BPF_CORE_READ(task, __state))
		return GBPF_WAIT_RUNNABLE;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		return GBPF_WAIT_DISK;
	return wait_of_syscall();
}

static __always_inline void lock_begins(struct gbpf_thread *t, u64 now)
{
	struct gbpf_proc *p = proc_get(t->pid);

	if (p && !p->lock_since) {
		p->lock_tid = t->tid;
		p->lock_since = now;
	}
}

static __always_inline void lock_ends(struct gbpf_thread *t, u64 now)
{
	struct gbpf_proc *p = proc_get(t->pid);

	if (p && p->lock_since && p->lock_tid == t->tid) {
		p->lock_ns += now - p->lock_since;
		p->lock_since = 0;
	}
}

/*
 * The scheduler tells how long a thread wanted a CPU before it got one only once
 * it has run: take that part out of the wait before, which was counted whole.
 */
static __always_inline void runnable_correct(struct gbpf_thread *t, u64 run_delay)
{
	u64 part = run_delay - t->run_delay, *whole;
	u32 kind = t->off_wait, in = t->off_in;

	if (t->run_delay && kind != GBPF_WAIT_RUNNABLE && kind < GBPF_WAITS && in < GBPF_INS) {
		whole = &t->wait[in][kind];
		if (part > *whole)
			part = *whole;
		*whole -= part;
		t->wait[in][GBPF_WAIT_RUNNABLE] += part;
	}
	t->run_delay = run_delay;
}

static __noinline void thread_leaves(struct task_struct *task, struct gbpf_thread *t, u64 now)
{
	struct gbpf_open *o = open_outermost(t);

	runnable_correct(t, BPF_CORE_READ(task, sched_info.run_delay));
	t->switches++;
	t->gap_at = 0;
	t->spent[0] += mon.cost_switch;
	t->off_wait = wait_kind(task);
	t->off_in = !o			       ? GBPF_IN_NONE :
		    o->class & GBPF_CLASS_WAITS ? GBPF_IN_WAIT : GBPF_IN_DISPATCH;
	t->off_since = now;
	if (t->off_wait == GBPF_WAIT_LOCK && t->off_in == GBPF_IN_NONE)
		lock_begins(t, now);
}

static __noinline void thread_returns(struct gbpf_thread *t, u64 now)
{
	u32 kind = t->off_wait, in = t->off_in;
	u64 ns = now - t->off_since;

	if (!t->off_since)
		return;
	if (kind < GBPF_WAITS && in < GBPF_INS)
		t->wait[in][kind] += ns;
	if (in == GBPF_IN_NONE && kind != GBPF_WAIT_RUNNABLE && (s64)ns >= GBPF_AWAY_NS)
		t->asleep += ns;
	t->off_since = 0;
	if (kind == GBPF_WAIT_LOCK)
		lock_ends(t, now);
}

/* Keeps the few that ran longest: a newcomer takes the place of the least. */
static __always_inline void sibling_credit(struct gbpf_proc *p, u32 tid, u64 ns)
{
	u32 i, least = 0;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_SIBLINGS; i++) {
		if (p->siblings[i].tid == tid) {
			p->siblings[i].ns += ns;
			return;
		}
		if (p->siblings[i].ns < p->siblings[least & (GBPF_SIBLINGS - 1)].ns)
			least = i;
	}
	least &= GBPF_SIBLINGS - 1;
	if (p->siblings[least].ns < ns) {
		p->siblings[least].tid = tid;
		p->siblings[least].ns = ns;
	}
}

static __noinline void sibling_ran(struct task_struct *task, u32 pid, u32 tid, u64 now)
{
	u32 slot = table_find(procs_keys, GBPF_PROCS, (u64)pid);
	struct gbpf_proc *p = slot == NO_SLOT ? NULL : bpf_map_lookup_elem(&procs, &slot);
	u64 ran, since;

	if (!p)
		return;
	since = p->lock_since;
	if (!since || p->lock_tid == tid || now <= since)
		return;
	ran = BPF_CORE_READ(task, se.sum_exec_runtime) -
	      BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	sibling_credit(p, tid, ran < now - since ? ran : now - since);
}

SEC("raw_tp/sched_switch")
int monitor_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (void *)ctx->args[1], *next = (void *)ctx->args[2];
	u64 pid_tgid = bpf_get_current_pid_tgid(), now;
	u32 next_tid = BPF_CORE_READ(next, pid);
	struct gbpf_thread *t;

	if (bit_test(pid_tgid >> 32)) {
		now = bpf_ktime_get_ns();
		t = thread_calls((u32)pid_tgid) ? thread_find(pid_tgid) : NULL;
		if (t)
			thread_leaves(prev, t, now);
		sibling_ran(prev, pid_tgid >> 32, (u32)pid_tgid, now);
	}
	if (thread_calls(next_tid)) {
		t = thread_find(GBPF_THREAD_KEY(BPF_CORE_READ(next, tgid), next_tid));
		if (t)
			thread_returns(t, bpf_ktime_get_ns());
	}
	return 0;
}
