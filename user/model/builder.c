// SPDX-License-Identifier: BSD-2-Clause
#include "model/internal.h"
#include "util/beside.h"


int session_builder_new(struct session_builder **out)
{
	struct session_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->s = calloc(1, sizeof(*b->s));
	b->launch_cache = malloc(ARGS_CACHE * sizeof(*b->launch_cache));
	b->transfer_cache = malloc(ARGS_CACHE * sizeof(*b->transfer_cache));
	if (!b->s || !b->launch_cache || !b->transfer_cache) {
		session_builder_free(b);
		return -ENOMEM;
	}
	memset(b->launch_cache, 0xff, ARGS_CACHE * sizeof(*b->launch_cache));
	memset(b->transfer_cache, 0xff, ARGS_CACHE * sizeof(*b->transfer_cache));
	memset(b->api_of, 0xff, sizeof(b->api_of));
	memset(b->recent, 0xff, sizeof(b->recent));
	memset(b->recent_ranges, 0xff, sizeof(b->recent_ranges));
	b->works.recent = b->works.lost_kernel = NO_INDEX;
	b->first_event = INT64_MAX;
	b->last_event = INT64_MIN;
	*out = b;
	return 0;
}

int session_builder_add(struct session_builder *b, const struct record *record)
{
	if (record->kind == RECORD_EVENTS)
		return builder_events(b, &record->events);
	return builder_note(b, record);
}

/* A process lived in [first, last) as far as the trace saw. */
static void bound_lives(struct session *s)
{
	for (size_t i = 0; i < s->processes_count; i++) {
		struct session_process *p = &s->processes[i];

		if (p->first == INT64_MIN)
			p->first = s->begin;
		if (p->last == INT64_MAX)
			p->last = s->end;
		if (p->last < p->first)
			p->last = p->first;
	}
}

static int calls_run(void *builder)
{
	struct session_builder *b = builder;
	int err = builder_names(b);

	if (!err)
		err = builder_pair(b);
	builder_cut(b);
	return err;
}

static int streams_run(void *builder)
{
	return builder_streams(builder);
}

int session_builder_finish(struct session_builder *b, enum reader_end end, uint64_t lost_bytes,
			   struct session **out)
{
	int err;

	b->s->quality.end = end;
	b->s->quality.lost_bytes = lost_bytes;
	err = builder_processes(b);
	if (!err)
		err = builder_windows(b);
	if (!err)
		/* neither knows of the other before the join */
		err = beside_both(calls_run, b, streams_run, b, b->s->works_count > BESIDE_WORKS);
	if (!err)
		err = builder_covers(b);
	if (!err)
		err = builder_join(b);
	if (!err)
		err = builder_drained(b);
	if (!err)
		err = builder_cold(b);
	if (!err)
		err = builder_trim(b);
	if (!err)
		err = builder_gpus(b);
	if (err)
		return err;
	builder_labels(b);
	bound_lives(b->s);
	*out = b->s;
	b->s = NULL;
	return 0;
}

static void free_notes(struct session_builder *b)
{
	for (size_t i = 0; i < b->notes_count; i++) {
		free((char *)b->notes[i].r.comm);
		free((char *)b->notes[i].r.cmdline);
		free((char *)b->notes[i].r.exe);
		free((char *)b->notes[i].r.container);
	}
	for (size_t i = 0; i < b->names_count; i++)
		free(b->names[i].text);
	for (size_t i = 0; i < b->named_count; i++)
		free(b->named[i].comm);
	for (size_t i = 0; i < b->queues_count; i++)
		free(b->queues[i].events);
	free(b->notes);
	free(b->names);
	free(b->named);
	free(b->queues);
}

void session_builder_free(struct session_builder *b)
{
	if (!b)
		return;
	session_free(b->s);
	free_notes(b);
	free(b->epochs);
	free(b->actives);
	free(b->outs);
	free(b->launch_cache);
	free(b->transfer_cache);
	map_free(&b->queue_of);
	map_free(&b->entry_only_sites);
	map_free(&b->texts);
	map_free(&b->confirmed);
	map_free(&b->ranges);
	map_free(&b->unnamed);
	map_free(&b->gpu_of);
	works_builder_free(&b->works);
	free(b);
}
