// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any sequence of events and notices as a session: paired, named, and printed
 * in every view. What readers let through need not make sense.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/builder.h"
#include "probe/catalogue.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&v, in->at, bytes);
	in->at += bytes;
	in->left -= bytes;
	return v;
}

/* Small values mostly, so that things meet, and now and then any at all. */
static int64_t take_ts(struct input *in)
{
	uint8_t how = (uint8_t)take(in, 1);

	return how > 250 ? (int64_t)take(in, 8) : (int64_t)how * 16 + (int64_t)(in->left % 16);
}

static void take_event(struct input *in, struct session_builder *b)
{
	struct event e = { .ts = take_ts(in) };
	struct record r = { .kind = RECORD_EVENTS, .events = { &e, 1 } };
	uint8_t bits = (uint8_t)take(in, 1);

	e.pid = 1 + (bits & 1);
	e.tid = e.pid + (bits >> 1 & 1);
	e.sp = 4096 - (uint32_t)(bits >> 2 & 7) * 64;
	e.kind = 1 + (bits >> 5) % 4;
	e.api = (uint16_t)(take(in, 1) % 64);
	e.image = 1;
	e.args = e.kind == EVENT_BEGIN ? e.api % 3 : 0;
	e.has_out = e.api & 1;
	if (e.kind == EVENT_POLL) {
		e.poll.last_end = take_ts(in);
		e.poll.inside = take_ts(in);
		e.poll.count = (uint32_t)take(in, 1);
	} else if (e.kind == EVENT_END) {
		e.end.ret = (int64_t)take(in, 2);
	} else if (e.args == EVENT_ARGS_LAUNCH) {
		e.launch.func = take(in, 1) & 3;
		e.launch.grid[0] = (uint32_t)take(in, 4);
	} else {
		e.call.bytes = take(in, 8);
		e.call.kind = take(in, 1);
	}
	if (session_builder_add(b, &r))
		abort();
}

/* The edges of numbers, which the view adds up. */
static void take_sample(struct input *in, struct record_gpu_sample *s)
{
	s->ts = take_ts(in);
	s->gpu = (uint32_t)take(in, 1) & 3;
	s->has = (uint32_t)take(in, 2);
	s->clock_sm_mhz = s->power_mw = s->gpm_sm = (uint32_t)take(in, 4);
	s->utilisation_pct = s->temperature_c = (uint32_t)take(in, 4);
	s->throttle = s->energy_mj = s->memory_used = take(in, 8);
	s->xid_count = take(in, 8);
}

static void take_notice(struct input *in, struct session_builder *b, unsigned kind)
{
	struct record r = { .kind = kind };
	char text[32] = "";
	size_t len = take(in, 1) & 15;

	for (size_t i = 0; i < len && in->left; i++)
		text[i] = (char)take(in, 1);
	if (kind == RECORD_NAME)
		r.name = (struct record_name){ .ts = take_ts(in), .pid = 1 + (take(in, 1) & 1),
					       .source = take(in, 1) & 3,
					       .handle = take(in, 1) & 3, .name = text,
					       .len = strlen(text) };
	else if (kind == RECORD_PROCESS)
		r.process = (struct record_process){ .ts = take_ts(in), .event = take(in, 1) & 7,
			.pid = 1 + (take(in, 1) & 1), .flags = take(in, 1) & 3,
			.start = (int64_t)(take(in, 3) << 20), .comm = text, .cmdline = text,
			.exe = text, .container = text };
	else if (kind == RECORD_WINDOW || kind == RECORD_ACTIVE)
		r.window = (struct record_window){ take_ts(in), take_ts(in) };
	else if (kind == RECORD_SITE)
		r.site = (struct record_site){ 1, take(in, 1) & 3, 0, "cuLaunchKernel", text };
	else if (kind == RECORD_IMAGE)
		r.image = (struct record_image){ .id = 1, .mapped = take_ts(in),
						 .covered = take_ts(in), .path = text,
						 .build_id = "", .version = "" };
	else if (kind == RECORD_INFO)
		r.info = (struct record_info){ "probe_pair_ns", text };
	else if (kind == RECORD_LOSS)
		r.loss = (struct record_loss){ 1, (uint32_t)take(in, 1), take(in, 8) };
	else if (kind == RECORD_GPU)
		r.gpu = (struct record_gpu){ (uint32_t)take(in, 1) & 3, (uint32_t)take(in, 4),
					     text, text, text, "" };
	else if (kind == RECORD_LABEL)
		r.label = (struct record_label){ take_ts(in), 1 + (take(in, 1) & 1), "rank", text };
	else if (kind == RECORD_TRIGGER)
		r.trigger = (struct record_trigger){ take_ts(in), (uint32_t)take(in, 1), text,
						     take_ts(in), take_ts(in), take_ts(in),
						     (uint32_t)take(in, 1), take(in, 8) };
	else if (kind == RECORD_GPU_SAMPLE)
		take_sample(in, &r.gpu_sample);
	else
		return;
	if (session_builder_add(b, &r))
		abort();
}

static void print_all(const struct session *s, unsigned format)
{
	char err[256], *text;
	size_t size;

	for (size_t i = 0; report_view(i); i++) {
		struct report_options o = { .view = report_view(i)->name, .format = format,
					    .width = 60 };
		FILE *out = open_memstream(&text, &size);

		if (!out || report_print(s, &o, out, err, sizeof(err)))
			abort();
		fclose(out);
		free(text);
	}
}

/* What everybody who reads a session relies on. */
static void check(const struct session *s)
{
	for (size_t i = 0; i < s->calls_count; i++) {
		const struct call *c = &s->calls[i];

		if (c->thread >= s->threads_count || c->api >= s->apis_count || c->end < c->begin)
			abort();
		if (c->parent != CALL_NONE && (c->parent >= i ||
					       s->calls[c->parent].thread != c->thread))
			abort();
		if (call_duration(c) >= 0 && call_self(s, c) > call_duration(c))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size > 4096 ? 4096 : size };
	struct session_builder *b;
	struct session *s = NULL;

	if (session_builder_new(&b))
		return 0;
	for (uint32_t id = 0; id < 48; id++) {
		const struct api *api = catalogue_get((uint16_t)(id * 11 + 1));
		struct record r = { .kind = RECORD_API, .api = { .id = id } };

		if (!api)
			continue;
		r.api.name = api->name;
		r.api.library = api_library_name(api->library);
		r.api.kind = api_kind_name(api->kind);
		if (session_builder_add(b, &r))
			abort();
	}
	while (in.left) {
		uint8_t kind = (uint8_t)take(&in, 1);

		if (kind < 192)
			take_event(&in, b);
		else
			take_notice(&in, b, kind % 16);
	}
	if (session_builder_finish(b, size % 4, 0, &s))
		abort();
	check(s);
	print_all(s, size / 4 % 4);
	session_free(s);
	session_builder_free(b);
	return 0;
}
