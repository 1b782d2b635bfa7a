/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what this kernel says to each rung: a line "RUNG<TAB>LOAD<TAB>ATTACH<TAB>SECCOMP"
 * each, zero or -errno (1: not tried), and whether return probes kill a process with a seccomp
 * filter there; then which one gbpf chooses by itself.
 */
#include <stdio.h>

#include "probe/probes.h"

static void rung_print(enum rung rung)
{
	struct probes_options o = {.rung = rung};
	struct probes_trial trials[3] = {0};
	struct probes *p = NULL;
	int seccomp = 1, i = (int)rung - RUNG_SESSION;

	if (!probes_new(&p, &o, trials))
		seccomp = calibrate_seccomp(p);
	printf("%s\t%d\t%d\t%d\n", rung_name(rung), trials[i].load, trials[i].attach, seccomp);
	probes_free(p);
}

int main(void)
{
	struct probes_options o = {.rung = RUNG_AUTO};
	struct probes *p = NULL;
	int err;

	rung_print(RUNG_SESSION);
	rung_print(RUNG_MULTI);
	rung_print(RUNG_SINGLE);
	err = probes_new(&p, &o, NULL);
	printf("auto\t%d\t%s\n", err, err ? "none" : rung_name(probes_rung(p)));
	probes_free(p);
	return 0;
}
