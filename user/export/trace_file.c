// SPDX-License-Identifier: BSD-2-Clause
/* A file that is under its name only when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/gzip.h"
#include "export/trace.h"
#include "util/text.h"

#define BUFFER (256 * 1024)

struct export_file {
	char *path, *part;
	FILE *stream;
	int fd;
	int err; /* the first failure to write, -errno */
	bool whole;
	uint64_t size;
	struct gzip *gzip; /* NULL: it is not compressed */
};

static void keep_error(struct export_file *f, int err)
{
	if (!f->err)
		f->err = err;
}

static int write_all(struct export_file *f, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(f->fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			keep_error(f, n ? -errno : -EIO);
			return f->err;
		}
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int on_compressed(void *ctx, const void *bytes, size_t size)
{
	return write_all(ctx, bytes, size);
}

/* Of fopencookie(): 0 is an error. After the first nothing is written. */
static ssize_t on_write(void *cookie, const char *bytes, size_t size)
{
	struct export_file *f = cookie;
	int err = f->err;

	if (!err)
		err = f->gzip ? gzip_put(f->gzip, bytes, size, false) : write_all(f, bytes, size);
	if (err)
		errno = -err;
	return err ? 0 : (ssize_t)size;
}

static int stream_make(struct export_file *f, bool quick)
{
	const cookie_io_functions_t io = {.write = on_write};
	size_t len = strlen(f->path);

	if (len > 3 && !strcmp(f->path + len - 3, ".gz") &&
	    gzip_new(&f->gzip, quick, NULL, on_compressed, f))
		return -ENOMEM;
	f->stream = fopencookie(f, "w", io);
	if (!f->stream)
		return -ENOMEM;
	return setvbuf(f->stream, NULL, _IOFBF, BUFFER) ? -ENOMEM : 0;
}

static int part_make(struct export_file *f)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;

	if (!stat(f->path, &st) && !S_ISREG(st.st_mode))
		return -EINVAL;
	f->fd = open(f->part, flags, 0666);
	if (f->fd < 0 && errno == EEXIST && !unlink(f->part)) /* of a process that was killed */
		f->fd = open(f->part, flags, 0666);
	return f->fd < 0 ? -errno : 0;
}

int export_open(struct export_file **out, const char *path, bool quick)
{
	struct export_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->path = strdup(path);
	if (asprintf(&f->part, "%s.%d.part", path, (int)getpid()) < 0)
		f->part = NULL;
	err = f->path && f->part ? part_make(f) : -ENOMEM;
	if (!err)
		err = stream_make(f, quick);
	if (err) {
		export_close(f);
		return err;
	}
	*out = f;
	return 0;
}

const char *export_path(const struct export_file *f)
{
	return f->part;
}

FILE *export_stream(struct export_file *f)
{
	return f->stream;
}

static void stream_end(struct export_file *f)
{
	if (f->stream && fclose(f->stream))
		keep_error(f, errno ? -errno : -EIO);
	f->stream = NULL;
	if (f->gzip && !f->err)
		keep_error(f, gzip_put(f->gzip, "", 0, true));
	gzip_free(f->gzip);
	f->gzip = NULL;
}

/* So that a power cut finds either name, old or new. */
static void sync_directory(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(copy);
}

int export_commit(struct export_file *f)
{
	struct stat st;

	errno = 0;
	stream_end(f);
	if (!f->err && fsync(f->fd))
		keep_error(f, -errno);
	if (!f->err && fstat(f->fd, &st))
		keep_error(f, -errno);
	if (!f->err && rename(f->part, f->path))
		keep_error(f, -errno);
	if (f->err)
		return f->err;
	f->whole = true;
	f->size = (uint64_t)st.st_size;
	sync_directory(f->path);
	return 0;
}

uint64_t export_size(const struct export_file *f)
{
	return f->size;
}

void export_close(struct export_file *f)
{
	if (!f)
		return;
	keep_error(f, f->whole ? 0 : -ECANCELED); /* what is buffered need not be written */
	stream_end(f);
	if (f->fd >= 0 && !f->whole && f->part)
		unlink(f->part);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->part);
	free(f);
}

size_t export_text(const char *src, char *buf, size_t size)
{
	size_t left = src ? strlen(src) : 0, at = 0;

	while (left) {
		size_t n = text_utf8_length(src, left);
		const char *from = n ? src : "\xef\xbf\xbd";
		size_t bytes = n ? n : 3;

		if (at + bytes >= size)
			break;
		memcpy(buf + at, from, bytes);
		at += bytes;
		src += n ? n : 1;
		left -= n ? n : 1;
	}
	buf[at] = '\0';
	return at;
}
