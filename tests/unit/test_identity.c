// SPDX-License-Identifier: BSD-2-Clause
/* One real file under several names, probed and not: what its mapping tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "children.h"
#include "rig.h"
#include "probe/identity.h"

#define SITES 12

struct copy {
	char dir[64], file[96];
	int fd;
	struct rig *g;
	struct probe_site sites[SITES];
	uint64_t offsets[SITES];
};

static int copy_file(const char *from, const char *to)
{
	char buf[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			return -1;
	close(in);
	return out;
}

/* Functions of the copy on different bytes, that a breakpoint changes. */
static int on_function(const struct elf_symbol *s, void *ctx)
{
	struct copy *c = ctx;
	size_t i = 0;

	if (s->offset == UINT64_MAX || strncmp(s->name, "probe", 5))
		return 0;
	while (i < SITES && c->offsets[i] && c->offsets[i] != s->offset)
		i++;
	if (i == SITES)
		return 1;
	c->offsets[i] = s->offset;
	c->sites[i] = (struct probe_site){.offset = s->offset, .cookie = GBPF_COOKIE(1, 1, 0)};
	return 0;
}

/* A file of its own, so that nobody executes it; this very program will do. */
static int make_copy(void **state)
{
	struct copy *c = calloc(1, sizeof(*c));
	struct elf *e = NULL;

	if (!c)
		return -1;
	*state = c;
	snprintf(c->dir, sizeof(c->dir), "/tmp/gbpf-identity-XXXXXX");
	if (!mkdtemp(c->dir))
		return -1;
	snprintf(c->file, sizeof(c->file), "%s/libcuda.so", c->dir);
	c->fd = copy_file("/proc/self/exe", c->file);
	close(c->fd);
	c->fd = open(c->file, O_RDONLY | O_CLOEXEC); /* as images are opened */
	if (c->fd < 0 || elf_open(&e, c->fd))
		return -1;
	elf_each_function(e, on_function, c);
	elf_close(e);
	c->g = rig_new(RUNG_AUTO);
	return c->offsets[SITES - 1] ? 0 : -1;
}

static int remove_copy(void **state)
{
	struct copy *c = *state;
	char path[128];

	rig_free(c->g);
	close(c->fd);
	snprintf(path, sizeof(path), "%s/other", c->dir);
	unlink(path);
	unlink(c->file);
	rmdir(c->dir);
	free(c);
	return 0;
}

static void attach(struct copy *c, size_t count)
{
	assert_int_equal(probes_attach(c->g->p, c->fd, c->sites, count, &c->g->link), 0);
}

static void probes_are_counted(void **state)
{
	struct copy *c = *state;

	assert_int_equal(identity_probed(c->fd, c->offsets, 8), 0);
	for (size_t n = 1; n <= 8; n++) {
		attach(c, n);
		assert_int_equal(identity_probed(c->fd, c->offsets, 8), n);
		assert_int_equal(identity_probed(c->fd, c->offsets, 1), 1);
		assert_int_equal(identity_probed(c->fd, c->offsets, 0), 0);
		rig_detach(c->g);
		assert_int_equal(identity_probed(c->fd, c->offsets, 8), 0);
	}
}

/* Eight tell enough, of however many. */
static void eight_are_looked_at(void **state)
{
	struct copy *c = *state;

	attach(c, SITES);
	assert_int_equal(identity_probed(c->fd, c->offsets, SITES), 8);
	rig_detach(c->g);
	assert_int_equal(probes_attach(c->g->p, c->fd, c->sites + 8, SITES - 8, &c->g->link), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, SITES), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets + 8, SITES - 8), SITES - 8);
}

static void another_name_is_the_same_file(void **state)
{
	struct copy *c = *state;
	char other[128];
	int fd;

	snprintf(other, sizeof(other), "%s/other", c->dir);
	assert_int_equal(link(c->file, other), 0);
	fd = open(other, O_RDONLY | O_CLOEXEC);
	attach(c, 4);
	assert_int_equal(identity_probed(fd, c->offsets, 8), 4);
	assert_int_equal(unlink(c->file), 0); /* and so is one whose name is gone */
	assert_int_equal(identity_probed(c->fd, c->offsets, 8), 4);
	close(fd);
}

