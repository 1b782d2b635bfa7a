/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "target/target.h"
#include "util/err.h"
#include "util/json.h"
#include "util/term.h"
#include "util/text.h"

struct image {
	char *path;
	enum image_hint hint;
	bool deleted;
};

struct row {
	struct process_info process;
	char user[64];
	struct image *images;
	size_t images_count;
};

struct listing {
	struct row *rows;
	size_t count;
	size_t not_readable; /* processes whose mappings were not ours to see */
	struct row *current; /* being filled by add_image() */
};

struct options {
	int format;
};

enum { FORMAT_TABLE, FORMAT_JSON };

static const char *const formats[] = {"table", "json", NULL};

static const struct opt opts[] = {
	{.name = "format",
	 .letter = 'f',
	 .type = OPT_CHOICE,
	 .arg = "FORMAT",
	 .choices = formats,
	 .offset = offsetof(struct options, format),
	 .help = "How to print: table (the default) for people, json for programs."},
	{0},
};

static int add_image(const struct mapping *m, void *ctx)
{
	struct row *row = ((struct listing *)ctx)->current;
	enum image_hint hint = image_hint(m->path);
	struct image *grown;

	if (hint == HINT_NONE)
		return 0;
	grown = realloc(row->images, (row->images_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	row->images = grown;
	grown += row->images_count;
	*grown = (struct image){.path = strdup(m->path), .hint = hint, .deleted = m->deleted};
	if (!grown->path)
		return -ENOMEM;
	row->images_count++;
	return 0;
}

static void free_row(struct row *row)
{
	for (size_t i = 0; i < row->images_count; i++)
		free(row->images[i].path);
	free(row->images);
}

static void name_user(struct row *row)
{
	const struct passwd *user = getpwuid(row->process.uid);

	if (user)
		snprintf(row->user, sizeof(row->user), "%s", user->pw_name);
	else
		snprintf(row->user, sizeof(row->user), "%u", row->process.uid);
}

/* Processes come and go while the list is made: one that ended is no error. */
static int add_process(uint32_t pid, void *ctx)
{
	struct listing *list = ctx;
	struct row row = {0}, *grown;
	int err;

	list->current = &row;
	err = maps_each(pid, add_image, list);
	if (err == -EACCES || err == -EPERM) {
		list->not_readable++;
		err = 0;
	}
	if (row.images_count == 0 || err || process_read(pid, &row.process) != 0)
		goto out;
	name_user(&row);
	grown = realloc(list->rows, (list->count + 1) * sizeof(*grown));
	if (!grown) {
		err = -ENOMEM;
		goto out;
	}
	list->rows = grown;
	list->rows[list->count++] = row;
	return 0;
out:
	free_row(&row);
	return err == -ENOMEM ? err : 0;
}

static void free_listing(struct listing *list)
{
	for (size_t i = 0; i < list->count; i++)
		free_row(&list->rows[i]);
	free(list->rows);
}

static int by_pid(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;

	return (ra->process.pid > rb->process.pid) - (ra->process.pid < rb->process.pid);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *command_of(const struct row *row)
{
	return row->process.cmdline[0] ? row->process.cmdline : row->process.comm;
}

/* "libcuda.so.1, libcudart.so.13 (deleted)" */
static void join_images(const struct row *row, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < row->images_count && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s%s", i ? ", " : "",
					base_name(row->images[i].path),
					row->images[i].deleted ? " (deleted)" : "");
}

enum { COLUMNS = 5, COLUMN_COMMAND = 4 };

static void cells(const struct row *row, char out[COLUMNS][1024])
{
	char images[512];

	join_images(row, images, sizeof(images));
	snprintf(out[0], sizeof(out[0]), "%u", row->process.pid);
	text_printable(row->user, out[1], sizeof(out[1]), 24);
	text_printable(row->process.container[0] ? row->process.container : "-", out[2],
		       sizeof(out[2]), 16);
	text_printable(images, out[3], sizeof(out[3]), 80);
	text_printable(command_of(row), out[4], sizeof(out[4]), 0);
}

/* Padding is ours to count: printf() counts bytes, terminals columns. */
static void print_cells(char out[COLUMNS][1024], const size_t widths[COLUMNS], size_t room)
{
	char cut[1024];
	size_t used = 0;

	for (size_t c = 0; c < COLUMN_COMMAND; c++) {
		printf("%s%*s", out[c], (int)(widths[c] - text_width(out[c]) + 2), "");
		used += widths[c] + 2;
	}
	puts(text_printable(out[COLUMN_COMMAND], cut, sizeof(cut),
			    room > used + 10 ? room - used : 0));
}

static void print_table(const struct listing *list)
{
	char out[COLUMNS][1024] = {"PID", "USER", "CONTAINER", "IMAGES", "COMMAND"};
	char row[COLUMNS][1024];
	size_t widths[COLUMNS];
	size_t room = term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO, 80) : 0;

	if (list->count == 0)
		return;
	for (size_t c = 0; c < COLUMNS; c++)
		widths[c] = text_width(out[c]);
	for (size_t i = 0; i < list->count; i++) {
		cells(&list->rows[i], row);
		for (size_t c = 0; c < COLUMNS; c++)
			widths[c] = text_width(row[c]) > widths[c] ? text_width(row[c]) : widths[c];
	}
	print_cells(out, widths, room);
	for (size_t i = 0; i < list->count; i++) {
		cells(&list->rows[i], row);
		print_cells(row, widths, room);
	}
}

static const char *hint_name(enum image_hint hint)
{
	switch (hint) {
	case HINT_DRIVER:
		return "driver";
	case HINT_RUNTIME:
		return "runtime";
	case HINT_NCCL:
		return "nccl";
	case HINT_NONE:
		break;
	}
	return "none";
}

static void json_row(struct json *j, const struct row *row)
{
	json_begin_object(j);
	json_key(j, "pid");
	json_uint(j, row->process.pid);
	json_key(j, "ns_pid");
	json_uint(j, row->process.ns_pid);
	json_key(j, "ppid");
	json_uint(j, row->process.ppid);
	json_key(j, "uid");
	json_uint(j, row->process.uid);
	json_key(j, "user");
	json_string(j, row->user);
	json_key(j, "container");
	json_string(j, row->process.container);
	json_key(j, "comm");
	json_string(j, row->process.comm);
	json_key(j, "command");
	json_string(j, command_of(row));
	json_key(j, "images");
	json_begin_array(j);
	for (size_t i = 0; i < row->images_count; i++) {
		json_begin_object(j);
		json_key(j, "path");
		json_string(j, row->images[i].path);
		json_key(j, "kind");
		json_string(j, hint_name(row->images[i].hint));
		json_key(j, "deleted");
		json_bool(j, row->images[i].deleted);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void print_json(const struct listing *list)
{
	struct json j;

	json_init(&j, stdout);
	json_begin_object(&j);
	json_key(&j, "view");
	json_string(&j, "list");
	json_key(&j, "rows");
	json_begin_array(&j);
	for (size_t i = 0; i < list->count; i++)
		json_row(&j, &list->rows[i]);
	json_end_array(&j);
	json_key(&j, "quality");
	json_begin_object(&j);
	json_key(&j, "processes_not_readable");
	json_uint(&j, list->not_readable);
	json_end_object(&j);
	json_end_object(&j);
	putchar('\n');
}

static void print_notes(const struct listing *list)
{
	if (list->count == 0)
		err_report("no process%s uses CUDA",
			   list->not_readable ? " that could be looked into" : "");
	if (list->not_readable == 0)
		return;
	err_report("%zu process%s could not be looked into, for want of rights",
		   list->not_readable, list->not_readable == 1 ? "" : "es");
	if (geteuid() != 0)
		err_hint("sudo gbpf list");
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {.format = FORMAT_TABLE};
	struct listing list = {0};
	int first, err;

	err = opt_parse(self, &o, argc, argv, &first);
	if (err != OPT_OK)
		return err == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (first < argc) {
		err_report("list: unexpected argument '%s'", argv[first]);
		err_hint("gbpf list --help");
		return EXIT_USAGE;
	}
	err = process_each(add_process, &list);
	if (err) {
		err_report("cannot list the processes: %s", strerror(-err));
		free_listing(&list);
		return EXIT_FAILED;
	}
	if (list.count > 0)
		qsort(list.rows, list.count, sizeof(*list.rows), by_pid);
	if (o.format == FORMAT_JSON)
		print_json(&list);
	else
		print_table(&list);
	print_notes(&list);
	free_listing(&list);
	return EXIT_OK;
}

static const struct opt_example examples[] = {
	{"gbpf list", "Your own processes that use CUDA; with sudo, everybody's."},
	{"sudo gbpf list --format json", "The same for a program to read."},
	{0},
};

const struct command cmd_list = {
	.name = "list",
	.summary = "show the processes that use CUDA",
	.usage = "[OPTION…]",
	.description =
		"Shows each process that has a CUDA library mapped: its pid, user, container, the "
		"libraries and the command. It only reads /proc and touches no process. Processes "
		"of other users can be looked into by root only; how many were left out is said "
		"on stderr, and in the json format under quality.\n\n"
		"The pid is the host's number, which gbpf trace -p takes.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success, also when there is no such process; 1 failure; 2 wrong usage.",
	.run = run,
};
