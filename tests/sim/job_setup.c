/* SPDX-License-Identifier: BSD-2-Clause */
/* Options, libraries, context and the kernels of the training step. */
#include "job.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GEMM(layout, split)                                                                        \
	"sm80_xmma_gemm_f32f32_f32f32_f32_" layout "_n_tilesize32x32x8_stage3_warpsize1x2x1_"      \
	"ffma_aligna4_alignc4_execute_" split "kernel__5x_cublas"
#define AT "_ZN2at6native"

/* Mangled names as PyTorch, cuBLAS and CUTLASS have them: X(index, name, ns, grid, block, smem). */
#define KERNELS(X)                                                                                 \
	X(0, GEMM("nt", ""), 4200, (8, 8, 1), (128, 1, 1), 18432)                                  \
	X(1, GEMM("nn", "split_k_"), 3900, (8, 2, 5), (128, 1, 1), 18432)                          \
	X(2, "_ZN7cutlass7Kernel2I41cutlass_80_simt_sgemm_64x64_8x5_tn_align1EEvNT_6ParamsE",      \
	  5700, (4, 1, 3), (64, 1, 1), 20480)                                                      \
	X(3, "_Z18sgemm_largek_lds64ILb1ELb0ELi5ELi5ELi4ELi4ELi4ELi34EEvPfPKfS2_iiiiiiS2_S2_"      \
	     "ffiiPiS3_", 4800, (1, 8, 16), (16, 16, 1), 4096)                                     \
	X(4, AT "29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEE"      \
		"viT0_T1_", 1100, (64, 1, 1), (128, 1, 1), 0)                                      \
	X(5, AT "29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3E"     \
		"EEEviT0_T1_", 1300, (128, 1, 1), (128, 1, 1), 0)                                  \
	X(6, AT "13reduce_kernelILi128ELi4ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_"       \
		"functorIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",                 \
	  2400, (8, 1, 1), (32, 16, 1), 16)                                                        \
	X(7, "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb0EfffLb1ELb1ELb0EEEvPKfPf",       \
	  2100, (16, 16, 1), (32, 16, 1), 0)                                                       \
	X(8, AT "12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_"    \
		"24BinaryOpListAlphaFunctorIfLi2ELi2ELi0EEEJSt4plusIfEfEEEvT_T0_DpT1_",            \
	  9900, (40, 1, 1), (512, 1, 1), 0)                                                        \
	X(9, "_ZN12_GLOBAL__N_120softmax_warp_forwardIfffLi4ELb1ELb0EEEvPT0_PKT_iiiPKbib", 1500,   \
	  (8, 1, 1), (16, 8, 1), 0)                                                                \
	X(10, "_ZN12_GLOBAL__N_121softmax_warp_backwardIfffLi4ELb1ELb0EEEvPT0_PKT_S5_iiiPKb",      \
	  1600, (8, 1, 1), (16, 8, 1), 0)                                                          \
	X(11, AT "12_GLOBAL__N_138nll_loss_forward_reduce_cuda_kernel_2dIfflEEvPT_S4_PKS3_PKT1_"   \
		 "S6_bllll", 1900, (1, 1, 1), (32, 1, 1), 0)

#define UNPACK(x, y, z) { x, y, z }
#define KERNEL_ROW(i, mangled, ns, g, b, smem) { mangled, ns },
#define SHAPE_ROW(i, mangled, ns, g, b, smem) { UNPACK g, UNPACK b, smem },
#define STUB(i, mangled, ns, g, b, smem)                                                           \
	static void stub_##i(void) __asm__(mangled);                                               \
	__attribute__((noinline, used)) static void stub_##i(void)                                 \
	{                                                                                          \
		__asm__ volatile("" : : "i"(i));                                                   \
	}
#define STUB_ROW(i, mangled, ns, g, b, smem) (rt_func)stub_##i,

/* As nvcc makes them: one host function a kernel, by the kernel's own name. */
KERNELS(STUB)
const rt_func job_stubs[JOB_KERNELS] = { KERNELS(STUB_ROW) };
const struct sim_kernel job_kernels[JOB_KERNELS] = { KERNELS(KERNEL_ROW) };
const struct shape job_shapes[JOB_KERNELS] = { KERNELS(SHAPE_ROW) };

