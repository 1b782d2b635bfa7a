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
#include <sys/sysmacros.h>

#include "target/parse.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
/* Fields 5 to 19 and 21 of proc_pid_stat(5), some of them negative. */
#define TO_THREADS " 1 2 34816 -1 4194304 1 2 3 4 5 6 7 8 20 -5 "
#define AFTER " 18446744073709551615 0 0\n"

static int stat_of(const char *text, struct parsed_stat *out)
{
	return parse_stat(text, strlen(text), out);
}

static void stat_takes_any_comm(void **state)
{
	static const char *const names[] = { "cat", "a b", ") R 1 2", "((", "))", "x\ny", ") (", "",
					     "\xff\xfe\x01" };
	struct parsed_stat out;
	char text[512];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "7 (%s) S 42" TO_THREADS "9 0 123456789" AFTER,
			 names[i]);
		assert_int_equal(stat_of(text, &out), 0);
		assert_string_equal(out.comm, names[i]);
		assert_int_equal(out.state, 'S');
		assert_int_equal(out.ppid, 42);
		assert_int_equal(out.cpu, 5 + 6 + 7 + 8);
		assert_int_equal(out.threads, 9);
		assert_int_equal(out.start, 123456789);
	}
}

static void stat_cuts_long_comm(void **state)
{
	struct parsed_stat out;

	assert_int_equal(stat_of("7 (kworker/u8:2-events_unbound) I 2" TO_THREADS "1 0 31" AFTER,
				 &out), 0);
	assert_string_equal(out.comm, "kworker/u8:2-ev");
	assert_int_equal(out.start, 31);
}

static void stat_refuses_every_cut(void **state)
{
	static const char text[] = "7 (a) b) S 42" TO_THREADS "9 0 1";
	struct parsed_stat out;
	size_t whole = sizeof(text) - 1;

	assert_int_equal(stat_of(text, &out), 0);
	for (size_t len = 0; len < whole; len++) {
		char *cut = strndup(text, len);

		assert_non_null(cut);
		assert_int_equal(parse_stat(cut, len, &out), -EINVAL);
		free(cut);
	}
}

static void stat_refuses_numbers_that_lie(void **state)
{
	struct parsed_stat out;

	assert_int_equal(stat_of("7 (a) S 4294967296" TO_THREADS "9 0 1" AFTER, &out), -EINVAL);
	assert_int_equal(stat_of("7 (a) S -1" TO_THREADS "9 0 1" AFTER, &out), -EINVAL);
	assert_int_equal(stat_of("7 (a) S 1" TO_THREADS "9 0 18446744073709551616" AFTER, &out),
			 -EINVAL);
	assert_int_equal(stat_of("7 (a) S 1" TO_THREADS "9 0 18446744073709551615" AFTER, &out), 0);
	assert_true(out.start == UINT64_MAX);
	assert_int_equal(stat_of(")7 (a S 1" TO_THREADS "9 0 1" AFTER, &out), -EINVAL);
}

static void status_of(struct parsed_status *out, const char *line)
{
	parse_status_line(line, strlen(line), out);
}

static void status_takes_what_it_knows(void **state)
{
	struct parsed_status s = { 0 };

	status_of(&s, "Name:\tUid:\\n9");
	status_of(&s, "Tgid:\t1234");
	status_of(&s, "Uid:\t1000\t0\t0\t0");
	status_of(&s, "NSpid:\t1234\t56\t1");
	status_of(&s, "Seccomp:\t2");
	status_of(&s, "Seccomp_filters:\t9");
	status_of(&s, "SeccompX:\t9");
	status_of(&s, "NStgid:\t9\t9");
	status_of(&s, " Tgid:\t9");
	status_of(&s, "Tgid:");
	status_of(&s, "Uid:\t-1");
	assert_int_equal(s.tgid, 1234);
	assert_int_equal(s.uid, 1000);
	assert_int_equal(s.seccomp, 2);
	assert_int_equal(s.levels, 3);
	assert_int_equal(s.pids[1], 56);
	assert_int_equal(s.pids[2], 1);
}

static void status_bounds_namespaces(void **state)
{
	struct parsed_status s = { 0 };
	char line[512] = "NSpid:";

	for (int i = 0; i < 60; i++)
		strcat(line, "\t7");
	status_of(&s, line);
	assert_int_equal(s.levels, PARSE_PID_LEVELS);
	status_of(&s, "NSpid:\t4\t5x\t6");
	assert_int_equal(s.levels, 2);
}

static int map_of(char *buf, const char *line, struct parsed_map *out)
{
	strcpy(buf, line);
	return parse_maps_line(buf, strlen(buf), out);
}

static void maps_reads_fields(void **state)
{
	struct parsed_map m;
	char buf[512];

	assert_int_equal(map_of(buf, "7f00dead0000-7f00deae1000 r-xp 00028000 fe:1f 4294967297"
				     "                /usr/lib/lib c.so.6", &m), 0);
	assert_true(m.start == 0x7f00dead0000 && m.end == 0x7f00deae1000 && m.offset == 0x28000);
	assert_true(m.dev == makedev(0xfe, 0x1f) && m.ino == 4294967297u);
	assert_true(m.executable && !m.deleted);
	assert_string_equal(m.path, "/usr/lib/lib c.so.6");
	assert_int_equal(map_of(buf, "00400000-00401000 rw-p 00000000 00:00 0 ", &m), 0);
	assert_false(m.executable);
	assert_string_equal(m.path, "");
	assert_int_equal(map_of(buf, "ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]",
				&m), 0);
	assert_string_equal(m.path, "[vsyscall]");
}

