// SPDX-License-Identifier: BSD-2-Clause
/* Notices of perf compared with what really happened, on the whole machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "children.h"
#include "target/target.h"
#include "target/watch_record.h"

#define CHILDREN 500
#define RENAMES 1000

struct life {
	uint32_t pid;
	unsigned forks, execs, exits, maps, comms;
	int64_t fork_ts, exec_ts, map_ts, exit_ts, last;
	uint32_t ppid, comm_tid;
	char comm[16], map_path[256];
	struct mapping map;
};

/* What was noticed about the processes that a test is interested in. */
struct log {
	struct life lives[CHILDREN];
	size_t count;
	uint64_t lost;
	int64_t last_ts;
	bool disorder;
};

static struct log log_book;

static struct life *life_of(struct log *l, uint32_t pid)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->lives[i].pid == pid)
			return &l->lives[i];
	return NULL;
}

static void note_life(struct life *life, const struct watch_notice *n)
{
	switch (n->kind) {
	case WATCH_FORK:
		life->forks++;
		life->fork_ts = n->ts;
		life->ppid = n->ppid;
		break;
	case WATCH_EXEC:
		life->execs++;
		life->exec_ts = n->ts;
		snprintf(life->comm, sizeof(life->comm), "%s", n->comm);
		break;
	case WATCH_COMM:
		life->comms++;
		life->comm_tid = n->tid;
		snprintf(life->comm, sizeof(life->comm), "%s", n->comm);
		break;
	case WATCH_EXIT:
		life->exits++;
		life->exit_ts = n->ts;
		break;
	case WATCH_MAP:
		life->maps++;
		life->map_ts = n->ts;
		life->map = n->map;
		snprintf(life->map_path, sizeof(life->map_path), "%s", n->map.path);
		break;
	default:
		break;
	}
}

/* Forked processes of ours are added as they come: what precedes their fork would be missed. */
static int note(const struct watch_notice *n, void *ctx)
{
	struct log *l = ctx;
	struct life *life;

	l->disorder |= n->ts < l->last_ts;
	l->last_ts = n->ts;
	if (n->kind == WATCH_LOST)
		l->lost += n->lost;
	if (n->kind == WATCH_FORK && n->ppid == (uint32_t)getpid() && l->count < CHILDREN)
		l->lives[l->count++].pid = n->pid;
	life = life_of(l, n->pid);
	if (life)
		note_life(life, n);
	return 0;
}

static void consume(struct watch *w)
{
	assert_true(watch_consume(w, note, &log_book) >= 0);
}

static struct watch *start(void)
{
	struct watch *w;

	memset(&log_book, 0, sizeof(log_book));
	assert_int_equal(watch_new(&w), 0);
	return w;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Executes true, exits at once, or is killed, in turn. */
static pid_t make_child(int i)
{
	char *const argv[] = { "true", NULL };
	pid_t pid = fork();

	if (pid)
		return pid;
	if (i % 3 == 0)
		execv("/bin/true", argv);
	if (i % 3 == 1)
		raise(SIGKILL);
	_exit(0);
}

static void every_process_is_noticed_once(void **state)
{
	static uint32_t pids[CHILDREN];
	struct watch *w = start();
	int64_t before = now_ns(), after;

	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = (uint32_t)make_child(i);
		assert_int_equal(waitpid((pid_t)pids[i], NULL, 0), pids[i]);
		if (i % 50 == 0)
			consume(w);
	}
	after = now_ns();
	consume(w);
	assert_int_equal(log_book.lost, 0);
	assert_int_equal(log_book.count, CHILDREN);
	assert_false(log_book.disorder);
	for (int i = 0; i < CHILDREN; i++) {
		const struct life *life = &log_book.lives[i];

		assert_int_equal(life->pid, pids[i]);
		assert_int_equal(life->ppid, getpid());
		assert_int_equal(life->forks, 1);
		assert_int_equal(life->exits, 1);
		assert_int_equal(life->execs, i % 3 == 0);
		assert_true(life->fork_ts >= before && life->exit_ts <= after);
		assert_true(life->fork_ts < life->exit_ts);
		if (i % 3)
			continue;
		assert_string_equal(life->comm, "true");
		assert_true(life->fork_ts < life->exec_ts && life->exec_ts < life->exit_ts);
		/* The program, the loader and libc at least. */
		assert_true(life->maps >= 3);
	}
	watch_free(w);
}

