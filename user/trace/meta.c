/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file says of itself: machine, clocks, catalogue, coverage, losses. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "probe/catalogue.h"
#include "trace/private.h"

static int info(struct tracer *t, const char *key, const char *value)
{
	struct record r = {.kind = RECORD_INFO, .info = {.key = key, .value = value}};

	return tracer_add(t, &r);
}

static int info_number(struct tracer *t, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return info(t, key, text);
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* The narrowest of several brackets: nothing came between its readings. */
static int clock_write(struct tracer *t)
{
	struct record r = {.kind = RECORD_CLOCK, .clock.error = INT64_MAX};
	int i;

	for (i = 0; i < 5; i++) {
		int64_t before = clock_ns(CLOCK_MONOTONIC);
		int64_t realtime = clock_ns(CLOCK_REALTIME);
		int64_t boottime = clock_ns(CLOCK_BOOTTIME);
		int64_t after = clock_ns(CLOCK_MONOTONIC);

		if ((after - before + 1) / 2 >= r.clock.error)
			continue;
		r.clock = (struct record_clock){
			.monotonic = before + (after - before) / 2,
			.realtime = realtime,
			.boottime = boottime,
			.error = (after - before + 1) / 2,
		};
	}
	return tracer_add(t, &r);
}

static int loss_write(struct tracer *t, uint32_t cause, uint64_t now, uint64_t *before)
{
	struct record r = {.kind = RECORD_LOSS};

	if (now == *before)
		return 0;
	r.loss = (struct record_loss){tracer_now(), cause, now - *before};
	*before = now;
	return tracer_add(t, &r);
}

static int losses_write(struct tracer *t)
{
	const volatile struct gbpf_counters *c = probes_counters(t->probes);
	int err;

	err = loss_write(t, RECORD_LOSS_RING_FULL, c->ring_full, &t->lost_ring);
	if (!err)
		err = loss_write(t, RECORD_LOSS_STATE_FULL, c->state_full, &t->lost_state);
	if (!err)
		err = loss_write(t, RECORD_LOSS_PERF_LOST, t->perf_lost, &t->lost_perf);
	if (!err)
		err = loss_write(t, RECORD_LOSS_MALFORMED, rings_stats(t->rings)->malformed,
				 &t->lost_malformed);
	if (!err)
		err = loss_write(t, RECORD_LOSS_NAME, t->names_lost, &t->lost_names);
	return err;
}

int meta_catalogue(struct writer *w)
{
	size_t i;
	int err = 0;

	for (i = 1; !err && i <= catalogue_count(); i++) {
		const struct api *api = catalogue_get((uint16_t)i);
		struct record r = {.kind = RECORD_API};

		r.api = (struct record_api){
			.id = (uint32_t)i,
			.name = api->name,
			.library = api_library_name(api->library),
			.kind = api_kind_name(api->kind),
		};
		err = writer_add(w, &r);
	}
	return err;
}

static const char *mode_name(const struct tracer *t)
{
	if (t->options.all)
		return "all";
	if (t->options.cgroup)
		return "cgroup";
	return t->options.command ? "command" : "pids";
}

static int boot_id_write(struct tracer *t)
{
	char id[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f) {
		if (!fgets(id, sizeof(id), f))
			id[0] = '\0';
		fclose(f);
	}
	id[strcspn(id, "\n")] = '\0';
	return info(t, "host_boot_id", id);
}

int meta_begin(struct tracer *t)
{
	struct utsname u;
	int err;

	if (uname(&u))
		return -errno;
	err = info(t, "gbpf_version", GBPF_VERSION);
	if (!err)
		err = info(t, "host", u.nodename);
	if (!err)
		err = info(t, "kernel", u.release);
	if (!err)
		err = info(t, "arch", u.machine);
	if (!err)
		err = boot_id_write(t);
	if (!err)
		err = clock_sync_write(t);
	if (!err)
		err = info(t, "mode", mode_name(t));
	if (!err && t->options.command_line)
		err = info(t, "command", t->options.command_line);
	if (!err)
		err = info(t, "rung", rung_name(probes_rung(t->probes)));
	if (!err)
		err = info(t, "returns", probes_returns(t->probes) ? "yes" : "no");
	if (!err && t->writer) /* of a recorder, each file gets it when it is written */
		err = meta_catalogue(t->writer);
	return err ? err : clock_write(t);
}

int meta_tick(struct tracer *t)
{
	int err = losses_write(t);

	return err ? err : clock_write(t);
}

static int site_write(struct tracer *t, const struct image *image, const struct image_site *site)
{
	struct record r = {.kind = RECORD_SITE};

	r.site = (struct record_site){
		.image = image->slot,
		.state = site->state,
		.offset = site->offset,
		.api = catalogue_get(site->api)->name,
		.reason = site->reason,
	};
	if (site->state == SITE_HOOKED && !probes_returns(t->probes))
		r.site.state = RECORD_SITE_ENTRY_ONLY;
	return tracer_add(t, &r);
}

/* When calls of it began that nobody saw, ns; 0: no such time is part of what is written. */
static int64_t image_mapped(const struct tracer *t, const struct image *image)
{
	if (image->held && !t->held.timeouts)
		return image->covered; /* no gap: nobody could call it */
	if (image->mapped && image->mapped < t->part)
		return image->covered > t->part ? t->part : 0;
	return image->mapped;
}

static int image_write(struct tracer *t, const struct image *image)
{
	struct record r = {.kind = RECORD_IMAGE};
	size_t i;
	int err;

	r.image = (struct record_image){
		.id = image->slot,
		.kind = image->kind,
		.dev = image->dev,
		.ino = image->ino,
		.mapped = image_mapped(t, image),
		.covered = image->covered,
		.path = image->path,
		.build_id = image->build_id,
		.version = image->version,
	};
	err = tracer_add(t, &r);
	for (i = 0; !err && !image->same_as && i < image->sites_count; i++)
		err = site_write(t, image, &image->sites[i]);
	return err;
}

/* Images are written at the end, when all are known; a cut file has none, and says so. */
static int images_write(struct tracer *t)
{
	char not_hooked[1024];
	size_t i, used = 0;
	int err = 0;

	not_hooked[0] = '\0';
	for (i = 0; !err && i < images_count(t->images); i++) {
		const struct image *image = images_get(t->images, i);

		err = image_write(t, image);
		if (image->trouble && used < sizeof(not_hooked))
			used += (size_t)snprintf(not_hooked + used, sizeof(not_hooked) - used,
						 "%s%s: %s", used ? "; " : "", image->path,
						 image->trouble);
	}
	return err ? err : info(t, "not_hooked", not_hooked);
}

/* How long the command was kept from its first calls; absent where nobody could wait. */
static int held_write(struct tracer *t)
{
	int err = 0;

	if (!t->holds)
		return 0;
	err = info_number(t, "hold_count", (int64_t)t->held.holds);
	if (!err)
		err = info_number(t, "hold_ns", (int64_t)t->held.ns);
	if (!err)
		err = info_number(t, "hold_timeouts", (int64_t)t->held.timeouts);
	return err;
}

/* What is known in the end, or by now. */
static int about_write(struct tracer *t)
{
	int err = info_number(t, "probe_begin_ns", t->cost.begin_ns);

	if (!err)
		err = info_number(t, "probe_pair_ns", t->cost.pair_ns);
	if (!err)
		err = info_number(t, "probe_launch_ns", t->cost.launch_ns);
	if (!err)
		err = held_write(t);
	return err ? err : images_write(t);
}

int meta_end(struct tracer *t)
{
	struct record r = {.kind = RECORD_WINDOW, .window = {t->begin, t->end}};
	int err = meta_tick(t);

	if (!err)
		err = about_write(t);
	if (!err)
		err = scheduled_meta(t);
	return err || t->scheduled ? err : tracer_add(t, &r); /* it wrote its own */
}

int meta_part(struct tracer *t, struct writer *w, int64_t begin, int64_t end)
{
	struct record r = {.kind = RECORD_WINDOW, .window = {begin, end}};
	int err;

	if (t->hold)
		hold_stats(t->hold, &t->held);
	t->writer = w;
	t->part = begin;
	err = about_write(t);
	if (!err)
		err = info_number(t, "keep_ns", t->options.recorder->keep);
	if (!err)
		err = info_number(t, "keep_since_ns", t->begin);
	if (!err)
		err = tracer_add(t, &r);
	t->part = 0;
	t->writer = NULL;
	return err;
}
