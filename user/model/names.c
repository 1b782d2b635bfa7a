// SPDX-License-Identifier: BSD-2-Clause
/* Which kernel a handle meant, in which process and when. */
#include "model/gpu.h"
#include "model/internal.h"
#include "probe/catalogue.h"
#include "util/text.h"

#include <stdio.h>

/* ns; no program unloads a module and gets another's function faster than this */
#define NAME_SLACK 20000


static int kernel_add(struct session_builder *b, const char *text, bool named, uint32_t *out)
{
	struct session *s = b->s;
	struct session_kernel *k;
	int err = GROW(s->kernels, b->kernels_cap, s->kernels_count + 1);

	if (err)
		return err;
	k = &s->kernels[s->kernels_count];
	*k = (struct session_kernel){ .named = named, .mangled = strdup(text),
				      .comm = named && kernel_is_comm(text) };
	k->demangled = named ? text_demangle(text) : strdup(text);
	k->short_name = named && k->demangled ? text_short_name(k->demangled) : strdup(text);
	if (!k->mangled || !k->demangled || !k->short_name) {
		free(k->mangled);
		free(k->demangled);
		free(k->short_name);
		return -ENOMEM;
	}
	*out = (uint32_t)s->kernels_count++;
	return 0;
}

/* *out is NO_INDEX if the text is not known and must not be added. */
static int kernel_intern(struct session_builder *b, const char *text, bool add, uint32_t *out)
{
	uint64_t hash = map_hash_bytes(text, strlen(text));
	int err;

	for (uint64_t attempt = 0;; attempt++) {
		*out = map_get(&b->texts, hash, attempt);
		if (*out != MAP_NONE && strcmp(b->s->kernels[*out].mangled, text))
			continue;
		if (*out != MAP_NONE || !add)
			return 0;
		err = kernel_add(b, text, true, out);
		return err ? err : map_put(&b->texts, hash, attempt, *out);
	}
}

int builder_kernel(struct session_builder *b, const char *name, bool named, uint32_t *out)
{
	return named ? kernel_intern(b, name, true, out) : kernel_add(b, name, false, out);
}

static bool is_identifier(const char *text)
{
	const char *p = text;

	for (; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
		bool later = (*p >= '0' && *p <= '9') || *p == '$' || *p == '.';

		if (!letter && !(later && p > text))
			return false;
	}
	return p > text;
}

static int name_order(const void *pa, const void *pb)
{
	const struct name_note *a = pa, *b = pb;
	bool asked_a = a->source == GBPF_NAME_GETTER, asked_b = b->source == GBPF_NAME_GETTER;

	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->handle != b->handle)
		return a->handle < b->handle ? -1 : 1;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (asked_a != asked_b)
		return asked_a ? 1 : -1; /* the last one wins */
	return a->order < b->order ? -1 : a->order > b->order;
}

/* First pass: names that can be believed as they are. */
static int name_believe(struct session_builder *b, struct name_note *n)
{
	bool asked = n->source == GBPF_NAME_GETTER;
	int err;

	n->epoch = epoch_at(b, n->pid, n->ts);
	if (n->epoch == NO_INDEX || n->source == GBPF_NAME_FAULT || !*n->text)
		return 0;
	if (!asked && !is_identifier(n->text))
		return 0;
	err = kernel_intern(b, n->text, true, &n->kernel);
	if (!err && asked)
		err = map_put(&b->confirmed, b->epochs[n->epoch].process, n->kernel, 1);
	return err;
}

/* Second pass: what looks odd must be a name that the process itself used. */
static int name_confirm(struct session_builder *b, struct name_note *n)
{
	uint32_t kernel;
	int err;

	if (n->kernel != NO_INDEX || n->epoch == NO_INDEX || !*n->text)
		return 0;
	err = kernel_intern(b, n->text, false, &kernel);
	if (!err && kernel != NO_INDEX &&
	    map_get(&b->confirmed, b->epochs[n->epoch].process, kernel) != MAP_NONE)
		n->kernel = kernel;
	return err;
}

static bool same_handle(const struct name_note *a, const struct name_note *b)
{
	return a->epoch == b->epoch && a->handle == b->handle;
}

