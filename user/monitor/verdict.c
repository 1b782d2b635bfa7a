// SPDX-License-Identifier: BSD-2-Clause
/*
 * Everything here is a range: what is counted is one value, what was sampled has its
 * interval, and what is not known has all that is possible. A verdict is given where it is
 * the same wherever in their ranges the shares are.
 */
#include "monitor/verdict.h"

#include <string.h>

#include "bpf/monitor.h"
#include "probe/catalogue.h"

#define LAUNCHES_PART 0.05  /* of the launches, and a thread is one that launches */
#define STEADY_SPREAD 0.15  /* of launches a second between windows: no absence hides there */
#define SHORT_GAP_NS 200000 /* between two launches, on average; far from AWAY_NS */
#define POLLS_PART 0.05	    /* of the calls are queries, and time between them may be waiting */
#define BUCKET_ERROR 0.06   /* of a duration told by its bucket */
#define QUEUE_DEPTH 1000    /* launches without a wait, and the queue can be full */

struct range {
	double low, value, high;
};

/* Of one thread, or of all that launch together. */
struct feeding {
	struct range prepares, waits, away;
	struct range dispatch; /* of preparing, what is inside of calls */
	double lost;	       /* of all of these, without a CPU */
};

static double at_least_0(double v)
{
	return v > 0 ? v : 0;
}

static double at_most(double v, double most)
{
	return v < most ? v : most;
}

static struct range range_of(struct estimate e)
{
	return (struct range){ e.low, e.value, e.high };
}

static struct range plus(struct range a, struct range b)
{
	return (struct range){ a.low + b.low, a.value + b.value, a.high + b.high };
}

/* b is a part of a, or at least part of it is. */
static struct range without(struct range a, struct range b)
{
	return (struct range){ at_least_0(a.low - b.high), at_least_0(a.value - b.value),
			       at_least_0(a.high - b.low) };
}

/* Do launches come so evenly and closely that nothing long can be between them? */
static bool is_steady(const struct snapshot_process *p)
{
	const struct estimate *l = &p->launches_per_s;

	return l->known && l->low > 0 && l->high - l->low <= 2 * STEADY_SPREAD * l->value &&
	       p->elsewhere_share.high * 1e9 <= SHORT_GAP_NS * l->low;
}

/* Are there waits that nobody saw? A thread may have slept in them. */
static bool waits_sampled(const struct snapshot_process *p)
{
	for (size_t i = 0; i < p->apis_count; i++) {
		const struct api *api = catalogue_get(p->apis[i].api);

		if (api && p->apis[i].sampled &&
		    (api->kind == API_SYNC || (api->kind == API_COPY && api->blocking)))
			return true;
	}
	return false;
}

/*
 * Of the time outside of calls: how much is absence (AWAY_NS and more at a time)? Sleep is
 * known whatever is probed, but where it may have been in a wait. Where launches are steady
 * only a lost CPU can be added to it.
 */
static struct range away_of(const struct snapshot_process *p, const struct snapshot_thread *t)
{
	double asleep = t->sched_known ? t->asleep_share : 0;
	struct range r = { waits_sampled(p) ? 0 : asleep, asleep, t->away_share };

	if (t->away_known)
		r.low = r.value = r.high;
	else if (t->sched_known && is_steady(p))
		r.high = at_most(asleep + t->wait_share[WAIT_RUNNABLE], r.high);
	return r;
}

static struct feeding feeding_of(const struct snapshot_process *p,
				 const struct snapshot_thread *t)
{
	struct feeding f = { .waits = range_of(t->sync_share), .away = away_of(p, t),
			     .dispatch = range_of(t->dispatch_share),
			     .lost = t->sched_known ? t->lost_share : 0 };

	f.prepares = plus(f.dispatch,
			  without(range_of(t->elsewhere_share), f.away));
	/* together they are all of its time */
	f.prepares.value = at_most(f.prepares.value, at_least_0(1 - f.waits.value - f.away.value));
	f.prepares.high = at_most(f.prepares.high, at_least_0(1 - f.waits.low - f.away.low));
	f.prepares.low = at_most(f.prepares.low, f.prepares.value);
	return f;
}

/* When one of two threads does something. */
static struct range any_of(struct range a, struct range b)
{
	return (struct range){ a.low > b.low ? a.low : b.low, at_most(a.value + b.value, 1),
			       at_most(a.high + b.high, 1) };
}

/*
 * Of several threads that launch, what one of them does counts: preparing before waiting
 * before being away. When they do it is not known.
 */
static struct feeding feeding_with(struct feeding a, struct feeding b)
{
	struct feeding f;

