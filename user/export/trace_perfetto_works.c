// SPDX-License-Identifier: BSD-2-Clause
/*
 * What ran on GPUs, stream by stream. As Perfetto's GPU events, which its viewer shows
 * by process, device, context and stream; or, for older ones, as plain slices.
 */
#include <errno.h>
#include <string.h>

#include "export/trace_perfetto.h"

#define BEGIN PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
#define INSTANT PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT
#define END PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END
#define COMPUTE \
	PERFETTO__PROTOS__INTERNED_GPU_RENDER_STAGE_SPECIFICATION__RENDER_STAGE_CATEGORY__COMPUTE

/* Numbers of a stream's sequence: its queue, and what runs on it by enum record_work_kind. */
#define QUEUE_BASE 16 /* plus the stream's index: unique, since queues of one GPU are told apart */

struct stream {
	struct perfetto *f;
	uint32_t index;
	const struct session_stream *about;
	size_t gpu;
	uint64_t context; /* compat: the track of it */
	bool begun;
	struct export_stream_state state;
	struct export_lanes *lanes; /* compat: works that overlap have rows of their own */
};

static void stream_name(const struct stream *st, char *buf, size_t size)
{
	char name[128];
	const struct session_process *p = &st->f->s->processes[st->about->process];

	snprintf(buf, size, "%s %u stream %u",
		 perfetto_process_name(st->f, st->about->process, name, sizeof(name)), p->pid,
		 st->about->id);
}

static void specification(struct stream *st, uint64_t id, const char *name, bool compute)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedGpuRenderStageSpecification
		entry = PERFETTO__PROTOS__INTERNED_GPU_RENDER_STAGE_SPECIFICATION__INIT,
		*one = &entry;

	entry.has_iid = true;
	entry.iid = id;
	entry.name = (char *)(uintptr_t)name; /* packing only reads */
	entry.has_category = compute;
	entry.category = COMPUTE;
	data.n_gpu_specifications = 1;
	data.gpu_specifications = &one;
	packet.interned_data = &data;
	packets_add(&st->f->packets, &packet);
}

static void context(struct stream *st)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedGraphicsContext
		entry = PERFETTO__PROTOS__INTERNED_GRAPHICS_CONTEXT__INIT, *one = &entry;

	entry.has_iid = entry.has_pid = entry.has_api = true;
	entry.iid = st->about->context;
	entry.pid = (int32_t)(st->f->s->processes[st->about->process].pid & INT32_MAX);
	entry.api = PERFETTO__PROTOS__INTERNED_GRAPHICS_CONTEXT__API__CUDA;
	data.n_graphics_contexts = 1;
	data.graphics_contexts = &one;
	packet.interned_data = &data;
	packets_add(&st->f->packets, &packet);
}

/* The tracks of plain slices: GPU, context and process, stream. */
static uint64_t plain_tracks(struct stream *st)
{
	struct perfetto *f = st->f;
	char name[256], process[128];
	uint32_t first = st->index;
	uint64_t parent = track_id(TRACK_GPU, st->gpu);

	while (first > 0 && f->s->streams[first - 1].process == st->about->process &&
	       f->s->streams[first - 1].device == st->about->device &&
	       f->s->streams[first - 1].context == st->about->context)
		first--;
	snprintf(name, sizeof(name), "%s %u context %u",
		 perfetto_process_name(f, st->about->process, process, sizeof(process)),
		 f->s->processes[st->about->process].pid, st->about->context);
	st->context = perfetto_track(f, &(struct perfetto_track){
		TRACK_CONTEXT, first, parent, name, NULL, NULL, 100 + (int)first});
	snprintf(name, sizeof(name), "stream %u", st->about->id);
	return perfetto_track(f, &(struct perfetto_track){
		TRACK_STREAM, st->index, st->context, name, NULL, NULL, 1 + (int)st->index});
}

static void stream_begin(struct stream *st, int64_t ts)
{
	struct perfetto *f = st->f;
	char name[256];
	uint64_t track = 0;

	st->begun = true;
	perfetto_process(f, st->about->process);
	if (f->o->compat) {
		perfetto_gpu(f, st->gpu);
		track = plain_tracks(st);
	}
	packets_sequence(&f->packets, track, ts);
	if (f->o->compat)
		return;
	context(st);
	stream_name(st, name, sizeof(name));
	specification(st, QUEUE_BASE + st->index, name, false);
	specification(st, RECORD_WORK_KERNEL, "Kernel", true);
	specification(st, RECORD_WORK_COPY, "Copy", false);
	specification(st, RECORD_WORK_SET, "Set", false);
}

