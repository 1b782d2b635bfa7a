/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every metric that is served: its name, type, unit and help, how it is read from a
 * snapshot, and how several processes of one label set are made one. The writers and
 * the table in docs/openmetrics.md follow from it.
 */
#ifndef GBPF_EXPORT_FAMILIES_H
#define GBPF_EXPORT_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM, FAMILY_INFO };

/* What there is one value of each. */
enum family_scope {
	SCOPE_API,     /* label set and API */
	SCOPE_PROCESS, /* label set */
	SCOPE_GPU,
	SCOPE_SELF,
};

/* How the values of the processes of one label set become one. */
enum family_combine { COMBINE_SUM, COMBINE_MAX, COMBINE_MIN, COMBINE_MEAN };

/* What a value is read from; what its scope has not is NULL. */
struct family_source {
	const struct snapshot *snapshot;
	const struct snapshot_process *process;
	const struct snapshot_api *api;
	const struct gpu_sample *gpu;
	size_t left_out; /* processes, by the bound on label sets */
};

struct family {
	const char *name; /* without the _total or _info of its samples */
	const char *unit; /* a base unit, the last part of the name; "" none */
	const char *help;
	enum family_type type;
	enum family_scope scope;
	enum family_combine combine;
	/* A family of several values has a label that tells them apart. */
	const char *label;
	unsigned variants; /* 0: one value, no label */
	const char *(*variant)(unsigned i);
	/* One of these. gauge: false if the value is not known. */
	bool (*gauge)(const struct family_source *from, unsigned i, double *value);
	uint64_t (*count)(const struct family_source *from);
	const struct histogram *(*histogram)(const struct family_source *from);
	double scale;  /* of a count to its unit; 0: 1 */
	bool interval; /* count() is of the interval, not of all time */
	bool sparse;   /* left out while it is 0: most rows never have any */
	/* Upper bounds of the buckets for readers without native histograms, seconds. */
	const double *classic;
};

#define FAMILY_CLASSIC 12 /* bounds in struct family's classic */

/* NULL after the last. Those of SCOPE_API come first. */
const struct family *family_get(size_t i);

unsigned family_values(const struct family *f); /* per row: variants, or 1 */
/* "_total", "_info" or "": what the names of its samples end with. */
const char *family_suffix(const struct family *f);
const char *family_type_name(enum family_type type); /* OpenMetrics's word */

/* The labels of a row of a scope, in the order in which they are written. */
enum set_label {
	LABEL_COMM, LABEL_CONTAINER, LABEL_POD, LABEL_NAMESPACE, LABEL_SLURM_JOB, LABEL_RANK,
	LABEL_GPU, SET_LABELS,
};
const char *set_label_name(enum set_label label);

#endif