static const struct sim_image image = { SIM_IMAGE_MAGIC, JOB_KERNELS, job_kernels };

#ifdef SIM_STATIC_RUNTIME
/* nvcc's programs keep their code's directory in this section. */
__attribute__((section(".nvFatBinSegment"), used)) static const struct {
	uint32_t magic, version;
	const void *data, *unused;
} fat_binary = { 0x466243b1, 1, &image, NULL };
#endif

#define OPTIONS_MAX 64

static const struct option options[] = {
	{ "api", required_argument, NULL, 'a' },
	{ "pattern", required_argument, NULL, 'p' },
	{ "threads", required_argument, NULL, 't' },
	{ "iterations", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 'd' },
	{ "truth", required_argument, NULL, 'T' },
	{ "truth-mib", required_argument, NULL, 'M' },
	{ "lib", required_argument, NULL, 'l' },
	{ "per-thread", no_argument, NULL, 'P' },
	{ "children", required_argument, NULL, 'c' },
	{ "parallel", required_argument, NULL, 'j' },
	{ "start-delay", required_argument, NULL, 's' },
	{ "late", required_argument, NULL, 'L' },
	{ "wait-usr1", no_argument, NULL, 'u' },
	{ "wait-file", required_argument, NULL, 'f' },
	{ "hold", no_argument, NULL, 'H' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "kernel-ns", required_argument, NULL, 'k' },
	{ "dispatch-ns", required_argument, NULL, 'D' },
	{ "cold-ns", required_argument, NULL, 'C' },
	{ "cpu-ns", required_argument, NULL, 'U' },
	{ "wait", required_argument, NULL, 'w' },
	{ "fail", required_argument, NULL, 'F' },
	{ "name", required_argument, NULL, 'N' },
	{ "name-offset", required_argument, NULL, 'O' },
	{ "seed", required_argument, NULL, 'S' },
	{ "what", required_argument, NULL, 'W' },
	{ "profiler", required_argument, NULL, 'R' },
	{ "cupti", required_argument, NULL, 'I' },
	{ "latency-ns", required_argument, NULL, 'Y' },
	{ "devices", required_argument, NULL, 'G' },
	{ "help", no_argument, NULL, 'h' },
};

static void help(void)
{
	puts("simjob: a job on the simulated CUDA that writes down every call it makes\n\n"
	     "  --pattern NAME      what it does (below; default train)\n"
	     "  --api driver|runtime  which library it calls (default driver)\n"
	     "  --per-thread        calls the _ptsz and _ptds twins, default stream\n"
	     "  --threads N         threads that do it (default 1)\n"
	     "  --iterations N      steps a thread does (default 1, or no end with --duration)\n"
	     "  --duration S        seconds after which no step begins; 0: until SIGTERM\n"
	     "  --children N        forks N children that do it too\n"
	     "  --parallel N        churn: processes alive at once (default 2)\n"
	     "  --truth FILE        where calls are written; %p in it is the process id\n"
	     "  --truth-mib N       room for them (default 2048); 0: totals only\n"
	     "  --lib DIR           the stand-ins (default: lib beside the program)\n"
	     "  --late S            sleeps before it opens them\n"
	     "  --start-delay S     sleeps after that, before the first call\n"
	     "  --wait-usr1, --wait-file PATH  waits for a signal, or for a file, instead\n"
	     "  --hold              stays until SIGTERM when all is done\n"
	     "  --kernel-ns N       every kernel lasts that long (default: each its own)\n"
	     "  --dispatch-ns N     CPU time of a launch inside the driver (default 0)\n"
	     "  --cold-ns N         the same for each first launch, more for loading (default 0)\n"
	     "  --cpu-ns N          the program's own work between calls of a training step\n"
	     "  --wait spin|sleep   how a sync waits (default spin)\n"
	     "  --fail API=CODE@N   every Nth call of API returns CODE\n"
	     "  --name plain|cold|unreadable|garbage  what the handle's name pointer is like\n"
	     "  --name-offset N     where in the handle it is (default 8)\n"
	     "  --seed N            enters the output\n"
	     "  --quiet             prints nothing but errors\n"
	     "  --what sleep|pipe|poll|disk|lock|running|runnable  how pattern waits does\n"
	     "  --latency-ns N      from a call to the earliest begin of its work (default 0)\n"
	     "  --devices N         thread i uses device i modulo N (default 1)\n"
	     "  --profiler none|idle|slot|old|new  another client of CUPTI (default none)\n"
	     "  --cupti NAME        its library: in the stand-ins' directory, or a path");
	job_knobs_help();
	puts("\n"
	     "Prints \"ready PID\" before waiting or calling anything, and at the end\n"
	     "\"output HEX\": the same for the same options, whoever watches.\n\npatterns:");
	for (const struct job_pattern *p = job_patterns; p->name; p++)
		printf("  %-12s %s\n", p->name, p->help);
}

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "simjob: %s: %s (try --help)\n", why, what);
	return -1;
}

