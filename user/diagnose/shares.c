// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/shares.h"

/* What the threads' time suggests, where nobody knows what the GPU did. */
static enum diag_class suggested(enum feed_state state)
{
	switch (state) {
	case FEED_DISPATCH: return CLASS_OVERHEAD;
	case FEED_COLD: return CLASS_COLD;
	case FEED_BLOCKED: return CLASS_BACK_PRESSURED;
	case FEED_COMM: return CLASS_COMM;
	case FEED_COPY: return CLASS_COPY;
	case FEED_WAIT: return CLASS_GPU;
	case FEED_AWAY:
	case FEED_STATES: break;
	}
	return CLASS_STARVED;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void shares_cpu(const struct session *s, uint32_t process,
		       const struct feed_timeline *feed, struct shares *out)
{
	const struct session_process *p = &s->processes[process];

	out->basis = BASIS_CPU;
	for (size_t i = 0; i < s->windows_count; i++) {
		int64_t from = later(s->windows[i].begin, p->first);
		int64_t to = earlier(s->windows[i].end, p->last);

		if (to <= from)
			continue;
		out->window += to - from;
		timeline_sum(feed, from, to, out->feed);
	}
	for (int state = 0; state < FEED_STATES; state++)
		out->ns[suggested((enum feed_state)state)] += out->feed[state];
}

/* ns of the recording in which this process was alive, and of these with a sidecar. */
static int64_t recorded(const struct session *s, uint32_t process, int64_t *covered)
{
	const struct session_process *p = &s->processes[process];
	int64_t ns = 0;

	*covered = 0;
	for (size_t i = 0; i < s->windows_count; i++) {
		int64_t from = later(s->windows[i].begin, p->first);
		int64_t to = earlier(s->windows[i].end, p->last);

		if (to <= from)
			continue;
		ns += to - from;
		*covered += work_covered_ns(s, process, from, to);
	}
	return ns;
}

bool shares_have_gpu(const struct session *s, uint32_t process)
{
	int64_t covered, all = recorded(s, process, &covered);
	bool works = false;

	for (uint32_t i = 0; i < s->devices_count && !works; i++)
		works = s->devices[i].physical == i && timeline_works_on(s, process, i);
	return works && covered && covered * 2 >= all;
}

int shares_of(const struct session *s, uint32_t process, const struct feed_timeline *feed,
	      struct shares *out)
{
	*out = (struct shares){ 0 };
	if (shares_have_gpu(s, process))
		return shares_gpu(s, process, feed, out);
	shares_cpu(s, process, feed, out);
	return 0;
}