static void *named_thread(void *arg)
{
	*(uint32_t *)arg = (uint32_t)gettid();
	prctl(PR_SET_NAME, "w(\n) 1");
	return NULL;
}

static void threads_tell_only_their_names(void **state)
{
	struct watch *w = start();
	uint32_t tid = 0;
	pthread_t thread;

	log_book.lives[log_book.count++].pid = (uint32_t)getpid();
	assert_int_equal(pthread_create(&thread, NULL, named_thread, &tid), 0);
	pthread_join(thread, NULL);
	consume(w);
	assert_int_equal(log_book.lives[0].forks, 0);
	assert_int_equal(log_book.lives[0].exits, 0);
	assert_int_equal(log_book.lives[0].comms, 1);
	assert_int_equal(log_book.lives[0].comm_tid, tid);
	assert_string_equal(log_book.lives[0].comm, "w(\n) 1");
	watch_free(w);
}

static bool only_cuda(const char *path, void *ctx)
{
	return image_hint(path) != HINT_NONE;
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *p;

	assert_true(fd >= 0);
	/* Readable only: no notice. Executable later by mprotect is no new mapping either. */
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	munmap(p, 4096);
	p = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(p, MAP_FAILED);
	munmap(p, 8192);
	close(fd);
}

static void wanted_mappings_are_told_exactly(void **state)
{
	char dir[] = "/tmp/gbpf-watch-XXXXXX", driver[96], other[96];
	struct watch *w = start();
	const struct life *life = &log_book.lives[0];
	struct stat st;

	log_book.lives[log_book.count++].pid = (uint32_t)getpid();
	assert_non_null(mkdtemp(dir));
	snprintf(driver, sizeof(driver), "%s/libcuda.so.1", dir);
	snprintf(other, sizeof(other), "%s/libother.so", dir);
	assert_int_equal(close(open(driver, O_CREAT | O_RDWR, 0644)), 0);
	assert_int_equal(truncate(driver, 16384), 0);
	assert_int_equal(link(driver, other), 0);
	assert_int_equal(stat(driver, &st), 0);
	watch_filter(w, only_cuda, NULL);
	map_file(other);
	map_file(driver);
	consume(w);
	assert_int_equal(life->maps, 1);
	assert_string_equal(life->map_path, driver);
	assert_true(life->map.dev == st.st_dev && life->map.ino == st.st_ino);
	assert_int_equal(life->map.offset, 4096);
	assert_int_equal(life->map.end - life->map.start, 8192);
	assert_false(life->map.deleted);

	int fd = open(driver, O_RDONLY);

	unlink(driver);
	assert_ptr_not_equal(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE, fd, 0), MAP_FAILED);
	close(fd);
	consume(w);
	assert_int_equal(life->maps, 2);
	assert_true(life->map.deleted);
	assert_string_equal(life->map_path, driver);
	unlink(other);
	rmdir(dir);
	watch_free(w);
}

static void its_descriptor_wakes(void **state)
{
	struct watch *w = start();
	struct pollfd pfd = { .fd = watch_fd(w), .events = POLLIN };
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		struct life *life;

		consume(w);
		log_book.count = 0;
		memset(log_book.lives, 0, sizeof(log_book.lives));
		pid = make_child(2);
		waitpid(pid, NULL, 0);
		do {
			assert_int_equal(poll(&pfd, 1, 10000), 1);
			consume(w);
			life = life_of(&log_book, (uint32_t)pid);
		} while (!life || !life->exits);
	}
	watch_free(w);
}

/* Rings of one page hold less than this: what did not fit is counted, what fits still comes. */
static void overflow_is_counted(void **state)
{
	struct watch *w;
	cpu_set_t saved, first;
	pid_t pid;

	memset(&log_book, 0, sizeof(log_book));
	assert_int_equal(watch_new_sized(&w, (size_t)sysconf(_SC_PAGESIZE)), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(saved), &saved), 0);
	CPU_ZERO(&first);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&first); cpu++)
		if (CPU_ISSET(cpu, &saved))
			CPU_SET(cpu, &first);
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
	for (int i = 0; i < RENAMES; i++)
		prctl(PR_SET_NAME, i & 1 ? "overflow" : "test_watch");
	log_book.lives[log_book.count++].pid = (uint32_t)getpid();
	consume(w);
	assert_true(log_book.lives[0].comms > 0 && log_book.lives[0].comms < RENAMES);
	/* Losses are told with the first record that fits again. */
	pid = make_child(2);
	waitpid(pid, NULL, 0);
	consume(w);
	assert_true(log_book.lost + log_book.lives[0].comms >= RENAMES);
	assert_int_equal(log_book.lives[1].forks, 1);
	assert_int_equal(sched_setaffinity(0, sizeof(saved), &saved), 0);
	watch_free(w);
}

