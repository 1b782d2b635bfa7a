// SPDX-License-Identifier: BSD-2-Clause
/* What CPU quotas cost: texts of cgroups, and a real quota. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "children.h"
#include "target/parse.h"
#include "target/usage.h"

#define MS 1000000

static void cpu_stat_of_both_versions(void **state)
{
	static const char v1[] = "nr_periods 50\nnr_throttled 12\nthrottled_time 345\n";
	static const char v2[] = "usage_usec 1\nuser_usec 1\nsystem_usec 0\nnr_periods 50\n"
				 "nr_throttled 12\nthrottled_usec 345\nnr_bursts 0\nburst_usec 0\n";
	static const char *const bad[] = { "", "usage_usec 1\n", "nr_throttled 1\n",
					   "nr_throttled 1\nthrottled_usec 99999999999999999\n",
					   "throttled_usec 1\n",
					   "nr_throttled -1\nthrottled_usec 1\n" };
	uint64_t ns, periods;

	assert_int_equal(parse_cpu_stat(v1, sizeof(v1) - 1, &ns, &periods), 0);
	assert_true(ns == 345 && periods == 12);
	assert_int_equal(parse_cpu_stat(v2, sizeof(v2) - 1, &ns, &periods), 0);
	assert_true(ns == 345000 && periods == 12);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_cpu_stat(bad[i], strlen(bad[i]), &ns, &periods), -EINVAL);
}

static void quotas_that_limit(void **state)
{
	static const char *const none[] = { "", "max 100000\n", "max", "-1\n", "0\n", "x 1" };

	assert_true(parse_cpu_quota("50000 100000\n", 13));
	assert_true(parse_cpu_quota("50000\n", 6));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(parse_cpu_quota(none[i], strlen(none[i])));
}

static void cgroups_that_limit(void **state)
{
	static const struct {
		const char *line, *path;
		int version;
	} cases[] = {
		{ "0::/a/b", "/a/b", 2 }, { "0::/", "/", 2 }, { "0::/../x:y", "/../x:y", 2 },
		{ "4:cpu,cpuacct:/a", "/a", 1 }, { "14:cpuacct,cpu:/a", "/a", 1 },
		{ "2:cpu:/", "/", 1 },
		{ "2:cpuset:/a", NULL, 0 }, { "2:cpuacct:/a", NULL, 0 },
		{ "1:name=cpu:/a", NULL, 0 },
		{ "1:,cp,u:/a", NULL, 0 }, { "0::/a (deleted)", NULL, 0 }, { "3::/a", NULL, 0 },
		{ "0::", NULL, 0 }, { "0::a", NULL, 0 }, { "", NULL, 0 }, { ":", NULL, 0 },
		{ "::/a", NULL, 0 }, { "x0::/a", NULL, 0 },
	};
	const char *path;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line = cases[i].line;

		assert_int_equal(parse_cpu_cgroup(line, strlen(line), &path), cases[i].version);
		assert_true(!path == !cases[i].path);
		if (path)
			assert_string_equal(path, cases[i].path);
	}
}

static int64_t cpu_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct tree {
	char root[64];
};

static void put(const char *root, const char *dir, const char *file, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s/%s", root, dir, file);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && !fclose(f));
}

static void make_dirs(struct tree *t, char *outer, char *inner, size_t size)
{
	strcpy(t->root, "/tmp/gbpf-test-quota-XXXXXX");
	assert_non_null(mkdtemp(t->root));
	snprintf(outer, size, "%s/outer", t->root);
	snprintf(inner, size, "%s/outer/inner", t->root);
	assert_int_equal(mkdir(outer, 0755) || mkdir(inner, 0755), 0);
}

static void quotas_of_all_above_add_up(void **state)
{
	static const char *const dirs[] = { "/outer/inner", "/outer", "" };
	static const char *const files[] = { "cpu.stat", "cpu.max", "cpu.cfs_quota_us" };
	char outer[128], inner[128], path[256];
	uint64_t ns, periods;
	struct tree t;
	int root;

	make_dirs(&t, outer, inner, sizeof(outer));
	root = open(t.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	assert_int_equal(cgroup_throttled_at(root, "/outer/inner", 2, &ns, &periods), -ENOENT);
	put(t.root, "/outer/inner", "cpu.max", "50000 100000\n");
	put(t.root, "/outer/inner", "cpu.stat",
	    "nr_periods 9\nnr_throttled 2\nthrottled_usec 30\n");
	put(t.root, "/outer", "cpu.max", "max 100000\n");
	put(t.root, "/outer", "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 50\n");
	assert_int_equal(cgroup_throttled_at(root, "/outer/inner", 2, &ns, &periods), 0);
	assert_true(ns == 30000 && periods == 2);
	assert_int_equal(cgroup_throttled_at(root, "/outer", 2, &ns, &periods), -ENOENT);
	assert_int_equal(cgroup_throttled_at(root, "/", 2, &ns, &periods), -ENOENT);
	put(t.root, "/outer", "cpu.max", "150000 100000\n");
	assert_int_equal(cgroup_throttled_at(root, "/outer/inner", 2, &ns, &periods), 0);
	assert_true(ns == 80000 && periods == 6);
	assert_int_equal(cgroup_throttled_at(root, "/outer/inner", 1, &ns, &periods), -ENOENT);
	put(t.root, "/outer/inner", "cpu.cfs_quota_us", "50000\n");
	put(t.root, "/outer/inner", "cpu.stat",
	    "nr_periods 9\nnr_throttled 2\nthrottled_time 31\n");
	put(t.root, "", "cpu.cfs_quota_us", "-1\n");
	assert_int_equal(cgroup_throttled_at(root, "/outer/inner", 1, &ns, &periods), 0);
	assert_true(ns == 31 && periods == 2);
	put(t.root, "", "cpu.max", "50000 100000\n");
	put(t.root, "", "cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_usec 7\n");
	assert_int_equal(cgroup_throttled_at(root, "/", 2, &ns, &periods), 0);
	assert_true(ns == 7000 && periods == 3);
	for (size_t i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "%s%s/%s", t.root, dirs[i / 3], files[i % 3]);
		unlink(path);
	}
	assert_int_equal(rmdir(inner) || rmdir(outer) || rmdir(t.root), 0);
	close(root);
}

static void shares_of_throttled_time(void **state)
{
	assert_true(throttled_share(0, 0, 1000 * MS) == 0);
	assert_true(throttled_share(250 * MS, 10, 1000 * MS) == 0.25);
	/* 64 CPUs waited, in five periods of 100 ms */
	assert_true(throttled_share(32000ull * MS, 5, 1000 * MS) == 0.5);
	assert_true(throttled_share(32000ull * MS, 50, 1000 * MS) == 1);
	assert_true(throttled_share(1, 1, 0) == 0);
	assert_true(throttled_share((uint64_t)-1, 3, 1000 * MS) == 0);
	assert_true(throttled_share(1, (uint64_t)-3, 1000 * MS) == 0);
}