/* The options that are numbers; false: not one of them. */
static bool parse_number(struct job_options *o, int c, const char *text)
{
	double number = strtod(text, NULL);

	switch (c) {
	case 't': o->threads = (unsigned)number; return true;
	case 'n': o->iterations = (uint64_t)number; return true;
	case 'd': o->duration = number; return true;
	case 'M': o->room.bytes = (uint64_t)number << 20; return true;
	case 'c': o->children = (unsigned)number; return true;
	case 'j': o->parallel = (unsigned)number; return true;
	case 's': o->start_delay = number; return true;
	case 'L': o->late = number; return true;
	case 'k': o->kernel_ns = (int64_t)number; return true;
	case 'D': o->dispatch_ns = (int64_t)number; return true;
	case 'C': o->cold_ns = (int64_t)number; return true;
	case 'U': o->cpu_ns = (int64_t)number; return true;
	case 'O': o->name_offset = (int64_t)number; return true;
	case 'S': o->seed = (uint64_t)number; return true;
	case 'Y': o->latency_ns = (int64_t)number; return true;
	case 'G': o->devices = (unsigned)number; return true;
	}
	return job_knobs_set(&o->knobs, c, number);
}

static bool parse_word(struct job_options *o, int c, const char *text)
{
	switch (c) {
	case 'a': o->runtime = !strcmp(text, "runtime"); return true;
	case 'p': o->pattern = text; return true;
	case 'T': o->truth = text; return true;
	case 'l': o->lib = text; return true;
	case 'f': o->wait_file = text; return true;
	case 'w': o->wait_mode = text; return true;
	case 'F': o->fail = text; return true;
	case 'N': o->name_mode = text; return true;
	case 'W': o->what = text; return true;
	case 'R': o->profiler = text; return true;
	case 'I': o->cupti = text; return true;
	case 'P': o->per_thread = true; return true;
	case 'u': o->wait_usr1 = true; return true;
	case 'H': o->hold = true; return true;
	case 'q': o->quiet = true; return true;
	}
	return false;
}

static int parse_check(const struct job_options *o, int argc, char **argv)
{
	const struct job_pattern *p = job_pattern_find(o->pattern);

	if (optind < argc)
		return usage("unexpected argument", argv[optind]);
	if (!p)
		return usage("no such pattern", o->pattern);
	if (o->runtime && p->driver_only)
		return usage("a pattern for --api driver", o->pattern);
	if (o->threads < 1 || o->threads > 1000)
		return usage("threads", "1 to 1000");
	if (o->devices < 1 || o->devices > 8 || (o->runtime && o->devices > 1))
		return usage("devices", "1 to 8; with --api driver");
	if (!job_what(o->what))
		return usage("no such wait", o->what);
	if (!job_profiler_known(o->profiler))
		return usage("no such profiler", o->profiler);
	if (o->knobs.bin_us < 1 || o->knobs.timeline < 0 || o->knobs.timeline > 3600)
		return usage("timeline", "0 to 3600 s, bins of 1 us at least");
	return 0;
}

