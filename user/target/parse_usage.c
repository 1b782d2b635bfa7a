// SPDX-License-Identifier: BSD-2-Clause
/* Texts that say how much was used: io, schedstat, cpu.stat, quotas. */
#include "target/parse.h"

#include <errno.h>
#include <string.h>

/* "KEY<separator>NUMBER" on a line of its own. */
static bool value_of_key(const char *text, size_t len, const char *key, uint64_t *out)
{
	const char *line = text, *end = text + len;
	size_t n = strlen(key);

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end, *p = line + n;

		if ((size_t)(stop - line) > n && !memcmp(line, key, n))
			return parse_number(&p, stop, 10, out) && p == stop;
		line = stop + (newline ? 1 : 0);
	}
	return false;
}

int parse_io(const char *text, size_t len, struct parsed_io *out)
{
	memset(out, 0, sizeof(*out));
	if (!value_of_key(text, len, "read_bytes: ", &out->read_bytes) ||
	    !value_of_key(text, len, "write_bytes: ", &out->write_bytes))
		return -EINVAL;
	return 0;
}

int parse_schedstat(const char *text, size_t len, uint64_t *run_ns, uint64_t *delay_ns)
{
	const char *p = text, *end = text + len;

	*run_ns = *delay_ns = 0;
	if (!parse_number(&p, end, 10, run_ns) || p >= end || *p++ != ' ' ||
	    !parse_number(&p, end, 10, delay_ns) || p >= end || *p != ' ')
		return -EINVAL;
	return 0;
}

int parse_cpu_stat(const char *text, size_t len, uint64_t *ns, uint64_t *periods)
{
	uint64_t us;

	*ns = *periods = 0;
	if (!value_of_key(text, len, "nr_throttled ", periods))
		return -EINVAL;
	if (value_of_key(text, len, "throttled_time ", ns)) /* version 1 */
		return 0;
	if (!value_of_key(text, len, "throttled_usec ", &us) || us > UINT64_MAX / 1000)
		return -EINVAL;
	*ns = us * 1000;
	return 0;
}

bool parse_cpu_quota(const char *text, size_t len)
{
	const char *p = text;
	uint64_t quota;

	return parse_number(&p, text + len, 10, &quota) && quota > 0;
}

/* Is "cpu" one of the controllers between the colons? */
static bool limits_cpu(const char *list, size_t len)
{
	static const char name[] = "cpu";

	while (len) {
		const char *comma = memchr(list, ',', len);
		size_t n = comma ? (size_t)(comma - list) : len;

		if (n == sizeof(name) - 1 && !memcmp(list, name, n))
			return true;
		n += comma ? 1 : 0;
		list += n;
		len -= n;
	}
	return false;
}

int parse_cpu_cgroup(const char *line, size_t len, const char **path)
{
	size_t rest = len;
	const char *found = parse_cgroup_path(line, &rest), *list;
	int version = 0;

	*path = NULL;
	/* " (deleted)" was cut off: it was removed meanwhile, so there is nothing to be read. */
	if (!found || !rest || *found != '/' || found + rest != line + len)
		return 0;
	list = (const char *)memchr(line, ':', len) + 1;
	if (limits_cpu(list, (size_t)(found - 1 - list)))
		version = 1;
	else if (found - 1 == list && list == line + 2 && line[0] == '0')
		version = 2;
	if (version)
		*path = found;
	return version;
}