	f.dispatch = any_of(a.dispatch, b.dispatch);
	f.prepares = any_of(a.prepares, b.prepares);
	f.waits.low = at_least_0(a.waits.low - b.prepares.high);
	if (f.waits.low < b.waits.low - a.prepares.high)
		f.waits.low = b.waits.low - a.prepares.high;
	f.waits.value = at_most(a.waits.value + b.waits.value, 1 - f.prepares.value);
	f.waits.high = at_most(a.waits.high + b.waits.high, 1 - f.prepares.low);
	f.away.low = at_least_0(1 - f.prepares.high - f.waits.high);
	f.away.value = at_least_0(1 - f.prepares.value - f.waits.value);
	f.away.high = at_most(a.away.high, b.away.high);
	f.lost = at_most(a.lost + b.lost, 1);
	return f;
}

/* false: its shares are not known. */
static bool feeding_all(const struct snapshot_process *p, struct feeding *out)
{
	uint64_t launches = 0;
	bool any = false;

	for (size_t i = 0; i < p->threads_count; i++)
		launches += p->threads[i].launches;
	for (size_t i = 0; i < p->threads_count; i++) {
		const struct snapshot_thread *t = &p->threads[i];

		if ((double)t->launches < LAUNCHES_PART * (double)launches || !t->launches)
			continue;
		if (!t->dispatch_share.known || !t->sync_share.known || !t->elsewhere_share.known)
			return false;
		*out = any ? feeding_with(*out, feeding_of(p, t)) : feeding_of(p, t);
		any = true;
	}
	return any;
}

/* ---- parts of preparing and waiting ---- */

/* What calls of a process add up to. */
struct sums {
	uint64_t calls;
	double queries, waits; /* a second */
	double copy_ns;	   /* in copies that wait; of the interval */
	bool copies_sampled;
};

static struct sums sums_of(const struct snapshot_process *p)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < p->apis_count; i++) {
		const struct snapshot_api *a = &p->apis[i];
		const struct api *api = catalogue_get(a->api);

		if (!api)
			continue;
		s.calls += a->seen;
		if (api->kind == API_QUERY)
			s.queries += a->calls_per_s.value;
		if (api->kind == API_SYNC)
			s.waits += a->calls_per_s.value;
		if (api->kind != API_COPY || !api->blocking)
			continue;
		s.waits += a->calls_per_s.value;
		s.copy_ns += (double)a->interval_ns;
		s.copies_sampled |= a->sampled && a->seen;
	}
	return s;
}

/* Several threads may have made the calls: then it is at most what all of them made. */
static struct range part_of(struct range whole, double share, bool only_thread)
{
	return (struct range){ only_thread ? at_most(share, whole.low) : 0,
			       at_most(share, whole.value), at_most(share, whole.high) };
}

static struct range copies_of(const struct snapshot *s, const struct snapshot_process *p,
			      const struct sums *sums, struct range waits)
{
	struct range r = part_of(waits, sums->copy_ns / (double)s->window_ns,
				 p->threads_count == 1 && !sums->copies_sampled);

	if (sums->copies_sampled)
		r.high = waits.high;
	return r;
}

/* Time in launches of over 50 us, ns for each of all recent launches. */
static double slow_ns(const struct snapshot_process *p)
{
	const struct histogram *h = p->launch_recent;
	double slow = 0;

	for (unsigned i = gbpf_bucket(GBPF_SLOW_NS); h && i < GBPF_BUCKETS; i++)
		if (h->bucket[i])
			slow += (double)h->bucket[i] * (double)bucket_value(i);
	return h && h->count ? slow / (double)h->count : 0;
}

/* Launches are held up where they take long and so many come that the queue can be full. */
static struct range held_up(const struct snapshot_process *p, const struct sums *sums,
			    struct range prepares)
{
	const struct estimate *l = &p->launches_per_s;
	double each = slow_ns(p) / 1e9;
	struct range r = { 0 };

	if (l->high < QUEUE_DEPTH * sums->waits || !(each > 0))
		return r;
	r.high = at_most(l->high * each * (1 + BUCKET_ERROR), prepares.high);
	if (l->low < QUEUE_DEPTH * sums->waits)
		return r;
	r.low = at_most(l->low * each * (1 - BUCKET_ERROR), prepares.low);
	r.value = at_most(l->value * each, prepares.value);
	return r;
}

/* Between queries that follow each other a thread waits, as it does in them. */
static void take_polls(const struct snapshot_process *p, const struct sums *sums,
		       struct feeding *f)
{
	double others = p->launches_per_s.value + p->copies_per_s.value + sums->waits;
	double part = sums->queries > 0 ? sums->queries / (sums->queries + others) : 0;
	struct range between;

	if (part < POLLS_PART)
		return;
	between = without(f->prepares, f->dispatch);
	between.low = 0;
	between.value *= part;
	f->prepares = without(f->prepares, between);
	f->waits = plus(f->waits, between);
}

