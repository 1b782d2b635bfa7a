// SPDX-License-Identifier: BSD-2-Clause
#include "model/memory.h"

#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "probe/catalogue.h"

/* A call that gives or takes memory, at the moment from which it counts. */
struct event_at {
	int64_t at;
	uint32_t process, call;
	bool frees;
};

struct finding {
	const struct session *s;
	struct event_at *events;
	size_t count, cap;
	struct map live; /* (process, pointer) to items + 1; 0: freed */
	struct memory *out;
	size_t items_cap;
};

static bool is_memory(const struct session *s, const struct call *c)
{
	uint8_t kind = s->apis[c->api].kind;

	return kind == API_ALLOC || kind == API_FREE;
}

static bool inside_another(const struct session *s, const struct call *c)
{
	for (int i = 0; c->parent != CALL_NONE && i < 64; i++) {
		c = &s->calls[c->parent];
		if (is_memory(s, c))
			return true;
	}
	return false;
}

static bool of_host(const char *api)
{
	return strstr(api, "Host") != NULL;
}

static int gather(struct finding *f)
{
	const struct session *s = f->s;

	for (size_t i = 0; i < s->calls_count; i++) {
		const struct call *c = &s->calls[i];
		bool frees = s->apis[c->api].kind == API_FREE;
		uint32_t process = s->threads[c->thread].process;

		if (!is_memory(s, c) || inside_another(s, c))
			continue;
		if (c->flags & CALL_ERROR) {
			f->out->uses[process].failed++;
			continue;
		}
		if (call_duration(c) < 0 || !(c->flags & CALL_ARGS_CALL))
			continue; /* whether it succeeded, or what it was about, is not known */
		if (GROW(f->events, f->cap, f->count + 1))
			return -ENOMEM;
		f->events[f->count++] = (struct event_at){ frees ? c->begin : c->end, process,
							   (uint32_t)i, frees };
	}
	return 0;
}

static int by_time(const void *pa, const void *pb)
{
	const struct event_at *a = pa, *b = pb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	/* What is freed and given out again at one instant was freed first. */
	if (a->frees != b->frees)
		return a->frees ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

static int allocate(struct finding *f, const struct event_at *e)
{
	const struct session *s = f->s;
	const struct call *c = &s->calls[e->call];
	const struct call_args *args = &s->transfers[c->args];
	struct memory_use *use = &f->out->uses[e->process];
	/* Registering takes memory that the program has, and returns nothing. */
	uint64_t pointer = args->has_out ? args->out : args->object;
	struct allocation *a;

	if (!pointer)
		return 0;
	if (GROW(f->out->items, f->items_cap, f->out->count + 1) ||
	    map_put(&f->live, e->process, pointer, (uint32_t)f->out->count + 1))
		return -ENOMEM;
	a = &f->out->items[f->out->count++];
	*a = (struct allocation){ .begin = e->at, .end = NOT_FREED, .bytes = args->bytes,
				  .pointer = pointer, .process = e->process, .call = e->call,
				  .free_call = CALL_NONE,
				  .host = of_host(s->apis[c->api].name) };
	use->allocations++;
	use->bytes += a->bytes;
	if (a->host) {
		use->host_live += a->bytes;
		return 0;
	}
	use->live += a->bytes;
	if (use->live > use->peak) {
		use->peak = use->live;
		use->peak_at = e->at;
	}
	return 0;
}

static int release(struct finding *f, const struct event_at *e)
{
	const struct call *c = &f->s->calls[e->call];
	uint64_t pointer = f->s->transfers[c->args].object;
	struct memory_use *use = &f->out->uses[e->process];
	uint32_t at = map_get(&f->live, e->process, pointer);
	struct allocation *a;

	if (!pointer)
		return 0; /* freeing nothing is allowed */
	use->frees++;
	if (at == MAP_NONE || !at) {
		use->before += at == MAP_NONE;
		use->twice += !at;
		return 0;
	}
	a = &f->out->items[at - 1];
	a->end = e->at;
	a->free_call = e->call;
	if (a->host)
		use->host_live -= a->bytes;
	else
		use->live -= a->bytes;
	return map_put(&f->live, e->process, pointer, 0);
}

int memory_find(const struct session *s, struct memory *out)
{
	struct finding f = { .s = s, .out = out };
	int err = 0;

	*out = (struct memory){ .uses = calloc(s->processes_count + 1, sizeof(*out->uses)) };
	if (!out->uses)
		return -ENOMEM;
	err = gather(&f);
	if (!err && f.count)
		qsort(f.events, f.count, sizeof(*f.events), by_time);
	for (size_t i = 0; !err && i < f.count; i++)
		err = f.events[i].frees ? release(&f, &f.events[i]) : allocate(&f, &f.events[i]);
	map_free(&f.live);
	free(f.events);
	if (err)
		memory_free(out);
	return err;
}

void memory_free(struct memory *m)
{
	free(m->items);
	free(m->uses);
	*m = (struct memory){ 0 };
}
