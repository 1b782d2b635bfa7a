// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keeps a thread that has just mapped a CUDA library nobody knew from going on,
 * until the loader took it over. The dynamic linker calls the empty function
 * _dl_debug_state() after it mapped libraries and before their constructors run;
 * a program there looks through the linker's list and, if need be, spins for the
 * moment that the loader needs to stop the thread. Nothing of the target is
 * changed and nothing must be undone: when the loader dies, time ends it.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "hold.h"
#include "switches.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define LIBRARIES_MAX 4096
#define SPINS_MAX (1 << 22)
#define PIECE 256 /* bytes of a path looked at together */
#define PIECES 17 /* PATH_MAX and its NUL */
#define YIELD_NS 100000
#define BREAKPOINT 0xcc
#define RT_CONSISTENT 0

/* The leading fields of glibc's struct r_debug and struct link_map (<link.h>). */
struct linker_debug {
	u64 version, map, brk;
	u32 state, pad;
};

struct linker_entry {
	u64 addr, name, ld, next, prev;
};

/* What is known of a process: all up to its last library was looked at. */
struct hold_process {
	u64 mm; /* another one after execve() */
	u64 tail_at;
	struct linker_entry tail;
	u32 acknowledged; /* unprobed libraries that the loader knows of */
	u32 pad;
};

/* A thread's work, here and not on the stack. */
struct hold_walk {
	u64 debug_at, at, last_at, string, base, until, yield, image;
	struct linker_debug debug;
	struct linker_entry entry, last;
	u32 unprobed, sequence, pid;
	u8 byte, partial;
	char text[PIECE];
	struct hold_process nothing; /* stays zero */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hold_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* process id */
	__type(value, struct hold_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} held SEC(".maps");

/*
 * The .bss of the main programs, which is an array of one element: the loader
 * puts their map here, and says where the bits of wanted processes lie in it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} main_bss SEC(".maps");

const volatile __u32 filter_at; /* bytes */
struct gbpf_hold_shared shared;

static __noinline bool wanted(u32 pid)
{
	u32 zero = 0;
	void *bss = bpf_map_lookup_elem(&main_bss, &zero);

	if (!bss)
		return false;
	bss += filter_at;
	return ((u64 *)bss)[pid / 64 % GBPF_FILTER_WORDS] >> (pid % 64) & 1;
}

/* The pages are warm, the linker has just written there; else the slower way. */
static __noinline long read_target(void *to, u32 size, u64 from)
{
	if (!to || size > 64)
		return -1;
	if (!bpf_probe_read_user(to, size, (void *)from))
		return 0;
	return bpf_copy_from_user(to, size, (void *)from);
}

/* One piece of a path: where does its last component begin? */
static long piece_scan(u32 piece, struct hold_walk **ctx)
{
	struct hold_walk *w = *ctx;
	long len;
	u32 i;

	len = bpf_probe_read_user_str(w->text, PIECE, (void *)w->string);
	if (len <= 0)
		return 1;
	for (i = 0; i < PIECE && w->text[i]; i++)
		if (w->text[i] == '/')
			w->base = w->string + i + 1;
	w->string += PIECE - 1;
	return len < PIECE;
}

static __always_inline bool begins(const char *text, const char *with, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (text[i] != with[i])
			return false;
	return true;
}

static __always_inline u32 kind_of(const char *name)
{
	if (begins(name, "libcuda.so", 10))
		return GBPF_HOLD_DRIVER;
	if (begins(name, "libcudart", 9))
		return GBPF_HOLD_RUNTIME;
	if (begins(name, "libnccl", 7))
		return GBPF_HOLD_NCCL;
	return 0;
}

static __noinline u32 entry_kind(struct hold_walk *w)
{
	w->string = w->base = w->entry.name;
	bpf_loop(PIECES, piece_scan, &w, 0);
	if (bpf_probe_read_user_str(w->text, 16, (void *)w->base) <= 0)
		return 0;
	return kind_of(w->text);
}

static __always_inline bool site_probed(struct hold_walk *w, u64 address)
{
	if (!address)
		return false;
	if (bpf_copy_from_user(&w->byte, 1, (void *)(w->entry.addr + address)))
		return false;
	return w->byte == BREAKPOINT;
}

static long image_try(u32 i, struct hold_walk **ctx)
{
	struct hold_walk *w = *ctx;

	if (i >= GBPF_HOLD_IMAGES)
		return 1;
	if (!site_probed(w, shared.images[i].address[0]) ||
	    !site_probed(w, shared.images[i].address[1]) ||
	    !site_probed(w, shared.images[i].address[2]))
		return 0;
	w->image = i + 1;
	return 1;
}

/* One library of the linker's list. */
static long entry_look(u32 n, struct hold_walk **ctx)
{
	struct hold_walk *w = *ctx;

	if (!w->at || read_target(&w->entry, sizeof(w->entry), w->at))
		return 1;
	if (entry_kind(w) & shared.kinds) {
		w->image = 0;
		bpf_loop(shared.images_count, image_try, &w, 0);
		w->unprobed += !w->image;
	}
	w->last_at = w->at;
	w->last = w->entry;
	w->at = w->entry.next;
	return 0;
}

static __always_inline u64 *slot_of(struct hold_walk *w)
{
	return &shared.slots[w->sequence % GBPF_HOLD_SLOTS];
}

/* Time is up: go, unless the loader has just taken the thread and needs it a moment more. */
static __noinline long give_up(struct hold_walk *w, u64 now)
{
	u64 waiting = GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_WAITING);
	u64 taken = GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_TAKEN);
	u64 go = GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_GO), was;

	was = __sync_val_compare_and_swap(slot_of(w), waiting, go);
	if (was == taken && now >= w->until + GBPF_HOLD_GRACE_NS)
		was = __sync_val_compare_and_swap(slot_of(w), taken, go);
	else if (was == taken)
		return 0;
	if (was != go)
		__sync_fetch_and_add(&shared.timeouts, 1);
	return 1;
}

