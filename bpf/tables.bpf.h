/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of monitor.h: finding and claiming slots. */

#define TABLE(name, slots, type_)                                                                  \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, slots);                                                        \
		__type(key, u32);                                                                  \
		__type(value, type_);                                                              \
	} name SEC(".maps");                                                                       \
	__u64 name##_keys[slots]

TABLE(cells, GBPF_CELLS, struct gbpf_cell);
TABLE(threads, GBPF_THREADS, struct gbpf_thread);
TABLE(procs, GBPF_PROCS, struct gbpf_proc);
TABLE(kernels, GBPF_KERNELS, struct gbpf_kernel);

#define NO_SLOT 0xffffffffu

static __always_inline u32 table_set(u64 key, u32 slots)
{
	return (u32)(key * 0x9e3779b97f4a7c15ULL >> 40) & (slots - 1) & ~(GBPF_WAYS - 1);
}

/* Loops and calls, not unrolled and inlined: that would take more stack than there may be. */
static __noinline u32 table_find(const __u64 *keys, u32 slots, u64 key)
{
	u32 at = table_set(key, slots), i;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_WAYS; i++)
		if (keys[(at + i) & (slots - 1)] == key)
			return (at + i) & (slots - 1);
	return NO_SLOT;
}

/* Two threads may claim the same key at once: both then find the first one's slot. */
static __noinline u32 table_claim(__u64 *keys, u32 slots, u64 key)
{
	u32 at = table_set(key, slots), i;
	u64 was;

#pragma clang loop unroll(disable)
	for (i = 0; i < GBPF_WAYS; i++) {
		was = __sync_val_compare_and_swap(&keys[(at + i) & (slots - 1)], 0, key);
		if (!was || was == key)
			return (at + i) & (slots - 1);
	}
	return NO_SLOT;
}

/* The slot of a key, new if need be; a table with no room counts in full. */
static __noinline u32 table_get(__u64 *keys, u32 slots, u64 key, __u64 *full)
{
	u32 slot = table_find(keys, slots, key);

	if (slot == NO_SLOT)
		slot = table_claim(keys, slots, key);
	if (slot == NO_SLOT)
		__sync_fetch_and_add(full, 1);
	return slot;
}
