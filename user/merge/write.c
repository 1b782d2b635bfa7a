// SPDX-License-Identifier: BSD-2-Clause
/* The second reading: every record, with the numbers it has in the merged recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/private.h"
#include "record/writer.h"

#define BATCH 1024

struct copy {
	const struct merge *m;
	const struct source *s; /* that is being copied */
	size_t source;
	struct writer *w;
	struct event events[BATCH];
	uint16_t apis[GBPF_MAX_API]; /* of this source; 0: not yet */
	uint16_t images[GBPF_MAX_IMAGE];
	struct map api_of; /* (hash of name, attempt) to names */
	char **api_names;  /* by new id */
	size_t api_count, api_cap;
	uint32_t next_image;
	struct map gpu_of; /* (host and hash of UUID) to its new id; hosts' own GPUs */
	struct map gpu_in; /* (source, id there) to its new id */
	uint32_t next_gpu;
	uint32_t shape_base;
	char pids[65536];
	bool (*go_on)(void *ctx, double share);
	void *ctx;
	uint64_t events_all, events_done;
	char *why;
	size_t why_size;
};

static uint32_t id(const struct copy *c, uint32_t own)
{
	return own ? own + c->s->about.id_shift : 0;
}

static int64_t ts(const struct copy *c, int64_t own)
{
	return shift_ts(own, c->s->about.clock_shift);
}

static int too_many(struct copy *c, const char *what)
{
	snprintf(c->why, c->why_size, "more %s than a recording can number", what);
	return -EOVERFLOW;
}

/* ---- functions and libraries ---- */

static int api_add(struct copy *c, const struct record_api *r, uint16_t *out)
{
	const char *name = r->name ? r->name : "";
	uint64_t hash = map_hash_bytes(name, strlen(name));
	struct record copy = {.kind = RECORD_API, .api = *r};
	uint32_t known;
	int err;

	for (uint64_t attempt = 0;; attempt++) {
		known = map_get(&c->api_of, hash, attempt);
		if (known != MAP_NONE && strcmp(c->api_names[known], name) != 0)
			continue;
		if (known != MAP_NONE) {
			*out = (uint16_t)(known + 1);
			return 0;
		}
		if (c->api_count + 1 >= GBPF_MAX_API)
			return too_many(c, "functions");
		err = GROW(c->api_names, c->api_cap, c->api_count + 1);
		if (!err)
			err = map_put(&c->api_of, hash, attempt, (uint32_t)c->api_count);
		if (err)
			return err;
		break;
	}
	c->api_names[c->api_count] = strdup(name);
	if (!c->api_names[c->api_count])
		return -ENOMEM;
	*out = (uint16_t)++c->api_count;
	copy.api.id = *out;
	return writer_add(c->w, &copy);
}

static int api_record(struct copy *c, const struct record_api *r)
{
	if (r->id >= GBPF_MAX_API || c->apis[r->id])
		return 0; /* the first record of an id counts */
	return api_add(c, r, &c->apis[r->id]);
}

/* Of a function that the source does not name. */
static int api_of(struct copy *c, uint16_t own, uint16_t *out)
{
	char name[32];
	struct record_api r = {own, name, "", "other"};
	int err = 0;

	own &= GBPF_MAX_API - 1;
	if (!c->apis[own]) {
		snprintf(name, sizeof(name), "api#%u", own);
		err = api_add(c, &r, &c->apis[own]);
	}
	*out = c->apis[own];
	return err;
}

static int image_of(struct copy *c, uint32_t own, uint16_t *out)
{
	*out = 0;
	if (!own || own >= GBPF_MAX_IMAGE)
		return 0;
	if (!c->images[own]) {
		if (c->next_image + 1 >= GBPF_MAX_IMAGE)
			return too_many(c, "libraries");
		c->images[own] = (uint16_t)++c->next_image;
	}
	*out = c->images[own];
	return 0;
}

static int events_record(struct copy *c, const struct record_events *r)
{
	int err = 0;

	for (size_t at = 0; at < r->count && !err;) {
		size_t n = r->count - at < BATCH ? r->count - at : BATCH;

		memcpy(c->events, r->events + at, n * sizeof(*c->events));
		for (size_t i = 0; i < n && !err; i++) {
			struct event *e = &c->events[i];

			e->ts = ts(c, e->ts);
			e->pid = id(c, e->pid);
			e->tid = id(c, e->tid);
			if (e->kind == EVENT_POLL && e->poll.last_end)
				e->poll.last_end = ts(c, e->poll.last_end);
			err = api_of(c, e->api, &e->api);
			if (!err)
				err = image_of(c, e->image, &e->image);
		}
		if (!err)
			err = writer_events(c->w, c->events, n);
		at += n;
	}
	c->events_done += r->count;
	if (!err && c->go_on &&
	    !c->go_on(c->ctx, (double)c->events_done / (double)(c->events_all + 1)))
		err = -EINTR;
	return err;
}

