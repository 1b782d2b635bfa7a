/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/catalogue.h"

#include <stdio.h>
#include <string.h>

#include "probe/catalogue_table.h"

#define NOT_READY 600	   /* CUDA_ERROR_NOT_READY and cudaErrorNotReady */
#define NCCL_IN_PROGRESS 7 /* ncclInProgress: a non-blocking communicator goes on */

size_t catalogue_count(void)
{
	return catalogue_driver.count + catalogue_runtime.count + catalogue_nccl.count;
}

const struct api *catalogue_get(uint16_t id)
{
	const struct catalogue_table *const tables[] = {&catalogue_driver, &catalogue_runtime,
							&catalogue_nccl};
	size_t i = (size_t)id - 1;

	if (!id)
		return NULL;
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		if (i < tables[t]->count)
			return &tables[t]->rows[i];
		i -= tables[t]->count;
	}
	return NULL;
}

static uint16_t find_in(const struct catalogue_table *table, const char *name, size_t before)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->rows[i].name, name))
			return (uint16_t)(before + i + 1);
	return 0;
}

static bool upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/*
 * The prefix decides the table, so that the hundred thousands of symbols of a
 * framework's library cost a few comparisons each.
 */
uint16_t catalogue_find(const char *name)
{
	if (!name)
		return 0;
	if (!strncmp(name, "nccl", 4) && upper(name[4]))
		return find_in(&catalogue_nccl, name,
			       catalogue_driver.count + catalogue_runtime.count);
	if (!strncmp(name, "cuda", 4) && upper(name[4]))
		return find_in(&catalogue_runtime, name, catalogue_driver.count);
	if (!strncmp(name, "cu", 2) && upper(name[2]))
		return find_in(&catalogue_driver, name, 0);
	return 0;
}

const char *api_library_name(unsigned library)
{
	switch (library) {
	case API_DRIVER:
		return "driver";
	case API_RUNTIME:
		return "runtime";
	case API_NCCL:
		return "nccl";
	}
	return "unknown";
}

const char *api_kind_name(unsigned kind)
{
	static const char *const names[] = {
		[API_LAUNCH] = "launch",	 [API_GRAPH] = "graph",
		[API_SYNC] = "sync",		 [API_COPY] = "copy",
		[API_SET] = "set",		 [API_ALLOC] = "alloc",
		[API_FREE] = "free",		 [API_EVENT] = "event",
		[API_STREAM] = "stream",	 [API_MODULE] = "module",
		[API_QUERY] = "query",		 [API_OCCUPANCY] = "occupancy",
		[API_CONTEXT] = "context",	 [API_COLLECTIVE] = "collective",
		[API_OTHER] = "other",
	};

	if (kind >= sizeof(names) / sizeof(names[0]) || !names[kind])
		return "unknown";
	return names[kind];
}

uint64_t catalogue_cookie(uint16_t id, uint16_t image)
{
	const struct api *api = catalogue_get(id);
	uint64_t cookie;

	if (!api)
		return 0;
	cookie = GBPF_COOKIE(id, image, api->shape);
	if (api->library != API_DRIVER)
		cookie |= GBPF_COOKIE_LEVEL;
	for (unsigned arg = 0; arg < GBPF_ARGS; arg++)
		cookie |= GBPF_COOKIE_ARG(arg, api->arg[arg]);
	return cookie;
}

const char *catalogue_display(const char *name, char *buf, size_t size)
{
	size_t len = strlen(name), digits = len;

	while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
		digits--;
	if (len - digits >= 4 && digits > 2 && !strncmp(name + digits - 2, "_v", 2))
		len = digits - 2;
	if (size)
		snprintf(buf, size, "%.*s", (int)len, name);
	return buf;
}

bool api_is_error(const struct api *api, int64_t ret)
{
	int32_t result = (int32_t)ret;

	if (!api || !api->return_ok || !result)
		return false;
	if (api->library == API_NCCL)
		return result != NCCL_IN_PROGRESS;
	return api->kind != API_QUERY || result != NOT_READY;
}
