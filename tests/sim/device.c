/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEGACY_ID 7 /* as CUPTI numbers it */

struct sim_settings sim_settings;

static struct sim_context primary[SIM_DEVICES];
static _Thread_local struct sim_context *current;
static _Thread_local struct sim_stream *thread_stream[SIM_DEVICES];
static atomic_uint next_context = 1, next_stream = 13;
static struct sim_stream *_Atomic streams[SIM_STREAMS];
static atomic_uint stream_top, fail_count;

static int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoll(text, NULL, 0) : otherwise;
}

static void read_fail(const char *text)
{
	struct sim_settings *s = &sim_settings;
	const char *equals = text ? strchr(text, '=') : NULL;
	const char *at;

	if (!equals || (size_t)(equals - text) >= sizeof(s->fail_api))
		return;
	memcpy(s->fail_api, text, (size_t)(equals - text));
	s->fail_code = atoi(equals + 1);
	at = strchr(equals, '@');
	s->fail_every = at ? (unsigned)atoi(at + 1) : 1;
	s->inject = s->fail_every > 0;
}

static enum sim_name_mode name_mode(const char *text)
{
	static const char *const names[] = { "plain", "cold", "unreadable", "garbage" };

	for (unsigned i = 0; text && i < 4; i++)
		if (!strcmp(text, names[i]))
			return (enum sim_name_mode)i;
	return NAME_PLAIN;
}

__attribute__((constructor)) static void read_settings(void)
{
	struct sim_settings *s = &sim_settings;
	const char *wait = getenv("SIMCUDA_WAIT");
	int64_t depth = setting("SIMCUDA_DEPTH", SIM_DEPTH_MAX);
	int64_t offset = setting("SIMCUDA_NAME_OFFSET", 8);
	int64_t devices = setting("SIMCUDA_DEVICES", 1);
	const char *graph = getenv("SIMCUDA_GRAPH");

	s->dispatch_ns = setting("SIMCUDA_DISPATCH_NS", 0);
	s->kernel_ns = setting("SIMCUDA_KERNEL_NS", -1);
	s->copy_ns = setting("SIMCUDA_COPY_NS", 2000);
	s->cold_ns = setting("SIMCUDA_COLD_NS", 0);
	s->latency_ns = setting("SIMCUDA_LATENCY_NS", 0);
	s->devices = devices > 0 && devices <= SIM_DEVICES ? (int)devices : 1;
	s->graph_concurrent = graph && !strcmp(graph, "concurrent");
	s->depth = depth > 0 && depth < SIM_DEPTH_MAX ? (unsigned)depth : SIM_DEPTH_MAX;
	s->name_word = offset >= 0 && offset < SIM_FUNC_WORDS * 8 ? (unsigned)offset / 8 : 1;
	s->name_mode = name_mode(getenv("SIMCUDA_NAME"));
	s->sleep = wait && !strcmp(wait, "sleep");
	read_fail(getenv("SIMCUDA_FAIL"));
}

int sim_inject(const char *api)
{
	const struct sim_settings *s = &sim_settings;

	if (strcmp(api, s->fail_api) != 0)
		return 0;
	return (atomic_fetch_add(&fail_count, 1) + 1) % s->fail_every ? 0 : s->fail_code;
}

static void spin(int64_t ns)
{
	int64_t until;

	if (ns <= 0)
		return;
	until = sim_now() + ns;
	while (sim_now() < until)
		;
}

void sim_dispatch(void)
{
	spin(sim_settings.dispatch_ns);
}

void sim_cold(unsigned times)
{
	spin(sim_settings.cold_ns * times);
}

