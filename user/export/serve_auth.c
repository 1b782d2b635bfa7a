/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold secrets, and the users and passwords in one. */
#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/serve_private.h"
#include "util/text.h"

#define FILE_MAX 65536
#define USERS_MAX 64

struct serve_auth {
	char *text; /* the file, cut into the strings below */
	const char *user[USERS_MAX], *hash[USERS_MAX];
	size_t count;
};

/* What is wrong with it, or NULL. */
static const char *unfit(const struct stat *st, bool secret)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_size > FILE_MAX)
		return "is larger than 64 KiB";
	if (!secret)
		return NULL;
	if (st->st_uid && st->st_uid != geteuid())
		return "belongs to another user: it must be root's or your own";
	if (st->st_mode & (S_IRWXO | S_IWGRP))
		return "can be read or changed by others: chmod 600 it";
	return NULL;
}

static ssize_t read_all(int fd, char *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, to + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

char *serve_read_file(const char *path, bool secret, char *why, size_t size, int *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *fault = NULL;
	char shown[256], *text = NULL;
	struct stat st;
	ssize_t got = 0;

	*err = 0;
	text_printable(path, shown, sizeof(shown), 200);
	if (fd < 0 || fstat(fd, &st)) {
		*err = -errno;
		fault = strerror(errno);
	} else if ((fault = unfit(&st, secret))) {
		*err = -EPERM;
	} else if (!(text = malloc(FILE_MAX + 1))) {
		*err = -ENOMEM;
		fault = "no memory for it";
	} else if ((got = read_all(fd, text, FILE_MAX)) < 0) {
		*err = (int)got;
		fault = strerror(-*err);
	}
	if (fd >= 0)
		close(fd);
	if (!fault && text) {
		text[got] = '\0';
		return text;
	}
	snprintf(why, size, "%s: %s", shown, fault);
	free(text);
	return NULL;
}

/* One "user:hash". false: it is neither that nor empty nor a comment. */
static bool add_line(struct serve_auth *a, char *line)
{
	char *colon = strchr(line, ':');

	line[strcspn(line, "\r")] = '\0';
	if (!*line || *line == '#')
		return true;
	/* old DES hashes have no $, and what has none may as well be a plain password */
	if (!colon || colon == line || colon[1] != '$' || a->count == USERS_MAX)
		return false;
	*colon = '\0';
	a->user[a->count] = line;
	a->hash[a->count++] = colon + 1;
	/* refuses what this libcrypt does not know, such as htpasswd's $apr1$ */
	return crypt_checksalt(colon + 1) == CRYPT_SALT_OK ||
	       crypt_checksalt(colon + 1) == CRYPT_SALT_TOO_CHEAP;
}

int serve_auth_read(struct serve_auth **out, const char *path, char *why, size_t size)
{
	struct serve_auth *a = calloc(1, sizeof(*a));
	char shown[256], *line, *rest;
	unsigned number = 0;
	int err = -ENOMEM;

	if (a)
		a->text = serve_read_file(path, true, why, size, &err);
	else
		snprintf(why, size, "out of memory");
	if (!a || !a->text) {
		serve_auth_free(a);
		return err;
	}
	text_printable(path, shown, sizeof(shown), 200);
	rest = a->text;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (add_line(a, line))
			continue;
		snprintf(why, size, "%s, line %u: want user:hash, with a hash as "
			 "\"openssl passwd -6\" or \"htpasswd -B\" prints it, and at most %d users",
			 shown, number, USERS_MAX);
		serve_auth_free(a);
		return -EINVAL;
	}
	if (a->count) {
		*out = a;
		return 0;
	}
	snprintf(why, size, "%s has no user in it: write lines user:hash", shown);
	serve_auth_free(a);
	return -EINVAL;
}

/* Looks at every byte, whatever differs. */
static bool same(const char *a, const char *b)
{
	size_t length = strlen(a), other = strlen(b);
	unsigned differ = length != other;

	for (size_t i = 0; i < length; i++)
		differ |= (unsigned char)a[i] ^ (unsigned char)b[other ? i % other : 0];
	return !differ;
}

bool serve_auth_check(const struct serve_auth *a, const char *user, const char *password)
{
	struct crypt_data *data;
	const char *hash = a->hash[0], *got;
	bool known = false, right;

	if (!user || !password)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (same(a->user[i], user)) {
			hash = a->hash[i];
			known = true;
		}
	data = calloc(1, sizeof(*data)); /* 32 KiB */
	got = data ? crypt_r(password, hash, data) : NULL;
	right = got && got[0] != '*' && same(hash, got) && known;
	if (data)
		explicit_bzero(data, sizeof(*data));
	free(data);
	return right;
}

void serve_auth_free(struct serve_auth *a)
{
	if (!a)
		return;
	free(a->text);
	free(a);
}
