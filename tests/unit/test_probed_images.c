// SPDX-License-Identifier: BSD-2-Clause
/* Files looked at: what they are, which functions are hooked, why others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#define image elf_image /* there are two kinds of images here */
#include "elf_image.h"
#undef image
#include "probe/identity.h"
#include "probe/images.h"
#include "rig.h"

enum { AT_MORE_NAMES = 0x60, DYNSTR_ROOM = AT_HASH - AT_DYNSTR };

struct shelf {
	struct elf_image elf;
	struct selection *selection;
	struct images *images;
	uint32_t names_end;
};

static void rename_symbol(struct shelf *s, unsigned symbol, const char *name)
{
	assert_true(s->names_end + strlen(name) < DYNSTR_ROOM);
	s->elf.dynsym[symbol].st_name = image_string(&s->elf, AT_DYNSTR, &s->names_end, name);
}

static void shelf_new(struct shelf *s, const char *spec, struct images_options o,
		      struct probes *p)
{
	char why[128];

	memset(s, 0, sizeof(*s));
	s->selection = malloc(sizeof(*s->selection));
	assert_non_null(s->selection);
	assert_int_equal(selection_parse(s->selection, spec, why, sizeof(why)), 0);
	o.selection = s->selection;
	assert_int_equal(images_new(&s->images, p, &o), 0);
	image_make(&s->elf);
	s->names_end = AT_MORE_NAMES;
	s->elf.section[SECTION_DYNSTR].sh_size = DYNSTR_ROOM;
	for (unsigned i = 0; i < DYNAMIC_ENTRIES; i++)
		if (s->elf.dynamic[i].d_tag == DT_STRSZ)
			s->elf.dynamic[i].d_un.d_val = DYNSTR_ROOM;
	rename_symbol(s, SYMBOL_ALPHA, "cuLaunchKernel");
	rename_symbol(s, SYMBOL_BETA, "cuCtxSynchronize");
	rename_symbol(s, SYMBOL_RESOLVER, "cuStreamSynchronize");
}

static void shelf_free(struct shelf *s)
{
	images_free(s->images);
	image_free(&s->elf);
	free(s->selection);
}

static const struct images_options dry = {.dry = true};

/* Adds the ELF as it is now, under that name. */
static int add(struct shelf *s, const char *path, struct image **out)
{
	int fd = image_file(&s->elf, s->elf.size), ret;

	ret = images_add(s->images, fd, path, 55, out);
	close(fd);
	return ret;
}

static const struct image_site *site_of(const struct image *i, const char *api)
{
	for (size_t n = 0; n < i->sites_count; n++)
		if (i->sites[n].api == rig_api(api))
			return &i->sites[n];
	fail_msg("%s is not among the sites", api);
	return NULL;
}

static void expect_hooked(const struct image *i, const char *api, uint64_t offset)
{
	const struct image_site *site = site_of(i, api);

	assert_int_equal(site->state, SITE_HOOKED);
	assert_int_equal(site->offset, offset);
	assert_string_equal(site->reason, "");
}

static void expect_not_hooked(const struct image *i, const char *api, const char *part)
{
	const struct image_site *site = site_of(i, api);

	assert_int_equal(site->state, SITE_NOT_HOOKED);
	if (!strstr(site->reason, part))
		fail_msg("\"%s\" does not say \"%s\"", site->reason, part);
}

static void a_driver(void **state)
{
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "driver", dry, NULL);
	assert_int_equal(add(&s, "/usr/lib/libcuda.so.580.65.06", &i), 1);
	assert_non_null(i);
	assert_int_equal(i->kind, IMAGE_DRIVER);
	assert_string_equal(i->path, "/usr/lib/libcuda.so.580.65.06");
	assert_string_equal(i->version, "580.65.06");
	assert_string_equal(i->build_id, "0abbccddee");
	assert_int_equal(i->mapped, 55);
	assert_int_equal(i->slot, 0); /* dry: not probed */
	assert_null(i->link);
	assert_null(i->trouble);
	assert_int_equal(i->sites_count, 3);
	assert_int_equal(i->hooked, 2);
	expect_hooked(i, "cuLaunchKernel", 0x1000);
	expect_hooked(i, "cuCtxSynchronize", 0x1020);
	expect_not_hooked(i, "cuStreamSynchronize", "resolve");
	assert_int_equal(images_count(s.images), 1);
	assert_ptr_equal(images_get(s.images, 0), i);
	assert_null(images_get(s.images, 1));
	shelf_free(&s);
	images_free(NULL);
}

