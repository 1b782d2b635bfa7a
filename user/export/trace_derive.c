// SPDX-License-Identifier: BSD-2-Clause
#include "export/trace.h"

static int64_t at_least_0(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* F of gpu.h: when the stream was free for this work; moves on to the next one. */
static int64_t free_before(struct export_stream_state *st, int64_t end)
{
	int64_t at = st->any ? st->free_at : INT64_MIN;

	if (!st->any || end > st->free_at)
		st->free_at = end;
	st->any = true;
	return at;
}

void export_work_times(const struct session *s, struct export_stream_state *st, uint32_t work,
		       struct work_times *out)
{
	const struct work *w = &s->works[work];
	int64_t free_at = free_before(st, w->end), returned;
	const struct call *c;

	*out = (struct work_times){NA_TIME, NA_TIME, NA_TIME, NA_TIME, 0, 0};
	if (w->call == CALL_NONE)
		return;
	c = &s->calls[w->call];
	out->launch_to_start = w->begin - c->begin;
	if (export_call_end(s, c, &returned) != EXPORT_END_KNOWN)
		return;
	out->queue_time = at_least_0(w->begin - returned);
	if (work_queue_known(s, w, c->begin, free_at))
		out->queue_delay = free_at <= returned ? 0 :
			at_least_0((free_at < w->begin ? free_at : w->begin) - returned);
	out->total = (returned > w->end ? returned : w->end) - c->begin;
}

const char *export_direction_word(unsigned direction)
{
	static const char *const words[] = {
		[RECORD_COPY_UNKNOWN] = "unknown", [RECORD_COPY_HTOD] = "HtoD",
		[RECORD_COPY_DTOH] = "DtoH", [RECORD_COPY_HTOA] = "HtoA",
		[RECORD_COPY_ATOH] = "AtoH", [RECORD_COPY_ATOA] = "AtoA",
		[RECORD_COPY_ATOD] = "AtoD", [RECORD_COPY_DTOA] = "DtoA",
		[RECORD_COPY_DTOD] = "DtoD", [RECORD_COPY_HTOH] = "HtoH",
		[RECORD_COPY_PTOP] = "PtoP",
	};

	return direction < sizeof(words) / sizeof(*words) ? words[direction] : words[0];
}

const char *export_memory_word(unsigned memory)
{
	static const char *const words[] = {
		[RECORD_MEMORY_UNKNOWN] = "Unknown", [RECORD_MEMORY_PAGEABLE] = "Pageable",
		[RECORD_MEMORY_PINNED] = "Pinned", [RECORD_MEMORY_DEVICE] = "Device",
		[RECORD_MEMORY_ARRAY] = "Array", [RECORD_MEMORY_MANAGED] = "Managed",
		[RECORD_MEMORY_DEVICE_STATIC] = "Device Static",
		[RECORD_MEMORY_MANAGED_STATIC] = "Managed Static",
	};

	return memory < sizeof(words) / sizeof(*words) ? words[memory] : words[0];
}

const char *export_limiter_words(unsigned limiting, char *buf, size_t size)
{
	static const char *const words[] = {"blocks", "registers", "shared memory", "warps",
					    "barriers"};
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words) && at < size; i++)
		if (limiting & 1u << i)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
					       words[i]);
	return buf;
}
