// SPDX-License-Identifier: BSD-2-Clause
#include "window.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "anchors.h"
#include "buffers.h"
#include "devices.h"
#include "find.h"

#define READINGS 8
#define MS 1000000LL
#define TURN_MS 4
#define GRACE_MS 20    /* at least, for work that runs as a window ends */
#define PATIENCE_MS 300 /* at most */
#define COMPLETE_MS 1000

/* After calls: the first works have theirs. The last kind is a bonus. */
static const uint32_t work_kinds[] = {
	CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET, CUPTI_MEMCPY_PEER,
};

void answer_with(struct wire_message *answer, enum wire_type type, const char *format, ...)
{
	va_list args;

	answer->type = type;
	va_start(args, format);
	(void)vsnprintf(answer->text, sizeof(answer->text), format, args);
	va_end(args);
}

static bool failed(const struct session *s, struct wire_message *answer, const char *what,
		   int result)
{
	if (!result)
		return false;
	answer->code = result;
	answer_with(answer, WIRE_FAILED, "%s: %s", what, cupti_text(&s->cupti, result));
	return true;
}

void window_ignore(void *user, int domain, uint32_t cbid, const void *data)
{
}

int window_clock(const struct session *s, struct wire_message *m)
{
	for (int i = 0; i < READINGS; i++) {
		uint64_t stamp = 0;
		int64_t before = now_ns(), after;
		int result = s->cupti.get_timestamp(&stamp);

		after = now_ns();
		if (result)
			return result;
		if (i && after - before >= m->after - m->before)
			continue;
		m->before = before;
		m->stamp = (int64_t)stamp;
		m->after = after;
	}
	return 0;
}

bool window_ours(const struct session *s)
{
	return neighbour_ours(&s->neighbour, buffers_request, buffers_complete);
}

bool window_taken(const struct session *s)
{
	return atomic_load(&s->strange) || !window_ours(s);
}

/* What CUPTI itself says of other clients, where it does (13.2 and later). */
static bool others_enabled(const struct session *s)
{
	uint32_t size = 0, count = 0;

	return s->cupti.enabled_kinds && !s->cupti.enabled_kinds(NULL, NULL, &size, &count) &&
	       count;
}

/*
 * Ours are registered, after nobody else's. The subscriber's slot is held for just that
 * long: some profilers try it once in their lives.
 */
static bool take_over(struct session *s, struct wire_message *answer)
{
	char whose[128];
	int found;

	if (window_ours(s))
		return true;
	found = neighbour_registered(&s->neighbour, buffers_request, whose, sizeof(whose));
	if (found > 0) {
		answer_with(answer, WIRE_REFUSED,
			    "%s records with CUPTI in this process, or has done so", whose);
		return false;
	}
	if (found < 0) {
		answer_with(answer, WIRE_REFUSED, "whether another profiler uses CUPTI in this "
						  "process cannot be seen: %s", whose);
		return false;
	}
	return !failed(s, answer, "cuptiActivityRegisterCallbacks",
		       s->cupti.register_callbacks(buffers_request, buffers_complete));
}

static bool alone(struct session *s, struct wire_message *answer)
{
	void *subscriber = NULL;
	char why[WIRE_TEXT];
	int result;
	bool ok;

	if (neighbour_tool((const void *)(uintptr_t)window_ignore, why, sizeof(why)) ||
	    others_enabled(s)) {
		answer_with(answer, WIRE_REFUSED, "%s", others_enabled(s) ?
			    "another profiler records with CUPTI in this process" : why);
		return false;
	}
	/* Whoever uses the other would not be seen in this one. */
	if (find_count("libcupti.so") > 1) {
		answer_with(answer, WIRE_REFUSED,
			    "more than one libcupti is loaded in this process");
		return false;
	}
	result = s->cupti.subscribe(&subscriber, window_ignore, NULL);
	if (result == CUPTI_MULTIPLE_SUBSCRIBERS) {
		answer_with(answer, WIRE_REFUSED,
			    "another profiler holds CUPTI in this process, or has not let go "
			    "of it");
		return false;
	}
	if (failed(s, answer, "cuptiSubscribe", result))
		return false;
	ok = take_over(s, answer);
	(void)s->cupti.unsubscribe(subscriber);
	if (!ok || window_ours(s) || neighbour_note(&s->neighbour, buffers_request,
						    buffers_complete))
		return ok;
	answer_with(answer, WIRE_REFUSED, "this CUPTI does not show who else uses it");
	return false;
}

static bool system_threads(struct session *s, struct wire_message *answer)
{
	s->window.thread_type = CUPTI_THREAD_SYSTEM;
	(void)s->cupti.thread_type(&s->window.thread_type);
	return !failed(s, answer, "cuptiSetThreadIdType",
		       s->cupti.set_thread_type(CUPTI_THREAD_SYSTEM));
}

static int enable_kind(struct session *s, uint32_t kind)
{
	int result = s->cupti.enable(kind);

	if (!result)
		s->window.kinds |= 1ull << kind;
	return result;
}

static bool switch_on(struct session *s, struct wire_message *answer)
{
	int result;

	if (s->window.flags & WIRE_OVERHEAD)
		(void)enable_kind(s, CUPTI_OVERHEAD);
	result = anchors_begin(s);
	if (failed(s, answer, "recording of calls cannot be enabled", result))
		return false;
	for (size_t i = 0; i < sizeof(work_kinds) / sizeof(*work_kinds); i++) {
		result = enable_kind(s, work_kinds[i]);
		if (work_kinds[i] != CUPTI_MEMCPY_PEER &&
		    failed(s, answer, "recording of GPU work cannot be enabled", result))
			return false;
	}
	return true;
}

