// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any job of a few processes, repeated so that it has steps: judged and printed. Whatever it
 * did, shares add up to all of its time or to nothing, no number is not one, and what is said
 * of a job is said of ranks that it has.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gbpf.h"
#include "diagnose/diagnose.h"
#include "model/builder.h"
#include "probe/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROCESSES 3
#define STEP_BYTES 64
#define LAUNCHES 4000 /* of an input, at most */

static const char *const apis[] = {
	"cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoD_v2", "cuMemcpyDtoHAsync_v2",
	"cuStreamSynchronize", "cuModuleLoadData", "cuMemAlloc_v2", "ncclAllReduce",
};
#define APIS (sizeof(apis) / sizeof(apis[0]))

static const char *const names[] = {
	"_Z1av", "_Z1bv", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_SendRecv",
};

struct process {
	uint32_t pid;
	int64_t now, gpu; /* when the thread is done, and its stream */
	uint32_t correlation;
};

struct job {
	struct session_builder *b;
	struct process of[PROCESSES];
	unsigned processes, calls;
	bool works;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void add(struct job *j, const struct record *r)
{
	require(!session_builder_add(j->b, r));
}

static void call(struct job *j, struct process *p, uint16_t api, int64_t ns, unsigned kernel)
{
	struct event e = { .ts = p->now, .pid = p->pid, .tid = p->pid, .sp = 0x7000, .image = 1,
			   .api = api, .kind = EVENT_BEGIN };
	struct record r = { .kind = RECORD_EVENTS, .events = { &e, 1 } };
	struct record note = { .kind = RECORD_WORK_CALL, .work_call = {
		.begin = p->now + 1, .duration = (uint64_t)ns, .pid = p->pid, .tid = p->pid,
		.domain = 1, .correlation = ++p->correlation } };

	if (!api) {
		e.args = EVENT_ARGS_LAUNCH;
		e.launch.func = 0x1000 + kernel;
		e.launch.grid[0] = e.launch.block[0] = 1;
	} else {
		e.args = EVENT_ARGS_CALL;
		e.call.bytes = 1u << kernel;
	}
	add(j, &r);
	if (j->works)
		add(j, &note);
	p->now += ns + 2;
	e = (struct event){ .ts = p->now, .pid = p->pid, .tid = p->pid, .sp = 0x7000, .image = 1,
			    .api = api, .kind = EVENT_END };
	add(j, &r);
}

static void work(struct job *j, struct process *p, int64_t ns, unsigned kernel, bool copy)
{
	struct record r = { .kind = RECORD_WORK };

	p->gpu = p->gpu > p->now ? p->gpu : p->now;
	r.work = (struct record_work){
		.begin = p->gpu, .duration = (uint64_t)ns, .pid = p->pid, .context = 1,
		.stream = 7, .correlation = p->correlation, .shape = kernel,
		.kind = copy ? RECORD_WORK_COPY : RECORD_WORK_KERNEL };
	p->gpu += ns;
	if (j->works)
		add(j, &r);
}

/* Two bytes are a call: which, of what kernel, how long it takes and its work. */
static void act(struct job *j, struct process *p, uint8_t what, uint8_t length)
{
	uint16_t api = what % APIS;
	int64_t ns = (int64_t)(length & 15) << (length >> 4);

	if (what > 240)
		p->now += ns * 1000;
	if (api == 4 && p->gpu > p->now)
		ns += p->gpu - p->now;
	call(j, p, api, ns, what >> 3 & 3);
	if (api < 4)
		work(j, p, 1 + ((int64_t)(what >> 5) << (length & 15)), what >> 3 & 3, api > 1);
}

/* All wait for the last of them. */
static void meet(struct job *j)
{
	int64_t last = 0;

	for (unsigned i = 0; i < j->processes; i++)
		last = j->of[i].now > last ? j->of[i].now : last;
	for (unsigned i = 0; i < j->processes; i++)
		call(j, &j->of[i], 4, last - j->of[i].now + 1, 0);
}

static void label(struct job *j, uint32_t pid, uint8_t bits)
{
	struct record r = { .kind = RECORD_LABEL, .label = {
		.ts = 1, .pid = pid, .key = "rank", .value = bits & 8 ? "0" : "7" } };

	r.label.value = bits & 4 && pid == 1 ? "1" : r.label.value;
	if (bits & 1)
		add(j, &r);
}

/* A device of its own, or the one that all use. */
static void device(struct job *j, uint32_t pid, bool same)
{
	static const char *const uuids[PROCESSES] = { "GPU-1", "GPU-2", "GPU-3" };

	add(j, &(struct record){ .kind = RECORD_DEVICE, .device = {
		.pid = pid, .uuid = uuids[same ? 0 : pid - 1], .name = "GPU" } });
}

static void begin(struct job *j, uint8_t bits)
{
	for (uint32_t i = 0; i < APIS; i++) {
		const struct api *api = catalogue_get(catalogue_find(apis[i]));

		require(api);
		add(j, &(struct record){ .kind = RECORD_API, .api = {
			.id = i, .name = apis[i], .library = api_library_name(api->library),
			.kind = api_kind_name(api->kind) } });
	}
	j->processes = 1 + bits % PROCESSES;
	j->works = bits & 64;
	for (uint32_t i = 0; i < j->processes; i++) {
		j->of[i] = (struct process){ .pid = 1 + i, .now = 1000 + i };
		label(j, 1 + i, bits >> 2);
		if (j->works)
			device(j, 1 + i, bits & 128);
		for (uint32_t k = 0; k < 4; k++) {
			add(j, &(struct record){ .kind = RECORD_NAME, .name = {
				.ts = 1, .pid = 1 + i, .source = GBPF_NAME_LAYOUT,
				.handle = 0x1000 + k, .name = names[k],
				.len = (uint32_t)strlen(names[k]) } });
			if (j->works)
				add(j, &(struct record){ .kind = RECORD_SHAPE, .shape = {
					.pid = 1 + i, .id = k, .kernel = names[k],
					.grid = { 1, 1, 1 }, .block = { 1, 1, 1 } } });
		}
	}
}

static void sidecar(struct job *j, uint32_t pid, int64_t ts, uint32_t event)
{
	add(j, &(struct record){ .kind = RECORD_SIDECAR, .sidecar = {
		.ts = ts, .pid = pid, .event = event, .cupti = 130101, .text = "" } });
}

static struct session *finish(struct job *j, size_t size)
{
	struct session *s = NULL;
	int64_t end = 0;

