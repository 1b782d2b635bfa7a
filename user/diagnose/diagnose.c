// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/diagnose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/jobs.h"
#include "diagnose/ranks.h"
#include "diagnose/rules.h"
#include "util/beside.h"

#define LEAST_WINDOW 50000000 /* ns; nor does a shorter look */
#define UNMATCHED 0.01	      /* of works without a call, or the reverse: idle time is not known */

const char *const diag_severity_words[] = { "info", "notice", "warning" };

/* Shares that are work of the GPU, for this process. */
static bool is_busy(int class)
{
	return class == CLASS_GPU || class == CLASS_COMM || class == CLASS_COPY;
}

/* While the GPU does others' work it does none of this process's, and is not idle. */
static bool is_idle(int class)
{
	return !is_busy(class) && class != CLASS_SHARED;
}

/* The largest share among those that are work, or among those that are idle; and the next. */
static int largest(const double *shares, bool busy, int other_than)
{
	int best = -1;

	for (int i = 0; i < CLASSES; i++)
		if ((busy ? is_busy(i) : is_idle(i)) && i != other_than &&
		    (best < 0 || shares[i] > shares[best]))
			best = i;
	return best;
}

/* How near is near is measured by what others left of the time. */
static enum diag_verdict pick(const double *shares, bool busy)
{
	int first = largest(shares, busy, -1), second = largest(shares, busy, first);

	if (shares[first] - shares[second] < VERDICT_CLOSE * (1 - shares[CLASS_SHARED]))
		return VERDICT_MIXED;
	return verdict_of_class((enum diag_class)first);
}

/*
 * With GPU time a job is bound by what its GPU does, unless it idles for more than
 * IDLE_MATTERS: then by what it idles for.
 */
static bool judged_by_work(const struct diag_process *p)
{
	double idle = 0;

	for (int i = 0; i < CLASSES; i++)
		idle += is_idle(i) ? p->shares[i] : 0;
	return idle <= IDLE_MATTERS;
}

static enum diag_verdict judge(const struct diag_process *p)
{
	if (p->basis != BASIS_CPU_GPU)
		return verdict_of_threads(p->shares);
	return pick(p->shares, judged_by_work(p));
}

/* How far the first of the shares that were chosen among is from the next. */
static double lead_of(const struct diag_process *p)
{
	enum diag_class first, second;
	double shares[CLASSES];
	bool busy;

	if (p->basis == BASIS_CPU_GPU) {
		busy = judged_by_work(p);
		first = (enum diag_class)largest(p->shares, busy, -1);
		second = (enum diag_class)largest(p->shares, busy, (int)first);
		return p->shares[first] - p->shares[second];
	}
	verdict_evidence(p->shares, shares);
	first = verdict_largest(shares, &second);
	return shares[first] - shares[second];
}

static const char *in_the_way(const struct facts *f)
{
	if (f->calls < VERDICT_CALLS || f->window < LEAST_WINDOW)
		return "too little was recorded: fewer than 20 calls, or less than 50 ms";
	if (f->p->flags & RECORD_PROCESS_ENTRY_ONLY)
		return "durations are unknown here: no return probes could be used";
	if (f->lost)
		return "events were lost: what is missing could change the verdict";
	if (has_gpu(f) && f->unmatched > UNMATCHED)
		return "more than 1 % of the GPU's work has no call: idle time cannot be explained";
	if (has_gpu(f) && f->missing > UNMATCHED)
		return "more than 1 % of the launches have no work on record: what looks idle "
		       "may not be";
	return NULL;
}

/* How far the first answer is from the next, less where only the CPU was seen. */
static double confidence_of(const struct facts *f, const struct diag_process *p)
{
	double c = 0.5 + lead_of(p) / 2;

	if (p->basis != BASIS_CPU_GPU)
		c *= p->basis == BASIS_CPU_NVML ? 0.8 : 0.6;
	if (f->sharers)
		c *= 0.7;
	if (f->probe_share > 0.1)
		c *= 0.8;
	return p->verdict == VERDICT_INCONCLUSIVE ? 0 : c;
}

/* NVML's utilisation can only speak against what the threads suggest, or for it. */
static void weigh_nvml(const struct facts *f, struct diag_process *p)
{
	if (p->basis != BASIS_CPU || f->utilisation < 0)
		return;
	p->basis = BASIS_CPU_NVML;
	p->verdict = verdict_weigh_nvml(p->verdict, f->utilisation, f->sharers);
}

/* What would be gained if the GPU never idled, a step or in all. */
static int64_t could_be_won(const struct facts *f, const struct diag_process *p)
{
	double idle = 0;

	if (p->verdict == VERDICT_INCONCLUSIVE)
		return -1;
	for (int i = 0; i < CLASSES; i++)
		idle += is_idle(i) && i != CLASS_BACK_PRESSURED ? p->shares[i] : 0;
	if (f->steps->count > 1)
		return (int64_t)(idle * (double)f->steps->length);
	return (int64_t)(idle * (double)f->window);
}

static void next_command(const struct facts *f, const char *file, struct diag_process *p)
{
	unsigned pid = f->p->pid;
	const char *kernel = kernel_text(f, f->heaviest);

	if (p->verdict == VERDICT_INCONCLUSIVE) {
		snprintf(p->next, sizeof(p->next), "sudo gbpf trace -p %u -d 10", pid);
	} else if (p->basis != BASIS_CPU_GPU) {
		snprintf(p->next, sizeof(p->next), "sudo gbpf trace --gpu-time -p %u", pid);
	} else if (p->verdict == VERDICT_GPU_BOUND && kernel && !strpbrk(kernel, "'\\\n")) {
		snprintf(p->next, sizeof(p->next),
			 "ncu --set full -k '%.200s' -s 20 -c 1 COMMAND", kernel);
	} else {
		snprintf(p->next, sizeof(p->next), "gbpf report --view %s %s",
			 p->verdict == VERDICT_SYNC_BOUND ? "sync_sum" : "gap_sum",
			 file ? file : "");
	}
}

