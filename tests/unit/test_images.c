// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/target.h"

static char root[64];

static void hints_follow_the_base_name(void **state)
{
	static const struct {
		const char *path;
		enum image_hint hint;
	} cases[] = {
		{ "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04", HINT_DRIVER },
		{ "/usr/lib/libcuda.so.1 (deleted)", HINT_DRIVER },
		{ "libcuda.so", HINT_DRIVER },
		{ "/usr/local/cuda/lib64/libcudart.so.13.0.48", HINT_RUNTIME },
		{ "/x/torch/lib/libcudart-a7b20f20.so.11.0", HINT_RUNTIME },
		{ "/x/libcudart-d0da41ae.so", HINT_RUNTIME },
		{ "/a\nb/libcudart.so (deleted)", HINT_RUNTIME },
		{ "/x/nvidia/nccl/lib/libnccl.so.2", HINT_NCCL },
		{ "/usr/lib/libcudadebugger.so.1", HINT_NONE },
		{ "/usr/lib/libcuda.sock", HINT_NONE },
		{ "/usr/lib/libcuda.so1", HINT_NONE },
		{ "/usr/lib/libcuda.so.1/libc.so.6", HINT_NONE },
		{ "/usr/lib/libcuda-compat.so.1", HINT_NONE },
		{ "/usr/lib/xlibcuda.so.1", HINT_NONE },
		{ "/usr/lib/LIBCUDA.SO", HINT_NONE },
		{ "/usr/lib/libcudart_static.a", HINT_NONE },
		{ "/usr/lib/libcudart-.so.12", HINT_NONE },
		{ "/usr/lib/libcudart-static.so", HINT_NONE },
		{ "/usr/lib/libcudart-abc", HINT_NONE },
		{ "/usr/lib/libnccl-net.so", HINT_NONE },
		{ "/usr/lib/libnccl", HINT_NONE },
		{ "/libcuda.so (deleted)x", HINT_NONE },
		{ " (deleted)", HINT_NONE },
		{ "/", HINT_NONE },
		{ "", HINT_NONE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(image_hint(cases[i].path), cases[i].hint);
}

static void make_dirs(char *path)
{
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static const char *under(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", root, name);
	make_dirs(buf);
	return buf;
}

static void make_file(const char *name, mode_t mode)
{
	char path[512];
	FILE *f = fopen(under(name, path, sizeof(path)), "w");

	assert_non_null(f);
	fputs("x", f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void make_link(const char *to, const char *name)
{
	char path[512];

	assert_int_equal(symlink(to, under(name, path, sizeof(path))), 0);
}

static int set_up(void **state)
{
	char path[512], real[sizeof(root)];

	snprintf(root, sizeof(root), "/tmp/gbpf-images-XXXXXX");
	alarm(60); /* if the FIFO below should be opened */
	if (!mkdtemp(root) || !realpath(root, real))
		return -1;
	snprintf(root, sizeof(root), "%s", real);
	make_file("ve[n]v/bin/python3.12", 0755);
	make_link("python3.12", "ve[n]v/bin/python");
	make_file("ve[n]v/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12",
		  0644);
	make_file("ve[n]v/lib/python3.12/site-packages/torch/lib/libcudart-0a1b2c.so.11.0", 0644);
	make_file("ve[n]v/lib/python3.12/site-packages/torch/lib/libtorch.so", 0644);
	make_file("ve[n]v/lib/python3.12/site-packages/other/lib/libcudart.so.12", 0644);
	make_file("ld/libcuda.so.580.1", 0644);
	make_link("libcuda.so.580.1", "ld/libcuda.so.1");
	make_link("libcuda.so.1", "ld/libcuda.so");
	make_link("nowhere", "ld/libcuda.so.2");
	make_link("libcudart.so", "ld/libcudart.so");
	make_file("app/run", 0755);
	make_file("app/libcudart.so.13", 0644);
	make_file("app/data", 0644);
	make_file("packages/cupy.libs/libnccl.so.2", 0644);
	if (mkfifo(under("ld/libnccl.so.2", path, sizeof(path)), 0666))
		return -1;
	return mkdir(under("ld/libnccl.so", path, sizeof(path)), 0755);
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

struct found {
	char paths[16][256];
	enum image_hint hints[16];
	size_t count;
	int stop;
};

/* Of what is found, only what the test has put there: the machine may have CUDA of its own. */
static int collect(const char *path, enum image_hint hint, void *ctx)
{
	struct found *f = ctx;

	if (strncmp(path, root, strlen(root)))
		return 0;
	assert_true(f->count < 16);
	snprintf(f->paths[f->count], sizeof(f->paths[0]), "%s", path + strlen(root) + 1);
	f->hints[f->count++] = hint;
	return f->stop;
}

static void assert_found(const struct found *f, const char *path, enum image_hint hint)
{
	for (size_t i = 0; i < f->count; i++) {
		if (!strcmp(f->paths[i], path)) {
			assert_int_equal(f->hints[i], hint);
			return;
		}
	}
	fail_msg("%s was not found", path);
}

#define PACKAGES "ve[n]v/lib/python3.12/site-packages/"

static void installed_images_are_found_once(void **state)
{
	struct found f = { 0 };
	char path[512], list[1200];

	snprintf(list, sizeof(list), "relative::%s/ld:%s/ld/../ld:/nonexistent:", root, root);
	setenv("LD_LIBRARY_PATH", list, 1);
	setenv("VIRTUAL_ENV", under("ve[n]v", path, sizeof(path)), 1);
	assert_int_equal(images_installed(collect, &f), 0);
	assert_int_equal(f.count, 3);
	assert_found(&f, "ld/libcuda.so.580.1", HINT_DRIVER);
	assert_found(&f, PACKAGES "nvidia/cuda_runtime/lib/libcudart.so.12", HINT_RUNTIME);
	assert_found(&f, PACKAGES "torch/lib/libcudart-0a1b2c.so.11.0", HINT_RUNTIME);
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("VIRTUAL_ENV");
	f.count = 0;
	assert_int_equal(images_installed(collect, &f), 0);
	assert_int_equal(f.count, 0);
}

static void a_command_brings_its_own(void **state)
{
	struct found f = { 0 };
	char path[600], python[600], packages[600];
	char *const envp[] = { path, packages, NULL };

	snprintf(path, sizeof(path), "PATH=/nonexistent:%s/app:%s/ve[n]v/bin", root, root);
	snprintf(packages, sizeof(packages), "PYTHONPATH=%s/packages", root);
	assert_int_equal(images_of_command("python", envp, collect, &f), 0);
	assert_int_equal(f.count, 3);
	assert_found(&f, PACKAGES "torch/lib/libcudart-0a1b2c.so.11.0", HINT_RUNTIME);
	assert_found(&f, "packages/cupy.libs/libnccl.so.2", HINT_NCCL);

	f.count = 0;
	assert_int_equal(images_of_command("run", envp, collect, &f), 0);
	assert_int_equal(f.count, 2);
	assert_found(&f, "app/libcudart.so.13", HINT_RUNTIME);

	f.count = 0;
	snprintf(python, sizeof(python), "%s/ve[n]v/bin/python", root);
	assert_int_equal(images_of_command(python, NULL, collect, &f), 0);
	assert_int_equal(f.count, 2);

	f.count = 0;
	assert_int_equal(images_of_command("data", envp + 2, collect, &f), 0);
	assert_int_equal(images_of_command("", envp + 2, collect, &f), 0);
	assert_int_equal(f.count, 0);
}

static void search_stops_when_told(void **state)
{
	struct found f = { .stop = 44 };
	char path[600];
	char *const envp[] = { path, NULL };

	snprintf(path, sizeof(path), "VIRTUAL_ENV=%s/ve[n]v", root);
	assert_int_equal(images_of_command("x", envp, collect, &f), 44);
	assert_int_equal(f.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints_follow_the_base_name),
		cmocka_unit_test(installed_images_are_found_once),
		cmocka_unit_test(a_command_brings_its_own),
		cmocka_unit_test(search_stops_when_told),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
