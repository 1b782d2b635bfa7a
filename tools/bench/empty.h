/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes that do nothing: what any probe at all costs. */
#ifndef GBPF_BENCH_EMPTY_H
#define GBPF_BENCH_EMPTY_H

#include <stdbool.h>
#include <stdint.h>

enum empty_at { EMPTY_AT_MULTI, EMPTY_AT_SESSION, EMPTY_AT_SINGLE };

struct empty;

/* Loads the programs, as many as this kernel takes. */
int empty_new(struct empty **out);
void empty_free(struct empty *e); /* NULL is accepted */
bool empty_has(const struct empty *e, enum empty_at at);
/* At both ends of the function at offset in the file behind fd. */
int empty_attach(struct empty *e, enum empty_at at, int fd, uint64_t offset);
void empty_detach(struct empty *e);

/* Which file a function of this program is in, and where. */
int bench_site(uintptr_t function, int *fd, uint64_t *offset);

#endif
