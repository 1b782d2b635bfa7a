// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sees functions of CUPTI called by somebody who is not the sidecar: where the caller will
 * go on is on top of the stack when a function is entered.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "foreign.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GBPF_FOREIGN_PROCESSES);
	__type(key, u32);
	__type(value, struct gbpf_foreign_process);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} calls SEC(".maps");

static __always_inline u64 return_address(struct pt_regs *ctx)
{
	u64 address = 0;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_user(&address, sizeof(address), (void *)PT_REGS_SP(ctx));
#else
	address = PT_REGS_RET(ctx);
#endif
	return address;
}

static __always_inline bool known(const struct gbpf_foreign_process *p, u64 from)
{
	u32 i;

	for (i = 0; i < GBPF_FOREIGN_RANGES; i++)
		if (from >= p->ranges[i].begin && from < p->ranges[i].end)
			return true;
	return false;
}

SEC("uprobe")
int gbpf_foreign(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct gbpf_foreign_process *p;
	struct gbpf_foreign_call *c;
	u32 pid = id >> 32;

	p = bpf_map_lookup_elem(&watched, &pid);
	if (!p || known(p, return_address(ctx)))
		return 0;
	c = bpf_ringbuf_reserve(&calls, sizeof(*c), 0);
	if (!c)
		return 0;
	c->ts = bpf_ktime_get_ns();
	c->pid = pid;
	c->tid = (u32)id;
	c->function = bpf_get_attach_cookie(ctx);
	bpf_ringbuf_submit(c, BPF_RB_FORCE_WAKEUP);
	return 0;
}
