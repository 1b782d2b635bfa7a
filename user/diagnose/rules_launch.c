// SPDX-License-Identifier: BSD-2-Clause
/* How the CPU gives work to the GPU. */
#include "diagnose/rules.h"

#define SHORT_NS 10000 /* TraceLens' short kernel */
#define GRAPH_WORTH 0.05 /* of the window that launching takes */
#define MANY_LAUNCHES 10 /* a step, before a graph pays */

static double launch_share(const struct facts *f)
{
	return of_window(f, f->launch_ns - f->blocked.ns);
}

static bool overhead_bound(const struct facts *f, struct diag_finding *out)
{
	double lost = share_of(f, CLASS_OVERHEAD);

	if (has_gpu(f) ? idle_share(f) <= IDLE_MATTERS || lost <= IDLE_MATTERS : lost <= 0.5)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = lost;
	evidence_number(out, "launches", (double)(f->launches + f->graph_launches));
	evidence_number(out, "dispatch_p50_ns", (double)f->launch_p50);
	if (has_gpu(f)) {
		evidence_number(out, "kernel_p50_ns", (double)f->kernel_p50);
		evidence_number(out, "gpu_busy_pct", 100 * (1 - idle_share(f)));
	}
	return true;
}

static bool queue_full(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->blocked.ns);

	if (!f->blocked.count || share < 0.01)
		return false;
	out->severity = SEVERITY_INFO;
	out->share = share;
	evidence_number(out, "blocked_launches", (double)f->blocked.count);
	evidence_number(out, "longest_ns", (double)f->blocked.longest);
	evidence_number(out, "usual_launch_ns", (double)f->launch_p50);
	if (has_gpu(f))
		evidence_number(out, "queue_depth", (double)f->depth_most);
	return true;
}

static bool short_kernels(const struct facts *f, struct diag_finding *out)
{
	/* Nodes of a graph cost no launch each. */
	uint64_t launched = f->kernels - f->nodes;

	if (!has_gpu(f) || launched < 10 || f->short_kernels * 2 < launched ||
	    idle_share(f) <= IDLE_MATTERS)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = launch_share(f);
	evidence_number(out, "short_kernels", (double)f->short_kernels);
	evidence_number(out, "kernels", (double)launched);
	evidence_number(out, "kernel_p50_ns", (double)f->kernel_p50);
	evidence_number(out, "launch_p50_ns", (double)f->launch_p50);
	return f->kernel_p50 < SHORT_NS || f->kernel_p50 < f->launch_p50;
}

static bool slow_dispatch(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->slow.ns);

	if (f->slow.count < 5 || share < 0.02)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "launches", (double)f->slow.count);
	evidence_number(out, "longest_ns", (double)f->slow.longest);
	evidence_text(out, "function", api_text(f, &f->slow));
	return true;
}

/* The same launches every step, and launching is what the time goes to. */
static bool graph_candidate(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->shares->feed[FEED_DISPATCH]);

	if (f->steps->count < 3 || f->repeated_launches < MANY_LAUNCHES ||
	    f->graph_launches * 2 > f->launches || share_of(f, CLASS_OVERHEAD) < IDLE_MATTERS ||
	    launch_share(f) < GRAPH_WORTH)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = share_of(f, CLASS_OVERHEAD) < share ? share_of(f, CLASS_OVERHEAD) : share;
	evidence_number(out, "launches_a_step", (double)f->repeated_launches);
	evidence_number(out, "steps", (double)(f->steps->count - 1));
	evidence_number(out, "step_ns", (double)f->steps->length);
	evidence_number(out, "dispatch_a_step_ns", share * (double)f->steps->length);
	return true;
}

static bool graph_again(const struct facts *f, struct diag_finding *out)
{
	if (f->instantiated.count < 3 || f->instantiated.count * 4 < f->graph_launches ||
	    of_window(f, f->instantiated.ns) < 0.01)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = of_window(f, f->instantiated.ns);
	evidence_number(out, "instantiated", (double)f->instantiated.count);
	evidence_number(out, "graph_launches", (double)f->graph_launches);
	evidence_number(out, "longest_ns", (double)f->instantiated.longest);
	return true;
}

/* The CPU prepares all the time, and hardly anything reaches the GPU. */
static bool cpu_bottleneck(const struct facts *f, struct diag_finding *out)
{
	const struct shares *v = f->shares;
	int64_t all = 0, such = 0;

	for (int i = 0; has_gpu(f) && i < SHARE_CHUNKS; i++) {
		all += v->chunk_ns[i];
		if ((double)v->chunk_busy[i] < 0.1 * (double)v->chunk_ns[i] &&
		    (double)v->chunk_prepares[i] > 0.9 * (double)v->chunk_ns[i])
			such += v->chunk_ns[i];
	}
	if (such * 2 <= all || !all)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = (double)such / (double)all;
	evidence_number(out, "gpu_busy_pct", 100 * (1 - idle_share(f)));
	evidence_number(out, "dispatch_p50_ns", (double)f->launch_p50);
	return true;
}

