/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every position in the catalogue against the signature that the header of
 * CUDA or NCCL gives: right parameter, right type, none forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/gbpf.h"
#include "probe/catalogue.h"
#include "tests/unit/lines.h"

struct parameter {
	char name[64], type[64];
	unsigned position;
};

struct signature {
	const char *function;
	struct parameter p[24];
	unsigned count;
};

struct check {
	uint8_t seen[GBPF_MAX_API];
	unsigned bad;
};

static void parse(char *line, struct signature *s)
{
	char *word = strtok(line, " ");

	s->function = word;
	s->count = 0;
	while ((word = strtok(NULL, " "))) {
		struct parameter *p = &s->p[s->count++];

		assert_true(s->count <= sizeof(s->p) / sizeof(s->p[0]));
		if (sscanf(word, "%63[^=]=%u:%63s", p->name, &p->position, p->type) != 3)
			fail_msg("%s: cannot parse %s", s->function, word);
	}
}

static const struct parameter *at(const struct signature *s, unsigned position)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->p[i].position == position)
			return &s->p[i];
	return NULL;
}

static bool one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool is_number(const char *type)
{
	static const char *const numbers[] = {
		"size_t", "int", "unsigned_int", "unsigned_long_long", "unsigned_char",
		"unsigned_short", "cuuint32_t", "cuuint64_t", "float", "double", NULL,
	};

	return one_of(type, numbers);
}

static bool is_pointer(const char *type)
{
	return type[strlen(type) - 1] == '*';
}

static bool is_stream(const struct parameter *p)
{
	return !strcmp(p->type, "CUstream") || !strcmp(p->type, "cudaStream_t");
}

/* Only pointers and handles fill their register; numbers of 32 bits and enums do not. */
static bool fits_object(const struct parameter *p)
{
	static const char *const narrow[] = {
		"CUdevice", "CUdeviceptr_v1", "cudaMemcpyKind", "ncclDataType_t", "dim3", NULL,
	};

	return !is_number(p->type) && !one_of(p->type, narrow);
}

static bool fits_bytes(const struct parameter *p)
{
	static const char *const names[] = {
		"ByteCount", "N", "Width", "WidthInBytes", "bytesize", "count", "length",
		"minBytesToKeep", "recvcount", "sendcount", "size", "width", NULL,
	};

	return !strcmp(p->type, "size_t") && one_of(p->name, names);
}

static bool fits_height(const struct parameter *p)
{
	return !strcmp(p->type, "size_t") &&
	       (!strcmp(p->name, "Height") || !strcmp(p->name, "height"));
}

static bool fits_kind(const struct parameter *p, const struct api *api)
{
	if (api->direction == COPY_BY_KIND)
		return !strcmp(p->type, "cudaMemcpyKind");
	if (api->kind == API_COLLECTIVE)
		return !strcmp(p->type, "ncclDataType_t");
	return !strcmp(p->type, "unsigned_int") &&
	       (!strcmp(p->name, "flags") || !strcmp(p->name, "Flags"));
}

static bool fits_source(const struct parameter *p, const struct api *api)
{
	if (api->kind == API_COPY && strncmp(p->name, "src", 3) && strcmp(p->name, "symbol"))
		return false;
	return fits_object(p);
}

/* What is stored there has to be a pointer, a handle or a structure that begins with one. */
static bool fits_out(const struct parameter *p)
{
	static const char *const narrow[] = {
		"int*", "float*", "size_t*", "unsigned_int*", "CUdevice*", "CUdeviceptr_v1*",
		"char*", "void*", NULL,
	};

	return is_pointer(p->type) && !one_of(p->type, narrow);
}

static bool fits(const struct api *api, unsigned arg, const struct parameter *p)
{
	switch (arg) {
	case GBPF_ARG_OBJECT:
		return fits_object(p);
	case GBPF_ARG_BYTES:
		return fits_bytes(p);
	case GBPF_ARG_BYTES2:
		return fits_height(p);
	case GBPF_ARG_STREAM:
		return is_stream(p);
	case GBPF_ARG_SOURCE:
		return fits_source(p, api);
	case GBPF_ARG_KIND:
		return fits_kind(p, api);
	case GBPF_ARG_OUT:
		return fits_out(p);
	}
	return false;
}

/* Is a parameter that matters left unread, where nothing says why? */
static const char *forgets(const struct api *api, const struct signature *s)
{
	/* CUDA 13 moved these streams, and kept the names. */
	static const char *const moved[] = {
		"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz", "cudaMemcpy3DBatchAsync",
		"cudaMemcpy3DBatchAsync_ptsz", "cudaMemPrefetchAsync", "cudaMemPrefetchAsync_ptsz",
		NULL,
	};

	for (unsigned i = 0; i < s->count; i++) {
		const struct parameter *p = &s->p[i];

		if (is_stream(p) && !api->arg[GBPF_ARG_STREAM] && !one_of(api->name, moved))
			return p->name;
		if (!strcmp(p->type, "size_t") &&
		    (!strcmp(p->name, "ByteCount") || !strcmp(p->name, "bytesize")) &&
		    api->arg[GBPF_ARG_BYTES] != p->position)
			return p->name;
		if (!strcmp(p->type, "cudaMemcpyKind") && strncmp(api->name, "cudaGraph", 9) &&
		    api->arg[GBPF_ARG_KIND] != p->position)
			return p->name;
		if (api->kind == API_ALLOC && fits_out(p) && p->position == 1 &&
		    !api->arg[GBPF_ARG_OUT])
			return p->name;
	}
	return NULL;
}