static void conclude(const struct facts *f, const char *file, struct diag_process *p)
{
	p->window_ns = f->shares->window;
	p->basis = f->shares->basis;
	for (int i = 0; i < CLASSES && f->shares->window > 0; i++)
		p->shares[i] = (double)f->shares->ns[i] / (double)f->shares->window;
	p->why_inconclusive = in_the_way(f);
	p->verdict = p->why_inconclusive ? VERDICT_INCONCLUSIVE : judge(p);
	if (!p->why_inconclusive)
		weigh_nvml(f, p);
	p->confidence = confidence_of(f, p);
	p->won_ns = could_be_won(f, p);
	rules_run_all(f, p);
	next_command(f, file, p);
}

/* A process between being looked at and being judged. */
struct look {
	struct shares shares;
	struct facts facts;
};

/* All but what is found from GPU time alone. */
static int look_at_calls(struct look *l, struct feed_timeline *feed, struct steps *steps)
{
	const struct session *s = l->facts.s;
	struct feeders feeders;
	int err = feeders_find(s, l->facts.process, &feeders);

	if (err)
		return err;
	err = steps_of(s, &feeders, steps);
	if (!err)
		err = timeline_feed(s, &feeders, feed);
	feeders_free(&feeders);
	if (!err)
		err = shares_of(s, l->facts.process, feed, &l->shares);
	return err ? err : diag_facts_calls(&l->facts);
}

static int gpu_run(void *facts)
{
	return diag_facts_gpu(facts);
}

static int look_at(const struct session *s, uint32_t process, struct ranks *ranks,
		   struct look *l, struct diag_process *out)
{
	struct feed_timeline feed = { 0 };
	struct beside gpu = { 0 };
	int err, gpu_err;

	out->process = process;
	out->job = UINT32_MAX;
	diag_facts_begin(&l->facts, s, process);
	if (shares_have_gpu(s, process))
		beside_begin(&gpu, gpu_run, &l->facts, s->works_count > BESIDE_WORKS);
	err = look_at_calls(l, &feed, &out->steps);
	gpu_err = beside_end(&gpu);
	if (!err)
		err = gpu_err;
	diag_facts_end(&l->facts, &l->shares, &out->steps);
	if (!err)
		err = ranks_look(ranks, &l->facts, &feed, !in_the_way(&l->facts));
	timeline_free(&feed);
	return err;
}

static bool has_calls(const struct session *s, uint32_t process)
{
	for (size_t i = 0; i < s->threads_count; i++)
		if (s->threads[i].process == process && s->threads[i].calls)
			return true;
	return false;
}

static int busiest_first(const void *pa, const void *pb)
{
	const struct diag_process *a = pa, *b = pb;

	if (a->window_ns != b->window_ns)
		return a->window_ns > b->window_ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static void judge_process(const struct ranks *ranks, const char *file, struct look *l,
			  struct diag_process *out)
{
	const struct rank_verdict *rank = ranks_of(ranks, out->process);

	l->facts.rank = rank;
	out->job = rank ? rank->job : UINT32_MAX;
	out->rank = session_label(l->facts.s, out->process, "rank");
	conclude(&l->facts, file, out);
}

static int each_process(const struct session *s, const char *file, struct look *looks,
			struct diagnosis *out)
{
	size_t n = 0, looked = 0;
	struct ranks ranks;
	int err;

	for (uint32_t i = 0; i < s->processes_count; i++)
		n += has_calls(s, i);
	err = ranks_new(&ranks, s, n);
	for (uint32_t i = 0; !err && i < s->processes_count; i++)
		if (has_calls(s, i)) {
			err = look_at(s, i, &ranks, &looks[looked], &out->processes[looked]);
			out->count = ++looked;
		}
	if (!err)
		err = ranks_compare(&ranks);
	for (size_t i = 0; !err && i < looked; i++)
		judge_process(&ranks, file, &looks[i], &out->processes[i]);
	if (!err)
		err = diag_jobs(&ranks, out);
	ranks_free(&ranks);
	return err;
}

int diagnose(const struct session *s, const char *file, struct diagnosis *out)
{
	struct look *looks = calloc(s->processes_count + 1, sizeof(*looks));
	int err = -ENOMEM;

	*out = (struct diagnosis){ .s = s };
	for (size_t i = 0; i < s->windows_count; i++)
		out->window_ns += s->windows[i].end - s->windows[i].begin;
	out->processes = calloc(s->processes_count + 1, sizeof(*out->processes));
	if (looks && out->processes)
		err = each_process(s, file, looks, out);
	if (!err)
		qsort(out->processes, out->count, sizeof(*out->processes), busiest_first);
	free(looks);
	return err;
}

void diagnosis_free(struct diagnosis *d)
{
	for (size_t i = 0; i < d->count; i++)
		steps_free(&d->processes[i].steps);
	free(d->processes);
	free(d->jobs);
	*d = (struct diagnosis){ 0 };
}

const char *diag_verdict_text(const struct diag_process *p, char *buf, size_t size)
{
	return verdict_text(p->verdict, p->basis, buf, size);
}

const char *diag_job_text(const struct diag_job *j, char *buf, size_t size)
{
	return verdict_text(j->verdict, j->basis, buf, size);
}
