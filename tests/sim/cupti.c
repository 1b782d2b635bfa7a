/* SPDX-License-Identifier: BSD-2-Clause */
/* libcupti's functions, as far as a client that records activities calls them. */
#include "cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CALLER __builtin_return_address(0)
#define ATTRIBUTES 16
#define CUPTI_CLIENTS 130300 /* has an object for each client */

struct cupti cupti = { .lock = PTHREAD_MUTEX_INITIALIZER, .drain = PTHREAD_MUTEX_INITIALIZER };

static int subscriber; /* its address is the handle */
static size_t attributes[ATTRIBUTES];

static void wake_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cupti.wake, &attr);
	pthread_condattr_destroy(&attr);
}

/* Looked for once: a forked child must not, the loader may have been busy. */
static sim_hooks_fn find_driver(void)
{
	static sim_hooks_fn fn;
	void *handle = fn ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		*(void **)&fn = dlsym(handle, "simHooks");
	return fn;
}

/* lock is held. */
static void forget_subscriber(void)
{
	cupti.subscribed = false;
	cupti.callback = NULL;
	memset((void *)cupti.callbacks, 0, sizeof(cupti.callbacks));
	atomic_store(&cupti.callbacks_on, 0);
}

/* lock is held. */
static void set_pair(cupti_request_fn request, cupti_complete_fn complete)
{
	struct cupti_pair pair = { request, complete };

	if (cupti.set.version >= CUPTI_CLIENTS && !cupti.client)
		cupti.client = calloc(1, sizeof(*cupti.client));
	*(cupti.client ? &cupti.client->pair : &cupti.pair) = pair;
}

/* A child has none of the parent's threads: nothing listens there. */
static void forget_in_child(void)
{
	sim_hooks_fn hooks = cupti.driver ? find_driver() : NULL;

	pthread_mutex_init(&cupti.lock, NULL);
	pthread_mutex_init(&cupti.drain, NULL);
	wake_init();
	if (hooks)
		hooks(NULL);
	cupti.driver = NULL;
	cupti.worker = false;
	set_pair(NULL, NULL);
	memset((void *)cupti.on, 0, sizeof(cupti.on));
	memset((void *)cupti.left_out, 0, sizeof(cupti.left_out));
	forget_subscriber();
	atomic_store(&cupti.enabled, 0);
	atomic_fetch_add(&cupti.life, 1);
	cupti.pending = (struct cupti_list){ 0 };
}

