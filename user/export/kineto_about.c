// SPDX-License-Identifier: BSD-2-Clause
/* What stands before and after the events: devices, versions, ranks, and how good it all is. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "export/kineto.h"
#include "model/map.h"

#define SIDECAR_NOTES 64

/* -1 is not known, and not written. */
static void put_property(struct kineto *k, const char *name, int64_t value)
{
	if (value < 0)
		return;
	put(k, ", \"");
	put(k, name);
	put(k, "\": ");
	put_int(k, value);
}

static void put_device(struct kineto *k, const struct record_device *d)
{
	put(k, "{\"id\": ");
	put_uint(k, d->ordinal);
	put(k, ", \"name\": ");
	put_string(k, d->name);
	put_property(k, "totalGlobalMem", d->memory);
	put_property(k, "computeMajor", d->major);
	put_property(k, "computeMinor", d->minor);
	put_property(k, "maxThreadsPerBlock", d->block_threads);
	put_property(k, "maxThreadsPerMultiprocessor", d->sm_threads);
	put_property(k, "regsPerBlock", d->block_registers);
	put_property(k, "warpSize", d->warp);
	put_property(k, "sharedMemPerBlock", d->block_smem);
	put_property(k, "numSms", d->sms);
	put_property(k, "regsPerMultiprocessor", d->sm_registers);
	put_property(k, "sharedMemPerBlockOptin", d->block_smem_optin);
	put_property(k, "sharedMemPerMultiprocessor", d->sm_smem);
	put(k, "}");
}

static void put_devices(struct kineto *k)
{
	const char *between = "\n";

	put(k, "\"deviceProperties\": [");
	for (size_t i = 0; i < k->s->devices_count; i++) {
		if (k->s->devices[i].process != k->process)
			continue;
		put(k, between);
		put_device(k, &k->s->devices[i].about);
		between = ",\n";
	}
	put(k, "],\n");
}

/* Of a library's version, "13.0" or "13.0.96" of libcudart: 13000, as CUDA counts. 0: not. */
static uint32_t cuda_version(const struct session *s)
{
	for (size_t i = 0; i < s->images_count; i++) {
		const struct record_image *image = &s->images[i];
		unsigned major, minor;

		if (image->kind == RECORD_IMAGE_RUNTIME &&
		    sscanf(image->version, "%3u.%3u", &major, &minor) == 2)
			return major * 1000 + minor * 10;
	}
	return 0;
}

static uint32_t cupti_version(const struct kineto *k)
{
	for (size_t i = 0; i < k->s->sidecars_count; i++)
		if (k->s->sidecars[i].cupti && k->s->sidecars[i].pid ==
					      k->s->processes[k->process].pid)
			return k->s->sidecars[i].cupti;
	return 0;
}

/* The same for the same process of the same recording. */
static void put_trace_id(struct kineto *k)
{
	const char *boot = session_info(k->s, "host_boot_id");
	uint64_t seed = map_hash_bytes(boot ? boot : "", boot ? strlen(boot) : 0);
	char text[33];

	snprintf(text, sizeof(text), "%016lX%016lX",
		 (unsigned long)map_hash(seed, (uint64_t)k->s->begin),
		 (unsigned long)map_hash(seed + 1, (uint64_t)k->s->begin << 22 ^ k->pid));
	put(k, "\"trace_id\": \"");
	put(k, text);
	put(k, "\",\n");
}

static void put_version(struct kineto *k, const char *key, uint32_t version)
{
	if (!version)
		return;
	put(k, "\"");
	put(k, key);
	put(k, "\": ");
	put_uint(k, version);
	put(k, ",\n");
}

