// SPDX-License-Identifier: BSD-2-Clause
#include "target/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define SHORT_ID 12 /* digits of a container's id that its tools show */
#define FULL_ID 64

bool parse_number(const char **p, const char *end, unsigned base, uint64_t *out)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && isxdigit((unsigned char)*s); s++) {
		unsigned digit = isdigit((unsigned char)*s) ? (unsigned)(*s - '0')
							    : (unsigned)((*s | 32) - 'a') + 10;

		if (digit >= base)
			break;
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (s == *p)
		return false;
	*p = s;
	*out = v;
	return true;
}

static bool number32(const char **p, const char *end, uint32_t *out)
{
	uint64_t v;

	if (!parse_number(p, end, 10, &v) || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool literal(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	(*p)++;
	return true;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static bool skip_fields(const char **p, const char *end, unsigned count)
{
	while (count--) {
		const char *blank = memchr(*p, ' ', (size_t)(end - *p));

		if (!blank)
			return false;
		*p = blank + 1;
	}
	return true;
}

/* utime, stime, cutime, cstime and the blank after them; all of them wrap in the sum only. */
static bool cpu_ticks(const char **p, const char *end, uint64_t *sum)
{
	uint64_t ticks;

	for (unsigned i = 0; i < 4; i++) {
		if (!parse_number(p, end, 10, &ticks) || !literal(p, end, ' '))
			return false;
		*sum += ticks;
	}
	return true;
}

int parse_stat(const char *text, size_t len, struct parsed_stat *out)
{
	const char *end = text + len;
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	size_t n;

	memset(out, 0, sizeof(*out));
	if (!open || !close || close < open)
		return -EINVAL;
	n = (size_t)(close - open - 1);
	if (n >= sizeof(out->comm))
		n = sizeof(out->comm) - 1;
	memcpy(out->comm, open + 1, n);

	const char *p = close + 1;

	if (!literal(&p, end, ' ') || p >= end)
		return -EINVAL;
	out->state = *p++;
	if (!literal(&p, end, ' ') || !number32(&p, end, &out->ppid))
		return -EINVAL;
	/* From field 4 to 14 (CPU time), to 20 (threads), then to 22 (start). */
	if (!skip_fields(&p, end, 10) || !cpu_ticks(&p, end, &out->cpu))
		return -EINVAL;
	if (!skip_fields(&p, end, 2) || !number32(&p, end, &out->threads))
		return -EINVAL;
	if (!skip_fields(&p, end, 2) || !parse_number(&p, end, 10, &out->start))
		return -EINVAL;
	return 0;
}

static bool value_of(const char **p, const char *end, const char *key)
{
	size_t n = strlen(key);

	if ((size_t)(end - *p) < n || memcmp(*p, key, n))
		return false;
	*p = skip_blanks(*p + n, end);
	return true;
}

void parse_status_line(const char *line, size_t len, struct parsed_status *out)
{
	const char *p = line, *end = line + len;
	uint32_t v;

	if (value_of(&p, end, "Tgid:")) {
		if (number32(&p, end, &v))
			out->tgid = v;
	} else if (value_of(&p, end, "Uid:")) {
		if (number32(&p, end, &v))
			out->uid = v;
	} else if (value_of(&p, end, "Seccomp:")) {
		if (number32(&p, end, &v))
			out->seccomp = v;
	} else if (value_of(&p, end, "NSpid:")) {
		out->levels = 0;
		while (out->levels < PARSE_PID_LEVELS && number32(&p, end, &v)) {
			out->pids[out->levels++] = v;
			p = skip_blanks(p, end);
		}
	}
}

size_t parse_deleted(const char *path, size_t len)
{
	static const char suffix[] = " (deleted)";
	size_t n = sizeof(suffix) - 1;

	return len > n && !memcmp(path + len - n, suffix, n) ? len - n : len;
}

/* The kernel writes a newline in a path as \012 and changes nothing else (seq_path()). */
static size_t unescape_newlines(char *path, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; from < len; to++) {
		if (len - from >= 4 && !memcmp(path + from, "\\012", 4)) {
			path[to] = '\n';
			from += 4;
		} else {
			path[to] = path[from++];
		}
	}
	return to;
}

int parse_maps_line(char *line, size_t len, struct parsed_map *out)
{
	const char *p = line, *end = line + len;
	uint64_t major, minor;

	memset(out, 0, sizeof(*out));
	if (!parse_number(&p, end, 16, &out->start) || !literal(&p, end, '-') ||
	    !parse_number(&p, end, 16, &out->end) || !literal(&p, end, ' ') || end - p < 5)
		return -EINVAL;
	out->executable = p[2] == 'x';
	p += 4;
	if (!literal(&p, end, ' ') || !parse_number(&p, end, 16, &out->offset) ||
	    !literal(&p, end, ' ') || !parse_number(&p, end, 16, &major) ||
	    !literal(&p, end, ':') || !parse_number(&p, end, 16, &minor) ||
	    !literal(&p, end, ' ') || !parse_number(&p, end, 10, &out->ino))
		return -EINVAL;
	if (out->end <= out->start || major > UINT32_MAX || minor > UINT32_MAX)
		return -EINVAL;
	out->dev = makedev((unsigned)major, (unsigned)minor);

	p = skip_blanks(p, end);
	out->path = line + (p - line);
	len = (size_t)(end - p);

	size_t kept = parse_deleted(out->path, len);

	out->deleted = kept < len;
	out->path[unescape_newlines(out->path, kept)] = '\0';
	return 0;
}

static size_t hex_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && isxdigit((unsigned char)s[n]) && !isupper((unsigned char)s[n]))
		n++;
	return n;
}

