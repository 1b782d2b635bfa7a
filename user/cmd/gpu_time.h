/* SPDX-License-Identifier: BSD-2-Clause */
/* --gpu-time of gbpf trace: what is set up before the recording, and undone after it. */
#ifndef GBPF_CMD_GPU_TIME_H
#define GBPF_CMD_GPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/child.h"
#include "trace/gpu_time.h"
#include "trace/place.h"

#define GPU_TIME_WINDOW 60000000000LL
#define GPU_TIME_PATH_MAX 256 /* bytes, with its NUL: what wire.h has room for */

/* The options. */
struct gpu_time_wish {
	bool asked;
	int64_t window; /* ns */
	const char *cupti;
	bool calls;
};

struct gpu_time_setup {
	struct gpu_time_options options; /* for the tracer */
	struct place place;		 /* with a command */
	bool command;			 /* one is started that may load the sidecar */
	char why[256];			 /* options.why_not */
};

/*
 * duration: of the recording, ns, 0: open. command: will it be told where the library is?
 * What cannot be had becomes options.why_not.
 */
void gpu_time_prepare(struct gpu_time_setup *s, const struct gpu_time_wish *wish,
		      int64_t duration, bool command);
/* child_start(), with an environment in which CUDA loads the sidecar. 0 or -errno. */
int gpu_time_child_start(struct gpu_time_setup *s, struct child *c, char *const argv[],
			 const struct invoker *who);
/* After the command has ended, or was given up. Idempotent. */
void gpu_time_release(struct gpu_time_setup *s);

#endif