/* ---- GPUs ---- */

static int gpu_known(struct copy *c, uint32_t own, const char *uuid, uint32_t *out, bool *fresh)
{
	uint32_t host = c->s->about.host_index;
	uint64_t hash = uuid && *uuid ? map_hash_bytes(uuid, strlen(uuid)) : 0;
	int err = 0;

	*fresh = false;
	*out = map_get(&c->gpu_in, c->source, own);
	if (*out != MAP_NONE)
		return 0;
	if (hash)
		*out = map_get(&c->gpu_of, host, hash);
	if (*out == MAP_NONE) {
		*out = c->next_gpu++;
		*fresh = true;
		if (hash)
			err = map_put(&c->gpu_of, host, hash, *out);
	}
	return err ? err : map_put(&c->gpu_in, c->source, own, *out);
}

static int gpu_record(struct copy *c, struct record *r)
{
	bool fresh;
	int err = gpu_known(c, r->gpu.id, r->gpu.uuid, &r->gpu.id, &fresh);

	return err ? err : writer_add(c->w, r);
}

static void shift_pids(struct copy *c, const char *pids)
{
	size_t used = 0;

	c->pids[0] = '\0';
	while (*pids) {
		char *end;
		unsigned long pid = strtoul(pids, &end, 10);

		if (end == pids || used + 16 > sizeof(c->pids))
			return;
		used += (size_t)snprintf(c->pids + used, sizeof(c->pids) - used, "%s%u",
					 used ? "," : "", id(c, (uint32_t)pid));
		pids = *end ? end + 1 : end;
	}
}

static int sample_record(struct copy *c, struct record *r)
{
	bool fresh;
	int err = gpu_known(c, r->gpu_sample.gpu, NULL, &r->gpu_sample.gpu, &fresh);

	if (err)
		return err;
	r->gpu_sample.ts = ts(c, r->gpu_sample.ts);
	if (c->s->about.id_shift && r->gpu_sample.pids) {
		shift_pids(c, r->gpu_sample.pids);
		r->gpu_sample.pids = c->pids;
	}
	return writer_add(c->w, r);
}

/* ---- everything else ---- */

static int label(struct copy *c, const struct record_process *p, const char *key, const char *value)
{
	struct record r = {.kind = RECORD_LABEL, .label = {p->ts, p->pid, key, value}};

	return writer_add(c->w, &r);
}

/* What a process was called at home, where that is not the first source's host. */
static int process_record(struct copy *c, struct record *r)
{
	uint32_t own = r->process.pid;
	char text[16];
	int err;

	r->process.ts = ts(c, r->process.ts);
	r->process.pid = id(c, own);
	r->process.ppid = id(c, r->process.ppid);
	err = writer_add(c->w, r);
	if (err || !c->s->about.id_shift)
		return err;
	snprintf(text, sizeof(text), "%u", own);
	err = label(c, &r->process, "host_pid", text);
	return err ? err : label(c, &r->process, "host", c->s->about.host);
}

static int site_record(struct copy *c, struct record *r)
{
	uint16_t image;
	int err = image_of(c, r->site.image, &image);

	r->site.image = image;
	return err ? err : writer_add(c->w, r);
}

static int image_record(struct copy *c, struct record *r)
{
	uint16_t image;
	int err = image_of(c, r->image.id, &image);

	r->image.id = image;
	r->image.mapped = r->image.mapped ? ts(c, r->image.mapped) : 0;
	r->image.covered = r->image.covered ? ts(c, r->image.covered) : 0;
	return err ? err : writer_add(c->w, r);
}

static int work_record(struct copy *c, struct record *r)
{
	struct record_work *w = &r->work;

	w->begin = ts(c, w->begin);
	w->pid = id(c, w->pid);
	if (w->kind == RECORD_WORK_KERNEL)
		w->shape += c->shape_base;
	return writer_add(c->w, r);
}

/* What a source without ACTIVE windows recorded counts, beside one that has such, too. */
static int window_record(struct copy *c, struct record *r)
{
	int err;

	r->window.begin = ts(c, r->window.begin);
	r->window.end = ts(c, r->window.end);
	err = writer_add(c->w, r);
	if (err || r->kind == RECORD_ACTIVE || c->s->actives || !c->m->actives)
		return err;
	r->kind = RECORD_ACTIVE;
	return writer_add(c->w, r);
}

