/* SPDX-License-Identifier: BSD-2-Clause */
/* What is rare and must not break a tracer: names, unloads, nesting, jumps, errors. */
#include "job.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define ON .stream = U(w->stream)
#define CHECK(call) worker_check(w, call)
#define NESTED 70

static const struct shape small = { { 3, 2, 1 }, { 32, 2, 1 }, 128 };

/* A name of len bytes that is a valid identifier. */
static char *long_name(size_t len)
{
	char *name = malloc(len + 1);

	if (!name)
		abort();
	for (size_t i = 0; i < len; i++)
		name[i] = (char)('a' + i % 26);
	name[len] = '\0';
	return name;
}

#define HOSTILE 14

static void hostile_names(struct sim_kernel *k)
{
	static const char *const names[] = {
		"quote\"and'apostrophe",
		"back\\slash\\n",
		"escape\x1b[31mred\x1b[0m\x1b]0;title\x07",
		"line\nbreak\r\ttab",
		"invalid\xff\xfe\xc3(utf8",
		"overlong\xc0\xaf\xed\xa0\x80",
		"bidi\xe2\x80\xaegnp.exe\xe2\x80\xac",
		"{\"json\": [1, 2]}",
		"a,b;c|d",
		"%s%n%d",
		"<script>alert(1)</script>",
		"",
	};

	for (unsigned i = 0; i < 12; i++)
		k[i] = (struct sim_kernel){ names[i], 1000 };
	k[12] = (struct sim_kernel){ long_name(8191), 1000 };
	k[13] = (struct sim_kernel){ long_name(9000), 1000 };
}

static void launch_named(struct worker *w, CUmodule module, const char *name)
{
	uint32_t id = truth_name(name, (uint32_t)strlen(name));
	CUfunction f = NULL;

	CHECK(D_OUT(w, cuModuleGetFunction, (&f, module, name), &f, .source = U(module),
		    .name = id));
	op_launch_func(w, f, id, &small);
}

void step_names(struct worker *w)
{
	struct sim_kernel kernels[HOSTILE];
	struct sim_image image = { SIM_IMAGE_MAGIC, HOSTILE, kernels };
	CUmodule module = NULL;

	hostile_names(kernels);
	CHECK(D_OUT(w, cuModuleLoadData, (&module, &image), &module));
	for (unsigned i = 0; i < HOSTILE; i++)
		launch_named(w, module, kernels[i].name);
	op_stream_sync(w);
	CHECK(D(w, cuModuleUnload, (module), .pointer = U(module)));
	free((char *)kernels[12].name);
	free((char *)kernels[13].name);
}

/* The next step's kernel gets this one's handle, and another name. */
void step_unload(struct worker *w)
{
	char name[64];
	struct sim_kernel kernel = { name, 1000 };
	struct sim_image image = { SIM_IMAGE_MAGIC, 1, &kernel };
	CUmodule module = NULL;
	CUfunction f = NULL;
	uint32_t id;

	snprintf(name, sizeof(name), "unload_%u_%llu", w->index, (unsigned long long)w->steps);
	id = truth_name(name, (uint32_t)strlen(name));
	CHECK(D_OUT(w, cuModuleLoadData, (&module, &image), &module));
	CHECK(D_OUT(w, cuModuleGetFunction, (&f, module, name), &f, .source = U(module),
		    .name = id));
	for (unsigned i = 0; i < 3; i++)
		op_launch_func(w, f, id, &small);
	op_stream_sync(w);
	CHECK(D(w, cuModuleUnload, (module), .pointer = U(module)));
}

struct nest {
	struct worker *w;
	unsigned left;
};

static void nest_deeper(void *user)
{
	struct nest *n = user;

	if (n->left > 1) {
		n->left--;
		op_host_func(n->w, nest_deeper, n);
	} else {
		op_launch(n->w, 5);
	}
}

/* The innermost launch is call number 70; a runtime's call is two, its own and the driver's. */
void step_nested(struct worker *w)
{
	struct nest n = { w, w->job->opt.runtime ? NESTED / 2 - 1 : NESTED - 1 };

	op_host_func(w, nest_deeper, &n);
	op_stream_sync(w);
}

static void launch_between(void *user)
{
	op_launch(user, 4);
}