static bool late_start(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->late.ns);

	if (f->late.count < 5 || share < 0.02 || idle_share(f) <= IDLE_MATTERS)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "kernels", (double)f->late.count);
	evidence_number(out, "longest_ns", (double)f->late.longest);
	if (f->launch_to_start_p50 >= 0)
		evidence_number(out, "usual_launch_to_start_ns",
				(double)f->launch_to_start_p50);
	evidence_text(out, "function", api_text(f, &f->late));
	return true;
}

static bool anomalous_launch(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->anomalous.ns);

	if (f->anomalous.count < 5 || share < 0.02)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "gaps", (double)f->anomalous.count);
	evidence_number(out, "longest_ns", (double)f->anomalous.longest);
	evidence_number(out, "usual_launch_to_start_ns", (double)f->launch_to_start_p50);
	evidence_text(out, "function", api_text(f, &f->anomalous));
	return true;
}

static bool starved(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_STARVED);

	if (share < IDLE_MATTERS)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = share;
	evidence_number(out, "away_ns", (double)f->shares->ns[CLASS_STARVED]);
	if (has_gpu(f))
		evidence_number(out, "gpu_idle_pct", 100 * idle_share(f));
	if (f->utilisation >= 0)
		evidence_number(out, "nvml_utilisation_pct", f->utilisation);
	return true;
}

const struct rule rules_launch[] = {
	{ { "overhead_bound", "The CPU cannot feed the GPU",
	    "Give the GPU more per launch: larger batches, fused kernels (torch.compile), CUDA "
	    "graphs for what repeats, and fewer small operations.",
	    "A GPU that is busy all the same: see it with --gpu-time." }, overhead_bound },
	{ { "graph_candidate", "The same launches repeat every step",
	    "Capture the step in a CUDA graph (torch.cuda.graph, or mode=\"reduce-overhead\" of "
	    "torch.compile): one launch then takes the place of all of them.",
	    "Shapes, addresses or control flow that change from step to step." },
	  graph_candidate },
	{ { "graph_instantiated_again", "A graph is instantiated again and again",
	    "Keep the executable graph and update it (cuGraphExecUpdate): instantiating costs "
	    "more than the launches it saves.", "Graphs that are different each time." },
	  graph_again },
	{ { "short_kernels", "Kernels are over before the next launch has returned",
	    "Fuse them, or launch them as a graph; the GPU waits between them however fast it "
	    "is.", "Nodes of a graph and launches that a full queue holds up are not counted." },
	  short_kernels },
	{ { "cpu_bottleneck", "The CPU prepares all the time while the GPU does next to nothing",
	    "The launching thread is the bottleneck: profile it as a CPU program (py-spy, perf), "
	    "and move work off it before anything is tuned on the GPU.",
	    "A thread that spins between its calls without doing anything." }, cpu_bottleneck },
	{ { "late_start", "Kernels begin long after their launch though their stream was free",
	    "The way to the GPU is held up: another stream or a process that was not recorded has "
	    "the engine, the driver is busy (memory, modules), or the GPU wakes up from a low "
	    "clock. What recorded processes took is left out.",
	    "Other streams of this job that keep the GPU busy." }, late_start },
	{ { "anomalous_launch", "Single launches take unusually long to reach the GPU",
	    "Much of these gaps is no lack of launches: look in gpu_trace at what the driver and "
	    "other processes did at these moments.",
	    "A GPU that is shared, or was idle for so long that it slept." }, anomalous_launch },
	{ { "slow_dispatch", "Single launches take long",
	    "Look at what the driver does in them: first use of a kernel, local memory that "
	    "grows, many arguments, a lock that another thread holds.",
	    "A full queue, or first calls: both are left out." }, slow_dispatch },
	{ { "queue_full", "Launches wait because the queue is full",
	    "Nothing to repair: the GPU has a thousand launches ahead of it. The time in these "
	    "calls is waiting, not overhead.",
	    "A queue that is not deep: then something else blocks the launch." }, queue_full },
	{ { "starved", "The launching threads are away from CUDA",
	    "Look at what they do meanwhile: data loading, tokenizing, Python, a lock, I/O, or a "
	    "CPU quota. More workers, prefetching, pinned memory; gbpf top shows what they wait "
	    "for.", "A GPU that still has work queued: see it with --gpu-time." }, starved },
	{ { 0 }, NULL },
};
