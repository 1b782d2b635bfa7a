// SPDX-License-Identifier: BSD-2-Clause
#include "anchors.h"

#define MS 1000000LL
#define MOMENT_MS 10 /* dozens of calls of a job that is busy; a flush each is no burden */
#define MOST_MS 20   /* for a job that makes no call just then */
#define FIRST_CALLS 32 /* a program sets memory before it launches from each of its threads */
/* Of so much time at the most it is not known which work is whose, should one be lost. */
#define PAUSE_MS 500

/* Calls through the CUDA runtime have records of the second kind only, all others of the first. */
static const uint32_t call_kinds[] = { CUPTI_DRIVER, CUPTI_RUNTIME };
#define KINDS (sizeof(call_kinds) / sizeof(*call_kinds))
#define CALLS (1ull << CUPTI_DRIVER | 1ull << CUPTI_RUNTIME)

static int begin(struct session *s, unsigned calls, int64_t most_ns)
{
	uint64_t stamp = 0;
	int result = 0;
	int64_t now;

	(void)s->cupti.get_timestamp(&stamp);
	atomic_store(&s->anchors.from, (int64_t)stamp);
	atomic_store(&s->anchors.seen, 0);
	s->anchors.wanted = calls;
	for (size_t i = 0; !result && i < KINDS; i++) {
		result = s->cupti.enable(call_kinds[i]);
		if (!result)
			s->window.kinds |= 1ull << call_kinds[i];
	}
	now = now_ns();
	s->anchors.due = now + MOMENT_MS * MS;
	s->anchors.until = most_ns < INT64_MAX - now ? now + most_ns : INT64_MAX;
	return result;
}

int anchors_begin(struct session *s)
{
	int result;

	s->anchors.due = INT64_MAX;
	if (s->layout->numbers && !(s->window.flags & (WIRE_ALL_API | WIRE_CALLS)))
		return 0;
	result = begin(s, FIRST_CALLS, INT64_MAX);
	if (s->window.flags & WIRE_ALL_API)
		s->anchors.due = INT64_MAX;
	return result;
}

int anchors_step(struct session *s, int64_t now)
{
	int result;

	if (now < s->anchors.due)
		return 0;
	if (!(s->window.kinds & CALLS))
		return begin(s, 1, MOST_MS * MS);
	(void)s->cupti.flush_all(0);
	if (atomic_load(&s->anchors.seen) < s->anchors.wanted && now < s->anchors.until) {
		s->anchors.due = now_ns() + MOMENT_MS * MS;
		return 0;
	}
	result = anchors_off(s);
	s->anchors.due = now_ns() + PAUSE_MS * MS;
	return result;
}

int anchors_off(struct session *s)
{
	int result = 0, one;

	for (size_t i = 0; i < KINDS; i++) {
		if (!(s->window.kinds & 1ull << call_kinds[i]))
			continue;
		one = s->cupti.disable(call_kinds[i]);
		if (!one)
			s->window.kinds &= ~(1ull << call_kinds[i]);
		result = result ? result : one;
	}
	return result;
}

/* What was recorded in the moment before may come only now. */
void anchors_saw(struct session *s, int64_t begin)
{
	if (begin >= atomic_load(&s->anchors.from))
		atomic_fetch_add(&s->anchors.seen, 1);
}
