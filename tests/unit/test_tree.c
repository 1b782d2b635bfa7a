// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "children.h"
#include "target/procfs.h"
#include "target/target.h"

#define CHILDREN 3
#define FAMILY (1 + CHILDREN + CHILDREN * CHILDREN)

static uint32_t *family; /* shared with the children: who they are */

static void add_self(uint32_t place)
{
	family[place] = (uint32_t)getpid();
	__atomic_add_fetch(&family[FAMILY], 1, __ATOMIC_SEQ_CST);
}

/* Two generations; each process goes on with the loop of its own children. */
static void eldest(int fd)
{
	uint32_t place = 0;
	int depth = 2, left = CHILDREN;

	add_self(place);
	while (depth && left) {
		left--;
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		place = CHILDREN * place + 1 + (uint32_t)left;
		depth--;
		left = CHILDREN;
		add_self(place);
	}
	if (place)
		child_wait();
	while (__atomic_load_n(&family[FAMILY], __ATOMIC_SEQ_CST) < FAMILY)
		usleep(1000);
	child_ready(fd, 0);
	child_wait();
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void takes_all_descendants(void **state)
{
	uint32_t *pids, expected[FAMILY];
	size_t count;
	pid_t pid;

	family = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(family, MAP_FAILED);
	pid = child_start(eldest, NULL);
	assert_true(pid > 0);
	assert_int_equal(process_tree((uint32_t)pid, &pids, &count), 0);
	assert_int_equal(count, FAMILY);
	assert_int_equal(pids[0], pid);
	memcpy(expected, family, sizeof(expected));
	qsort(expected, FAMILY, sizeof(*expected), by_value);
	qsort(pids, count, sizeof(*pids), by_value);
	assert_memory_equal(pids, expected, sizeof(expected));
	free(pids);

	uint32_t leaf = family[FAMILY - 1];

	assert_int_equal(process_tree(leaf, &pids, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(pids[0], leaf);
	free(pids);
	child_stop(pid);
	munmap(family, 4096);
}

static void put(const char *cgroup, const char *file, const char *value)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, value, strlen(value)), (ssize_t)strlen(value));
	close(fd);
}

static void plain_child(int fd)
{
	child_ready(fd, 0);
	child_wait();
}

static pid_t member(const char *cgroup)
{
	char number[16];
	pid_t pid = child_start(plain_child, NULL);

	assert_true(pid > 0);
	snprintf(number, sizeof(number), "%d", pid);
	put(cgroup, "cgroup.procs", number);
	return pid;
}

static void assert_members(const char *cgroup, size_t n, const pid_t *expected)
{
	uint32_t *pids;
	size_t count;

	assert_int_equal(process_in_cgroup(cgroup, &pids, &count), 0);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++)
		assert_non_null(bsearch(&expected[i], pids, count, sizeof(*pids), by_value));
	free(pids);
}

/* A cgroup with one member, and one with two deeper inside. */
static void check_hierarchy(const char *root)
{
	char outer[128], empty[160], inner[192];
	pid_t pids[3];

	snprintf(outer, sizeof(outer), "%s/gbpf-test-%d", root, getpid());
	snprintf(empty, sizeof(empty), "%s/between", outer);
	snprintf(inner, sizeof(inner), "%s/in ner", empty);
	assert_int_equal(mkdir(outer, 0755), 0);
	assert_int_equal(mkdir(empty, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_members(outer, 0, NULL);
	pids[0] = member(outer);
	pids[1] = member(inner);
	pids[2] = member(inner);
	assert_members(outer, 3, pids);
	assert_members(inner, 2, pids + 1);
	for (int i = 0; i < 3; i++)
		child_stop(pids[i]);
	assert_members(outer, 0, NULL);
	/* A dead member's cgroup stays busy for a moment. */
	while (rmdir(inner) && errno == EBUSY)
		usleep(1000);
	assert_int_equal(rmdir(empty), 0);
	while (rmdir(outer) && errno == EBUSY)
		usleep(1000);
	assert_int_equal(access(outer, F_OK), -1);
}

static char mount_dir[] = "/tmp/gbpf-cgroup-XXXXXX";

/* In a mount namespace of our own: nothing stays behind. */
static int set_up(void **state)
{
	alarm(120);
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       !mkdtemp(mount_dir);
}

static int tear_down(void **state)
{
	return rmdir(mount_dir);
}

static void reads_version_2(void **state)
{
	assert_int_equal(mount("none", mount_dir, "cgroup2", 0, NULL), 0);
	check_hierarchy(mount_dir);
	assert_int_equal(umount(mount_dir), 0);
}

static bool hierarchy_exists(const char *name)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, name) != NULL;
	if (f)
		fclose(f);
	return found;
}

