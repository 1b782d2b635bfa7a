/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JSON writer: keeps track of commas and nesting, escapes every string, and
 * turns bytes that are not UTF-8 into U+FFFD, so that what comes out is valid
 * whatever a target put into a name. What it wrote is in the stream when its outermost
 * value is whole; until then nobody else writes there.
 */
#ifndef GBPF_UTIL_JSON_H
#define GBPF_UTIL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16
#define JSON_BUFFER 1024 /* stdio is called once for so many bytes, and not for each token */

struct json {
	FILE *out;
	unsigned depth;
	bool comma[JSON_MAX_DEPTH]; /* this level already has an element */
	bool after_key;
	size_t used;
	char buffer[JSON_BUFFER];
};

void json_init(struct json *j, FILE *out);
void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s);		  /* NULL writes null */
void json_string_n(struct json *j, const char *s, size_t len);
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_double(struct json *j, double v, int decimals); /* not finite: null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

#endif
