// SPDX-License-Identifier: BSD-2-Clause
#include "cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "find.h"
#include "layout.h"

#define DRIVER_13_2 13020 /* cuDriverGetVersion() */

static bool resolve(struct cupti *c)
{
	const struct {
		const char *name;
		void *to;
		bool optional;
	} wants[] = {
		{ "cuptiGetVersion", &c->get_version, false },
		{ "cuptiGetTimestamp", &c->get_timestamp, false },
		{ "cuptiSubscribe", &c->subscribe, false },
		{ "cuptiUnsubscribe", &c->unsubscribe, false },
		{ "cuptiActivityRegisterCallbacks", &c->register_callbacks, false },
		{ "cuptiActivityEnable", &c->enable, false },
		{ "cuptiActivityDisable", &c->disable, false },
		{ "cuptiActivityFlushAll", &c->flush_all, false },
		{ "cuptiActivityGetNextRecord", &c->next_record, false },
		{ "cuptiActivityGetNumDroppedRecords", &c->dropped, false },
		{ "cuptiGetThreadIdType", &c->thread_type, false },
		{ "cuptiSetThreadIdType", &c->set_thread_type, false },
		{ "cuptiGetResultString", &c->result_string, true },
		{ "cuptiActivityGetEnabledKinds", &c->enabled_kinds, true },
	};

	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		void *at = dlsym(c->handle, wants[i].name);

		if (!at && !wants[i].optional)
			return false;
		memcpy(wants[i].to, &at, sizeof(at));
	}
	return true;
}

static void leave(struct cupti *c)
{
	if (c->handle)
		dlclose(c->handle);
	c->handle = NULL;
}

/* Opens path; what is already loaded is not loaded again. */
static bool try_path(void *user, const char *path)
{
	struct cupti *c = user;
	void *at;

	if (strlen(path) >= sizeof(c->path))
		return false;
	c->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	c->ours = !c->handle;
	if (!c->handle)
		c->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!c->handle)
		return false;
	at = dlsym(c->handle, "cuptiSubscribe");
	if (!at) {
		leave(c);
		return false;
	}
	memcpy(c->path, path, strlen(path) + 1);
	return true;
}

static bool search(struct cupti *c, const char *wanted)
{
	char path[PATH_MAX];

	if (wanted[0])
		return try_path(c, wanted);
	if (find_loaded("libcupti.so", path, sizeof(path)))
		return try_path(c, path);
	return find_cupti(try_path, c);
}

/*
 * 13.2 calls itself until the stack is full where the driver does not suit it
 * (cuptiGetVersion to cuptiGetResultString and back). It is known by what it exports.
 */
static bool would_crash(const struct cupti *c)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *at;
	int (*driver_version)(int *version) = NULL;
	int version = 0;

	if (!c->enabled_kinds || dlsym(c->handle, "cuptiIsTracingSessionRunning"))
		return false;
	at = driver ? dlsym(driver, "cuDriverGetVersion") : NULL;
	memcpy(&driver_version, &at, sizeof(at));
	if (driver)
		dlclose(driver);
	return !driver_version || driver_version(&version) || version < DRIVER_13_2;
}

int cupti_open(struct cupti *c, const char *wanted, char *why, size_t size)
{
	int err = -ENOENT, result;

	memset(c, 0, sizeof(*c));
	if (!search(c, wanted)) {
		(void)snprintf(why, size, wanted[0] ? "no libcupti can be opened at %s" :
						      "no libcupti was found%s", wanted);
		return err;
	}
	err = -ENOTSUP;
	if (!resolve(c)) {
		(void)snprintf(why, size, "%s lacks functions that are needed", c->path);
	} else if (would_crash(c)) {
		(void)snprintf(why, size, "%s is newer than the driver", c->path);
	} else if ((result = c->get_version(&c->version))) {
		(void)snprintf(why, size, "%s does not tell its version: %s", c->path,
			       cupti_text(c, result));
	} else if (!layout_of(c->version)) {
		(void)snprintf(why, size, "%s has version %u; known are CUDA 11.8 to 13", c->path,
			       c->version);
	} else {
		return 0;
	}
	leave(c);
	return err;
}

const char *cupti_text(const struct cupti *c, int result)
{
	const char *text = NULL;

	if (c->result_string && c->result_string(result, &text) == 0 && text)
		return text;
	return "an error without a name";
}
