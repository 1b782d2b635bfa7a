/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's libcupti: which one it is, and its functions. */
#ifndef GBPF_SIDECAR_LIB_CUPTI_H
#define GBPF_SIDECAR_LIB_CUPTI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_abi.h"

/* NULL where it is not exported; the first are always there. */
struct cupti {
	void *handle;
	uint32_t version; /* cuptiGetVersion() */
	bool ours;	  /* nobody had loaded it before us */
	char path[PATH_MAX];
	int (*get_version)(uint32_t *version);
	int (*get_timestamp)(uint64_t *ns);
	int (*subscribe)(void **subscriber, cupti_callback_fn callback, void *user);
	int (*unsubscribe)(void *subscriber);
	int (*register_callbacks)(cupti_request_fn request, cupti_complete_fn complete);
	int (*enable)(uint32_t kind);
	int (*disable)(uint32_t kind);
	int (*flush_all)(uint32_t flag);
	int (*next_record)(uint8_t *buffer, size_t valid, void **record);
	int (*dropped)(void *context, uint32_t stream, size_t *count);
	int (*thread_type)(uint32_t *type);
	int (*set_thread_type)(uint32_t type);
	/* optional */
	int (*result_string)(int result, const char **text);
	int (*enabled_kinds)(void *subscriber, uint32_t *kinds, uint32_t *size, uint32_t *count);
};

/*
 * Finds and opens it: the one at wanted where that is not ""; else one that is loaded; else
 * that which belongs to the process's libcudart; else the toolkit's. -errno, and why is a
 * sentence then: -ENOENT: there is none; -ENOTSUP: it is no version that is known.
 */
int cupti_open(struct cupti *c, const char *wanted, char *why, size_t size);
/* What it says of a result; never NULL. */
const char *cupti_text(const struct cupti *c, int result);

#endif
