// SPDX-License-Identifier: BSD-2-Clause
/* Streams of processes out of what records name, and works in the order of their streams. */
#include "model/internal.h"

#define KNOWN_DEVICE (UINT64_C(1) << 32) /* a key of devices, not of streams */

static bool pid_is_unique(const struct session_builder *b, uint32_t pid)
{
	size_t count, first = epochs_of(b, pid, &count);

	for (size_t i = 1; i < count; i++)
		if (b->epochs[first + i].process != b->epochs[first].process)
			return false;
	return true;
}

/* The device that a process uses; of a pid that was used again there may be two of one. */
static int device_for(struct session_builder *b, struct map *known, uint32_t device,
		      uint32_t process, uint32_t *out)
{
	struct session *s = b->s;
	struct record_device copy;
	int err;

	*out = device;
	if (s->devices[device].process == NO_INDEX)
		s->devices[device].process = process;
	if (s->devices[device].process == process)
		return 0;
	*out = map_get(known, device, process | KNOWN_DEVICE);
	if (*out != MAP_NONE)
		return 0;
	err = GROW(s->devices, b->works.devices_cap, s->devices_count + 1);
	if (err)
		return err;
	copy = s->devices[device].about;
	copy.uuid = strdup(copy.uuid);
	copy.name = strdup(copy.name);
	if (!copy.uuid || !copy.name) {
		free((char *)copy.uuid);
		free((char *)copy.name);
		return -ENOMEM;
	}
	*out = (uint32_t)s->devices_count;
	s->devices[s->devices_count++] = (struct session_device){
		.about = copy, .process = process, .gpu = NO_INDEX };
	return map_put(known, device, process | KNOWN_DEVICE, *out);
}

static int stream_for(struct session_builder *b, struct map *known, struct raw_stream *raw,
		      uint32_t process)
{
	struct session *s = b->s;
	uint32_t at = (uint32_t)(raw - b->works.raw), device;
	int err = 0;

	raw->process = process;
	raw->stream = map_get(known, at, process);
	if (raw->stream != MAP_NONE)
		return 0;
	err = device_for(b, known, raw->device, process, &device);
	if (!err)
		err = GROW(s->streams, b->works.streams_cap, s->streams_count + 1);
	if (!err)
		err = map_put(known, at, process, (uint32_t)s->streams_count);
	if (err)
		return err;
	raw->stream = (uint32_t)s->streams_count;
	s->streams[s->streams_count++] = (struct session_stream){
		.process = process, .device = device, .context = raw->context, .id = raw->id };
	return 0;
}

static int find_streams(struct session_builder *b)
{
	struct session *s = b->s;
	struct map known = { 0 };
	int err = 0;

	for (size_t i = 0; i < b->works.raw_count; i++)
		b->works.raw[i].one_process = pid_is_unique(b, b->works.raw[i].pid);
	for (size_t i = 0; i < s->works_count && !err; i++) {
		struct work *w = &s->works[i];
		struct raw_stream *raw = &b->works.raw[w->stream];
		uint32_t process = raw->process;

		if (!raw->one_process || process == NO_INDEX)
			process = b->epochs[epoch_at(b, raw->pid, w->begin)].process;
		if (process != raw->process)
			err = stream_for(b, &known, raw, process);
		w->stream = raw->stream;
		if (!err)
			s->streams[w->stream].works++;
	}
	map_free(&known);
	return err;
}

static int work_order(const void *pa, const void *pb)
{
	const struct work *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

/* Buffers come one after another, and are sorted as they are: mostly there is nothing to do. */
static void sort_stream(struct work *w, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (work_order(&w[i - 1], &w[i]) > 0) {
			qsort(w, count, sizeof(*w), work_order);
			return;
		}
}

static int sort_works(struct session *s)
{
	struct work *sorted;
	size_t *at;
	uint32_t sum = 0;

	if (!s->works_count)
		return 0;
	sorted = calloc(s->works_count, sizeof(*sorted));
	at = malloc(s->streams_count * sizeof(*at));
	if (!sorted || !at) {
		free(sorted);
		free(at);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->streams_count; i++) {
		s->streams[i].first_work = sum;
		at[i] = sum;
		sum += s->streams[i].works;
	}
	for (size_t i = 0; i < s->works_count; i++)
		sorted[at[s->works[i].stream]++] = s->works[i];
	free(at);
	free(s->works);
	s->works = sorted;
	for (size_t i = 0; i < s->streams_count; i++)
		sort_stream(sorted + s->streams[i].first_work, s->streams[i].works);
	return 0;
}

/* Devices that nothing ran on belong to the last process of their pid. */
static void place_devices(struct session_builder *b)
{
	struct session *s = b->s;

	for (size_t i = 0; i < s->devices_count; i++) {
		struct session_device *d = &s->devices[i];

		if (d->process == NO_INDEX)
			d->process = b->epochs[epoch_at(b, d->about.pid, TS_LIMIT)].process;
	}
}

/* Physical devices and samples, by UUID; what has none is like no other. */
static int identify_devices(struct session *s)
{
	struct map known = { 0 }, sampled = { 0 };
	int err = 0;

	for (size_t i = s->gpus_count; i-- > 0 && !err;) {
		const char *uuid = s->gpus[i].uuid;

		if (uuid && *uuid)
			err = map_put(&sampled, map_hash_bytes(uuid, strlen(uuid)), 0, (uint32_t)i);
	}
	for (size_t i = 0; i < s->devices_count && !err; i++) {
		struct session_device *d = &s->devices[i];
		const char *uuid = d->about.uuid;
		uint64_t hash = map_hash_bytes(uuid, strlen(uuid));
		uint32_t same = *uuid ? map_get(&known, hash, 0) : MAP_NONE;

		d->physical = (uint32_t)i;
		if (!*uuid)
			continue;
		if (same != MAP_NONE && !strcmp(s->devices[same].about.uuid, uuid))
			d->physical = same;
		else
			err = map_put(&known, hash, 0, (uint32_t)i);
		same = map_get(&sampled, hash, 0);
		if (same != MAP_NONE && !strcmp(s->gpus[same].uuid, uuid))
			d->gpu = same;
	}
	map_free(&known);
	map_free(&sampled);
	return err;
}

int builder_streams(struct session_builder *b)
{
	int err = find_streams(b);

	if (!err)
		err = sort_works(b->s);
	if (err)
		return err;
	place_devices(b);
	return identify_devices(b->s);
}
