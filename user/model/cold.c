// SPDX-License-Identifier: BSD-2-Clause
/*
 * First calls, by evidence. That a trace did not see something before means
 * little when it came late: either the process began inside the trace, or the
 * kernel's handle did.
 */
#include "model/internal.h"
#include "probe/catalogue.h"

struct cold {
	struct session_builder *b;
	struct map first_api;	 /* (process, api) to call */
	struct map first_kernel; /* (process, kernel) to call */
	struct map handles;	 /* (process, kernel): asked for inside the trace */
	uint32_t *seen_api, *seen_kernel; /* thread + 1 that met it last */
};

/* Was an image that this process called mapped before its probes were in place? */
static bool image_gap(const struct session *s, const struct session_process *p)
{
	for (size_t i = 0; i < s->images_count; i++)
		if (s->images[i].mapped && s->images[i].covered > s->images[i].mapped &&
		    p->begun < s->images[i].covered)
			return true;
	return false;
}

/* The driver's cuInit comes before everything: who was seen in it was seen from the start. */
static void find_started(struct session *s, const struct map *first_api)
{
	for (size_t p = 0; p < s->processes_count; p++) {
		struct session_process *process = &s->processes[p];
		int64_t first = INT64_MAX;
		bool initialised = false;

		for (size_t a = 0; a < s->apis_count; a++) {
			uint32_t call = map_get(first_api, p, a);

			if (call == MAP_NONE)
				continue;
			initialised |= !strcmp(s->apis[a].name, "cuInit");
			if (s->calls[call].begin < first)
				first = s->calls[call].begin;
		}
		process->started = process->begun && process->begun <= first &&
				   (initialised || !image_gap(s, process));
	}
}

static int keep_first(struct session *s, struct map *m, uint32_t process, uint32_t what,
		      uint32_t call)
{
	uint32_t known = map_get(m, process, what);

	if (known != MAP_NONE && s->calls[known].begin <= s->calls[call].begin)
		return 0;
	return map_put(m, process, what, call);
}

/* A launch inside a launch is the same one. */
static bool is_outer_launch(const struct session *s, const struct call *c)
{
	return c->kernel != NO_INDEX &&
	       (c->parent == CALL_NONE || s->calls[c->parent].kernel == NO_INDEX);
}

static int scan_thread(struct cold *cold, uint32_t thread)
{
	struct session *s = cold->b->s;
	const struct session_thread *t = &s->threads[thread];
	int err = 0;

	for (uint32_t i = t->first_call; i < t->first_call + t->calls && !err; i++) {
		const struct call *c = &s->calls[i];

		if (cold->seen_api[c->api] != thread + 1) {
			cold->seen_api[c->api] = thread + 1;
			err = keep_first(s, &cold->first_api, t->process, c->api, i);
		}
		if (err || !is_outer_launch(s, c) || cold->seen_kernel[c->kernel] == thread + 1)
			continue;
		cold->seen_kernel[c->kernel] = thread + 1;
		err = keep_first(s, &cold->first_kernel, t->process, c->kernel, i);
	}
	return err;
}

static int find_handles(struct cold *cold)
{
	const struct session_builder *b = cold->b;
	int err = 0;

	for (size_t i = 0; i < b->names_count && !err; i++) {
		const struct name_note *n = &b->names[i];

		/* a flight recorder's file says at its begin what was so before */
		if (n->source == GBPF_NAME_GETTER && n->kernel != NO_INDEX &&
		    n->ts > b->known_begin)
			err = map_put(&cold->handles, b->epochs[n->epoch].process, n->kernel,
				      (uint32_t)i);
	}
	return err;
}

/* Did this thread load a module after its launch before, or inside this one? */
static bool loaded_just_before(const struct session *s, uint32_t call)
{
	const struct session_thread *t = &s->threads[s->calls[call].thread];
	uint32_t last = t->first_call + t->calls;

	for (uint32_t i = call; i-- > t->first_call && call - i < 64;) {
		if (strstr(s->apis[s->calls[i].api].name, "Load"))
			return s->apis[s->calls[i].api].kind == API_MODULE;
		if (s->calls[i].kernel != NO_INDEX)
			break;
	}
	for (uint32_t i = call + 1; i < last && s->calls[i].parent >= call &&
				    s->calls[i].parent != CALL_NONE; i++)
		if (s->apis[s->calls[i].api].kind == API_MODULE &&
		    strstr(s->apis[s->calls[i].api].name, "Load"))
			return true;
	return false;
}

static void mark_api(struct session *s, const struct map_slot *first)
{
	struct call *c = &s->calls[first->value];

	if (s->processes[first->a].started && !(c->flags & CALL_NO_BEGIN))
		c->flags |= CALL_COLD | CALL_COLD_API;
}

static void mark_kernel(struct cold *cold, const struct map_slot *first)
{
	struct session *s = cold->b->s;
	struct call *c = &s->calls[first->value];

	if (!s->processes[first->a].started &&
	    map_get(&cold->handles, first->a, first->b) == MAP_NONE) {
		if (!loaded_just_before(s, first->value))
			return;
		c->flags |= CALL_COLD_LOAD;
	}
	c->flags |= CALL_COLD | CALL_COLD_KERNEL;
}

static void mark(struct cold *cold)
{
	const struct map *apis = &cold->first_api, *kernels = &cold->first_kernel;

	for (size_t i = 0; apis->slots && i <= apis->mask; i++)
		if (apis->slots[i].value != MAP_NONE)
			mark_api(cold->b->s, &apis->slots[i]);
	for (size_t i = 0; kernels->slots && i <= kernels->mask; i++)
		if (kernels->slots[i].value != MAP_NONE)
			mark_kernel(cold, &kernels->slots[i]);
}

int builder_cold(struct session_builder *b)
{
	struct session *s = b->s;
	struct cold cold = { .b = b };
	int err = -ENOMEM;

	cold.seen_api = calloc(s->apis_count + 1, sizeof(*cold.seen_api));
	cold.seen_kernel = calloc(s->kernels_count + 1, sizeof(*cold.seen_kernel));
	if (cold.seen_api && cold.seen_kernel)
		err = find_handles(&cold);
	for (uint32_t t = 0; t < s->threads_count && !err; t++)
		err = scan_thread(&cold, t);
	if (!err) {
		find_started(s, &cold.first_api);
		mark(&cold);
	}
	free(cold.seen_api);
	free(cold.seen_kernel);
	map_free(&cold.first_api);
	map_free(&cold.first_kernel);
	map_free(&cold.handles);
	return err;
}
