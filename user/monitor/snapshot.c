// SPDX-License-Identifier: BSD-2-Clause
#include "monitor/snapshot.h"

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[WAIT_KINDS] = {
		[WAIT_RUNNING] = "running", [WAIT_RUNNABLE] = "runnable", [WAIT_LOCK] = "lock",
		[WAIT_PIPE] = "pipe",	    [WAIT_DISK] = "disk",	  [WAIT_SLEEP] = "sleep",
		[WAIT_OTHER] = "other",
	};

	if ((unsigned int)kind >= WAIT_KINDS)
		return names[WAIT_OTHER];
	return names[kind];
}

int64_t snapshot_quantile(const struct histogram *h, double q)
{
	int64_t ns = histogram_quantile(h, q);

	return ns >= 1 << GBPF_BUCKET_MIN_SHIFT ? ns : -1;
}

const struct snapshot_process *snapshot_find(const struct snapshot *s, uint32_t pid)
{
	size_t low = 0, high = s->processes_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < s->processes_count && s->processes[low].pid == pid)
		return &s->processes[low];
	return NULL;
}
