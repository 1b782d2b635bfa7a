/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in memory and records as text, for the tests of user/record. */
#ifndef TESTS_RECORD_FILE_H
#define TESTS_RECORD_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/reader.h"
#include "record/writer.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* One line a record or event and kind; all that a reader must give back. */
struct log {
	FILE *file;
	char *text;
	size_t size;
};

static inline void log_new(struct log *l)
{
	l->file = open_memstream(&l->text, &l->size);
	assert_non_null(l->file);
}

static inline const char *log_text(struct log *l)
{
	fflush(l->file);
	return l->text;
}

static inline void log_free(struct log *l)
{
	fclose(l->file);
	free(l->text);
}

static inline void log_bytes(FILE *f, const char *s, size_t len)
{
	fprintf(f, " %zu:", len);
	for (size_t i = 0; i < len; i++)
		fprintf(f, "%02x", (unsigned char)s[i]);
}

static inline void log_string(FILE *f, const char *s)
{
	log_bytes(f, s ? s : "", s ? strnlen(s, 65535) : 0);
}

static inline void log_event(FILE *f, const struct event *e)
{
	fprintf(f, "event %ld %u %u %u %u %u %u", (long)e->ts, e->pid, e->tid, e->sp, e->api,
		e->image, e->kind);
	if (e->kind == EVENT_BEGIN && e->args == EVENT_ARGS_LAUNCH)
		fprintf(f, " launch %lx %lx %lx %u %u %u %u %u %u", (long)e->launch.func,
			(long)e->launch.stream, (long)e->launch.smem, e->launch.grid[0],
			e->launch.grid[1], e->launch.grid[2], e->launch.block[0],
			e->launch.block[1], e->launch.block[2]);
	else if (e->kind == EVENT_BEGIN && e->args == EVENT_ARGS_CALL)
		fprintf(f, " call %lx %lx %lx %lx %lx", (long)e->call.object,
			(long)e->call.stream, (long)e->call.source, (long)e->call.bytes,
			(long)e->call.kind);
	else if (e->kind == EVENT_END)
		fprintf(f, " end %ld %d %lx", (long)e->end.ret, e->has_out,
			e->has_out ? (long)e->end.out : 0);
	else if (e->kind == EVENT_POLL)
		fprintf(f, " poll %lx %ld %ld %u %u %u %d", (long)e->poll.object,
			(long)e->poll.last_end, (long)e->poll.inside, e->poll.min, e->poll.max,
			e->poll.count, e->poll.ret);
	fputc('\n', f);
}

static inline void log_place(FILE *f, const struct record *r)
{
	if (r->kind == RECORD_IMAGE) {
		fprintf(f, "image %u %u %lx %lx %ld %ld", r->image.id, r->image.kind,
			(long)r->image.dev, (long)r->image.ino, (long)r->image.mapped,
			(long)r->image.covered);
		log_string(f, r->image.path);
		log_string(f, r->image.build_id);
		log_string(f, r->image.version);
	} else if (r->kind == RECORD_SITE) {
		fprintf(f, "site %u %u %lx", r->site.image, r->site.state, (long)r->site.offset);
		log_string(f, r->site.api);
		log_string(f, r->site.reason);
	} else if (r->kind == RECORD_API) {
		fprintf(f, "api %u", r->api.id);
		log_string(f, r->api.name);
		log_string(f, r->api.library);
		log_string(f, r->api.kind);
	}
}

static inline void log_who(FILE *f, const struct record *r)
{
	const struct record_process *p = &r->process;

	if (r->kind == RECORD_PROCESS) {
		fprintf(f, "process %ld %u %u %u %u %u %d %u %ld", (long)p->ts, p->event, p->pid,
			p->ppid, p->ns_pid, p->uid, p->exit_code, p->flags, (long)p->start);
		log_string(f, p->comm);
		log_string(f, p->cmdline);
		log_string(f, p->exe);
		log_string(f, p->container);
	} else if (r->kind == RECORD_THREAD) {
		fprintf(f, "thread %u %u %u", r->thread.pid, r->thread.tid, r->thread.ns_tid);
		log_string(f, r->thread.comm);
	} else if (r->kind == RECORD_NAME) {
		fprintf(f, "name %ld %u %u %lx", (long)r->name.ts, r->name.pid, r->name.source,
			(long)r->name.handle);
		log_bytes(f, r->name.name, r->name.len < 8191 ? r->name.len : 8191);
	}
}

static inline void log_gpu(FILE *f, const struct record *r)
{
	const struct record_gpu_sample *s = &r->gpu_sample;

	if (r->kind == RECORD_GPU) {
		fprintf(f, "gpu %u %u", r->gpu.id, r->gpu.index);
		log_string(f, r->gpu.uuid);
		log_string(f, r->gpu.name);
		log_string(f, r->gpu.pci);
		log_string(f, r->gpu.mig_parent);
		return;
	}
	fprintf(f, "sample %ld %u %x %u %u %u %u %u %lx %u %u", (long)s->ts, s->gpu, s->has,
		s->clock_sm_mhz, s->clock_memory_mhz, s->power_mw, s->power_limit_mw,
		s->temperature_c, (unsigned long)s->throttle, s->utilisation_pct,
		s->memory_utilisation_pct);
	fprintf(f, " %lu %lu %lu %u %u %u %u %lu %u %u", (unsigned long)s->memory_used,
		(unsigned long)s->memory_total, (unsigned long)s->energy_mj, s->gpm_sm,
		s->gpm_occupancy, s->gpm_tensor, s->gpm_dram, (unsigned long)s->xid_count,
		s->xid_last, s->processes);
	log_string(f, s->pids);
}

