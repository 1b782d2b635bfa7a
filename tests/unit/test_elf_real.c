/* SPDX-License-Identifier: BSD-2-Clause */
/* Files without section headers, and real ones compared with what nm says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>

#include <cmocka.h>

#include "probe/elf.h"
#include "tests/unit/elf_image.h"

/* ---- without section headers ---- */

struct names {
	char text[128]; /* each name and a blank */
	unsigned count;
};

static int join(const struct elf_symbol *s, void *ctx)
{
	struct names *n = ctx;
	size_t used = strlen(n->text);

	assert_true(s->dynamic);
	snprintf(n->text + used, sizeof(n->text) - used, "%s ", s->name);
	n->count++;
	return 0;
}

/* Opens and walks; whichever failed. */
static int names_of(const struct image *m, struct names *n)
{
	int fd = image_file(m, m->size), err;
	struct elf *e;

	*n = (struct names){.count = 0};
	err = elf_open(&e, fd);
	if (!err)
		err = elf_each_function(e, join, n);
	elf_close(e);
	close(fd);
	return err;
}

static Elf64_Dyn *entry(struct image *m, int64_t tag)
{
	for (Elf64_Dyn *d = m->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d;
	fail_msg("no dynamic entry %d", (int)tag);
	return NULL;
}

static int setup(void **state)
{
	struct image *m = malloc(sizeof(*m));

	assert_non_null(m);
	image_make(m);
	m->header->e_shoff = 0;
	m->header->e_shnum = 0;
	m->header->e_shstrndx = 0;
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	image_free(*state);
	free(*state);
	return 0;
}

static void symbols_by_hash(void **state)
{
	struct image *m = *state;
	struct names n;

	assert_int_equal(names_of(m, &n), 0);
	assert_string_equal(n.text, "alpha beta resolver ");
	m->hash[1] = SYMBOL_BETA; /* one chain less: beta is not part of the table */
	assert_int_equal(names_of(m, &n), 0);
	assert_string_equal(n.text, "alpha ");
	m->hash[1] = UINT32_MAX;
	assert_int_equal(names_of(m, &n), -EBADMSG);
	entry(m, DT_HASH)->d_un.d_val = 0x5000;
	assert_int_equal(names_of(m, &n), -EBADMSG);
}

static void symbols_by_gnu_hash(void **state)
{
	struct image *m = *state;
	struct names n;

	entry(m, DT_HASH)->d_tag = DT_DEBUG;
	assert_int_equal(names_of(m, &n), 0);
	assert_string_equal(n.text, "alpha beta resolver ");
	m->gnu_hash[8] = 21; /* the chain ends at beta */
	assert_int_equal(names_of(m, &n), 0);
	assert_string_equal(n.text, "alpha beta ");
	m->gnu_hash[6] = 0; /* the bucket is empty: nothing is defined */
	assert_int_equal(names_of(m, &n), 0);
	assert_int_equal(n.count, 0);
}

static void lying_gnu_hash(void **state)
{
	struct image *m = *state;
	struct names n;

	entry(m, DT_HASH)->d_tag = DT_DEBUG;
	m->gnu_hash[6] = 100000; /* the chain would be past the end of the file */
	assert_int_equal(names_of(m, &n), -EBADMSG);
	m->gnu_hash[6] = UINT32_MAX;
	assert_int_equal(names_of(m, &n), -EBADMSG);
	m->gnu_hash[0] = UINT32_MAX; /* buckets */
	assert_int_equal(names_of(m, &n), -EBADMSG);
	m->gnu_hash[0] = 0;
	m->gnu_hash[1] = UINT32_MAX; /* first symbol: as many as it says */
	assert_int_equal(names_of(m, &n), -EBADMSG);
	m->gnu_hash[0] = 1;
	m->gnu_hash[2] = UINT32_MAX; /* bloom words */
	assert_int_equal(names_of(m, &n), -EBADMSG);
	entry(m, DT_GNU_HASH)->d_un.d_val = UINT64_MAX;
	assert_int_equal(names_of(m, &n), -EBADMSG);
}

static void chain_without_end(void **state)
{
	struct image *m = *state;
	struct names n;
	const size_t size = 4 << 20, chain = AT_GNU_HASH + 28; /* of symbol 1 */
	const uint32_t first = (IMAGE_SIZE - AT_GNU_HASH) / 4, one = 1;
	uint8_t *large = calloc(1, size);

	/* Zeros behind the image: no word there ends the chain, until one does. */
	assert_non_null(large);
	entry(m, DT_HASH)->d_tag = DT_DEBUG;
	m->gnu_hash[6] = first;
	memcpy(large, m->bytes, m->size);
	free(m->bytes);
	m->bytes = large;
	m->size = size;
	assert_int_equal(names_of(m, &n), -EBADMSG);
	memcpy(large + chain + 4 * (first - 1 + 65536), &one, sizeof(one));
	assert_int_equal(names_of(m, &n), -EBADMSG);
	memcpy(large + chain + 4 * (first - 1 + 65535), &one, sizeof(one));
	assert_int_equal(names_of(m, &n), 0);
}

static void lying_dynamic(void **state)
{
	struct image *m = *state;
	struct names n;

	entry(m, DT_STRSZ)->d_un.d_val = UINT64_MAX;
	assert_int_equal(names_of(m, &n), -EBADMSG);
	entry(m, DT_STRSZ)->d_un.d_val = 0;
	assert_int_equal(names_of(m, &n), 0);
	assert_int_equal(n.count, 0);
	entry(m, DT_STRTAB)->d_un.d_val = 0x6000; /* in no segment */
	assert_int_equal(names_of(m, &n), 0);
	assert_int_equal(n.count, 0);
	entry(m, DT_SYMTAB)->d_un.d_val = 0x6000;
	assert_int_equal(names_of(m, &n), -EBADMSG);
	entry(m, DT_SYMTAB)->d_tag = DT_DEBUG;
	assert_int_equal(names_of(m, &n), 0);
	/* No entry ends the table. */
	for (unsigned i = 0; i < DYNAMIC_ENTRIES; i++)
		m->dynamic[i].d_tag = DT_DEBUG;
	assert_int_equal(names_of(m, &n), 0);
	assert_int_equal(n.count, 0);
}

static const char *id_of(const struct image *m, char *buf, size_t size)
{
	int fd = image_file(m, m->size);
	struct elf *e;

	assert_int_equal(elf_open(&e, fd), 0);
	snprintf(buf, size, "%s", elf_build_id(e));
	elf_close(e);
	close(fd);
	return buf;
}

static void lying_notes(void **state)
{
	struct image *m = *state;
	uint32_t *notes = (uint32_t *)(m->bytes + AT_NOTE); /* 5 words of another, then the id's */
	char buf[256];

	assert_string_equal(id_of(m, buf, sizeof(buf)), "0abbccddee");
	notes[1] = 0x7fffffff; /* the first claims to go on for ever */
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	notes[1] = UINT32_MAX;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	notes[0] = UINT32_MAX;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	notes[0] = 4;
	notes[1] = 3;
	notes[6] = 100; /* longer than the segment */
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	m->segment[SEGMENT_NOTE].p_filesz = 1000; /* longer than any id */
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	notes[6] = 40; /* longer than the segment, yet no longer than an id may be */
	m->segment[SEGMENT_NOTE].p_filesz = 48;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	notes[6] = 5;
	m->segment[SEGMENT_NOTE].p_filesz = 0;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	m->segment[SEGMENT_NOTE].p_filesz = UINT64_MAX;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "");
	m->segment[SEGMENT_NOTE].p_filesz = 48;
	assert_string_equal(id_of(m, buf, sizeof(buf)), "0abbccddee");
}

