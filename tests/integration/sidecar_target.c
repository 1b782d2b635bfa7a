/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sidecar_target LIBDIR LIBRARY [LIBCUPTI]: a program that uses the simulated CUDA of LIBDIR
 * as it is told, a line of standard input at a time, and answers each with a line. LIBRARY
 * is libgbpf-cupti.so, LIBCUPTI what it has loaded on its own account, "-": none. With a
 * fourth argument it does not load CUDA at all until "cuda" says so.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/cupti_abi.h"
#include "tests/sim/simcuda.h"

#define KERNELS 4

static struct {
	CUresult (*init)(unsigned flags);
	CUresult (*retain)(CUcontext *out, CUdevice device);
	CUresult (*set_current)(CUcontext ctx);
	CUresult (*load)(CUmodule *out, const void *image);
	CUresult (*unload)(CUmodule module);
	CUresult (*get)(CUfunction *out, CUmodule module, const char *name);
	CUresult (*launch)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			   unsigned by, unsigned bz, unsigned smem, CUstream stream, void **params,
			   void **extra);
	CUresult (*sync)(void);
	CUresult (*alloc)(CUdeviceptr *out, size_t bytes);
	CUresult (*set)(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream);
	CUresult (*reset)(CUdevice device);
} cuda;

static const char *const cuda_names[] = {
	"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData",
	"cuModuleUnload", "cuModuleGetFunction", "cuLaunchKernel", "cuCtxSynchronize",
	"cuMemAlloc_v2", "cuMemsetD8Async", "cuDevicePrimaryCtxReset_v2",
};

static struct {
	int (*subscribe)(void **handle, cupti_callback_fn fn, void *user);
	int (*unsubscribe)(void *handle);
	int (*register_callbacks)(cupti_request_fn request, cupti_complete_fn complete);
	int (*enable)(uint32_t kind);
	int (*disable)(uint32_t kind);
	int (*flush)(uint32_t flags);
	int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
	int (*thread_type)(int *type);
	void (*guard)(cupti_complete_fn complete);
} other;

static const char *const other_names[] = {
	"cuptiSubscribe", "cuptiUnsubscribe", "cuptiActivityRegisterCallbacks",
	"cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityFlushAll",
	"cuptiActivityGetNextRecord", "cuptiGetThreadIdType", "simCuptiGuard",
};

static CUfunction functions[KERNELS];
static CUmodule module;
static unsigned received; /* by the other client */
static void *slot;
static bool strict;

static void resolve(void *handle, const char *const *names, size_t count, void **to)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = dlsym(handle, names[i]);
		if (!to[i]) {
			fprintf(stderr, "no %s\n", names[i]);
			exit(2);
		}
	}
}

static void *open_in(const char *dir, const char *name)
{
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return handle;
}

static void load_module(const char *first)
{
	struct sim_kernel kernels[KERNELS] = { { first, 2000 }, { "_Z4slowv", 300000000 },
					       { "_Z4longv", 340000 },
					       { "_Z7endlessv", 3600000000000 } };
	struct sim_image image = { SIM_IMAGE_MAGIC, KERNELS, kernels };

	cuda.load(&module, &image);
	for (int i = 0; i < KERNELS; i++)
		cuda.get(&functions[i], module, kernels[i].name);
}

static void begin_cuda(const char *dir)
{
	CUcontext ctx;

	resolve(open_in(dir, "libcuda.so.1"), cuda_names,
		sizeof(cuda_names) / sizeof(*cuda_names), (void **)&cuda);
	cuda.init(0);
	cuda.retain(&ctx, 0);
	cuda.set_current(ctx);
	load_module("_Z5firstPf");
}

static int launches(int count, int which, unsigned grid)
{
	int err = 0;

	for (int i = 0; i < count; i++)
		err |= cuda.launch(functions[which], grid ? grid : (unsigned)i + 1, 1, 1, 64, 1, 1,
				   0, NULL, NULL, NULL);
	return err;
}

static atomic_bool busy_on;

static void *launch_on(void *user)
{
	while (atomic_load(&busy_on)) {
		launches(20, 0, 1);
		cuda.sync();
		usleep(200); /* the tests' loaders are slow readers */
	}
	return NULL;
}

/* Threads that launch all the time, until there are to be none. */
static int busy(int count)
{
	static pthread_t threads[16];
	static int running;

	atomic_store(&busy_on, false);
	while (running)
		pthread_join(threads[--running], NULL);
	atomic_store(&busy_on, count > 0);
	while (running < count && running < 16)
		if (pthread_create(&threads[running++], NULL, launch_on, NULL))
			return -1;
	return 0;
}

#define OTHERS_BYTES ((size_t)1 << 16)

static void give(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = OTHERS_BYTES;
	*buffer = aligned_alloc(8, *size);
	*max_records = 0;
}

/* Frees whatever it is handed, as many do; or is strict and leaves alone what is not its own. */
static void take(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;

	if (strict && size != OTHERS_BYTES)
		return;
	while (!other.next(buffer, valid, &record))
		received++;
	free(buffer);
}

