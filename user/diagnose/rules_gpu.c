// SPDX-License-Identifier: BSD-2-Clause
/* What the GPU did; all need the sidecar or NVML. */
#include "diagnose/rules.h"

#define STARVING_NS 500000000 /* Nsight Systems' "GPU gaps" */
#define SPREAD_CV 0.1
#define HEAVY 0.5	      /* of kernel time in one kernel */

static double of_kernels(const struct facts *f, int64_t ns)
{
	return f->kernel_ns > 0 ? (double)ns / (double)f->kernel_ns : 0;
}

static bool long_gaps(const struct facts *f, struct diag_finding *out)
{
	if (!has_gpu(f) || f->longest_gap < STARVING_NS)
		return false;
	out->severity = SEVERITY_WARNING;
	evidence_number(out, "longest_gap_ns", (double)f->longest_gap);
	evidence_number(out, "gpu_idle_pct", 100 * idle_share(f));
	return true;
}

/* A thirtieth of the window in which the GPU worked for less than half of the time. */
static bool is_low(const struct shares *v, int chunk)
{
	return v->chunk_ns[chunk] > 0 && v->chunk_busy[chunk] * 2 < v->chunk_ns[chunk];
}

/* Neighbouring ones are one stretch. */
static bool low_utilisation(const struct facts *f, struct diag_finding *out)
{
	const struct shares *v = f->shares;
	int64_t each = v->devices ? v->window / v->devices / SHARE_CHUNKS : 0, low = 0;
	int stretches = 0, longest = 0, at = 0;

	for (int i = 0, n = 0; has_gpu(f) && i < SHARE_CHUNKS; i++) {
		n = is_low(v, i) ? n + 1 : 0;
		stretches += n == 1;
		low += n ? v->chunk_ns[i] : 0;
		if (n > longest) {
			longest = n;
			at = i - n + 1;
		}
	}
	if (!longest)
		return false;
	out->severity = longest == SHARE_CHUNKS ? SEVERITY_INFO : SEVERITY_NOTICE;
	out->share = (double)low / (double)v->window;
	evidence_number(out, "stretches", stretches);
	evidence_number(out, "longest_stretch_ns", (double)(each * longest));
	evidence_number(out, "begins_after_ns", (double)(each * at));
	evidence_number(out, "gpu_busy_pct", 100 * (1 - idle_share(f)));
	return true;
}

/* Of all devices' time: the next kernel had been asked for, and began within 30 us. */
static double between_kernels(const struct facts *f)
{
	return f->shares->window > 0 ?
		       (double)f->gap_ns[GAP_KERNEL_WAIT] / (double)f->shares->window : 0;
}

static bool kernel_gaps(const struct facts *f, struct diag_finding *out)
{
	double share = between_kernels(f);

	if (!has_gpu(f) || share < 0.05)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "between_kernels_ns", (double)f->gap_ns[GAP_KERNEL_WAIT]);
	evidence_number(out, "kernels", (double)f->kernels);
	evidence_number(out, "kernel_p50_ns", (double)f->kernel_p50);
	return true;
}

#define DELAYS_MATTER 0.01 /* of the window */
static bool unexplained(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_OTHER) - between_kernels(f);

	if (!has_gpu(f) ||
	    (share < 0.05 && (f->delayed.count < 3 || of_window(f, f->delayed.ns) < DELAYS_MATTER)))
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share > 0 ? share : 0;
	evidence_number(out, "delays_over_1500_us", (double)f->delayed.count);
	evidence_number(out, "longest_ns", (double)f->delayed.longest);
	evidence_number(out, "gap_ns", (double)f->gap_ns[GAP_OTHER]);
	return true;
}

static bool unsteady(const struct facts *f, struct diag_finding *out)
{
	if (f->unsteady == UINT32_MAX || f->unsteady_cv < SPREAD_CV)
		return false;
	out->severity = SEVERITY_NOTICE;
	evidence_text(out, "kernel", kernel_text(f, f->unsteady));
	evidence_number(out, "launches", (double)f->unsteady_count);
	evidence_number(out, "deviation_pct", 100 * f->unsteady_cv);
	evidence_number(out, "p99_to_p50", f->unsteady_ratio);
	if (f->clock_min >= 0) {
		evidence_number(out, "clock_min_mhz", (double)f->clock_min);
		evidence_number(out, "clock_max_mhz", (double)f->clock_max);
	}
	return true;
}

static bool held_back(const struct facts *f, struct diag_finding *out)
{
	if (f->throttled < 0.1)
		return false;
	out->severity = SEVERITY_NOTICE;
	evidence_number(out, "samples_pct", 100 * f->throttled);
	evidence_text(out, "by", f->throttled_by);
	if (f->clock_min >= 0) {
		evidence_number(out, "clock_min_mhz", (double)f->clock_min);
		evidence_number(out, "clock_max_mhz", (double)f->clock_max);
	}
	return true;
}

