/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of /proc and perf's records, by libFuzzer. The first byte says
 * which; the rest is the text, on the heap so that every byte too far is seen.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/parse.h"
#include "target/target.h"
#include "target/watch_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void stat_text(char *text, size_t len)
{
	struct parsed_stat out;
	int err = parse_stat(text, len, &out);

	expect(!err || err == -EINVAL);
	expect(memchr(out.comm, '\0', sizeof(out.comm)) != NULL);
}

static void status_text(char *text, size_t len)
{
	struct parsed_status out = { 0 };

	parse_status_line(text, len, &out);
	expect(out.levels <= PARSE_PID_LEVELS);
}

static void maps_text(char *text, size_t len)
{
	struct parsed_map out;
	int err = parse_maps_line(text, len, &out);

	expect(!err || err == -EINVAL);
	if (err)
		return;
	expect(out.start < out.end);
	expect(out.path >= text && out.path + strlen(out.path) <= text + len);
	(void)image_hint(out.path);
}

static void cgroup_text(char *text, size_t len)
{
	char id[20];
	bool found = parse_cgroup_line(text, len, id, sizeof(id));

	expect(memchr(id, '\0', sizeof(id)) != NULL);
	expect(found == (id[0] != '\0'));
}

static void pod_and_job_text(char *text, size_t len)
{
	char out[48];
	bool found = parse_pod_line(text, len, out, sizeof(out));

	expect(found == (out[0] != '\0') && strlen(out) <= 36);
	found = parse_slurm_line(text, len, out, sizeof(out));
	expect(found == (out[0] != '\0'));
	expect(strspn(out, "0123456789") == strlen(out));
}

/* However it is cut, the same comes out. */
static void environ_text(char *text, size_t len)
{
	struct parsed_environ whole = { 0 }, pieces = { 0 };
	size_t piece = len ? 1 + (unsigned char)text[len - 1] : 1;

	parse_environ(&whole, text, len);
	parse_environ_end(&whole);
	for (size_t at = 0; at < len; at += piece)
		parse_environ(&pieces, text + at, len - at < piece ? len - at : piece);
	parse_environ_end(&pieces);
	expect(!memcmp(whole.value, pieces.value, sizeof(whole.value)));
	for (size_t i = 0; i < ENV_VARIABLES; i++)
		expect(memchr(whole.value[i], '\0', sizeof(whole.value[i])) != NULL);
	expect(strspn(whole.value[ENV_RANK], "0123456789") == strlen(whole.value[ENV_RANK]));
}

static void usage_text(char *text, size_t len)
{
	struct parsed_io io;
	uint64_t a, b;
	int err = parse_io(text, len, &io);

	expect(!err || err == -EINVAL);
	err = parse_schedstat(text, len, &a, &b);
	expect(!err || err == -EINVAL);
	err = parse_cpu_stat(text, len, &a, &b);
	expect(!err || err == -EINVAL);
	(void)parse_cpu_quota(text, len);
}

static void cpu_cgroup_text(char *text, size_t len)
{
	const char *path;
	int version = parse_cpu_cgroup(text, len, &path);

	expect(version >= 0 && version <= 2 && !version == !path);
	if (path)
		expect(path > text && path < text + len && *path == '/');
}

/* The ring begins with where its records begin and end. */
static void records(const uint8_t *data, size_t size)
{
	static _Alignas(8) unsigned char scratch[WATCH_RECORD_MAX];
	struct watch_range r = { .size = 4096 };
	struct watch_notice n;
	unsigned char *ring;
	uint64_t bytes;
	int64_t ts;

	if (size < 2)
		return;
	ring = calloc(1, r.size);
	expect(ring != NULL);
	memcpy(ring, data, size < r.size ? size : r.size);
	r.data = ring;
	r.tail = data[0] * 16u;
	r.head = r.tail + data[1] * 17u;
	while (!watch_record_peek(&r, &bytes, &ts)) {
		if (watch_record_decode(&r, scratch, NULL, NULL, &n)) {
			expect(n.kind >= WATCH_MAP && n.kind <= WATCH_LOST);
			expect(n.kind != WATCH_MAP || strlen(n.map.path) < bytes);
			expect(!n.comm || strlen(n.comm) < bytes);
		}
		r.tail += bytes;
	}
	free(ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(char *text, size_t len) = {
		stat_text, status_text, maps_text, cgroup_text, pod_and_job_text, environ_text,
		usage_text, cpu_cgroup_text,
	};
	size_t count = sizeof(parsers) / sizeof(parsers[0]);
	char *text;

	if (!size)
		return 0;
	if (data[0] % (count + 1) == count) {
		records(data + 1, size - 1);
		return 0;
	}
	text = malloc(size);
	expect(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	parsers[data[0] % (count + 1)](text, size - 1);
	free(text);
	return 0;
}
