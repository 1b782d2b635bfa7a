// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any sequence of calls, works and the sidecar's notes: joined, measured and printed. Whatever
 * a file claims, a work's call is of its process and not later, gaps and work fill the watched
 * time, and the lists agree.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/builder.h"
#include "model/gpu.h"
#include "probe/catalogue.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const apis[] = {
	"cuLaunchKernel", "cudaLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2",
	"cuMemsetD8Async", "cuStreamSynchronize", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
};
#define APIS (sizeof(apis) / sizeof(apis[0]))

struct input {
	const uint8_t *at;
	size_t left;
	int64_t now;
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

/* Mostly a little later than before, so that things meet, and now and then any time at all. */
static int64_t take_ts(struct input *in)
{
	uint8_t how = (uint8_t)take(in, 1);

	if (how > 252)
		return (int64_t)take(in, 8);
	in->now += how * 40;
	return in->now;
}

static void add(struct session_builder *b, const struct record *r)
{
	if (session_builder_add(b, r))
		abort();
}

/* A call with CUPTI's record of it inside, or next to it. */
static void take_call(struct input *in, struct session_builder *b)
{
	struct event e = { .image = 1, .kind = EVENT_BEGIN };
	struct record r = { .kind = RECORD_EVENTS, .events = { &e, 1 } };
	uint8_t bits = (uint8_t)take(in, 1);
	struct record note = { .kind = RECORD_WORK_CALL };

	e.pid = 1 + (bits & 1);
	e.tid = e.pid + (bits >> 1 & 1);
	e.sp = 4096 - (bits >> 2 & 3) * 64;
	e.api = (uint16_t)(take(in, 1) % APIS);
	e.ts = take_ts(in);
	if (e.api < 2) {
		e.args = EVENT_ARGS_LAUNCH;
		e.launch.grid[0] = e.launch.block[0] = e.launch.grid[1] = 1 + (bits >> 4 & 1);
		e.launch.block[1] = e.launch.grid[2] = e.launch.block[2] = 1;
		e.launch.func = bits >> 5;
	} else if (e.api < 5) {
		e.args = EVENT_ARGS_CALL;
		e.call.object = bits >> 4 & 3;
		e.call.bytes = bits >> 5;
	}
	add(b, &r);
	note.work_call = (struct record_work_call){
		.begin = e.ts + (int8_t)take(in, 1), .duration = take(in, 1), .pid = e.pid,
		.tid = e.tid, .domain = 1 + (bits >> 7),
		.correlation = (uint32_t)take(in, 1) & 15 };
	if (bits & 64)
		add(b, &note);
	if (bits & 32)
		return; /* its end is lost, or comes by itself */
	e = (struct event){ .image = 1, .kind = EVENT_END, .pid = e.pid, .tid = e.tid, .sp = e.sp,
			    .api = e.api, .ts = take_ts(in) };
	add(b, &r);
}

static void take_work(struct input *in, struct session_builder *b)
{
	uint8_t bits = (uint8_t)take(in, 1);
	struct record r = { .kind = RECORD_WORK, .work = {
		.begin = take_ts(in), .duration = take(in, bits == 255 ? 8 : 1) * 10,
		.pid = 1 + (bits & 1), .kind = 1 + (bits >> 1) % 3, .device = bits >> 3 & 1,
		.context = 1, .stream = bits >> 4 & 3, .correlation = (uint32_t)take(in, 1) & 15,
		.shape = bits >> 6, .graph = bits >> 5 & 1, .bytes = bits >> 5 } };

	r.work.graph_node = r.work.graph ? 1 + take(in, 1) % 3 : 0;
	add(b, &r);
}

static void take_note(struct input *in, struct session_builder *b, uint8_t kind)
{
	uint8_t bits = (uint8_t)take(in, 1);
	uint32_t pid = 1 + (bits & 1);
	struct record r = { .kind = RECORD_SIDECAR, .sidecar = {
		.ts = take_ts(in), .pid = pid, .event = (bits >> 1) % 12, .text = "why",
		.count = take(in, bits > 250 ? 8 : 1), .cupti = bits & 32 ? 130101 : 26 } };

	if (kind % 4 == 1)
		r = (struct record){ .kind = RECORD_OVERHEAD, .overhead = {
			.begin = take_ts(in), .duration = take(in, 1) * 20, .pid = pid } };
	else if (kind % 4 == 2)
		r = (struct record){ .kind = RECORD_SHAPE, .shape = {
			.pid = pid, .id = bits >> 6, .kernel = bits & 16 ? "_Z1fv" : "",
			.grid = { 1 + (bits >> 2 & 1), 1 + (bits >> 2 & 1), 1 },
			.block = { 1 + (bits >> 2 & 1), 1, 1 },
			.registers = (uint32_t)take(in, 4) } };
	else if (kind % 8 == 3)
		r = (struct record){ .kind = RECORD_DEVICE, .device = {
			.pid = pid, .ordinal = bits >> 2 & 1, .uuid = bits & 8 ? "GPU-1" : "",
			.name = "H", .major = bits >> 4, .sms = (int32_t)take(in, 4), .warp = 32,
			.sm_threads = (int32_t)take(in, 4), .sm_registers = 65536,
			.block_registers = 65536, .sm_smem = 1 << 17 } };
	else if (kind % 8 == 7)
		r = (struct record){ .kind = RECORD_PROCESS, .process = {
			.ts = take_ts(in), .event = 1 + bits % 4, .pid = pid,
			.start = (int64_t)(take(in, 1) << 26), .comm = "", .cmdline = "",
			.exe = "", .container = "" } };
	add(b, &r);
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_works(const struct session *s)
{
	size_t matched = 0, count;

	for (uint32_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];
		const uint32_t *works;
		bool listed = false;

		require(w->begin < w->end && w->stream < s->streams_count);
		if (w->call == CALL_NONE)
			continue;
		matched++;
		require(s->threads[s->calls[w->call].thread].process ==
			s->streams[w->stream].process);
		require(s->calls[w->call].begin <= w->begin + 100000);
		works = works_of(s, w->call, &count);
		for (size_t k = 0; works && k < count; k++)
			listed |= works[k] == i;
		require(listed);
	}
	require(matched == s->join.matched && s->join.works + s->join.earlier == s->works_count);
	require(s->join.launches_without <= s->join.launches);
}

static void check_device(const struct session *s, uint32_t device)
{
	struct spans busy, covered;
	struct gap *gaps;
	size_t count;
	int64_t filled = 0;

	require(!device_busy(s, device, WORK_CLASS_ALL, &busy));
	require(!device_covered(s, device, &covered));
	require(!device_gaps(s, device, &gaps, &count));
	for (size_t i = 0; i < covered.count; i++)
		filled += spans_within(&busy, covered.items[i].begin, covered.items[i].end);
	for (size_t i = 0; i < count; i++) {
		require(gaps[i].begin < gaps[i].end && gaps[i].class < GAP_CLASSES);
		require(!spans_within(&busy, gaps[i].begin, gaps[i].end));
		filled += gaps[i].end - gaps[i].begin;
	}
	require(filled == spans_within(&covered, INT64_MIN, INT64_MAX));
	spans_free(&busy);
	spans_free(&covered);
	free(gaps);
}

static void print_all(const struct session *s, unsigned format)
{
	char err[256], *text;
	size_t size;

	for (size_t i = 0; report_view(i); i++) {
		struct report_options o = { .view = report_view(i)->name, .format = format,
					    .width = 60 };
		FILE *out;

		if (strncmp(o.view, "kern", 4) && strncmp(o.view, "g", 1) &&
		    strncmp(o.view, "s", 1))
			continue;
		out = open_memstream(&text, &size);
		require(out && !report_print(s, &o, out, err, sizeof(err)));
		fclose(out);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size > 4096 ? 4096 : size, 1000 };
	struct session_builder *b;
	struct session *s = NULL;

	if (session_builder_new(&b))
		return 0;
	for (uint32_t id = 0; id < APIS; id++) {
		const struct api *api = catalogue_get(catalogue_find(apis[id]));

		require(api);
		add(b, &(struct record){ .kind = RECORD_API, .api = {
			.id = id, .name = apis[id], .library = api_library_name(api->library),
			.kind = api_kind_name(api->kind) } });
	}
	while (in.left) {
		uint8_t kind = (uint8_t)take(&in, 1);

		if (kind < 100)
			take_call(&in, b);
		else if (kind < 200)
			take_work(&in, b);
		else
			take_note(&in, b, kind);
	}
	if (session_builder_finish(b, size % 4, 0, &s))
		abort();
	check_works(s);
	for (uint32_t i = 0; i < s->devices_count; i++)
		check_device(s, i);
	print_all(s, size / 4 % 4);
	session_free(s);
	session_builder_free(b);
	return 0;
}
