/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Step markers fire: steps.h says what follows. */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GBPF_STEP_PROCESSES);
	__type(key, u32);
	__type(value, struct gbpf_fired);
} fired SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GBPF_STEP_KERNELS);
	__type(key, struct gbpf_step_kernel);
	__type(value, u32);
} step_kernels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} marks SEC(".maps");

struct gbpf_steps steps; /* set by the loader */
const struct gbpf_fired no_fired;

static __noinline void step_mark(u64 pid_tgid, u64 number, u64 ts, u32 event)
{
	struct gbpf_mark *m = bpf_ringbuf_reserve(&marks, sizeof(*m), 0);

	if (!m)
		return; /* too many firings to tell of each: their numbers show the gap */
	m->ts = ts;
	m->number = number;
	m->pid = pid_tgid >> 32;
	m->tid = (u32)pid_tgid;
	m->event = event & 0xff;
	m->class = event >> 8;
	bpf_ringbuf_submit(m, (event & 0xff) == GBPF_MARK_FIRED ? BPF_RB_NO_WAKEUP
								: BPF_RB_FORCE_WAKEUP);
}

/* Only one of several threads that fire at once may act: whoever takes it away. */
static __always_inline bool step_take(__u64 *at, u64 number)
{
	u64 armed = *at;

	return armed && number + 1 >= armed && __sync_val_compare_and_swap(at, armed, 0) == armed;
}

/* What was recorded is earlier than ts: a record looks at the gate after it took its time. */
static __noinline void step_close(u64 pid_tgid, u64 number)
{
	if (!steps.through)
		sw.gate = steps.close_to;
	step_mark(pid_tgid, number, bpf_ktime_get_ns(), GBPF_MARK_CLOSE);
}

static __noinline void step_open(u64 pid_tgid, u64 number)
{
	u64 now = bpf_ktime_get_ns();

	steps.close_at = number + steps.open_for + 1;
	if (!steps.through) {
		sw.gate_begin = now;
		sw.gate = GBPF_GATE_OPEN;
	}
	step_mark(pid_tgid, number, now, GBPF_MARK_OPEN);
}

static __noinline void step_count(u64 pid_tgid, u64 number)
{
	u32 per_step = steps.per_step;

	steps.fired = number + 1;
	if (step_take(&steps.wake_at, number))
		step_mark(pid_tgid, number, bpf_ktime_get_ns(), GBPF_MARK_WAKE);
	if (step_take(&steps.close_at, number))
		step_close(pid_tgid, number);
	else if (per_step && number % per_step == steps.base && step_take(&steps.open_at, number))
		step_open(pid_tgid, number);
}

static __noinline void step_fire(u64 pid_tgid, u32 class)
{
	u32 pid = pid_tgid >> 32;
	struct gbpf_fired *f = bpf_map_lookup_elem(&fired, &pid);
	u64 number;

	if (!f) {
		bpf_map_update_elem(&fired, &pid, &no_fired, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&fired, &pid);
		if (!f) {
			__sync_fetch_and_add(&counters.state_full, 1);
			return;
		}
	}
	number = __sync_fetch_and_add(&f->count[class & 1], 1);
	if (steps.tell)
		step_mark(pid_tgid, number, bpf_ktime_get_ns(), GBPF_MARK_FIRED | class << 8);
	if (pid == steps.leader && class == steps.class)
		step_count(pid_tgid, number);
}

static __noinline void step_launch(u64 pid_tgid, u64 cookie, u64 handle)
{
	struct gbpf_step_kernel key = {.handle = handle, .pid = pid_tgid >> 32};

	name_handle(pid_tgid, cookie, handle);
	if (bpf_map_lookup_elem(&step_kernels, &key))
		step_fire(pid_tgid, GBPF_STEP_API);
}

/* Before the call is recorded: the window that it begins has it, the one that it ends has not. */
static __always_inline void step_marker(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	if (!COOKIE_API(cookie))
		step_fire(pid_tgid, GBPF_STEP_FUNCTION);
	else if (!steps.kernels)
		step_fire(pid_tgid, GBPF_STEP_API);
	else if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_CONFIG)
		step_launch(pid_tgid, cookie, PT_REGS_PARM2(ctx));
	else
		step_launch(pid_tgid, cookie, PT_REGS_PARM1(ctx));
}