static bool is(const struct signature *s, unsigned position, const char *name, const char *type)
{
	const struct parameter *p = at(s, position);

	return p && (!name || !strcmp(p->name, name)) && !strcmp(p->type, type);
}

static bool launch_fits(const struct signature *s)
{
	return is(s, 1, "f", "CUfunction") && is(s, 2, "gridDimX", "unsigned_int") &&
	       is(s, 4, "gridDimZ", "unsigned_int") && is(s, 5, "blockDimX", "unsigned_int") &&
	       is(s, 7, "blockDimZ", "unsigned_int") &&
	       is(s, 8, "sharedMemBytes", "unsigned_int") && is(s, 9, "hStream", "CUstream");
}

static bool rt_launch_fits(const struct signature *s)
{
	return is(s, 1, "func", "void*") && is(s, 2, "gridDim", "dim3") &&
	       is(s, 4, "blockDim", "dim3") && is(s, 7, "sharedMem", "size_t") &&
	       is(s, 8, "stream", "cudaStream_t");
}

static bool config_fits(const struct signature *s)
{
	return (is(s, 1, NULL, "CUlaunchConfig*") && is(s, 2, "f", "CUfunction")) ||
	       (is(s, 1, NULL, "cudaLaunchConfig_t*") && is(s, 2, "func", "void*"));
}

/* Whether the arguments a shape reads by itself are where it expects them. */
static bool shape_fits(const struct api *api, const struct signature *s)
{
	switch (api->shape) {
	case GBPF_SHAPE_LAUNCH:
		return launch_fits(s);
	case GBPF_SHAPE_RT_LAUNCH:
		return rt_launch_fits(s);
	case GBPF_SHAPE_CONFIG:
		return config_fits(s);
	case GBPF_SHAPE_COPY2D:
		return is(s, 1, NULL, "CUDA_MEMCPY2D*");
	case GBPF_SHAPE_COPY3D:
		return is(s, 1, NULL, "CUDA_MEMCPY3D*") || is(s, 1, NULL, "CUDA_MEMCPY3D_PEER*");
	case GBPF_SHAPE_RT_COPY3D:
		return is(s, 1, NULL, "cudaMemcpy3DParms*");
	case GBPF_SHAPE_GET_NAMED:
		return is(s, 3, "name", "char*") && api->arg[GBPF_ARG_SOURCE] == 3;
	}
	return true;
}

static bool reads_itself(const struct api *api)
{
	return api->shape == GBPF_SHAPE_LAUNCH || api->shape == GBPF_SHAPE_RT_LAUNCH ||
	       api->shape == GBPF_SHAPE_CONFIG;
}

static void check_signature(char *line, void *ctx)
{
	struct check *check = ctx;
	struct signature s;
	const struct api *api;
	const char *forgotten;

	parse(line, &s);
	api = catalogue_get(catalogue_find(s.function));
	if (!api) {
		fail_msg("%s is not in the catalogue", s.function);
		return;
	}
	check->seen[catalogue_find(s.function)] = 1;
	for (unsigned arg = 0; arg < GBPF_ARGS; arg++) {
		const struct parameter *p = at(&s, api->arg[arg]);

		if (api->arg[arg] && (!p || !fits(api, arg, p))) {
			print_error("%s: argument %u at %u is %s\n", api->name, arg, api->arg[arg],
				    p ? p->name : "nothing");
			check->bad++;
		}
	}
	if (!shape_fits(api, &s)) {
		print_error("%s: has another shape than %u\n", api->name, api->shape);
		check->bad++;
	}
	forgotten = reads_itself(api) ? NULL : forgets(api, &s);
	if (forgotten) {
		print_error("%s: %s is not read\n", api->name, forgotten);
		check->bad++;
	}
}

static void mark_seen(char *line, void *ctx)
{
	struct check *check = ctx;

	line[strcspn(line, " ")] = 0;
	check->seen[catalogue_find(line)] = 1;
}

static void arguments_are_where_the_headers_say(void **state)
{
	struct check check = {0};

	assert_true(each_line(DATA "signatures.txt", check_signature, &check) > 700);
	each_line(DATA "other-versions.txt", mark_seen, &check);
	/* What no header declares is read blindly, so nothing may be read of it. */
	for (size_t id = 1; id <= catalogue_count(); id++)
		if (!check.seen[id] && catalogue_get((uint16_t)id)->shape != GBPF_SHAPE_BARE) {
			print_error("%s: no signature\n", catalogue_get((uint16_t)id)->name);
			check.bad++;
		}
	assert_int_equal(check.bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_where_the_headers_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
