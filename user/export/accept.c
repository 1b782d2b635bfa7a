/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader accepts (RFC 9110, 12.5). Headers are hostile: nothing is copied. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "export/openmetrics.h"

#define PROTOBUF_TYPE "application/vnd.google.protobuf"
#define PROTOBUF_MESSAGE "io.prometheus.client.MetricFamily"

struct word {
	const char *at;
	size_t size;
};

static struct word trimmed(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (at < end && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end - at >= 2 && *at == '"' && end[-1] == '"') {
		at++;
		end--;
	}
	return (struct word){ at, (size_t)(end - at) };
}

/* The part up to separator or end; *at goes behind it. */
static struct word next(const char **at, const char *end, char separator)
{
	const char *from = *at, *stop = memchr(from, separator, (size_t)(end - from));

	*at = stop ? stop + 1 : end;
	return trimmed(from, stop ? stop : end);
}

static bool is(struct word w, const char *text)
{
	return w.size == strlen(text) && !strncasecmp(w.at, text, w.size);
}

/* "0.75" in thousandths; what is no such number: 0. */
static int quality(struct word w)
{
	int value = 0, unit = 1000;

	for (size_t i = 0; i < w.size && unit; i++) {
		if (w.at[i] == '.' && i == 1)
			continue;
		if (w.at[i] < '0' || w.at[i] > '9' || (i == 0 && w.at[i] > '1'))
			return 0;
		value += (w.at[i] - '0') * unit;
		unit /= 10;
	}
	return value > 1000 ? 1000 : value;
}

/* The parameter's value; size 0 if it is not there. */
static struct word parameter(struct word range, const char *name)
{
	const char *at = range.at, *end = range.at + range.size;

	while (at < end) {
		struct word one = next(&at, end, ';');
		const char *value = one.at;
		struct word key = next(&value, one.at + one.size, '=');

		if (is(key, name))
			return trimmed(value, one.at + one.size);
	}
	return (struct word){ end, 0 };
}

static bool format_of(struct word range, enum metrics_format *format)
{
	const char *at = range.at;
	struct word type = next(&at, range.at + range.size, ';');
	struct word version = parameter(range, "version"), encoding = parameter(range, "encoding");

	if (is(type, PROTOBUF_TYPE)) {
		*format = METRICS_PROTOBUF;
		return is(parameter(range, "proto"), PROTOBUF_MESSAGE) &&
		       (!encoding.size || is(encoding, "delimited"));
	}
	if (is(type, "application/openmetrics-text")) {
		*format = METRICS_OPENMETRICS;
		return !version.size || is(version, "1.0.0");
	}
	*format = METRICS_TEXT;
	return is(type, "*/*") || is(type, "text/*") ||
	       (is(type, "text/plain") && (!version.size || is(version, "0.0.4")));
}

enum metrics_format metrics_negotiate(const char *accept)
{
	enum metrics_format best = METRICS_TEXT, format;
	const char *at = accept ? accept : "", *end = at + strlen(at);
	int most = 0;

	while (at < end) {
		struct word range = next(&at, end, ','), q = parameter(range, "q");
		int quality_of = q.size ? quality(q) : 1000;

		if (format_of(range, &format) && quality_of > most) {
			most = quality_of;
			best = format;
		}
	}
	return best;
}

bool metrics_accepts_gzip(const char *accept_encoding)
{
	const char *at = accept_encoding ? accept_encoding : "", *end = at + strlen(at);
	bool any = false;

	while (at < end) {
		struct word coding = next(&at, end, ','), q = parameter(coding, "q");
		const char *from = coding.at;
		struct word name = next(&from, coding.at + coding.size, ';');
		bool wanted = !q.size || quality(q) > 0;

		if (is(name, "gzip") || is(name, "x-gzip"))
			return wanted;
		if (is(name, "*"))
			any = wanted;
	}
	return any;
}

const char *metrics_content_type(enum metrics_format format)
{
	static const char *const types[METRICS_FORMATS] = {
		[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[METRICS_OPENMETRICS] =
			"application/openmetrics-text; version=1.0.0; charset=utf-8",
		[METRICS_PROTOBUF] =
			PROTOBUF_TYPE "; proto=" PROTOBUF_MESSAGE "; encoding=delimited",
	};

	return types[format];
}