static int stop_now(const struct watch_notice *n, void *ctx)
{
	++*(int *)ctx;
	return -ECANCELED;
}

static void each_stops_when_told(void **state)
{
	struct watch *w = start();
	int calls = 0;

	prctl(PR_SET_NAME, "one");
	prctl(PR_SET_NAME, "two");
	assert_int_equal(watch_consume(w, stop_now, &calls), -ECANCELED);
	assert_int_equal(calls, 1);
	log_book.lives[log_book.count++].pid = (uint32_t)getpid();
	consume(w);
	assert_string_equal(log_book.lives[0].comm, "two");
	watch_free(w);
	watch_free(NULL);
}

static int paranoia(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int level = 2;

	if (f && fscanf(f, "%d", &level) != 1)
		level = 2;
	if (f)
		fclose(f);
	return level;
}

static int as_nobody(void *ctx)
{
	struct watch *w;
	int err;

	CHECK(!become_nobody());
	err = watch_new(&w);
	/* An administrator can have opened perf to everybody. */
	if (paranoia() > 0)
		CHECK((err == -EACCES || err == -EPERM) && !w);
	else
		CHECK(err == 0 && w);
	watch_free(w);
	return 0;
}

static int with_perfmon_only(void *ctx)
{
	static const cap_value_t keep[] = { CAP_PERFMON };
	cap_t caps = cap_init();
	struct watch *w;

	CHECK(caps && !cap_set_flag(caps, CAP_PERMITTED, 1, keep, CAP_SET) &&
	      !cap_set_flag(caps, CAP_EFFECTIVE, 1, keep, CAP_SET) && !cap_set_proc(caps));
	cap_free(caps);
	CHECK(watch_new(&w) == 0);
	watch_free(w);
	return 0;
}

static void needs_the_rights_it_says(void **state)
{
	assert_int_equal(child_run(as_nobody, NULL), 0);
	assert_int_equal(child_run(with_perfmon_only, NULL), 0);
}

static int set_online(const char *path, const char *list)
{
	FILE *f = fopen(path, "w");

	return !f || fputs(list, f) < 0 || fclose(f);
}

/* Is a process that is born and ends on CPU 1 noticed? */
static int noticed_on_second_cpu(struct watch *w)
{
	cpu_set_t second;
	pid_t pid;

	if (watch_consume(w, note, &log_book) < 0)
		return -1;
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	if (sched_setaffinity(0, sizeof(second), &second))
		return -1;
	memset(&log_book, 0, sizeof(log_book));
	pid = make_child(2);
	waitpid(pid, NULL, 0);
	if (watch_consume(w, note, &log_book) < 0)
		return -1;
	return log_book.count == 1 && log_book.lives[0].exits == 1;
}

/* CPUs come and go as the list says; CPU 1 of this machine stays where it is. */
static int with_cpus_that_change(void *ctx)
{
	char path[] = "/tmp/gbpf-online-XXXXXX";
	struct watch *w;

	CHECK(close(mkstemp(path)) == 0 && !set_online(path, "0\n"));
	CHECK(!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount(path, "/sys/devices/system/cpu/online", NULL, MS_BIND, NULL));
	CHECK(watch_new(&w) == 0);
	CHECK(noticed_on_second_cpu(w) == 0);
	CHECK(!set_online(path, "0-1\n"));
	usleep(1100000);
	CHECK(noticed_on_second_cpu(w) == 1);
	CHECK(!set_online(path, "0\n"));
	usleep(1100000);
	CHECK(noticed_on_second_cpu(w) == 0);
	watch_free(w);
	return unlink(path);
}

static void cpus_may_come_and_go(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	assert_int_equal(child_run(with_cpus_that_change, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_process_is_noticed_once),
		cmocka_unit_test(threads_tell_only_their_names),
		cmocka_unit_test(wanted_mappings_are_told_exactly),
		cmocka_unit_test(its_descriptor_wakes),
		cmocka_unit_test(overflow_is_counted),
		cmocka_unit_test(each_stops_when_told),
		cmocka_unit_test(cpus_may_come_and_go),
		cmocka_unit_test(needs_the_rights_it_says),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