static void throw_inside(void *user)
{
	job_throw(5, launch_between, user);
}

/* Thrown and caught around calls, and again wholly inside a callback: never through the driver. */
void step_exception(struct worker *w)
{
	job_throw(10, launch_between, w);
	op_host_func(w, throw_inside, w);
	op_stream_sync(w);
}

struct jump {
	jmp_buf where;
	struct worker *w;
};

static void jump_out(void *user)
{
	struct jump *j = user;

	op_launch(j->w, 6);
	longjmp(j->where, 1);
}

/* The call it jumps out of never returns: in the truth, its leave stays 0. */
void step_longjmp(struct worker *w)
{
	struct truth_thread *t = truth_self();
	uint32_t depth = t ? t->depth : 0;
	struct jump j = { .w = w };

	if (!setjmp(j.where))
		op_host_func(w, jump_out, &j);
	t = truth_self();
	if (t)
		t->depth = depth;
	op_launch(w, 4);
	op_stream_sync(w);
}

static void expect(struct worker *w, int ret, int wanted)
{
	if (ret != wanted)
		w->unexpected++;
}

void step_errors(struct worker *w)
{
	CUdeviceptr p = 0;
	CUmodule m = NULL;
	CUfunction f = NULL;
	uint64_t bad = 0;

	op_launch(w, 4);
	expect(w, D(w, cuMemAlloc_v2, (&p, 0), 0), SIM_INVALID_VALUE);
	expect(w, D(w, cuModuleGetFunction, (&f, w->job->module, "no_such_kernel"),
		    .source = U(w->job->module)), SIM_NOT_FOUND);
	expect(w, D(w, cuModuleLoadData, (&m, &bad), 0), SIM_NO_BINARY);
	expect(w, D(w, cuLaunchKernel, (NULL, 1, 1, 1, 1, 1, 1, 0, w->stream, NULL, NULL), ON,
		    .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }), SIM_INVALID_HANDLE);
	f = w->job->func[4];
	expect(w, D(w, cuLaunchKernel, (f, 1, 1, 1, 2048, 1, 1, 0, w->stream, NULL, NULL), ON,
		    .func = U(f), .grid = { 1, 1, 1 }, .block = { 2048, 1, 1 },
		    .name = w->job->name[4]), SIM_INVALID_VALUE);
	expect(w, D(w, cuMemcpyHtoD_v2, (0, w->host, 64), .source = U(w->host), .bytes = 64),
	       SIM_INVALID_VALUE);
	expect(w, D(w, cuStreamDestroy_v2, (NULL), 0), SIM_INVALID_HANDLE);
	expect(w, D(w, cuEventQuery, (NULL), 0), SIM_INVALID_HANDLE);
	op_stream_sync(w);
}

#define TO_ALL .pointer = U(w->comm), ON, .bytes = 4ull * n, .kind = 7 /* ncclFloat32 */

void step_nccl(struct worker *w)
{
	const void *from = (const void *)w->dev;
	ncclUniqueId id = { "simulated" };
	void *to = (void *)w->other;
	size_t n = 1000 + w->steps % 1000;
	ncclComm_t c = w->comm;

	if (!c)
		CHECK(N_OUT(w, ncclCommInitRank, (&w->comm, 2, id, 0), &w->comm));
	c = w->comm;
	CHECK(N(w, ncclAllReduce, (from, to, n, 7, 0, c, w->stream), TO_ALL));
	CHECK(N(w, ncclBroadcast, (from, to, n, 7, 0, c, w->stream), TO_ALL));
	CHECK(N(w, ncclReduce, (from, to, n, 7, 0, 0, c, w->stream), TO_ALL));
	CHECK(N(w, ncclAllGather, (from, to, n, 7, c, w->stream), TO_ALL));
	CHECK(N(w, ncclReduceScatter, (from, to, n, 7, 0, c, w->stream), TO_ALL));
	CHECK(N(w, ncclGroupStart, (), 0));
	CHECK(N(w, ncclSend, (from, n, 7, 1, c, w->stream), TO_ALL));
	CHECK(N(w, ncclRecv, (to, n, 7, 1, c, w->stream), TO_ALL));
	CHECK(N(w, ncclGroupEnd, (), 0));
	op_launch(w, 5);
	op_stream_sync(w);
}