/* ---- arguments ---- */

static void args_of_stream(struct stream *st, struct packet_args *a)
{
	packet_arg_int(a, FIELD_DEVICE,
		       st->f->s->devices[st->about->device].about.ordinal);
	if (a->space == INTERN_NOTE) /* a GPU event has it in a field of its own */
		packet_arg_int(a, FIELD_CONTEXT, st->about->context);
	packet_arg_int(a, FIELD_STREAM, st->about->id);
}

static void args_of_occupancy(struct packet_args *a, const struct record_device *device,
			      const struct record_shape *shape, char *buf, size_t size)
{
	struct occupancy o;
	double fits;

	if (occupancy_of(device, shape, &o))
		return;
	packet_arg_int(a, FIELD_OCCUPANCY, o.percent);
	packet_arg_text(a, FIELD_LIMITER, export_limiter_words(o.limiting, buf, size));
	packet_arg_int(a, FIELD_LIMIT_BLOCKS, o.limit_blocks);
	packet_arg_int(a, FIELD_LIMIT_REGISTERS, o.limit_registers);
	packet_arg_int(a, FIELD_LIMIT_SMEM, o.limit_smem);
	packet_arg_int(a, FIELD_LIMIT_WARPS, o.limit_warps);
	packet_arg_int(a, FIELD_LIMIT_BARRIERS, o.limit_barriers);
	fits = o.blocks_per_sm;
	if (fits > 0)
		packet_arg_double(a, FIELD_WAVES, o.grid_blocks_per_sm / fits);
}

static double product(const uint32_t v[3])
{
	return (double)v[0] * (double)v[1] * (double)v[2];
}

static void args_of_shape(struct stream *st, struct packet_args *a, uint32_t shape, char *buf,
			  size_t size)
{
	const struct record_shape *sh = &st->f->s->shapes[shape];
	double threads = product(sh->grid) * product(sh->block);

	packet_arg_int(a, FIELD_REGISTERS, sh->registers);
	packet_arg_int(a, FIELD_SMEM_STATIC, sh->smem_static);
	packet_arg_int(a, FIELD_SMEM_DYNAMIC, sh->smem_dynamic);
	if (sh->local)
		packet_arg_int(a, FIELD_LOCAL, sh->local);
	packet_arg_int(a, FIELD_THREADS, threads < 9e18 ? (int64_t)threads : INT64_MAX);
	args_of_occupancy(a, &st->f->s->devices[st->about->device].about, sh, buf, size);
}

/* What kernels of one shape have in common, said once: also where they ran. */
static uint64_t kernel_intern(struct stream *st, const struct work *w)
{
	struct packets *p = &st->f->packets;
	const struct session_kernel *k = &st->f->s->kernels[w->kernel];
	struct packet_args args;
	Perfetto__Protos__InternedComputeKernel about =
		PERFETTO__PROTOS__INTERNED_COMPUTE_KERNEL__INIT;
	Perfetto__Protos__GpuRenderStageEvent__ExtraComputeArg list[PACKET_ARGS],
		*pointers[PACKET_ARGS];
	char mangled[2048], demangled[4096], limiter[128];

	packet_args_init(&args, p, INTERN_ARG);
	args_of_stream(st, &args);
	args_of_shape(st, &args, w->shape, limiter, sizeof(limiter));
	for (size_t i = 0; i < args.count; i++) {
		const struct packet_arg *arg = &args.list[i];

		perfetto__protos__gpu_render_stage_event__extra_compute_arg__init(&list[i]);
		pointers[i] = &list[i];
		list[i].has_name_iid = true;
		list[i].name_iid = arg->name;
		list[i].has_int_value = arg->kind == NOTE_OF_INT;
		list[i].int_value = arg->kind == NOTE_OF_INT ? arg->i : 0;
		list[i].has_double_value = arg->kind == NOTE_OF_DOUBLE;
		list[i].double_value = arg->kind == NOTE_OF_DOUBLE ? arg->d : 0;
		if (arg->kind == NOTE_OF_TEXT)
			list[i].string_value = (char *)(uintptr_t)arg->text;
	}
	export_text(k->mangled, mangled, sizeof(mangled));
	export_text(k->demangled, demangled, sizeof(demangled));
	about.name = mangled;
	about.demangled_name = demangled;
	about.n_args = args.count;
	about.args = pointers;
	return packets_intern_shape(p, w->shape, &about);
}

