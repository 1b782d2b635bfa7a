/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Begin and end of a call. Arguments go into the record raw; user space decodes them. */

static __always_inline void begin_bare(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	struct gbpf_hdr *r = ring_reserve(sizeof(*r));

	if (!r)
		return;
	hdr_fill(r, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_BARE));
	call_submit(r);
}

static __always_inline void begin_object(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	struct gbpf_begin_object *r = ring_reserve(sizeof(*r));

	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_OBJECT));
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OBJECT), &r->object);
	call_submit(&r->hdr);
}

static __always_inline void begin_launch(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 func = PT_REGS_PARM1(ctx);
	struct gbpf_begin_launch *r;

	name_handle(pid_tgid, cookie, func);
	r = ring_reserve(sizeof(*r));
	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_LAUNCH));
	r->func = func;
	r->grid[0] = PT_REGS_PARM2(ctx);
	r->grid[1] = PT_REGS_PARM3(ctx);
	r->grid[2] = PT_REGS_PARM4(ctx);
	r->block_x = PT_REGS_PARM5(ctx);
	r->block_y = PT_REGS_PARM6(ctx);
	r->pad = 0;
	bpf_probe_read_user(&r->block_z, 24, (void *)(PT_REGS_SP(ctx) + 8));
	call_submit(&r->hdr);
}

static __always_inline void begin_config(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 func = PT_REGS_PARM2(ctx);
	struct gbpf_begin_config *r;

	if (COOKIE_LEVEL(cookie))
		name_stub(pid_tgid, cookie, func);
	else
		name_handle(pid_tgid, cookie, func);
	r = ring_reserve(sizeof(*r));
	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_CONFIG));
	r->func = func;
	bpf_probe_read_user(&r->grid, 40, (void *)PT_REGS_PARM1(ctx));
	call_submit(&r->hdr);
}

static __always_inline void begin_rt_launch(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	struct gbpf_begin_rt_launch *r;

	name_stub(pid_tgid, cookie, PT_REGS_PARM1(ctx));
	r = ring_reserve(sizeof(*r));
	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_RT_LAUNCH));
	r->func = PT_REGS_PARM1(ctx);
	r->grid_xy = PT_REGS_PARM2(ctx);
	r->grid_z = PT_REGS_PARM3(ctx);
	r->block_xy = PT_REGS_PARM4(ctx);
	r->block_z = PT_REGS_PARM5(ctx);
	bpf_probe_read_user(&r->smem, 16, (void *)(PT_REGS_SP(ctx) + 8));
	call_submit(&r->hdr);
}

static __noinline void begin_call(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	struct gbpf_begin_call *r = ring_reserve(sizeof(*r));
	u32 shape = COOKIE_SHAPE(cookie);

	if (!r)
		return;
	hdr_fill(&r->hdr, bpf_ktime_get_ns(), pid_tgid, PT_REGS_SP(ctx),
		 COOKIE_TAG(cookie, GBPF_REC_BEGIN_CALL));
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OBJECT), &r->arg[GBPF_ARG_OBJECT]);
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_BYTES), &r->arg[GBPF_ARG_BYTES]);
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_BYTES2), &r->arg[GBPF_ARG_BYTES2]);
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_STREAM), &r->arg[GBPF_ARG_STREAM]);
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_SOURCE), &r->arg[GBPF_ARG_SOURCE]);
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_KIND), &r->arg[GBPF_ARG_KIND]);
	if (shape >= GBPF_SHAPE_COPY2D && shape <= GBPF_SHAPE_RT_COPY3D)
		copy_fields(r->arg, r->arg[GBPF_ARG_OBJECT], shape - GBPF_SHAPE_COPY2D);
	call_submit(&r->hdr);
}

static __always_inline u64 pending_key(u64 pid_tgid, u64 cookie)
{
	return pid_tgid << 32 | COOKIE_API(cookie);
}

/* The call stores something through a pointer: keep the pointer until it returns. */
static __noinline void pending_keep(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 key = pending_key(pid_tgid, cookie);
	struct gbpf_pending *p;

	bpf_map_update_elem(&pendings, &key, &no_pending, BPF_ANY);
	p = bpf_map_lookup_elem(&pendings, &key);
	if (!p) {
		__sync_fetch_and_add(&counters.state_full, 1);
		return;
	}
	argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_OUT), &p->out);
	if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_GET_NAMED)
		argument(ctx, COOKIE_ARG(cookie, GBPF_ARG_SOURCE), &p->name);
}

