// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/catalogue.h"
#include "record/record.h"
#include "trace/trigger_pairs.h"
#include "util/histogram.h"
#include "util/nearest.h"

/*
 * A trigger's time slides by slices. Those that are over are summed up; those that may still
 * grow are open: as many as cover what a slow round brings.
 */
#define SLICES 50
#define OPEN 64
#define RING (SLICES + OPEN)
#define SLICE_MIN INT64_C(20000000)
#define LATE_NS INT64_C(10000000) /* that events of other rings may be behind */

struct slice {
	uint64_t calls, errors, bytes;
	struct histogram lengths; /* of calls that ended in it */
};

struct watched {
	struct trigger trigger;
	int64_t width;	/* of a slice, ns */
	int64_t slices; /* of the trigger's time */
	int64_t closed; /* slices that are over: [0, closed) */
	int64_t from;	/* the first that counts */
	int64_t called; /* the first with a call; -1: none yet */
	uint64_t most;	/* calls seen within its time, ever */
	bool enough;	/* calls, ever */
	struct slice sum; /* of [closed - slices, closed) */
	struct slice ring[RING];
};

struct triggers {
	size_t count;
	int64_t origin; /* ns, where slice 0 begins; 0: not known yet */
	bool paired;	/* one of them is of durations */
	struct pairs *pairs; /* NULL if none is */
	struct watched *watched;
	uint16_t wanted[GBPF_MAX_API]; /* by API: bit per trigger */
};

static bool is_of_durations(const struct trigger *t)
{
	return t->what <= TRIGGER_AVG;
}

/* The rest of a twin's name: _v2, _ptsz, _ptds, _v12000_ptsz, … */
static bool is_twin_suffix(const char *rest)
{
	while (*rest) {
		size_t digits;

		if (!strncmp(rest, "_ptsz", 5) || !strncmp(rest, "_ptds", 5)) {
			rest += 5;
			continue;
		}
		digits = strncmp(rest, "_v", 2) ? 0 : strspn(rest + 2, "0123456789");
		if (!digits)
			return false;
		rest += 2 + digits;
	}
	return true;
}

static bool is_named(const struct api *api, const char *subject)
{
	size_t len = strlen(subject);

	return !strncmp(api->name, subject, len) && is_twin_suffix(api->name + len);
}

/* Kinds are the driver's and NCCL's functions: what libraries above call is not counted twice. */
static bool is_of_kind(const struct api *api, const char *subject)
{
	return api->library != API_RUNTIME && !strcmp(api_kind_name(api->kind), subject);
}

static int not_found(const char *subject, bool known, char *why, size_t size)
{
	struct nearest near;

	if (known) {
		snprintf(why, size, "%s is not among the functions that are recorded; ask for it "
				    "with --api", subject);
		return -EINVAL;
	}
	nearest_init(&near, subject);
	for (unsigned k = API_LAUNCH; k <= API_OTHER; k++)
		nearest_offer(&near, api_kind_name(k));
	for (size_t i = 1; i <= catalogue_count(); i++)
		nearest_offer(&near, catalogue_get((uint16_t)i)->name);
	snprintf(why, size, "%s is neither a function that gbpf knows nor a kind of them, such as "
			    "sync, launch or copy%s%s%s", subject,
		 near.best ? "; did you mean " : "", near.best ? near.best : "",
		 near.best ? "?" : "");
	return -EINVAL;
}

/* Marks the functions that trigger i is of. */
static int find_functions(struct triggers *t, size_t i, const struct selection *selection,
			  char *why, size_t size)
{
	const char *subject = t->watched[i].trigger.subject;
	bool known = false, recorded = false;

	for (size_t id = 1; id <= catalogue_count(); id++) {
		const struct api *api = catalogue_get((uint16_t)id);

		if (!is_named(api, subject) && !is_of_kind(api, subject))
			continue;
		known = true;
		if (!selection->wanted[id])
			continue;
		recorded = true;
		t->wanted[id] |= (uint16_t)(1u << i);
	}
	return recorded ? 0 : not_found(subject, known, why, size);
}

static bool needs_returns(const struct trigger *t)
{
	return is_of_durations(t) || t->what == TRIGGER_ERRORS;
}

bool triggers_need_returns(const struct triggers *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (needs_returns(&t->watched[i].trigger))
			return true;
	return false;
}

static int watch(struct triggers *t, size_t i, const struct trigger *trigger, bool returns,
		 char *why, size_t size)
{
	struct watched *w = &t->watched[i];

	w->trigger = *trigger;
	w->width = (trigger->over + SLICES - 1) / SLICES;
	if (w->width < SLICE_MIN)
		w->width = SLICE_MIN;
	w->slices = (trigger->over + w->width - 1) / w->width;
	w->called = -1;
	t->paired = t->paired || is_of_durations(trigger);
	if (!returns && needs_returns(trigger)) {
		snprintf(why, size, "'%.100s' needs to know when calls return, and no return "
				    "probes are used; count, rate and bytes do without",
			 trigger->text);
		return -EINVAL;
	}
	return 0;
}