/*
 * No program may sleep, but reading through bpf_copy_from_user_task() is a place
 * where others get the CPU, on kernels without preemption too. Not at each turn:
 * it takes a lock that attaching wants.
 */
static long spin(u32 n, struct hold_walk **ctx)
{
	struct hold_walk *w = *ctx;
	u64 word = *(volatile u64 *)slot_of(w), now;

	if (word != GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_WAITING) &&
	    word != GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_TAKEN))
		return 1;
	now = bpf_ktime_get_ns();
	if (now >= w->until)
		return give_up(w, now);
	if (now >= w->yield) {
		w->yield = now + YIELD_NS;
		bpf_copy_from_user_task(&w->byte, 1, (void *)w->debug_at,
					bpf_get_current_task_btf(), 0);
	}
	return 0;
}

static __noinline bool hold(struct hold_walk *w)
{
	struct gbpf_hold_record *r = bpf_ringbuf_reserve(&held, sizeof(*r), 0);

	if (!r)
		return false;
	r->ts = bpf_ktime_get_ns();
	w->until = r->ts + GBPF_HOLD_WAIT_NS;
	w->sequence = __sync_fetch_and_add(&shared.sequence, 1) + 1;
	*(volatile u64 *)slot_of(w) = GBPF_HOLD_WORD(w->sequence, GBPF_HOLD_WAITING);
	r->pid = w->pid;
	r->tid = (u32)bpf_get_current_pid_tgid();
	r->sequence = w->sequence;
	r->libraries = w->unprobed;
	__sync_fetch_and_add(&shared.holds, 1);
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	bpf_loop(SPINS_MAX, spin, &w, 0);
	return true;
}

static __noinline struct hold_process *process_get(struct hold_walk *w, struct task_struct *task)
{
	struct hold_process *p = bpf_map_lookup_elem(&processes, &w->pid);
	u64 mm = (u64)BPF_CORE_READ(task, mm);

	if (p && p->mm == mm)
		return p;
	bpf_map_update_elem(&processes, &w->pid, &w->nothing, BPF_ANY);
	p = bpf_map_lookup_elem(&processes, &w->pid);
	if (p)
		p->mm = mm;
	return p;
}

/* The linker appends: what comes after a library looked at is all that is new. */
static __noinline void walk_begin(struct hold_walk *w, struct hold_process *p)
{
	w->unprobed = 0;
	w->partial = 0;
	w->last_at = 0;
	w->at = w->debug.map;
	if (!p->tail_at || read_target(&w->entry, sizeof(w->entry), p->tail_at))
		return;
	if (w->entry.addr != p->tail.addr || w->entry.name != p->tail.name ||
	    w->entry.ld != p->tail.ld || w->entry.prev != p->tail.prev)
		return;
	w->partial = 1;
	w->at = w->entry.next;
}

static __noinline void walk(struct hold_walk *w, struct hold_process *p)
{
	walk_begin(w, p);
	bpf_loop(LIBRARIES_MAX, entry_look, &w, 0);
	if (w->last_at) {
		p->tail_at = w->last_at;
		p->tail = w->last;
	}
	if (w->partial && w->unprobed) {
		if (hold(w))
			p->acknowledged += w->unprobed;
	} else if (!w->partial && w->unprobed > p->acknowledged) {
		if (hold(w))
			p->acknowledged = w->unprobed;
	} else if (!w->partial) {
		p->acknowledged = w->unprobed;
	}
}

/* The attach cookie is how far _r_debug lies behind _dl_debug_state. */
SEC("uprobe.s")
int gbpf_hold(struct pt_regs *ctx)
{
	u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct task_struct *task;
	struct hold_process *p;
	struct hold_walk *w;

	if (!wanted(pid))
		return 0;
	task = bpf_get_current_task_btf();
	w = bpf_task_storage_get(&walks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w)
		return 0;
	w->pid = pid;
	w->debug_at = PT_REGS_IP(ctx) + bpf_get_attach_cookie(ctx);
	if (read_target(&w->debug, sizeof(w->debug), w->debug_at) ||
	    w->debug.state != RT_CONSISTENT)
		return 0;
	p = process_get(w, task);
	if (p)
		walk(w, p);
	return 0;
}
