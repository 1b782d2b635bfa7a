// SPDX-License-Identifier: BSD-2-Clause
#include "cupti_alone.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/lib/layout.h"

#define ALIGN 8
#define BUFFER_BYTES (1u << 20)
#define FLUSH_MS 100 /* pauses as of user/sidecar/lib/anchors.c and control.c */
#define PAUSE_MS 500
#define MOMENT_MS 15
#define DRIVER 4
#define RUNTIME 5
#define DOMAINS 2     /* CUpti_CallbackDomain: 1 the driver's, 2 the runtime's */
#define FUNCTIONS 1000 /* more than either has */

/* Of the process, which has one client only. */
static struct {
	int (*subscribe)(void **subscriber, void *callback, void *user);
	int (*unsubscribe)(void *subscriber);
	int (*register_callbacks)(void *request, void *complete);
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*flush_all)(uint32_t flag);
	int (*finalize)(void);
	int (*version)(uint32_t *version);
	int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
	int (*domain)(uint32_t on, void *subscriber, int domain);
	int (*function[DOMAINS])(uint32_t cbid, uint8_t on); /* from 12.5 on, else NULL */
	const struct layout *layout;
	uint64_t kinds;
	enum cupti_alone_calls calls;
	bool running;
	atomic_bool leaving;
	FILE *log; /* NULL: records are thrown away */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
} client = { .lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER };

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(ALIGN, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*most = 0;
}

static void write_down(const struct decoded *d)
{
	if (d->what == DECODED_WORK)
		fprintf(client.log, "work %u %u %u %lld\n", d->work.kind, d->work.correlation,
			d->work.stream, (long long)d->work.begin);
	else if (d->what == DECODED_CALL)
		fprintf(client.log, "call %u %u %u %lld %u\n", d->call.domain, d->call.correlation,
			d->call.tid, (long long)d->call.begin, d->call.cbid);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	struct decoded d;

	(void)context, (void)stream, (void)size;
	while (client.log && client.layout && !client.next(buffer, valid, &record)) {
		layout_decode(client.layout, record, (size_t)(buffer + valid - record), &d);
		write_down(&d);
	}
	free(buffer);
}

static void ignore(void *user, int domain, uint32_t cbid, const void *data)
{
	(void)user, (void)domain, (void)cbid, (void)data;
}

static bool find(void *handle, const char *name, void *at)
{
	*(void **)at = dlsym(handle, name);
	if (!*(void **)at)
		fprintf(stderr, "no %s\n", name);
	return *(void **)at;
}

int cupti_alone_open(const char *path)
{
	void *h = dlopen(path, RTLD_NOW);
	uint32_t version = 0;

	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	if (!find(h, "cuptiSubscribe", &client.subscribe) ||
	    !find(h, "cuptiUnsubscribe", &client.unsubscribe) ||
	    !find(h, "cuptiActivityRegisterCallbacks", &client.register_callbacks) ||
	    !find(h, "cuptiActivityEnable", &client.enable) ||
	    !find(h, "cuptiActivityDisable", &client.disable) ||
	    !find(h, "cuptiActivityFlushAll", &client.flush_all) ||
	    !find(h, "cuptiFinalize", &client.finalize) ||
	    !find(h, "cuptiGetVersion", &client.version) ||
	    !find(h, "cuptiActivityGetNextRecord", &client.next) ||
	    !find(h, "cuptiEnableDomain", &client.domain))
		return -1;
	(void)find(h, "cuptiActivityEnableDriverApi", &client.function[0]);
	(void)find(h, "cuptiActivityEnableRuntimeApi", &client.function[1]);
	if (!client.version(&version))
		client.layout = layout_of(version);
	return 0;
}

int cupti_alone_subscribe(void)
{
	void *subscriber = NULL;
	int result = client.subscribe(&subscriber, (void *)ignore, NULL);

	return result ? result : client.unsubscribe(subscriber);
}

/* False when told to end. */
static bool pause_ms(long ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (client.running && !pthread_cond_timedwait(&client.end, &client.lock, &until))
		;
	return client.running;
}

static void kinds(bool on)
{
	(void)(on ? client.enable : client.disable)(DRIVER);
	(void)(on ? client.enable : client.disable)(RUNTIME);
}

static bool launches(int domain, uint32_t cbid)
{
	return domain ? layout_runtime_launches(cbid) : layout_launches(cbid);
}

