// SPDX-License-Identifier: BSD-2-Clause
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"
#define NEEDED 5 /* of the symbols below, the first ones */

static const struct symbol {
	const char *name, *older; /* older: the name before, with the same arguments; or NULL */
	size_t offset;
} symbols[] = {
#define S(name, older, field) {(name), (older), offsetof(struct nvml, field)}
	S("nvmlInit_v2", NULL, init),
	S("nvmlShutdown", NULL, shutdown),
	S("nvmlDeviceGetCount_v2", NULL, count),
	S("nvmlDeviceGetHandleByIndex_v2", NULL, by_index),
	S("nvmlDeviceGetUUID", NULL, uuid),

	S("nvmlDeviceGetName", NULL, name),
	S("nvmlDeviceGetPciInfo_v3", NULL, pci),
	S("nvmlDeviceGetClockInfo", NULL, clock),
	S("nvmlDeviceGetPowerUsage", NULL, power),
	S("nvmlDeviceGetEnforcedPowerLimit", NULL, power_limit),
	S("nvmlDeviceGetPowerManagementLimit", NULL, power_limit_set),
	S("nvmlDeviceGetTemperature", NULL, temperature),
	S("nvmlDeviceGetTemperatureV", NULL, temperature_v),
	S("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
	  clock_reasons),
	S("nvmlDeviceGetUtilizationRates", NULL, utilisation),
	S("nvmlDeviceGetMemoryInfo", NULL, memory),
	S("nvmlDeviceGetTotalEnergyConsumption", NULL, energy),
	S("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
	  processes),

	S("nvmlDeviceGetMigMode", NULL, mig_mode),
	S("nvmlDeviceGetMaxMigDeviceCount", NULL, mig_max),
	S("nvmlDeviceGetMigDeviceHandleByIndex", NULL, mig_by_index),

	S("nvmlEventSetCreate", NULL, events_new),
	S("nvmlDeviceRegisterEvents", NULL, events_register),
	S("nvmlEventSetWait_v2", NULL, events_wait),
	S("nvmlEventSetFree", NULL, events_free),

	S("nvmlGpmQueryDeviceSupport", NULL, gpm_support),
	S("nvmlGpmSampleAlloc", NULL, gpm_new),
	S("nvmlGpmSampleGet", NULL, gpm_get),
	S("nvmlGpmMetricsGet", NULL, gpm_metrics),
	S("nvmlGpmSampleFree", NULL, gpm_free),
#undef S
};

int nvml_explain(int result, char *buf, size_t size)
{
	switch (result) {
	case NVML_NO_DRIVER:
		snprintf(buf, size, "the NVIDIA driver is not loaded: modprobe nvidia");
		return -ENODEV;
	case NVML_MISMATCH:
		snprintf(buf, size, "the NVIDIA driver that runs and its library differ in "
				    "version, as after an upgrade: reload the driver, or reboot");
		return -EPROTO;
	case NVML_NO_PERMISSION:
		snprintf(buf, size, "not permitted to ask the NVIDIA driver: run it with sudo, or "
				    "give access to /dev/nvidiactl");
		return -EACCES;
	case NVML_BLOCKED:
		snprintf(buf, size, "the GPUs are kept from this container or cgroup: give it "
				    "/dev/nvidiactl and /dev/nvidia0 and on");
		return -EPERM;
	case NVML_LOST:
		snprintf(buf, size, "the GPU has fallen off the bus: see dmesg, and reboot");
		return -EIO;
	case NVML_MEMORY:
		snprintf(buf, size, "out of memory");
		return -ENOMEM;
	default:
		snprintf(buf, size, "NVML failed with error %d", result);
		return -EIO;
	}
}

/* dlsym() gives an object pointer for a function; POSIX says that they are alike. */
static void symbol_set(struct nvml *n, const struct symbol *s)
{
	void *at = dlsym(n->library, s->name);

	if (!at && s->older)
		at = dlsym(n->library, s->older);
	memcpy((char *)n + s->offset, &at, sizeof(at));
}

static bool symbol_there(const struct nvml *n, const struct symbol *s)
{
	void *at;

	memcpy(&at, (const char *)n + s->offset, sizeof(at));
	return at;
}

static int library_load(struct nvml *n, char *why, size_t size)
{
	/* For tests; who gave this process more rights than its user does not let him choose. */
	const char *chosen = secure_getenv("GBPF_NVML");
	const char *error;

	n->library = dlopen(chosen && *chosen ? chosen : LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (n->library)
		return 0;
	error = dlerror();
	snprintf(why, size, "%s", error ? error : LIBRARY " cannot be loaded");
	return strstr(why, "cannot open shared object file: No such file") ? -ENOENT : -ELIBACC;
}

int nvml_open(struct nvml *n, char *why, size_t size)
{
	int err, result;

	memset(n, 0, sizeof(*n));
	err = library_load(n, why, size);
	if (err)
		return err;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		symbol_set(n, &symbols[i]);
	for (size_t i = 0; !err && i < NEEDED; i++)
		if (!symbol_there(n, &symbols[i])) {
			snprintf(why, size, LIBRARY " lacks %s: too old, or not NVIDIA's",
				 symbols[i].name);
			err = -ELIBBAD;
		}
	result = err ? NVML_OK : n->init();
	if (result)
		err = nvml_explain(result, why, size);
	if (!err)
		return 0;
	dlclose(n->library);
	memset(n, 0, sizeof(*n));
	return err;
}

void nvml_close(struct nvml *n)
{
	if (!n->library)
		return;
	n->shutdown();
	dlclose(n->library);
	memset(n, 0, sizeof(*n));
}
