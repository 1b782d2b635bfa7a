/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labelled jobs of several ranks: which one keeps the others waiting is known because it is
 * built that way. A collective's kernel ends on all ranks when the last has begun and the
 * data has gone round; so those that are early spin in it.
 */
#ifndef GBPF_TESTS_RANKED_JOBS_H
#define GBPF_TESTS_RANKED_JOBS_H

#include "labelled_jobs.h"

#define RANKS 4
#define STEPS 120
#define NOBODY (-1)

struct gang {
	struct job rank[RANKS];
	int ranks;
	bool collectives, labels; /* what ties them together */
	uint64_t state;		  /* of the noise */
};

static double noise(struct gang *g) /* 0.9..1.1 */
{
	uint64_t z = g->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return 0.9 + 0.2 * (double)(z >> 11) / (double)(UINT64_C(1) << 53);
}

static void label(struct job *j, const char *key, const char *value)
{
	struct record r = { .kind = RECORD_LABEL,
			    .label = { .ts = 1, .pid = j->pid, .key = key, .value = value } };

	feed_add(&j->f, &r);
}

static void process(struct job *j, uint32_t ppid)
{
	struct record r = { .kind = RECORD_PROCESS,
			    .process = { .ts = 1, .event = RECORD_PROCESS_SEEN, .pid = j->pid,
					 .ppid = ppid, .uid = 1000, .start = j->pid,
					 .comm = "python", .cmdline = "", .exe = "",
					 .container = "" } };

	feed_add(&j->f, &r);
}

/* Processes 100, 101, … with a GPU each, in one recording. */
static void gang_start(struct gang *g, bool gpu, int ranks)
{
	struct feed f;

	*g = (struct gang){ .ranks = ranks, .collectives = true, .state = 7 };
	feed_start(&f);
	feed_info(&f, "probe_pair_ns", "0");
	for (int i = 0; i < ranks; i++) {
		struct job *j = &g->rank[i];
		char uuid[16];

		*j = (struct job){ .f = f, .gpu = gpu, .now = 10 * MSEC, .begin = 10 * MSEC,
				   .pid = 100 + (uint32_t)i };
		j->f.pid = j->f.tid = j->pid;
		snprintf(uuid, sizeof(uuid), "GPU-%d", i);
		if (gpu)
			feed_device(&j->f, 0, uuid);
	}
}

static const char *const digits[] = { "0", "1", "2", "3" };

/* Who they are said to be: ranks of `jobs` launchers. */
static void gang_is(struct gang *g, bool labels, int jobs)
{
	int each = g->ranks / jobs;

	for (int i = 0; i < g->ranks; i++) {
		process(&g->rank[i], 50 + (uint32_t)(i / each));
		if (labels)
			label(&g->rank[i], "rank", digits[i % each]);
	}
}

/* From rank `from` to `to`: all enter, and leave together. */
static void all_reduce(struct gang *g, int from, int to, int64_t ns)
{
	int64_t last = 0, begin[RANKS];

	for (int i = from; i < to; i++) {
		const struct job *j = &g->rank[i];

		begin[i] = j->now + LATENCY;
		begin[i] = begin[i] > j->lane[0].free_at ? begin[i] : j->lane[0].free_at;
		last = begin[i] > last ? begin[i] : last;
	}
	for (int i = from; i < to; i++)
		job_kernel_named(&g->rank[i], 0, 60, SMALL_ALLREDUCE, 8 * USEC,
				 last + ns - begin[i]);
}

/* One rank's part of a step. */
struct part {
	int64_t away, between, dispatch, kernel;
};

static void compute(struct gang *g, int i, struct part p)
{
	struct job *j = &g->rank[i];

	job_between(j, (int64_t)((double)p.away * noise(g)));
	for (unsigned k = 0; k < 20; k++) {
		job_between(j, (int64_t)((double)p.between * noise(g)));
		job_kernel(j, k, (int64_t)((double)p.dispatch * noise(g)),
			   (int64_t)((double)p.kernel * noise(g)));
	}
}

static void together(struct gang *g, int from, int to)
{
	if (g->collectives)
		all_reduce(g, from, to, 200 * USEC);
	for (int i = from; i < to; i++)
		job_sync(&g->rank[i]);
}

/* Data-parallel training in which one rank (or nobody) is different. */
static void train(struct gang *g, int who, struct part usual, struct part other)
{
	for (int s = 0; s < STEPS; s++) {
		for (int i = 0; i < g->ranks; i++)
			compute(g, i, i == who ? other : usual);
		together(g, 0, g->ranks);
	}
}

/* ---- jobs ---- */

static const struct part cpu = { 0, 30 * USEC, 6 * USEC, 8 * USEC };
static const struct part gpu = { 0, 5 * USEC, 6 * USEC, 60 * USEC };

static void slow_cpu(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, 2, cpu, (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC });
}

/* The first rank alone logs every tenth step; another one is slow. */
static void slow_beside_logging(struct gang *g)
{
	struct part slow = { 0, 45 * USEC, 6 * USEC, 8 * USEC };

	gang_is(g, true, 1);
	for (int s = 0; s < STEPS; s++) {
		for (int i = 0; i < g->ranks; i++)
			compute(g, i, i == 2 ? slow : cpu);
		together(g, 0, g->ranks);
		if (s % 10)
			continue;
		job_kernel(&g->rank[0], 55, 6 * USEC, 10 * USEC);
		job_copy(&g->rank[0], F_ASYNC, 64, 2 * USEC, RECORD_MEMORY_PINNED);
		job_sync(&g->rank[0]);
	}
}

