/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/thread.h"

#define CLOSER_ROOM 16

struct closer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct probe_link *links[CLOSER_ROOM];
	size_t count; /* the one being freed included */
	bool end;
};

static void *closer_run(void *ctx)
{
	struct closer *c = ctx;
	size_t i;

	pthread_mutex_lock(&c->lock);
	while (c->count || !c->end) {
		struct probe_link *l = c->links[0];

		if (!c->count) {
			pthread_cond_wait(&c->change, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		probe_link_free(l);
		pthread_mutex_lock(&c->lock);
		for (i = 1; i < c->count; i++)
			c->links[i - 1] = c->links[i];
		c->count--;
		pthread_cond_broadcast(&c->change);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int closer_new(struct closer **out)
{
	struct closer *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->change, NULL);
	err = thread_quiet(&c->thread, closer_run, c);
	if (err) {
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void closer_free(struct closer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->end = true;
	pthread_cond_broadcast(&c->change);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->change);
	free(c);
}

void closer_give(struct closer *c, struct probe_link *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&c->lock);
	while (c->count == CLOSER_ROOM)
		pthread_cond_wait(&c->change, &c->lock);
	c->links[c->count++] = l;
	pthread_cond_broadcast(&c->change);
	pthread_mutex_unlock(&c->lock);
}

size_t closer_waiting(struct closer *c)
{
	size_t count;

	pthread_mutex_lock(&c->lock);
	count = c->count;
	pthread_mutex_unlock(&c->lock);
	return count;
}