__attribute__((constructor)) static void begin(void)
{
	cupti_settings_read(&cupti.set);
	atomic_store(&cupti.correlation, cupti.set.first_correlation);
	cupti_clock_begin();
	wake_init();
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* lock is held. The driver's calls come here from now on. */
static int attach(void)
{
	sim_hooks_fn hooks = cupti.driver ? NULL : find_driver();

	if (hooks)
		cupti.driver = hooks(&cupti_hooks);
	return cupti.driver ? CUPTI_OK : CUPTI_NOT_INITIALIZED;
}

/* lock is held. */
static int listen_to(atomic_bool *what, bool on)
{
	int err = on ? attach() : CUPTI_OK;

	if (err)
		return err;
	if (atomic_exchange(what, on) == on)
		return CUPTI_OK;
	if (on && !atomic_load(&cupti.enabled))
		cupti.sessions++;
	atomic_fetch_add(&cupti.enabled, on ? 1u : -1u);
	if (on)
		cupti_worker_begin();
	return CUPTI_OK;
}

static int enable_kind(uint32_t kind, bool on, const void *caller)
{
	int err = CUPTI_OK;
	bool off;

	if (!kind || kind >= CUPTI_KINDS)
		return CUPTI_INVALID_KIND;
	pthread_mutex_lock(&cupti.lock);
	cupti_guard_enable(kind, on, caller);
	if (on && (kind == CUPTI_DRIVER || kind == CUPTI_RUNTIME))
		atomic_store(&cupti.by_call, true);
	off = !on && atomic_load(&cupti.on[kind]);
	err = listen_to(&cupti.on[kind], on);
	if (off && (kind == CUPTI_DRIVER || kind == CUPTI_RUNTIME))
		atomic_fetch_add(&cupti.offs[kind == CUPTI_RUNTIME], 1);
	pthread_mutex_unlock(&cupti.lock);
	return err;
}

/* A setting beside the kind, without which nothing is recorded, and which it outlasts. */
static int enable_function(uint32_t cbid, bool on)
{
	if (!cbid || cbid >= CUPTI_CBIDS)
		return CUPTI_INVALID_PARAMETER;
	atomic_store(&cupti.left_out[cbid], !on);
	return CUPTI_OK;
}

static int register_callbacks(cupti_request_fn request, cupti_complete_fn complete,
			      const void *caller)
{
	if (!request || !complete)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	cupti_guard_register(complete, caller);
	set_pair(request, complete);
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_OK;
}

static int register_timestamp(cupti_timestamp_fn fn, const void *caller)
{
	if (!fn)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	cupti_guard_clock(caller);
	cupti_clock_set(fn);
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_OK;
}

static int flush(bool forced)
{
	if (!cupti_pair().complete)
		return CUPTI_INVALID_OPERATION;
	cupti_deliver(true, forced);
	return CUPTI_OK;
}

static int subscribe(void **handle, cupti_callback_fn fn, void *user)
{
	int err = CUPTI_OK;

	if (!handle)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	if (cupti.subscribed) {
		err = CUPTI_MULTIPLE_SUBSCRIBERS;
	} else {
		cupti.subscribed = true;
		cupti.callback = fn;
		cupti.callback_user = user;
	}
	pthread_mutex_unlock(&cupti.lock);
	*handle = err ? NULL : &subscriber;
	return err;
}

static int unsubscribe(const void *handle)
{
	int err = CUPTI_OK;

	pthread_mutex_lock(&cupti.lock);
	if (handle != &subscriber || !cupti.subscribed)
		err = CUPTI_INVALID_PARAMETER;
	else
		forget_subscriber();
	pthread_mutex_unlock(&cupti.lock);
	return err;
}

/* Callbacks of the functions from..to, not of other domains: those never come. */
static int call_back(const void *handle, int domain, uint32_t from, uint32_t to, bool on)
{
	int err = CUPTI_OK;

	pthread_mutex_lock(&cupti.lock);
	if (handle != &subscriber || !cupti.subscribed || to > CUPTI_CBIDS)
		err = CUPTI_INVALID_PARAMETER;
	else if (on)
		err = attach();
	if (domain != CUPTI_DOMAIN_DRIVER && domain != CUPTI_DOMAIN_RUNTIME)
		from = to;
	for (uint32_t i = from; !err && i < to; i++)
		if (atomic_exchange(&cupti.callbacks[domain == CUPTI_DOMAIN_RUNTIME][i], on) != on)
			atomic_fetch_add(&cupti.callbacks_on, on ? 1u : -1u);
	pthread_mutex_unlock(&cupti.lock);
	return err;
}

/* What was not flushed is lost. */
static int finalize(const void *caller)
{
	sim_hooks_fn hooks = cupti.driver ? find_driver() : NULL;

	if (hooks)
		hooks(NULL);
	cupti_worker_end();
	pthread_mutex_lock(&cupti.lock);
	cupti_guard_finalize(caller);
	cupti.driver = NULL;
	set_pair(NULL, NULL);
	forget_subscriber();
	cupti.timestamp = NULL;
	cupti.timestamp_set = 0;
	cupti.clock_broken = false;
	cupti.period_ms = 0;
	memset((void *)cupti.on, 0, sizeof(cupti.on));
	memset((void *)cupti.left_out, 0, sizeof(cupti.left_out));
	atomic_store(&cupti.enabled, 0);
	atomic_fetch_add(&cupti.life, 1);
	pthread_mutex_unlock(&cupti.lock);
	cupti_forget();
	return CUPTI_OK;
}

static int next_record(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *at;
	size_t size;

	if (!buffer || !record)
		return CUPTI_INVALID_PARAMETER;
	at = *record ? *record + cupti_record_size(*(uint32_t *)*record) : buffer;
	if (at < buffer || at >= buffer + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	size = cupti_record_size(*(uint32_t *)at);
	if (!size || size > (size_t)(buffer + valid - at))
		return CUPTI_INVALID_KIND;
	*record = at;
	return CUPTI_OK;
}

static int dropped(size_t *count)
{
	if (!count)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	*count = cupti.dropped;
	cupti.dropped = 0;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_OK;
}

/* Those of all clients; how many there are is told even where there is no room for them. */
static int enabled_kinds(uint32_t *kinds, const uint32_t *room, uint32_t *count)
{
	if (!count || (kinds && !room))
		return CUPTI_INVALID_PARAMETER;
	*count = 0;
	for (uint32_t i = 0; i < CUPTI_KINDS; i++) {
		if (!atomic_load(&cupti.on[i]))
			continue;
		if (kinds && *count < *room / sizeof(*kinds))
			kinds[*count] = i;
		(*count)++;
	}
	return CUPTI_OK;
}

static int thread_type(int type)
{
	if (type < 0 || type >= CUPTI_THREAD_TYPES)
		return CUPTI_INVALID_PARAMETER;
	cupti.thread_type = type;
	return CUPTI_OK;
}

static int attribute(uint32_t which, const size_t *size, size_t *value, bool set)
{
	if (which >= ATTRIBUTES || !size || !value || *size > sizeof(*value))
		return CUPTI_INVALID_PARAMETER;
	memcpy(set ? &attributes[which] : value, set ? value : &attributes[which], *size);
	return CUPTI_OK;
}

static int told(uint32_t *out, uint32_t value)
{
	if (!out)
		return CUPTI_INVALID_PARAMETER;
	*out = value;
	return CUPTI_OK;
}

#define API(name, params, argument, result)                                                        \
	SIM_EXPORT int name params                                                                 \
	{                                                                                          \
		int err = cupti_inject(__func__);                                                  \
		if (!err)                                                                          \
			err = (result);                                                            \
		cupti_log(__func__, (long)(argument), err);                                        \
		return err;                                                                        \
	}
#define CTX struct sim_context *ctx

API(cuptiGetVersion, (uint32_t *version), 0, told(version, cupti.set.version))
API(cuptiGetTimestamp, (uint64_t *ns), 0,
    ns ? (*ns = cupti_clock_now(), CUPTI_OK) : CUPTI_INVALID_PARAMETER)
API(cuptiSubscribe, (void **handle, cupti_callback_fn fn, void *user), 0,
    subscribe(handle, fn, user))
API(cuptiSubscribe_v2, (void **handle, cupti_callback_fn fn, void *user, void *params), 0,
    subscribe(handle, fn, user))
API(cuptiUnsubscribe, (void *handle), 0, unsubscribe(handle))
API(cuptiEnableCallback, (uint32_t on, void *handle, int domain, uint32_t cbid), cbid,
    call_back(handle, domain, cbid, cbid + 1, on))
API(cuptiEnableDomain, (uint32_t on, void *handle, int domain), domain,
    call_back(handle, domain, 0, CUPTI_CBIDS, on))
API(cuptiEnableAllDomains, (uint32_t on, void *handle), on,
    call_back(handle, CUPTI_DOMAIN_DRIVER, 0, CUPTI_CBIDS, on))
API(cuptiActivityRegisterCallbacks, (cupti_request_fn request, cupti_complete_fn complete), 0,
    register_callbacks(request, complete, CALLER))
API(cuptiActivityRegisterTimestampCallback, (cupti_timestamp_fn fn), 0,
    register_timestamp(fn, CALLER))
API(cuptiActivityEnable, (uint32_t kind), kind, enable_kind(kind, true, CALLER))
API(cuptiActivityDisable, (uint32_t kind), kind, enable_kind(kind, false, CALLER))
API(cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t on), cbid, enable_function(cbid, on))
API(cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t on), cbid, CUPTI_OK)
API(cuptiActivityFlushAll, (uint32_t flags), flags, flush(flags & CUPTI_FLUSH_FORCED))
API(cuptiActivityFlush, (CTX, uint32_t stream, uint32_t flags), flags,
    flush(flags & CUPTI_FLUSH_FORCED))
