/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every API gbpf knows: one line each in catalogue.c, and everything else
 * (probe shapes, decoding, views, docs, tests) follows from it.
 */
#ifndef GBPF_PROBE_CATALOGUE_H
#define GBPF_PROBE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum api_library { API_DRIVER = 1, API_RUNTIME = 2, API_NCCL = 3 };

enum api_kind {
	API_LAUNCH = 1, /* kernels, cooperative kernels, host functions */
	API_GRAPH,	/* graph launch, instantiate, update, capture */
	API_SYNC,	/* blocks the caller until the GPU got somewhere */
	API_COPY,
	API_SET,
	API_ALLOC,
	API_FREE,
	API_EVENT,
	API_STREAM,
	API_MODULE, /* modules, libraries, and functions got from them */
	API_QUERY,  /* "are you ready?": polls */
	API_OCCUPANCY,
	API_CONTEXT,
	API_COLLECTIVE,
	API_OTHER,
};

/* How wide a set of functions one asks for with --api. */
enum api_tier {
	TIER_DEFAULT = 1u << 0, /* driver, in the default set */
	TIER_RUNTIME = 1u << 1, /* added by --api runtime */
	TIER_ALL = 1u << 2,	/* added by --api all: rare or costly ones */
};

struct api {
	const char *name; /* exported symbol */
	uint8_t library, kind, tier, shape; /* shape: enum gbpf_shape */
	uint8_t arg[7];	  /* positions, indexed by enum gbpf_arg; 0 absent */
	uint8_t element;  /* bytes are counted in elements of this size; 0 and 1: bytes */
	uint8_t direction; /* enum api_direction, for copies whose name says it */
	bool blocking;	  /* API_COPY and API_SET: the caller waits for completion */
	bool return_ok;	  /* returns CUresult/cudaError_t/ncclResult_t in eax */
};

enum api_direction {
	COPY_UNKNOWN = 0, /* unified addressing: the call does not say */
	COPY_HTOD = 1,
	COPY_DTOH = 2,
	COPY_DTOD = 3,
	COPY_HTOH = 4,
	COPY_PEER = 5,
	COPY_BY_KIND = 6, /* GBPF_ARG_KIND holds a cudaMemcpyKind */
};

/*
 * The table. Ids are indices plus one, so that 0 means "none"; count is at
 * most GBPF_MAX_API - 1. Twins (_ptsz, _ptds, _v2) are entries of their own.
 */
size_t catalogue_count(void);
const struct api *catalogue_get(uint16_t id);		 /* NULL if out of range */
uint16_t catalogue_find(const char *name);		 /* 0 if not known */

/* Why a function that the libraries export is left out here; NULL if it is not, or not known. */
const char *catalogue_excluded(const char *name);

const char *api_library_name(unsigned library); /* "driver", "runtime", "nccl" */
const char *api_kind_name(unsigned kind);	/* "launch", … */

/* The cookie of a site of this API in this image slot. */
uint64_t catalogue_cookie(uint16_t id, uint16_t image);

/*
 * Display name: the exported one without ABI suffixes of 4 or more digits
 * (kineto's rule, formats.md 1.2); _v2, _ptsz and _ptds stay. Into buf.
 */
const char *catalogue_display(const char *name, char *buf, size_t size);

/* CUresult, cudaError_t or ncclResult_t as its symbolic name, or NULL. */
const char *api_error_name(unsigned library, int64_t ret);

/* "Not ready" of a query is an answer, not an error. */
bool api_is_error(const struct api *api, int64_t ret);

#endif
