// SPDX-License-Identifier: BSD-2-Clause
/* Where recordings go: what is kept, what is replaced, what is refused, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "children.h"
#include "trace/output.h"

#define SOMEBODY 12345 /* of no name */

struct place {
	char dir[64], path[96], part[112], old[112];
	struct invoker who;
};

static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	*state = p;
	snprintf(p->dir, sizeof(p->dir), "/tmp/gbpf-output-XXXXXX");
	if (!mkdtemp(p->dir) || chmod(p->dir, 0755))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/t.gbpf", p->dir);
	snprintf(p->part, sizeof(p->part), "%s.part", p->path);
	snprintf(p->old, sizeof(p->old), "%s.old", p->path);
	p->who = (struct invoker){.uid = getuid(), .gid = getgid()};
	return 0;
}

static int remove_place(void **state)
{
	struct place *p = *state;
	struct dirent *d;
	DIR *dir = opendir(p->dir);
	int ret;

	while (dir && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			unlinkat(dirfd(dir), d->d_name, d->d_type == DT_DIR ? AT_REMOVEDIR : 0);
	if (dir)
		closedir(dir);
	ret = rmdir(p->dir);
	free(p);
	return ret;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void expect_text(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("%s is not there", path);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(got, text);
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static struct output *must_open(const struct place *p)
{
	struct output *o = NULL;
	char why[256] = "";

	if (output_open(&o, p->path, &p->who, why, sizeof(why)))
		fail_msg("%s", why);
	return o;
}

/* Writes through the descriptor that the writer gets. */
static void write_text(const struct output *o, const char *text)
{
	int fd = output_fd(o);

	assert_true(fd > 2);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void refuse(const struct place *p, int err, const char *part)
{
	struct output *o = NULL;
	char why[256] = "";

	assert_int_equal(output_open(&o, p->path, &p->who, why, sizeof(why)), err);
	assert_null(o);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void record_whole(const struct place *p, const char *text)
{
	struct output *o = must_open(p);

	write_text(o, text);
	assert_int_equal(output_commit(o), 0);
	output_free(o);
}

static void only_whole_files_have_the_name(void **state)
{
	struct place *p = *state;
	struct output *o = must_open(p);
	struct stat st;

	write_text(o, "one");
	assert_false(is_there(p->path));
	expect_text(p->part, "one");
	assert_int_equal(stat(p->part, &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0644, 0);
	assert_int_equal(output_commit(o), 0);
	output_free(o);
	expect_text(p->path, "one");
	assert_false(is_there(p->part));
	assert_false(is_there(p->old));
}

static void the_one_before_is_kept(void **state)
{
	struct place *p = *state;
	struct output *o;

	record_whole(p, "one");
	record_whole(p, "two");
	expect_text(p->path, "two");
	expect_text(p->old, "one");
	o = must_open(p);
	write_text(o, "three");
	expect_text(p->path, "two"); /* until the next is whole */
	expect_text(p->old, "one");
	assert_int_equal(output_commit(o), 0);
	output_free(o);
	expect_text(p->path, "three");
	expect_text(p->old, "two");
}

static void what_was_not_to_be_goes(void **state)
{
	struct place *p = *state;
	struct output *o;

	record_whole(p, "one");
	o = must_open(p);
	write_text(o, "two");
	output_free(o);
	assert_false(is_there(p->part));
	expect_text(p->path, "one");
	assert_false(is_there(p->old));
	output_free(NULL);
}

static void a_crashed_one_is_kept(void **state)
{
	struct place *p = *state;
	struct output *o;

	put(p->path, "whole");
	put(p->part, "crashed");
	o = must_open(p);
	expect_text(p->old, "crashed");
	expect_text(p->path, "whole");
	expect_text(p->part, "");
	output_free(o);
	expect_text(p->old, "crashed");
}

static void one_writer_at_a_time(void **state)
{
	struct place *p = *state;
	struct output *o = must_open(p);
	int fd = output_fd(o);

	write_text(o, "one");
	refuse(p, -EBUSY, "another gbpf is writing");
	expect_text(p->part, "one");
	assert_false(is_there(p->old));
	output_free(o);
	close(fd);
	/* the writer's own descriptor alone keeps others away, too */
	o = must_open(p);
	fd = output_fd(o);
	assert_int_equal(output_commit(o), 0);
	put(p->part, "other");
	output_free(o);
	expect_text(p->part, "other");
	close(fd);
}

/* The lock is the file's and not the name's: whoever dies leaves it free. */
static int hold_and_die(void *ctx)
{
	const struct place *p = ctx;
	struct output *o = NULL;
	char why[256];

	CHECK(!output_open(&o, p->path, &p->who, why, sizeof(why)));
	CHECK(write(output_fd(o), "dead", 4) == 4);
	_exit(0);
}

static void a_dead_writer_is_none(void **state)
{
	struct place *p = *state;

	assert_int_equal(child_run(hold_and_die, p), 0);
	expect_text(p->part, "dead");
	output_free(must_open(p));
	expect_text(p->old, "dead");
}

static void only_regular_files_are_replaced(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdir(p->path, 0755), 0);
	refuse(p, -EINVAL, "not a regular file");
	assert_int_equal(rmdir(p->path), 0);
	assert_int_equal(mkfifo(p->path, 0644), 0);
	refuse(p, -EINVAL, "not a regular file");
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(symlink("/dev/null", p->path), 0);
	refuse(p, -EINVAL, "not a regular file");
	assert_false(is_there(p->part));
	assert_true(is_there("/dev/null"));
}

/* A link where the unfinished file would be must not lead to writing elsewhere. */
static void links_are_not_followed(void **state)
{
	struct place *p = *state;
	char aim[96];

	snprintf(aim, sizeof(aim), "%s/aim", p->dir);
	put(aim, "precious");
	assert_int_equal(symlink(aim, p->part), 0);
	refuse(p, -ELOOP, "cannot write");
	expect_text(aim, "precious");
	assert_int_equal(unlink(aim), 0);
	refuse(p, -ELOOP, "cannot write"); /* dangling: not made either */
	assert_false(is_there(aim));
	assert_int_equal(unlink(p->part), 0);
	assert_int_equal(mkfifo(p->part, 0644), 0);
	output_free(must_open(p)); /* neither waits for a reader nor writes into it */
	assert_true(is_there(p->old));
}

static void places_that_cannot_be_written(void **state)
{
	struct place *p = *state;
	char long_name[NAME_MAX + 2], why[512] = "";
	struct output *o = NULL;

	snprintf(p->path, sizeof(p->path), "%s/none/t.gbpf", p->dir);
	refuse(p, -ENOENT, "No such file");
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(output_open(&o, long_name, &p->who, why, sizeof(why)), -ENAMETOOLONG);
	assert_null(o);
	assert_non_null(strstr(why, "too long"));
}

/* Where .old cannot be: what was there stays, and what was recorded, too. */
static void a_commit_that_fails(void **state)
{
	struct place *p = *state;
	struct output *o = must_open(p);

	write_text(o, "one");
	put(p->path, "before");
	assert_int_equal(mkdir(p->old, 0755), 0);
	assert_int_equal(output_commit(o), -EISDIR);
	output_free(o);
	expect_text(p->part, "one");
	expect_text(p->path, "before");
}

/* ---- whose files ---- */

static int as_nobody_into_roots_directory(void *ctx)
{
	const struct place *p = ctx;
	struct output *o = NULL;
	char why[256] = "";

	CHECK(!become_nobody());
	CHECK(output_open(&o, p->path, &p->who, why, sizeof(why)) == -EACCES);
	CHECK(!o && strstr(why, "Permission denied"));
	return 0;
}

static void expect_owner(const char *path, uid_t uid)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, uid);
}

static void as_root_only(void)
{
	if (geteuid())
		skip();
}

static void no_rights_and_no_sudo(void **state)
{
	as_root_only();
	assert_int_equal(child_run(as_nobody_into_roots_directory, *state), 0);
}

static void files_are_the_invokers(void **state)
{
	struct place *p = *state;

	as_root_only();
	p->who.uid = p->who.gid = SOMEBODY;
	record_whole(p, "one"); /* into a directory that only root may write */
	expect_owner(p->path, SOMEBODY);
	assert_int_equal(chown(p->dir, SOMEBODY, SOMEBODY), 0);
	record_whole(p, "two"); /* with the invoker's own rights */
	expect_owner(p->path, SOMEBODY);
	expect_owner(p->old, SOMEBODY);
	assert_int_equal(setfsuid(0), 0); /* rights are back: it returns what was */
	assert_int_equal(setfsgid(0), 0);
}

/* Another user's file is no invoker's to move, in a directory both may write. */
static void others_files_stay(void **state)
{
	struct place *p = *state;

	as_root_only();
	assert_int_equal(chmod(p->dir, 01777), 0);
	put(p->part, "root's");
	p->who.uid = p->who.gid = SOMEBODY;
	refuse(p, -EPERM, "cannot write");
	expect_text(p->part, "root's");
	expect_owner(p->part, 0);
	assert_false(is_there(p->old));
}

static void sudo_says_who(void **state)
{
	struct invoker who;

	as_root_only();
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(invoker_get(&who), 0);
	assert_int_equal(who.uid, 0);
	assert_string_equal(who.name, "root");
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "12", 1);
	assert_int_equal(invoker_get(&who), 0);
	assert_int_equal(who.uid, 65534);
	assert_int_equal(who.gid, 12);
	assert_string_equal(who.name, "nobody");
	setenv("SUDO_UID", "12345", 1);
	assert_int_equal(invoker_get(&who), 0);
	assert_string_equal(who.name, "");
	unsetenv("SUDO_GID");
	assert_int_equal(invoker_get(&who), -EINVAL);
	unsetenv("SUDO_UID");
}

static void sudo_numbers_are_numbers(void **state)
{
	static const char *const bad[] = {"", "root", "-1", "+5", " 5", "5 ", "5x", "0x5",
					  "4294967295", "4294967296", "99999999999999999999"};
	struct invoker who;

	as_root_only();
	setenv("SUDO_GID", "1", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("SUDO_UID", bad[i], 1);
		if (invoker_get(&who) != -EINVAL)
			fail_msg("SUDO_UID='%s' was taken as %u", bad[i], who.uid);
	}
	setenv("SUDO_UID", "4294967294", 1);
	assert_int_equal(invoker_get(&who), 0);
	assert_int_equal(who.uid, 4294967294);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_whole_files_have_the_name, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(the_one_before_is_kept, make_place, remove_place),
		cmocka_unit_test_setup_teardown(what_was_not_to_be_goes, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_crashed_one_is_kept, make_place, remove_place),
		cmocka_unit_test_setup_teardown(one_writer_at_a_time, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_dead_writer_is_none, make_place, remove_place),
		cmocka_unit_test_setup_teardown(only_regular_files_are_replaced, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(links_are_not_followed, make_place, remove_place),
		cmocka_unit_test_setup_teardown(places_that_cannot_be_written, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(a_commit_that_fails, make_place, remove_place),
		cmocka_unit_test_setup_teardown(no_rights_and_no_sudo, make_place, remove_place),
		cmocka_unit_test_setup_teardown(files_are_the_invokers, make_place, remove_place),
		cmocka_unit_test_setup_teardown(others_files_stay, make_place, remove_place),
		cmocka_unit_test(sudo_says_who),
		cmocka_unit_test(sudo_numbers_are_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