/* Where the hierarchy that limits CPU time is mounted: 1 or 2, 0 if it is nowhere writable. */
static int real_hierarchy(char *path, size_t size)
{
	static const char *const places[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
					      "/sys/fs/cgroup" };

	for (int i = 0; i < 3; i++) {
		char file[160];

		snprintf(path, size, "%s/gbpf-test-%d", places[i], getpid());
		if (mkdir(path, 0755))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, i < 2 ? "cpu.cfs_quota_us" : "cpu.max");
		if (!access(file, W_OK))
			return i < 2 ? 1 : 2;
		rmdir(path);
	}
	return 0;
}

static void limit(const char *dir, int version)
{
	if (version == 1) {
		put(dir, "", "cpu.cfs_period_us", "100000\n");
		put(dir, "", "cpu.cfs_quota_us", "20000\n");
	} else {
		put(dir, "", "cpu.max", "20000 100000\n");
	}
}

static int throttled(uint32_t pid, uint64_t *ns, uint64_t *periods)
{
	struct cgroup_seen seen = { 0 };

	return cgroup_throttled(pid, &seen, ns, periods);
}

/* Wants all of a CPU where a fifth of one is given, until it was held up twice. */
static int limited(void *ctx)
{
	uint32_t pid = (uint32_t)getpid();
	int64_t start = cpu_now(CLOCK_MONOTONIC);
	struct cgroup_seen seen = { 0 };
	uint64_t ns, periods;
	double share;

	CHECK(cgroup_throttled(pid, &seen, &ns, &periods) == -ENOENT);
	CHECK(cgroup_throttled(pid, &seen, &ns, &periods) == -ENOENT);
	put(ctx, "", "cgroup.procs", "0\n");
	CHECK(cgroup_throttled(pid, &seen, &ns, &periods) == 0);
	CHECK(ns == 0 && periods == 0);
	/* the time is counted when it is over, and may begin only after the period was */
	while ((periods < 2 || !ns) && cpu_now(CLOCK_MONOTONIC) - start < 20000ll * MS)
		CHECK(throttled(pid, &ns, &periods) == 0);
	share = throttled_share(ns, periods, cpu_now(CLOCK_MONOTONIC) - start);
	CHECK(periods >= 2 && ns > 0 && share > 0 && share < 1);
	/* who comes later in the same look is told what the first one was */
	CHECK(cgroup_throttled(pid, &seen, &ns, &periods) == 0);
	CHECK(ns == 0 && periods == 0);
	return 0;
}

