// SPDX-License-Identifier: BSD-2-Clause
/* The tracks of a Perfetto trace: processes, threads, GPUs, and what hangs on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_perfetto.h"

#define PROGRESS_EVERY 8192

int perfetto_progress(struct perfetto *f)
{
	if (f->packets.err)
		return f->packets.err;
	return ++f->done % PROGRESS_EVERY ? 0 : export_progress(f->o, f->done, f->all);
}

/* Is it the first time that this one is asked for? */
static bool first_time(struct perfetto *f, enum track_kind kind, uint64_t number)
{
	if (map_get(&f->tracks, kind, number) != MAP_NONE)
		return false;
	if (map_put(&f->tracks, kind, number, 0))
		f->packets.err = -ENOMEM;
	return true;
}

/* Perfetto's numbers of processes and threads are signed. */
static int32_t positive(uint32_t id)
{
	return (int32_t)(id & INT32_MAX);
}

const char *perfetto_process_name(const struct perfetto *f, uint32_t process, char *buf,
				  size_t size)
{
	const struct session_process *about = &f->s->processes[process];
	const char *exe = about->exe, *slash = exe ? strrchr(exe, '/') : NULL;
	const char *name = about->comm && *about->comm ? about->comm : slash ? slash + 1 : exe;

	if (export_text(name, buf, size) == 0)
		snprintf(buf, size, "process");
	return buf;
}

void perfetto_process(struct perfetto *f, uint32_t process)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor about = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	const struct session_process *p = &f->s->processes[process];
	const char *rank = session_label(f->s, process, "rank");
	const char *host = session_label(f->s, process, "host");
	char name[256], cmdline[4096], rank_text[64], host_text[256];
	char *line = cmdline, *labels[2];

	if (!first_time(f, TRACK_PROCESS, process))
		return;
	about.has_pid = true;
	about.pid = positive(p->pid);
	about.process_name = (char *)(uintptr_t)perfetto_process_name(f, process, name,
								      sizeof(name));
	if (export_text(p->cmdline, cmdline, sizeof(cmdline))) {
		about.n_cmdline = 1;
		about.cmdline = &line;
	}
	about.process_labels = labels;
	if (rank) {
		int start = snprintf(rank_text, sizeof(rank_text), "rank ");

		export_text(rank, rank_text + start, sizeof(rank_text) - (size_t)start);
		labels[about.n_process_labels++] = rank_text;
	}
	if (host && export_text(host, host_text, sizeof(host_text)))
		labels[about.n_process_labels++] = host_text;
	track.has_uuid = true;
	track.uuid = track_id(TRACK_PROCESS, process);
	track.process = &about;
	packets_track(&f->packets, &track);
}

void perfetto_thread(struct perfetto *f, uint32_t thread)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ThreadDescriptor about = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	const struct session_thread *t = &f->s->threads[thread];
	char name[256];

	perfetto_process(f, t->process);
	if (!first_time(f, TRACK_THREAD, thread))
		return;
	about.has_pid = about.has_tid = true;
	about.pid = positive(t->pid);
	about.tid = positive(t->tid);
	if (export_text(t->comm, name, sizeof(name)))
		about.thread_name = name;
	track.has_uuid = true;
	track.uuid = track_id(TRACK_THREAD, thread);
	track.thread = &about;
	packets_track(&f->packets, &track);
}

uint64_t perfetto_track(struct perfetto *f, const struct perfetto_track *about)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	uint64_t id = track_id(about->kind, about->number);

	if (!first_time(f, about->kind, about->number))
		return id;
	track.has_uuid = true;
	track.uuid = id;
	track.has_parent_uuid = about->parent != 0;
	track.parent_uuid = about->parent;
	track.name = (char *)(uintptr_t)about->name; /* packing only reads */
	track.description = (char *)(uintptr_t)about->description;
	track.has_sibling_order_rank = about->rank != 0;
	track.sibling_order_rank = about->rank;
	track.has_child_ordering = !about->unit;
	track.child_ordering =
		PERFETTO__PROTOS__TRACK_DESCRIPTOR__CHILD_TRACKS_ORDERING__EXPLICIT;
	if (about->unit) {
		track.counter = &counter;
		counter.has_unit = !strcmp(about->unit, "bytes");
		counter.unit = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
		counter.unit_name = counter.has_unit ? NULL : (char *)(uintptr_t)about->unit;
	}
	packets_track(&f->packets, &track);
	return id;
}

/* ---- GPUs ---- */

static bool number_taken(const struct perfetto *f, uint32_t number)
{
	for (size_t i = 0; i < f->gpus_count; i++)
		if (f->gpus[i].number == number)
			return true;
	return false;
}

/* NVML's index, unless a MIG instance beside has the same, or it is not known. */
static void gpu_add(struct perfetto *f, uint32_t sampled, uint32_t physical)
{
	uint32_t number = sampled == NO_GPU ? NO_GPU : f->s->gpus[sampled].index;

	if (number >= 64 || number_taken(f, number))
		for (number = 0; number_taken(f, number);)
			number++;
	f->gpus[f->gpus_count++] = (struct perfetto_gpu){number, sampled, physical, false};
}

