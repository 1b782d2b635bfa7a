// SPDX-License-Identifier: BSD-2-Clause
#include "trace/injector.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sidecar/neighbour.h"

#define LIMIT_NS 3000000000LL
#define THREADS_MOST 8 /* each waits for one process, most of the time */

struct job {
	struct job *next;
	struct injected i;
};

struct list {
	struct job *first, **last;
};

struct injector {
	const void *library;
	size_t size;
	pthread_t threads[THREADS_MOST]; /* the first threads_count run */
	size_t threads_count;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct list todo, done;
	size_t idle; /* threads that wait for more */
	bool end;
	int event;
};

static void list_add(struct list *l, struct job *j)
{
	j->next = NULL;
	*l->last = j;
	l->last = &j->next;
}

static struct job *list_take(struct list *l)
{
	struct job *j = l->first;

	if (j)
		l->first = j->next;
	if (!l->first)
		l->last = &l->first;
	return j;
}

static void work(const struct injector *i, struct injected *at)
{
	char again[40];
	struct inject_options o = {
		.library = i->library,
		.size = i->size,
		.name = "libgbpf-cupti.so",
		.entry = "gbpf_sidecar_begin",
		.limit_ns = LIMIT_NS,
	};

	at->result.socket = -1;
	at->err = neighbour_check(at->pid, at->result.why, sizeof(at->result.why));
	if (!at->err)
		at->err = inject(at->pid, &o, &at->result);
	if (at->err != -EALREADY)
		return;
	/* it stays when it is done; another copy hands us on to it */
	snprintf(again, sizeof(again), "libgbpf-cupti.so.%d", getpid());
	o.name = again;
	at->err = inject(at->pid, &o, &at->result);
}

static void *run(void *ctx)
{
	struct injector *i = ctx;
	struct job *j;

	pthread_mutex_lock(&i->lock);
	while (!i->end) {
		j = list_take(&i->todo);
		if (!j) {
			i->idle++;
			pthread_cond_wait(&i->more, &i->lock);
			i->idle--;
			continue;
		}
		pthread_mutex_unlock(&i->lock);
		work(i, &j->i);
		pthread_mutex_lock(&i->lock);
		list_add(&i->done, j);
		eventfd_write(i->event, 1);
	}
	pthread_mutex_unlock(&i->lock);
	return NULL;
}

int injector_new(struct injector **out, const void *library, size_t size)
{
	struct injector *i = calloc(1, sizeof(*i));
	int err;

	if (!i)
		return -ENOMEM;
	i->library = library;
	i->size = size;
	i->todo.last = &i->todo.first;
	i->done.last = &i->done.first;
	pthread_mutex_init(&i->lock, NULL);
	pthread_cond_init(&i->more, NULL);
	i->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (i->event < 0) {
		err = -errno;
		free(i);
		return err;
	}
	*out = i;
	return 0;
}

void injector_free(struct injector *i)
{
	struct job *j;

	if (!i)
		return;
	pthread_mutex_lock(&i->lock);
	i->end = true;
	pthread_cond_broadcast(&i->more);
	pthread_mutex_unlock(&i->lock);
	while (i->threads_count)
		pthread_join(i->threads[--i->threads_count], NULL);
	while ((j = list_take(&i->todo)))
		free(j);
	while ((j = list_take(&i->done))) {
		if (j->i.result.socket >= 0)
			close(j->i.result.socket);
		free(j);
	}
	pthread_mutex_destroy(&i->lock);
	pthread_cond_destroy(&i->more);
	close(i->event);
	free(i);
}

int injector_fd(const struct injector *i)
{
	return i->event;
}

int injector_add(struct injector *i, uint32_t pid)
{
	struct job *j = calloc(1, sizeof(*j));
	bool idle;
	int err = 0;

	if (!j)
		return -ENOMEM;
	j->i.pid = pid;
	j->i.result.socket = -1;
	pthread_mutex_lock(&i->lock);
	list_add(&i->todo, j);
	idle = i->idle > 0;
	pthread_cond_signal(&i->more);
	pthread_mutex_unlock(&i->lock);
	if (idle || i->threads_count == THREADS_MOST)
		return 0;
	err = -pthread_create(&i->threads[i->threads_count], NULL, run, i);
	i->threads_count += !err;
	return err && !i->threads_count ? err : 0;
}

int injector_take(struct injector *i, struct injected *out)
{
	eventfd_t count;
	struct job *j;

	pthread_mutex_lock(&i->lock);
	j = list_take(&i->done);
	if (!j)
		eventfd_read(i->event, &count);
	pthread_mutex_unlock(&i->lock);
	if (!j)
		return 0;
	*out = j->i;
	free(j);
	return 1;
}