static void share_is(struct snapshot_verdict *v, enum diag_class class, struct range r)
{
	v->share[class] = (struct estimate){ true, at_most(r.value, 1), at_most(r.low, 1),
					     at_most(r.high, 1) };
}

static void divide(const struct snapshot *s, const struct snapshot_process *p,
		   const struct sums *sums, struct feeding f, struct snapshot_verdict *out)
{
	struct range none = { 0 }, cold, held, copies;

	take_polls(p, sums, &f);
	cold = part_of(f.dispatch, (double)p->cold_ns / (double)s->window_ns,
		       p->threads_count == 1);
	f.prepares = without(f.prepares, cold);
	held = held_up(p, sums, f.prepares);
	copies = copies_of(s, p, sums, f.waits);
	for (int i = 0; i < CLASSES; i++)
		share_is(out, (enum diag_class)i, none);
	share_is(out, CLASS_GPU, without(f.waits, copies));
	share_is(out, CLASS_COPY, copies);
	share_is(out, CLASS_OVERHEAD, without(f.prepares, held));
	share_is(out, CLASS_BACK_PRESSURED, held);
	share_is(out, CLASS_COLD, cold);
	share_is(out, CLASS_STARVED, f.away);
}

/* ---- the verdict ---- */

/*
 * Is this class the largest wherever in their ranges the shares are? The lost time may be
 * all in it.
 */
static bool is_sure(const double low[CLASSES], const double high[CLASSES], enum diag_class first,
		    double lost)
{
	for (int i = 0; i < CLASSES; i++)
		if (i != (int)first && low[first] - lost - high[i] < 2 * VERDICT_CLOSE)
			return false;
	return true;
}

static const char *doubt(struct snapshot_verdict *v, double lost)
{
	double share[CLASSES], low[CLASSES], high[CLASSES], evidence[CLASSES], widest = 0;
	enum diag_class first, second;

	for (int i = 0; i < CLASSES; i++) {
		share[i] = v->share[i].value;
		low[i] = v->share[i].low;
		high[i] = v->share[i].high;
		widest = high[i] - low[i] > widest ? high[i] - low[i] : widest;
	}
	v->verdict = verdict_of_threads(share);
	verdict_evidence(share, evidence);
	first = verdict_largest(evidence, &second);
	verdict_evidence(low, low);
	verdict_evidence(high, high);
	if (v->verdict == VERDICT_MIXED ? widest > VERDICT_CLOSE : !is_sure(low, high, first, 0))
		return "what was sampled, or can be known of it, allows more than one answer";
	if (v->verdict != VERDICT_MIXED && !is_sure(low, high, first, lost))
		return "it waited so long for a CPU that what else it is bound by is not known";
	return NULL;
}

static void judge(struct snapshot_verdict *v, double lost)
{
	v->why = doubt(v, lost);
	if (v->why)
		v->verdict = VERDICT_INCONCLUSIVE;
}

/* Utilisation of the GPU that it uses alone, %; negative: not known. */
static double utilisation_of(const struct snapshot *s, const struct snapshot_process *p)
{
	for (size_t i = 0; i < s->gpus_count && *p->gpu_uuid && !p->gpu_shared; i++)
		if (!strcmp(s->gpus[i].uuid, p->gpu_uuid) &&
		    s->gpus[i].has & GPU_HAS_UTILISATION)
			return s->gpus[i].utilisation_pct;
	return -1;
}

static const char *in_the_way(const struct snapshot *s, const struct snapshot_process *p,
			      const struct sums *sums)
{
	if (p->seen > s->mono_ns - s->window_ns)
		return "it was seen for a part of this interval only";
	if (!p->launches_per_s.known)
		return "its launches are not counted";
	if (!p->launches_per_s.high || !(p->launches_per_s.value > 0))
		return "it launched nothing in this interval";
	if (sums->calls < VERDICT_CALLS)
		return "fewer than 20 calls were seen in this interval";
	return NULL;
}

void verdict_live(const struct snapshot *s, struct snapshot_process *p)
{
	struct snapshot_verdict *v = &p->verdict;
	struct sums sums = sums_of(p);
	struct feeding feeding = { 0 };
	double utilisation;

	memset(v, 0, sizeof(*v));
	v->verdict = VERDICT_INCONCLUSIVE;
	v->why = in_the_way(s, p, &sums);
	if (v->why)
		return;
	if (!feeding_all(p, &feeding)) {
		v->why = "how long its calls took is not known";
		return;
	}
	divide(s, p, &sums, feeding, v);
	judge(v, feeding.lost);
	utilisation = utilisation_of(s, p);
	if (utilisation < 0 || v->why)
		return;
	v->basis = BASIS_CPU_NVML;
	v->verdict = verdict_weigh_nvml(v->verdict, utilisation, false);
}
