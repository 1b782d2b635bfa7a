// SPDX-License-Identifier: BSD-2-Clause
#include "cupti_alone.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ALIGN 8
#define BUFFER_BYTES (1u << 20)
#define FLUSH_MS 100 /* pauses as of user/sidecar/lib/anchors.c and control.c */
#define PAUSE_MS 500
#define MOMENT_MS 15
#define DRIVER 4
#define RUNTIME 5

/* Of the process, which has one client only. */
static struct {
	int (*subscribe)(void **subscriber, void *callback, void *user);
	int (*unsubscribe)(void *subscriber);
	int (*register_callbacks)(void *request, void *complete);
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*flush_all)(uint32_t flag);
	int (*finalize)(void);
	uint64_t kinds;
	bool moments, running;
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

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context, (void)stream, (void)size, (void)valid;
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
	    !find(h, "cuptiFinalize", &client.finalize))
		return -1;
	return client.register_callbacks((void *)request, (void *)complete);
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

static void calls(bool on)
{
	(void)(on ? client.enable : client.disable)(DRIVER);
	(void)(on ? client.enable : client.disable)(RUNTIME);
}

static void *work(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&client.lock);
	for (long ms = 0; pause_ms(FLUSH_MS); ms += FLUSH_MS) {
		(void)client.flush_all(0);
		if (!client.moments || ms % PAUSE_MS)
			continue;
		calls(true);
		(void)pause_ms(MOMENT_MS);
		calls(false);
	}
	pthread_mutex_unlock(&client.lock);
	return NULL;
}

int cupti_alone_on(uint64_t kinds, bool moments)
{
	int result = 0;

	for (int kind = 0; kind < 64 && !result; kind++)
		if (kinds & 1ull << kind)
			result = client.enable(kind);
	client.kinds = kinds;
	client.moments = moments;
	client.running = true;
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
	return client.flush_all(0) ?: result;
}

int cupti_alone_finalize(void)
{
	return client.finalize();
}
