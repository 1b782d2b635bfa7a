// SPDX-License-Identifier: BSD-2-Clause
/*
 * The JSON that torch.profiler writes, for the programs that read it: TensorBoard's
 * plugin, Holistic Trace Analysis, people's own. A file holds one process, because its
 * rows of GPUs are numbered by device. docs/traces-hta.md says what readers make of it.
 */
#include "export/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY (INT64_C(86400) * 1000000000)

/* The one that is wanted and has anything to show, else any that is wanted. */
static int choose_process(struct kineto *k, char *why, size_t size)
{
	const struct session *s = k->s;
	bool *busy = calloc(s->processes_count + 1, sizeof(*busy));
	size_t found = 0;

	k->process = UINT32_MAX;
	if (!busy)
		return -ENOMEM;
	for (size_t i = 0; i < s->threads_count; i++)
		busy[s->threads[i].process] |= s->threads[i].calls > 0;
	for (size_t i = 0; i < s->streams_count; i++)
		busy[s->streams[i].process] |= s->streams[i].works > 0;
	for (uint32_t i = 0; i < s->processes_count; i++) {
		if (!export_wants_process(k->o, i) || (!busy[i] && k->process != UINT32_MAX))
			continue;
		if (busy[i] || !found)
			k->process = i;
		found += busy[i];
	}
	free(busy);
	if (found <= 1)
		return 0;
	snprintf(why, size, "a file of this format holds one process, and there are %zu", found);
	return -EINVAL;
}

/* In a merged file numbers are those of the host again: a file has no other process. */
static void choose_pid(struct kineto *k)
{
	const struct session_process *p;
	const char *label;

	if (k->process == UINT32_MAX)
		return;
	p = &k->s->processes[k->process];
	label = session_label(k->s, k->process, "host_pid");
	k->pid = label ? (uint32_t)strtoul(label, NULL, 10) : p->pid;
	k->id_shift = p->pid - k->pid;
}

static void choose_clock(struct kineto *k)
{
	const struct record_clock *best = NULL;

	for (size_t i = 0; i < k->s->clocks_count; i++)
		if (!best || k->s->clocks[i].error < best->error)
			best = &k->s->clocks[i];
	if (best && best->realtime > 0 && best->monotonic >= 0) {
		k->offset = best->realtime - best->monotonic;
		k->clock_known = true;
	}
}

/*
 * Midnight: files of one day have one base, whichever host they come from, and times stay
 * below 2^37 us, where a double still tells nanoseconds apart.
 */
static void choose_base(struct kineto *k)
{
	int64_t first = k->first + k->offset;

	k->base = first - (first % DAY + DAY) % DAY;
}

static int allocate(struct kineto *k)
{
	const struct session *s = k->s;

	k->buf = malloc(KINETO_BUFFER);
	k->api_names = calloc(s->apis_count + 1, sizeof(*k->api_names));
	k->api_cbids = calloc(s->apis_count + 1, sizeof(*k->api_cbids));
	k->kernel_names = calloc(s->kernels_count + 1, sizeof(*k->kernel_names));
	k->shape_args = calloc(s->shapes_count + 1, sizeof(*k->shape_args));
	k->shape_device = calloc(s->shapes_count + 1, sizeof(*k->shape_device));
	if (!k->buf || !k->api_names || !k->api_cbids || !k->kernel_names || !k->shape_args ||
	    !k->shape_device)
		return -ENOMEM;
	return 0;
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

static void kineto_free(struct kineto *k)
{
	free_names(k->api_names, k->s->apis_count);
	free_names(k->kernel_names, k->s->kernels_count);
	free_names(k->shape_args, k->s->shapes_count);
	kineto_rows_free(k);
	kineto_marks_free(k);
	free(k->api_cbids);
	free(k->shape_device);
	export_ids_free(&k->ids);
	free(k->arrows);
	free(k->buf);
}

static int prepare(struct kineto *k, char *why, size_t size)
{
	int err = choose_process(k, why, size);

	if (!err)
		err = allocate(k);
	if (err)
		return err;
	choose_pid(k);
	choose_clock(k);
	err = export_ids_new(&k->ids, k->s);
	if (!err)
		err = kineto_rows(k);
	return err ? err : kineto_marks(k);
}

static int write_events(struct kineto *k)
{
	struct export_item item;
	struct export_walk *walk;
	int err = export_walk_new(&walk, k->s, k->o);
	bool any;

	if (err)
		return err;
	any = export_walk_next(walk, &item);
	k->first = any ? item.begin : k->s->begin;
	if (k->marks_count && k->marks[0].begin < k->first)
		k->first = k->marks[0].begin;
	choose_base(k);
	kineto_put_head(k);
	err = kineto_events(k, walk, &item, any);
	export_walk_free(walk);
	if (!err)
		kineto_put_tail(k);
	put_flush(k);
	return err ? err : k->err;
}

/* What the file will be called, without folders and without what is added while it is written. */
static void name_trace(struct kineto *k, const struct export_file *f)
{
	const char *path = export_path(f), *slash = strrchr(path, '/');

	snprintf(k->name, sizeof(k->name), "%s", slash ? slash + 1 : path);
	for (int dots = 0; dots < 2; dots++) {
		char *dot = strrchr(k->name, '.');

		if (dot)
			*dot = '\0';
	}
}

static int write_kineto(const struct session *s, const struct export_options *o,
			struct export_file *f, char *why, size_t size)
{
	struct kineto *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->s = s;
	k->o = o;
	k->out = export_stream(f);
	name_trace(k, f);
	err = prepare(k, why, size);
	if (!err)
		err = write_events(k);
	kineto_free(k);
	free(k);
	return err;
}

static const char *const endings[] = {".pt.trace.json.gz", ".pt.trace.json", ".json", NULL};

const struct export_writer export_kineto = {
	.name = "kineto",
	.endings = endings,
	.what = "JSON as torch.profiler writes it, for TensorBoard, HTA and others",
	.one_process = true,
	.quick = true,
	.write = write_kineto,
};
