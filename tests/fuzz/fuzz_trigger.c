// SPDX-License-Identifier: BSD-2-Clause
/* Any text as a trigger: refused with a reason, or parsed and fed with any events. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/trigger_text.h"
#include "trace/trigger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct trigger_fired *f)
{
	struct record_trigger r = {
		.ts = f->end, .cause = RECORD_TRIGGER_FIRED, .text = f->trigger->text,
		.begin = f->begin, .value = f->value, .threshold = f->trigger->threshold,
		.unit = trigger_unit(f->trigger), .samples = f->samples,
	};
	char text[64]; /* cuts long ones */

	if (f->begin > f->end || strnlen(trigger_text(&r, text, sizeof(text)), 64) == 64)
		abort();
}

/* 24 bytes an event, as they come. */
static void feed(struct triggers *t, const uint8_t *data, size_t size)
{
	struct trigger_fired fired;
	int64_t upto = 1;

	for (; size >= 24; data += 24, size -= 24) {
		struct event e = {0};

		memcpy(&e.api, data, 2);
		e.api %= 512;
		e.kind = data[2] % 5;
		e.args = data[3] % 3;
		e.tid = data[4] % 4;
		e.sp = data[5] % 4;
		memcpy(&e.ts, data + 8, 8);
		e.ts = (int64_t)((uint64_t)e.ts >> (2 + data[6] % 60));
		memcpy(&e.call.bytes, data + 16, 8);
		triggers_events(t, &e, 1);
		upto += (int64_t)data[7] << 21;
		if (triggers_advance(t, upto, &fired))
			show(&fired);
		if (data[6] >= 250)
			triggers_reset(t);
	}
	if (triggers_advance(t, upto + 1000000000, &fired))
		show(&fired);
}

static void use(const struct trigger *trigger, const uint8_t *data, size_t size)
{
	static struct selection all;
	char why[256] = "";
	struct triggers *t;
	int err;

	if (!all.count && selection_parse(&all, "all", why, sizeof(why)))
		abort();
	err = triggers_new(&t, trigger, 1, &all, true, why, sizeof(why));
	if (err == -EINVAL && (t || !*why))
		abort();
	if (err)
		return;
	feed(t, data, size);
	triggers_free(t);
}

/* A line of text, then events. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size;
	char *text = malloc(len + 1), why[96];
	struct trigger t;
	int err;

	if (!text)
		return 0;
	if (len)
		memcpy(text, data, len);
	text[len] = '\0';
	memset(why, 0, sizeof(why));
	err = trigger_parse(&t, text, why, sizeof(why));
	if (err && (err != -EINVAL || !*why || strnlen(why, sizeof(why)) == sizeof(why)))
		abort();
	if (!err && (t.over <= 0 || t.threshold < 0 || !*t.subject))
		abort();
	if (!err)
		use(&t, data + len, size - len);
	free(text);
	return 0;
}