static bool copy_id(char *id, size_t size, const char *s, size_t len)
{
	if (!len || !*s || !size)
		return false;
	if (len >= size)
		len = size - 1;
	memcpy(id, s, len);
	id[len] = '\0';
	return true;
}

/* LXC and LXD name their cgroups after the container: lxc.payload.NAME or lxc/NAME. */
static bool lxc_name(const char *parent, size_t parent_len, const char *s, size_t len, char *id,
		     size_t size)
{
	static const char payload[] = "lxc.payload.";
	size_t n = sizeof(payload) - 1;

	if (len > n && !memcmp(s, payload, n))
		return copy_id(id, size, s + n, len - n);
	if ((parent_len == 3 && !memcmp(parent, "lxc", 3)) ||
	    (parent_len == n - 1 && !memcmp(parent, payload, n - 1)))
		return copy_id(id, size, s, len);
	return false;
}

/*
 * One component: "ID" (cgroupfs driver), "RUNTIME-ID.scope" (systemd driver of
 * docker, containerd, CRI-O, podman), "…:cri-containerd:ID". The monitors that
 * CRI-O and podman put beside a container ("crio-conmon-ID.scope") are not in it.
 */
static bool hash_id(const char *s, size_t len, char *id, size_t size)
{
	static const char *const runtimes[] = { "docker-", "cri-containerd-", "crio-", "libpod-",
						"containerd-", "nerdctl-" };
	static const char scope[] = ".scope";
	size_t n = sizeof(scope) - 1;
	const char *colon = memrchr(s, ':', len);

	if (colon) {
		len -= (size_t)(colon + 1 - s);
		s = colon + 1;
	}
	if (len > n && !memcmp(s + len - n, scope, n))
		len -= n;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		n = strlen(runtimes[i]);
		if (len > n && !memcmp(s, runtimes[i], n)) {
			s += n;
			len -= n;
			break;
		}
	}
	if (len != FULL_ID || hex_digits(s, len) != FULL_ID)
		return false;
	return copy_id(id, size, s, SHORT_ID);
}

const char *parse_cgroup_path(const char *line, size_t *len)
{
	const char *end = line + *len, *path = memchr(line, ':', *len);

	if (path)
		path = memchr(path + 1, ':', (size_t)(end - path - 1));
	if (!path)
		return NULL;
	path++;
	*len = parse_deleted(path, (size_t)(end - path));
	return path;
}

bool parse_cgroup_line(const char *line, size_t len, char *id, size_t size)
{
	const char *path = parse_cgroup_path(line, &len);

	if (size)
		id[0] = '\0';
	if (!path)
		return false;
	/* From the innermost component outwards: a container in a container is the inner one. */
	while (len) {
		const char *slash = memrchr(path, '/', len);
		const char *name = slash ? slash + 1 : path;
		size_t outer = slash ? (size_t)(slash - path) : 0;
		const char *up = memrchr(path, '/', outer);
		const char *parent = up ? up + 1 : path;

		size_t name_len = (size_t)(path + len - name);

		if (hash_id(name, name_len, id, size) ||
		    lxc_name(parent, (size_t)(path + outer - parent), name, name_len, id, size))
			return true;
		len = outer;
	}
	return false;
}
