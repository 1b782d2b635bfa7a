// SPDX-License-Identifier: BSD-2-Clause
#include "model/session.h"

#include <stdlib.h>
#include <string.h>

#include "model/builder.h"

int session_load(struct session **out, struct reader *r)
{
	struct session_builder *b;
	struct record record;
	int err = session_builder_new(&b);
	int got = 0;

	if (err)
		return err;
	while (!err && (got = reader_next(r, &record)) > 0)
		err = session_builder_add(b, &record);
	if (!err)
		err = got;
	if (!err)
		err = session_builder_finish(b, reader_end(r), reader_lost_bytes(r), out);
	session_builder_free(b);
	return err;
}

static void free_sources(struct session *s)
{
	for (size_t i = 0; i < s->images_count; i++) {
		free((char *)s->images[i].path);
		free((char *)s->images[i].build_id);
		free((char *)s->images[i].version);
	}
	for (size_t i = 0; i < s->sites_count; i++) {
		free((char *)s->sites[i].api);
		free((char *)s->sites[i].reason);
	}
	for (size_t i = 0; i < s->infos_count; i++) {
		free((char *)s->infos[i].key);
		free((char *)s->infos[i].value);
	}
	for (size_t i = 0; i < s->apis_count; i++) {
		free((char *)s->apis[i].name);
		free(s->apis[i].display);
	}
	free(s->images);
	free(s->sites);
	free(s->infos);
	free(s->apis);
}

static void free_gpus(struct session *s)
{
	for (size_t i = 0; i < s->gpus_count; i++) {
		free(s->gpus[i].uuid);
		free(s->gpus[i].name);
		free(s->gpus[i].pci);
		free(s->gpus[i].mig_parent);
		free(s->gpus[i].throttled_by);
	}
	free(s->gpus);
	free(s->gpu_samples);
}

static void free_subjects(struct session *s)
{
	for (size_t i = 0; i < s->labels_count; i++) {
		free(s->labels[i].key);
		free(s->labels[i].value);
	}
	free(s->labels);
	for (size_t i = 0; i < s->processes_count; i++) {
		free(s->processes[i].comm);
		free(s->processes[i].cmdline);
		free(s->processes[i].exe);
		free(s->processes[i].container);
	}
	for (size_t i = 0; i < s->threads_count; i++)
		free(s->threads[i].comm);
	for (size_t i = 0; i < s->kernels_count; i++) {
		free(s->kernels[i].mangled);
		free(s->kernels[i].demangled);
		free(s->kernels[i].short_name);
	}
	free(s->processes);
	free(s->threads);
	free(s->kernels);
}

static void free_works(struct session *s)
{
	for (size_t i = 0; i < s->devices_count; i++) {
		free((char *)s->devices[i].about.uuid);
		free((char *)s->devices[i].about.name);
	}
	for (size_t i = 0; i < s->sidecars_count; i++)
		free((char *)s->sidecars[i].text);
	free(s->devices);
	free(s->streams);
	free(s->shapes);
	free(s->works);
	free(s->call_works);
	free(s->work_calls);
	free(s->overheads);
	free(s->sidecars);
	free(s->sidecar_process);
	free(s->covers);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	free_sources(s);
	free_subjects(s);
	free_gpus(s);
	free_works(s);
	for (size_t i = 0; i < s->triggers_count; i++)
		free((char *)s->triggers[i].text);
	free(s->triggers);
	free(s->windows);
	free(s->calls);
	free(s->launches);
	free(s->transfers);
	free(s->polls);
	free(s->clocks);
	free(s->losses);
	free(s);
}

const char *session_info(const struct session *s, const char *key)
{
	/* The last one counts: a value may be refined while the trace runs. */
	for (size_t i = s->infos_count; i-- > 0;)
		if (!strcmp(s->infos[i].key, key))
			return s->infos[i].value;
	return NULL;
}

int64_t call_duration(const struct call *c)
{
	if (c->flags & (CALL_OPEN | CALL_NO_END | CALL_NO_BEGIN | CALL_ENTRY_ONLY))
		return -1;
	return c->end - c->begin;
}

int64_t call_self(const struct session *s, const struct call *c)
{
	int64_t whole = call_duration(c);

	if (whole < 0)
		return -1;
	if (c->flags & CALL_POLL)
		whole = s->polls[c->args].inside;
	return whole > c->children ? whole - c->children : 0;
}
