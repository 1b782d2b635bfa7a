/* SPDX-License-Identifier: BSD-2-Clause */
/* The catalogue against what the libraries export, and against itself. */
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

static const char *const exports[] = {
	DATA "exports-libcuda-580.159.04.txt",
	DATA "exports-libcudart-13.0.txt",
	DATA "exports-libnccl-2.28.9.txt",
};

static void count_bad(char *line, void *ctx)
{
	bool known = catalogue_find(line) != 0, excluded = catalogue_excluded(line) != NULL;
	unsigned *bad = ctx;

	if (known == excluded) {
		print_error("%s: %s\n", line, known ? "in both lists" : "forgotten");
		(*bad)++;
	}
}

static void every_export_is_in_one_list(void **state)
{
	static const size_t at_least[] = {700, 420, 100};
	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
		assert_true(each_line(exports[i], count_bad, &bad) >= at_least[i]);
	assert_int_equal(bad, 0);
	/* What nobody exports is in neither. */
	assert_int_equal(catalogue_find("cuNoSuchFunction"), 0);
	assert_null(catalogue_excluded("cuNoSuchFunction"));
}

static void mark(char *line, void *ctx)
{
	uint8_t *seen = ctx;
	uint16_t id;

	line[strcspn(line, " ")] = 0;
	id = catalogue_find(line);
	if (id)
		seen[id]++;
}

static void every_entry_is_exported_somewhere(void **state)
{
	uint8_t seen[GBPF_MAX_API] = {0};
	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
		each_line(exports[i], mark, seen);
	each_line(DATA "other-versions.txt", mark, seen);
	for (size_t id = 1; id <= catalogue_count(); id++)
		if (seen[id] != 1) {
			print_error("%s: in %u lists\n", catalogue_get((uint16_t)id)->name,
				    seen[id]);
			bad++;
		}
	assert_int_equal(bad, 0);
}

static unsigned arguments(const struct api *api)
{
	unsigned n = 0;

	for (unsigned arg = 0; arg < GBPF_ARGS; arg++)
		n += api->arg[arg] != 0;
	return n;
}

static void check_shape(const struct api *api)
{
	unsigned n = arguments(api), object = api->arg[GBPF_ARG_OBJECT];

	switch (api->shape) {
	case GBPF_SHAPE_BARE:
	case GBPF_SHAPE_LAUNCH:
	case GBPF_SHAPE_CONFIG:
	case GBPF_SHAPE_RT_LAUNCH:
		assert_int_equal(n, 0);
		break;
	case GBPF_SHAPE_OBJECT:
	case GBPF_SHAPE_QUERY:
		/* One argument, perhaps named twice: the object is a stream. */
		assert_true(object);
		assert_true(n == 1 || (n == 2 && api->arg[GBPF_ARG_STREAM] == object));
		break;
	case GBPF_SHAPE_CALL:
		assert_true(n);
		break;
	case GBPF_SHAPE_GET_NAMED:
		assert_true(n == 3 && object == 2 && api->arg[GBPF_ARG_OUT] == 1);
		break;
	case GBPF_SHAPE_UNLOAD:
		assert_true(n == (object ? 1u : 0u));
		break;
	case GBPF_SHAPE_COPY2D:
	case GBPF_SHAPE_COPY3D:
	case GBPF_SHAPE_RT_COPY3D:
		assert_int_equal(object, 1);
		assert_true(n == (api->arg[GBPF_ARG_STREAM] ? 2u : 1u));
		break;
	default:
		fail_msg("%s: shape %u", api->name, api->shape);
	}
}

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static enum api_direction direction_of(const char *name)
{
	static const struct {
		const char *part;
		enum api_direction direction;
	} parts[] = {
		{"HtoD", COPY_HTOD}, {"HtoA", COPY_HTOD}, {"DtoH", COPY_DTOH}, {"AtoH", COPY_DTOH},
		{"DtoD", COPY_DTOD}, {"AtoD", COPY_DTOD}, {"DtoA", COPY_DTOD}, {"AtoA", COPY_DTOD},
		{"Peer", COPY_PEER},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i].part))
			return parts[i].direction;
	return COPY_UNKNOWN;
}

static void check_copy(const struct api *api)
{
	enum api_direction direction = direction_of(api->name);
	bool async = strstr(api->name, "Async") != NULL;

	if (api->kind != API_COPY) {
		assert_false(api->blocking);
		assert_int_equal(api->direction, COPY_UNKNOWN);
		return;
	}
	if (direction != COPY_UNKNOWN)
		assert_int_equal(api->direction, direction);
	else if ((begins(api->name, "cuda") && !strstr(api->name, "Batch")) ||
		 api->shape == GBPF_SHAPE_COPY2D || api->shape == GBPF_SHAPE_COPY3D)
		assert_int_equal(api->direction, COPY_BY_KIND);
	else
		assert_int_equal(api->direction, COPY_UNKNOWN);
	assert_false(async && api->blocking);
	/* Copies to and from the host wait; those between device memories do not. */
	if (!async && (direction == COPY_HTOD || direction == COPY_DTOH))
		assert_true(api->blocking);
	if (direction == COPY_DTOD || direction == COPY_PEER)
		assert_false(api->blocking);
}

