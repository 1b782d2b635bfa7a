/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/read.h"

#include <math.h>

const char *activity_name(unsigned i)
{
	static const char *const names[] = { "dispatch", "sync", "elsewhere" };

	return names[i];
}

const char *state_name(unsigned i)
{
	static const char *const names[] = { "call_on_cpu", "call_off_cpu" };

	return i < 2 ? names[i] : wait_kind_name((enum wait_kind)(i - 2));
}

const char *verdict_name(unsigned i)
{
	return diag_verdict_words[i];
}

/* Not known is negative, or no number. */
static bool known(double v, double scale, double *value)
{
	*value = v * scale;
	return isfinite(v) && v >= 0;
}

static bool estimated(const struct estimate *e, double v, double *value)
{
	*value = v;
	return e->known && isfinite(v);
}

uint64_t read_calls(const struct family_source *f)
{
	return f->api->calls;
}

uint64_t read_call_errors(const struct family_source *f)
{
	return f->api->errors;
}

uint64_t read_call_bytes(const struct family_source *f)
{
	return f->api->bytes;
}

uint64_t read_call_ns(const struct family_source *f)
{
	return f->api->total_ns;
}

uint64_t read_cold_starts(const struct family_source *f)
{
	return f->process->cold_starts;
}

uint64_t read_cold_ns(const struct family_source *f)
{
	return f->process->cold_ns;
}

uint64_t read_self_windows(const struct family_source *f)
{
	return f->snapshot->self.windows;
}

uint64_t read_self_lost(const struct family_source *f)
{
	return f->snapshot->self.lost;
}

uint64_t read_self_unmatched(const struct family_source *f)
{
	return f->snapshot->self.unmatched;
}

const struct histogram *read_launches(const struct family_source *f)
{
	return f->process->launch_ever;
}

const struct histogram *read_syncs(const struct family_source *f)
{
	return f->process->sync_ever;
}

READ_GAUGE(read_processes)
{
	*value = 1;
	return true;
}

READ_GAUGE(read_launch_rate)
{
	return estimated(&f->process->launches_per_s, f->process->launches_per_s.value, value);
}

READ_GAUGE(read_launch_rate_low)
{
	return estimated(&f->process->launches_per_s, f->process->launches_per_s.low, value);
}

READ_GAUGE(read_launch_rate_high)
{
	return estimated(&f->process->launches_per_s, f->process->launches_per_s.high, value);
}

READ_GAUGE(read_back_pressured)
{
	const struct estimate *e = &f->process->back_pressured_per_s;

	return estimated(e, e->value, value);
}

READ_GAUGE(read_copies)
{
	return estimated(&f->process->copies_per_s, f->process->copies_per_s.value, value);
}

READ_GAUGE(read_copy_bytes)
{
	return estimated(&f->process->copy_bytes_per_s, f->process->copy_bytes_per_s.value, value);
}

READ_GAUGE(read_errors)
{
	return estimated(&f->process->errors_per_s, f->process->errors_per_s.value, value);
}

READ_GAUGE(read_activity)
{
	const struct estimate *const shares[] = {
		&f->process->dispatch_share,
		&f->process->sync_share,
		&f->process->elsewhere_share,
	};

	return estimated(shares[i], shares[i]->value, value);
}

/* The thread that the shares of the process are of: the one that has them. */
static const struct snapshot_thread *busiest(const struct snapshot_process *p)
{
	const struct snapshot_thread *best = NULL;
	double most = -1;

	for (size_t i = 0; i < p->threads_count; i++) {
		const struct snapshot_thread *t = &p->threads[i];
		double busy;

		if (!t->dispatch_share.known)
			continue;
		busy = t->dispatch_share.value + t->sync_share.value;
		if (p->dispatch_share.known && t->dispatch_share.value == p->dispatch_share.value &&
		    t->sync_share.value == p->sync_share.value)
			return t;
		if (busy > most) {
			most = busy;
			best = t;
		}
	}
	return best;
}

/* One of them is so; the others have no value, and no series. */
READ_GAUGE(read_verdict)
{
	*value = 1;
	return f->process->verdict.verdict == (enum diag_verdict)i;
}

READ_GAUGE(read_state)
{
	const struct snapshot_thread *t = busiest(f->process);

	if (!t || !t->sched_known)
		return false;
	if (i < 2)
		return known(i ? t->call_sleep_share : t->call_spin_share, 1, value);
	return known(t->wait_share[i - 2], 1, value);
}

READ_GAUGE(read_open_call)
{
	const struct snapshot_process *p = f->process;
	int64_t longest = 0;

	for (size_t t = 0; t < p->threads_count; t++) {
		int64_t open = f->snapshot->mono_ns - p->threads[t].open_since;

		if (p->threads[t].open_api && open > longest)
			longest = open;
	}
	*value = (double)longest * 1e-9;
	return true;
}

READ_GAUGE(read_live_allocations)
{
	*value = (double)f->process->live_allocations;
	return f->process->live_known;
}

READ_GAUGE(read_live_bytes)
{
	*value = (double)f->process->live_bytes;
	return f->process->live_known;
}

READ_GAUGE(read_tree_cpu)
{
	return known(f->process->tree_cpu_pct, 0.01, value);
}

READ_GAUGE(read_tree_io)
{
	return known(f->process->tree_io_bytes_per_s, 1, value);
}

READ_GAUGE(read_throttled)
{
	return known(f->process->throttled_share, 1, value);
}

READ_GAUGE(read_shared)
{
	*value = f->process->gpu_shared;
	return f->process->gpu_uuid[0] != '\0';
}

READ_GAUGE(read_overhead)
{
	return known(f->process->overhead_pct, 0.01, value);
}

READ_GAUGE(read_coverage)
{
	return known(f->process->coverage, 1, value);
}

READ_GAUGE(read_left_out)
{
	*value = (double)f->left_out;
	return true;
}

READ_GAUGE(read_gpus)
{
	*value = (double)f->snapshot->gpus_count;
	return true;
}

READ_GAUGE(read_interval)
{
	return known((double)f->snapshot->window_ns, 1e-9, value);
}

READ_GAUGE(read_interval_end)
{
	return known((double)f->snapshot->time_ns, 1e-9, value);
}

READ_GAUGE(read_self_overhead)
{
	return known(f->snapshot->self.overhead_pct, 0.01, value);
}

READ_GAUGE(read_self_budget)
{
	return known(f->snapshot->self.budget_pct, 0.01, value);
}

READ_GAUGE(read_self_cpu)
{
	return known(f->snapshot->self.cpu_pct, 0.01, value);
}

READ_GAUGE(read_self_resident)
{
	*value = (double)f->snapshot->self.rss_bytes;
	return true;
}

READ_GAUGE(read_self_maps)
{
	*value = (double)f->snapshot->self.maps_bytes;
	return true;
}

READ_GAUGE(read_self_coverage)
{
	return known(f->snapshot->self.coverage, 1, value);
}

READ_GAUGE(read_self_limited)
{
	*value = f->snapshot->self.limit != NULL;
	return true;
}
