/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of CUPTI for tests: loaded through CUDA_INJECTION64_PATH, records
 * from then on and writes every record, as a line of JSON, to the file that
 * SIMCLIENT_OUT names. What else it does, SIMCLIENT says; README.md has the words.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cbid.h"
#include "cupti_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* In the order of function_names. */
static struct {
	int (*cuptiGetVersion)(uint32_t *);
	int (*cuptiGetTimestamp)(uint64_t *);
	int (*cuptiSubscribe)(void **, cupti_callback_fn, void *);
	int (*cuptiActivityRegisterCallbacks)(cupti_request_fn, cupti_complete_fn);
	int (*cuptiActivityRegisterTimestampCallback)(cupti_timestamp_fn);
	int (*cuptiActivityEnable)(uint32_t);
	int (*cuptiActivityDisable)(uint32_t);
	int (*cuptiActivityFlushAll)(uint32_t);
	int (*cuptiActivityFlushPeriod)(uint32_t);
	int (*cuptiActivityGetNextRecord)(uint8_t *, size_t, uint8_t **);
	int (*cuptiActivityGetNumDroppedRecords)(void *, uint32_t, size_t *);
	int (*cuptiSetThreadIdType)(int);
	int (*cuptiFinalize)(void);
	int (*cuptiEnableDomain)(uint32_t, void *, int);
	int (*cuptiActivityEnableDriverApi)(uint32_t, uint8_t); /* NULL before 12.5 */
} cupti;

static const char *const function_names[] = {
	"cuptiGetVersion", "cuptiGetTimestamp", "cuptiSubscribe", "cuptiActivityRegisterCallbacks",
	"cuptiActivityRegisterTimestampCallback", "cuptiActivityEnable", "cuptiActivityDisable",
	"cuptiActivityFlushAll", "cuptiActivityFlushPeriod", "cuptiActivityGetNextRecord",
	"cuptiActivityGetNumDroppedRecords", "cuptiSetThreadIdType", "cuptiFinalize",
	"cuptiEnableDomain", "cuptiActivityEnableDriverApi",
};

#define FUNCTIONS (sizeof(function_names) / sizeof(*function_names))
_Static_assert(sizeof(cupti) == FUNCTIONS * sizeof(void *), "a name for each");

static struct {
	FILE *out;
	pthread_mutex_t lock;
	pthread_mutex_t turn; /* of beginning and ending sessions */
	size_t buffer_size, max_records;
	unsigned refuse; /* of the requests for a buffer every Nth, 0: none */
	unsigned session, requests, outstanding;
	long calls;
	long on_ms, off_ms; /* 0: one session */
	bool all;
	unsigned flush;
	uint32_t version;
} client = { .lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_MUTEX_INITIALIZER };

static const uint32_t kinds[] = { CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET,
				  CUPTI_MEMCPY_PEER, CUPTI_OVERHEAD };
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* The number after word= in SIMCLIENT; otherwise if the word is not there. */
static long option(const char *word, long otherwise)
{
	const char *text = getenv("SIMCLIENT");
	size_t length = strlen(word);

	for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
		if (!strncmp(text, word, length) && strchr("=,", text[length]))
			return text[length] == '=' ? atol(text + length + 1) : 1;
	return otherwise;
}

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	unsigned n;

	pthread_mutex_lock(&client.lock);
	n = ++client.requests;
	fprintf(client.out, "{\"request\": %u, \"thread\": %d}\n", n, gettid());
	*buffer = NULL;
	*size = 0;
	*max_records = client.max_records;
	if (!client.refuse || n % client.refuse) {
		*buffer = aligned_alloc(8, client.buffer_size);
		*size = *buffer ? client.buffer_size : 0;
		client.outstanding += *buffer != NULL;
	}
	pthread_mutex_unlock(&client.lock);
}

static void where(const char *kind, uint32_t device, uint32_t context, uint32_t stream,
		  uint32_t correlation, uint32_t graph, uint64_t node)
{
	fprintf(client.out,
		"{\"kind\": \"%s\", \"session\": %u, \"device\": %u, \"context\": %u, "
		"\"stream\": %u, \"correlation\": %u, \"graph\": %u, \"node\": %llu, ",
		kind, client.session, device, context, stream, correlation, graph,
		(unsigned long long)node);
}

static void when(uint64_t start, uint64_t end)
{
	fprintf(client.out, "\"start\": %llu, \"end\": %llu}\n", (unsigned long long)start,
		(unsigned long long)end);
}

static void tell_kernel(const struct cupti_kernel *k)
{
	where("kernel", k->device, k->context, k->stream, k->correlation, k->graph, k->graph_node);
	fputs("\"name\": \"", client.out);
	for (const char *c = k->name; c && *c; c++)
		fprintf(client.out, "%02x", (unsigned char)*c);
	fprintf(client.out,
		"\", \"grid\": [%d, %d, %d], \"block\": [%d, %d, %d], \"smem\": %d, "
		"\"registers\": %u, ",
		k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2],
		k->static_shared + k->dynamic_shared, k->registers);
	when(k->start, k->end);
}

