// SPDX-License-Identifier: BSD-2-Clause
/* What the sidecar recorded, on its way in: devices, shapes, works, CUPTI's calls. */
#include "model/internal.h"

/* A duration beyond this is a counter that went wrong (docs/metrics.md). */
#define LONGEST_WORK (7 * UINT64_C(86400) * 1000000000)

static int pid_seen(struct session_builder *b, uint32_t pid)
{
	struct works_builder *w = &b->works;
	int err;

	if (map_get(&w->pid_of, pid, 0) != MAP_NONE)
		return 0;
	err = GROW(w->pids, w->pids_cap, w->pids_count + 1);
	if (!err)
		err = map_put(&w->pid_of, pid, 0, (uint32_t)w->pids_count);
	if (!err)
		w->pids[w->pids_count++] = pid;
	return err;
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

static int device_add(struct session_builder *b, const struct record_device *r, uint32_t *out)
{
	struct session *s = b->s;
	struct session_device *d;
	int err = GROW(s->devices, b->works.devices_cap, s->devices_count + 1);

	if (err)
		return err;
	d = &s->devices[s->devices_count];
	*d = (struct session_device){ .about = *r, .process = NO_INDEX, .gpu = NO_INDEX };
	d->about.uuid = copy(r->uuid);
	d->about.name = copy(r->name);
	if (!d->about.uuid || !d->about.name) {
		free((char *)d->about.uuid);
		free((char *)d->about.name);
		return -ENOMEM;
	}
	*out = (uint32_t)s->devices_count++;
	b->works.recent = NO_INDEX; /* its device may be another one now */
	return map_put(&b->works.device_of, r->pid, r->ordinal, *out);
}

/* Says of a device that was only used so far what it is. */
static int device_fill(struct session_device *d, const struct record_device *r)
{
	char *uuid = copy(r->uuid), *name = copy(r->name);

	if (!uuid || !name) {
		free(uuid);
		free(name);
		return -ENOMEM;
	}
	free((char *)d->about.uuid);
	free((char *)d->about.name);
	d->about = *r;
	d->about.uuid = uuid;
	d->about.name = name;
	return 0;
}

int builder_device(struct session_builder *b, const struct record_device *r)
{
	uint32_t at = map_get(&b->works.device_of, r->pid, r->ordinal);
	const struct session_device *known = at == MAP_NONE ? NULL : &b->s->devices[at];

	if (!known || (*known->about.uuid && r->uuid && strcmp(known->about.uuid, r->uuid)))
		return pid_seen(b, r->pid) | device_add(b, r, &at);
	return device_fill(&b->s->devices[at], r);
}

/* Of an ordinal of which nothing was said, or not yet. */
static int device_of(struct session_builder *b, uint32_t pid, uint32_t ordinal, uint32_t *out)
{
	const struct record_device unknown = {
		.pid = pid, .ordinal = ordinal, .memory = -1, .major = -1, .minor = -1, .sms = -1,
		.warp = -1, .block_threads = -1, .sm_threads = -1, .sm_blocks = -1,
		.block_registers = -1, .sm_registers = -1, .block_smem = -1,
		.block_smem_optin = -1, .sm_smem = -1, .reserved_smem = -1,
	};

	*out = map_get(&b->works.device_of, pid, ordinal);
	return *out != MAP_NONE ? 0 : device_add(b, &unknown, out);
}

int builder_shape(struct session_builder *b, const struct record_shape *r)
{
	struct session *s = b->s;
	struct works_builder *w = &b->works;
	bool named = r->kernel && *r->kernel;
	int err = s->shapes_count + 1 >= SHAPE_NONE ? -EOVERFLOW : 0;

	if (!err)
		err = GROW(s->shapes, w->shapes_cap, s->shapes_count + 1);
	if (!err)
		err = GROW(w->shape_kernel, w->shape_kernel_cap, s->shapes_count + 1);
	if (!err)
		err = builder_kernel(b, named ? r->kernel : "no name", named,
				     &w->shape_kernel[s->shapes_count]);
	if (!err)
		err = map_put(&w->shape_of, r->pid, r->id, (uint32_t)s->shapes_count);
	if (err)
		return err;
	s->shapes[s->shapes_count] = *r;
	s->shapes[s->shapes_count++].kernel = NULL;
	return pid_seen(b, r->pid);
}

static int stream_add(struct session_builder *b, const struct record_work *r, uint64_t key_a,
		      uint64_t key_b)
{
	struct works_builder *w = &b->works;
	struct raw_stream *raw;
	uint32_t device;
	int err = GROW(w->raw, w->raw_cap, w->raw_count + 1);

	if (!err)
		err = device_of(b, r->pid, r->device, &device);
	if (!err)
		err = map_put(&w->stream_of, key_a, key_b, (uint32_t)w->raw_count);
	if (err)
		return err;
	raw = &w->raw[w->raw_count++];
	*raw = (struct raw_stream){ .pid = r->pid, .device = device, .context = r->context,
				    .id = r->stream, .process = NO_INDEX, .stream = NO_INDEX };
	return pid_seen(b, r->pid);
}

/* Works of one stream come together more often than not. */
static int stream_of(struct session_builder *b, const struct record_work *r, uint32_t *out)
{
	struct works_builder *w = &b->works;
	const struct raw_stream *last = w->recent < w->raw_count ? &w->raw[w->recent] : NULL;
	uint64_t key_a, key_b = (uint64_t)r->context << 32 | r->stream;
	uint32_t device, at;
	int err = 0;

	if (last && last->pid == r->pid && last->context == r->context && last->id == r->stream &&
	    b->s->devices[last->device].about.ordinal == r->device) {
		*out = w->recent;
		return 0;
	}
	device = map_get(&w->device_of, r->pid, r->device);
	if (device == MAP_NONE) /* it will be the next one */
		device = (uint32_t)b->s->devices_count;
	key_a = (uint64_t)r->pid << 32 | device;
	at = map_get(&w->stream_of, key_a, key_b);
	if (at == MAP_NONE) {
		at = (uint32_t)w->raw_count;
		err = stream_add(b, r, key_a, key_b);
	}
	*out = w->recent = at;
	return err;
}

/* Works that cannot have been: counted and dropped. */
static bool work_is_bad(const struct record_work *r)
{
	return r->begin <= 0 || r->begin >= TS_LIMIT || !r->duration ||
	       r->duration > LONGEST_WORK || r->kind < RECORD_WORK_KERNEL ||
	       r->kind > RECORD_WORK_SET;
}

static int work_shape(struct session_builder *b, const struct record_work *r, struct work *w)
{
	uint32_t *lost = &b->works.lost_kernel;
	int err = 0;

	if (r->kind != RECORD_WORK_KERNEL)
		return 0;
	w->shape = map_get(&b->works.shape_of, r->pid, r->shape);
	if (w->shape != MAP_NONE) {
		w->kernel = b->works.shape_kernel[w->shape];
		return 0;
	}
	b->s->join.bad++;
	if (*lost == NO_INDEX)
		err = builder_kernel(b, "name lost", false, lost);
	w->shape = SHAPE_NONE;
	w->kernel = *lost;
	return err;
}

int builder_work(struct session_builder *b, const struct record_work *r)
{
	struct session *s = b->s;
	struct work *w;
	uint32_t stream;
	int err;

	if (work_is_bad(r)) {
		s->join.bad++;
		return 0;
	}
	err = s->works_count + 1 >= WORK_NONE ? -EOVERFLOW : stream_of(b, r, &stream);
	if (!err)
		err = GROW(s->works, b->works.works_cap, s->works_count + 1);
	if (err)
		return err;
	w = &s->works[s->works_count];
	*w = (struct work){
		.begin = clamp_ts(r->begin), .bytes = r->bytes, .graph_node = r->graph_node,
		.graph = r->graph, .stream = stream, .call = CALL_NONE, .kernel = NO_INDEX,
		.shape = SHAPE_NONE, .correlation = r->correlation, .channel = r->channel,
		.channel_type = r->channel_type, .peer = r->peer, .priority = r->priority,
		.kind = (uint8_t)r->kind,
		.direction = (uint8_t)(r->direction < 256 ? r->direction : 0),
		.source = (uint8_t)(r->source < 256 ? r->source : 0),
		.target = (uint8_t)(r->target < 256 ? r->target : 0),
	};
	w->end = clamp_ts(w->begin + (int64_t)r->duration);
	s->works_count++;
	return work_shape(b, r, w);
}

int builder_work_call(struct session_builder *b, const struct record_work_call *r)
{
	struct works_builder *w = &b->works;
	int64_t begin = clamp_ts(r->begin);
	uint64_t duration = r->duration > (uint64_t)TS_LIMIT ? (uint64_t)TS_LIMIT : r->duration;
	int err = w->calls_count + 1 >= UINT32_MAX ? -EOVERFLOW : 0;

	if (r->begin <= 0) {
		b->s->join.bad++;
		return 0;
	}
	if (!err)
		err = GROW(w->calls, w->calls_cap, w->calls_count + 1);
	if (err)
		return err;
	w->calls[w->calls_count++] = (struct work_call_note){
		.begin = begin, .end = clamp_ts(begin + (int64_t)duration), .pid = r->pid,
		.tid = r->tid, .correlation = r->correlation, .cbid = r->cbid,
		.domain = r->domain,
	};
	return pid_seen(b, r->pid);
}

/* .process is the pid until builder_covers(). */
int builder_overhead(struct session_builder *b, const struct record_overhead *r)
{
	struct session *s = b->s;
	int64_t begin = clamp_ts(r->begin);
	int err = s->overheads_count + 1 >= UINT32_MAX ? -EOVERFLOW : 0;

	if (r->begin <= 0 || r->duration > LONGEST_WORK) {
		s->join.bad++;
		return 0;
	}
	if (!err)
		err = GROW(s->overheads, b->works.overheads_cap, s->overheads_count + 1);
	if (err)
		return err;
	s->overheads[s->overheads_count++] = (struct session_overhead){
		begin, clamp_ts(begin + (int64_t)r->duration), r->pid, r->kind };
	return pid_seen(b, r->pid);
}

int builder_sidecar(struct session_builder *b, const struct record_sidecar *r)
{
	struct session *s = b->s;
	char *text;
	int err = GROW(s->sidecars, b->works.sidecars_cap, s->sidecars_count + 1);

	if (err)
		return err;
	text = copy(r->text);
	if (!text)
		return -ENOMEM;
	s->sidecars[s->sidecars_count] = *r;
	s->sidecars[s->sidecars_count].ts = clamp_ts(r->ts);
	s->sidecars[s->sidecars_count++].text = text;
	return pid_seen(b, r->pid);
}

void works_builder_free(struct works_builder *w)
{
	map_free(&w->device_of);
	map_free(&w->shape_of);
	map_free(&w->stream_of);
	map_free(&w->pid_of);
	free(w->shape_kernel);
	free(w->raw);
	free(w->pids);
	free(w->calls);
}