int builder_names(struct session_builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->names_count && !err; i++)
		err = name_believe(b, &b->names[i]);
	for (size_t i = 0; i < b->names_count && !err; i++)
		err = name_confirm(b, &b->names[i]);
	if (err || !b->names_count)
		return err;
	qsort(b->names, b->names_count, sizeof(*b->names), name_order);
	/* What the kernel could not read was read a little later, by the loader. */
	for (size_t i = b->names_count - 1; i-- > 0;)
		if (b->names[i].source == GBPF_NAME_FAULT &&
		    same_handle(&b->names[i], &b->names[i + 1]))
			b->names[i].kernel = b->names[i + 1].kernel;
	for (size_t i = 0, end; i < b->names_count && !err; i = end) {
		for (end = i + 1; end < b->names_count; end++)
			if (!same_handle(&b->names[i], &b->names[end]))
				break;
		b->names[i].after = (uint32_t)end;
		err = map_put(&b->ranges, b->names[i].epoch, b->names[i].handle, (uint32_t)i);
	}
	return err;
}

/*
 * The name valid at ts: the last one before, else the first one after, since
 * a handle is read when it is first used, and so a moment late.
 */
static uint32_t name_lookup(struct session_builder *b, uint32_t epoch, uint64_t handle,
			    int64_t ts)
{
	struct recent_range *recent = &b->recent_ranges[(handle >> 4) % RECENT_RANGES];
	uint32_t low, high;

	if (recent->handle != handle || recent->epoch != epoch)
		*recent = (struct recent_range){ handle, epoch,
						 map_get(&b->ranges, epoch, handle) };
	low = recent->range;
	if (low == MAP_NONE)
		return NO_INDEX;
	high = b->names[low].after;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (b->names[middle].ts <= ts)
			low = middle;
		else
			high = middle;
	}
	return b->names[low].kernel;
}

static int name_unnamed(struct session_builder *b, uint32_t epoch, uint64_t handle, uint32_t *out)
{
	uint32_t process = b->epochs[epoch].process;
	char text[40];
	int err;

	*out = map_get(&b->unnamed, process, handle);
	if (*out != MAP_NONE)
		return 0;
	snprintf(text, sizeof(text), "kernel@0x%llx", (unsigned long long)handle);
	err = kernel_add(b, text, false, out);
	return err ? err : map_put(&b->unnamed, process, handle, *out);
}

static bool is_launch(const struct session *s, const struct call *c)
{
	return c->flags & CALL_ARGS_LAUNCH && s->apis[c->api].kind == API_LAUNCH;
}

/* Until when a name read because of this call may have been noted. */
static int64_t name_deadline(const struct call *c)
{
	if (c->flags & CALL_OPEN)
		return TS_LIMIT;
	if (c->flags & (CALL_NO_END | CALL_ENTRY_ONLY))
		return c->begin + NAME_SLACK;
	return c->end;
}

static int call_name(struct session_builder *b, uint32_t epoch, struct call *c)
{
	const struct session *s = b->s;
	uint64_t func = s->launches[c->args].func;
	uint32_t kernel;

	if (c->kernel != NO_INDEX && s->kernels[c->kernel].named)
		return 0; /* through the driver's launch inside it */
	kernel = name_lookup(b, epoch, func, name_deadline(c));
	if (kernel == NO_INDEX && c->kernel != NO_INDEX)
		return 0;
	if (kernel == NO_INDEX)
		return name_unnamed(b, epoch, func, &c->kernel);
	c->kernel = kernel;
	return 0;
}

int names_apply(struct session_builder *b, uint32_t epoch, size_t from, size_t to)
{
	struct session *s = b->s;
	int err = 0;

	for (size_t i = to; i-- > from && !err;) { /* backwards: inner calls first */
		struct call *c = &s->calls[i], *outer;

		if (!is_launch(s, c))
			continue;
		err = call_name(b, epoch, c);
		outer = c->parent >= from && c->parent != NO_INDEX ? &s->calls[c->parent] : NULL;
		if (!err && outer && is_launch(s, outer) &&
		    (outer->kernel == NO_INDEX || s->kernels[c->kernel].named))
			outer->kernel = c->kernel;
	}
	return err;
}