static void a_real_quota_holds_up(void **state)
{
	char dir[128];
	int version = real_hierarchy(dir, sizeof(dir));
	uint64_t ns, periods;

	if (!version) { /* its texts are tested above; nothing can be limited here */
		assert_int_equal(throttled((uint32_t)getpid(), &ns, &periods), -ENOENT);
		return;
	}
	limit(dir, version);
	assert_int_equal(child_run(limited, dir), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(throttled(UINT32_MAX, &ns, &periods), -ESRCH);
}

static const char *group; /* with a quota */
static int group_version;

/* As in a container: its cgroup is all of the hierarchy that it sees. */
static void contained_child(int fd)
{
	const char *place = group_version == 1 ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup";

	put(group, "", "cgroup.procs", "0\n");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(group, place, NULL, MS_BIND, NULL))
		_exit(1);
	child_ready(fd, 0);
	child_wait();
}

/* As in another one, from where the first one's path leads up and out. */
static int looking_over(void *ctx)
{
	char own[160];
	uint64_t ns = 7, periods = 7;

	snprintf(own, sizeof(own), "%s-own", group);
	CHECK(!mkdir(own, 0755));
	put(own, "", "cgroup.procs", "0\n");
	CHECK(!unshare(CLONE_NEWCGROUP));
	CHECK(throttled(*(uint32_t *)ctx, &ns, &periods) == 0);
	CHECK(ns == 0 && periods == 0);
	CHECK(throttled((uint32_t)getppid(), &ns, &periods) == -ENOENT);
	return 0;
}

static void quotas_across_namespaces(void **state)
{
	char dir[128], own[160];
	pid_t pid;

	group_version = real_hierarchy(dir, sizeof(dir));
	if (!group_version) /* see above */
		return;
	group = dir;
	limit(dir, group_version);
	pid = child_start(contained_child, NULL);
	assert_true(pid > 0);
	assert_int_equal(child_run(looking_over, &pid), 0);
	child_stop(pid);
	snprintf(own, sizeof(own), "%s-own", dir);
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_stat_of_both_versions),
		cmocka_unit_test(quotas_that_limit),
		cmocka_unit_test(cgroups_that_limit),
		cmocka_unit_test(quotas_of_all_above_add_up),
		cmocka_unit_test(shares_of_throttled_time),
		cmocka_unit_test(a_real_quota_holds_up),
		cmocka_unit_test(quotas_across_namespaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
