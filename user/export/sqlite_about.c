// SPDX-License-Identifier: BSD-2-Clause
/* Everything that is not an event: targets, GPUs, names, clocks, and what is missing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/sqlite.h"

#define WARNING 2
#define INFORMATION 1

static void put_pair(struct sqlite_writer *w, enum sqlite_table table, const char *name,
		     const char *value)
{
	struct sqlite_row row = sqlite_row(w, table);

	row_text(&row, name);
	row_text(&row, value ? value : "");
	row_add(&row);
}

static void put_environment(struct sqlite_writer *w, const char *name, const char *value)
{
	struct sqlite_row row = sqlite_row(w, TABLE_ENV);

	if (!value)
		return;
	row_int(&row, 0);
	row_null(&row);
	row_text(&row, name);
	row_null(&row);
	row_text(&row, value);
	row_add(&row);
}

static int64_t epoch_of(const struct sqlite_writer *w)
{
	const struct record_clock *best = NULL;

	for (size_t i = 0; i < w->s->clocks_count; i++)
		if (!best || w->s->clocks[i].error < best->error)
			best = &w->s->clocks[i];
	return best ? w->base + (best->realtime - best->monotonic) : -1;
}

static void put_start(struct sqlite_writer *w)
{
	int64_t epoch = epoch_of(w);
	time_t seconds = (time_t)(epoch / 1000000000);
	struct sqlite_row row = sqlite_row(w, TABLE_START);
	char text[64] = "";
	struct tm tm;

	row_known(&row, epoch);
	if (epoch >= 0 && gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) {
		row_text(&row, text);
	}
	row_add(&row);
}

static void put_process(struct sqlite_writer *w, uint32_t process)
{
	const struct session_process *p = &w->s->processes[process];
	struct sqlite_row row = sqlite_row(w, TABLE_PROCESSES);

	row_int(&row, (int64_t)w->global_pids[process]);
	row_int(&row, p->pid - w->id_shifts[process]);
	row_text(&row, p->exe && *p->exe ? p->exe : p->comm);
	row_add(&row);
}

static void put_threads(struct sqlite_writer *w)
{
	const struct session *s = w->s;

	for (size_t i = 0; i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];
		const char *comm = t->comm;
		struct sqlite_row row;
		uint32_t id;

		if (!export_wants_process(w->o, t->process))
			continue;
		if (!*comm && t->tid == t->pid)
			comm = s->processes[t->process].comm;
		id = sqlite_string(w, comm);
		row = sqlite_row(w, TABLE_THREADS);
		row_int(&row, id);
		row_int(&row, 0);
		row_int(&row, (int64_t)sqlite_global_tid(w, t->process, t->tid));
		row_add(&row);
	}
}

static const char *bus_of(const struct session *s, const struct session_device *d)
{
	return d->gpu < s->gpus_count ? s->gpus[d->gpu].pci : NULL;
}

static void put_gpu(struct sqlite_writer *w, uint32_t index)
{
	const struct session_device *d = &w->s->devices[index];
	const struct record_device *a = &d->about;
	struct sqlite_row row = sqlite_row(w, TABLE_GPU);
	const int64_t properties[] = {a->block_registers, a->block_smem, a->block_smem_optin,
				      a->sm_smem, a->sm_registers, a->warp};

	row_int(&row, 0);
	row_int(&row, index);
	row_text(&row, a->name);
	row_text(&row, bus_of(w->s, d));
	row_null(&row);
	row_null(&row);
	row_known(&row, a->memory);
	row_null(&row);
	row_null(&row);
	row_known(&row, a->sms);
	row_null(&row);
	row_text(&row, a->uuid);
	row_null(&row);
	row_null(&row);
	row_int(&row, a->ordinal);
	for (int i = 0; i < 6; i++) /* ctxswDevPath to maxIPC */
		row_null(&row);
	for (size_t i = 0; i < sizeof(properties) / sizeof(*properties); i++)
		row_known(&row, properties[i]);
	row_null(&row);
	row_known(&row, a->warp > 0 && a->sm_threads > 0 ? a->sm_threads / a->warp : -1);
	row_known(&row, a->sm_blocks);
	row_known(&row, a->block_threads);
	for (int i = 0; i < 6; i++)
		row_null(&row);
	row_known(&row, a->major);
	row_known(&row, a->minor);
	row_known(&row, a->major);
	row_known(&row, a->minor);
	row_add(&row);
}

static void put_device(struct sqlite_writer *w, const struct session_device *d)
{
	struct sqlite_row row = sqlite_row(w, TABLE_DEVICE);

	row_int(&row, d->physical);
	row_int(&row, d->about.ordinal);
	row_int(&row, w->s->processes[d->process].pid - w->id_shifts[d->process]);
	row_text(&row, d->about.uuid);
	row_known(&row, d->about.sms);
	row_add(&row);
}

static bool context_before(const struct session *s, size_t stream)
{
	const struct session_stream *a = &s->streams[stream];

	for (size_t i = 0; i < stream; i++)
		if (s->streams[i].process == a->process && s->streams[i].context == a->context)
			return true;
	return false;
}

