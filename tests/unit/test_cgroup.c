// SPDX-License-Identifier: BSD-2-Clause
/* The depth of a cgroup, and that the kernel agrees: who runs below it is recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "children.h"
#include "rig.h"
#include "trace/private.h"

struct groups {
	char root[128], outer[160], inner[192];
};

/* Where the only hierarchy of cgroup2 is mounted. */
static int find_root(char *path, size_t size)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char line[1024], at[512], type[64];
	int found = -1;

	while (mounts && found && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %511s %63s", at, type) == 2 && !strcmp(type, "cgroup2"))
			found = snprintf(path, size, "%s", at) < (int)size ? 0 : -1;
	if (mounts)
		fclose(mounts);
	return found;
}

static int make_groups(void **state)
{
	struct groups *c = calloc(1, sizeof(*c));

	if (!c || find_root(c->root, sizeof(c->root)))
		return -1;
	*state = c;
	snprintf(c->outer, sizeof(c->outer), "%s/gbpf-test-%d", c->root, getpid());
	snprintf(c->inner, sizeof(c->inner), "%s/inner", c->outer);
	return mkdir(c->outer, 0755) || mkdir(c->inner, 0755);
}

static int remove_groups(void **state)
{
	struct groups *c = *state;
	int err = rmdir(c->inner);

	err |= rmdir(c->outer);
	free(c);
	return err;
}

static void depth_is_counted_from_the_root(void **state)
{
	struct groups *c = *state;
	char around[256];
	uint32_t root = 99, outer = 99, inner = 99, level = 99;
	struct stat st;

	assert_int_equal(stat(c->root, &st), 0);
	if (st.st_ino != 1) { /* a container's: nobody knows how deep that is */
		assert_int_equal(cgroup_level(c->inner, &inner), -ENOTSUP);
		return;
	}
	assert_int_equal(cgroup_level(c->root, &root), 0);
	assert_int_equal(cgroup_level(c->outer, &outer), 0);
	assert_int_equal(cgroup_level(c->inner, &inner), 0);
	assert_int_equal(root, 0);
	assert_int_equal(outer, 1);
	assert_int_equal(inner, 2);
	/* whatever the path looks like */
	snprintf(around, sizeof(around), "%s/../inner/.//", c->inner);
	assert_int_equal(cgroup_level(around, &level), 0);
	assert_int_equal(level, 2);
}

static void what_is_no_cgroup(void **state)
{
	struct groups *c = *state;
	char file[256];
	uint32_t level;
	size_t before = rig_descriptors();

	snprintf(file, sizeof(file), "%s/cgroup.procs", c->inner);
	assert_int_equal(cgroup_level("/tmp", &level), -ENOTSUP);
	assert_int_equal(cgroup_level("/", &level), -ENOTSUP);
	assert_int_equal(cgroup_level(file, &level), -ENOTDIR);
	snprintf(file, sizeof(file), "%s/none", c->inner);
	assert_int_equal(cgroup_level(file, &level), -ENOENT);
	assert_int_equal(rig_descriptors(), before);
}

/* Joins the cgroup and calls. */
static int call_there(void *ctx)
{
	const char *dir = ctx;
	rig_fn volatile f = rig_call;
	char file[256];
	FILE *procs;

	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	procs = fopen(file, "we");
	CHECK(procs && fprintf(procs, "0\n") == 2 && !fclose(procs));
	for (int i = 0; i < 10; i++)
		f(NULL, 0, 3, 4, 5, 6, 7, 8, 9);
	return 0;
}

static void who_runs_below_is_recorded(void **state)
{
	struct groups *c = *state;
	struct rig *g = rig_on(RUNG_AUTO, "rig_call", "cuInit");
	struct gbpf_switches *sw = probes_switches(g->p);
	rig_fn volatile f = rig_call;
	struct stat st;

	probes_want(g->p, (uint32_t)getpid(), false);
	assert_int_equal(stat(c->outer, &st), 0);
	if (cgroup_level(c->outer, &sw->cgroup_level)) { /* see above: nobody can ask for it */
		rig_free(g);
		return;
	}
	sw->cgroup_id = st.st_ino;
	sw->mode = GBPF_MODE_CGROUP;
	f(NULL, 0, 3, 4, 5, 6, 7, 8, 9); /* outside */
	rig_read(g);
	assert_int_equal(g->count, 0);
	assert_int_equal(child_run(call_there, c->outer), 0);
	rig_read(g);
	assert_int_equal(g->count, 20);
	assert_int_equal(child_run(call_there, c->inner), 0);
	rig_read(g);
	assert_int_equal(g->count, 20);
	assert_int_equal(child_run(call_there, c->root), 0);
	rig_read(g);
	assert_int_equal(g->count, 0);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(depth_is_counted_from_the_root, make_groups,
						remove_groups),
		cmocka_unit_test_setup_teardown(what_is_no_cgroup, make_groups, remove_groups),
		cmocka_unit_test_setup_teardown(who_runs_below_is_recorded, make_groups,
						remove_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
