/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel names, sent once a handle. The driver keeps a pointer to the mangled
 * name in the object behind CUfunction and CUkernel (offset 8 in driver 580);
 * the layout is not documented, so the loader learns the offset and checks it.
 */

static __always_inline u64 name_key(u32 pid, u64 handle)
{
	u64 generation = name_generation[pid % GBPF_NAME_GENERATIONS];

	return handle ^ (u64)pid << 42 ^ generation * 0xd6e8feb86659fd93ULL;
}

static __always_inline u64 *name_set(u64 key)
{
	return &named[(key * 0x9e3779b97f4a7c15ULL >> 47 & ~1ULL) % GBPF_NAMED_SLOTS];
}

static __always_inline bool name_known(const u64 *set, u64 key)
{
	return set[0] == key || set[1] == key;
}

static __always_inline void name_keep(u64 *set, u64 key)
{
	set[1] = set[0];
	set[0] = key;
}

static __always_inline void name_forget(u32 pid)
{
	__sync_fetch_and_add(&name_generation[pid % GBPF_NAME_GENERATIONS], 1);
}

static __always_inline struct gbpf_name *name_reserve(u64 pid_tgid, u64 cookie, u64 handle,
						      u64 where, u64 size)
{
	struct gbpf_name *n;

	/* bpf_ringbuf_reserve() wants a constant */
	if (size == GBPF_NAME_SHORT)
		n = ring_reserve(sizeof(*n) + GBPF_NAME_SHORT);
	else
		n = ring_reserve(sizeof(*n) + GBPF_NAME_LONG);
	if (!n)
		return NULL;
	hdr_fill(&n->hdr, bpf_ktime_get_ns(), pid_tgid, 0,
		 COOKIE_TAG(cookie, GBPF_REC_NAME));
	n->handle = handle;
	n->where = where;
	return n;
}

/* Sends the string at where; a name that does not fit the short record goes in a long one. */
static __noinline bool name_send(u64 pid_tgid, u64 cookie, u64 handle, u64 where, u32 source)
{
	struct gbpf_name *n;
	long len;

	n = name_reserve(pid_tgid, cookie, handle, where, GBPF_NAME_SHORT);
	if (!n)
		return false;
	len = bpf_probe_read_user_str(n->name, GBPF_NAME_SHORT, (void *)where);
	if (len == GBPF_NAME_SHORT) {
		bpf_ringbuf_discard(n, BPF_RB_NO_WAKEUP);
		n = name_reserve(pid_tgid, cookie, handle, where, GBPF_NAME_LONG);
		if (!n)
			return false;
		len = bpf_probe_read_user_str(n->name, GBPF_NAME_LONG, (void *)where);
	}
	if (!len) { /* an empty string, as Linux 6.12 and older ones count it */
		n->name[0] = '\0';
		len = 1;
	}
	n->len = len;
	n->source = len > 0 ? source : GBPF_NAME_FAULT;
	ring_submit(n);
	return true;
}

static __noinline void name_read(u64 pid_tgid, u64 cookie, u64 handle, u64 offset)
{
	u64 key = name_key(pid_tgid >> 32, handle);
	u64 where = 0;

	bpf_probe_read_user(&where, sizeof(where), (void *)(handle + offset));
	if (name_send(pid_tgid, cookie, handle, where, GBPF_NAME_LAYOUT))
		name_keep(name_set(key), key);
}

/* Once a handle, before the launch that needs it. */
static __always_inline void name_handle(u64 pid_tgid, u64 cookie, u64 handle)
{
	u64 key = name_key(pid_tgid >> 32, handle);
	u8 offset = name_offset[COOKIE_IMAGE(cookie)];

	if (offset != GBPF_NO_NAMES && !name_known(name_set(key), key))
		name_read(pid_tgid, cookie, handle, offset);
}

/*
 * The runtime launches by the address of a host function, whose symbol user
 * space finds: asked for once an address. Programs built by CUDA 13 pass the
 * driver's own handle instead, so asking here must not count as having read
 * the name there.
 */
static __always_inline u64 stub_key(u32 pid, u64 func)
{
	return name_key(pid, func) ^ 0xa5a5a5a5a5a5a5a5ULL;
}

static __noinline void name_ask(u64 pid_tgid, u64 cookie, u64 func)
{
	u64 key = stub_key(pid_tgid >> 32, func);
	struct gbpf_name *n = name_reserve(pid_tgid, cookie, func, func, GBPF_NAME_SHORT);

	if (!n)
		return;
	n->len = 0;
	n->source = GBPF_NAME_STUB;
	ring_submit(n);
	name_keep(name_set(key), key);
}

static __always_inline void name_stub(u64 pid_tgid, u64 cookie, u64 func)
{
	u64 key = stub_key(pid_tgid >> 32, func);

	if (!name_known(name_set(key), key))
		name_ask(pid_tgid, cookie, func);
}
