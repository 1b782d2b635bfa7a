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
#include <sys/syscall.h>

#include "children.h"
#include "target/target.h"

#define PAGE 4096
#define NASTY "lib a\nb\033[2J (deleted).so"

static char dir[64];	/* temporary directory of all tests */
static char victim[160]; /* what the child maps */

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/gbpf-maps-XXXXXX");
	/* Whatever should hang by mistake ends here. */
	alarm(120);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

/* Three pages that differ from each other and between names. */
static void write_file(const char *name)
{
	unsigned char bytes[3 * PAGE];
	FILE *f;

	snprintf(victim, sizeof(victim), "%s/%s", dir, name);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 31 + (i >> 8) + (unsigned char)name[3]);
	f = fopen(victim, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, sizeof(bytes), 1, f), 1);
	assert_int_equal(fclose(f), 0);
}

static void map_victim(int fd)
{
	int file = open(victim, O_RDONLY);

	/* Apart from each other, so that the kernel does not merge them. */
	for (off_t page = 0; page < 3; page += 2)
		if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, page * PAGE) ==
		    MAP_FAILED)
			_exit(1);
	if (mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED)
		_exit(1);
	close(file);
	child_ready(fd, 0);
	child_wait();
}

struct wanted {
	const char *path;
	struct mapping m;
	char copy[256];
	int times;
};

static int find_path(const struct mapping *m, void *ctx)
{
	struct wanted *w = ctx;

	if (strcmp(m->path, w->path))
		return 0;
	snprintf(w->copy, sizeof(w->copy), "%s", m->path);
	w->m = *m;
	w->m.path = w->copy;
	w->times++;
	return 0;
}

static void assert_same_bytes(int fd, const char *name)
{
	unsigned char bytes[3 * PAGE];

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i],
				 (unsigned char)(i * 31 + (i >> 8) + (unsigned char)name[3]));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

static void sees_each_file_once(void **state)
{
	struct wanted w = { .path = victim };
	struct stat st;
	pid_t pid;

	write_file(NASTY);
	pid = child_start(map_victim, NULL);
	assert_true(pid > 0);
	assert_int_equal(maps_each((uint32_t)pid, find_path, &w), 0);
	assert_int_equal(w.times, 1);
	assert_int_equal(stat(victim, &st), 0);
	assert_true(w.m.dev == st.st_dev && w.m.ino == st.st_ino && !w.m.deleted);
	assert_int_equal(w.m.end - w.m.start, PAGE);
	assert_same_bytes(maps_open((uint32_t)pid, &w.m), NASTY);
	child_stop(pid);
	assert_int_equal(maps_each((uint32_t)pid, find_path, &w), -ESRCH);
	assert_int_equal(maps_open((uint32_t)pid, &w.m), -ESRCH);
}

static void opens_deleted_and_replaced_files(void **state)
{
	struct wanted w = { .path = victim };
	pid_t pid;

	write_file("libcuda.so.1");
	pid = child_start(map_victim, NULL);
	assert_true(pid > 0);
	assert_int_equal(unlink(victim), 0);
	/* A trap in its place must neither be waited for nor be taken for the library. */
	assert_int_equal(mkfifo(victim, 0666), 0);
	assert_int_equal(maps_each((uint32_t)pid, find_path, &w), 0);
	assert_int_equal(w.times, 1);
	assert_true(w.m.deleted);
	assert_int_equal(image_hint(w.m.path), HINT_DRIVER);
	assert_same_bytes(maps_open((uint32_t)pid, &w.m), "libcuda.so.1");
	child_stop(pid);
	assert_int_equal(unlink(victim), 0);
}

