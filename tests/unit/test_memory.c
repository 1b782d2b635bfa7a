/* SPDX-License-Identifier: BSD-2-Clause */
/* What was allocated, freed, freed twice, never, or before the trace began. */
#include "feed.h"

#include "model/memory.h"

enum { F_FREE = F_END, F_FREE_ASYNC, F_HOST, F_HOST_FREE, F_RT_ALLOC, F_MORE };

static void more_apis(struct feed *f)
{
	static const char *const names[] = { "cuMemFree_v2", "cuMemFreeAsync", "cuMemAllocHost_v2",
					     "cuMemFreeHost", "cudaMalloc" };

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct api *api = catalogue_get(catalogue_find(names[i]));
		struct record r = { .kind = RECORD_API,
				    .api = { .id = F_FREE + i, .name = names[i],
					     .library = api_library_name(api->library),
					     .kind = api_kind_name(api->kind) } };

		feed_add(f, &r);
	}
}

static void start(struct feed *f)
{
	feed_start(f);
	more_apis(f);
	feed_process(f, 1, RECORD_PROCESS_SEEN, 100, 1, "job");
}

static void allocates(struct feed *f, int64_t ts, uint16_t api, uint64_t pointer, uint64_t bytes,
		      int64_t ret, uint32_t sp)
{
	struct event begin = { .args = EVENT_ARGS_CALL, .call = { .bytes = bytes } };
	struct event end = { .ts = ts + 10, .pid = f->pid, .tid = f->tid, .sp = sp, .api = api,
			     .image = 1, .kind = EVENT_END, .has_out = 1,
			     .end = { .ret = ret, .out = pointer } };

	feed_begin_with(f, ts, api, sp, &begin);
	feed_event(f, &end);
}

static void frees(struct feed *f, int64_t ts, uint16_t api, uint64_t pointer, int64_t ret)
{
	struct event begin = { .args = EVENT_ARGS_CALL, .call = { .object = pointer } };

	feed_begin_with(f, ts, api, SP, &begin);
	feed_end(f, ts + 10, api, SP, ret);
}

static void finish(struct feed *f, struct memory *m)
{
	feed_window(f, 1, 10000);
	feed_finish(f);
	assert_int_equal(memory_find(f->s, m), 0);
}

static void lives(void **state)
{
	struct feed f;
	struct memory m;
	const struct memory_use *u;

	start(&f);
	allocates(&f, 100, F_ALLOC, 0xa000, 1000, 0, SP);
	allocates(&f, 200, F_ALLOC, 0xb000, 500, 0, SP);
	frees(&f, 300, F_FREE, 0xa000, 0);
	allocates(&f, 400, F_ALLOC, 0xa000, 200, 0, SP); /* the address comes back */
	frees(&f, 500, F_FREE, 0xf000, 0);		 /* from before the trace */
	frees(&f, 600, F_FREE_ASYNC, 0xb000, 0);
	frees(&f, 700, F_FREE_ASYNC, 0xb000, 0); /* again */
	frees(&f, 800, F_FREE, 0, 0);
	finish(&f, &m);
	u = &m.uses[0];
	assert_int_equal(m.count, 3);
	assert_int_equal(u->allocations, 3);
	assert_int_equal(u->frees, 4);
	assert_int_equal(u->before, 1);
	assert_int_equal(u->twice, 1);
	assert_int_equal(u->bytes, 1700);
	assert_int_equal(u->live, 200);
	assert_int_equal(u->peak, 1500);
	assert_int_equal(u->peak_at, 210);
	assert_int_equal(m.items[0].end, 300);
	assert_int_equal(m.items[2].end, NOT_FREED);
	assert_int_equal(m.items[2].free_call, CALL_NONE);
	memory_free(&m);
	feed_stop(&f);
}

/* What failed neither gives nor takes. */
static void failures(void **state)
{
	struct feed f;
	struct memory m;

	start(&f);
	allocates(&f, 100, F_ALLOC, 0xa000, 1000, 0, SP);
	allocates(&f, 200, F_ALLOC, 0xb000, 1 << 30, 2, SP);
	frees(&f, 300, F_FREE, 0xa000, 400);
	finish(&f, &m);
	assert_int_equal(m.uses[0].failed, 2);
	assert_int_equal(m.uses[0].live, 1000);
	assert_int_equal(m.uses[0].frees, 0);
	memory_free(&m);
	feed_stop(&f);
}

/* The runtime's call around the driver's is the same allocation; the host's memory is apart. */
static void nested_and_host(void **state)
{
	struct feed f;
	struct memory m;

	start(&f);
	feed_begin_with(&f, 100, F_RT_ALLOC, SP, &(struct event){ .args = EVENT_ARGS_CALL,
								   .call = { .bytes = 64 } });
	allocates(&f, 110, F_ALLOC, 0xa000, 64, 0, SP - 64);
	feed_event(&f, &(struct event){ .ts = 150, .pid = 100, .tid = 100, .sp = SP,
					.api = F_RT_ALLOC, .image = 1, .kind = EVENT_END,
					.has_out = 1, .end = { .out = 0xa000 } });
	allocates(&f, 200, F_HOST, 0xc000, 4096, 0, SP);
	allocates(&f, 300, F_HOST, 0xd000, 4096, 0, SP);
	frees(&f, 400, F_HOST_FREE, 0xd000, 0);
	finish(&f, &m);
	assert_int_equal(m.uses[0].allocations, 3);
	assert_int_equal(m.uses[0].live, 64);
	assert_int_equal(m.uses[0].peak, 64);
	assert_int_equal(m.uses[0].host_live, 4096);
	memory_free(&m);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lives),
		cmocka_unit_test(failures),
		cmocka_unit_test(nested_and_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
