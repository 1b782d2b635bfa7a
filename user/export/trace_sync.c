// SPDX-License-Identifier: BSD-2-Clause
#include "export/trace_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/catalogue.h"

#define NO_CONTEXT UINT32_MAX
#define MANY_CONTEXTS (UINT32_MAX - 1)

static enum export_sync_kind kind_of(const struct session_api *a)
{
	if (a->kind != API_SYNC)
		return SYNC_NONE;
	if (strstr(a->name, "StreamSynchronize"))
		return SYNC_STREAM;
	if (strstr(a->name, "DeviceSynchronize") || strstr(a->name, "CtxSynchronize") ||
	    strstr(a->name, "ThreadSynchronize"))
		return SYNC_CONTEXT;
	return SYNC_NONE;
}

static int note_stream(struct export_syncs *y, uint32_t index)
{
	const struct session_stream *st = &y->s->streams[index], *known;
	uint32_t *only = &y->only[st->process];

	if (*only == NO_CONTEXT) {
		*only = index;
	} else if (*only != MANY_CONTEXTS) {
		known = &y->s->streams[*only];
		if (known->device != st->device || known->context != st->context)
			*only = MANY_CONTEXTS;
	}
	return st->handle ? map_put(&y->stream_of, st->process, st->handle, index) : 0;
}

int export_syncs_new(struct export_syncs *y, const struct session *s)
{
	int err = 0;

	*y = (struct export_syncs){.s = s};
	y->only = malloc((s->processes_count + 1) * sizeof(*y->only));
	y->kinds = calloc(s->apis_count + 1, sizeof(*y->kinds));
	if (!y->only || !y->kinds)
		err = -ENOMEM;
	for (size_t i = 0; i < s->processes_count && !err; i++)
		y->only[i] = NO_CONTEXT;
	for (size_t i = 0; i < s->apis_count && !err; i++)
		y->kinds[i] = (uint8_t)kind_of(&s->apis[i]);
	for (uint32_t i = 0; i < s->streams_count && !err; i++)
		err = note_stream(y, i);
	if (err)
		export_syncs_free(y);
	return err;
}

void export_syncs_free(struct export_syncs *y)
{
	map_free(&y->stream_of);
	free(y->only);
	free(y->kinds);
	y->only = NULL;
	y->kinds = NULL;
}

enum export_sync_kind export_sync_of(const struct export_syncs *y, uint32_t call, uint32_t *stream)
{
	const struct call *c = &y->s->calls[call];
	uint32_t process = y->s->threads[c->thread].process;
	enum export_sync_kind kind = y->kinds[c->api];

	if (kind == SYNC_CONTEXT) {
		*stream = y->only[process];
		return *stream < MANY_CONTEXTS ? kind : SYNC_NONE;
	}
	if (kind != SYNC_STREAM || !(c->flags & CALL_ARGS_CALL))
		return SYNC_NONE;
	*stream = map_get(&y->stream_of, process, y->s->transfers[c->args].stream);
	return *stream != MAP_NONE ? kind : SYNC_NONE;
}