static void put_context(struct sqlite_writer *w, const struct session_stream *stream)
{
	struct sqlite_row row = sqlite_row(w, TABLE_CONTEXT);

	row_null(&row);
	row_int(&row, (int64_t)(w->global_pids[stream->process] >> 56));
	row_int(&row, 0);
	row_int(&row, w->s->processes[stream->process].pid - w->id_shifts[stream->process]);
	row_int(&row, w->s->devices[stream->device].about.ordinal);
	row_int(&row, stream->context);
	row_add(&row);
}

static void put_overheads(struct sqlite_writer *w)
{
	const struct session *s = w->s;
	uint32_t name;

	if (!s->overheads_count)
		return;
	name = sqlite_string(w, "CUPTI");
	for (size_t i = 0; i < s->overheads_count; i++) {
		const struct session_overhead *o = &s->overheads[i];
		struct sqlite_row row;

		if (!export_wants_process(w->o, o->process) ||
		    !export_wants(w->o, o->begin, o->end))
			continue;
		row = sqlite_row(w, TABLE_OVERHEAD);
		row_int(&row, o->begin - w->base);
		row_int(&row, o->end - w->base);
		row_int(&row, (int64_t)w->global_pids[o->process]);
		row_null(&row);
		row_int(&row, name);
		row_null(&row);
		row_int(&row, o->kind);
		row_add(&row);
	}
}

static void diagnose(struct sqlite_writer *w, int severity, const char *text)
{
	struct sqlite_row row = sqlite_row(w, TABLE_DIAGNOSTIC);

	row_int(&row, 0);
	row_int(&row, 0);
	row_int(&row, 0);
	row_int(&row, severity);
	row_text(&row, text);
	row_add(&row);
}

static void count(struct sqlite_writer *w, int severity, uint64_t n, const char *what)
{
	char text[160];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " %s", n, what);
	diagnose(w, severity, text);
}

static void put_diagnostics(struct sqlite_writer *w)
{
	static const char *const causes[8] = {
		"events were lost (cause not known to this version)",
		"events were lost: a ring was full",
		"calls have no arguments: no room to keep them",
		"notices of mappings or processes were lost",
		"records of the kernel made no sense",
		"events could not be written to the recording",
		"names of kernels could not be read",
		"events were lost (cause not known to this version)",
	};
	const struct session_quality *q = &w->s->quality;
	const struct session_join *j = &w->s->join;

	for (int i = 0; i < 8; i++)
		count(w, WARNING, q->losses[i], causes[i]);
	if (q->end == READER_END_CUT)
		diagnose(w, WARNING, "the recording ends early: everything up to its last whole "
				     "chunk is here");
	if (q->end == READER_END_DAMAGED)
		diagnose(w, WARNING, "the recording is damaged: everything before is here");
	count(w, WARNING, j->works - j->matched,
	      "pieces of GPU work have no call that caused them");
	count(w, INFORMATION, j->earlier, "pieces of GPU work were launched before their window");
	count(w, WARNING, j->dropped, "records of GPU work were lost");
	count(w, WARNING, j->bad, "records of GPU work made no sense");
	if (!session_has_work(w->s))
		diagnose(w, INFORMATION, session_no_work(w->s, UINT32_MAX));
	if (j->clock_error > 0 && session_has_work(w->s))
		count(w, INFORMATION, (uint64_t)j->clock_error,
		      "ns at most is the error between times of calls and of GPU work");
}

static void put_meta(struct sqlite_writer *w)
{
	for (size_t i = 0; i < w->s->infos_count; i++)
		put_pair(w, TABLE_CAPTURE, w->s->infos[i].key, w->s->infos[i].value);
	put_pair(w, TABLE_EXPORT, "EXPORTER", "gbpf " GBPF_VERSION);
	put_pair(w, TABLE_EXPORT, "EXPORT_SCHEMA_NAME", "nsys tables of gbpf");
	put_pair(w, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION", "3.0.0");
	put_environment(w, "Hostname", session_info(w->s, "host"));
	put_environment(w, "OsVersion", session_info(w->s, "kernel"));
	put_environment(w, "CpuArch", session_info(w->s, "arch"));
}

void sqlite_about(struct sqlite_writer *w)
{
	const struct session *s = w->s;

	put_start(w);
	put_meta(w);
	put_diagnostics(w);
	put_overheads(w);
	for (uint32_t i = 0; i < s->processes_count; i++)
		if (export_wants_process(w->o, i))
			put_process(w, i);
	put_threads(w);
	for (uint32_t i = 0; i < s->devices_count; i++) {
		if (!export_wants_process(w->o, s->devices[i].process))
			continue;
		if (s->devices[i].physical == i)
			put_gpu(w, i);
		put_device(w, &s->devices[i]);
	}
	for (size_t i = 0; i < s->streams_count; i++)
		if (export_wants_process(w->o, s->streams[i].process) && !context_before(s, i))
			put_context(w, &s->streams[i]);
}
