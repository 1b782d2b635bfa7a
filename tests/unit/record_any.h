/* SPDX-License-Identifier: BSD-2-Clause */
/* Records and events of every kind with any content that the format can hold. */
#ifndef RECORD_ANY_H
#define RECORD_ANY_H

#include "record_file.h"
#include "tests/record_data.h"

/* A number of any size, the extremes among them. */
static inline uint64_t any(struct data *d)
{
	static const uint64_t edge[] = {0,	   1,	       UINT64_MAX, INT64_MAX,
					1ull << 63, UINT32_MAX, 1ull << 32, 255,
					256,	   65535,      65536,	   INT32_MAX};

	if (!data_below(d, 4))
		return edge[data_below(d, COUNT(edge))];
	return data_random(d) >> data_below(d, 64);
}

static inline struct event any_event(struct data *d)
{
	struct event e = {
		.ts = (int64_t)any(d),
		.pid = (uint32_t)any(d),
		.tid = (uint32_t)any(d),
		.sp = (uint32_t)any(d),
		.api = (uint16_t)any(d),
		.image = (uint16_t)any(d),
		.kind = (uint8_t)(1 + data_below(d, 3)),
	};
	uint64_t word[6];

	if (data_below(d, 2)) { /* a few threads that make many calls each */
		e.pid = 1;
		e.tid = (uint32_t)data_below(d, 3);
	}
	for (size_t i = 0; i < COUNT(word); i++)
		word[i] = any(d);
	memcpy(&e.launch, word, sizeof(word));
	if (e.kind == EVENT_BEGIN)
		e.args = (uint8_t)data_below(d, 3);
	if (e.kind == EVENT_END)
		e.has_out = (uint8_t)data_below(d, 2);
	if (e.kind == EVENT_POLL && !data_below(d, 3))
		e.poll.last_end = 0;
	return e;
}

/* A string of any bytes; at most one a record is longer than the format keeps. */
static inline const char *any_string(struct data *d, char *buf, size_t size)
{
	size_t len = data_below(d, data_below(d, 40) ? 40 : size);

	if (!data_below(d, 20))
		return NULL;
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(1 + data_below(d, 255));
	buf[len] = '\0';
	return buf;
}

#define STRING_SIZE 70000

/* Records have numbers and up to four strings; which ones, the kind decides. */
static inline void any_record(struct data *d, struct record *r, char (*buf)[STRING_SIZE])
{
	uint64_t word[sizeof(struct record_gpu_sample) / 8];
	const char *s[4];

	for (size_t i = 0; i < COUNT(word); i++)
		word[i] = any(d);
	for (size_t i = 0; i < COUNT(s); i++)
		s[i] = any_string(d, buf[i], STRING_SIZE);
	memset(r, 0, sizeof(*r));
	memcpy(&r->gpu_sample, word, sizeof(word));
	r->kind = RECORD_NAME + data_below(d, RECORD_KINDS - RECORD_NAME);
	if (r->kind == RECORD_NAME) {
		r->name.name = s[0] ? s[0] : buf[0];
		r->name.len = data_below(d, 10) ? data_below(d, 60) : data_below(d, 9000);
		buf[0][data_below(d, 20)] = '\0';
	} else if (r->kind == RECORD_PROCESS) {
		r->process.comm = s[0];
		r->process.cmdline = s[1];
		r->process.exe = s[2];
		r->process.container = s[3];
	} else if (r->kind == RECORD_THREAD) {
		r->thread.comm = s[0];
	} else if (r->kind == RECORD_IMAGE) {
		r->image.path = s[0];
		r->image.build_id = s[1];
		r->image.version = s[2];
	} else if (r->kind == RECORD_SITE) {
		r->site.api = s[0];
		r->site.reason = s[1];
	} else if (r->kind == RECORD_API) {
		r->api.name = s[0];
		r->api.library = s[1];
		r->api.kind = s[2];
	} else if (r->kind == RECORD_INFO) {
		r->info.key = s[0];
		r->info.value = s[1];
	} else if (r->kind == RECORD_GPU) {
		r->gpu.uuid = s[0];
		r->gpu.name = s[1];
		r->gpu.pci = s[2];
		r->gpu.mig_parent = s[3];
	} else if (r->kind == RECORD_GPU_SAMPLE) {
		r->gpu_sample.pids = s[0];
	} else if (r->kind == RECORD_DEVICE) {
		r->device.uuid = s[0];
		r->device.name = s[1];
	} else if (r->kind == RECORD_SHAPE) {
		r->shape.kernel = s[0];
	} else if (r->kind == RECORD_SIDECAR) {
		r->sidecar.text = s[0];
	} else if (r->kind == RECORD_LABEL) {
		r->label.key = s[0];
		r->label.value = s[1];
	} else if (r->kind == RECORD_TRIGGER) {
		r->trigger.text = s[0];
	}
}

#endif
