/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggers of given texts, and calls to feed them with. */
#ifndef TESTS_TRIGGER_RIG_H
#define TESTS_TRIGGER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/catalogue.h"
#include "trace/trigger.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS INT64_C(1000000)
#define S (1000 * MS)

static inline struct triggers *make(const char *const *texts, size_t count, const char *api,
				    bool returns, char *why, size_t size)
{
	static struct selection selection;
	static struct trigger items[TRIGGERS_MAX];
	struct triggers *t;

	assert_int_equal(selection_parse(&selection, api, why, size), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(trigger_parse(&items[i], texts[i], why, size), 0);
	if (triggers_new(&t, items, count, &selection, returns, why, size))
		return NULL;
	return t;
}

static inline struct triggers *one(const char *text, const char *api, char *why, size_t size)
{
	return make(&text, 1, api, true, why, size);
}

struct call {
	int64_t begin, end;
	uint64_t bytes;
	int64_t ret;
	uint32_t tid, sp;
	uint16_t api;
};

static inline struct event half(const struct call *c, uint8_t kind)
{
	struct event e = {
		.ts = kind == EVENT_BEGIN ? c->begin : c->end,
		.pid = 1, .tid = c->tid, .sp = c->sp, .api = c->api, .kind = kind,
	};

	if (kind == EVENT_END) {
		e.end.ret = c->ret;
	} else {
		e.args = EVENT_ARGS_CALL;
		e.call.bytes = c->bytes;
	}
	return e;
}

static inline void put(struct triggers *t, uint32_t tid, const char *name, int64_t begin,
		       int64_t length)
{
	struct call c = {.begin = begin, .end = begin + length, .tid = tid, .sp = 0x100,
			 .api = catalogue_find(name)};
	struct event e[2] = {half(&c, EVENT_BEGIN), half(&c, EVENT_END)};

	triggers_events(t, e, 2);
}

#endif
