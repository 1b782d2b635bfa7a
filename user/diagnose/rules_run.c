// SPDX-License-Identifier: BSD-2-Clause
/* Warm-up, and how far the recording itself can be trusted. */
#include "diagnose/rules.h"

static bool cold(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_COLD);

	if (share < 0.02)
		return false;
	out->severity = share > IDLE_MATTERS ? SEVERITY_WARNING : SEVERITY_INFO;
	out->share = share;
	evidence_number(out, "first_calls", (double)f->cold.count);
	evidence_number(out, "loads", (double)f->loads.count);
	evidence_number(out, "longest_ns", (double)(f->cold.longest > f->loads.longest ?
						    f->cold.longest : f->loads.longest));
	return true;
}

static bool loads_late(const struct facts *f, struct diag_finding *out)
{
	if (f->late_loads.count < 3 || of_window(f, f->late_loads.ns) < 0.01)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = of_window(f, f->late_loads.ns);
	evidence_number(out, "loads", (double)f->late_loads.count);
	evidence_number(out, "longest_ns", (double)f->late_loads.longest);
	return true;
}

static bool occupancy(const struct facts *f, struct diag_finding *out)
{
	if (f->occupancy.count < 3)
		return false;
	out->severity = SEVERITY_INFO;
	out->share = of_window(f, f->occupancy.ns);
	evidence_number(out, "queries", (double)f->occupancy.count);
	return true;
}

static bool own_cost(const struct facts *f, struct diag_finding *out)
{
	if (f->probe_share < 0.02)
		return false;
	out->severity = f->probe_share > 0.1 ? SEVERITY_WARNING : SEVERITY_INFO;
	out->share = f->probe_share;
	evidence_number(out, "calls", (double)f->calls);
	return true;
}

static bool artefact(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->overhead_records_ns);

	if (share < 0.01)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "overhead_ns", (double)f->overhead_records_ns);
	evidence_number(out, "gap_ns", (double)f->gap_ns[GAP_ARTEFACT]);
	return true;
}

static bool lost(const struct facts *f, struct diag_finding *out)
{
	if (!f->lost && f->unmatched <= 0.01 && f->missing <= 0.01)
		return false;
	out->severity = SEVERITY_WARNING;
	evidence_number(out, "lost_events", (double)f->lost);
	evidence_number(out, "unmatched_pct", 100 * f->unmatched);
	evidence_number(out, "launches_without_work_pct", 100 * f->missing);
	return true;
}

const struct rule rules_run[] = {
	{ { "cold_start", "First calls, modules and contexts take time",
	    "Leave the first steps out of a comparison; preload what is needed "
	    "(CUDA_MODULE_LOADING=EAGER, a warm-up step).",
	    "A recording that began long after the job." }, cold },
	{ { "late_loading", "Code is loaded long after the start",
	    "Recompilation or lazy loading in steady state is no warm-up: look for shapes that "
	    "change (TORCH_LOGS=recompiles).", "" }, loads_late },
	{ { "occupancy_query", "Occupancy is asked for before heavy kernels",
	    "Normal: cuBLAS and cuDNN do so before a product or a convolution.", "" },
	  occupancy },
	{ { "own_cost", "The probes cost the job something",
	    "Compare only recordings made alike; fewer functions (--api NAME,...) or gbpf "
	    "monitor cost less.", "" }, own_cost },
	{ { "profiler_artefact", "CUPTI's own work lies on the timeline",
	    "Gaps beside it are measuring, not the job.", "" }, artefact },
	{ { "incomplete", "The recording is not complete",
	    "Record again, shorter or with fewer functions (--api): what is missing could "
	    "change the verdict.", "" }, lost },
	{ { 0 }, NULL },
};