static void finds_the_file_after_its_range_moved(void **state)
{
	struct wanted w = { .path = victim };
	pid_t pid;

	write_file("libmoved.so");
	pid = child_start(map_victim, NULL);
	assert_true(pid > 0);
	assert_int_equal(maps_each((uint32_t)pid, find_path, &w), 0);
	assert_int_equal(unlink(victim), 0);
	w.m.start -= 16 * PAGE;
	assert_same_bytes(maps_open((uint32_t)pid, &w.m), "libmoved.so");
	w.m.ino++;
	assert_true(maps_open((uint32_t)pid, &w.m) < 0);
	child_stop(pid);
}

static void never_opens_what_is_no_file(void **state)
{
	char path[128];
	struct stat st;
	struct mapping m = { .start = PAGE, .end = 2 * PAGE, .path = path };

	snprintf(path, sizeof(path), "%s/libcuda.so", dir);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(stat(path, &st), 0);
	m.dev = st.st_dev;
	m.ino = st.st_ino;
	assert_int_equal(maps_open((uint32_t)getpid(), &m), -EINVAL);
	snprintf(path, sizeof(path), "/dev/zero");
	assert_int_equal(stat(path, &st), 0);
	m.dev = st.st_dev;
	m.ino = st.st_ino;
	assert_int_equal(maps_open((uint32_t)getpid(), &m), -EINVAL);
	snprintf(path, sizeof(path), "/proc/self/exe");
	assert_true(maps_open((uint32_t)getpid(), &m) < 0);
}

static void map_memfd(int fd)
{
	int file = memfd_create("libcudart.so.12", 0);

	if (ftruncate(file, 3 * PAGE) ||
	    mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) == MAP_FAILED)
		_exit(1);
	close(file);
	child_ready(fd, 0);
	child_wait();
}

static void opens_memory_files(void **state)
{
	struct wanted w = { .path = "/memfd:libcudart.so.12" };
	pid_t pid = child_start(map_memfd, NULL);
	struct stat st;
	int fd;

	assert_true(pid > 0);
	assert_int_equal(maps_each((uint32_t)pid, find_path, &w), 0);
	assert_int_equal(w.times, 1);
	assert_true(w.m.deleted);
	fd = maps_open((uint32_t)pid, &w.m);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 3 * PAGE);
	close(fd);
	child_stop(pid);
}

static int keep_only_ptrace(void)
{
	static const cap_value_t keep[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH };
	cap_t caps = cap_init();
	int err;

	if (!caps)
		return -1;
	err = cap_set_flag(caps, CAP_PERMITTED, 2, keep, CAP_SET) ||
	      cap_set_flag(caps, CAP_EFFECTIVE, 2, keep, CAP_SET) || cap_set_proc(caps);
	cap_free(caps);
	return err;
}

struct request {
	pid_t pid;
	const struct mapping *m;
};

static int open_by_path(void *ctx)
{
	const struct request *r = ctx;
	int fd;

	CHECK(!keep_only_ptrace());
	fd = maps_open((uint32_t)r->pid, r->m);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!unlink(victim));
	CHECK(maps_open((uint32_t)r->pid, r->m) == -EACCES);
	return 0;
}

static int open_without_rights(void *ctx)
{
	const struct request *r = ctx;
	struct wanted w = { .path = "" };

	CHECK(!become_nobody());
	CHECK(maps_each((uint32_t)r->pid, find_path, &w) == -EACCES);
	CHECK(maps_open((uint32_t)r->pid, r->m) == -EACCES);
	return 0;
}

static void needs_the_rights_it_says(void **state)
{
	struct wanted w = { .path = victim };
	struct request r = { .m = &w.m };

	write_file("libother.so");
	r.pid = child_start(map_victim, NULL);
	assert_true(r.pid > 0);
	assert_int_equal(maps_each((uint32_t)r.pid, find_path, &w), 0);
	assert_int_equal(w.times, 1);
	assert_int_equal(child_run(open_without_rights, &r), 0);
	assert_int_equal(child_run(open_by_path, &r), 0);
	child_stop(r.pid);
}

static void enter_root(int fd)
{
	if (chroot(dir))
		_exit(1);
	child_ready(fd, 0);
	child_wait();
}