static void a_file_is_looked_at_once(void **state)
{
	struct image *first = NULL, *again = NULL;
	struct shelf s;
	struct stat st;
	int fd;

	shelf_new(&s, "driver", dry, NULL);
	fd = image_file(&s.elf, s.elf.size);
	assert_int_equal(fstat(fd, &st), 0);
	assert_false(images_known(s.images, st.st_dev, st.st_ino));
	assert_int_equal(images_add(s.images, fd, "/a/libcuda.so.1", 1, &first), 1);
	assert_true(images_known(s.images, st.st_dev, st.st_ino));
	assert_false(images_known(s.images, st.st_dev + 1, st.st_ino));
	assert_false(images_known(s.images, st.st_dev, st.st_ino + 1));
	assert_int_equal(images_add(s.images, fd, "/b/other.so", 2, &again), 0);
	assert_ptr_equal(again, first);
	assert_int_equal(images_count(s.images), 1);
	close(fd);
	shelf_free(&s);
}

/* Many strangers are remembered, and none of them is kept. */
static void files_that_are_none_of_ours(void **state)
{
	struct images_options o = {.dry = true, .static_runtime = true};
	struct image *i = (struct image *)&o;
	struct shelf s;
	int text = memfd_create("text", MFD_CLOEXEC);

	shelf_new(&s, "runtime", o, NULL);
	for (int n = 0; n < 200; n++) {
		assert_int_equal(add(&s, "/usr/lib/libfoo.so.1", &i), 0);
		assert_null(i);
	}
	assert_int_equal(write(text, "#!/bin/sh\n", 10), 10);
	assert_int_equal(images_add(s.images, text, "/usr/lib/libcuda.so.1", 0, &i), 0);
	assert_null(i);
	assert_int_equal(images_add(s.images, -1, "/usr/lib/libcuda.so.1", 0, &i), -EBADF);
	assert_null(i);
	assert_int_equal(images_count(s.images), 0);
	close(text);
	shelf_free(&s);
}

static void two_names_of_one_function(void **state)
{
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "driver", dry, NULL);
	s.elf.dynsym[SYMBOL_BETA].st_value = s.elf.dynsym[SYMBOL_ALPHA].st_value;
	assert_int_equal(add(&s, "libcuda.so.1", &i), 1);
	assert_int_equal(i->hooked, 1);
	expect_hooked(i, "cuLaunchKernel", 0x1000);
	expect_not_hooked(i, "cuCtxSynchronize", "another name");
	assert_string_equal(i->version, "1");
	shelf_free(&s);
}

static void slow_sites_are_for_those_who_want_them(void **state)
{
	struct images_options slow = {.dry = true, .allow_slow = true};
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "driver", dry, NULL);
	memset(s.elf.bytes + AT_TEXT, 0x48, IMAGE_SIZE - AT_TEXT); /* a prefix, or so */
	assert_int_equal(add(&s, "libcuda.so.1", &i), 1);
	assert_int_equal(i->hooked, 0);
	expect_not_hooked(i, "cuLaunchKernel", "single-stepped");
	assert_non_null(strstr(i->trouble, "--allow-slow-probes"));
	shelf_free(&s);
	shelf_new(&s, "driver", slow, NULL);
	memset(s.elf.bytes + AT_TEXT, 0x48, IMAGE_SIZE - AT_TEXT);
	assert_int_equal(add(&s, "libcuda.so.1", &i), 1);
	assert_int_equal(i->hooked, 2);
	assert_int_equal(site_of(i, "cuLaunchKernel")->state, SITE_HOOKED);
	shelf_free(&s);
}

static void only_what_is_asked_for(void **state)
{
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "cuCtxSynchronize,cudaMalloc", dry, NULL);
	assert_int_equal(add(&s, "libcuda.so.1", &i), 1);
	assert_int_equal(i->sites_count, 1);
	expect_hooked(i, "cuCtxSynchronize", 0x1020);
	shelf_free(&s);
	shelf_new(&s, "cudaMalloc", dry, NULL);
	assert_int_equal(add(&s, "libcuda.so.1", &i), 1);
	assert_int_equal(i->kind, IMAGE_DRIVER);
	assert_int_equal(i->sites_count, 0);
	assert_non_null(strstr(i->trouble, "none of the functions asked for"));
	shelf_free(&s);
}

