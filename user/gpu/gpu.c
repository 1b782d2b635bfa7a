// SPDX-License-Identifier: BSD-2-Clause
#include "gpu/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/private.h"

#define DEVICES_MOST 256
#define INSTANCES_MOST 64 /* of one device */
#define EVENTS_MOST 256	  /* taken in one round */

/* A device or MIG instance, known by its UUID; devices stay known when they are gone. */
struct device {
	char uuid[sizeof(((struct gpu_sample *)NULL)->uuid)];
	nvml_device handle; /* NULL: not there now */
	uint32_t index;	    /* NVML's, of the parent for an instance */
	bool instance, listens; /* listens: its XID errors are told */
	uint64_t round; /* of sampling in which it was seen last */
	struct gpm gpm;
	uint64_t xid_count; /* since gpus_new() */
	uint32_t xid_last;
};

struct gpus {
	struct nvml nvml; /* .library NULL: let go of, or failed */
	nvml_events events;
	bool events_refused;
	uint32_t count; /* devices, as NVML counts them */
	int64_t open_at, scan_at; /* not before; CLOCK_MONOTONIC ns */
	struct device *devices;
	size_t devices_count, devices_cap;
	struct gpu_sample *samples;
	size_t samples_count, samples_cap;
	struct nvml_gpm_metrics metrics;
	uint64_t round;
	char trouble[256];
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Room for one more of size bytes; 0 or -ENOMEM. */
static int more(void **array, size_t *cap, size_t count, size_t size)
{
	size_t want = *cap ? 2 * *cap : 8;
	void *moved;

	if (count < *cap)
		return 0;
	moved = realloc(*array, want * size);
	if (!moved)
		return -ENOMEM;
	*array = moved;
	*cap = want;
	return 0;
}

/* By its UUID, known from now on; NULL: out of memory. Others may move. */
static struct device *device_of(struct gpus *g, const char *uuid, bool instance)
{
	struct device *d;

	for (size_t i = 0; i < g->devices_count; i++)
		if (!strcmp(g->devices[i].uuid, uuid))
			return &g->devices[i];
	if (more((void **)&g->devices, &g->devices_cap, g->devices_count, sizeof(*d)))
		return NULL;
	d = &g->devices[g->devices_count++];
	memset(d, 0, sizeof(*d));
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	d->instance = instance;
	return d;
}

static struct device *device_at(struct gpus *g, uint32_t index)
{
	for (size_t i = 0; i < g->devices_count; i++) {
		struct device *d = &g->devices[i];

		if (d->handle && !d->instance && d->index == index)
			return d;
	}
	return NULL;
}

static void device_drop(struct gpus *g, struct device *d)
{
	gpm_free(&g->nvml, &d->gpm);
	d->handle = NULL;
}

static bool events_made(struct gpus *g)
{
	const struct nvml *n = &g->nvml;

	if (g->events || g->events_refused)
		return g->events;
	g->events_refused = !n->events_new || !n->events_register || !n->events_wait ||
			    !n->events_free || n->events_new(&g->events);
	if (g->events_refused)
		g->events = NULL;
	return g->events;
}

static void events_free(struct gpus *g)
{
	if (g->events)
		g->nvml.events_free(g->events);
	g->events = NULL;
}

/* What cannot tell of errors is sampled all the same. */
static void events_listen(struct gpus *g, struct device *d)
{
	int result;

	if (d->listens || !events_made(g))
		return;
	result = g->nvml.events_register(d->handle, NVML_EVENT_XID, g->events);
	d->listens = !result;
	if (result == NVML_UNKNOWN) { /* then the whole set is void, says the manual */
		events_free(g);
		g->events_refused = true;
	}
}

/* Takes the device of this index in, if it is there and was not. Returns whether it is. */
static bool device_find(struct gpus *g, uint32_t index)
{
	char uuid[sizeof(g->devices->uuid)] = "";
	struct device *d;
	nvml_device handle = NULL;
	int result;

	if (device_at(g, index))
		return true;
	result = g->nvml.by_index(index, &handle);
	if (!result)
		result = g->nvml.uuid(handle, uuid, sizeof(uuid));
	uuid[sizeof(uuid) - 1] = '\0';
	d = result || !uuid[0] ? NULL : device_of(g, uuid, false);
	if (!d) {
		if (result)
			nvml_explain(result, g->trouble, sizeof(g->trouble));
		return false;
	}
	d->handle = handle;
	d->index = index;
	events_listen(g, d);
	return true;
}

/* Looks for every device. Those that fail are looked for again later. */
static void scan(struct gpus *g, int64_t now)
{
	uint32_t found = 0;

	g->trouble[0] = '\0';
	for (uint32_t i = 0; i < g->count; i++)
		found += device_find(g, i);
	if (!g->count)
		snprintf(g->trouble, sizeof(g->trouble), "the NVIDIA driver knows no GPU");
	else if (found)
		g->trouble[0] = '\0';
	g->scan_at = found && found == g->count ? INT64_MAX : now + GPU_RETRY_NS;
}

/* Gives back all that was had of the driver. */
static void library_close(struct gpus *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->devices_count; i++) {
		device_drop(g, &g->devices[i]);
		g->devices[i].listens = false;
		if (!g->devices[i].instance)
			g->devices[kept++] = g->devices[i];
	}
	g->devices_count = kept;
	events_free(g);
	g->events_refused = false;
	g->count = 0;
	g->samples_count = 0;
	nvml_close(&g->nvml);
}