static void reads_version_1(void **state)
{
	assert_int_equal(mount("none", mount_dir, "cgroup", 0, "none,name=gbpf-test"), 0);
	check_hierarchy(mount_dir);
	assert_int_equal(umount(mount_dir), 0);
	/* It outlives its mount while the cgroups removed above are being taken apart. */
	for (int i = 1; hierarchy_exists("name=gbpf-test"); i++) {
		usleep(10000);
		/* Its end after an unmount takes a moment too: give it a second each time. */
		if (i % 100 == 0 && !mount("none", mount_dir, "cgroup", 0, "none,name=gbpf-test"))
			assert_int_equal(umount(mount_dir), 0);
	}
}

/* The members of a threaded cgroup are threads, and cgroup.procs cannot be read. */
static void reads_threaded_cgroups(void **state)
{
	char outer[128], inner[160], number[16];
	pid_t pid;

	assert_int_equal(mount("none", mount_dir, "cgroup2", 0, NULL), 0);
	snprintf(outer, sizeof(outer), "%s/gbpf-threaded-%d", mount_dir, getpid());
	snprintf(inner, sizeof(inner), "%s/inner", outer);
	assert_int_equal(mkdir(outer, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	pid = member(outer);
	put(inner, "cgroup.type", "threaded");
	snprintf(number, sizeof(number), "%d", pid);
	put(inner, "cgroup.threads", number);
	assert_members(inner, 1, &pid);
	assert_members(outer, 1, &pid);
	child_stop(pid);
	while (rmdir(inner) && errno == EBUSY)
		usleep(1000);
	while (rmdir(outer) && errno == EBUSY)
		usleep(1000);
	assert_int_equal(umount(mount_dir), 0);
}

static void refuses_what_is_no_cgroup(void **state)
{
	uint32_t *pids;
	size_t count;

	assert_int_equal(process_in_cgroup("/tmp", &pids, &count), -ENOTDIR);
	assert_null(pids);
	assert_int_equal(process_in_cgroup("/etc/passwd", &pids, &count), -ENOTDIR);
	assert_int_equal(process_in_cgroup("/nonexistent/x", &pids, &count), -ENOENT);
	assert_int_equal(process_in_cgroup("", &pids, &count), -ENOENT);
}

static void lines_are_bounded(void **state)
{
	static struct proc_lines lines;
	char path[] = "/tmp/gbpf-lines-XXXXXX", *line, big[40000];
	int fd = mkstemp(path);
	size_t len;

	memset(big, 'x', sizeof(big));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "first\n\n", 7), 7);
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	assert_int_equal(write(fd, "\nnext\nlast", 10), 10);
	close(fd);
	assert_int_equal(proc_lines_open(&lines, AT_FDCWD, path), 0);
	assert_int_equal(proc_lines_next(&lines, &line, &len), 1);
	assert_string_equal(line, "first");
	assert_int_equal(proc_lines_next(&lines, &line, &len), 1);
	assert_int_equal(len, 0);
	assert_int_equal(proc_lines_next(&lines, &line, &len), 1);
	assert_int_equal(len, sizeof(lines.buf) - 1);
	assert_int_equal(strlen(line), len);
	assert_int_equal(proc_lines_next(&lines, &line, &len), 1);
	assert_string_equal(line, "next");
	assert_int_equal(proc_lines_next(&lines, &line, &len), 1);
	assert_string_equal(line, "last");
	assert_int_equal(proc_lines_next(&lines, &line, &len), 0);
	proc_lines_close(&lines);
	proc_lines_close(&lines);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_all_descendants),
		cmocka_unit_test(reads_version_2),
		cmocka_unit_test(reads_version_1),
		cmocka_unit_test(reads_threaded_cgroups),
		cmocka_unit_test(refuses_what_is_no_cgroup),
		cmocka_unit_test(lines_are_bounded),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