static void tell_copy(const struct cupti_copy *c)
{
	where("copy", c->device, c->context, c->stream, c->correlation, c->graph, c->graph_node);
	fprintf(client.out, "\"bytes\": %llu, \"copy\": %u, \"from\": %u, \"to\": %u, ",
		(unsigned long long)c->bytes, c->copy, c->from, c->to);
	fprintf(client.out, "\"async\": %d, ", c->flags & CUPTI_FLAG_ASYNC);
	when(c->start, c->end);
}

static void tell_set(const struct cupti_set *s)
{
	where("set", s->device, s->context, s->stream, s->correlation, s->graph, s->graph_node);
	fprintf(client.out, "\"bytes\": %llu, \"value\": %u, \"to\": %u, ",
		(unsigned long long)s->bytes, s->value, s->memory);
	fprintf(client.out, "\"async\": %d, ", s->flags & CUPTI_FLAG_ASYNC);
	when(s->start, s->end);
}

static void tell_call(const struct cupti_api *a)
{
	fprintf(client.out,
		"{\"kind\": \"call\", \"session\": %u, \"runtime\": %d, \"cbid\": %u, "
		"\"process\": %u, \"thread\": %u, \"correlation\": %u, \"ret\": %d, ",
		client.session, a->kind == CUPTI_RUNTIME, a->cbid, a->process, a->thread,
		a->correlation, a->ret);
	when(a->start, a->end);
}

static void tell_peer(const struct cupti_peer *c)
{
	where("copy", c->device, c->context, c->stream, c->correlation, c->graph, c->graph_node);
	fprintf(client.out,
		"\"bytes\": %llu, \"copy\": %u, \"from\": %u, \"to\": %u, \"devices\": [%u, %u], "
		"\"contexts\": [%u, %u], ",
		(unsigned long long)c->bytes, c->copy, c->from, c->to, c->from_device,
		c->to_device, c->from_context, c->to_context);
	fprintf(client.out, "\"async\": %d, ", c->flags & CUPTI_FLAG_ASYNC);
	when(c->start, c->end);
}

static void tell_overhead(const struct cupti_overhead *o)
{
	fprintf(client.out, "{\"kind\": \"overhead\", \"what\": %u, \"thread\": %u, ",
		o->overhead, o->thread);
	when(o->start, o->end);
}

static void tell(const void *record)
{
	switch (*(const uint32_t *)record) {
	case CUPTI_CONCURRENT_KERNEL: tell_kernel(record); break;
	case CUPTI_MEMCPY: tell_copy(record); break;
	case CUPTI_MEMSET: tell_set(record); break;
	case CUPTI_DRIVER:
	case CUPTI_RUNTIME: tell_call(record); break;
	case CUPTI_MEMCPY_PEER: tell_peer(record); break;
	case CUPTI_OVERHEAD: tell_overhead(record); break;
	default: fprintf(client.out, "{\"kind\": \"unknown\"}\n");
	}
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	int err;

	pthread_mutex_lock(&client.lock);
	while (!(err = cupti.cuptiActivityGetNextRecord(buffer, valid, &record)))
		tell(record);
	client.outstanding--;
	fprintf(client.out, "{\"complete\": %zu, \"thread\": %d, \"ends\": %d}\n", valid,
		gettid(), err);
	pthread_mutex_unlock(&client.lock);
	free(buffer);
}

static void switch_calls(bool on)
{
	static const char *const launches[] = {
		"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchKernel_ptsz",
		"cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuGraphLaunch",
	};
#define ROW(name, id) { #name, id },
	static const struct {
		const char *name;
		uint32_t id;
	} ids[] = { SIM_CBIDS(ROW) };

	(on ? cupti.cuptiActivityEnable : cupti.cuptiActivityDisable)(CUPTI_DRIVER);
	(on ? cupti.cuptiActivityEnable : cupti.cuptiActivityDisable)(CUPTI_RUNTIME);
	if (client.all || !cupti.cuptiActivityEnableDriverApi)
		return;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		bool launches_it = false;

		for (size_t n = 0; n < sizeof(launches) / sizeof(*launches); n++)
			launches_it = launches_it || !strcmp(ids[i].name, launches[n]);
		if (!launches_it)
			cupti.cuptiActivityEnableDriverApi(ids[i].id, !on);
	}
}

static void report(const char *what, int result)
{
	pthread_mutex_lock(&client.lock);
	fprintf(client.out, "{\"%s\": %d, \"at\": %llu}\n", what, result,
		(unsigned long long)now());
	pthread_mutex_unlock(&client.lock);
}

static void begin_session(void)
{
	int err;

	client.session++;
	report("begins", (int)client.session);
	err = cupti.cuptiActivityRegisterCallbacks(request, complete);
	for (size_t i = 0; i < KINDS; i++)
		err = err ? err : cupti.cuptiActivityEnable(kinds[i]);
	switch_calls(true);
	report("begun", err);
}

static void end_session(void)
{
	size_t dropped = 0;

	for (size_t i = 0; i < KINDS; i++)
		cupti.cuptiActivityDisable(kinds[i]);
	switch_calls(false);
	report("flushed", cupti.cuptiActivityFlushAll(client.flush));
	if (!cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped))
		report("dropped", (int)dropped);
}