API(cuptiActivityFlushPeriod, (uint32_t ms), ms, told(&cupti.period_ms, ms))
API(cuptiActivityGetNumDroppedRecords, (CTX, uint32_t stream, size_t *count), 0, dropped(count))
API(cuptiActivitySetAttribute, (uint32_t which, size_t *size, size_t *value), which,
    attribute(which, size, value, true))
API(cuptiActivityGetAttribute, (uint32_t which, size_t *size, size_t *value), which,
    attribute(which, size, value, false))
API(cuptiSetThreadIdType, (int type), type, thread_type(type))
API(cuptiGetThreadIdType, (int *type), 0, told((uint32_t *)type, (uint32_t)cupti.thread_type))
API(cuptiActivityGetEnabledKinds,
    (void *handle, uint32_t *kinds, uint32_t *room, uint32_t *count), 0,
    enabled_kinds(kinds, room, count))
API(cuptiIsTracingSessionRunning, (uint8_t *running), 0,
    running ? (*running = atomic_load(&cupti.enabled) != 0, CUPTI_OK) : CUPTI_INVALID_PARAMETER)
API(cuptiGetContextId, (CTX, uint32_t *id), 0,
    cupti.driver ? told(id, cupti.driver->context_id(ctx)) : CUPTI_NOT_INITIALIZED)
API(cuptiGetDeviceId, (CTX, uint32_t *id), 0,
    cupti.driver ? told(id, cupti.driver->device_of(ctx)) : CUPTI_NOT_INITIALIZED)
API(cuptiGetStreamIdEx, (CTX, struct sim_stream *stream, uint8_t per_thread, uint32_t *id), 0,
    cupti.driver ? told(id, cupti.driver->stream_id(stream, per_thread)) :
		   CUPTI_NOT_INITIALIZED)
API(cuptiFinalize, (void), 0, finalize(CALLER))

/* Called for every record: neither logged nor delayed. */
SIM_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	return next_record(buffer, valid, record);
}

SIM_EXPORT int cuptiGetResultString(int result, const char **text)
{
	if (!text)
		return CUPTI_INVALID_PARAMETER;
	switch (result) {
	case CUPTI_OK: *text = "CUPTI_SUCCESS"; break;
	case CUPTI_INVALID_PARAMETER: *text = "CUPTI_ERROR_INVALID_PARAMETER"; break;
	case CUPTI_INVALID_OPERATION: *text = "CUPTI_ERROR_INVALID_OPERATION"; break;
	case CUPTI_MAX_LIMIT_REACHED: *text = "CUPTI_ERROR_MAX_LIMIT_REACHED"; break;
	case CUPTI_NOT_INITIALIZED: *text = "CUPTI_ERROR_NOT_INITIALIZED"; break;
	case CUPTI_INVALID_KIND: *text = "CUPTI_ERROR_INVALID_KIND"; break;
	case CUPTI_MULTIPLE_SUBSCRIBERS:
		*text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
		break;
	default: *text = "CUPTI_ERROR_UNKNOWN";
	}
	return CUPTI_OK;
}