static void runtimes_and_nccl(void **state)
{
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "runtime", dry, NULL);
	rename_symbol(&s, SYMBOL_ALPHA, "cudaLaunchKernel");
	rename_symbol(&s, SYMBOL_BETA, "cudaMalloc");
	rename_symbol(&s, SYMBOL_RESOLVER, "nobody");
	assert_int_equal(add(&s, "/opt/libcudart.so.13", &i), 1);
	assert_int_equal(i->kind, IMAGE_RUNTIME);
	assert_int_equal(i->hooked, 2);
	assert_string_equal(i->version, "13");
	rename_symbol(&s, SYMBOL_ALPHA, "ncclAllReduce");
	rename_symbol(&s, SYMBOL_BETA, "ncclSend");
	assert_int_equal(add(&s, "/opt/libnccl.so.2", &i), 1);
	assert_int_equal(i->kind, IMAGE_NCCL);
	assert_int_equal(i->hooked, 2);
	shelf_free(&s);
}

static void expect_damaged(struct shelf *s, const char *path)
{
	struct image *i = NULL;

	assert_int_equal(add(s, path, &i), 1);
	assert_int_equal(i->kind, IMAGE_DRIVER);
	assert_int_equal(i->hooked, 0);
	assert_int_equal(i->sites_count, 0); /* nothing claims to be hooked */
	assert_non_null(strstr(i->trouble, "damaged"));
}

/* A file that calls itself the driver, and is cut or lies: told, and not followed. */
static void tables_that_lie(void **state)
{
	struct image *i = NULL;
	struct shelf s;

	shelf_new(&s, "driver", dry, NULL);
	s.elf.section[SECTION_STRTAB].sh_size -= 1; /* seen once .dynsym was read */
	expect_damaged(&s, "libcuda.so.1");
	s.elf.section[SECTION_SYMTAB].sh_offset = 1ULL << 40;
	expect_damaged(&s, "libcuda.so.1");
	s.elf.size = AT_SECTIONS; /* cut */
	expect_damaged(&s, "libcuda.so.1");
	assert_int_equal(add(&s, "libfoo.so.1", &i), 0);
	assert_null(i);
	assert_int_equal(images_count(s.images), 3);
	shelf_free(&s);
}

/* ---- with probes ---- */

static void probes_of_an_image(void **state)
{
	struct rig *g = rig_new(RUNG_AUTO);
	struct image *one = NULL, *two = NULL;
	struct images_options wet = {0};
	char path[] = "/tmp/libcuda.so.XXXXXX";
	uint64_t offsets[2] = {0x1000, 0x1020};
	struct shelf s;
	int fd = mkstemp(path), other;

	shelf_new(&s, "driver", wet, g->p);
	assert_int_equal(write(fd, s.elf.bytes, s.elf.size), (ssize_t)s.elf.size);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(images_add(s.images, fd, path, 0, &one), 1);
	assert_int_equal(one->slot, 1); /* 0 is calibration's */
	assert_non_null(one->link);
	assert_true(one->covered > 0);
	assert_int_equal(identity_probed(fd, offsets, 2), 2);
	other = image_file(&s.elf, s.elf.size); /* the same bytes, another file */
	assert_int_equal(images_add(s.images, other, "libcuda.so.2", 0, &two), 1);
	assert_int_equal(two->slot, 2);
	assert_null(two->same_as);
	assert_int_equal(identity_probed(other, offsets, 2), 2);
	images_detach(s.images);
	assert_int_equal(identity_probed(fd, offsets, 2), 0);
	assert_int_equal(identity_probed(other, offsets, 2), 0);
	assert_int_equal(images_count(s.images), 2);
	assert_int_equal(one->hooked, 2);
	images_detach(s.images); /* twice is once */
	close(other);
	close(fd);
	unlink(path);
	shelf_free(&s);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_driver),
		cmocka_unit_test(a_file_is_looked_at_once),
		cmocka_unit_test(files_that_are_none_of_ours),
		cmocka_unit_test(two_names_of_one_function),
		cmocka_unit_test(slow_sites_are_for_those_who_want_them),
		cmocka_unit_test(only_what_is_asked_for),
		cmocka_unit_test(runtimes_and_nccl),
		cmocka_unit_test(tables_that_lie),
		cmocka_unit_test(probes_of_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
