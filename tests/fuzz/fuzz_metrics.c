/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as what a target and a reader chose: each page stays well-formed. */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/openmetrics.h"
#include "util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes as many bytes of the input as fit, none of them NUL but the last. */
static void take(char *to, size_t room, const uint8_t **data, size_t *left)
{
	size_t n = *left < room - 1 ? *left : room - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = (*data)[i] ? (char)(*data)[i] : ' ';
	to[n] = '\0';
	*data += n;
	*left -= n;
}

/* What follows name="value", or NULL. Values have no control characters left. */
static const char *label(const char *p)
{
	while (islower((unsigned char)*p) || *p == '_')
		p++;
	if (*p++ != '=' || *p++ != '"')
		return NULL;
	while (*p != '"') {
		size_t length = text_utf8_length(p, strlen(p));

		if (!length || iscntrl((unsigned char)*p))
			return NULL;
		if (*p == '\\' && !strchr("\\\"n", p[1]))
			return NULL;
		p += *p == '\\' ? 2 : length;
	}
	return p + 1;
}

static bool is_sample(const char *p)
{
	char *end;

	while (islower((unsigned char)*p) || *p == '_')
		p++;
	if (*p == '{')
		do
			p = label(p + 1);
		while (p && *p == ',');
	if (!p || (*p == '}' && *++p != ' ') || *p != ' ')
		return false;
	strtod(p + 1, &end);
	return end > p + 1 && !*end;
}

static void check_text(struct metrics *m, enum metrics_format format)
{
	const struct metrics_page *page;
	char *text, *line, *rest;

	if (metrics_page(m, format, false, &page))
		return;
	rest = text = strndup(page->bytes, page->size);
	metrics_page_release(page);
	while (text && (line = strsep(&rest, "\n")))
		if (*line && *line != '#' && !is_sample(line))
			abort();
	free(text);
}

/* Lengths of messages end where the page does. */
static void check_protobuf(struct metrics *m)
{
	const struct metrics_page *page;
	size_t at = 0;

	if (metrics_page(m, METRICS_PROTOBUF, false, &page))
		return;
	while (at < page->size) {
		size_t length = 0;

		for (unsigned shift = 0;; shift += 7) {
			length |= (size_t)(page->bytes[at] & 0x7f) << shift;
			if (!(page->bytes[at++] & 0x80))
				break;
		}
		at += length;
	}
	if (at != page->size)
		abort();
	metrics_page_release(page);
}

static void headers(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	if (text && metrics_negotiate(text) >= METRICS_FORMATS)
		abort();
	if (text)
		metrics_accepts_gzip(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot_process p = { .pid = 1, .tree_cpu_pct = -1 };
	struct gpu_sample g = { .index = 0 };
	struct snapshot s = {
		.mono_ns = 1, .processes = &p, .processes_count = 1, .gpus = &g, .gpus_count = 1,
	};
	struct metrics *m;

	headers(data, size);
	take(g.name, size % sizeof(g.name) + 1, &data, &size);
	take(g.uuid, size % sizeof(g.uuid) + 1, &data, &size);
	take(p.comm, sizeof(p.comm), &data, &size);
	take(p.labels.pod, sizeof(p.labels.pod), &data, &size);
	take(p.labels.rank, sizeof(p.labels.rank), &data, &size);
	take(p.gpu_uuid, sizeof(p.gpu_uuid), &data, &size);
	if (metrics_new(&m, NULL))
		return 0;
	if (!metrics_update(m, &s)) {
		check_text(m, METRICS_TEXT);
		check_text(m, METRICS_OPENMETRICS);
		check_protobuf(m);
	}
	metrics_free(m);
	return 0;
}