static bool shared(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_SHARED);

	if (!f->sharers)
		return false;
	out->severity = share > IDLE_MATTERS ? SEVERITY_WARNING : SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "other_processes", f->sharers);
	evidence_number(out, "waited_for_others_ns", (double)f->shares->ns[CLASS_SHARED]);
	evidence_number(out, "waited_for_others_pct", 100 * share);
	return true;
}

static bool communication(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_COMM);

	if (share < 0.1)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	if (has_gpu(f))
		evidence_number(out, "collectives_pct", 100 * of_kernels(f, f->comm_ns));
	else
		evidence_number(out, "calls", (double)f->collectives.count);
	return true;
}

static bool copy_before(const struct facts *f, struct diag_finding *out)
{
	if (f->device_copies.count < 3)
		return false;
	out->severity = SEVERITY_INFO;
	out->share = of_window(f, f->device_copies.ns);
	evidence_number(out, "copies", (double)f->device_copies.count);
	evidence_number(out, "bytes", (double)f->device_copies.bytes);
	return true;
}

static bool heavy_kernel(const struct facts *f, struct diag_finding *out)
{
	double part = of_kernels(f, f->heaviest_ns);

	if (!has_gpu(f) || idle_share(f) > IDLE_MATTERS || part < HEAVY)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share_of(f, CLASS_GPU) * part;
	evidence_text(out, "kernel", kernel_text(f, f->heaviest));
	evidence_number(out, "of_kernel_time_pct", 100 * part);
	evidence_number(out, "launches", (double)f->heaviest_count);
	return true;
}

/* Milliseconds between a launch and its kernel, on a busy GPU. */
static bool lane_offset(const struct facts *f, struct diag_finding *out)
{
	if (!has_gpu(f) || f->queue_delay_p50 < 1000000 || idle_share(f) > IDLE_MATTERS)
		return false;
	out->severity = SEVERITY_INFO;
	evidence_number(out, "queue_delay_p50_ns", (double)f->queue_delay_p50);
	evidence_number(out, "queue_depth", (double)f->depth_most);
	evidence_number(out, "gpu_busy_pct", 100 * (1 - idle_share(f)));
	return true;
}

const struct rule rules_gpu[] = {
	{ { "heavy_kernel", "One kernel has most of the GPU's time",
	    "What is inside a kernel is not gbpf's to see: profile that one with ncu.",
	    "Kernels that wait, as collectives do." }, heavy_kernel },
	{ { "long_gaps", "The GPU had nothing to do for half a second and longer",
	    "Look at gpu_trace around the gap: validation, checkpoints, data loading.",
	    "A pause that the job means to make." }, long_gaps },
	{ { "low_utilisation", "The GPU worked less than half of the time, for a while or always",
	    "See what is different then: gpu_trace from there on, data loading, validation, "
	    "checkpoints; the verdict says what the time went to over all.",
	    "Neighbours that used the GPU meanwhile." }, low_utilisation },
	{ { "communication", "Collectives run while nothing else does",
	    "Overlap them with compute (buckets, gradient as bucket view), and look for a rank "
	    "that is slower than its peers: others spin in the collective until it comes.",
	    "" }, communication },
	{ { "kernel_gaps", "The GPU pauses between kernels that were asked for in time",
	    "Each kernel that follows another costs the GPU a pause of a few microseconds: launch "
	    "fewer and longer ones (larger batches, fused operators), or a CUDA graph, which "
	    "shortens the pauses.", "Kernels of a graph with such pauses: dependencies in it." },
	  kernel_gaps },
	{ { "unexplained_dependency", "Work was asked for in time and did not begin",
	    "Look for events and streams it waited for, copies on the same engine, or kernels "
	    "that leave no room.", "Neighbours on the same GPU." }, unexplained },
	{ { "unsteady_kernel", "The same kernel and shape takes different times",
	    "Compare with clocks and temperature (gpu_sum), neighbours and memory traffic; a "
	    "mean would hide it.", "Work that depends on the data." }, unsteady },
	{ { "throttled", "The GPU held its clock back",
	    "Power and temperature limits make kernels longer: cooling, power cap, or expect "
	    "it.", "" }, held_back },
	{ { "shared_gpu", "Other processes use the same GPU",
	    "Give it a GPU or a MIG instance of its own, or let processes with small kernels run "
	    "side by side under MPS. Times depend on the neighbours: compare when it is alone.",
	    "" }, shared },
	{ { "device_copy_before_product", "Copies within the device come right before kernels",
	    "A bias that is folded into a product (addmm) is copied first: expected where "
	    "torch.compile or cuBLAS does it. gbpf diff against separate operations shows what "
	    "it costs.", "" }, copy_before },
	{ { "lane_offset", "Kernels begin long after their launches",
	    "Healthy: the queue is full and the GPU busy. It is no latency.",
	    "An idle GPU." }, lane_offset },
	{ { 0 }, NULL },
};
