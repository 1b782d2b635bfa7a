// SPDX-License-Identifier: BSD-2-Clause
#include "finalize.h"

#include <string.h>
#include <time.h>

#include "buffers.h"
#include "window.h"

#define CALL_MS 250  /* for the job to make a call */
#define DONE_MS 5000 /* for CUPTI, once it has begun */

enum { FINALIZE_WAITING, FINALIZE_CLAIMED, FINALIZE_DONE, FINALIZE_LEFT };
static atomic_int state;

/*
 * CUPTI's rule: only from the exit of a call, the driver's or the runtime's. Before 12.6 it
 * crashed jobs that used graphs.
 */
static void on_call(void *user, int domain, uint32_t cbid, const void *data)
{
	int waiting = FINALIZE_WAITING;
	uint32_t site;

	memcpy(&site, data, sizeof(site));
	if (site != CUPTI_API_EXIT || !session_here() ||
	    !atomic_compare_exchange_strong(&state, &waiting, FINALIZE_CLAIMED))
		return;
	if (window_ours(&session) && !session.cupti.finalize())
		atomic_store(&state, FINALIZE_DONE);
	else
		atomic_store(&state, FINALIZE_LEFT);
}

/* What has become of it after so long. */
static int wait_for_end(int ms)
{
	struct timespec t = { 0, 1000000 };

	for (int i = 0; i < ms && atomic_load(&state) < FINALIZE_DONE; i++)
		(void)nanosleep(&t, NULL);
	return atomic_load(&state);
}

static void listen_to_calls(const struct session *s, void *subscriber, uint32_t on)
{
	uint32_t cbid;

	for (size_t i = 0; (cbid = layout_launch(s->cupti.version, i)); i++)
		(void)s->cupti.enable_callback(on, subscriber, CUPTI_DOMAIN_DRIVER, cbid);
	/* a job that launches through the runtime alone has no other; some may be unknown here */
	for (cbid = 1; cbid <= LAYOUT_RUNTIME_CALLS; cbid++)
		if (layout_runtime_launches(cbid))
			(void)s->cupti.enable_callback(on, subscriber, CUPTI_DOMAIN_RUNTIME, cbid);
}

bool finalize(struct session *s)
{
	int waiting = FINALIZE_WAITING;
	void *subscriber = NULL;

	if (s->cupti.version < CUPTI_12_6 || !s->cupti.finalize || !s->cupti.enable_callback ||
	    window_taken(s) || s->window.withdrew || s->window.kinds)
		return false;
	atomic_store(&state, FINALIZE_WAITING);
	if (s->cupti.subscribe(&subscriber, on_call, NULL))
		return false;
	listen_to_calls(s, subscriber, 1);
	(void)wait_for_end(CALL_MS);
	if (atomic_compare_exchange_strong(&state, &waiting, FINALIZE_LEFT) ||
	    wait_for_end(DONE_MS) == FINALIZE_LEFT) {
		listen_to_calls(s, subscriber, 0);
		(void)s->cupti.unsubscribe(subscriber);
		return false;
	}
	if (atomic_load(&state) != FINALIZE_DONE)
		return false;
	pool_reclaim(&s->pool);
	return true;
}
