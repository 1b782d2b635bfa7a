// SPDX-License-Identifier: BSD-2-Clause
/* Which rank of which job a process is, and how far this host's clock can be off. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/timex.h>

#include "target/labels.h"
#include "trace/private.h"

static int label(struct tracer *t, uint32_t pid, int64_t ts, const char *key, const char *value)
{
	struct record r = {.kind = RECORD_LABEL, .label = {ts, pid, key, value}};

	return value[0] ? tracer_add(t, &r) : 0;
}

int labels_write(struct tracer *t, uint32_t pid, int64_t ts)
{
	struct labels l;
	int err;

	if (labels_read(pid, &l))
		return 0; /* gone, or hidden: then nothing is known */
	err = label(t, pid, ts, "rank", l.rank);
	if (!err)
		err = label(t, pid, ts, "slurm_job", l.slurm_job);
	if (!err)
		err = label(t, pid, ts, "pod", l.pod);
	return err ? err : label(t, pid, ts, "namespace", l.namespace);
}

/*
 * The kernel's own bound on the distance to true time, which whoever keeps the clock in
 * step maintains (adjtimex(2): maxerror, us); absent while nobody does.
 */
int clock_sync_write(struct tracer *t)
{
	struct timex tx = {.modes = 0};
	struct record r = {.kind = RECORD_INFO, .info = {.key = "clock_max_error_ns"}};
	char text[24];

	if (adjtimex(&tx) < 0 || tx.status & STA_UNSYNC || tx.maxerror < 0)
		return 0;
	snprintf(text, sizeof(text), "%" PRId64, (int64_t)tx.maxerror * 1000);
	r.info.value = text;
	return tracer_add(t, &r);
}
