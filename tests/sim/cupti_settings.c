/* SPDX-License-Identifier: BSD-2-Clause */
/* What the environment asks of the stand-in: its version and its faults. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti.h"

#ifndef SIMCUPTI_DEFAULT
#define SIMCUPTI_DEFAULT "13.0"
#endif

#define RULES 16

struct version {
	const char *name;
	uint32_t number;
	size_t kernel_size, copy_size, overhead_size;
	bool graph_ids; /* of later sessions are right */
};

/* cuptiGetVersion does not tell 11.8 from 12.0, whose records differ. */
static const struct version versions[] = {
	{ "11.8", 18, 200, 88, 40, false },
	{ "12.0", 18, 208, 88, 40, false },
	{ "12.4", 22, 208, 88, 56, false },
	{ "12.6", 24, 208, 88, 56, false },
	{ "12.8", 26, 208, 96, 56, false },
	{ "12.9", 28, 208, 96, 56, false },
	{ "13.0", 130001, 216, 96, 56, false },
	{ "13.1", 130100, 224, 96, 56, false },
	{ "13.1u1", 130101, 224, 96, 56, true },
	{ "13.3", 130301, 232, 96, 56, true },
};

static int64_t number(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoll(text, NULL, 0) : otherwise;
}

static const struct version *find_version(const char *name)
{
	for (size_t i = 0; name && i < sizeof(versions) / sizeof(*versions); i++)
		if (!strcmp(versions[i].name, name))
			return &versions[i];
	return NULL;
}

static bool by_launch(const struct version *v)
{
	const char *text = getenv("SIMCUPTI_NUMBERS");

	return text ? !strcmp(text, "launches") : v->number >= 130000;
}

static enum cupti_graph_ids graph_ids(const struct version *v)
{
	const char *text = getenv("SIMCUPTI_GRAPH_IDS");

	if (!text)
		return v->graph_ids ? GRAPH_IDS_TRUE : GRAPH_IDS_STALE;
	return !strcmp(text, "stale")	? GRAPH_IDS_STALE :
	       !strcmp(text, "shifted") ? GRAPH_IDS_SHIFTED :
					  GRAPH_IDS_TRUE;
}

void cupti_settings_read(struct cupti_settings *s)
{
	const struct version *v = find_version(getenv("SIMCUPTI_VERSION"));
	const char *reset = getenv("SIMCUPTI_RESET");

	if (!v)
		v = find_version(SIMCUPTI_DEFAULT);
	*s = (struct cupti_settings){
		.version = v->number,
		.kernel_size = v->kernel_size,
		.copy_size = v->copy_size,
		.overhead_size = v->overhead_size,
		.graph_ids = graph_ids(v),
		.by_launch = by_launch(v),
		.first_correlation = (uint32_t)number("SIMCUPTI_CORRELATION", 1),
		.drop = (unsigned)number("SIMCUPTI_DROP", 0),
		.start0 = (unsigned)number("SIMCUPTI_START0", 0),
		.end0 = (unsigned)number("SIMCUPTI_END0", 0),
		.negative = (unsigned)number("SIMCUPTI_NEGATIVE", 0),
		.offset_ns = number("SIMCUPTI_OFFSET_NS", 0),
		.drift_ppm = number("SIMCUPTI_DRIFT_PPM", 0),
		.fail = getenv("SIMCUPTI_FAIL"),
		.delay = getenv("SIMCUPTI_DELAY"),
		.log = getenv("SIMCUPTI_LOG"),
		.reset_loses = reset && !strcmp(reset, "lose"),
		.spare = number("SIMCUPTI_SPARE", 0) != 0,
	};
}

/* The rule about function in "function=value@n,…": its value, 0: none; its place and its n. */
static long find_rule(const char *rules, const char *function, unsigned *place, unsigned *every)
{
	size_t length = strlen(function);
	const char *at = rules;

	for (*place = 0; at && *at && *place < RULES; (*place)++) {
		const char *next = strchr(at, ','), *n = strchr(at, '@');

		if (!strncmp(at, function, length) && at[length] == '=') {
			*every = n && (!next || n < next) ? (unsigned)atoi(n + 1) : 1;
			return atol(at + length + 1);
		}
		at = next ? next + 1 : NULL;
	}
	return 0;
}

static long apply(const char *rules, const char *function, atomic_uint *counts)
{
	unsigned place, every = 1;
	long value = find_rule(rules, function, &place, &every);

	if (!value || !every)
		return 0;
	return (atomic_fetch_add(&counts[place], 1) + 1) % every ? 0 : value;
}

int cupti_inject(const char *function)
{
	static atomic_uint failed[RULES], delayed[RULES];
	long ms = cupti.set.delay ? apply(cupti.set.delay, function, delayed) : 0;

	if (ms > 0)
		usleep((useconds_t)ms * 1000);
	return cupti.set.fail ? (int)apply(cupti.set.fail, function, failed) : 0;
}

void cupti_log(const char *function, long argument, int result)
{
	char line[160];
	int fd, n;

	if (!cupti.set.log)
		return;
	fd = open(cupti.set.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	n = snprintf(line, sizeof(line), "%d %d %s %ld %d\n", getpid(), gettid(), function,
		     argument, result);
	if (fd >= 0) {
		if (write(fd, line, (size_t)n) != n)
			perror(cupti.set.log);
		close(fd);
	}
}
