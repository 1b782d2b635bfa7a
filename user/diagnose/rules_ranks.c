// SPDX-License-Identifier: BSD-2-Clause
/* A rank that differs from its peers (ranks.h). */
#include "diagnose/ranks.h"
#include "diagnose/rules.h"

#define DISPATCH_MATTERS 0.05 /* of the window that launching takes */

static void who(const struct rank_verdict *v, struct diag_finding *out)
{
	evidence_text(out, "rank", v->rank);
	evidence_number(out, "peers", (double)(v->ranks - 1));
}

static bool straggles(const struct facts *f, struct diag_finding *out)
{
	const struct rank_verdict *v = f->rank;

	if (!v || !v->straggles)
		return false;
	out->severity = v->by_collectives ? SEVERITY_WARNING : SEVERITY_NOTICE;
	out->share = v->lost;
	who(v, out);
	if (f->steps->count > 1)
		evidence_number(out, "others_wait_a_step_ns",
				v->lost * (double)f->steps->length);
	evidence_number(out, "waits_pct", 100 * v->wait_share);
	evidence_number(out, "others_waits_pct", 100 * v->others_share);
	evidence_number(out, "interval_half_pct", 100 * v->lost_error);
	evidence_text(out, "known_by", v->by_collectives ? "collectives on the GPU"
							  : "waits of threads (suspected)");
	evidence_text(out, "more_time", v->more_time);
	return true;
}

static bool dispatches_slower(const struct facts *f, struct diag_finding *out)
{
	const struct rank_verdict *v = f->rank;

	if (!v || !v->dispatch.differs || v->dispatch.low <= 0 ||
	    of_window(f, f->launch_ns - f->blocked.ns) < DISPATCH_MATTERS)
		return false;
	out->severity = SEVERITY_NOTICE;
	who(v, out);
	evidence_number(out, "dispatch_p50_ns", v->dispatch.after);
	evidence_number(out, "others_dispatch_p50_ns", v->dispatch.before);
	evidence_number(out, "slower_pct", 100 * v->dispatch.change);
	evidence_number(out, "slower_low_pct", 100 * v->dispatch.low);
	evidence_number(out, "slower_high_pct", 100 * v->dispatch.high);
	return true;
}

const struct rule rules_ranks[] = {
	{ { "straggler", "The other ranks of its job wait for this one",
	    "What it spends more time in than its peers is what to look at: gbpf diff of two "
	    "ranks' recordings shows calls, gpu_sum clocks, gbpf top what its threads wait for. "
	    "Making other ranks faster gains nothing.",
	    "Collectives that overlap with compute hide part of the wait; without GPU time, a "
	    "CPU that works while its GPU is busy looks alike." }, straggles },
	{ { "slower_dispatch", "This rank dispatches slower than its peers",
	    "Look at its CPU: clock, neighbours, a NUMA node far from the GPU, threads that share "
	    "a core, Python that does more on this rank.",
	    "Launches of other sizes, or a CPU that is meant to be another." },
	  dispatches_slower },
	{ { 0 }, NULL },
};