/*
 * Which functions the kinds record: a setting beside them, which records nothing by itself and
 * outlasts their being off (13.0). Here it is changed for all but those that launch, or for all.
 */
static int functions(bool on, bool all)
{
	for (int domain = 0; domain < DOMAINS; domain++)
		for (uint32_t cbid = 1; cbid < FUNCTIONS; cbid++)
			if (client.function[domain] && (all || !launches(domain, cbid)))
				(void)client.function[domain](cbid, on);
	return client.function[0] && client.function[1] ? 0 : -1;
}

static void calls(bool on)
{
	if (client.calls == CUPTI_ALONE_LAUNCHES && on)
		(void)functions(false, false);
	kinds(on);
	if (client.calls == CUPTI_ALONE_LAUNCHES && !on)
		(void)functions(true, false);
}

/* A subscriber asks for callbacks of all functions, and does so no more. */
static int domains(void)
{
	void *subscriber = NULL;
	int result = client.subscribe(&subscriber, (void *)ignore, NULL);

	for (int domain = 1; !result && domain <= DOMAINS; domain++)
		result = client.domain(1, subscriber, domain) ?:
			 client.domain(0, subscriber, domain);
	return subscriber ? client.unsubscribe(subscriber) ?: result : result;
}

int cupti_alone_reset(const char *how)
{
	if (!strcmp(how, "domains"))
		return domains();
	if (!strcmp(how, "functions"))
		return functions(false, true);
	return -1;
}

int cupti_alone_log(const char *path)
{
	client.log = fopen(path, "w");
	return client.log && client.layout ? 0 : -1;
}

static void *work(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&client.lock);
	for (long ms = 0; pause_ms(FLUSH_MS); ms += FLUSH_MS) {
		(void)client.flush_all(0);
		if (!client.calls || ms % PAUSE_MS)
			continue;
		calls(true);
		(void)pause_ms(MOMENT_MS);
		calls(false);
	}
	pthread_mutex_unlock(&client.lock);
	return NULL;
}

int cupti_alone_on(uint64_t kinds, enum cupti_alone_calls calls)
{
	int result = client.register_callbacks((void *)request, (void *)complete);

	for (int kind = 0; kind < 64 && !result; kind++)
		if (kinds & 1ull << kind)
			result = client.enable(kind);
	client.kinds = kinds;
	client.calls = calls;
	client.running = true;
	if (calls == CUPTI_ALONE_LAUNCHES_KEPT)
		(void)functions(false, false);
	if (!result && pthread_create(&client.thread, NULL, work, NULL)) {
		client.running = false;
		result = -1;
	}
	return result;
}

int cupti_alone_off(void)
{
	int result = 0;

	pthread_mutex_lock(&client.lock);
	client.running = false;
	pthread_cond_signal(&client.end);
	pthread_mutex_unlock(&client.lock);
	pthread_join(client.thread, NULL);
	for (int kind = 0; kind < 64; kind++)
		if (client.kinds & 1ull << kind)
			result = client.disable(kind) ?: result;
	client.kinds = 0;
	result = client.flush_all(0) ?: result;
	if (client.log)
		(void)fflush(client.log);
	return result;
}

int cupti_alone_finalize(void)
{
	return client.finalize();
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The first call that ends, of whichever thread, takes all of CUPTI away. */
static void on_leave(void *user, int domain, uint32_t cbid, const void *data)
{
	int64_t begin = now_ns();
	uint32_t site;
	int result;

	(void)user;
	memcpy(&site, data, sizeof(site));
	if (!site || !atomic_exchange(&client.leaving, false))
		return;
	result = client.finalize();
	if (!client.log)
		return;
	fprintf(client.log, "finalized %d %d %u %lld\n", result, domain, cbid,
		(long long)(now_ns() - begin));
	(void)fflush(client.log);
}

static void *leave(void *ms)
{
	void *subscriber = NULL;
	int result;

	usleep((useconds_t)(uintptr_t)ms * 1000);
	result = cupti_alone_off() ?: client.subscribe(&subscriber, (void *)on_leave, NULL);
	for (int domain = 1; !result && domain <= DOMAINS; domain++)
		result = client.domain(1, subscriber, domain);
	atomic_store(&client.leaving, !result);
	if (result && client.log)
		fprintf(client.log, "stays %d\n", result);
	return NULL;
}

int cupti_alone_leave(unsigned ms)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, leave, (void *)(uintptr_t)ms);

	return err ? -1 : pthread_detach(thread);
}