static void slow_loader(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, 3, cpu, (struct part){ 3 * MSEC, 30 * USEC, 6 * USEC, 8 * USEC });
}

static void slow_gpu(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, 1, gpu, (struct part){ 0, 5 * USEC, 6 * USEC, 80 * USEC });
}

/* Nobody says which ranks they are: collectives tie them. */
static void slow_unlabelled(struct gang *g)
{
	gang_is(g, false, 1);
	train(g, 0, cpu, (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC });
}

static void equal_cpu(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, NOBODY, cpu, cpu);
}

static void equal_gpu(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, NOBODY, gpu, gpu);
}

/* Somebody is late in each step, but never the same one for long. */
static void in_turn(struct gang *g)
{
	gang_is(g, true, 1);
	for (int s = 0; s < STEPS; s++) {
		int who = (int)(noise(g) * 1000) % g->ranks;

		for (int i = 0; i < g->ranks; i++)
			compute(g, i, i == who ? (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC }
					       : cpu);
		together(g, 0, g->ranks);
	}
}

/* The GPU is what all wait for; what this one's CPU does meanwhile costs nothing. */
static void hidden_logging(struct gang *g)
{
	gang_is(g, true, 1);
	for (int s = 0; s < STEPS; s++) {
		for (int i = 0; i < g->ranks; i++)
			compute(g, i, gpu);
		all_reduce(g, 0, g->ranks, 200 * USEC);
		job_between(&g->rank[0], 300 * USEC);
		for (int i = 0; i < g->ranks; i++)
			job_sync(&g->rank[i]);
	}
}

/* Dispatch takes twice as long on a core of its own, behind a busy GPU. */
static void slow_dispatch(struct gang *g)
{
	gang_is(g, true, 1);
	train(g, 1, gpu, (struct part){ 0, 5 * USEC, 12 * USEC, 60 * USEC });
}

/*
 * A server of parameters: as many launches and steps as its workers, other kernels, and it
 * hardly waits for its GPU. The workers do not wait for it.
 */
static void server(struct gang *g)
{
	struct job *j = &g->rank[0];

	gang_is(g, true, 1);
	for (int s = 0; s < STEPS; s++) {
		for (int i = 1; i < g->ranks; i++)
			compute(g, i, cpu);
		for (unsigned k = 30; k < 51; k++) {
			job_between(j, 10 * USEC);
			job_kernel(j, k, 6 * USEC, 5 * USEC);
		}
		job_sync(j);
		together(g, 1, g->ranks);
		if (j->now < g->rank[1].now) /* it is told when they are done */
			j->now = g->rank[1].now;
	}
}

/* Numbered by their launcher, and nothing to do with each other: one is slower. */
static void array_of_tasks(struct gang *g)
{
	gang_is(g, true, 1);
	g->collectives = false;
	train(g, 2, gpu, (struct part){ 0, 90 * USEC, 6 * USEC, 60 * USEC });
}

static void unrelated(struct gang *g)
{
	gang_is(g, false, 1);
	g->collectives = false;
	train(g, 1, cpu, (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC });
}

/* Ranks of two nodes, numbered by node: one job, if it is said which node. */
static void two_hosts(struct gang *g)
{
	for (int i = 0; i < g->ranks; i++) {
		process(&g->rank[i], 50 + (uint32_t)(i / 2));
		label(&g->rank[i], "rank", i % 2 ? "local 1" : "local 0");
		label(&g->rank[i], "host", i / 2 ? "node2" : "node1");
	}
	train(g, 2, cpu, (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC });
}

/* Two jobs of two ranks; within the second, rank 1 is late. */
static void two_jobs(struct gang *g)
{
	gang_is(g, true, 2);
	for (int s = 0; s < STEPS; s++) {
		for (int i = 0; i < 4; i++)
			compute(g, i, i == 3 ? (struct part){ 1 * MSEC, 30 * USEC, 6 * USEC,
							      8 * USEC } : cpu);
		together(g, 0, 2);
		together(g, 2, 4);
	}
}

struct label {
	const char *name;
	void (*run)(struct gang *g);
	int straggler, without; /* with GPU time, and without */
	int slower;		/* in dispatch */
	size_t jobs;
	const char *in; /* more time, with GPU time */
	int64_t late;	/* ns a step; 0: not labelled */
};

static const struct label labels[] = {
	{ "slow_cpu", slow_cpu, 2, 2, NOBODY, 1, "preparing and dispatching work",
	  300 * USEC },
	{ "slow_beside_logging", slow_beside_logging, 2, 2, NOBODY, 1, NULL, 0 },
	{ "slow_loader", slow_loader, 3, 3, NOBODY, 1, "away from CUDA", 3 * MSEC },
	{ "slow_gpu", slow_gpu, 1, NOBODY, NOBODY, 1, "in its kernels", 400 * USEC },
	{ "slow_unlabelled", slow_unlabelled, 0, 0, NOBODY, 1, NULL, 300 * USEC },
	{ "equal_cpu", equal_cpu, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "equal_gpu", equal_gpu, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "in_turn", in_turn, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "hidden_logging", hidden_logging, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "slow_dispatch", slow_dispatch, NOBODY, NOBODY, 1, 1, NULL, 0 },
	{ "server", server, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "array_of_tasks", array_of_tasks, NOBODY, NOBODY, NOBODY, 1, NULL, 0 },
	{ "unrelated", unrelated, NOBODY, NOBODY, NOBODY, 0, NULL, 0 },
	{ "two_hosts", two_hosts, 2, 2, NOBODY, 1, NULL, 300 * USEC },
	{ "two_jobs", two_jobs, 3, 3, NOBODY, 2, "away from CUDA", MSEC },
};

#endif
