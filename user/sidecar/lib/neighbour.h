/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does anybody else use CUPTI in this process?
 *
 * Whoever takes activity records must register two functions for buffers, CUPTI keeps their
 * addresses side by side in its own data, and there is no way to take them back: so two
 * adjacent addresses of other libraries' code there mean that somebody records or
 * has recorded, even one who never took the subscriber's slot. Where ours lie is known once
 * they are registered, and seeing them replaced is one comparison.
 */
#ifndef GBPF_SIDECAR_LIB_NEIGHBOUR_H
#define GBPF_SIDECAR_LIB_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_abi.h"

#define NEIGHBOUR_RANGES 4096u

struct address_range {
	uintptr_t from, to;
};

/* libcupti's data that can be written, but for what the dynamic linker fills. */
struct cupti_data {
	struct address_range ranges[8];
	size_t count;
	struct address_range whole; /* of the library */
};

struct neighbour {
	struct cupti_data data;
	size_t deep;	/* 0, or: an object that data points to has them there, bytes in */
	uintptr_t pair; /* where in data ours are, request and complete, or the pointer; 0: not
			 * known */
	bool pointed;	/* it is the pointer */
};

/* Finds the data of the library that inside points into. False: it has none. */
bool neighbour_data(struct cupti_data *data, const void *inside);
/* Where this version of CUPTI keeps the functions. */
size_t neighbour_deep(uint32_t version);

/*
 * Has anybody registered functions for buffers? why says whose. 1: yes; 0: no; -errno: it
 * cannot be said. Ours do not count. Maps memory while it looks.
 */
int neighbour_registered(const struct neighbour *n, cupti_request_fn request, char *why,
			 size_t size);

/* Notes where these two, just registered, are kept. False: nowhere in data. */
bool neighbour_note(struct neighbour *n, cupti_request_fn request, cupti_complete_fn complete);

/* Are they still registered? False, too, where that is not known. */
bool neighbour_ours(const struct neighbour *n, cupti_request_fn request,
		    cupti_complete_fn complete);

/*
 * Is a tool at work that was there from the process's beginning (Nsight, an injected
 * library)? self is an address in this library. why says which.
 */
bool neighbour_tool(const void *self, char *why, size_t size);

#endif