static void on_call(void *ctx, uint16_t api, int64_t begin, int64_t end);

int triggers_new(struct triggers **out, const struct trigger *items, size_t count,
		 const struct selection *selection, bool returns, char *why, size_t size)
{
	struct triggers *t = calloc(1, sizeof(*t));
	int err = 0;

	*out = NULL;
	snprintf(why, size, "out of memory");
	if (!t)
		return -ENOMEM;
	t->count = count;
	t->watched = calloc(count, sizeof(*t->watched));
	if (!t->watched)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < count; i++) {
		err = watch(t, i, &items[i], returns, why, size);
		if (!err)
			err = find_functions(t, i, selection, why, size);
	}
	if (!err && t->paired) {
		t->pairs = pairs_new(on_call, t);
		err = t->pairs ? 0 : -ENOMEM;
	}
	if (err) {
		triggers_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void triggers_free(struct triggers *t)
{
	if (!t)
		return;
	pairs_free(t->pairs);
	free(t->watched);
	free(t);
}

/* The slice of a time, among those that are open: what comes too late counts as of now. */
static struct slice *slice_of(const struct triggers *t, struct watched *w, int64_t ts)
{
	int64_t number = (ts - t->origin) / w->width;

	if (ts < t->origin || number < w->closed)
		number = w->closed;
	if (number >= w->closed + OPEN)
		number = w->closed + OPEN - 1;
	if (w->called < 0)
		w->called = number;
	return &w->ring[number % RING];
}

static void count_begin(struct triggers *t, const struct event *e, struct watched *w)
{
	struct slice *s = slice_of(t, w, e->ts);

	s->calls++;
	if (e->args == EVENT_ARGS_CALL && s->bytes + e->call.bytes >= s->bytes)
		s->bytes += e->call.bytes;
}

/* A run of queries is one wait, and as many calls as it has. */
static void count_poll(struct triggers *t, const struct event *e, struct watched *w)
{
	int64_t end = e->poll.last_end > e->ts ? e->poll.last_end : e->ts;
	struct slice *s = slice_of(t, w, end);

	s->calls += e->poll.count;
	histogram_count(&s->lengths, (uint64_t)(end - e->ts));
}

static void count_event(struct triggers *t, const struct event *e, uint32_t wanted)
{
	const struct api *api = catalogue_get(e->api);

	if (t->paired && (e->kind == EVENT_BEGIN || e->kind == EVENT_END))
		pairs_add(t->pairs, e);
	for (; wanted; wanted &= wanted - 1) {
		struct watched *w = &t->watched[__builtin_ctz(wanted)];

		if (e->kind == EVENT_POLL)
			count_poll(t, e, w);
		else if (e->kind == EVENT_BEGIN)
			count_begin(t, e, w);
		else if (e->kind == EVENT_END && api_is_error(api, e->end.ret))
			slice_of(t, w, e->ts)->errors++;
	}
}

static void on_call(void *ctx, uint16_t api, int64_t begin, int64_t end)
{
	struct triggers *t = ctx;

	for (uint32_t wanted = t->wanted[api]; wanted; wanted &= wanted - 1) {
		struct slice *s = slice_of(t, &t->watched[__builtin_ctz(wanted)], end);

		histogram_count(&s->lengths, (uint64_t)end - (uint64_t)begin);
	}
}

void triggers_events(struct triggers *t, const struct event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t wanted = events[i].api < GBPF_MAX_API ? t->wanted[events[i].api] : 0;

		if (!wanted)
			continue;
		if (!t->origin)
			t->origin = events[i].ts;
		count_event(t, &events[i], wanted);
	}
}

static void slice_add(struct slice *to, const struct slice *from)
{
	to->calls += from->calls;
	to->errors += from->errors;
	to->bytes += from->bytes;
	histogram_add(&to->lengths, &from->lengths);
}

static void slice_subtract(struct slice *from, const struct slice *what)
{
	from->calls -= what->calls;
	from->errors -= what->errors;
	from->bytes -= what->bytes;
	histogram_subtract(&from->lengths, &what->lengths);
}

/* The longest call of the trigger's time, exactly: a sum of histograms knows it only about. */
static uint64_t longest(const struct watched *w)
{
	uint64_t ns = 0;

	for (int64_t i = w->closed - w->slices; i < w->closed; i++)
		if (i >= 0 && w->ring[i % RING].lengths.max_ns > ns)
			ns = w->ring[i % RING].lengths.max_ns;
	return ns;
}