static int library_open(struct gpus *g, int64_t now)
{
	int err = nvml_open(&g->nvml, g->trouble, sizeof(g->trouble)), result;

	g->open_at = now + GPU_RETRY_NS;
	if (err)
		return err;
	result = g->nvml.count(&g->count);
	if (result) {
		err = nvml_explain(result, g->trouble, sizeof(g->trouble));
		g->count = 0;
		library_close(g);
		return err;
	}
	g->count = g->count < DEVICES_MOST ? g->count : DEVICES_MOST;
	scan(g, now);
	return 0;
}

int gpus_new(struct gpus **out, char *why, size_t size)
{
	struct gpus *g = calloc(1, sizeof(*g));
	int err;

	*out = NULL;
	if (!g) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	err = library_open(g, now_ns());
	if (err) {
		snprintf(why, size, "%s", g->trouble);
		gpus_free(g);
		return err;
	}
	*out = g;
	return 0;
}

void gpus_free(struct gpus *g)
{
	if (!g)
		return;
	library_close(g);
	free(g->devices);
	free(g->samples);
	free(g);
}

/* Under MIG, NVML tells errors of its instances through the device. */
static void events_take(struct gpus *g)
{
	struct nvml_event e;

	for (int i = 0; g->events && i < EVENTS_MOST; i++) {
		memset(&e, 0, sizeof(e));
		if (g->nvml.events_wait(g->events, &e, 0))
			return;
		for (size_t d = 0; d < g->devices_count; d++) {
			if (g->devices[d].handle != e.device || !(e.type & NVML_EVENT_XID))
				continue;
			g->devices[d].xid_count++;
			g->devices[d].xid_last = (uint32_t)e.data;
		}
	}
}

/* One more sample, not yet counted; NULL: out of memory. */
static struct gpu_sample *sample_next(struct gpus *g)
{
	if (more((void **)&g->samples, &g->samples_cap, g->samples_count, sizeof(*g->samples)))
		return NULL;
	return &g->samples[g->samples_count];
}

static void sample_finish(struct gpus *g, struct device *d, struct gpu_sample *s, int64_t now)
{
	d->round = g->round;
	s->time_ns = now;
	s->index = d->index;
	s->has |= d->listens ? GPU_HAS_XID : 0;
	s->xid_count = d->xid_count;
	s->xid_last = d->xid_last;
	gpm_read(&g->nvml, &d->gpm, d->handle, &g->metrics, now, s);
	g->samples_count++;
}

