/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * curses writes into a memory file, from which the terminal gets as much as it
 * takes: a terminal that is stopped (a suspended laptop at the other end) must
 * not stop the monitor, which has probes attached.
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "top/screen_private.h"
#include "util/term.h"

#define MAX_ROWS 1000	  /* a terminal that claims more is not believed */
#define MAX_COLUMNS 2000
/* A pseudo-terminal has room for this many bytes or for none (drivers/tty/tty_buffer.c). */
#define PIECE 256
#define CLOSE_NS 500000000LL /* that a terminal has to take the last bytes */

static const int guarded[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
#define GUARDED (sizeof(guarded) / sizeof(guarded[0]))

static bool is_utf8(void)
{
	const char *name = setlocale(LC_CTYPE, "");

	if (!name || !strcmp(name, "C") || !strcmp(name, "POSIX")) {
		/* A locale that is not installed here still says what the terminal speaks. */
		static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
		const char *asked = NULL;

		for (size_t i = 0; i < 3 && (!asked || !*asked); i++)
			asked = getenv(variables[i]);
		if (asked && (strcasestr(asked, "utf-8") || strcasestr(asked, "utf8")))
			setlocale(LC_CTYPE, "C.UTF-8");
	}
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* What curses sent, to be given to the terminal. */
static void collect(struct screen *s)
{
	off_t size = lseek(s->memory, 0, SEEK_CUR);
	size_t left = s->pending_len - s->pending_sent, n;

	if (size <= 0)
		return;
	n = (size_t)size;
	if (left)
		memmove(s->pending, s->pending + s->pending_sent, left);
	if (left + n > s->pending_size) {
		char *larger = realloc(s->pending, left + n);

		if (!larger) {
			/* A frame is lost: the next one must be whole. */
			s->pending_len = left;
			s->pending_sent = 0;
			screen_repaint(s);
			n = 0;
		} else {
			s->pending = larger;
			s->pending_size = left + n;
		}
	}
	if (n) {
		ssize_t got = pread(s->memory, s->pending + left, n, 0);

		s->pending_len = left + (got > 0 ? (size_t)got : 0);
		s->pending_sent = 0;
	}
	if (ftruncate(s->memory, 0) < 0)
		s->gone = true;
	lseek(s->memory, 0, SEEK_SET);
}

/* Bytes that the terminal takes without making us wait; 0: none now. */
static size_t taken(const struct screen *s)
{
	struct pollfd p = {.fd = s->out, .events = POLLOUT};
	size_t left = s->pending_len - s->pending_sent;

	if (!s->may_block)
		return left;
	if (poll(&p, 1, 0) <= 0)
		return 0;
	return left < PIECE ? left : PIECE;
}

static void send_pending(struct screen *s)
{
	while (s->pending_sent < s->pending_len && !s->gone) {
		size_t most = taken(s);
		ssize_t n = most ? write(s->out, s->pending + s->pending_sent, most) : 0;

		if (!most)
			return;
		if (n > 0)
			s->pending_sent += (size_t)n;
		else if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0 && errno == EAGAIN)
			return;
		else
			s->gone = true;
	}
	s->pending_len = s->pending_sent = 0;
}

/*
 * The terminal itself, opened anew: O_NONBLOCK on stdout would be shared with
 * the shell. Without the right to (a user's terminal, and gbpf has given up its
 * own rights) stdout has to do.
 */
static void open_output(struct screen *s)
{
	s->out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	s->may_block = s->out < 0;
	if (s->may_block)
		s->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

static void set_colours(struct screen *s)
{
	s->colour = term_colour(STDOUT_FILENO) && has_colors();
	if (!s->colour)
		return;
	start_color();
	use_default_colors();
	init_pair(1, COLOR_GREEN, -1);
	init_pair(2, COLOR_YELLOW, -1);
	init_pair(3, COLOR_RED, -1);
	init_pair(4, COLOR_BLACK, COLOR_GREEN);
	init_pair(5, COLOR_BLACK, COLOR_CYAN);
}

/* Keys come at once and unseen; ^C stays a signal, ^Z, ^S and ^Q are keys. */
static int set_modes(struct screen *s)
{
	struct termios t = s->saved;

	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	t.c_lflag |= ISIG;
	t.c_iflag &= ~(tcflag_t)(IXON | IXOFF | ICRNL | INLCR | IGNCR | ISTRIP);
	t.c_oflag |= OPOST | ONLCR;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	t.c_cc[VSUSP] = _POSIX_VDISABLE;
	return tcsetattr(STDIN_FILENO, TCSANOW, &t) < 0 ? -errno : 0;
}

static bool can_move_cursor(void)
{
	const char *address = tigetstr("cup");

	return address && address != (char *)-1;
}

static int start_curses(struct screen *s, char *why, size_t size)
{
	struct sigaction actions[GUARDED];
	const char *type = getenv("TERM");

	for (size_t i = 0; i < GUARDED; i++)
		sigaction(guarded[i], NULL, &actions[i]);
	use_tioctl(TRUE);
	s->curses = newterm(NULL, s->to, stdin);
	/* curses has taken those that were at their defaults; they are the caller's. */
	for (size_t i = 0; i < GUARDED; i++)
		sigaction(guarded[i], &actions[i], NULL);
	s->changed = s->curses != NULL;
	if (!s->curses || !can_move_cursor()) {
		snprintf(why, size,
			 "the terminal's type (TERM=%.40s) is not known here or cannot move its "
			 "cursor: try TERM=xterm or TERM=vt100", type && *type ? type : "");
		return -ENOENT;
	}
	cbreak();
	noecho();
	nonl();
	set_escdelay(25);
	set_colours(s);
	s->keys = newpad(1, 1);
	if (!s->keys)
		return -ENOMEM;
	keypad(s->keys, TRUE);
	nodelay(s->keys, TRUE);
	leaveok(stdscr, FALSE);
	getmaxyx(stdscr, s->rows, s->columns);
	return 0;
}

static int open_files(struct screen *s)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -errno;
	s->to = fdopen(fd, "w");
	if (!s->to) {
		close(fd);
		return -ENOMEM;
	}
	s->memory = memfd_create("screen", MFD_CLOEXEC);
	if (s->memory < 0)
		return -errno;
	open_output(s);
	return s->out < 0 ? -errno : 0;
}

int screen_check(char *why, size_t size)
{
	bool in = isatty(STDIN_FILENO), out = isatty(STDOUT_FILENO);

	if (in && out)
		return 0;
	snprintf(why, size, "%s is no terminal: use `gbpf monitor`", in ? "stdout" : "stdin");
	return -ENOTTY;
}

int screen_open(struct screen **out, char *why, size_t size)
{
	struct screen *s;
	int err;

	*out = NULL;
	err = screen_check(why, size);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->memory = s->out = s->cursor_row = -1;
	s->utf8 = is_utf8();
	snprintf(why, size, "the terminal cannot be used");
	err = tcgetattr(STDIN_FILENO, &s->saved) < 0 ? -errno : open_files(s);
	if (!err)
		err = start_curses(s, why, size);
	if (!err)
		err = set_modes(s);
	if (!err && dup3(s->memory, fileno(s->to), O_CLOEXEC) < 0)
		err = -errno;
	s->open = !err;
	if (err) {
		screen_free(s);
		return err;
	}
	*out = s;
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void send_rest(struct screen *s)
{
	int64_t until = now_ns() + CLOSE_NS;

	send_pending(s);
	while (s->pending_sent < s->pending_len && !s->gone && now_ns() < until) {
		struct pollfd p = {.fd = s->out, .events = POLLOUT};

		if (poll(&p, 1, 50) > 0 && (p.revents & (POLLERR | POLLNVAL)))
			break;
		send_pending(s);
	}
}

void screen_close(struct screen *s)
{
	if (!s || !s->open)
		return;
	s->open = false;
	curs_set(1);
	endwin();
	collect(s);
	send_rest(s);
	tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
}

void screen_free(struct screen *s)
{
	if (!s)
		return;
	screen_close(s);
	if (s->changed) /* it may have been before all was open */
		tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
	if (s->keys)
		delwin(s->keys);
	if (s->curses)
		delscreen(s->curses);
	if (s->to)
		fclose(s->to);
	if (s->memory >= 0)
		close(s->memory);
	if (s->out >= 0)
		close(s->out);
	free(s->pending);
	free(s);
}

bool screen_resize(struct screen *s)
{
	struct winsize size;
	char *region;

	if (!s->open || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
	    !size.ws_col || size.ws_row > MAX_ROWS || size.ws_col > MAX_COLUMNS ||
	    (size.ws_row == s->rows && size.ws_col == s->columns))
		return false;
	if (resizeterm(size.ws_row, size.ws_col) == ERR)
		return false;
	s->rows = size.ws_row;
	s->columns = size.ws_col;
	/* Else what scrolls after gbpf has ended scrolls within the old size. */
	region = tigetstr("csr");
	if (region && region != (char *)-1)
		putp(tparm(region, 0L, (long)s->rows - 1, 0L, 0L, 0L, 0L, 0L, 0L, 0L));
	screen_repaint(s);
	return true;
}

int screen_rows(const struct screen *s)
{
	return s->rows;
}

int screen_columns(const struct screen *s)
{
	return s->columns;
}

bool screen_utf8(const struct screen *s)
{
	return s->utf8;
}

int screen_fd(const struct screen *s)
{
	return STDIN_FILENO;
}

static uint32_t special(wint_t key)
{
	static const struct {
		wint_t curses;
		uint32_t key;
	} keys[] = {
		{KEY_UP, SCREEN_UP},	    {KEY_DOWN, SCREEN_DOWN},
		{KEY_LEFT, SCREEN_LEFT},    {KEY_RIGHT, SCREEN_RIGHT},
		{KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
		{KEY_HOME, SCREEN_HOME},    {KEY_END, SCREEN_END},
		{KEY_ENTER, SCREEN_ENTER},  {KEY_BACKSPACE, SCREEN_BACKSPACE},
		{KEY_BTAB, SCREEN_BACK_TAB}, {KEY_SUSPEND, 'Z' & 0x1f},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].curses == key)
			return keys[i].key;
	}
	if (key >= (wint_t)KEY_F(1) && key <= (wint_t)KEY_F(12))
		return SCREEN_F1 + (key - KEY_F(1));
	return SCREEN_OTHER;
}

uint32_t screen_key(struct screen *s)
{
	wint_t key = 0;
	int kind;

	do { /* a new size is not told by a key */
		kind = s->open ? wget_wch(s->keys, &key) : ERR;
	} while (kind == KEY_CODE_YES && key == KEY_RESIZE);
	if (kind == ERR)
		return SCREEN_NONE;
	if (kind == KEY_CODE_YES)
		return special(key);
	switch (key) {
	case '\r':
	case '\n':
		return SCREEN_ENTER;
	case 27:
		return SCREEN_ESCAPE;
	case 8:
	case 127:
		return SCREEN_BACKSPACE;
	case '\t':
		return SCREEN_TAB;
	default:
		return key ? (uint32_t)key : SCREEN_OTHER;
	}
}

void screen_cursor(struct screen *s, int row, int column)
{
	s->cursor_row = row;
	s->cursor_column = column;
}

bool screen_ready(struct screen *s)
{
	send_pending(s);
	return s->open && s->pending_len == 0;
}

void screen_show(struct screen *s)
{
	if (!s->open)
		return;
	curs_set(s->cursor_row >= 0);
	if (s->cursor_row >= 0)
		move(s->cursor_row, s->cursor_column);
	else
		move(s->rows - 1, 0);
	wnoutrefresh(stdscr);
	doupdate();
	collect(s);
	send_pending(s);
}

int screen_wait(struct screen *s, int64_t ns)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			      {.fd = s->pending_len ? s->out : -1, .events = POLLOUT}};
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	if (!s->open || s->gone)
		return -EIO;
	if (ppoll(p, 2, &t, NULL) < 0)
		return errno == EINTR ? -EINTR : -EIO;
	if (p[1].revents & POLLOUT)
		send_pending(s);
	return p[0].revents & (POLLHUP | POLLERR | POLLNVAL) || s->gone ? -EIO : 0;
}