/*
 * With detach=N the Nth call, as it returns, is the last that CUPTI sees; with turn=N a
 * session ends and another begins as every Nth does.
 */
static void call_back(void *user, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;
	long detach = option("detach", 0), turn = option("turn", 0);

	pthread_mutex_lock(&client.lock);
	if (!detach && !turn)
		fprintf(client.out,
			"{\"callback\": %u, \"cbid\": %u, \"correlation\": %u, \"ret\": %d, "
			"\"thread\": %d}\n",
			d->site, cbid, d->correlation, *(int *)d->ret, gettid());
	client.calls += d->site == CUPTI_API_EXIT;
	turn = turn && client.calls % turn == 0 && d->site == CUPTI_API_EXIT;
	detach = detach == client.calls && d->site == CUPTI_API_EXIT;
	pthread_mutex_unlock(&client.lock);
	if (detach || turn)
		end_session();
	if (turn)
		begin_session();
	if (detach)
		report("finalized", cupti.cuptiFinalize());
}

static void stop_calls(void)
{
	report("stops", 0);
	switch_calls(false);
	report("stopped", 0);
}

static void *alternate(void *user)
{
	bool calls = option("calls", 0);

	for (;;) {
		usleep((useconds_t)client.on_ms * 1000);
		pthread_mutex_lock(&client.turn);
		(calls ? stop_calls : end_session)();
		usleep((useconds_t)client.off_ms * 1000);
		if (calls)
			switch_calls(true);
		else
			begin_session();
		pthread_mutex_unlock(&client.turn);
	}
	return NULL;
}

static void tell_clock(void)
{
	uint64_t before, its = 0, after, best = UINT64_MAX;
	long long offset = 0;

	for (int i = 0; i < 9; i++) {
		before = now();
		cupti.cuptiGetTimestamp(&its);
		after = now();
		if (after - before < best) {
			best = after - before;
			offset = (long long)(its - before - best / 2);
		}
	}
	fprintf(client.out, "{\"offset\": %lld, \"error\": %llu}\n", offset,
		(unsigned long long)best);
}

/* A job that ends with exit() comes here. */
static void at_exit(void)
{
	if (option("stay", 0)) {
		fflush(client.out);
		return;
	}
	pthread_mutex_lock(&client.turn);
	pthread_mutex_lock(&client.lock);
	tell_clock();
	pthread_mutex_unlock(&client.lock);
	end_session();
	report("outstanding", (int)client.outstanding);
	if (option("finalize", 0))
		report("finalized", cupti.cuptiFinalize());
	fflush(client.out);
}

static bool load(void)
{
	const char *path = getenv("SIMCLIENT_CUPTI");
	void *handle = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);

	if (!handle) {
		fprintf(stderr, "client: %s\n", dlerror());
		return false;
	}
	for (size_t i = 0; i < FUNCTIONS; i++)
		((void **)&cupti)[i] = dlsym(handle, function_names[i]);
	return cupti.cuptiActivityEnable != NULL;
}

static void settings(void)
{
	client.buffer_size = (size_t)option("buffer", 65536);
	client.max_records = (size_t)option("records", 0);
	client.refuse = (unsigned)option("refuse", 0);
	client.on_ms = option("on", 0);
	client.off_ms = option("off", 10);
	client.all = option("all", 0);
	client.flush = (unsigned)option("forced", 0);
}

EXPORT int InitializeInjection(void)
{
	const char *path = getenv("SIMCLIENT_OUT");
	void *subscriber = NULL;
	pthread_t thread;

	client.out = path ? fopen(path, "we") : NULL;
	if (!client.out || !load())
		return 0;
	settings();
	usleep((useconds_t)option("wait", 0) * 1000);
	setvbuf(client.out, NULL, _IOFBF, 1 << 20);
	cupti.cuptiGetVersion(&client.version);
	report("version", (int)client.version);
	if (option("subscribe", 0))
		report("subscribed", cupti.cuptiSubscribe(&subscriber, call_back, NULL));
	if (option("callbacks", 0))
		cupti.cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER);
	if (option("only", 0)) {
		fflush(client.out);
		return 1;
	}
	if (option("monotonic", 0))
		report("clock", cupti.cuptiActivityRegisterTimestampCallback(now));
	if (option("system", 0))
		cupti.cuptiSetThreadIdType(CUPTI_THREAD_SYSTEM);
	tell_clock();
	if (option("disable", 0)) {
		report("disabled", cupti.cuptiActivityDisable(CUPTI_CONCURRENT_KERNEL));
		fflush(client.out);
		return 1;
	}
	begin_session();
	if (option("twice", 0))
		report("clock", cupti.cuptiActivityRegisterTimestampCallback(now));
	if (option("period", 0))
		cupti.cuptiActivityFlushPeriod((uint32_t)option("period", 0));
	if (client.on_ms && pthread_create(&thread, NULL, alternate, NULL))
		abort();
	atexit(at_exit);
	return 1;
}