static void a_copy_is_another_file(void **state)
{
	struct copy *c = *state;
	char other[128];
	int fd;

	snprintf(other, sizeof(other), "%s/other", c->dir);
	close(copy_file(c->file, other));
	fd = open(other, O_RDONLY | O_CLOEXEC);
	attach(c, 4);
	assert_int_equal(identity_probed(fd, c->offsets, 8), 0);
	close(fd);
}

/* In a mount namespace of a child: nothing is left mounted, however that ends. */
static int through_two_overlays(void *ctx)
{
	struct copy *c = ctx;
	char options[256], path[64];
	int fds[2], i;

	CHECK(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("none", "/mnt", "tmpfs", 0, NULL));
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/mnt/lower%d", i);
		CHECK(!mkdir(path, 0755)); /* read-only overlays want two layers */
		snprintf(options, sizeof(options), "lowerdir=%s:%s", c->dir, path);
		snprintf(path, sizeof(path), "/mnt/merged%d", i);
		CHECK(!mkdir(path, 0755) && !mount("overlay", path, "overlay", 0, options));
		snprintf(path, sizeof(path), "/mnt/merged%d/libcuda.so", i);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fds[i] >= 0);
		CHECK(identity_probed(fds[i], c->offsets, 8) == 0);
	}
	CHECK(!probes_attach(c->g->p, fds[0], c->sites, 4, &c->g->link));
	CHECK(identity_probed(fds[1], c->offsets, 8) == 4);
	CHECK(identity_probed(c->fd, c->offsets, 8) == 4);
	return 0;
}

static void overlays_show_one_real_file(void **state)
{
	struct copy *c = *state;

	assert_int_equal(child_run(through_two_overlays, c), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, 8), 0); /* its probes went with it */
}

/* Cut while we have it open, before and after the page of the site: no SIGBUS. */
static void files_that_are_cut(void **state)
{
	struct copy *c = *state;
	off_t page = (off_t)(c->offsets[0] & ~4095ULL);

	assert_int_equal(truncate(c->file, (off_t)c->offsets[0] + 1), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, 1), 0);
	assert_int_equal(truncate(c->file, (off_t)c->offsets[0]), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, 1), -EIO);
	assert_int_equal(truncate(c->file, page), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, 1), -EIO);
	assert_int_equal(truncate(c->file, 0), 0);
	assert_int_equal(identity_probed(c->fd, c->offsets, 8), -EIO);
}

static void what_cannot_be_looked_at(void **state)
{
	struct copy *c = *state;
	uint64_t far[] = {1ULL << 62, UINT64_MAX};
	int dir = open(c->dir, O_RDONLY | O_CLOEXEC);

	assert_int_equal(identity_probed(-1, c->offsets, 1), -EIO);
	assert_int_equal(identity_probed(dir, c->offsets, 1), -EIO);
	assert_int_equal(identity_probed(c->fd, far, 1), -EIO);
	assert_int_equal(identity_probed(c->fd, far + 1, 1), -EIO);
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(probes_are_counted, make_copy, remove_copy),
		cmocka_unit_test_setup_teardown(eight_are_looked_at, make_copy, remove_copy),
		cmocka_unit_test_setup_teardown(another_name_is_the_same_file, make_copy,
						remove_copy),
		cmocka_unit_test_setup_teardown(a_copy_is_another_file, make_copy, remove_copy),
		cmocka_unit_test_setup_teardown(overlays_show_one_real_file, make_copy,
						remove_copy),
		cmocka_unit_test_setup_teardown(files_that_are_cut, make_copy, remove_copy),
		cmocka_unit_test_setup_teardown(what_cannot_be_looked_at, make_copy,
						remove_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
