/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libnvidia-ml.so.1. Its answers come from a text file, which
 * tests may replace at any time; README.md has its words. Like a library that
 * must be closed properly it has a thread and open files of its own between
 * init and shutdown, and one more for each event set and GPM sample.
 *
 * SIMNVML_BARE: without what a library may lack. SIMNVML_NO_INIT: init has another name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "nvml_abi.h"
#include "nvml_state.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6,
       TOO_SMALL = 7, TIMED_OUT = 10 };

struct event_set {
	int fd;
	uint64_t devices; /* that are registered */
};

struct gpm_sample {
	int fd;
	struct device *device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static unsigned inits;
static int control = -1;

static void *idle(void *arg)
{
	pthread_mutex_lock(&lock);
	while (inits)
		pthread_cond_wait(&over, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void log_call(const struct state *s, const char *function)
{
	FILE *out = s->log[0] ? fopen(s->log, "ae") : NULL;

	if (!out)
		return;
	fprintf(out, "%s\n", function);
	fclose(out);
}

/* What every function begins with: its answer if it is not to do its work, with the lock held. */
static int begin(const char *function, struct state **s)
{
	struct timespec t;
	uint64_t ms;
	int code;

	pthread_mutex_lock(&lock);
	*s = state_now();
	log_call(*s, function);
	code = state_fail(*s, function, &ms);
	if (ms) {
		t = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};
		pthread_mutex_unlock(&lock);
		nanosleep(&t, NULL);
		pthread_mutex_lock(&lock);
	}
	if (!code && !inits && strcmp(function, "nvmlInit_v2"))
		code = UNINITIALIZED;
	return code;
}

static int end(int code)
{
	pthread_mutex_unlock(&lock);
	return code;
}

static int about(const char *function, struct device *d, struct state **s)
{
	int code = begin(function, s);

	if (!code && (!d || !d->there))
		code = INVALID;
	if (!code && d->result)
		code = d->result;
	if (!code && d->parent && d->parent->result)
		code = d->parent->result;
	return code;
}

#ifdef SIMNVML_NO_INIT
#define nvmlInit_v2 nvmlInit /* its name before 2013 */
#endif

EXPORT int nvmlInit_v2(void)
{
	struct state *s;
	int code = begin("nvmlInit_v2", &s);

	if (!code && !inits++) {
		control = open("/dev/zero", O_RDWR | O_CLOEXEC);
		if (control < 0 || pthread_create(&thread, NULL, idle, NULL))
			abort();
	}
	return end(code);
}

EXPORT int nvmlShutdown(void)
{
	struct state *s;
	int code = begin("nvmlShutdown", &s);

	if (code || --inits)
		return end(code);
	close(control);
	pthread_cond_broadcast(&over);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
	struct state *s;
	int code = begin("nvmlDeviceGetCount_v2", &s);

	if (!code)
		*count = (unsigned int)s->count;
	return end(code);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out)
{
	struct state *s;
	int code = begin("nvmlDeviceGetHandleByIndex_v2", &s);

	if (!code && index >= s->count)
		code = INVALID;
	if (!code)
		code = s->devices[index].result;
	if (!code)
		*out = &s->devices[index];
	return end(code);
}

static int text(const char *function, struct device *d, const char *value, char *out,
		unsigned int size)
{
	struct state *s;
	int code = about(function, d, &s);

	if (!code && strlen(value) >= size)
		code = TOO_SMALL;
	if (!code)
		strcpy(out, value);
	return end(code);
}

EXPORT int nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned int size)
{
	return text(__func__, d, d->uuid, out, size);
}

static int u32(const char *function, struct device *d, const int64_t *value, unsigned int *out)
{
	struct state *s;
	int code = about(function, d, &s);

	if (!code && (!value || *value < 0))
		code = UNSUPPORTED;
	if (!code)
		*out = (unsigned int)*value;
	return end(code);
}

EXPORT int nvmlDeviceGetClockInfo(nvmlDevice_t d, int type, unsigned int *out)
{
	return u32(__func__, d, type == 1 ? &d->sm : type == 2 ? &d->memory_clock : NULL, out);
}

EXPORT int nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *out)
{
	return u32(__func__, d, &d->power, out);
}

EXPORT int nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, unsigned int *out)
{
	return u32(__func__, d, sensor ? NULL : &d->temperature, out);
}

EXPORT int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code && d->memory_used < 0)
		code = UNSUPPORTED;
	if (!code)
		*out = (nvmlMemory_t){(unsigned long long)d->memory_total,
				      (unsigned long long)(d->memory_total - d->memory_used),
				      (unsigned long long)d->memory_used};
	return end(code);
}

EXPORT int nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code && d->utilisation < 0)
		code = UNSUPPORTED;
	if (!code)
		*out = (nvmlUtilization_t){(unsigned int)d->utilisation,
					   (unsigned int)d->memory_utilisation};
	return end(code);
}

