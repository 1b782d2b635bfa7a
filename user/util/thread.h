/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_UTIL_THREAD_H
#define GBPF_UTIL_THREAD_H

#include <pthread.h>

/* A thread that gets no signals: these are for the one that waits for them. 0 or -errno. */
int thread_quiet(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
