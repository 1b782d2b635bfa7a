// SPDX-License-Identifier: BSD-2-Clause
/* Where the CPU waits for the GPU. */
#include "diagnose/rules.h"

#define WAITS_MATTER 0.05 /* of the window */

/* Of the time in which threads waited: how long did the GPU work, and how long did it idle? */
static void split_waits(const struct facts *f, struct diag_finding *out)
{
	const struct shares *v = f->shares;
	int64_t idle = v->devices ? v->slack / v->devices : 0;

	if (!has_gpu(f))
		return;
	evidence_number(out, "gpu_worked_meanwhile_ns",
			(double)(v->feed[FEED_WAIT] + v->feed[FEED_COPY] - idle));
	evidence_number(out, "gpu_idled_meanwhile_ns", (double)idle);
}

static bool drained_by_syncs(const struct facts *f, struct diag_finding *out)
{
	double share = share_of(f, CLASS_SYNC);

	if (!has_gpu(f) || share < WAITS_MATTER || !f->syncs.count)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = share;
	evidence_number(out, "waits", (double)(f->syncs.count + f->blocking_copies.count));
	evidence_number(out, "wait_ns", (double)(f->syncs.ns + f->blocking_copies.ns));
	evidence_text(out, "longest_in", api_text(f, &f->syncs));
	split_waits(f, out);
	return true;
}

static bool waits_at_once(const struct facts *f, struct diag_finding *out)
{
	if (has_gpu(f) || f->syncs.count < 5 || f->at_once.count * 2 < f->syncs.count ||
	    of_window(f, f->syncs.ns) > 0.2)
		return false;
	out->severity = SEVERITY_NOTICE;
	evidence_number(out, "waits", (double)f->syncs.count);
	evidence_number(out, "at_once", (double)f->at_once.count);
	return true;
}

static bool long_wait(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->syncs.ns);

	if (share < 0.2 || (has_gpu(f) && idle_share(f) > IDLE_MATTERS))
		return false;
	out->severity = SEVERITY_INFO;
	out->share = share;
	evidence_number(out, "waits", (double)f->syncs.count);
	evidence_number(out, "longest_ns", (double)f->syncs.longest);
	evidence_text(out, "function", api_text(f, &f->syncs));
	split_waits(f, out);
	return true;
}

static bool polling(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->polls.ns);

	if (share < WAITS_MATTER)
		return false;
	out->severity = SEVERITY_INFO;
	out->share = share;
	evidence_number(out, "runs", (double)f->polls.count);
	evidence_text(out, "function", api_text(f, &f->polls));
	return true;
}

static bool hidden_allocation(const struct facts *f, struct diag_finding *out)
{
	int64_t ns = f->allocs.ns + f->frees.ns;
	uint64_t count = f->allocs.count + f->frees.count;

	if (count < 10 || of_window(f, ns) < 0.01)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = of_window(f, ns);
	evidence_number(out, "allocations", (double)f->allocs.count);
	evidence_number(out, "frees", (double)f->frees.count);
	evidence_number(out, "longest_ns", (double)(f->allocs.longest > f->frees.longest ?
						    f->allocs.longest : f->frees.longest));
	return true;
}

static bool pageable(const struct facts *f, struct diag_finding *out)
{
	if (f->pageable.count < 2 || of_window(f, f->pageable.ns) < 0.005)
		return false;
	out->severity = SEVERITY_WARNING;
	out->share = of_window(f, f->pageable.ns);
	evidence_number(out, "copies", (double)f->pageable.count);
	evidence_number(out, "bytes", (double)f->pageable.bytes);
	evidence_text(out, "function", api_text(f, &f->pageable));
	return true;
}

static bool blocking_copies(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->blocking_copies.ns);

	if (f->blocking_copies.count < 2 || share < 0.02)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "copies", (double)f->blocking_copies.count);
	evidence_number(out, "bytes", (double)f->blocking_copies.bytes);
	evidence_number(out, "longest_ns", (double)f->blocking_copies.longest);
	evidence_text(out, "function", api_text(f, &f->blocking_copies));
	return true;
}

static bool blocking_sets(const struct facts *f, struct diag_finding *out)
{
	double share = of_window(f, f->blocking_sets.ns);

	if (f->blocking_sets.count < 2 || share < 0.01)
		return false;
	out->severity = SEVERITY_NOTICE;
	out->share = share;
	evidence_number(out, "sets", (double)f->blocking_sets.count);
	evidence_text(out, "function", api_text(f, &f->blocking_sets));
	return true;
}

const struct rule rules_wait[] = {
	{ { "sync_serialisation",
	    "Waits drain the queue, and the GPU idles until it is filled again",
	    "Wait less often and later: keep losses and metrics on the GPU for several steps, "
	    "replace device-wide waits by events, and read results back one step late.",
	    "A CPU that would be too slow without the waits, too: that part is counted as "
	    "overhead." }, drained_by_syncs },
	{ { "sync_at_once", "Waits return at once",
	    "The GPU had finished before anybody waited: suspect that the CPU cannot feed it, "
	    "and see with --gpu-time.", "Waits for an empty or a side stream." }, waits_at_once },
	{ { "long_sync", "Threads wait long for the GPU",
	    "Nothing to repair here: while a thread waits the GPU is still working, or a "
	    "profiler empties its buffers. The work itself is what takes the time.",
	    "A GPU that is idle meanwhile: see it with --gpu-time." }, long_wait },
	{ { "polling", "Threads wait by asking again and again",
	    "This is waiting, not starvation. A wait that sleeps (cudaEventBlockingSync) would "
	    "give the CPU to others.", "" }, polling },
	{ { "allocation_in_steady_state", "Device memory is allocated or freed all the time",
	    "cudaMalloc and cudaFree may wait for the device: use a caching or stream-ordered "
	    "allocator (cudaMallocAsync), and avoid emptying its cache.",
	    "A warm-up that is longer than a tenth of the recording." }, hidden_allocation },
	{ { "pageable_copy", "Asynchronous copies of pageable memory block",
	    "Pin the memory (pin_memory=True, cudaHostAlloc): pageable memory goes through a "
	    "buffer of the driver, and the call waits for it.", "" }, pageable },
	{ { "blocking_copy", "Copies wait for everything before them",
	    "Use asynchronous copies of pinned memory on a stream of their own, and wait for "
	    "them where the data is needed. .item() and .cpu() are such copies.",
	    "Copies whose result the next step cannot do without." }, blocking_copies },
	{ { "blocking_set", "Memory is set by calls that may block",
	    "Use the asynchronous form on the stream of the work that follows.", "" },
	  blocking_sets },
	{ { 0 }, NULL },
};