/* Records of which only times and ids change. */
static void shift_small(const struct copy *c, struct record *r)
{
	switch (r->kind) {
	case RECORD_NAME:
		r->name.ts = ts(c, r->name.ts);
		r->name.pid = id(c, r->name.pid);
		break;
	case RECORD_THREAD:
		r->thread.pid = id(c, r->thread.pid);
		r->thread.tid = id(c, r->thread.tid);
		break;
	case RECORD_LOSS: r->loss.ts = ts(c, r->loss.ts); break;
	case RECORD_DEVICE: r->device.pid = id(c, r->device.pid); break;
	case RECORD_SHAPE:
		r->shape.pid = id(c, r->shape.pid);
		r->shape.id += c->shape_base;
		break;
	case RECORD_WORK_CALL:
		r->work_call.begin = ts(c, r->work_call.begin);
		r->work_call.pid = id(c, r->work_call.pid);
		r->work_call.tid = id(c, r->work_call.tid);
		break;
	case RECORD_OVERHEAD:
		r->overhead.begin = ts(c, r->overhead.begin);
		r->overhead.pid = id(c, r->overhead.pid);
		r->overhead.tid = id(c, r->overhead.tid);
		break;
	case RECORD_SIDECAR:
		r->sidecar.ts = ts(c, r->sidecar.ts);
		r->sidecar.pid = id(c, r->sidecar.pid);
		break;
	case RECORD_LABEL:
		r->label.ts = ts(c, r->label.ts);
		r->label.pid = id(c, r->label.pid);
		break;
	case RECORD_TRIGGER:
		r->trigger.ts = ts(c, r->trigger.ts);
		r->trigger.begin = ts(c, r->trigger.begin);
		break;
	default: break;
	}
}

static int record(struct copy *c, struct record *r)
{
	switch (r->kind) {
	case RECORD_EVENTS: return events_record(c, &r->events);
	case RECORD_API: return api_record(c, &r->api);
	case RECORD_IMAGE: return image_record(c, r);
	case RECORD_SITE: return site_record(c, r);
	case RECORD_GPU: return gpu_record(c, r);
	case RECORD_GPU_SAMPLE: return sample_record(c, r);
	case RECORD_PROCESS: return process_record(c, r);
	case RECORD_WORK: return work_record(c, r);
	case RECORD_WINDOW:
	case RECORD_ACTIVE: return window_record(c, r);
	case RECORD_INFO: return 0; /* infos.c */
	case RECORD_CLOCK: /* another host's would contradict the first's */
		return c->s->about.host_index ? 0 : writer_add(c->w, r);
	default:
		shift_small(c, r);
		return writer_add(c->w, r);
	}
}

/* A process of which only calls were seen has no record to hang its labels on. */
static int unseen_processes(struct copy *c)
{
	int err = 0;

	for (size_t i = 0; i < c->s->busy_count && !err && c->s->about.id_shift; i++) {
		struct record_process p = {.ts = ts(c, c->s->about.begin),
					   .pid = id(c, c->s->busy_pids[i])};
		char text[16];

		snprintf(text, sizeof(text), "%u", c->s->busy_pids[i]);
		err = label(c, &p, "host_pid", text);
		if (!err)
			err = label(c, &p, "host", c->s->about.host);
	}
	return err;
}

static int source_copy(struct copy *c)
{
	struct reader *r;
	struct record one;
	int got, err = reader_open(&r, c->s->about.path);

	if (err)
		return err;
	memset(c->apis, 0, sizeof(c->apis));
	memset(c->images, 0, sizeof(c->images));
	err = unseen_processes(c);
	while (!err && (got = reader_next(r, &one)) != 0)
		err = got < 0 ? got : record(c, &one);
	reader_close(r);
	if (!err)
		err = writer_flush(c->w);
	if (!err && __builtin_add_overflow(c->shape_base, c->s->shapes, &c->shape_base))
		err = too_many(c, "shapes");
	return err;
}

static void copy_free(struct copy *c)
{
	for (size_t i = 0; i < c->api_count; i++)
		free(c->api_names[i]);
	free(c->api_names);
	map_free(&c->api_of);
	map_free(&c->gpu_of);
	map_free(&c->gpu_in);
	free(c);
}

/* CLOCK_REALTIME at which the first source was begun, as near as it says. */
static int64_t realtime_of(const struct source *s)
{
	int64_t begin = s->about.begin;

	if (s->clock.low > s->clock.high || begin > s->about.end)
		return 0;
	return shift_ts(begin, s->clock.low);
}

int merge_write(struct merge *m, int fd, bool (*go_on)(void *ctx, double share), void *ctx,
		char *why, size_t size)
{
	struct copy *c = calloc(1, sizeof(*c));
	int err, end;

	if (!c || !m->count) {
		close(fd);
		free(c);
		return c ? -EINVAL : -ENOMEM;
	}
	c->m = m;
	c->go_on = go_on;
	c->ctx = ctx;
	c->why = why;
	c->why_size = size;
	for (size_t i = 0; i < m->count; i++)
		c->events_all += m->sources[i]->about.events;
	err = writer_new(&c->w, fd, realtime_of(m->sources[0]));
	if (!err) {
		err = infos_write(m, c->w);
		for (c->source = 0; c->source < m->count && !err; c->source++) {
			c->s = m->sources[c->source];
			err = source_copy(c);
		}
		end = writer_close(c->w);
		err = err ? err : end;
	}
	copy_free(c);
	return err;
}