static inline void log_device(FILE *f, const struct record_device *d)
{
	fprintf(f, "device %u %u %ld %d %d %d %d %d %d %d %d %d %d %d %d %d", d->pid, d->ordinal,
		(long)d->memory, d->major, d->minor, d->sms, d->warp, d->block_threads,
		d->sm_threads, d->sm_blocks, d->block_registers, d->sm_registers, d->block_smem,
		d->block_smem_optin, d->sm_smem, d->reserved_smem);
	log_string(f, d->uuid);
	log_string(f, d->name);
}

static inline void log_shape(FILE *f, const struct record_shape *s)
{
	fprintf(f, "shape %u %u %u %u %u %u %u %u %u %u %u %u", s->pid, s->id, s->grid[0],
		s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->registers,
		s->smem_static, s->smem_dynamic, s->local);
	log_string(f, s->kernel);
}

static inline void log_work(FILE *f, const struct record *r)
{
	const struct record_work *w = &r->work;
	const struct record_work_call *c = &r->work_call;

	if (r->kind == RECORD_WORK)
		fprintf(f, "work %ld %lu %u %u %u %u %u %u %u %u %lu %lu %u %u %u %u %u %d %u",
			(long)w->begin, (unsigned long)w->duration, w->pid, w->kind, w->device,
			w->context, w->stream, w->correlation, w->shape, w->graph,
			(unsigned long)w->graph_node, (unsigned long)w->bytes, w->direction,
			w->source, w->target, w->channel, w->channel_type, w->priority, w->peer);
	else if (r->kind == RECORD_WORK_CALL)
		fprintf(f, "call %ld %lu %u %u %u %u %u %d", (long)c->begin,
			(unsigned long)c->duration, c->pid, c->tid, c->domain, c->cbid,
			c->correlation, c->ret);
	else if (r->kind == RECORD_OVERHEAD)
		fprintf(f, "overhead %ld %lu %u %u %u", (long)r->overhead.begin,
			(unsigned long)r->overhead.duration, r->overhead.pid, r->overhead.tid,
			r->overhead.kind);
	else if (r->kind == RECORD_SIDECAR) {
		fprintf(f, "sidecar %ld %u %u %lu %u", (long)r->sidecar.ts, r->sidecar.pid,
			r->sidecar.event, (unsigned long)r->sidecar.count, r->sidecar.cupti);
		log_string(f, r->sidecar.text);
	} else if (r->kind == RECORD_DEVICE) {
		log_device(f, &r->device);
	} else if (r->kind == RECORD_LABEL) {
		fprintf(f, "label %ld %u", (long)r->label.ts, r->label.pid);
		log_string(f, r->label.key);
		log_string(f, r->label.value);
	} else if (r->kind == RECORD_SHAPE) {
		log_shape(f, &r->shape);
	} else if (r->kind == RECORD_TRIGGER) {
		const struct record_trigger *t = &r->trigger;

		fprintf(f, "trigger %ld %u %ld %ld %ld %u %lu", (long)t->ts, t->cause,
			(long)t->begin, (long)t->value, (long)t->threshold, t->unit,
			(unsigned long)t->samples);
		log_string(f, t->text);
	}
}

static inline void log_record(FILE *f, const struct record *r)
{
	if (r->kind == RECORD_EVENTS) {
		for (size_t i = 0; i < r->events.count; i++)
			log_event(f, &r->events.events[i]);
		return;
	}
	log_place(f, r);
	log_who(f, r);
	if (r->kind == RECORD_CLOCK)
		fprintf(f, "clock %ld %ld %ld %ld", (long)r->clock.monotonic,
			(long)r->clock.realtime, (long)r->clock.boottime, (long)r->clock.error);
	else if (r->kind == RECORD_LOSS)
		fprintf(f, "loss %ld %u %lu", (long)r->loss.ts, r->loss.cause,
			(unsigned long)r->loss.count);
	else if (r->kind == RECORD_WINDOW)
		fprintf(f, "window %ld %ld", (long)r->window.begin, (long)r->window.end);
	else if (r->kind == RECORD_ACTIVE)
		fprintf(f, "active %ld %ld", (long)r->window.begin, (long)r->window.end);
	else if (r->kind == RECORD_INFO) {
		fprintf(f, "info");
		log_string(f, r->info.key);
		log_string(f, r->info.value);
	} else if (r->kind == RECORD_GPU || r->kind == RECORD_GPU_SAMPLE) {
		log_gpu(f, r);
	} else {
		log_work(f, r);
	}
	fputc('\n', f);
}

static inline int file_new(void)
{
	int fd = memfd_create("record", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline int file_of(const uint8_t *data, size_t size)
{
	int fd = file_new();

	assert_int_equal(pwrite(fd, data, size, 0), size);
	return fd;
}

/* All bytes of a file, to be freed. */
static inline uint8_t *file_bytes(int fd, size_t *size)
{
	uint8_t *data;

	*size = (size_t)lseek(fd, 0, SEEK_END);
	data = malloc(*size + 1);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, *size, 0), *size);
	return data;
}

static inline int file_open(struct reader **r, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return reader_open(r, path);
}

struct outcome {
	int err; /* of opening */
	enum reader_end end;
	uint64_t lost;
};

/* Reads a file to its end into the log. */
static inline struct outcome file_read(int fd, FILE *log)
{
	struct outcome o = {0};
	struct record record;
	struct reader *r;

	o.err = file_open(&r, fd);
	if (o.err) {
		assert_null(r);
		return o;
	}
	assert_int_equal(reader_end(r), READER_END_UNKNOWN);
	while ((o.err = reader_next(r, &record)) == 1)
		log_record(log, &record);
	assert_int_equal(reader_next(r, &record), 0);
	o.end = reader_end(r);
	o.lost = reader_lost_bytes(r);
	reader_close(r);
	return o;
}

#endif