/* ---- real files ---- */

struct function {
	uint64_t value;
	char name[200];
};

struct list {
	struct function *functions;
	size_t count;
	bool dynamic; /* which of the two tables is wanted */
};

static void add(struct list *l, const char *name, uint64_t value)
{
	/* Doubles at powers of two. */
	if (!(l->count & (l->count - 1)))
		l->functions = realloc(l->functions,
				       (l->count ? 2 * l->count : 1) * sizeof(*l->functions));
	assert_non_null(l->functions);
	memset(&l->functions[l->count], 0, sizeof(l->functions[0]));
	l->functions[l->count].value = value;
	snprintf(l->functions[l->count].name, sizeof(l->functions[0].name), "%s", name);
	l->count++;
}

static int collect(const struct elf_symbol *s, void *ctx)
{
	struct list *l = ctx;

	if (s->dynamic == l->dynamic)
		add(l, s->name, s->value);
	return 0;
}

static int by_value_and_name(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* name|value|class|type|…; types of indirect functions have no name of their own there. */
static void read_nm(struct list *l, const char *options, const char *path)
{
	char command[512], line[2048], name[512], type[64];
	unsigned long long value;
	FILE *f;

	snprintf(command, sizeof(command),
		 "LC_ALL=C nm --defined-only --without-symbol-versions -f sysv %s '%s'", options,
		 path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%511[^| ] |%llx|%*[^|]|%63[^|]|", name, &value, type) == 3 &&
		    (strstr(type, "FUNC") || strstr(type, "<OS specific>: 10")))
			add(l, name, value);
	assert_int_equal(pclose(f), 0);
}

static void compare_with_nm(const char *path, bool dynamic, size_t at_least)
{
	struct list ours = {.dynamic = dynamic}, theirs = {.dynamic = dynamic};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf *e;

	assert_true(fd >= 0);
	assert_int_equal(elf_open(&e, fd), 0);
	assert_int_equal(elf_each_function(e, collect, &ours), 0);
	elf_close(e);
	close(fd);
	read_nm(&theirs, dynamic ? "-D" : "", path);
	assert_true(theirs.count >= at_least);
	assert_int_equal(ours.count, theirs.count);
	if (!ours.functions || !theirs.functions) {
		fail();
		return;
	}
	qsort(ours.functions, ours.count, sizeof(ours.functions[0]), by_value_and_name);
	qsort(theirs.functions, theirs.count, sizeof(theirs.functions[0]), by_value_and_name);
	for (size_t i = 0; i < ours.count; i++) {
		assert_string_equal(ours.functions[i].name, theirs.functions[i].name);
		assert_int_equal(ours.functions[i].value, theirs.functions[i].value);
	}
	free(ours.functions);
	free(theirs.functions);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	snprintf(path, 256, "%s", info->dlpi_name);
	return 1;
}

static void real_library(void **state)
{
	char path[256];
	struct elf_symbol s;
	struct elf *e;
	int fd;

	assert_int_equal(dl_iterate_phdr(find_libc, path), 1);
	compare_with_nm(path, true, 2000);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_open(&e, fd), 0);
	assert_string_equal(elf_soname(e), "libc.so.6");
	assert_true(elf_needs(e, "ld-linux"));
	assert_true(elf_has_section(e, ".gnu.version"));
	assert_int_equal(strlen(elf_build_id(e)), 40);
	assert_int_equal(elf_symbolize(e, UINT64_MAX, &s), -ENOENT);
	elf_close(e);
	close(fd);
}

static void own_binary(void **state)
{
	char path[256] = "";

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	compare_with_nm(path, false, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(symbols_by_hash, setup, teardown),
		cmocka_unit_test_setup_teardown(symbols_by_gnu_hash, setup, teardown),
		cmocka_unit_test_setup_teardown(lying_gnu_hash, setup, teardown),
		cmocka_unit_test_setup_teardown(chain_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(lying_dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(lying_notes, setup, teardown),
		cmocka_unit_test(real_library),
		cmocka_unit_test(own_binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
