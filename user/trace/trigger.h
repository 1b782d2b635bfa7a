/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a flight recorder writes: conditions such as "p99(cuStreamSynchronize) > 5ms", looked
 * at while events come in. docs/flight-recorder.md has the language.
 */
#ifndef GBPF_TRACE_TRIGGER_H
#define GBPF_TRACE_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/event.h"
#include "probe/selection.h"

#define TRIGGERS_MAX 16
#define TRIGGER_SUBJECT 64 /* bytes of a function's name, with its NUL */
#define TRIGGER_OVER (10 * INT64_C(1000000000)) /* ns, where nobody says otherwise */

enum trigger_what {
	TRIGGER_P50,
	TRIGGER_P90,
	TRIGGER_P99,
	TRIGGER_MAX,
	TRIGGER_AVG, /* the ones up to here are of durations, ns */
	TRIGGER_COUNT,
	TRIGGER_ERRORS,
	TRIGGER_RATE, /* thousandths of a call a second */
	TRIGGER_BYTES,
};

enum trigger_compare { TRIGGER_ABOVE, TRIGGER_AT_LEAST, TRIGGER_BELOW, TRIGGER_AT_MOST };

struct trigger {
	const char *text; /* as it was given; the caller's */
	enum trigger_what what;
	enum trigger_compare compare;
	char subject[TRIGGER_SUBJECT]; /* a function, or a kind of them */
	int64_t threshold; /* ns, calls, thousandths a second, or bytes */
	int64_t over;	   /* ns */
	uint64_t least;	   /* calls without which nothing is said */
};

/*
 * Parses one; text must outlive it. 0, or -EINVAL with a sentence in why that names what is
 * wrong with it.
 */
int trigger_parse(struct trigger *out, const char *text, char *why, size_t size);
/* Of its threshold and values: enum record_trigger_unit. */
unsigned trigger_unit(const struct trigger *t);

struct triggers;

/*
 * Looks for count (1 to TRIGGERS_MAX) of them, which are copied, among the functions that are
 * recorded. returns: durations and errors are known. 0, -ENOMEM, or -EINVAL with a sentence in
 * why: a function is not known, or not recorded; or returns are needed.
 */
int triggers_new(struct triggers **out, const struct trigger *items, size_t count,
		 const struct selection *selection, bool returns, char *why, size_t size);
void triggers_free(struct triggers *t); /* NULL is accepted */

bool triggers_need_returns(const struct triggers *t);

/* Counts what events say. No allocation, no system call. */
void triggers_events(struct triggers *t, const struct event *events, size_t count);

struct trigger_fired {
	const struct trigger *trigger;
	int64_t begin, end; /* what the value is of, ns */
	int64_t value;
	uint64_t samples;
};
/*
 * All events up to this time (ns) were seen, but for a few late ones: closes what lies before
 * it, and says whether a condition holds; the first of several. Times do not go back.
 */
bool triggers_advance(struct triggers *t, int64_t upto, struct trigger_fired *out);
/*
 * The same at the end of the recording (ns), all events having been seen: what would have gone
 * on counts as it is. What is too little by then is not said to be.
 */
bool triggers_finish(struct triggers *t, int64_t end, struct trigger_fired *out);
void triggers_reset(struct triggers *t); /* nothing that was seen so far counts */
/* A process ended: what it does no more, it does not do too little of. */
void triggers_ended(struct triggers *t);

/* Whether one of them never had calls enough; if so, the most that it had in its time. */
bool triggers_starved(const struct triggers *t, size_t i, uint64_t *most);
size_t triggers_count(const struct triggers *t);
const struct trigger *triggers_get(const struct triggers *t, size_t i);

#endif
