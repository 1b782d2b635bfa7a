// SPDX-License-Identifier: BSD-2-Clause
/* What several views need to know about calls, threads and windows. */
#include <string.h>

#include "probe/catalogue.h"
#include "report/row.h"

int64_t wall_in_windows(const struct session *s, int64_t from, int64_t to)
{
	return session_recorded(s, from, to);
}

int64_t process_wall(const struct session *s, const struct session_process *p)
{
	return wall_in_windows(s, p->first, p->last);
}

static int64_t scaled(int64_t part, int64_t whole, int64_t scale)
{
	__int128 v;

	if (part == NA || whole == NA || whole <= 0)
		return NA;
	v = ((__int128)part * scale + whole / 2) / whole;
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

int64_t share(int64_t part, int64_t whole)
{
	return scaled(part, whole, 100 * 1000);
}

int64_t rate(int64_t count, int64_t ns)
{
	return scaled(count, ns, INT64_C(1000000000) * 1000);
}

static const struct api *api_of(const struct session *s, const struct call *c)
{
	return s->apis[c->api].catalogue ? catalogue_get(s->apis[c->api].catalogue) : NULL;
}

/* Nesting is shallow in earnest; a file that claims otherwise gets no more than this. */
#define MAX_NESTING 256

bool is_inside(const struct session *s, const struct call *c,
	       bool (*sort)(const struct session *s, const struct call *c))
{
	for (int i = 0; c->parent != CALL_NONE && i < MAX_NESTING; i++) {
		c = &s->calls[c->parent];
		if (sort(s, c))
			return true;
	}
	return false;
}

const char *copy_direction(const struct session *s, const struct call *c)
{
	/* cudaMemcpyKind, in its order (CUDA runtime API, "Data types"). */
	static const char *const by_kind[] = { "HtoH", "HtoD", "DtoH", "DtoD" };
	const struct api *api = api_of(s, c);
	uint64_t kind;

	if (s->apis[c->api].kind == API_SET)
		return "set";
	switch (api ? api->direction : COPY_UNKNOWN) {
	case COPY_HTOD: return "HtoD";
	case COPY_DTOH: return "DtoH";
	case COPY_DTOD: return "DtoD";
	case COPY_HTOH: return "HtoH";
	case COPY_PEER: return "PtoP";
	case COPY_BY_KIND: break;
	default: return NULL;
	}
	if (!(c->flags & CALL_ARGS_CALL))
		return NULL;
	kind = s->transfers[c->args].kind;
	return kind < 4 ? by_kind[kind] : NULL; /* cudaMemcpyDefault: the pointers say */
}

const char *kernel_name(const struct session *s, uint32_t kernel, enum report_names style)
{
	const struct session_kernel *k;

	if (kernel >= s->kernels_count)
		return NULL;
	k = &s->kernels[kernel];
	if (style == REPORT_MANGLED)
		return k->mangled;
	return style == REPORT_BASE ? k->short_name : k->demangled;
}
