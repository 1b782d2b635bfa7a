// SPDX-License-Identifier: BSD-2-Clause
/* Text of the kineto writer: half a million events a second are formatted here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/kineto.h"
#include "util/json.h"

void put_flush(struct kineto *k)
{
	fwrite(k->buf, 1, k->used, k->out);
	k->used = 0;
}

void put_long(struct kineto *k, const char *bytes, size_t size)
{
	put_flush(k);
	if (size <= KINETO_BUFFER) {
		memcpy(k->buf, bytes, size);
		k->used = size;
	} else {
		fwrite(bytes, 1, size, k->out);
	}
}

void put_uint(struct kineto *k, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_bytes(k, at, (size_t)(digits + sizeof(digits) - at));
}

void put_int(struct kineto *k, int64_t value)
{
	if (value < 0)
		put_bytes(k, "-", 1);
	put_uint(k, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void put_us(struct kineto *k, int64_t ns)
{
	uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, us = size / 1000;
	unsigned rest = (unsigned)(size % 1000);
	char text[26], *at = text + sizeof(text);

	for (int i = 0; i < 3; i++, rest /= 10)
		*--at = (char)('0' + rest % 10);
	*--at = '.';
	do {
		*--at = (char)('0' + us % 10);
		us /= 10;
	} while (us);
	if (ns < 0)
		*--at = '-';
	put_bytes(k, at, (size_t)(text + sizeof(text) - at));
}

void put_ts(struct kineto *k, int64_t ns)
{
	put_us(k, ns + k->offset - k->base);
}

static void put_printed(struct kineto *k, const char *text, int size, size_t room)
{
	put_bytes(k, text, (size_t)size < room ? (size_t)size : room - 1);
}

void put_fixed(struct kineto *k, double value)
{
	char text[352]; /* the longest double has 309 digits before its point */
	int size = snprintf(text, sizeof(text), "%.6f", value);

	put_printed(k, text, size, sizeof(text));
}

void put_general(struct kineto *k, double value)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "%.15g", value);

	put_printed(k, text, size, sizeof(text));
}

char *kineto_escape(const char *text)
{
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	struct json j;

	if (!f)
		return NULL;
	json_init(&j, f);
	json_string(&j, text ? text : "");
	if (fclose(f)) {
		free(out);
		return NULL;
	}
	return out;
}

void put_string(struct kineto *k, const char *text)
{
	char *escaped = kineto_escape(text);

	if (!escaped)
		k->err = -ENOMEM;
	put(k, escaped ? escaped : "\"\"");
	free(escaped);
}

void put_event(struct kineto *k)
{
	put(k, k->comma ? ",\n" : "\n");
	k->comma = true;
}
