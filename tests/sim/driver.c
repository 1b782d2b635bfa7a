/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules, libraries and functions. */
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_func *free_funcs;

/* Where a program may find the name, in a page as awkward as was asked for. */
static const char *place_name(const char *name)
{
	size_t size = strlen(name) + 1;
	size_t room = (size + 4095) & ~4095ul;
	char *page;
	int fd;

	switch (sim_settings.name_mode) {
	case NAME_UNREADABLE:
		page = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return page == MAP_FAILED ? NULL : page;
	case NAME_GARBAGE:
		return (const char *)"\x01\x7f\xff\xfe not a name";
	case NAME_COLD:
		fd = memfd_create("names", MFD_CLOEXEC);
		page = MAP_FAILED;
		if (fd >= 0 && pwrite(fd, name, size, 0) == (ssize_t)size)
			page = mmap(NULL, room, PROT_READ, MAP_PRIVATE, fd, 0);
		if (fd >= 0)
			close(fd);
		return page == MAP_FAILED ? NULL : page; /* never touched here */
	default:
		return name;
	}
}

/* Last freed, first reused: a module loaded after another has its handles. */
static struct sim_func *func_new(struct sim_module *m, const struct sim_kernel *k)
{
	struct sim_func *f = free_funcs;

	if (f)
		free_funcs = f->next;
	else if (!(f = aligned_alloc(64, (sizeof(*f) + 63) & ~63ul)))
		return NULL;
	memset(f, 0, sizeof(*f));
	f->name = strdup(k->name);
	f->name_id = sim_work_name(f->name);
	f->duration_ns = k->duration_ns > SIM_FOREVER ? SIM_FOREVER : (int64_t)k->duration_ns;
	f->module = m;
	f->word[0] = (uintptr_t)m;
	f->word[sim_settings.name_word] = f->name ? (uintptr_t)place_name(f->name) : 0;
	f->next = m->funcs;
	m->funcs = f;
	return f;
}

static void unplace_name(struct sim_func *f)
{
	void *placed = (void *)f->word[sim_settings.name_word];
	enum sim_name_mode mode = sim_settings.name_mode;

	if (placed && f->name && (mode == NAME_COLD || mode == NAME_UNREADABLE))
		munmap(placed, (strlen(f->name) + 1 + 4095) & ~4095ul);
	sim_work_unload((char *)f->name);
}

static void module_free(struct sim_module *m)
{
	struct sim_func *f, *next;

	pthread_mutex_lock(&module_lock);
	for (f = m->funcs; f; f = next) {
		next = f->next;
		unplace_name(f);
		memset(f, 0, sizeof(*f));
		f->next = free_funcs;
		free_funcs = f;
	}
	pthread_mutex_unlock(&module_lock);
	free(m);
}

static CUresult module_load(struct sim_module **out, const struct sim_image *image, bool library)
{
	struct sim_module *m = calloc(1, sizeof(*m));
	bool ok = m != NULL;

	*out = NULL;
	if (!ok || !image || image->magic != SIM_IMAGE_MAGIC) {
		free(m);
		return ok ? SIM_NO_BINARY : SIM_OUT_OF_MEMORY;
	}
	sim_cold(4);
	pthread_mutex_lock(&module_lock);
	for (uint64_t i = image->count; ok && i-- > 0;) {
		struct sim_func *f = func_new(m, &image->kernels[i]);

		ok = f != NULL;
		if (ok && library) {
			f->twin = func_new(m, &image->kernels[i]);
			ok = f->twin != NULL;
		}
	}
	pthread_mutex_unlock(&module_lock);
	if (!ok) {
		module_free(m);
		return SIM_OUT_OF_MEMORY;
	}
	*out = m;
	return SIM_SUCCESS;
}

/* A library's kernels have a twin, the functions are what they point to. */
static CUresult find_func(struct sim_func **out, struct sim_module *m, const char *name,
			  bool kernel)
{
	*out = NULL;
	if (!m || !name)
		return SIM_INVALID_HANDLE;
	for (struct sim_func *f = m->funcs; f; f = f->next)
		if (!strcmp(f->name, name) && !!f->twin == kernel) {
			*out = f;
			return SIM_SUCCESS;
		}
	return SIM_NOT_FOUND;
}

SIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SIM_CALL();
	SIM_RETURN(module_load(module, image, false));
}

SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
				       int *options, void **values)
{
	SIM_CALL();
	SIM_RETURN(module_load(module, image, false));
}

SIM_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	SIM_CALL();
	SIM_RETURN(module_load(module, image, false));
}

SIM_EXPORT CUresult cuModuleUnload(CUmodule module)
{
	SIM_CALL();
	if (!module)
		SIM_RETURN(SIM_INVALID_HANDLE);
	module_free(module);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *func, CUmodule module, const char *name)
{
	SIM_CALL();
	SIM_RETURN(find_func(func, module, name, false));
}

SIM_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit,
				      void **jit_values, unsigned jit_count, int *options,
				      void **values, unsigned count)
{
	SIM_CALL();
	SIM_RETURN(module_load(library, code, true));
}

SIM_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	SIM_CALL();
	if (!library)
		SIM_RETURN(SIM_INVALID_HANDLE);
	module_free(library);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	SIM_CALL();
	SIM_RETURN(find_func(kernel, library, name, true));
}

SIM_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	SIM_CALL();
	*module = library;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuKernelGetFunction(CUfunction *func, CUkernel kernel)
{
	SIM_CALL();
	if (!kernel || !kernel->twin)
		SIM_RETURN(SIM_INVALID_HANDLE);
	*func = kernel->twin;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	SIM_CALL();
	*name = kernel->name;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuFuncGetName(const char **name, CUfunction func)
{
	SIM_CALL();
	*name = func->name;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction func)
{
	SIM_CALL();
	*module = func->module;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction func)
{
	SIM_CALL();
	*value = 32;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuFuncSetAttribute(CUfunction func, int attribute, int value)
{
	SIM_CALL();
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuFuncLoad(CUfunction func)
{
	SIM_CALL();
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
					int *status)
{
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	SIM_CALL();
	*pfn = self ? dlsym(self, symbol) : NULL;
	if (self)
		dlclose(self);
	if (status)
		*status = *pfn ? 0 : 1;
	SIM_RETURN(*pfn ? SIM_SUCCESS : SIM_NOT_FOUND);
}

#define OCCUPANCY(name, ...)                                                                       \
	SIM_EXPORT CUresult name(int *blocks, CUfunction func, int block, size_t smem __VA_ARGS__) \
	{                                                                                          \
		SIM_CALL();                                                                      \
		*blocks = block > 0 ? 2048 / block : 0;                                            \
		SIM_RETURN(SIM_SUCCESS);                                                           \
	}
OCCUPANCY(cuOccupancyMaxActiveBlocksPerMultiprocessor)
OCCUPANCY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, , unsigned flags)
