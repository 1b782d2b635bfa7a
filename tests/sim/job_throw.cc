// SPDX-License-Identifier: BSD-2-Clause
// Exceptions and destructors in the frames around a job's calls.

#include "job_throw.h"

namespace
{
struct passage {
	int levels;
};

int descend(int level, job_between between, void *user)
{
	int below;

	between(user);
	if (level == 0)
		throw passage{ level };
	below = descend(level - 1, between, user);
	between(user);
	return below + 1;
}

struct counted {
	unsigned *count;
	~counted() { ++*count; }
};
} // namespace

int job_throw(int levels, job_between between, void *user)
{
	try {
		return descend(levels, between, user);
	} catch (const passage &p) {
		between(user);
		return -1 - p.levels;
	}
}

void job_guarded(job_between fn, void *user, unsigned *count)
{
	counted guard{ count };

	fn(user);
}
