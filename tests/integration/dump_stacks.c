/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads every program as gbpf does and prints what the verifier found: a line
 * "PROGRAM<TAB>DEPTH+DEPTH…" each, bytes of stack of the program and then of each
 * function that it calls. Exit status 1 if one does not load.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/hold.h"
#include "bpf/inject.h"
#include "bpf/monitor.h"
#include "bpf/steps.h"
#include "bpf/switches.h"

#include "gbpf.skel.h"
#include "gbpf_foreign.skel.h"
#include "gbpf_hold.skel.h"
#include "gbpf_inject.skel.h"
#include "gbpf_monitor.skel.h"

#define LOG_STATS 4 /* the kernel's BPF_LOG_STATS */
#define LOG_BYTES (1 << 16)

enum { ATTACH_MULTI = 48, ATTACH_SESSION = 57 };

static void attach_type(struct bpf_program *prog, int type)
{
	if (bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)type))
		exit(2);
}

static void logs_take(struct bpf_object *object)
{
	struct bpf_program *prog;
	char *log;

	bpf_object__for_each_program(prog, object) {
		log = calloc(1, LOG_BYTES);
		if (!log || bpf_program__set_log_buf(prog, log, LOG_BYTES) ||
		    bpf_program__set_log_level(prog, LOG_STATS))
			exit(2);
	}
}

/* The line of the statistics that says it, or nothing: then the reader complains. */
static void depths_print(const char *name, const char *log)
{
	static const char before[] = "stack depth ";
	const char *found = log ? strstr(log, before) : NULL;

	found = found ? found + strlen(before) : "";
	printf("%s\t%.*s\n", name, (int)strcspn(found, "\n"), found);
}

static int object_print(struct bpf_object *object, int err)
{
	struct bpf_program *prog;
	size_t size;

	bpf_object__for_each_program(prog, object) {
		if (bpf_program__autoload(prog))
			depths_print(bpf_program__name(prog), bpf_program__log_buf(prog, &size));
		if (err)
			fprintf(stderr, "%s: %s\n", bpf_program__name(prog),
				bpf_program__log_buf(prog, &size));
	}
	return err ? 1 : 0;
}

static int calls_print(void)
{
	struct gbpf_bpf *skel = gbpf_bpf__open();

	if (!skel)
		return 1;
	attach_type(skel->progs.gbpf_session, ATTACH_SESSION);
	attach_type(skel->progs.gbpf_multi_entry, ATTACH_MULTI);
	attach_type(skel->progs.gbpf_multi_return, ATTACH_MULTI);
	logs_take(skel->obj);
	return object_print(skel->obj, gbpf_bpf__load(skel));
}

static int hold_print(void)
{
	struct gbpf_hold *skel = gbpf_hold__open();

	if (!skel)
		return 1;
	attach_type(skel->progs.gbpf_hold, ATTACH_MULTI);
	/* in gbpf it is the main programs' memory, which is as large as the filter at least */
	bpf_map__set_value_size(skel->maps.main_bss, GBPF_FILTER_WORDS * 8);
	logs_take(skel->obj);
	return object_print(skel->obj, gbpf_hold__load(skel));
}

static int foreign_print(void)
{
	struct gbpf_foreign *skel = gbpf_foreign__open();

	if (!skel)
		return 1;
	attach_type(skel->progs.gbpf_foreign, ATTACH_MULTI);
	logs_take(skel->obj);
	return object_print(skel->obj, gbpf_foreign__load(skel));
}

static int inject_print(void)
{
	struct gbpf_inject *skel = gbpf_inject__open();

	if (!skel)
		return 1;
	logs_take(skel->obj);
	return object_print(skel->obj, gbpf_inject__load(skel));
}

static int monitor_print(void)
{
	struct gbpf_monitor *skel = gbpf_monitor__open();

	if (!skel)
		return 1;
	attach_type(skel->progs.monitor_session, ATTACH_SESSION);
	attach_type(skel->progs.monitor_multi_entry, ATTACH_MULTI);
	attach_type(skel->progs.monitor_multi_return, ATTACH_MULTI);
	logs_take(skel->obj);
	return object_print(skel->obj, gbpf_monitor__load(skel));
}

int main(void)
{
	int err = calls_print();

	err |= hold_print();
	err |= foreign_print();
	err |= inject_print();
	return err | monitor_print();
}