static void args_of_times(struct packet_args *a, const struct work_times *t)
{
	if (t->launch_to_start != NA_TIME)
		packet_arg_int(a, FIELD_LAUNCH_TO_START, t->launch_to_start);
	if (t->queue_delay != NA_TIME)
		packet_arg_int(a, FIELD_QUEUE_DELAY, t->queue_delay);
}

static void args_of_copy(struct packet_args *a, const struct work *w)
{
	packet_arg_int(a, FIELD_BYTES, (int64_t)w->bytes);
	if (w->end > w->begin)
		packet_arg_double(a, FIELD_BANDWIDTH,
				  (double)w->bytes / (double)(w->end - w->begin));
	if (w->kind == RECORD_WORK_COPY)
		packet_arg_text(a, FIELD_SOURCE, export_memory_word(w->source));
	packet_arg_text(a, FIELD_TARGET, export_memory_word(w->target));
	if (w->peer != UINT32_MAX)
		packet_arg_int(a, FIELD_PEER, w->peer);
}

/* Of this piece of work alone. */
static void args_of_work(struct packet_args *a, const struct work *w, const struct work_times *t)
{
	args_of_times(a, t);
	if (w->kind != RECORD_WORK_KERNEL)
		args_of_copy(a, w);
	if (w->graph) {
		packet_arg_int(a, FIELD_GRAPH, w->graph);
		packet_arg_int(a, FIELD_GRAPH_NODE, (int64_t)w->graph_node);
	}
	if (w->priority)
		packet_arg_int(a, FIELD_PRIORITY, w->priority);
}

/* ---- events ---- */

static uint64_t work_name(struct stream *st, const struct work *w)
{
	struct packets *p = &st->f->packets;

	if (w->kernel != UINT32_MAX)
		return packets_intern(p, INTERN_EVENT, packets_key_kernel(p, w->kernel));
	if (w->kind == RECORD_WORK_COPY)
		return packets_intern(p, INTERN_EVENT,
				      packets_key_word(p, WORD_COPY + (w->direction <= 10
								       ? w->direction : 0)));
	return packets_intern(p, INTERN_EVENT, packets_key_word(p, w->kind == RECORD_WORK_SET
								? WORD_SET : WORD_KERNEL));
}

/* Is there a description of what this kernel shares with others? */
static bool has_shape(const struct work *w)
{
	return w->shape != SHAPE_NONE && w->kernel != UINT32_MAX;
}

static void put_launch(struct stream *st, const struct work *w, const struct packet_args *args)
{
	struct packets *p = &st->f->packets;
	size_t at;

	if (!args->count && !has_shape(w))
		return;
	at = packet_nest(p, STAGE_LAUNCH);
	packet_launch_args(p, args);
	if (has_shape(w)) {
		packet_dim(p, LAUNCH_GRID, st->f->s->shapes[w->shape].grid);
		packet_dim(p, LAUNCH_BLOCK, st->f->s->shapes[w->shape].block);
	}
	packet_unnest(p, at);
}

static void put_stage(struct stream *st, uint32_t index, const struct work_times *times)
{
	struct packets *p = &st->f->packets;
	const struct work *w = &st->f->s->works[index];
	struct packet_args args;
	uint64_t name = work_name(st, w), kernel = 0;
	struct packet_open open;

	packet_args_init(&args, p, INTERN_ARG);
	if (has_shape(w) && packets_knows(p, INTERN_KERNEL, w->shape))
		kernel = (uint64_t)w->shape + 1;
	else if (has_shape(w))
		kernel = kernel_intern(st, w);
	else
		args_of_stream(st, &args);
	args_of_work(&args, w, times);
	open = packet_begin(p, w->begin, PACKET_STAGE);
	packet_uint(p, STAGE_DURATION, w->end > w->begin ? (uint64_t)(w->end - w->begin) : 0);
	packet_uint(p, STAGE_EVENT, (uint64_t)index + 1);
	put_launch(st, w, &args);
	packet_uint(p, STAGE_CONTEXT, st->about->context);
	packet_uint(p, STAGE_GPU, st->f->gpus[st->gpu].number);
	packet_uint(p, STAGE_QUEUE, QUEUE_BASE + st->index);
	packet_uint(p, STAGE_STAGE, w->kind);
	if (kernel)
		packet_uint(p, STAGE_KERNEL, kernel);
	packet_uint(p, STAGE_NAME, name);
	packet_end(p, open);
}

