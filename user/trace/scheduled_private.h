/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct scheduled, shared by the files about it. */
#ifndef GBPF_TRACE_SCHEDULED_PRIVATE_H
#define GBPF_TRACE_SCHEDULED_PRIVATE_H

#include <regex.h>

#include "bpf/steps.h"
#include "probe/closer.h"
#include "probe/markers.h"
#include "trace/private.h"

#define LEARN_FIRINGS_MOST 65536
#define WINDOWS_TEXT 4096

/* What is recorded at first, aside, to see how often a step fires its marker. */
struct learning {
	bool on;
	bool full; /* enough was recorded: only firings are counted from here on */
	int fd;	   /* a memfd of ours, the writer has another descriptor; -1 */
	struct writer *writer;
	struct schedule_firing *firings;
	size_t count, room;
	int64_t since; /* the first launch or firing, ns; 0: none yet */
	uint64_t events, launches;
};

struct scheduled {
	struct schedule_options options;
	struct schedule s;
	struct learning learn;
	struct marker_name names[2];
	size_t names_count;
	char *text; /* what names point into */
	uint8_t always[GBPF_MAX_API]; /* functions whose probes stay: they mark steps */
	bool apis;		      /* there are any */
	bool kernels;		      /* and they are launches, of kernels that match this: */
	regex_t kernel;
	struct markers *markers; /* NULL: steps are not asked for */
	struct gbpf_steps *shared;
	struct closer *closer;
	bool steps;	/* the unit, once it is decided */
	bool begun;	/* the first cycle */
	bool attached;	/* probes are there */
	bool pending;	/* the warm-up goes on, whatever the plan says: see warm_up() */
	bool failed;
	bool leader_ended; /* in this step */
	bool lost_leader;  /* nobody leads */
	bool stopping;	   /* nothing is to be armed */
	int64_t origin; /* where the first cycle began */
	int64_t window_begin, window_end; /* of the last window, ns; end 0: it is open */
	int64_t kept_end; /* of what is kept; what is on its way then is not, ns */
	int64_t stretch_begin; /* scheduled_stretch.c, ns; 0: there is none */
	int64_t warm_by, cool_by;
	bool warming; /* its sidecars are to begin */
	bool turned;  /* they were told to */
	bool cooling; /* they are ending their windows */
	bool opened;
	uint64_t kept; /* events written */
	struct schedule_learnt learnt;
	char windows[WINDOWS_TEXT]; /* steps of each: "3-5,9-11" */
	size_t windows_len;
};

/* learning.c */
int learning_begin(struct tracer *t);
int learning_events(struct tracer *t, const struct event *events, size_t count);
/* Looks whether enough was seen, and if so begins the first cycle. 0 or -errno. */
int learning_step(struct tracer *t);
int learning_mark(struct tracer *t, const struct gbpf_mark *mark);
void learning_end(struct scheduled *s); /* idempotent */

/* scheduled_phases.c */
/* Steps or time: the first cycle begins now. */
int phases_begin(struct tracer *t, bool steps);
int phases_mark(struct tracer *t, const struct gbpf_mark *mark);
int phases_tick(struct tracer *t); /* what time brings */
int phases_stop(struct tracer *t);
void phases_rest(struct tracer *t); /* nothing is recorded until the next warm-up */

/* scheduled_stretch.c: what lets events through, and with GPU time for how long. 0 or -errno */
void gate_set(struct tracer *t, enum gbpf_gate_state state);
/* Nothing that is recorded takes its time before begin, or looks at the gate after it. */
void gate_open(struct tracer *t, int64_t begin);
int stretch_write(struct tracer *t, enum record_kind kind, int64_t begin, int64_t end);
/* All that was recorded until then goes into the file, and nothing later. */
int stretch_drain(struct tracer *t, int64_t end);
/* It begins, or goes on; false: the window is to wait, and this to be asked again. */
bool stretch_warm(struct tracer *t);
void stretch_cool(struct tracer *t);  /* it ends when no sidecar records any more */
int stretch_tick(struct tracer *t);   /* while it is cooling: is that so? */
int stretch_end(struct tracer *t);    /* now, if there is one */

/* scheduled.c */
int scheduled_attach(struct tracer *t);
void scheduled_detach(struct tracer *t);

#endif
