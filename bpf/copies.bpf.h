/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies described by a structure: CUDA_MEMCPY2D, CUDA_MEMCPY3D (and its peer
 * form) and cudaMemcpy3DParms, with the offsets of cuda.h and driver_types.h on
 * 64-bit machines. KIND gets the runtime's, or both memory types, the source's
 * in its lower half.
 */
const struct gbpf_copy_layout copy_layouts[] = {
	{.width = 112, .height = 120, .from = 24, .to = 80, .from_type = 16, .to_type = 72},
	{.width = 176, .height = 184, .depth = 192, .from = 40, .to = 128, .from_type = 32,
	 .to_type = 120},
	{.width = 128, .height = 136, .depth = 144, .from = 32, .to = 96, .kind = 152},
};

enum { MEMORY_HOST = 1, MEMORY_ARRAY = 3 };

static __always_inline void copy_field(u64 *to, u64 desc, u16 offset)
{
	bpf_probe_read_user(to, 8, (void *)(desc + offset));
}

static __always_inline u32 copy_pointer(u32 first, u32 type)
{
	if (type == MEMORY_HOST)
		return first;
	return first + (type == MEMORY_ARRAY ? 16 : 8);
}

static __noinline void copy_fields(u64 *arg, u64 desc, u32 which)
{
	u32 *type = (u32 *)&arg[GBPF_ARG_KIND];
	const struct gbpf_copy_layout *l;

	/* verifiers before 6.13 cannot see that only a shape of copies comes here */
	barrier_var(which);
	if (which >= sizeof(copy_layouts) / sizeof(*copy_layouts))
		return;
	l = &copy_layouts[which];
	copy_field(&arg[GBPF_ARG_BYTES], desc, l->width);
	copy_field(&arg[GBPF_ARG_BYTES2], desc, l->height);
	if (l->depth) {
		copy_field(&arg[GBPF_ARG_SOURCE], desc, l->depth);
		arg[GBPF_ARG_BYTES2] *= arg[GBPF_ARG_SOURCE];
	}
	if (l->kind) {
		bpf_probe_read_user(type, 4, (void *)(desc + l->kind));
		type[1] = 0;
		copy_field(&arg[GBPF_ARG_SOURCE], desc, l->from);
		copy_field(&arg[GBPF_ARG_OBJECT], desc, l->to);
		return;
	}
	bpf_probe_read_user(&type[0], 4, (void *)(desc + l->from_type));
	bpf_probe_read_user(&type[1], 4, (void *)(desc + l->to_type));
	copy_field(&arg[GBPF_ARG_SOURCE], desc, copy_pointer(l->from, type[0]));
	copy_field(&arg[GBPF_ARG_OBJECT], desc, copy_pointer(l->to, type[1]));
}