int perfetto_gpus_find(struct perfetto *f)
{
	const struct session *s = f->s;

	f->gpus = calloc(s->gpus_count + s->devices_count + 1, sizeof(*f->gpus));
	if (!f->gpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->gpus_count; i++)
		gpu_add(f, i, NO_GPU);
	for (uint32_t i = 0; i < s->devices_count; i++) {
		const struct session_device *d = &s->devices[i];

		if (d->physical != i)
			continue;
		if (d->gpu < s->gpus_count)
			f->gpus[d->gpu].physical = i;
		else
			gpu_add(f, NO_GPU, i);
	}
	return 0;
}

size_t perfetto_gpu_of_sampled(const struct perfetto *f, uint32_t gpu)
{
	return gpu; /* they were added first */
}

size_t perfetto_gpu_of_device(const struct perfetto *f, uint32_t device)
{
	uint32_t physical = f->s->devices[device].physical;
	size_t i = 0;

	while (i + 1 < f->gpus_count && f->gpus[i].physical != physical)
		i++;
	return i;
}

static const char *gpu_name(const struct perfetto *f, size_t gpu)
{
	const struct perfetto_gpu *g = &f->gpus[gpu];
	const char *name = g->sampled == NO_GPU ? NULL : f->s->gpus[g->sampled].name;

	if (!name && g->physical != NO_GPU)
		name = f->s->devices[g->physical].about.name;
	return name && *name ? name : "GPU";
}

static const char *gpu_uuid(const struct perfetto *f, size_t gpu)
{
	const struct perfetto_gpu *g = &f->gpus[gpu];
	const char *uuid = g->sampled == NO_GPU ? NULL : f->s->gpus[g->sampled].uuid;

	if (!uuid && g->physical != NO_GPU)
		uuid = f->s->devices[g->physical].about.uuid;
	return uuid ? uuid : "";
}

void perfetto_gpu(struct perfetto *f, size_t gpu)
{
	char name[160], text[256], about[512];

	export_text(gpu_name(f, gpu), name, sizeof(name));
	snprintf(text, sizeof(text), "GPU %u: %s", f->gpus[gpu].number, name);
	export_text(gpu_uuid(f, gpu), name, sizeof(name));
	snprintf(about, sizeof(about), "%s %s", text, name);
	perfetto_track(f, &(struct perfetto_track){TRACK_GPU, gpu, 0, text, about, NULL,
						   (int)f->gpus[gpu].number});
}

/* "GPU-8d5a2e1c-…" as the 16 bytes that it stands for. */
static size_t uuid_bytes(const char *uuid, uint8_t out[16])
{
	const char *at = strchr(uuid, '-');
	unsigned digits = 0;
	uint8_t v = 0;

	for (at = at ? at + 1 : uuid; *at && digits < 32; at++) {
		const char *hex = "0123456789abcdef", *digit;

		if (*at == '-')
			continue;
		digit = strchr(hex, *at | 0x20);
		if (!digit || !*digit)
			return 0;
		v = (uint8_t)(v << 4 | (digit - hex));
		if (++digits % 2 == 0)
			out[digits / 2 - 1] = v;
	}
	return digits == 32 ? 16 : 0;
}

struct gpu_texts {
	char name[160], pci[64], architecture[32];
	uint8_t uuid[16];
};

static void gpu_about(const struct perfetto *f, size_t gpu, Perfetto__Protos__GpuInfo__Gpu *out,
		      struct gpu_texts *texts)
{
	const struct perfetto_gpu *g = &f->gpus[gpu];
	const struct record_device *d =
		g->physical == NO_GPU ? NULL : &f->s->devices[g->physical].about;

	export_text(gpu_name(f, gpu), texts->name, sizeof(texts->name));
	out->name = out->model = texts->name;
	out->vendor = "NVIDIA";
	out->uuid.len = uuid_bytes(gpu_uuid(f, gpu), texts->uuid);
	out->uuid.data = texts->uuid;
	out->has_uuid = out->uuid.len > 0;
	if (g->sampled != NO_GPU &&
	    export_text(f->s->gpus[g->sampled].pci, texts->pci, sizeof(texts->pci)))
		out->pci_bdf = texts->pci;
	if (!d || d->major < 0)
		return;
	snprintf(texts->architecture, sizeof(texts->architecture), "sm_%d%d", d->major, d->minor);
	out->architecture = texts->architecture;
}

void perfetto_gpu_info(struct perfetto *f)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__GpuInfo info = PERFETTO__PROTOS__GPU_INFO__INIT;
	Perfetto__Protos__GpuInfo__Gpu *gpus, **list;
	struct gpu_texts *texts;
	size_t count = 0;

	for (size_t i = 0; i < f->gpus_count; i++)
		if (f->gpus[i].number >= count)
			count = f->gpus[i].number + 1;
	gpus = calloc(count + 1, sizeof(*gpus));
	list = calloc(count + 1, sizeof(*list));
	texts = calloc(count + 1, sizeof(*texts));
	if (!gpus || !list || !texts)
		f->packets.err = -ENOMEM;
	for (size_t i = 0; !f->packets.err && i < count; i++) {
		perfetto__protos__gpu_info__gpu__init(&gpus[i]);
		list[i] = &gpus[i];
	}
	for (size_t i = 0; !f->packets.err && i < f->gpus_count; i++)
		gpu_about(f, i, &gpus[f->gpus[i].number], &texts[f->gpus[i].number]);
	info.n_gpus = count;
	info.gpus = list;
	packet.gpu_info = &info;
	if (count && !f->packets.err)
		packets_add(&f->packets, &packet);
	free(gpus);
	free(list);
	free(texts);
}
