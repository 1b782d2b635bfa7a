/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/term.h"

struct pty {
	int master, slave, file;
};

static int open_pty(void **state)
{
	static struct pty p;

	p.master = posix_openpt(O_RDWR | O_NOCTTY);
	if (p.master < 0 || grantpt(p.master) || unlockpt(p.master))
		return -1;
	p.slave = open(ptsname(p.master), O_RDWR | O_NOCTTY);
	p.file = open("/dev/null", O_WRONLY);
	*state = &p;
	unsetenv("NO_COLOR");
	unsetenv("COLUMNS");
	setenv("TERM", "xterm", 1);
	return p.slave < 0 || p.file < 0 ? -1 : 0;
}

static int close_pty(void **state)
{
	struct pty *p = *state;

	close(p->master);
	close(p->slave);
	close(p->file);
	return 0;
}

static void colours_on_a_terminal_only(void **state)
{
	struct pty *p = *state;

	assert_true(term_is_tty(p->slave));
	assert_true(term_colour(p->slave));
	assert_false(term_is_tty(p->file));
	assert_false(term_colour(p->file));
	assert_false(term_colour(-1));
}

static void no_color_turns_them_off(void **state)
{
	struct pty *p = *state;

	setenv("NO_COLOR", "1", 1);
	assert_false(term_colour(p->slave));
	setenv("NO_COLOR", "", 1); /* set, but empty: means nothing */
	assert_true(term_colour(p->slave));
}

static void dumb_and_unknown_terminals_have_none(void **state)
{
	struct pty *p = *state;

	setenv("TERM", "dumb", 1);
	assert_false(term_colour(p->slave));
	setenv("TERM", "", 1);
	assert_false(term_colour(p->slave));
	unsetenv("TERM");
	assert_false(term_colour(p->slave));
}

static void styles_are_empty_without_colour(void **state)
{
	assert_string_equal(term_style(false, TERM_RED), "");
	assert_string_equal(term_style(false, TERM_PLAIN), "");
	assert_string_equal(term_style(true, TERM_RED), "\x1b[31m");
	assert_string_equal(term_style(true, TERM_PLAIN), "\x1b[0m");
}

static void width_of_a_terminal(void **state)
{
	struct pty *p = *state;
	struct winsize size = {.ws_col = 123, .ws_row = 40};

	assert_int_equal(ioctl(p->slave, TIOCSWINSZ, &size), 0);
	assert_int_equal(term_width(p->slave, 80), 123);
	assert_int_equal(term_width(p->file, 80), 80);
	assert_int_equal(term_width(p->file, 0), 0);
	setenv("COLUMNS", "60", 1);
	assert_int_equal(term_width(p->slave, 80), 60);
	assert_int_equal(term_width(p->file, 80), 60);
	setenv("COLUMNS", "nonsense", 1);
	assert_int_equal(term_width(p->slave, 80), 123);
	setenv("COLUMNS", "-1", 1);
	assert_int_equal(term_width(p->slave, 80), 123);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(colours_on_a_terminal_only, open_pty, close_pty),
		cmocka_unit_test_setup_teardown(no_color_turns_them_off, open_pty, close_pty),
		cmocka_unit_test_setup_teardown(dumb_and_unknown_terminals_have_none, open_pty,
						close_pty),
		cmocka_unit_test(styles_are_empty_without_colour),
		cmocka_unit_test_setup_teardown(width_of_a_terminal, open_pty, close_pty),
	};

	return cmocka_run_group_tests_name("term", tests, NULL, NULL);
}