static int other_client(const char *what, const char *cupti)
{
	if (!other.subscribe)
		resolve(dlopen(cupti, RTLD_NOW), other_names,
			sizeof(other_names) / sizeof(*other_names), (void **)&other);
	if (!strcmp(what, "subscribe"))
		return other.subscribe(&slot, NULL, NULL);
	if (!strcmp(what, "unsubscribe"))
		return other.unsubscribe(slot);
	if (!strcmp(what, "register")) {
		other.guard(take);
		return other.register_callbacks(give, take);
	}
	if (!strcmp(what, "strict"))
		return !(strict = true);
	if (!strcmp(what, "enable"))
		return other.enable(CUPTI_CONCURRENT_KERNEL) | other.enable(CUPTI_MEMSET);
	if (!strcmp(what, "disable"))
		return other.disable(CUPTI_CONCURRENT_KERNEL) | other.disable(CUPTI_MEMSET);
	if (!strcmp(what, "calls"))
		return other.enable(CUPTI_RUNTIME);
	if (!strcmp(what, "flush"))
		return other.flush(CUPTI_FLUSH_FORCED);
	if (!strcmp(what, "type")) {
		int type = -1;

		other.thread_type(&type);
		return type;
	}
	return (int)received;
}

static int begin(const char *library, int fd)
{
	void *handle = dlopen(library, RTLD_NOW);
	int (*entry)(int fd) = NULL;

	if (handle)
		*(void **)&entry = dlsym(handle, "gbpf_sidecar_begin");
	return entry ? entry(fd) : -1;
}

/* Serves whoever listens at path. */
static int visit(const char *library, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return begin(library, fd);
}

/* What a child of this process can do is what matters: no output but its status. */
static int in_child(bool bare, bool stays, const char *library, int fd)
{
	pid_t child = bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	int status = -1;

	if (!child) {
		alarm(10);
		launches(50, 0, 1);
		if (stays)
			pause();
		if (fd >= 0)
			_exit(-begin(library, fd));
		_exit(0);
	}
	if (!stays)
		waitpid(child, &status, 0);
	return stays ? child : status;
}

static int count_threads(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			count += !strncmp(comm, name, strlen(name));
		fclose(f);
	}
	closedir(dir);
	return count;
}

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -3; /* ".", ".." and that of the directory */

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int obey(char **argv, const char *word, const char *text, int number)
{
	CUdeviceptr at;

	if (!strcmp(word, "begin"))
		return begin(argv[2], number);
	if (!strcmp(word, "begin-with"))
		return begin(text, number);
	if (!strcmp(word, "visit"))
		return visit(argv[2], text);
	if (!strcmp(word, "open"))
		return dlopen(text, RTLD_NOW) ? 0 : 1;
	if (!strcmp(word, "cuda"))
		return begin_cuda(argv[1]), 0;
	if (!strcmp(word, "launch"))
		return launches(number, 0, 1) | cuda.sync();
	if (!strcmp(word, "shapes"))
		return launches(number, 0, 0) | cuda.sync();
	if (!strcmp(word, "slow"))
		return launches(number, 1, 1);
	if (!strcmp(word, "queue"))
		return launches(number, 2, 1);
	if (!strcmp(word, "endless"))
		return launches(number, 3, 1);
	if (!strcmp(word, "busy"))
		return busy(number);
	if (!strcmp(word, "set"))
		return cuda.alloc(&at, 4096) | cuda.set(at, 1, 4096, NULL) | cuda.sync();
	if (!strcmp(word, "sync"))
		return cuda.sync();
	if (!strcmp(word, "module"))
		return cuda.unload(module), load_module(text), 0;
	if (!strcmp(word, "reset"))
		return cuda.reset(0);
	if (!strcmp(word, "other"))
		return other_client(text, argv[3]);
	if (!strcmp(word, "fork") || !strcmp(word, "clone"))
		return in_child(word[0] == 'c', false, argv[2], number);
	if (!strcmp(word, "fork-and-stay"))
		return in_child(false, true, argv[2], -1);
	if (!strcmp(word, "threads"))
		return count_threads("gbpf-sidecar");
	if (!strcmp(word, "files"))
		return count_files();
	if (!strcmp(word, "exit"))
		exit(number);
	return -1;
}

int main(int argc, char **argv)
{
	char line[1024], word[64], text[512];
	int number;

	if (argc < 4)
		return 2;
	if (argc == 4)
		begin_cuda(argv[1]);
	if (strcmp(argv[3], "-") != 0 && !dlopen(argv[3], RTLD_NOW))
		return 2;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		number = -1;
		text[0] = '\0';
		if (sscanf(line, "%63s %d", word, &number) < 2)
			(void)sscanf(line, "%63s %511s %d", word, text, &number);
		printf("%d\n", obey(argv, word, text, number));
		fflush(stdout);
	}
	return 0;
}