static uint64_t row_track(struct stream *st, int row)
{
	char name[64];

	if (!row)
		return 0;
	/* Of the same name and parent: the viewer shows them as one, with rows. */
	snprintf(name, sizeof(name), "stream %u", st->about->id);
	return perfetto_track(st->f, &(struct perfetto_track){
		TRACK_STREAM_ROW, (uint64_t)st->index * EXPORT_LANES + (unsigned)row, st->context,
		name, NULL, NULL, 1 + (int)st->index});
}

static void close_until(struct stream *st, int64_t upto)
{
	struct packets *p = &st->f->packets;
	struct export_slice slice;

	while (export_lanes_close(st->lanes, upto, &slice)) {
		uint64_t track = row_track(st, slice.row);
		struct packet_open open = packet_begin(p, slice.end, PACKET_TRACK_EVENT);

		packet_uint(p, EVENT_TYPE, END);
		if (track)
			packet_uint(p, EVENT_TRACK, track);
		packet_end(p, open);
	}
}

static void args_of_plain(struct stream *st, struct packet_args *a, const struct work *w,
			  const struct work_times *times, char *buf, size_t size)
{
	args_of_stream(st, a);
	if (w->kernel != UINT32_MAX)
		packet_arg_kernel(a, FIELD_KERNEL, w->kernel);
	if (has_shape(w)) {
		packet_arg_dim(a, FIELD_GRID, st->f->s->shapes[w->shape].grid);
		packet_arg_dim(a, FIELD_BLOCK, st->f->s->shapes[w->shape].block);
		args_of_shape(st, a, w->shape, buf, size);
	}
	args_of_work(a, w, times);
}

static int put_plain(struct stream *st, uint32_t index, const struct work_times *times)
{
	struct packets *p = &st->f->packets;
	const struct work *w = &st->f->s->works[index];
	struct packet_args args;
	uint64_t name = work_name(st, w), category, track;
	struct packet_open open;
	char limiter[128];
	bool slice;
	int row;

	packet_args_init(&args, p, INTERN_NOTE);
	close_until(st, w->begin);
	row = export_lanes_add(st->lanes, w->begin, w->end, index);
	if (row < 0)
		return row;
	slice = row < EXPORT_LANES;
	track = row_track(st, slice ? row : 0);
	category = packets_intern(p, INTERN_CATEGORY, CATEGORY_GPU);
	args_of_plain(st, &args, w, times, limiter, sizeof(limiter));
	if (!slice)
		packet_arg_int(&args, FIELD_DURATION, w->end - w->begin);
	open = packet_begin(p, w->begin, PACKET_TRACK_EVENT);
	if (export_cause(st->f->s, st->f->o, index) != CALL_NONE)
		packet_fixed64(p, EVENT_FLOW_END, (uint64_t)index + 1);
	packet_uint(p, EVENT_TYPE, slice ? BEGIN : INSTANT);
	packet_uint(p, EVENT_CATEGORY, category);
	packet_uint(p, EVENT_NAME, name);
	if (track)
		packet_uint(p, EVENT_TRACK, track);
	packet_notes(p, &args);
	packet_end(p, open);
	return 0;
}

static int put_stream(struct stream *st)
{
	struct perfetto *f = st->f;
	int err = 0;

	for (uint32_t i = 0; i < st->about->works && !err; i++) {
		uint32_t index = st->about->first_work + i;
		const struct work *w = &f->s->works[index];
		struct work_times times;

		export_work_times(f->s, &st->state, index, &times);
		if (export_wants(f->o, w->begin, w->end)) {
			if (!st->begun)
				stream_begin(st, w->begin);
			if (f->o->compat)
				err = put_plain(st, index, &times);
			else
				put_stage(st, index, &times);
		}
		if (!err)
			err = perfetto_progress(f);
	}
	close_until(st, INT64_MAX);
	return err;
}

int perfetto_works(struct perfetto *f)
{
	struct export_lanes *lanes;
	int err = export_lanes_new(&lanes, false);

	for (uint32_t i = 0; i < f->s->streams_count && !err; i++) {
		struct stream st = {.f = f, .index = i, .about = &f->s->streams[i], .lanes = lanes};

		if (!export_wants_process(f->o, st.about->process))
			continue;
		st.gpu = perfetto_gpu_of_device(f, st.about->device);
		err = put_stream(&st);
	}
	export_lanes_free(lanes);
	return err;
}
