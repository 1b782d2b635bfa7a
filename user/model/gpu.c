// SPDX-License-Identifier: BSD-2-Clause
/* What the sidecar covered, what a call caused, and what kind of work it was. */
#include "model/gpu.h"

#include <string.h>

bool session_has_work(const struct session *s)
{
	return s->works_count || s->covers_count;
}

static bool has_work(const struct session *s, uint32_t process)
{
	for (size_t i = 0; i < s->covers_count; i++)
		if (s->covers[i].process == process)
			return true;
	for (size_t i = 0; i < s->streams_count; i++)
		if (s->streams[i].process == process)
			return true;
	return false;
}

const char session_no_sidecar[] = "recorded without --gpu-time";

const char *sidecar_reason(const struct record_sidecar *r)
{
	switch (r->event) {
	case RECORD_SIDECAR_REFUSED:
		return *r->text ? r->text : "the sidecar refused to record";
	case RECORD_SIDECAR_FAILED:
		return *r->text ? r->text : "the sidecar failed";
	case RECORD_SIDECAR_WITHDREW:
		return *r->text ? r->text : "the sidecar withdrew";
	case RECORD_SIDECAR_ATTACHED:
		return "the sidecar was loaded, and no window of it began";
	case RECORD_SIDECAR_BEGAN: /* and has no cover: drained.c */
		return "all that ran while the sidecar recorded had been launched before";
	default:
		return NULL;
	}
}

const char *session_no_work(const struct session *s, uint32_t process)
{
	const char *loaded = NULL;

	if (process == UINT32_MAX ? session_has_work(s) : has_work(s, process))
		return NULL;
	for (size_t i = s->sidecars_count; i-- > 0;) {
		const char *reason = sidecar_reason(&s->sidecars[i]);

		if (!reason || (process != UINT32_MAX && s->sidecar_process[i] != process))
			continue;
		if (s->sidecars[i].event != RECORD_SIDECAR_ATTACHED)
			return reason;
		loaded = reason;
	}
	return loaded ? loaded : session_no_sidecar;
}

/* The first cover of the process that ends after ts; covers_count: none. */
static size_t cover_after(const struct session *s, uint32_t process, int64_t ts)
{
	size_t low = 0, high = s->covers_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct session_cover *c = &s->covers[middle];

		if (c->process < process || (c->process == process && c->end <= ts))
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->covers_count && s->covers[low].process == process ? low : s->covers_count;
}

int64_t work_asked(const struct session *s, const struct work *w)
{
	return w->earlier ? session_window_begin(s, w->begin) - 1 : s->calls[w->call].begin;
}

bool work_covered(const struct session *s, uint32_t process, int64_t from, int64_t to)
{
	size_t i = cover_after(s, process, from);

	return i < s->covers_count && s->covers[i].begin <= from && s->covers[i].end >= to;
}

bool work_queue_known(const struct session *s, const struct work *w, int64_t asked,
		      int64_t free_from)
{
	return free_from > asked ||
	       work_covered(s, s->streams[w->stream].process, asked, w->begin);
}

int64_t work_covered_ns(const struct session *s, uint32_t process, int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = cover_after(s, process, from);
	     i < s->covers_count && s->covers[i].process == process && s->covers[i].begin < to;
	     i++) {
		int64_t begin = s->covers[i].begin > from ? s->covers[i].begin : from;
		int64_t end = s->covers[i].end < to ? s->covers[i].end : to;

		sum += end > begin ? end - begin : 0;
	}
	return sum;
}

typedef uint32_t call_at(const struct session *s, size_t index);

static uint32_t call_of_work(const struct session *s, size_t index)
{
	return s->works[s->call_works[index]].call;
}

static uint32_t call_of_record(const struct session *s, size_t index)
{
	return s->work_calls[index].call;
}

/*
 * The first of count entries, in the order of their calls, whose call is not before this one.
 * Looked for around the guess, in growing steps: twenty steps for every event show.
 */
static inline size_t first_from(const struct session *s, uint32_t call, size_t count, size_t guess,
				call_at *at)
{
	size_t low = 0, high = count, step = 1;

	if (guess > count)
		guess = count;
	if (guess < count && at(s, guess) < call) {
		for (low = guess + 1; low + step < count && at(s, low + step) < call; step *= 2)
			low += step + 1;
		high = low + step < count ? low + step : count;
	} else {
		for (high = guess; high > step && at(s, high - step) >= call; step *= 2)
			high -= step;
		low = high > step ? high - step + 1 : 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (at(s, middle) < call)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where the entry of a call is if every call has as many. */
static size_t spread(const struct session *s, uint32_t call, size_t count)
{
	return s->calls_count ? (size_t)((double)call / (double)s->calls_count * (double)count) : 0;
}

const uint32_t *works_of(const struct session *s, uint32_t call, size_t *count)
{
	size_t all = s->call_works_count;
	size_t first = first_from(s, call, all, spread(s, call, all), call_of_work);
	size_t end = call == CALL_NONE ? first : first_from(s, call + 1, all, first, call_of_work);

	*count = end - first;
	return end > first ? &s->call_works[first] : NULL;
}

const struct work_call *work_call_of(const struct session *s, uint32_t call)
{
	size_t all = s->work_calls_count;
	size_t at = first_from(s, call, all, spread(s, call, all), call_of_record);

	return at < all && s->work_calls[at].call == call ? &s->work_calls[at] : NULL;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/*
 * NCCL and RCCL call their device functions ncclDevKernel_…, ncclKernel_…,
 * ncclSymkDevKernel_…; only the name itself counts, not the types of arguments.
 */
bool kernel_is_comm(const char *name)
{
	const char *at = name;

	while (*at) {
		size_t len = 0;

		while (is_letter(at[len]))
			len++;
		for (size_t i = 0; i + 4 < len; i++)
			if (!strncmp(at + i, "nccl", 4) || !strncmp(at + i, "rccl", 4)) {
				const char *kernel = strstr(at + i, "Kernel");

				return kernel && kernel < at + len;
			}
		at += len;
		if (*at == '(' || *at == '<')
			return false;
		at += *at != '\0';
	}
	return false;
}

bool kernel_binds_all(const char *name)
{
	return kernel_is_comm(name) && (strstr(name, "AllReduce") || strstr(name, "AllGather") ||
					strstr(name, "ReduceScatter"));
}

unsigned work_class(const struct session *s, const struct work *w)
{
	if (w->kind != RECORD_WORK_KERNEL)
		return WORK_CLASS_COPY;
	return w->kernel < s->kernels_count && s->kernels[w->kernel].comm ? WORK_CLASS_COMM
									   : WORK_CLASS_COMPUTE;
}
