// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which processes are ranks of one job: something ties them together (collectives, or
 * labels that say so), they launch the same kernels, and they go in step.
 */
#include <math.h>
#include <string.h>

#include "diagnose/ranks.h"

#define LEAST_LAUNCHES 20
#define LEAST_STEPS 5

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Collectives bind processes; so do labels of one launcher that number them. */
static bool tied(const struct rank_look *a, const struct rank_look *b)
{
	return (a->collectives && b->collectives) || (a->rank && b->rank);
}

/* Each launch of one that the other has too, as a share of all. */
static double alike(const struct rank_look *a, const struct rank_look *b)
{
	double common = 0;

	for (size_t i = 0, k = 0; i < a->parts_count && k < b->parts_count;) {
		uint32_t x = a->parts[i].key, y = b->parts[k].key;
		double share, other;

		if (x != y) {
			i += x < y;
			k += y < x;
			continue;
		}
		share = (double)a->parts[i++].launches / (double)a->launches;
		other = (double)b->parts[k++].launches / (double)b->launches;
		common += share < other ? share : other;
	}
	return common;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= RANK_IN_STEP * (a > b ? a : b);
}

/* Mean length of its steps, ns; 0: has too few. */
static double period_of(const struct rank_look *l)
{
	const struct steps *v = l->steps;
	double ns = 0;

	if (v->count <= LEAST_STEPS)
		return 0;
	for (size_t i = 0; i + 1 < v->count; i++)
		if (!v->cut[i])
			ns += (double)steps_length(v, i);
	return ns / (double)steps_whole(v);
}

/* Have launched as much as each other at any time, but for a step. */
static bool abreast(const struct ranks *r, const struct rank_look *a, const struct rank_look *b)
{
	double n = 0, m = 0, apart = 0, step = 0;

	for (int i = 0; i < RANK_BLOCKS; i++) {
		if (a->ns[i] < r->block_ns / 2 || b->ns[i] < r->block_ns / 2)
			continue;
		n += a->launched[i];
		m += b->launched[i];
		apart = fabs(n - m) > apart ? fabs(n - m) : apart;
	}
	if (a->steps->count > LEAST_STEPS)
		step = (double)a->launches / (double)(a->steps->count - 1);
	return n > 0 && m > 0 && apart <= RANK_IN_STEP * (n > m ? n : m) + step;
}

/*
 * Ranks that wait for each other make their steps in the same time. A rank of which other
 * steps are found, as of one that logs every tenth, still launches as much as they do.
 */
static bool in_step(const struct ranks *r, const struct rank_look *a, const struct rank_look *b)
{
	double x = period_of(a), y = period_of(b);

	return (x > 0 && y > 0 && near(x, y)) || abreast(r, a, b);
}

static bool peers(const struct ranks *r, const struct rank_look *a, const struct rank_look *b)
{
	return b->whole && b->launches >= LEAST_LAUNCHES && tied(a, b) &&
	       alike(a, b) >= RANK_ALIKE && in_step(r, a, b);
}

/* Two processes that say they are the same rank are of two jobs. */
static bool any_twice(const struct ranks *r, uint32_t job)
{
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < i && r->of[i].job == job && r->looks[i].rank; k++)
			if (r->of[k].job == job &&
			    same_text(r->looks[k].rank, r->looks[i].rank) &&
			    same_text(r->looks[k].host, r->looks[i].host))
				return true;
	return false;
}

static uint32_t parent_of(const struct ranks *r, size_t look)
{
	return r->s->processes[r->looks[look].process].ppid;
}

/* Takes out of the job whom `stays` does not want; how many are left. */
static size_t reduce(struct ranks *r, uint32_t job, bool by_parent, size_t first)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (r->of[i].job != job)
			continue;
		if (by_parent && parent_of(r, i) == parent_of(r, first))
			n++;
		else
			r->of[i].job = UINT32_MAX;
	}
	return n;
}

/* The job of one process: how many are in it, less than 2 if there is none. */
static size_t job_from(struct ranks *r, size_t first)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (i != first && (r->of[i].job != UINT32_MAX ||
				   !peers(r, &r->looks[first], &r->looks[i])))
			continue;
		r->of[i].job = r->jobs;
		n++;
	}
	if (any_twice(r, r->jobs))
		n = reduce(r, r->jobs, true, first); /* of one launcher, then */
	if (n < 2 || any_twice(r, r->jobs))
		n = reduce(r, r->jobs, false, first);
	return n;
}

void ranks_group(struct ranks *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->of[i] = (struct rank_verdict){ .job = UINT32_MAX, .rank = r->looks[i].rank };
	for (size_t i = 0; i < r->count; i++) {
		const struct rank_look *l = &r->looks[i];
		size_t n;

		if (r->of[i].job != UINT32_MAX || !l->whole || l->launches < LEAST_LAUNCHES)
			continue;
		n = job_from(r, i);
		if (n < 2)
			continue;
		for (size_t k = 0; k < r->count; k++)
			if (r->of[k].job == r->jobs)
				r->of[k].ranks = n;
		r->jobs++;
	}
}