static int64_t clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t value_of(const struct watched *w)
{
	const struct histogram *h = &w->sum.lengths;
	double seconds = (double)(w->slices * w->width) / 1e9;

	switch (w->trigger.what) {
	case TRIGGER_P50: return histogram_quantile(h, 0.5);
	case TRIGGER_P90: return histogram_quantile(h, 0.9);
	case TRIGGER_P99: return histogram_quantile(h, 0.99);
	case TRIGGER_MAX: return clamp(longest(w));
	case TRIGGER_AVG: return h->count ? clamp(h->sum_ns / h->count) : 0;
	case TRIGGER_COUNT: return clamp(w->sum.calls);
	case TRIGGER_ERRORS: return clamp(w->sum.errors);
	case TRIGGER_RATE: return (int64_t)((double)w->sum.calls * 1000 / seconds);
	case TRIGGER_BYTES: return clamp(w->sum.bytes);
	}
	return 0;
}

static uint64_t samples_of(const struct watched *w)
{
	return is_of_durations(&w->trigger) ? w->sum.lengths.count : w->sum.calls;
}

static bool holds(const struct trigger *t, int64_t value)
{
	switch (t->compare) {
	case TRIGGER_ABOVE: return value > t->threshold;
	case TRIGGER_AT_LEAST: return value >= t->threshold;
	case TRIGGER_BELOW: return value < t->threshold;
	case TRIGGER_AT_MOST: return value <= t->threshold;
	}
	return false;
}

static bool is_less(const struct trigger *t)
{
	return t->compare == TRIGGER_BELOW || t->compare == TRIGGER_AT_MOST;
}

/*
 * Few calls say "less than" of themselves, so that has to hold over a whole time, which
 * begins after the first call.
 */
static bool is_known(const struct watched *w)
{
	int64_t from = w->from > w->called ? w->from : w->called;

	if (!is_less(&w->trigger))
		return true;
	return w->called >= 0 && w->closed - from >= w->slices;
}

/* The next open slice is over: whether the condition holds with it. */
static bool close_slice(struct watched *w)
{
	struct slice *next = &w->ring[(w->closed + OPEN) % RING];
	uint64_t samples;

	slice_add(&w->sum, &w->ring[w->closed % RING]);
	if (w->closed >= w->slices)
		slice_subtract(&w->sum, &w->ring[(w->closed - w->slices) % RING]);
	w->closed++;
	memset(next, 0, sizeof(*next)); /* older than any slice of the sum: an open one now */
	samples = samples_of(w);
	if (samples > w->most)
		w->most = samples;
	if (samples < w->trigger.least || w->closed <= w->from)
		return false;
	w->enough = true;
	return is_known(w) && holds(&w->trigger, value_of(w));
}

static void fire(const struct triggers *t, const struct watched *w, struct trigger_fired *out)
{
	int64_t first = w->closed - w->slices;

	if (first < w->from)
		first = w->from;
	*out = (struct trigger_fired){
		.trigger = &w->trigger,
		.begin = t->origin + (first > 0 ? first : 0) * w->width,
		.end = t->origin + w->closed * w->width,
		.value = value_of(w),
		.samples = samples_of(w),
	};
}

bool triggers_advance(struct triggers *t, int64_t upto, struct trigger_fired *out)
{
	bool fired = false;

	if (!t->origin)
		t->origin = upto;
	upto -= LATE_NS;
	pairs_settle(t->pairs, upto);
	for (size_t i = 0; i < t->count; i++) {
		struct watched *w = &t->watched[i];

		while (t->origin + (w->closed + 1) * w->width <= upto) {
			if (!close_slice(w) || fired)
				continue;
			fire(t, w, out);
			fired = true;
		}
	}
	return fired;
}

bool triggers_finish(struct triggers *t, int64_t end, struct trigger_fired *out)
{
	bool fired = triggers_advance(t, end + LATE_NS, out);

	pairs_settle(t->pairs, INT64_MAX);
	for (size_t i = 0; !fired && i < t->count; i++) {
		struct watched *w = &t->watched[i];

		if (is_less(&w->trigger) || !close_slice(w))
			continue;
		fire(t, w, out);
		if (out->end > end)
			out->end = end;
		fired = true;
	}
	return fired;
}

void triggers_reset(struct triggers *t)
{
	pairs_settle(t->pairs, INT64_MAX);
	for (size_t i = 0; i < t->count; i++) {
		struct watched *w = &t->watched[i];

		memset(&w->sum, 0, sizeof(w->sum));
		memset(w->ring, 0, sizeof(w->ring));
		w->from = w->closed;
	}
}

void triggers_ended(struct triggers *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->watched[i].called = -1;
}

bool triggers_starved(const struct triggers *t, size_t i, uint64_t *most)
{
	*most = t->watched[i].most;
	return !t->watched[i].enough;
}

size_t triggers_count(const struct triggers *t)
{
	return t->count;
}

const struct trigger *triggers_get(const struct triggers *t, size_t i)
{
	return &t->watched[i].trigger;
}
