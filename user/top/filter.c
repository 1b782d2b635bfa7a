/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/filter.h"

#include <stdio.h>
#include <string.h>

static bool occurs(const char *word, const struct snapshot_process *p)
{
	char pid[16], comm[sizeof(p->comm) + 1];
	const char *const fields[] = {
		pid, comm, p->command, p->gpu_uuid, p->labels.container, p->labels.pod,
		p->labels.namespace, p->labels.slurm_job, p->labels.rank,
	};

	snprintf(pid, sizeof(pid), "%u", p->pid);
	snprintf(comm, sizeof(comm), "%.*s", (int)sizeof(p->comm), p->comm);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i] && strcasestr(fields[i], word))
			return true;
	}
	return false;
}

bool filter_matches(const char *filter, const struct snapshot_process *p)
{
	char words[FILTER_SIZE], *word, *rest = words;

	snprintf(words, sizeof(words), "%s", filter);
	while ((word = strsep(&rest, " "))) {
		if (*word && !occurs(word, p))
			return false;
	}
	return true;
}