static void threads_back(struct session *s)
{
	if (s->window.thread_type != CUPTI_THREAD_SYSTEM)
		(void)s->cupti.set_thread_type(s->window.thread_type);
	s->window.thread_type = CUPTI_THREAD_SYSTEM;
}

void window_off(struct session *s)
{
	(void)anchors_off(s);
	for (uint32_t kind = 0; kind < 64; kind++)
		if (s->window.kinds & (1ull << kind))
			(void)s->cupti.disable(kind);
	s->window.kinds = 0;
	threads_back(s);
	s->window.on = false;
}

void window_begin(struct session *s, int64_t length_ns, struct wire_message *answer)
{
	int64_t begun;
	int result;

	if (length_ns <= 0 || s->window.on) {
		answer->code = -EINVAL;
		answer_with(answer, WIRE_FAILED, "a window of no length, or in a window");
		return;
	}
	if (!alone(s, answer))
		return;
	if (pool_fill(&s->pool)) {
		answer->code = -ENOMEM;
		answer_with(answer, WIRE_FAILED, "no memory for CUPTI's buffers");
		return;
	}
	s->window.flags = s->flags;
	s->dropped = 0;
	atomic_store(&s->strange, false);
	begun = now_ns();
	if (!system_threads(s, answer) || !switch_on(s, answer)) {
		window_off(s);
		return;
	}
	result = window_clock(s, answer);
	if (failed(s, answer, "cuptiGetTimestamp", result)) {
		window_off(s);
		return;
	}
	s->devices_told = devices_tell(s);
	s->window.on = true;
	s->window.until = length_ns < INT64_MAX - answer->after ? answer->after + length_ns :
								  INT64_MAX;
	answer->window = begun;
	answer->type = WIRE_BEGAN;
}

static void wait_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* Until no thread of CUPTI's is in our function any more. */
static void settle(const struct session *s)
{
	for (int i = 0; i < COMPLETE_MS && atomic_load(&s->completing); i++)
		wait_ms(1);
}

/*
 * Does a buffer hold work that may end soon? CUPTI can keep one that is empty. Nobody waits
 * for what nobody takes.
 */
static bool awaited(struct session *s, int64_t begun)
{
	int64_t waited = now_ns() - begun;

	if (window_taken(s))
		return false;
	return waited < GRACE_MS * MS ||
	       (waited < PATIENCE_MS * MS && s->taking && pool_filling(&s->pool));
}

/*
 * A buffer that holds work still running comes only by force, and that work then has no end:
 * it is counted as such. CUPTI gives a buffer by itself once all of it has ended.
 */
static int collect(struct session *s)
{
	int64_t begun = now_ns();
	int result;

	do {
		result = s->cupti.flush_all(0);
		wait_ms(TURN_MS);
	} while (awaited(s, begun));
	if (!window_taken(s)) {
		atomic_store(&s->forced, true);
		result = s->cupti.flush_all(CUPTI_FLUSH_FORCED);
	}
	settle(s);
	atomic_store(&s->forced, false);
	return result;
}

static uint64_t take_dropped(struct session *s)
{
	size_t more = 0;
	uint64_t dropped;

	if (s->cupti.dropped(NULL, 0, &more))
		more = 0;
	pthread_mutex_lock(&s->lock);
	dropped = s->dropped + more;
	s->dropped = 0;
	pthread_mutex_unlock(&s->lock);
	return dropped;
}

/* All is off, and what was recorded is in the ring. A CUptiResult. */
static int finish(struct session *s, struct wire_message *answer)
{
	int result;

	if (!s->devices_told)
		s->devices_told = devices_tell(s);
	answer->window = now_ns();
	window_off(s);
	result = collect(s);
	answer->dropped = take_dropped(s);
	return result;
}

void window_fail(struct session *s, const char *what, int code, struct wire_message *answer)
{
	(void)finish(s, answer);
	(void)failed(s, answer, what, code);
}

void window_end(struct session *s, struct wire_message *answer)
{
	int result;

	if (window_taken(s)) {
		(void)window_withdraw(s, "", answer);
		return;
	}
	result = finish(s, answer);
	if (window_taken(s)) { /* while work was waited for: theirs is what CUPTI has now */
		(void)window_withdraw(s, "", answer);
		return;
	}
	if (failed(s, answer, "cuptiActivityFlushAll", result) ||
	    failed(s, answer, "cuptiGetTimestamp", window_clock(s, answer)))
		return;
	answer->type = WIRE_ENDED;
}

/*
 * Kinds of records are one switch for all clients: who switches one off that another has
 * just switched on takes its records away. So these stay on for whoever took over, and go
 * off with it, calls of the runtime among them; not so the driver's, which not everybody
 * records, and which would then stay on.
 * CUPTI goes on to fill the buffers that it has from us, and hands them to whoever took
 * over, who cannot know them: flushed, it asks for theirs from now on.
 */
bool window_withdraw(struct session *s, const char *why, struct wire_message *answer)
{
	bool taken = window_taken(s);
	unsigned buffers = 0;
	char lost[96] = "";

	if (taken)
		s->window.kinds &= ~(1ull << CUPTI_RUNTIME);
	(void)anchors_off(s);
	threads_back(s);
	if (taken) {
		(void)s->cupti.flush_all(0);
		buffers = pool_lose(&s->pool);
		s->window.kinds = 0;
	}
	s->window.on = false;
	s->window.withdrew = true;
	if (buffers)
		(void)snprintf(lost, sizeof(lost),
			       "; up to %u buffers of %u KiB with records of both were lost to "
			       "both", buffers, POOL_BYTES / 1024);
	answer_with(answer, WIRE_WITHDREW,
		    "another profiler has begun to use CUPTI in this process%s%s%s",
		    why[0] ? ": " : "", why, lost);
	answer->dropped = s->dropped;
	return !taken;
}