static void parse_room(struct job_options *o)
{
	o->room.line_ns = (int64_t)(o->knobs.timeline * 1e9);
	o->room.bin_ns = (int64_t)(o->knobs.bin_us * 1e3);
	o->room.lines = o->room.line_ns ? 2 * o->threads + JOB_HELPERS : 0;
}

int job_parse(struct job_options *o, int argc, char **argv)
{
	struct option all[OPTIONS_MAX] = { 0 };
	size_t count = sizeof(options) / sizeof(*options);
	int c;

	memcpy(all, options, sizeof(options));
	job_knobs_options(all + count, OPTIONS_MAX - 1 - count);
	*o = (struct job_options){ .pattern = "train", .threads = 1, .parallel = 2,
				   .room = { .bytes = 2048ull << 20 }, .duration = -1,
				   .kernel_ns = -1, .cpu_ns = -1, .name_offset = -1,
				   .what = "sleep", .profiler = "none",
				   .cupti = "libcupti.so.13", .devices = 1, .argv = argv };
	job_knobs_default(&o->knobs);
	while ((c = getopt_long(argc, argv, "", all, NULL)) != -1) {
		if (c == 'h') {
			help();
			exit(0);
		}
		if (c == '?' || (!parse_word(o, c, optarg) && !parse_number(o, c, optarg)))
			return -1;
	}
	if (!o->iterations)
		o->iterations = o->duration >= 0 ? UINT64_MAX : 1;
	if (parse_check(o, argc, argv))
		return -1;
	parse_room(o);
	return 0;
}

const struct job_pattern *job_pattern_find(const char *name)
{
	for (const struct job_pattern *p = job_patterns; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

static void set_number(const char *name, int64_t value, int64_t unset)
{
	char text[32];

	if (value == unset)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)value);
	setenv(name, text, 1);
}

static void set_environment(const struct job_options *o)
{
	set_number("SIMCUDA_KERNEL_NS", o->kernel_ns, -1);
	set_number("SIMCUDA_DISPATCH_NS", o->dispatch_ns, 0);
	set_number("SIMCUDA_COLD_NS", o->cold_ns, 0);
	set_number("SIMCUDA_NAME_OFFSET", o->name_offset, -1);
	set_number("SIMCUDA_LATENCY_NS", o->latency_ns, 0);
	set_number("SIMCUDA_DEVICES", o->devices, 1);
	if (o->wait_mode)
		setenv("SIMCUDA_WAIT", o->wait_mode, 1);
	if (o->fail)
		setenv("SIMCUDA_FAIL", o->fail, 1);
	if (o->name_mode)
		setenv("SIMCUDA_NAME", o->name_mode, 1);
}

void *job_open_library(const struct job_options *o, const char *name)
{
	char path[PATH_MAX], self[PATH_MAX / 2] = "";
	void *handle;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 && strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else if (o->lib)
		snprintf(path, sizeof(path), "%s/%s", o->lib, name);
	else
		snprintf(path, sizeof(path), "%s/lib/%s", self, name);
	handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!handle)
		fprintf(stderr, "simjob: %s\n", dlerror());
	return handle;
}

static void attach_truth(void *handle)
{
	__typeof__(simTruthAttach) *attach;

	*(void **)&attach = dlsym(handle, "simTruthAttach");
	if (attach)
		attach(truth_self, truth_name);
}

static void attach_works(void *handle)
{
	sim_attach_fn attach;

	*(void **)&attach = dlsym(handle, "simWorkAttach");
	if (attach)
		attach(truth_work, truth_name);
}

static int load_runtime(struct job *job)
{
#ifdef SIM_STATIC_RUNTIME
#define TABLE_STATIC(api) job->rt.api = api;
	TRUTH_RUNTIME(TABLE_STATIC)
	simTruthAttach(truth_self, truth_name);
	return 0;
#else
	void *handle = job_open_library(&job->opt, "libcudart.so.13");

	if (!handle || table_runtime(&job->rt, handle))
		return -1;
	attach_truth(handle);
	return 0;
#endif
}