static int instance_sample(struct gpus *g, uint32_t parent, nvml_device handle, int64_t now)
{
	struct gpu_sample *s = sample_next(g);
	struct device *d;

	if (!s)
		return -ENOMEM;
	if (device_read_instance(&g->nvml, handle, s))
		return 0;
	d = device_of(g, s->uuid, true);
	if (!d)
		return -ENOMEM;
	if (d->handle && d->handle != handle)
		gpm_free(&g->nvml, &d->gpm);
	d->handle = handle;
	d->index = parent;
	snprintf(s->mig_parent, sizeof(s->mig_parent), "%s", device_at(g, parent)->uuid);
	sample_finish(g, d, s, now);
	return 0;
}

/* Instances come and go while the device is used: they are looked for each time. */
static int instances_sample(struct gpus *g, uint32_t parent, int64_t now)
{
	nvml_device device = device_at(g, parent)->handle, handle;
	uint32_t current = 0, pending = 0, most = 0;
	int err = 0;

	if (!g->nvml.mig_mode || !g->nvml.mig_max || !g->nvml.mig_by_index)
		return 0;
	if (g->nvml.mig_mode(device, &current, &pending) || !current)
		return 0;
	if (g->nvml.mig_max(device, &most))
		return 0;
	for (uint32_t i = 0; !err && i < most && i < INSTANCES_MOST; i++)
		if (!g->nvml.mig_by_index(device, i, &handle))
			err = instance_sample(g, parent, handle, now);
	return err;
}

static int device_sample(struct gpus *g, uint32_t index, int64_t now)
{
	struct device *d = device_at(g, index);
	struct gpu_sample *s;

	if (!d)
		return 0;
	s = sample_next(g);
	if (!s)
		return -ENOMEM;
	if (device_read(&g->nvml, d->handle, s)) {
		device_drop(g, d);
		g->scan_at = now + GPU_RETRY_NS;
		snprintf(g->trouble, sizeof(g->trouble), "GPU %u does not answer any more", index);
		return 0;
	}
	sample_finish(g, d, s, now);
	return instances_sample(g, index, now);
}

/* Instances that were not met in this round have been destroyed. */
static void instances_forget(struct gpus *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->devices_count; i++) {
		struct device *d = &g->devices[i];

		if (d->instance && d->round != g->round)
			device_drop(g, d);
		else
			g->devices[kept++] = *d;
	}
	g->devices_count = kept;
}

static bool any_device(struct gpus *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (device_at(g, i))
			return true;
	return false;
}

/* The driver is there, and the devices that were lost have been looked for again. */
static bool ready(struct gpus *g, int64_t now)
{
	if (g->nvml.library && now >= g->scan_at) {
		/* All of them lost: perhaps not they, but the driver went. */
		if (any_device(g))
			scan(g, now);
		else
			library_close(g);
	}
	if (!g->nvml.library && now >= g->open_at)
		library_open(g, now);
	return g->nvml.library;
}

int gpus_sample_at(struct gpus *g, int64_t now, const struct gpu_sample **samples)
{
	int err = 0;

	g->samples_count = 0;
	*samples = NULL;
	if (!ready(g, now))
		return 0;
	g->round++;
	events_take(g);
	for (uint32_t i = 0; !err && i < g->count; i++)
		err = device_sample(g, i, now);
	instances_forget(g);
	*samples = g->samples;
	return err ? err : (int)g->samples_count;
}

int gpus_sample(struct gpus *g, const struct gpu_sample **samples)
{
	return gpus_sample_at(g, now_ns(), samples);
}

void gpus_release_at(struct gpus *g, int64_t now)
{
	library_close(g);
	snprintf(g->trouble, sizeof(g->trouble), "the NVIDIA driver was let go of; it is looked "
						 "for again");
	g->open_at = now + GPU_RELEASE_NS;
}

void gpus_release(struct gpus *g)
{
	gpus_release_at(g, now_ns());
}

const char *gpus_trouble(const struct gpus *g)
{
	return g->trouble[0] && !g->samples_count ? g->trouble : NULL;
}