static void maps_undoes_what_the_kernel_adds(void **state)
{
	static const struct {
		const char *printed, *path;
		bool deleted;
	} cases[] = {
		{ "/a\\012b", "/a\nb", false },
		{ "/\\012\\012 (deleted)", "/\n\n", true },
		{ "/a\\01", "/a\\01", false },
		{ "/a\\\\012", "/a\\\n", false },
		{ "/memfd:x (deleted) (deleted)", "/memfd:x (deleted)", true },
		{ "/ (deleted)", "/", true },
		{ " (deleted)", "(deleted)", false },
		{ "/a(deleted)", "/a(deleted)", false },
		{ "/libcuda.so.1 (deleted) ", "/libcuda.so.1 (deleted) ", false },
		{ "anon_inode:[perf_event]", "anon_inode:[perf_event]", false },
	};
	struct parsed_map m;
	char buf[512], line[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(line, sizeof(line), "1000-2000 r-xp 0 08:01 7    %s", cases[i].printed);
		assert_int_equal(map_of(buf, line, &m), 0);
		assert_string_equal(m.path, cases[i].path);
		assert_int_equal(m.deleted, cases[i].deleted);
	}
}

static void maps_refuses_nonsense(void **state)
{
	static const char *const lines[] = {
		"", "-", "1000", "1000-", "1000-2000", "1000-2000 ", "1000-2000 r-x",
		"1000-2000 r-xp", "1000-2000 r-xp 0", "1000-2000 r-xp 0 08",
		"1000-2000 r-xp 0 08:01",
		"1000-2000 r-xp 0 08:01 ", "2000-1000 r-xp 0 08:01 7 /a",
		"1000-1000 r-xp 0 08:01 7 /a", "1000-2000 r-xp 0 100000000:01 7 /a",
		"10000000000000000-2 r-xp 0 08:01 7 /a", "0x1000-2000 r-xp 0 08:01 7 /a",
		" 1000-2000 r-xp 0 08:01 7 /a", "1000-2000 r-xp 0 08:01 18446744073709551616 /a",
		"1000-2000 r-xpp 0 08:01 7 /a",
	};
	struct parsed_map m;
	char buf[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(map_of(buf, lines[i], &m), -EINVAL);
}

static void cgroup_finds_containers(void **state)
{
	static const struct {
		const char *line, *id;
	} cases[] = {
		{ "0::/system.slice/docker-" HASH ".scope", "0123456789ab" },
		{ "4:memory:/docker/" HASH, "0123456789ab" },
		{ "0::/../" HASH, "0123456789ab" },
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
		  "cri-containerd-" HASH ".scope", "0123456789ab" },
		{ "9:name=systemd:/kubepods/besteffort/pod4e-11/" HASH, "0123456789ab" },
		{ "0::/kubepods.slice/kubepods-pod1.slice/crio-" HASH ".scope/container",
		  "0123456789ab" },
		{ "0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" HASH,
		  "0123456789ab" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" HASH
		  ".scope/container", "0123456789ab" },
		{ "0::/docker/" HASH "/docker/"
		  "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
		  "fedcba987654" },
		{ "0::/docker/" HASH " (deleted)", "0123456789ab" },
		{ "0::/lxc.payload.web-1/init.scope", "web-1" },
		{ "1:cpu:/lxc/web 2", "web 2" },
		{ "1:cpu:/lxc.payload/web3", "web3" },
	};
	char id[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line = cases[i].line;

		assert_true(parse_cgroup_line(line, strlen(line), id, sizeof(id)));
		assert_string_equal(id, cases[i].id);
	}
}

static void cgroup_finds_no_more(void **state)
{
	static const char *const lines[] = {
		"", "0", "0:", "0::", "0::/", "0:::", "/docker/" HASH,
		"0::/user.slice/user-1000.slice/session-2.scope",
		"0::/machine.slice/crio-conmon-" HASH ".scope",
		"0::/machine.slice/libpod-conmon-" HASH ".scope",
		"0::/docker/" HASH "0", "0::/docker/0123456789abcdef",
		"0::/docker/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF",
		"0::/lxc", "0::/lxc.payload", "0::/lxc.payload.", "0::/lxc.monitor.web",
		"4:memory:/batch/5578fc7b306a5151a955f0bc21870d07",
	};
	char id[128];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		strcpy(id, "left over");
		assert_false(parse_cgroup_line(lines[i], strlen(lines[i]), id, sizeof(id)));
		assert_string_equal(id, "");
	}
}

static void cgroup_bounds_names(void **state)
{
	char line[4096] = "0::/lxc.payload.", id[16];

	memset(line + strlen(line), 'n', sizeof(line) - 1 - strlen(line));
	line[sizeof(line) - 1] = '\0';
	assert_true(parse_cgroup_line(line, strlen(line), id, sizeof(id)));
	assert_string_equal(id, "nnnnnnnnnnnnnnn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_takes_any_comm),
		cmocka_unit_test(stat_cuts_long_comm),
		cmocka_unit_test(stat_refuses_every_cut),
		cmocka_unit_test(stat_refuses_numbers_that_lie),
		cmocka_unit_test(status_takes_what_it_knows),
		cmocka_unit_test(status_bounds_namespaces),
		cmocka_unit_test(maps_reads_fields),
		cmocka_unit_test(maps_undoes_what_the_kernel_adds),
		cmocka_unit_test(maps_refuses_nonsense),
		cmocka_unit_test(cgroup_finds_containers),
		cmocka_unit_test(cgroup_finds_no_more),
		cmocka_unit_test(cgroup_bounds_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
