// SPDX-License-Identifier: BSD-2-Clause
/* What ran on a GPU: kernels, copies and sets, with the arguments that Kineto gives them. */
#include <errno.h>
#include <stdlib.h>

#include "export/kineto.h"

static void put_key(struct kineto *k, enum export_field_id field)
{
	put(k, ",\"");
	put(k, export_field(field)->kineto);
	put(k, "\":");
}

static void put_number(struct kineto *k, enum export_field_id field, uint64_t value)
{
	put_key(k, field);
	put_uint(k, value);
}

static const char *kernel_name(struct kineto *k, const struct work *w)
{
	char **name;

	if (w->kernel == UINT32_MAX)
		return "\"unknown\"";
	name = &k->kernel_names[w->kernel];
	if (!*name)
		*name = kineto_escape(k->s->kernels[w->kernel].demangled);
	if (!*name)
		k->err = -ENOMEM;
	return *name ? *name : "\"\"";
}

static void put_name(struct kineto *k, const struct work *w)
{
	if (w->kind == RECORD_WORK_KERNEL) {
		put(k, "kernel\",\"name\":");
		put(k, kernel_name(k, w));
		return;
	}
	if (w->kind == RECORD_WORK_SET) {
		put(k, "gpu_memset\",\"name\":\"Memset (");
	} else {
		put(k, "gpu_memcpy\",\"name\":\"Memcpy ");
		put(k, export_direction_word(w->direction));
		put(k, " (");
		put(k, export_memory_word(w->source));
		put(k, " -> ");
	}
	put(k, export_memory_word(w->target));
	put(k, ")\"");
}

static void print_occupancy(FILE *out, const struct occupancy *o)
{
	char words[96];

	fprintf(out, ",\"est. achieved occupancy %%\":%d,\"occupancy\":"
		"{\"activeBlocksPerMultiprocessor\":%d,\"limitingFactors\":\"%s\",",
		o->percent, o->blocks_per_sm,
		export_limiter_words(o->limiting, words, sizeof(words)));
	fprintf(out, "\"blockLimitRegs\":%d,\"blockLimitSharedMem\":%d, "
		"\"blockLimitWarps\":%d,\"blockLimitBlocks\":%d,\"blockLimitBarriers\":%d, "
		"\"allocatedRegistersPerBlock\":%d,\"allocatedSharedMemPerBlock\":%d}",
		o->limit_registers, o->limit_smem, o->limit_warps, o->limit_blocks,
		o->limit_barriers, o->allocated_registers, o->allocated_smem);
}

/* What all launches of one shape on one device have in common. */
static char *shape_args(const struct record_shape *shape, const struct record_device *device)
{
	struct occupancy occupancy;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool known;

	if (!out)
		return NULL;
	known = !occupancy_of(device, shape, &occupancy);
	fprintf(out, ",\"registers per thread\":%u,\"shared memory\":%lu", shape->registers,
		(unsigned long)shape->smem_static + shape->smem_dynamic);
	if (known)
		fprintf(out, ",\"blocks per SM\":%.6f,\"warps per SM\":%.6f",
			occupancy.grid_blocks_per_sm, occupancy.warps_per_sm);
	fprintf(out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", shape->grid[0],
		shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
		shape->block[2]);
	if (known)
		print_occupancy(out, &occupancy);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void put_shape(struct kineto *k, const struct work *w)
{
	uint32_t device = k->s->streams[w->stream].device;
	char **args;

	if (w->shape == SHAPE_NONE)
		return;
	args = &k->shape_args[w->shape];
	if (!*args || k->shape_device[w->shape] != device) {
		free(*args);
		*args = shape_args(&k->s->shapes[w->shape], &k->s->devices[device].about);
		k->shape_device[w->shape] = device;
	}
	if (*args)
		put(k, *args);
	else
		k->err = -ENOMEM;
}

static void put_kernel(struct kineto *k, const struct work *w)
{
	put_shape(k, w);
	if (w->graph) {
		put_number(k, FIELD_GRAPH, w->graph);
		put_number(k, FIELD_GRAPH_NODE, w->graph_node);
	}
	put_key(k, FIELD_PRIORITY);
	put_int(k, w->priority);
	put_number(k, FIELD_CHANNEL, w->channel);
	put_number(k, FIELD_CHANNEL_TYPE, w->channel_type);
}

static void put_copy(struct kineto *k, const struct work *w)
{
	put_number(k, FIELD_BYTES, w->bytes);
	if (w->end > w->begin) {
		put_key(k, FIELD_BANDWIDTH);
		put_general(k, (double)w->bytes / (double)(w->end - w->begin));
	}
	if (w->kind == RECORD_WORK_COPY && w->peer != UINT32_MAX) {
		put(k, ",\"inDevice\":");
		put_uint(k, k->s->devices[k->s->streams[w->stream].device].about.ordinal);
		put(k, ",\"peer device\":");
		put_uint(k, w->peer);
	}
	if (w->graph) {
		put_number(k, FIELD_GRAPH, w->graph);
		put_number(k, FIELD_GRAPH_NODE, w->graph_node);
	}
}

static void put_place(struct kineto *k, const struct work *w, uint64_t id)
{
	const struct session_stream *stream = &k->s->streams[w->stream];

	put(k, ",\"args\":{");
	put(k, w->kind == RECORD_WORK_KERNEL ? "\"queued\":0,\"device\":" : "\"device\":");
	put_uint(k, k->s->devices[stream->device].about.ordinal);
	put_number(k, FIELD_CONTEXT, stream->context);
	put_number(k, FIELD_STREAM, stream->id);
	put_number(k, FIELD_CORRELATION, id);
}

static void put_end_of_arrow(struct kineto *k, const struct work *w, uint64_t id, uint32_t pid,
			     uint64_t tid)
{
	put_event(k);
	put(k, "{\"ph\":\"f\",\"id\":");
	put_uint(k, id);
	put(k, ",\"pid\":");
	put_uint(k, pid);
	put(k, ",\"tid\":");
	put_uint(k, tid);
	put(k, ",\"ts\":");
	put_ts(k, w->begin);
	put(k, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}");
	k->ended++;
}

void kineto_work(struct kineto *k, uint32_t work)
{
	const struct work *w = &k->s->works[work];
	uint32_t cause = export_cause(k->s, k->o, work);
	uint64_t id = export_work_id(&k->ids, work), tid;
	struct kineto_row *row = kineto_row_of_work(k, w);

	tid = kineto_place(k, row, w->begin, w->end);
	put_event(k);
	put(k, "{\"ph\":\"X\",\"cat\":\"");
	put_name(k, w);
	put(k, ",\"pid\":");
	put_uint(k, row->pid);
	put(k, ",\"tid\":");
	put_uint(k, tid);
	put(k, ",\"ts\":");
	put_ts(k, w->begin);
	put(k, ",\"dur\":");
	put_us(k, w->end - w->begin);
	put_place(k, w, id);
	if (w->kind == RECORD_WORK_KERNEL)
		put_kernel(k, w);
	else
		put_copy(k, w);
	if (w->earlier)
		put(k, ",\"launched before the window\":true");
	if (work_unmatched(w)) {
		put(k, ",\"unmatched\":true,\"recorded correlation\":");
		put_uint(k, w->correlation);
		k->unmatched++;
	}
	put(k, "}}");
	k->works++;
	if (cause != CALL_NONE)
		put_end_of_arrow(k, w, id, row->pid, tid);
}