static unsigned element_of(const char *name)
{
	const char *bits = begins(name, "cuMemset") ? strpbrk(name, "123") : NULL;

	if (begins(name, "cuMemsetD2D"))
		bits = name + strlen("cuMemsetD2D");
	if (bits && begins(bits, "16"))
		return 2;
	return bits && begins(bits, "32") ? 4 : 0;
}

static void check_tier(const struct api *api)
{
	if (api->library == API_RUNTIME)
		assert_true(api->tier == TIER_RUNTIME || api->tier == TIER_ALL);
	else
		assert_true(api->tier == TIER_DEFAULT || api->tier == TIER_ALL);
}

static void entries_are_consistent(void **state)
{
	size_t count = catalogue_count();

	assert_true(count > 700 && count < GBPF_MAX_API);
	assert_null(catalogue_get(0));
	assert_null(catalogue_get((uint16_t)(count + 1)));
	assert_null(catalogue_get(UINT16_MAX));
	for (size_t id = 1; id <= count; id++) {
		const struct api *api = catalogue_get((uint16_t)id);

		/* Also shows that no name is there twice, and that prefix and library agree. */
		assert_int_equal(catalogue_find(api->name), id);
		assert_string_not_equal(api_kind_name(api->kind), "unknown");
		assert_string_not_equal(api_library_name(api->library), "unknown");
		assert_true(api->return_ok);
		check_tier(api);
		check_shape(api);
		check_copy(api);
		if (api->arg[GBPF_ARG_BYTES])
			assert_int_equal(api->element, element_of(api->name));
	}
}

static void twins_are_alike(void **state)
{
	unsigned twins = 0;

	for (size_t id = 1; id <= catalogue_count(); id++) {
		struct api twin = *catalogue_get((uint16_t)id), base;
		size_t len = strlen(twin.name);
		char name[128];

		if (strcmp(twin.name + len - 5, "_ptsz") && strcmp(twin.name + len - 5, "_ptds"))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len - 5, twin.name);
		assert_true(catalogue_find(name));
		base = *catalogue_get(catalogue_find(name));
		assert_memory_equal(twin.arg, base.arg, sizeof(twin.arg));
		assert_int_equal(twin.kind, base.kind);
		assert_int_equal(twin.shape, base.shape);
		assert_int_equal(twin.tier, base.tier);
		assert_int_equal(twin.element, base.element);
		assert_int_equal(twin.direction, base.direction);
		assert_int_equal(twin.blocking, base.blocking);
		twins++;
	}
	assert_true(twins > 100);
}

/* Called thousands of times a training step (measured): never in the default set. */
static void getters_stay_out(void **state)
{
	static const char *const getters[] = {
		"cuCtxGetDevice", "cuCtxGetDevice_v2", "cuDevicePrimaryCtxGetState",
		"cuCtxGetCurrent", "cuPointerGetAttribute", "cudaGetDevice", "cudaGetLastError",
		"cuStreamIsCapturing_ptsz", "cuStreamGetCaptureInfo_v3_ptsz",
	};

	for (size_t i = 0; i < sizeof(getters) / sizeof(getters[0]); i++) {
		assert_int_equal(catalogue_find(getters[i]), 0);
		assert_non_null(catalogue_excluded(getters[i]));
	}
}

static void excluded_matches_names_and_twins_only(void **state)
{
	assert_non_null(catalogue_excluded("cuTexRefSetAddress2D_v3"));
	assert_non_null(catalogue_excluded("cuDeviceGetUuid_v2"));
	assert_null(catalogue_excluded("cuDeviceGetUuid_v20"));
	assert_null(catalogue_excluded("cuDeviceGetUui"));
	assert_null(catalogue_excluded("_ptsz"));
	assert_null(catalogue_excluded("_v2"));
	assert_null(catalogue_excluded(""));
	assert_null(catalogue_excluded(NULL));
	assert_int_equal(catalogue_find(NULL), 0);
	assert_int_equal(catalogue_find(""), 0);
	assert_int_equal(catalogue_find("cu"), 0);
	assert_int_equal(catalogue_find("cuLaunchKernel_v7000"), 0);
}