int job_load(struct job *job)
{
	void *handle;

	set_environment(&job->opt);
	job->libcuda = job_open_library(&job->opt, "libcuda.so.1");
	if (!job->libcuda || table_driver(&job->drv, job->libcuda))
		return -1;
	if (job->opt.room.bytes)
		attach_works(job->libcuda);
	if (job->opt.runtime && load_runtime(job))
		return -1;
	if (strcmp(job->opt.pattern, "nccl") != 0)
		return 0;
	handle = job_open_library(&job->opt, "libnccl.so.2");
	if (!handle || table_nccl(&job->nccl, handle))
		return -1;
	attach_truth(handle);
	return 0;
}

static int register_kernels(struct job *job)
{
	__typeof__(__cudaRegisterFatBinary) *binary;
	__typeof__(__cudaRegisterFunction) *function;
	void **handle;

#ifdef SIM_STATIC_RUNTIME
	binary = __cudaRegisterFatBinary;
	function = __cudaRegisterFunction;
#else
	*(void **)&binary = dlsym(RTLD_DEFAULT, "__cudaRegisterFatBinary");
	*(void **)&function = dlsym(RTLD_DEFAULT, "__cudaRegisterFunction");
	if (!binary || !function)
		return -1;
#endif
	handle = binary((void *)&image);
	for (unsigned i = 0; i < JOB_KERNELS; i++)
		function(handle, job_stubs[i], (char *)job_kernels[i].name, job_kernels[i].name,
			 -1, NULL, NULL, NULL, NULL, NULL);
	return 0;
}

/* Every second kernel from a module as CUfunction, the others from a library as CUkernel. */
static int load_kernels(struct job *job)
{
	struct worker self = { .job = job }, *w = &self;
	int err = D_OUT(w, cuModuleLoadData, (&job->module, &image), &job->module);

	err |= D_OUT(w, cuLibraryLoadData, (&job->library, &image, NULL, NULL, 0, NULL, NULL, 0),
		     &job->library);
	for (unsigned i = 0; !err && i < JOB_KERNELS; i++) {
		const char *name = job_kernels[i].name;
		CUfunction *f = &job->func[i];

		err = i % 2 ? D_OUT(w, cuModuleGetFunction, (f, job->module, name), f,
				    .source = U(job->module), .name = job->name[i]) :
			      D_OUT(w, cuLibraryGetKernel, (f, job->library, name), f,
				    .source = U(job->library), .name = job->name[i]);
	}
	return err;
}

int job_begin(struct job *job)
{
	struct worker self = { .job = job }, *w = &self;
	int err;

	for (unsigned i = 0; i < JOB_KERNELS; i++)
		job->name[i] = truth_name(job_kernels[i].name,
					  (uint32_t)strlen(job_kernels[i].name));
	if (job->opt.runtime)
		return register_kernels(job);
	err = D(w, cuInit, (0), 0);
	for (int i = 0; i < (int)job->opt.devices; i++)
		err |= D_OUT(w, cuDevicePrimaryCtxRetain, (&job->ctx[i], i), &job->ctx[i]);
	err |= D(w, cuCtxSetCurrent, (job->ctx[0]), .pointer = U(job->ctx[0]));
	return err ? err : load_kernels(job);
}

static void sleep_seconds(double s)
{
	time_t whole = (time_t)s;
	struct timespec t = { whole, (long)((s - (double)whole) * 1e9) };

	if (s > 0)
		nanosleep(&t, NULL);
}

/* SIGUSR1 is blocked in every thread from the start, so that none comes too early. */
void job_wait_start(const struct job_options *o)
{
	struct timespec tick = { .tv_nsec = 5000000 };
	sigset_t set;

	sleep_seconds(o->start_delay);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	while (o->wait_usr1 && !job_stop && sigtimedwait(&set, NULL, &tick) < 0)
		;
	while (o->wait_file && !job_stop && access(o->wait_file, F_OK) != 0)
		nanosleep(&tick, NULL);
}
