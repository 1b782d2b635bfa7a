/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that are born, execute and end. A child is wanted from its very
 * first instruction, because its bit is set before it runs; a bit goes when its
 * process ends, so that a reused process id starts clean. task_execs(),
 * task_thread_ends() and task_ends() are the includer's.
 */

static __always_inline void task_send(struct task_struct *task, u32 event)
{
	struct gbpf_process *r = ring_reserve(sizeof(*r));

	if (!r)
		return;
	r->hdr.ts = bpf_ktime_get_ns();
	r->hdr.pid = BPF_CORE_READ(task, tgid);
	r->hdr.tid = BPF_CORE_READ(task, pid);
	r->hdr.sp = 0;
	r->hdr.tag = GBPF_TAG(0, GBPF_REC_PROCESS, 0);
	r->event = event;
	r->parent = BPF_CORE_READ(task, real_parent, tgid);
	r->exit_code = BPF_CORE_READ(task, exit_code);
	r->pad = 0;
	r->start = BPF_CORE_READ(task, group_leader, start_boottime);
	BPF_CORE_READ_STR_INTO(&r->comm, task, comm);
	ring_submit(r);
}

SEC("raw_tp/sched_process_fork")
int gbpf_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	u32 parent_pid = BPF_CORE_READ(parent, tgid), pid = BPF_CORE_READ(child, tgid);

	if (parent_pid == pid || !sw.follow || !bit_test(parent_pid))
		return 0;
	bit_set(pid);
	task_send(child, GBPF_PROCESS_FORK);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int gbpf_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	u32 pid = BPF_CORE_READ(task, tgid);

	if (!bit_test(pid))
		return 0;
	task_execs(pid);
	task_send(task, GBPF_PROCESS_EXEC);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int gbpf_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	u32 pid = BPF_CORE_READ(task, tgid), tid = BPF_CORE_READ(task, pid);

	if (!bit_test(pid))
		return 0;
	task_thread_ends(pid, tid);
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0; /* other threads go on */
	task_send(task, GBPF_PROCESS_EXIT);
	bit_clear(pid);
	task_ends(pid);
	return 0;
}