static void cookie_holds_everything(void **state)
{
	for (size_t id = 1; id <= catalogue_count(); id++) {
		const struct api *api = catalogue_get((uint16_t)id);
		uint64_t cookie = catalogue_cookie((uint16_t)id, 0xbeef);

		assert_int_equal(cookie & 0xfff, id);
		assert_int_equal(cookie >> 12 & 0xffff, 0xbeef);
		assert_int_equal(cookie >> 28 & 0xf, api->shape);
		for (unsigned arg = 0; arg < GBPF_ARGS; arg++)
			assert_int_equal(cookie >> (32 + 4 * arg) & 0xf, api->arg[arg]);
		assert_int_equal(cookie >> 60, api->library != API_DRIVER);
	}
	assert_int_equal(catalogue_cookie(0, 1), 0);
}

static void display_drops_abi_suffixes(void **state)
{
	char buf[64];

	assert_string_equal(catalogue_display("cudaLaunchKernel_v7000", buf, sizeof(buf)),
			    "cudaLaunchKernel");
	assert_string_equal(catalogue_display("cudaMemcpy_v12000", buf, sizeof(buf)), "cudaMemcpy");
	assert_string_equal(catalogue_display("cuMemAlloc_v2", buf, sizeof(buf)), "cuMemAlloc_v2");
	assert_string_equal(catalogue_display("cuX_v123", buf, sizeof(buf)), "cuX_v123");
	assert_string_equal(catalogue_display("cuMemcpy_ptds", buf, sizeof(buf)), "cuMemcpy_ptds");
	assert_string_equal(catalogue_display("7000", buf, sizeof(buf)), "7000");
	assert_string_equal(catalogue_display("", buf, sizeof(buf)), "");
	assert_string_equal(catalogue_display("cudaLaunchKernel_v7000", buf, 5), "cuda");
	assert_ptr_equal(catalogue_display("x", buf, 0), buf);
}

static void errors_have_names(void **state)
{
	assert_string_equal(api_error_name(API_DRIVER, 0), "CUDA_SUCCESS");
	assert_string_equal(api_error_name(API_DRIVER, 2), "CUDA_ERROR_OUT_OF_MEMORY");
	assert_string_equal(api_error_name(API_DRIVER, 600), "CUDA_ERROR_NOT_READY");
	assert_string_equal(api_error_name(API_DRIVER, 999), "CUDA_ERROR_UNKNOWN");
	assert_string_equal(api_error_name(API_RUNTIME, 2), "cudaErrorMemoryAllocation");
	assert_string_equal(api_error_name(API_RUNTIME, 700), "cudaErrorIllegalAddress");
	assert_string_equal(api_error_name(API_NCCL, 7), "ncclInProgress");
	/* Only eax is the result: what else the register held does not matter. */
	assert_string_equal(api_error_name(API_DRIVER, 0x7700000258), "CUDA_ERROR_NOT_READY");
	assert_null(api_error_name(API_DRIVER, 123456));
	assert_null(api_error_name(API_NCCL, -1));
	assert_null(api_error_name(0, 0));
}

static bool is_error(const char *name, int64_t ret)
{
	uint16_t id = catalogue_find(name);

	assert_true(id);
	return api_is_error(catalogue_get(id), ret);
}

static void not_ready_is_an_answer(void **state)
{
	struct api no_result = {.kind = API_OTHER};

	assert_false(is_error("cuEventQuery", 600));
	assert_false(is_error("cudaStreamQuery_ptsz", 600));
	assert_true(is_error("cuEventQuery", 700));
	assert_true(is_error("cuStreamSynchronize", 600));
	assert_true(is_error("cuMemAlloc_v2", 2));
	assert_false(is_error("cuMemAlloc_v2", 0));
	assert_false(is_error("ncclAllReduce", 7));
	assert_true(is_error("ncclAllReduce", 5));
	assert_false(api_is_error(&no_result, 5));
	assert_false(api_is_error(NULL, 5));
}

static void names_of_kinds(void **state)
{
	assert_string_equal(api_kind_name(API_LAUNCH), "launch");
	assert_string_equal(api_kind_name(API_OTHER), "other");
	assert_string_equal(api_kind_name(0), "unknown");
	assert_string_equal(api_kind_name(API_OTHER + 1), "unknown");
	assert_string_equal(api_library_name(API_NCCL), "nccl");
	assert_string_equal(api_library_name(0), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_export_is_in_one_list),
		cmocka_unit_test(every_entry_is_exported_somewhere),
		cmocka_unit_test(entries_are_consistent),
		cmocka_unit_test(twins_are_alike),
		cmocka_unit_test(getters_stay_out),
		cmocka_unit_test(excluded_matches_names_and_twins_only),
		cmocka_unit_test(cookie_holds_everything),
		cmocka_unit_test(display_drops_abi_suffixes),
		cmocka_unit_test(errors_have_names),
		cmocka_unit_test(not_ready_is_an_answer),
		cmocka_unit_test(names_of_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
