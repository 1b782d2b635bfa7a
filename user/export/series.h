/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Label sets and what was counted in them: the state between snapshots and pages.
 * Internal to export/.
 */
#ifndef GBPF_EXPORT_SERIES_H
#define GBPF_EXPORT_SERIES_H

#include "export/families.h"

#define SERIES_APIS 64	  /* of a label set that have series of their own */
#define SERIES_GPUS 256	  /* MIG instances included */
#define SERIES_LABEL 128  /* bytes of a label's value, its NUL included */
/* Values a row, per scope and way of reading; test_openmetrics.c compares with the table. */
#define SERIES_GAUGES 48
#define SERIES_COUNTS 4
#define SERIES_HISTOGRAMS 2

/* Walks the table; slot is where a row keeps the family's (first) value. */
struct family_walk {
	const struct family *family;
	unsigned slot;
	size_t next;
	unsigned used[SCOPE_SELF + 1][3];
};
bool family_walk(struct family_walk *w); /* zeroed at first; false after the last */

struct series_values {
	double value[SERIES_GAUGES];
	uint32_t from[SERIES_GAUGES]; /* values that were combined; 0: not known */
};

/* Valid UTF-8 without control characters; "" unknown. */
struct series_labels {
	char text[SET_LABELS][SERIES_LABEL];
	uint32_t pid; /* 0: not asked for */
};

struct series_api {
	uint16_t api; /* catalogue id; 0: all others */
	uint64_t count[SERIES_COUNTS];
};

struct series_set {
	struct series_labels labels;
	int64_t seen_ns;    /* last with a process, CLOCK_MONOTONIC */
	uint32_t processes; /* now */
	struct series_values gauges;
	uint64_t count[SERIES_COUNTS];
	struct histogram histogram[SERIES_HISTOGRAMS];
	struct series_api apis[SERIES_APIS + 1];
	size_t apis_count;
};

struct series_gpu {
	char uuid[SERIES_LABEL], name[SERIES_LABEL], pci[SERIES_LABEL], mig_parent[SERIES_LABEL];
	uint32_t index;
	struct series_values gauges;
};

/* What a page is written from. */
struct series {
	struct series_set **sets; /* ordered by labels */
	size_t sets_count;
	struct series_gpu *gpus;
	size_t gpus_count;
	struct series_values self;
	uint64_t self_count[SERIES_COUNTS];
	bool any; /* there was a snapshot */
};

/* A copy to be read without a lock. -ENOMEM. */
int series_copy(const struct series *from, struct series *to);
void series_free(struct series *s); /* twice is fine */

struct series_process;

/* A series and what it takes to count further. */
struct series_state {
	struct series now;
	struct series_process **processes; /* by pid and start */
	size_t processes_count;
	int64_t mono_ns; /* of the last snapshot */
	size_t max_sets;
	int64_t stale_ns;
	bool include_pid;
};

/* 0; -ENOMEM: nothing has changed. The same snapshot again changes nothing. */
int series_update(struct series_state *state, const struct snapshot *s);
void series_state_free(struct series_state *state);

/* src as a label value: at most SERIES_LABEL - 1 bytes, whole characters. */
void series_label(char *to, const char *src, size_t size);
void series_labels_of(struct series_labels *to, const struct snapshot_process *p, bool with_pid);
int series_labels_compare(const struct series_labels *a, const struct series_labels *b);

/* The set with these labels: where it is, or would be (false). */
bool series_find(const struct series *s, const struct series_labels *labels, size_t *at);

/* What a process counted last, to know what is new. Returns a new record or NULL. */
struct series_process *series_process_new(const struct snapshot_process *p);
void series_process_free(struct series_process *p);
/* -1, 0, 1 as known comes before p by pid and start, is it, or comes after it. */
int series_process_order(const struct series_process *known, const struct snapshot_process *p);
/* Adds what is new of from's process to set, and remembers it. */
void series_process_count(struct series_process *known, const struct family_source *from,
			  struct series_set *set);

/* Combines the gauges of a scope into v. */
void series_gauges(struct series_values *v, enum family_scope scope,
		   const struct family_source *from);

#endif