/* In the container, /links leads to a directory that exists only outside of it. */
static void links_do_not_lead_out_of_a_container(void **state)
{
	struct mapping m = { .start = PAGE, .end = 2 * PAGE, .path = "/inside/libx.so" };
	char link[128];
	struct stat st;
	pid_t pid;

	snprintf(link, sizeof(link), "%s/inside", dir);
	assert_int_equal(mkdir(link, 0755), 0);
	write_file("inside/libx.so");
	assert_int_equal(stat(victim, &st), 0);
	m.dev = st.st_dev;
	m.ino = st.st_ino;
	pid = child_start(enter_root, NULL);
	assert_true(pid > 0);
	assert_same_bytes(maps_open((uint32_t)pid, &m), "inside/libx.so");
	snprintf(link, sizeof(link), "%s/links", dir);
	assert_int_equal(symlink(dir, link), 0);
	m.path = "/links/inside/libx.so";
	assert_int_equal(maps_open((uint32_t)pid, &m), -ENOENT);
	child_stop(pid);
}

static int mount_overlay(void)
{
	char options[512], lower[96], upper[96], work[96], merged[96];

	snprintf(lower, sizeof(lower), "%s/lower", dir);
	snprintf(upper, sizeof(upper), "%s/upper", dir);
	snprintf(work, sizeof(work), "%s/work", dir);
	snprintf(merged, sizeof(merged), "%s/merged", dir);
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper,
		 work);
	/* An upper layer cannot lie on an overlay, which the test itself may run on. */
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", dir, "tmpfs", 0, NULL) || mkdir(lower, 0755) || mkdir(upper, 0755) ||
	       mkdir(work, 0755) || mkdir(merged, 0755) ||
	       mount("none", merged, "overlay", 0, options);
}

static void map_from_overlay(int fd)
{
	if (mount_overlay())
		_exit(1);
	write_file("merged/libover.so");
	map_victim(fd);
}

static int read_by_path(void *ctx)
{
	const struct request *r = ctx;
	char byte[4];
	int fd;

	CHECK(!keep_only_ptrace());
	fd = maps_open((uint32_t)r->pid, r->m);
	CHECK(fd >= 0 && read(fd, byte, sizeof(byte)) == sizeof(byte));
	close(fd);
	return 0;
}

static void opens_files_of_an_overlay(void **state)
{
	struct wanted w = { .path = victim };
	struct request r = { .m = &w.m };

	r.pid = child_start(map_from_overlay, NULL);
	assert_true(r.pid > 0);
	snprintf(victim, sizeof(victim), "%s/merged/libover.so", dir);
	assert_int_equal(maps_each((uint32_t)r.pid, find_path, &w), 0);
	assert_int_equal(w.times, 1);
	/* From here it is nowhere. */
	assert_int_equal(access(victim, F_OK), -1);
	assert_same_bytes(maps_open((uint32_t)r.pid, &w.m), "merged/libover.so");
	assert_int_equal(child_run(read_by_path, &r), 0);
	child_stop(r.pid);
}

static int stop_with(const struct mapping *m, void *ctx)
{
	++*(int *)ctx;
	return 55;
}

static void each_stops_when_told(void **state)
{
	int calls = 0;

	assert_int_equal(maps_each((uint32_t)getpid(), stop_with, &calls), 55);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_each_file_once),
		cmocka_unit_test(opens_deleted_and_replaced_files),
		cmocka_unit_test(finds_the_file_after_its_range_moved),
		cmocka_unit_test(never_opens_what_is_no_file),
		cmocka_unit_test(opens_memory_files),
		cmocka_unit_test(needs_the_rights_it_says),
		cmocka_unit_test(links_do_not_lead_out_of_a_container),
		cmocka_unit_test(opens_files_of_an_overlay),
		cmocka_unit_test(each_stops_when_told),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
