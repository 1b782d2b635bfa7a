// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a ring record: refused, or read into an event that says nothing
 * which the record did not hold.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gbpf.h"
#include "collect/decode.h"
#include "probe/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* Is it one of the record's words of that many bytes (4 or 8), or nothing at all? */
static bool held(const void *record, size_t size, uint64_t value, size_t bytes)
{
	uint64_t word;

	if (!value)
		return true;
	for (size_t at = sizeof(struct gbpf_hdr); at + bytes <= size; at += bytes) {
		word = 0;
		memcpy(&word, (const uint8_t *)record + at, bytes);
		if (word == value)
			return true;
	}
	return false;
}

static void check_launch(const struct event *e, const void *r, size_t size)
{
	must(held(r, size, e->launch.func, 8) && held(r, size, e->launch.stream, 8));
	must(held(r, size, e->launch.smem, 8) ||
	     (e->launch.smem <= UINT32_MAX && held(r, size, e->launch.smem, 4)));
	for (int i = 0; i < 3; i++)
		must(held(r, size, e->launch.grid[i], 4) && held(r, size, e->launch.block[i], 4));
}

/* Bytes are a product of what is held and of an element's size. */
static void check_call(const struct event *e, const void *r, size_t size)
{
	static const uint64_t elements[] = {0, 1, 2, 4, 8};
	const struct gbpf_begin_call *c = r;
	uint64_t bytes, product;
	bool found = false;

	must(held(r, size, e->call.object, 8) && held(r, size, e->call.stream, 8));
	must(held(r, size, e->call.source, 8));
	must(e->call.kind <= UINT32_MAX);
	if (size < sizeof(*c) || GBPF_TAG_TYPE(c->hdr.tag) != GBPF_REC_BEGIN_CALL) {
		must(!e->call.bytes && !e->call.kind);
		return;
	}
	bytes = c->arg[GBPF_ARG_BYTES];
	product = bytes * c->arg[GBPF_ARG_BYTES2];
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
		found |= e->call.bytes == bytes * elements[i] ||
			 e->call.bytes == product * elements[i];
	must(found);
}

static void check_begin(const struct event *e, const void *r, size_t size)
{
	static const struct event nothing;

	switch (e->args) {
	case EVENT_ARGS_LAUNCH:
		check_launch(e, r, size);
		break;
	case EVENT_ARGS_CALL:
		check_call(e, r, size);
		break;
	default:
		must(e->args == EVENT_ARGS_NONE);
		must(!memcmp(&e->launch, &nothing.launch, sizeof(nothing.launch)));
	}
	must(!e->has_out);
}

static void check_event(const struct event *e, const void *r, size_t size)
{
	const struct gbpf_hdr *h = r;

	must(e->ts == (int64_t)h->ts && e->pid == h->pid && e->tid == h->tid && e->sp == h->sp);
	must(e->api == (h->tag & 0xfff) && e->image == h->tag >> 16 && e->image);
	switch (e->kind) {
	case EVENT_BEGIN:
		check_begin(e, r, size);
		break;
	case EVENT_END:
		must(e->end.ret >= INT32_MIN && e->end.ret <= INT32_MAX);
		must(held(r, size, (uint32_t)e->end.ret, 4) && held(r, size, e->end.out, 8));
		must(e->has_out || !e->end.out);
		break;
	default:
		must(e->kind == EVENT_POLL);
		must(held(r, size, e->poll.object, 8));
		must(held(r, size, (uint64_t)e->poll.last_end, 8));
		must(held(r, size, (uint64_t)e->poll.inside, 8));
		must(held(r, size, e->poll.count, 4) && held(r, size, (uint32_t)e->poll.ret, 4));
		must(held(r, size, e->poll.min, 4) && held(r, size, e->poll.max, 4));
	}
}

/* What the sink of names will read: to the end that len tells, and no further. */
static void check_name(const struct gbpf_name *n, size_t size)
{
	must(size >= sizeof(*n));
	if (n->len > 0) {
		must((size_t)n->len <= size - sizeof(*n));
		must(strnlen(n->name, (size_t)n->len) < (size_t)n->len);
	} else {
		must(n->source == GBPF_NAME_FAULT || n->source == GBPF_NAME_STUB);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *record = malloc(size + !size); /* no more than the record: ASan sees reads beyond */
	struct event e, again;
	const uint8_t *first = (uint8_t *)&e, *second = (uint8_t *)&again;
	enum decoded result;

	if (!record)
		return 0;
	if (size)
		memcpy(record, data, size);
	memset(&e, 0, sizeof(e));
	memset(&again, 0xff, sizeof(again));
	result = decode(record, size, &e);
	must(decode(record, size, &again) == result);
	switch (result) {
	case DECODED_EVENT:
		must(!memcmp(first, second, sizeof(e))); /* nothing is left of what was there */
		check_event(&e, record, size);
		break;
	case DECODED_NAME:
		check_name(record, size);
		break;
	case DECODED_PROCESS:
		must(size >= sizeof(struct gbpf_process));
		break;
	case DECODED_NOTHING:
		must(size >= sizeof(struct gbpf_hdr));
		break;
	default:
		must(result == DECODED_MALFORMED);
	}
	free(record);
	return 0;
}