void sim_wait(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (!sim_settings.sleep && ns - sim_now() < SIM_FOREVER / 2) {
		while (sim_now() < ns)
			;
		return;
	}
	while (sim_now() < ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

struct sim_context *sim_context(void)
{
	return current ? current : sim_context_primary(0);
}

void sim_context_set(struct sim_context *c)
{
	current = c;
}

static void begin_context(struct sim_context *c, int device)
{
	c->device = device;
	c->legacy.ctx = c;
	c->legacy.id = LEGACY_ID;
}

struct sim_context *sim_context_primary(int device)
{
	begin_context(&primary[device], device);
	return &primary[device];
}

struct sim_context *sim_context_new(int device)
{
	struct sim_context *c = calloc(1, sizeof(*c));

	if (c)
		begin_context(c, device);
	return c;
}

uint32_t sim_context_id(struct sim_context *c)
{
	uint32_t id = atomic_load_explicit(&c->id, memory_order_relaxed), none = 0;

	if (id)
		return id;
	id = atomic_fetch_add(&next_context, 1);
	return atomic_compare_exchange_strong(&c->id, &none, id) ? id : none;
}

struct sim_stream *sim_stream_new(void)
{
	struct sim_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = sim_context();
	s->id = atomic_fetch_add(&next_stream, 1);
	for (unsigned i = 0; i < SIM_STREAMS; i++) {
		struct sim_stream *none = NULL;
		unsigned top = i + 1, seen = atomic_load(&stream_top);

		if (!atomic_compare_exchange_strong(&streams[i], &none, s))
			continue;
		while (seen < top && !atomic_compare_exchange_weak(&stream_top, &seen, top))
			;
		return s;
	}
	free(s);
	return NULL;
}

void sim_stream_free(struct sim_stream *s)
{
	for (unsigned i = 0; i < atomic_load(&stream_top); i++) {
		struct sim_stream *same = s;

		if (!atomic_compare_exchange_strong(&streams[i], &same, NULL))
			continue;
		free(s);
		return;
	}
}

struct sim_stream *sim_stream(CUstream handle, bool per_thread)
{
	struct sim_stream **mine;
	struct sim_context *ctx;

	if (handle && handle != SIM_STREAM_LEGACY && handle != SIM_STREAM_PER_THREAD)
		return handle;
	ctx = sim_context();
	if (handle == SIM_STREAM_LEGACY || (!handle && !per_thread))
		return &ctx->legacy;
	mine = &thread_stream[ctx->device];
	if (!*mine)
		*mine = sim_stream_new();
	return *mine ? *mine : &ctx->legacy;
}

/* A stream destroyed by another thread meanwhile is the caller's mistake, here as with CUDA. */
int64_t sim_device_end(int device)
{
	int64_t end = atomic_load(&primary[device].legacy.end);

	if (sim_context()->device == device && atomic_load(&sim_context()->legacy.end) > end)
		end = atomic_load(&sim_context()->legacy.end);
	for (unsigned i = 0; i < atomic_load(&stream_top); i++) {
		struct sim_stream *s = atomic_load(&streams[i]);
		int64_t its = s && s->ctx->device == device ? atomic_load(&s->end) : 0;

		if (its > end)
			end = its;
	}
	return end;
}

void sim_context_reset(struct sim_context *c)
{
	const struct sim_hooks *hooks = atomic_load(&sim_hooks);
	uint32_t id = atomic_load(&c->id);

	sim_wait(sim_device_end(c->device));
	for (unsigned i = 0; i < atomic_load(&stream_top); i++) {
		struct sim_stream *s = atomic_load(&streams[i]);

		if (s && s->ctx == c && atomic_compare_exchange_strong(&streams[i], &s, NULL))
			free(s);
	}
	thread_stream[c->device] = NULL;
	if (hooks && id)
		hooks->reset(id);
	atomic_store(&c->id, 0);
}

static void lock(struct sim_stream *s)
{
	while (atomic_flag_test_and_set_explicit(&s->busy, memory_order_acquire))
		;
}

static void unlock(struct sim_stream *s)
{
	atomic_flag_clear_explicit(&s->busy, memory_order_release);
}

/* Forgets what has ended; what is left of the oldest's time if the ring is still full, else 0. */
static int64_t make_room(struct sim_stream *s, int64_t now)
{
	while (s->used && s->done[s->head] <= now) {
		s->head = (s->head + 1) % SIM_DEPTH_MAX;
		s->used--;
	}
	return s->used < sim_settings.depth ? 0 : s->done[s->head];
}

struct sim_span sim_enqueue(struct sim_stream *s, int64_t duration_ns)
{
	int64_t now = sim_now(), full, end, ready;
	struct sim_span span;

	lock(s);
	while ((full = make_room(s, now))) {
		unlock(s);
		sim_wait(full);
		now = sim_now();
		lock(s);
	}
	end = atomic_load_explicit(&s->end, memory_order_relaxed);
	ready = now + sim_settings.latency_ns;
	span.enqueued = now;
	span.begin = end > ready ? end : ready;
	span.end = span.begin + duration_ns;
	if (span.end > SIM_FOREVER)
		span.end = SIM_FOREVER;
	atomic_store_explicit(&s->end, span.end, memory_order_relaxed);
	s->done[(s->head + s->used++) % SIM_DEPTH_MAX] = span.end;
	unlock(s);
	return span;
}

void sim_stream_after(struct sim_stream *s, int64_t ns)
{
	lock(s);
	if (ns > atomic_load(&s->end))
		atomic_store(&s->end, ns);
	unlock(s);
}

void sim_execute(const struct sim_launch *l)
{
	uint64_t *out = l->params && l->params[0] ? *(uint64_t **)l->params[0] : NULL;

	if (out)
		*out = *out * SIM_MIX + sim_launch_word(l->grid, l->block, l->smem);
}

int64_t sim_duration(const struct sim_func *f)
{
	return sim_settings.kernel_ns >= 0 ? sim_settings.kernel_ns : f->duration_ns;
}

void sim_work_kernel(struct sim_work *w, const struct sim_launch *l)
{
	w->is.kind = TRUTH_KERNEL;
	w->is.name = l->func->name_id;
	memcpy(w->is.grid, l->grid, sizeof(l->grid));
	memcpy(w->is.block, l->block, sizeof(l->block));
	w->is.smem = l->smem;
	w->is.registers = SIM_REGISTERS;
	w->name = l->func->name;
}

static void tell_launch(const struct sim_stream *s, const struct sim_launch *l,
			const struct sim_span *span)
{
	struct sim_work w = { 0 };

	sim_work_kernel(&w, l);
	sim_work_tell(s, span, &w);
}

int sim_launch(struct sim_stream *s, const struct sim_launch *l)
{
	struct sim_span span;

	if (!l->func)
		return SIM_INVALID_HANDLE;
	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || !l->block[0] || !l->block[1] ||
	    !l->block[2] || (uint64_t)l->block[0] * l->block[1] * l->block[2] > 1024)
		return SIM_INVALID_VALUE;
	if (s->capture)
		return sim_graph_add(s->capture, l);
	if (sim_unlikely(!l->func->warm)) {
		sim_cold(1);
		l->func->warm = true;
	}
	sim_dispatch();
	span = sim_enqueue(s, sim_duration(l->func));
	if (sim_work_wanted())
		tell_launch(s, l, &span);
	sim_execute(l);
	return SIM_SUCCESS;
}