	for (unsigned i = 0; i < j->processes; i++)
		end = j->of[i].now > end ? j->of[i].now : end;
	add(j, &(struct record){ .kind = RECORD_WINDOW, .window = { 1000, end + 1 } });
	for (unsigned i = 0; j->works && i < j->processes; i++) {
		sidecar(j, 1 + i, 500, RECORD_SIDECAR_ATTACHED);
		sidecar(j, 1 + i, 900, RECORD_SIDECAR_BEGAN);
		sidecar(j, 1 + i, end + 1, RECORD_SIDECAR_ENDED);
	}
	require(!session_builder_finish(j->b, size % 16 ? READER_END_WHOLE : READER_END_CUT, 0,
					&s));
	return s;
}

static void check_process(const struct diagnosis *d, const struct diag_process *p)
{
	double sum = 0;

	for (int i = 0; i < CLASSES; i++) {
		require(p->shares[i] >= -1e-9 && p->shares[i] <= 1 + 1e-9);
		sum += p->shares[i];
	}
	require(sum == 0 || fabs(sum - 1) < 1e-6);
	require(p->confidence >= 0 && p->confidence <= 1);
	require(p->job == UINT32_MAX || p->job < d->jobs_count);
	require(p->findings_count <= FINDINGS_MAX);
	for (size_t i = 0; i < p->findings_count; i++) {
		const struct diag_finding *f = &p->findings[i];

		require(isfinite(f->share) && f->evidence_count <= EVIDENCE_MAX);
		for (size_t k = 0; k < f->evidence_count; k++)
			require(f->evidence[k].text || isfinite(f->evidence[k].value));
	}
	require(!diag_straggles(p) || p->job != UINT32_MAX);
}

static void check(const struct diagnosis *d)
{
	size_t ranks = 0;

	for (size_t i = 0; i < d->count; i++) {
		check_process(d, &d->processes[i]);
		ranks += d->processes[i].job != UINT32_MAX;
	}
	for (size_t i = 0; i < d->jobs_count; i++) {
		require(d->jobs[i].ranks >= 2 && d->jobs[i].stragglers < d->jobs[i].ranks);
		ranks -= d->jobs[i].ranks;
	}
	require(!ranks);
}

static void print(const struct diagnosis *d)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	require(out);
	diagnosis_text(d, &(struct diag_look){ .width = 60 }, out);
	diagnosis_brief(d, out);
	diagnosis_json(d, NULL, out);
	diagnosis_markdown(d, out);
	require(!diagnosis_html(d, out));
	fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct job j = { 0 };
	struct diagnosis d;
	struct session *s;
	size_t step;

	if (size < 4 || session_builder_new(&j.b))
		return 0;
	begin(&j, data[0]);
	step = size - 3 < STEP_BYTES ? size - 3 : STEP_BYTES;
	for (unsigned i = 0; i <= data[1] && j.calls < LAUNCHES; i++)
		for (size_t k = 0; k + 1 < step; k += 2) {
			for (unsigned p = 0; p < j.processes; p++, j.calls++)
				act(&j, &j.of[p], data[3 + k],
				    (uint8_t)(data[4 + k] + (p ? 0 : data[2])));
			if (data[3 + k] % APIS == 7)
				meet(&j);
		}
	s = finish(&j, size);
	require(!diagnose(s, "file", &d));
	check(&d);
	print(&d);
	diagnosis_free(&d);
	session_free(s);
	session_builder_free(j.b);
	return 0;
}