/* Returns whether the return of this call is wanted, too. */
static __always_inline bool call_begin(struct pt_regs *ctx)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	bool returns;
	u64 cookie;

	if (!wanted(pid_tgid >> 32))
		return false;
	cookie = bpf_get_attach_cookie(ctx);
	if (cookie & GBPF_COOKIE_STEP) {
		step_marker(ctx, pid_tgid, cookie);
		if (!COOKIE_API(cookie))
			return false;
	}
	if (sw.gate == GBPF_GATE_SHUT)
		return false;
	returns = sw.returns && !(cookie & GBPF_COOKIE_ENTRY_ONLY);
	if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_QUERY && returns) {
		if (sw.gate)
			return false; /* a run that began before a window is none of it */
		poll_begin(ctx, pid_tgid, cookie);
		return true;
	}
	poll_interrupt(pid_tgid);
	if (COOKIE_ARG(cookie, GBPF_ARG_OUT) && returns)
		pending_keep(ctx, pid_tgid, cookie);
	switch (COOKIE_SHAPE(cookie)) {
	case GBPF_SHAPE_LAUNCH:
		begin_launch(ctx, pid_tgid, cookie);
		break;
	case GBPF_SHAPE_OBJECT:
	case GBPF_SHAPE_QUERY: /* entry only: nothing to collapse by */
		begin_object(ctx, pid_tgid, cookie);
		break;
	case GBPF_SHAPE_CONFIG:
		begin_config(ctx, pid_tgid, cookie);
		break;
	case GBPF_SHAPE_RT_LAUNCH:
		begin_rt_launch(ctx, pid_tgid, cookie);
		break;
	case GBPF_SHAPE_BARE:
		begin_bare(ctx, pid_tgid, cookie);
		break;
	case GBPF_SHAPE_UNLOAD:
		name_forget(pid_tgid >> 32);
		begin_object(ctx, pid_tgid, cookie);
		break;
	default:
		begin_call(ctx, pid_tgid, cookie);
	}
	return returns;
}

static __always_inline void end_plain(struct pt_regs *ctx, u64 pid_tgid, u64 cookie)
{
	u64 now = bpf_ktime_get_ns(); /* before anything that takes time */
	struct gbpf_end *r = ring_reserve(sizeof(*r));

	if (!r)
		return;
	hdr_fill(&r->hdr, now, pid_tgid, PT_REGS_SP(ctx) - 8, COOKIE_TAG(cookie, GBPF_REC_END));
	r->ret = (s32)PT_REGS_RC(ctx);
	r->pad = 0;
	call_submit(&r->hdr);
}

static __noinline void end_out(struct pt_regs *ctx, u64 pid_tgid, u64 cookie,
				    const struct gbpf_pending *p)
{
	u64 now = bpf_ktime_get_ns();
	struct gbpf_end_out *r;
	u64 out = 0;

	bpf_probe_read_user(&out, 8, (void *)p->out);
	/* looked at once, right here: Linux 6.1 takes a record looked at again for lost */
	r = ring_reserve(sizeof(*r));
	if (r) {
		hdr_fill(&r->hdr, now, pid_tgid, PT_REGS_SP(ctx) - 8,
			 COOKIE_TAG(cookie, GBPF_REC_END_OUT));
		r->ret = (s32)PT_REGS_RC(ctx);
		r->pad = 0;
		r->out = out;
		call_submit(&r->hdr);
	}
	if (!p->name || !out || (s32)PT_REGS_RC(ctx))
		return;
	if (name_send(pid_tgid, cookie, out, p->name, GBPF_NAME_GETTER))
		name_keep(name_set(name_key(pid_tgid >> 32, out)),
			  name_key(pid_tgid >> 32, out));
}

static __always_inline void call_end(struct pt_regs *ctx)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct gbpf_pending *p;
	u64 key;

	if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_QUERY) {
		poll_end(ctx, pid_tgid, cookie);
		return;
	}
	if (COOKIE_SHAPE(cookie) == GBPF_SHAPE_UNLOAD)
		name_forget(pid_tgid >> 32);
	if (COOKIE_ARG(cookie, GBPF_ARG_OUT)) {
		key = pending_key(pid_tgid, cookie);
		p = bpf_map_lookup_elem(&pendings, &key);
		if (p) {
			end_out(ctx, pid_tgid, cookie, p);
			bpf_map_delete_elem(&pendings, &key);
			return;
		}
	}
	end_plain(ctx, pid_tgid, cookie);
}
