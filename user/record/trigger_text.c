// SPDX-License-Identifier: BSD-2-Clause
#include "record/trigger_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/text.h"

static const char *value_text(uint32_t unit, int64_t value, char *buf, size_t size)
{
	uint64_t size_of = value > 0 ? (uint64_t)value : 0; /* none is negative but by damage */

	switch (unit) {
	case RECORD_TRIGGER_NS:
		return text_duration(value, buf, size);
	case RECORD_TRIGGER_BYTES:
		return text_bytes(size_of, buf, size);
	case RECORD_TRIGGER_MILLI_PER_S:
		snprintf(buf, size, "%" PRIu64 ".%03" PRIu64 "/s", size_of / 1000, size_of % 1000);
		return buf;
	default:
		snprintf(buf, size, "%" PRId64, value);
		return buf;
	}
}

const char *trigger_text(const struct record_trigger *t, char *buf, size_t size)
{
	char value[48], calls[32], over[48];
	int64_t length;

	if (t->cause != RECORD_TRIGGER_FIRED) {
		snprintf(buf, size, "%s", t->cause == RECORD_TRIGGER_ASKED ?
						  "a signal asked for it" :
						  "the recording ended");
		return buf;
	}
	if (__builtin_sub_overflow(t->ts, t->begin, &length))
		length = 0;
	snprintf(buf, size, "%s: %s (%s call%s in %s)", t->text,
		 value_text(t->unit, t->value, value, sizeof(value)),
		 text_count(t->samples, calls, sizeof(calls)), t->samples == 1 ? "" : "s",
		 text_duration(length, over, sizeof(over)));
	return buf;
}
