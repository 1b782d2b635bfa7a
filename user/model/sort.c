// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread's events come nearly in the order of time: intake puts a late one a
 * few places back, and where the thread changed CPUs runs are long.
 */
#include "model/internal.h"

#define MAX_LATE 32 /* places that an event is moved back on its way in */

#define RUNS_SORT sort_events
#define RUNS_TYPE struct pending
#define RUNS_AFTER(a, b, ctx) ((a)->ts > (b)->ts)
#include "util/runs.h"

/*
 * A poll is written when it is over, and so a few places late: such an event
 * goes where it belongs at once, behind those of its time.
 */
void queue_settle(struct queue *q)
{
	size_t last = q->count - 1;
	struct pending late = q->events[last];
	size_t least = last > MAX_LATE ? last - MAX_LATE : 0;
	size_t i = last;

	while (i > least && q->events[i - 1].ts > late.ts)
		i--;
	if (i && q->events[i - 1].ts > late.ts) {
		q->unsorted = true; /* further: queue_sort()'s */
		return;
	}
	memmove(q->events + i + 1, q->events + i, (last - i) * sizeof(late));
	q->events[i] = late;
}

int queue_sort(struct queue *q)
{
	int err = q->unsorted ? sort_events(q->events, q->count, NULL) : 0;

	if (!err)
		q->unsorted = false;
	return err;
}
