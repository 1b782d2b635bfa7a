// SPDX-License-Identifier: BSD-2-Clause
#include "devices.h"

#include <dlfcn.h>
#include <string.h>

#define DEVICES_MAX 128

/* CUdevice_attribute, in cuda.h */
enum {
	BLOCK_THREADS = 1,
	BLOCK_SMEM = 8,
	WARP = 10,
	BLOCK_REGISTERS = 12,
	SMS = 16,
	SM_THREADS = 39,
	MAJOR = 75,
	MINOR = 76,
	SM_SMEM = 81,
	SM_REGISTERS = 82,
	BLOCK_SMEM_OPTIN = 97,
	SM_BLOCKS = 106,
	RESERVED_SMEM = 111,
};

struct driver {
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*attribute)(int32_t *value, int attribute, int device);
	int (*name)(char *name, int size, int device);
	int (*uuid)(uint8_t *uuid, int device);
	int (*memory)(size_t *bytes, int device);
};

static void *own_driver(void)
{
	return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

bool devices_cuda(void)
{
	void *handle = own_driver();

	if (handle)
		dlclose(handle); /* the process still has it */
	return handle != NULL;
}

static bool resolve(struct driver *d, void *handle)
{
	const struct {
		const char *name, *older;
		void *to;
	} wants[] = {
		{ "cuDeviceGetCount", "", &d->count },
		{ "cuDeviceGet", "", &d->get },
		{ "cuDeviceGetAttribute", "", &d->attribute },
		{ "cuDeviceGetName", "", &d->name },
		{ "cuDeviceGetUuid_v2", "cuDeviceGetUuid", &d->uuid },
		{ "cuDeviceTotalMem_v2", "", &d->memory },
	};

	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		void *at = dlsym(handle, wants[i].name);

		if (!at)
			at = dlsym(handle, wants[i].older);
		if (!at)
			return false;
		memcpy(wants[i].to, &at, sizeof(at));
	}
	return true;
}

static int32_t ask(const struct driver *d, int attribute, int device)
{
	int32_t value;

	return d->attribute(&value, attribute, device) ? -1 : value;
}

static void describe(const struct driver *d, int device, struct wire_device *out)
{
	size_t memory = 0;

	out->memory = d->memory(&memory, device) ? -1 : (int64_t)memory;
	out->major = ask(d, MAJOR, device);
	out->minor = ask(d, MINOR, device);
	out->sms = ask(d, SMS, device);
	out->warp = ask(d, WARP, device);
	out->block_threads = ask(d, BLOCK_THREADS, device);
	out->sm_threads = ask(d, SM_THREADS, device);
	out->sm_blocks = ask(d, SM_BLOCKS, device);
	out->block_registers = ask(d, BLOCK_REGISTERS, device);
	out->sm_registers = ask(d, SM_REGISTERS, device);
	out->block_smem = ask(d, BLOCK_SMEM, device);
	out->block_smem_optin = ask(d, BLOCK_SMEM_OPTIN, device);
	out->sm_smem = ask(d, SM_SMEM, device);
	out->reserved_smem = ask(d, RESERVED_SMEM, device);
	if (d->uuid(out->uuid, device))
		memset(out->uuid, 0, sizeof(out->uuid));
	if (d->name(out->name, sizeof(out->name), device))
		out->name[0] = '\0';
	out->name[sizeof(out->name) - 1] = '\0';
}

static bool tell_all(struct session *s, const struct driver *d)
{
	int count = 0, device;

	if (d->count(&count))
		return false;
	for (int i = 0; i < count && i < DEVICES_MAX; i++) {
		struct wire_device w = { .r = { sizeof(w), WIRE_DEVICE }, .ordinal = (uint32_t)i };

		if (d->get(&device, i))
			continue;
		describe(d, device, &w);
		pthread_mutex_lock(&s->lock);
		(void)ring_put(&s->ring, &w, sizeof(w), NULL, 0);
		pthread_mutex_unlock(&s->lock);
	}
	return true;
}

bool devices_tell(struct session *s)
{
	void *handle = own_driver();
	struct driver d;
	bool told;

	if (!handle)
		return false;
	told = resolve(&d, handle) && tell_all(s, &d);
	dlclose(handle);
	return told;
}