static int u64(const char *function, struct device *d, int64_t value, unsigned long long *out)
{
	struct state *s;
	int code = about(function, d, &s);

	if (!code && value < 0)
		code = UNSUPPORTED;
	if (!code)
		*out = (unsigned long long)value;
	return end(code);
}

static void processes_put(const struct state *s, const struct device *d, void *infos)
{
	char *at = infos;

	for (int64_t i = 0; i < d->pids_count; i++) {
		nvmlProcessInfo_535_t p = {{d->pids[i], 1 << 20, ~0u, ~0u}, 0};
		size_t size = s->long_processes ? sizeof(p) : sizeof(p.info);

		memcpy(at, &p, size);
		at += size;
	}
}

static int processes(const char *function, struct device *d, unsigned int *count, void *infos)
{
	struct state *s;
	int code = about(function, d, &s);
	unsigned int room = *count;

	if (!code && d->pids_count < 0)
		code = UNSUPPORTED;
	if (code)
		return end(code);
	*count = (unsigned int)d->pids_count;
	if (*count > room)
		return end(TOO_SMALL);
	processes_put(s, d, infos);
	return end(SUCCESS);
}

#ifdef SIMNVML_BARE
/* The names that older libraries have. */
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *out)
{
	return u64(__func__, d, d->throttle, out);
}

EXPORT int nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, unsigned int *out)
{
	return u32(__func__, d, &d->power_limit, out);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t d, unsigned int *count,
						   void *infos)
{
	return processes(__func__, d, count, infos);
}
#else
EXPORT int nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned int size)
{
	return text(__func__, d, d->name, out, size);
}

EXPORT int nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *out)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code) {
		memset(out, 0, sizeof(*out));
		strcpy(out->busId, d->pci);
	}
	return end(code);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *out)
{
	return u64(__func__, d, d->throttle, out);
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *out)
{
	return u32(__func__, d, &d->power_limit, out);
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *out)
{
	return u64(__func__, d, d->energy, out);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *count,
						   void *infos)
{
	return processes(__func__, d, count, infos);
}

EXPORT int nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code)
		*current = *pending = d->instances_count > 0;
	return end(code);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *count)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code)
		*count = INSTANCES;
	return end(code);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index,
					       nvmlDevice_t *out)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code && (index >= INSTANCES || !d->instances[index].there))
		code = NOT_FOUND;
	if (!code)
		*out = &d->instances[index];
	return end(code);
}

static size_t xids_told;

EXPORT int nvmlEventSetCreate(nvmlEventSet_t *out)
{
	struct state *s;
	int code = begin(__func__, &s);

	if (!code) {
		*out = calloc(1, sizeof(**out));
		(*out)->fd = eventfd(0, EFD_CLOEXEC);
		xids_told = s->xids_count; /* what was before is not told */
	}
	return end(code);
}

EXPORT int nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code && types != 8)
		code = UNSUPPORTED;
	if (!code)
		set->devices |= UINT64_C(1) << (d - s->devices);
	return end(code);
}

EXPORT int nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout)
{
	struct state *s;
	int code = begin(__func__, &s);

	while (!code && xids_told < s->xids_count) {
		struct xid *x = &s->xids[xids_told++];

		if (!(set->devices >> x->device & 1))
			continue;
		*out = (nvmlEventData_t){&s->devices[x->device], 8, x->number, ~0u, ~0u};
		return end(SUCCESS);
	}
	return end(code ? code : TIMED_OUT);
}

EXPORT int nvmlEventSetFree(nvmlEventSet_t set)
{
	struct state *s;
	int code = begin(__func__, &s);

	close(set->fd);
	free(set);
	return end(code);
}

EXPORT int nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *out)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code && out->version != 1)
		code = INVALID;
	if (!code)
		out->isSupportedDevice = d->gpm[0] >= 0;
	return end(code);
}

EXPORT int nvmlGpmSampleAlloc(nvmlGpmSample_t *out)
{
	struct state *s;
	int code = begin(__func__, &s);

	if (!code) {
		*out = calloc(1, sizeof(**out));
		(*out)->fd = eventfd(0, EFD_CLOEXEC);
	}
	return end(code);
}

EXPORT int nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t sample)
{
	struct state *s;
	int code = about(__func__, d, &s);

	if (!code)
		sample->device = d;
	return end(code);
}

EXPORT int nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m)
{
	static const unsigned int ids[] = {2, 3, 5, 10};
	struct state *s;
	int code = begin(__func__, &s);

	if (!code && (m->version != 1 || !m->sample1->device ||
		      m->sample1->device != m->sample2->device))
		code = INVALID;
	for (unsigned int i = 0; !code && i < m->numMetrics; i++) {
		m->metrics[i].nvmlReturn = UNSUPPORTED;
		for (int j = 0; j < 4; j++) {
			if (m->metrics[i].metricId != ids[j])
				continue;
			m->metrics[i].nvmlReturn = SUCCESS;
			m->metrics[i].value = m->sample2->device->gpm[j];
		}
	}
	return end(code);
}

EXPORT int nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	close(sample->fd);
	free(sample);
	return SUCCESS;
}
#endif