void kineto_put_head(struct kineto *k)
{
	put(k, "{\n\"schemaVersion\": 1,\n");
	put_devices(k);
	put_trace_id(k);
	put_version(k, "cuda_runtime_version", cuda_version(k->s));
	if (k->process != UINT32_MAX)
		put_version(k, "cupti_version", cupti_version(k));
	put(k, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ");
	put_int(k, k->base);
	put(k, ",\n\"traceEvents\": [");
	if (k->process != UINT32_MAX)
		kineto_put_rows(k, k->first);
}

static bool has_nccl(const struct session *s)
{
	for (size_t i = 0; i < s->images_count; i++)
		if (s->images[i].kind == RECORD_IMAGE_NCCL)
			return true;
	for (size_t i = 0; i < s->kernels_count; i++)
		if (kernel_is_comm(s->kernels[i].demangled))
			return true;
	return false;
}

/* "3" of "3" and of "local 3"; NULL: there is none. */
static const char *rank_digits(const struct kineto *k, bool *local)
{
	const char *rank = NULL, *at;

	if (k->process != UINT32_MAX)
		rank = session_label(k->s, k->process, "rank");
	*local = rank && !strncmp(rank, "local ", 6);
	at = rank && *local ? rank + 6 : rank;
	if (!at || !*at || strlen(at) > 9)
		return NULL;
	for (const char *c = at; *c; c++)
		if (!isdigit((unsigned char)*c))
			return NULL;
	return at;
}

/* HTA looks for "rank": with a blank behind it, in the text. */
static void put_rank(struct kineto *k)
{
	bool local;
	const char *rank = rank_digits(k, &local);

	if (!rank)
		return;
	put(k, ",\n\"distributedInfo\": {");
	if (has_nccl(k->s))
		put(k, "\"backend\": \"nccl\", ");
	put(k, "\"rank\": ");
	put_uint(k, strtoul(rank, NULL, 10));
	if (local)
		put(k, ", \"rank_is\": \"local\"");
	put(k, "}");
}

static void put_count(struct kineto *k, const char *key, uint64_t value)
{
	put(k, ", \"");
	put(k, key);
	put(k, "\": ");
	put_uint(k, value);
}

static void put_text(struct kineto *k, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	put(k, ", \"");
	put(k, key);
	put(k, "\": ");
	put_string(k, value);
}

static void put_losses(struct kineto *k)
{
	static const char *const words[8] = {
		"other", "ring_full", "state_full", "notices", "malformed", "write_failed",
		"names", "other_7",
	};
	static const char *const ends[] = {"unknown", "whole", "cut", "damaged"};
	const struct session_quality *q = &k->s->quality;

	put(k, ",\n\"losses\": {\"file\": \"");
	put(k, ends[q->end]);
	put(k, "\"");
	put_count(k, "bytes_unread", q->lost_bytes);
	for (int i = 0; i < 8; i++)
		if (q->losses[i] || (i && i < 7))
			put_count(k, words[i], q->losses[i]);
	put_count(k, "ends_missing", q->unpaired_begin);
	put_count(k, "begins_missing", q->unpaired_end);
	put(k, "}");
}

static void put_windows(struct kineto *k)
{
	put(k, ",\n\"windows_us\": [");
	for (size_t i = 0; i < k->s->windows_count; i++) {
		put(k, i ? ", [" : "[");
		put_ts(k, k->s->windows[i].begin);
		put(k, ", ");
		put_ts(k, k->s->windows[i].end);
		put(k, "]");
	}
	put(k, "]");
}

static void put_clock(struct kineto *k)
{
	const struct session *s = k->s;
	int64_t error = 0, low = INT64_MAX, high = INT64_MIN;

	for (size_t i = 0; i < s->clocks_count; i++) {
		int64_t offset = s->clocks[i].realtime - s->clocks[i].monotonic;

		error = s->clocks[i].error > error ? s->clocks[i].error : error;
		low = offset < low ? offset : low;
		high = offset > high ? offset : high;
	}
	put(k, ",\n\"clock\": {\"base_is\": \"");
	put(k, k->clock_known ? "CLOCK_REALTIME" : "CLOCK_MONOTONIC");
	put(k, "\", \"monotonic_to_realtime_ns\": ");
	put_int(k, k->offset);
	if (k->clock_known) {
		put_count(k, "error_ns", (uint64_t)error);
		put_count(k, "moved_ns", (uint64_t)high - (uint64_t)low);
	}
	put(k, "}");
}

static void put_sidecar(struct kineto *k)
{
	static const char *const events[] = {
		"unknown", "attached", "began", "ended", "refused", "withdrew", "failed",
		"dropped", "bad", "clock", "gone", "running",
	};
	size_t written = 0;

	put(k, ",\n\"sidecar\": [");
	for (size_t i = 0; i < k->s->sidecars_count && written < SIDECAR_NOTES; i++) {
		const struct record_sidecar *r = &k->s->sidecars[i];

		if (k->process == UINT32_MAX || r->event == RECORD_SIDECAR_CLOCK ||
		    r->pid != k->s->processes[k->process].pid)
			continue;
		put(k, written++ ? ", {\"event\": \"" : "{\"event\": \"");
		put(k, events[r->event < RECORD_SIDECAR_EVENTS ? r->event : 0]);
		put(k, "\", \"ts_us\": ");
		put_ts(k, r->ts);
		put_count(k, "count", r->count);
		put_text(k, "text", r->text);
		put(k, "}");
	}
	put(k, "]");
}

static void put_gpu(struct kineto *k)
{
	const struct session_join *j = &k->s->join;

	put(k, ",\n\"gpu\": {\"recorded\": ");
	put(k, session_has_work(k->s) ? "true" : "false");
	if (k->process != UINT32_MAX)
		put_text(k, "why_not", session_no_work(k->s, k->process));
	put_count(k, "unmatched", k->unmatched);
	put_count(k, "all_works", j->works);
	put_count(k, "all_matched", j->matched);
	put_count(k, "all_earlier", j->earlier);
	put_count(k, "launches_without_work", j->launches_without);
	put_count(k, "before_entry", j->before_entry);
	put_count(k, "dropped", j->dropped);
	put_count(k, "bad", j->bad);
	if (session_has_work(k->s) && j->clock_error >= 0)
		put_count(k, "clock_error_ns", (uint64_t)j->clock_error);
	put(k, "}");
}

static void put_steps(struct kineto *k)
{
	if (k->steps.count < 2)
		return;
	put(k, ",\n\"steps\": {\"count\": ");
	put_uint(k, steps_whole(&k->steps));
	put(k, ", \"confidence\": ");
	put_fixed(k, k->steps.confidence);
	put(k, "}");
}

void kineto_put_tail(struct kineto *k)
{
	put(k, "\n]");
	put_rank(k);
	put(k, ",\n\"traceName\": ");
	put_string(k, k->name);
	put(k, ",\n\"gbpf\": {\"version\": ");
	put_string(k, GBPF_VERSION);
	put_count(k, "calls", k->calls);
	put_count(k, "works", k->works);
	put_count(k, "arrows_started", k->started);
	put_count(k, "arrows_ended", k->ended);
	put_text(k, "host", session_info(k->s, "host"));
	put_text(k, "gpu_trouble", session_info(k->s, "gpu_trouble"));
	put_text(k, "not_hooked", session_info(k->s, "not_hooked"));
	put_text(k, "unseen_gap", session_info(k->s, "unseen_gap"));
	put_text(k, "probe_pair_ns", session_info(k->s, "probe_pair_ns"));
	put_losses(k);
	put_windows(k);
	put_clock(k);
	put_gpu(k);
	put_sidecar(k);
	put_steps(k);
	put(k, "}\n}\n");
}
