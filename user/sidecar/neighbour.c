// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/neighbour.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/procfs.h"
#include "target/target.h"

#define VARIABLE "CUDA_INJECTION64_PATH="
#define OURS "libgbpf-cupti.so"
#define ENVIRONMENT_MAX (256u * 1024) /* bytes that are looked at */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Libraries of nvprof, Nsight Systems and Nsight Compute, and of whatever CUDA loads for them. */
bool neighbour_is_tool(const char *path)
{
	const char *base = base_name(path);

	return begins(base, "libcuinj64") || begins(base, "libToolsInjection") ||
	       begins(base, "libcuda-injection") || begins(base, "libnsys");
}

bool neighbour_is_cupti(const char *path)
{
	return begins(base_name(path), "libcupti.so");
}

bool neighbour_is_ours(const char *path)
{
	const char *base = base_name(path);

	return !strcmp(base, OURS) || !strcmp(base, "memfd:" OURS);
}

static int on_mapping(const struct mapping *m, void *ctx)
{
	char *found = ctx;

	if (!neighbour_is_tool(m->path))
		return 0;
	snprintf(found, 64, "%s", base_name(m->path));
	return 1;
}

/*
 * Another's injection library in its environment, as that was at exec; ours, which an
 * earlier recording left there, is none.
 */
static bool variable_set(int dir, char *out, size_t size)
{
	char *text = malloc(ENVIRONMENT_MAX);
	ssize_t len = text ? proc_read(dir, "environ", text, ENVIRONMENT_MAX) : 0;
	const char *value;
	ssize_t at;

	out[0] = '\0';
	for (at = 0; at < len && !out[0]; at += (ssize_t)strlen(text + at) + 1) {
		value = text + at + strlen(VARIABLE);
		if (begins(text + at, VARIABLE) && !begins(base_name(value), OURS))
			snprintf(out, size, "%s", value);
	}
	free(text);
	return out[0];
}

int neighbour_check(uint32_t pid, char *why, size_t size)
{
	char found[64] = "";
	int dir = proc_open(pid), err = dir < 0 ? dir : maps_each(pid, on_mapping, found);
	bool set = err == 0 && variable_set(dir, found, sizeof(found));

	if (dir >= 0)
		close(dir);
	if (err == 1)
		snprintf(why, size, "another profiler is in it (%s is loaded)", found);
	else if (set)
		snprintf(why, size, "it was started with " VARIABLE "%s: another profiler is in it",
			 found);
	else if (err)
		snprintf(why, size, "it cannot be looked into: %s", strerror(-err));
	return err == 1 || set ? -EBUSY : err;
}
