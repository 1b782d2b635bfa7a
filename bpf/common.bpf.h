/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every object that sits on the CUDA libraries shares: which processes are
 * wanted, the fields of a cookie, and how an argument is read.
 */
/* libbpf before 1.2 does not have it */
#ifndef PT_REGS_PARM6
#if defined(__TARGET_ARCH_x86)
#define PT_REGS_PARM6(x) ((x)->r9)
#else
#define PT_REGS_PARM6(x) ((x)->user_regs.regs[5])
#endif
#endif

struct gbpf_switches sw;	 /* set by the loader, at any time */
__u64 filter[GBPF_FILTER_WORDS]; /* one bit a process id */

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

static __always_inline void bit_clear(u32 pid)
{
	__sync_fetch_and_and(&filter[pid / 64 % GBPF_FILTER_WORDS], ~(1ULL << pid % 64));
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
