/* SPDX-License-Identifier: BSD-2-Clause */
/* The orders of gate.py for programs in C++: DIR/cmd is read, DIR/out and DIR/steps written. */
#ifndef GBPF_GPU_GATE_H
#define GBPF_GPU_GATE_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define GATE_IDLE_MS (900 * 1000)

struct gate {
	int fifo;
	FILE *out, *steps;
	char order[256]; /* the last one read */
};

static inline int64_t gate_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static inline FILE *gate_file(const char *dir, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fopen(path, "ae");
}

/* 0, or -1 with errno set. */
static inline int gate_open(struct gate *g, const char *dir)
{
	char path[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	snprintf(path, sizeof(path), "%s/cmd", dir);
	g->fifo = open(path, O_RDWR | O_CLOEXEC);
	g->out = gate_file(dir, "out");
	g->steps = gate_file(dir, "steps");
	return g->fifo >= 0 && g->out && g->steps ? 0 : -1;
}

static inline bool gate_pending(const struct gate *g, int ms)
{
	struct pollfd p = { g->fifo, POLLIN, 0 };

	return poll(&p, 1, ms) > 0;
}

/* Waits for an order: a line, given without its newline; "quit" when none comes any more. */
static inline const char *gate_order(struct gate *g)
{
	size_t n = 0;

	while (n + 1 < sizeof(g->order)) {
		if (!gate_pending(g, GATE_IDLE_MS) || read(g->fifo, g->order + n, 1) != 1)
			return "quit";
		if (g->order[n] == '\n')
			break;
		n++;
	}
	g->order[n] = '\0';
	return g->order;
}

#endif
