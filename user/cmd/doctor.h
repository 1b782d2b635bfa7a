/* SPDX-License-Identifier: BSD-2-Clause */
/* What gbpf doctor found out, and the parts that find it out and print it. */
#ifndef GBPF_CMD_DOCTOR_H
#define GBPF_CMD_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include "collect/rings.h"
#include "probe/images.h"
#include "probe/probes.h"
#include "probe/selection.h"
#include "target/target.h"

struct doctor_options {
	const char *pid, *api;
	int format, rung;
	bool verbose, no_attach;
};

/* ---- the machine ---- */

enum doctor_result { CHECK_OK = 1, CHECK_NO, CHECK_NOT_TRIED };

struct doctor_check {
	const char *key, *name; /* in JSON, in the table */
	enum doctor_result result;
	bool needed;		/* without it trace cannot work */
	char detail[240];	/* what was found, or why not */
	const char *advice;	/* what to do; NULL: nothing, or nothing more */
};

struct doctor_rung {
	enum rung rung;
	enum doctor_result result;
	int error;	  /* -errno of whichever step failed */
	const char *step; /* that step: "load", "attach"; NULL if none failed */
};

#define DOCTOR_CHECKS 16
#define DOCTOR_CAPABILITIES 6

struct doctor_capability {
	int value;	  /* CAP_… */
	const char *name, *what_for;
	bool covered_by_admin; /* CAP_SYS_ADMIN does in its place */
	bool needed;	  /* for trace at all, on the rung in use */
	bool held;	  /* it, or what does in its place */
	bool itself;	  /* it is in the effective set */
};

struct doctor {
	const struct doctor_options *options;
	const struct selection *selection, *everything;
	struct utsname system;
	long cpus;
	char driver[64]; /* version of NVIDIA's kernel module, "" if there is none */
	char user[64];
	struct doctor_check checks[DOCTOR_CHECKS];
	size_t checks_count;
	struct doctor_rung rungs[3];
	struct probes *probes; /* of the best rung, or NULL */
	struct rings *rings;   /* idem */
	struct doctor_sink *sink;
	bool returns_safe;
	struct doctor_capability capabilities[DOCTOR_CAPABILITIES];
	bool cost_known, stepped_known;
	struct calibration cost;
	int64_t stepped_ns;
	struct doctor_process *process; /* NULL without -p */
	bool ok;
	const char *trouble; /* the first that keeps trace from working; NULL if ok */
	bool process_trouble; /* and that is the process's */
};

/* doctor_kernel.c: tries everything that trace needs. 0 or -ENOMEM. */
int doctor_try(struct doctor *d);
void doctor_free(struct doctor *d);
/* What an errno means here, in a few words. */
const char *doctor_why(int error);

/* doctor_rights.c: fills d->capabilities and adds what else stands in the way. */
void doctor_rights(struct doctor *d);
/* " CAP_… is missing": those of these (ends with -1) that are not held. "" if all are. */
const char *doctor_missing(const struct doctor *d, const int *wanted, char *buf, size_t size);
struct doctor_check *doctor_check_add(struct doctor *d, const char *key, const char *name,
				      bool needed);
void doctor_check_set(struct doctor_check *c, enum doctor_result result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- one process ---- */

struct doctor_image {
	char *path;
	enum image_hint hint;
	bool deleted, not_asked;    /* --api names nothing of it */
	uint64_t dev, ino;	    /* of the file, or of the mapping if it cannot be opened */
	const struct image *asked;  /* as trace would hook it; NULL: not ours, or not readable */
	const struct image *all;    /* the same with every function gbpf knows */
	int foreign;		    /* of the sites to be hooked, already probed by somebody */
	char trouble[200];	    /* why nothing of it is hooked; "" if something is */
};

struct doctor_rate {
	bool measured;
	const char *why_not; /* static text */
	int64_t elapsed_ns;
	uint64_t calls, launches, lost;
	uint32_t threads;     /* that called anything */
	uint32_t worst_tid;   /* whom the probes cost most */
	char worst_comm[16];
	uint64_t worst_calls;
	int64_t worst_cost_ns;
	double slowdown; /* expected, of that thread: cost / (elapsed - cost) */
};

/* The GPU's own time of a process, by a sidecar in it. */
struct doctor_gpu_time {
	enum doctor_result result;
	char text[300]; /* how it would be had, or why not */
	char *cupti;	/* path of the libcupti it has loaded, as it names it; NULL: none */
	char soname[64]; /* of that, "" if not known */
};

struct doctor_process {
	uint32_t pid;
	struct process_info info;
	char user[64];
	struct images *asked, *all; /* own what images point to */
	struct doctor_image *images;
	size_t images_count;
	char **tools; /* libraries of other tools that are mapped: CUPTI and who uses it */
	size_t tools_count;
	char *environment; /* NAME=VALUE, each terminated: only those that matter */
	size_t environment_size;
	int error;	      /* -errno: its mappings could not be read */
	uint32_t children[8]; /* descendants that use CUDA, if it does not */
	size_t children_count;
	struct doctor_rate rate;
	struct doctor_gpu_time gpu_time;
};

/*
 * doctor_process.c: looks, and attaches nothing. 0, -ESRCH if there is no such
 * process, -ENOMEM; other trouble is in (*out)->error.
 */
int doctor_look(struct doctor *d, uint32_t pid);
void doctor_process_free(struct doctor_process *p); /* NULL is accepted */

/* doctor_gpu_time.c: could --gpu-time be had? Looks, too. 0 or -ENOMEM. */
int doctor_gpu_time(const struct doctor *d, struct doctor_process *p);

/* doctor_rate.c: attaches for a second, in memory, and counts. */
int doctor_measure(struct doctor *d);
/* Where the records of all that doctor tries end up. */
struct doctor_sink {
	uint32_t pid;	     /* whose calls are counted */
	int64_t call_ns, launch_ns; /* what their probes cost each */
	struct doctor_thread *threads;
	size_t threads_count;
	uint64_t calls, launches;
	uint32_t child;	     /* of ours, whose life is watched for */
	unsigned child_seen; /* a bit for each enum gbpf_process_event of it */
};
int doctor_rings(struct doctor *d);

/* ---- output ---- */

void doctor_print_table(const struct doctor *d);	 /* doctor_table.c */
void doctor_print_process(const struct doctor *d);	 /* doctor_table_process.c */
void doctor_print_json(const struct doctor *d);		 /* doctor_json.c */

#endif
