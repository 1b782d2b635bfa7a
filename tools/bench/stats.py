# SPDX-License-Identifier: BSD-2-Clause
"""Medians, and how sure they are."""
import random
import statistics

RESAMPLES = 2000


def interval(resample, n, seed=1):
    """Bootstrap 95 % interval of resample(indices) over n observations."""
    rng = random.Random(seed)
    values = sorted(resample([rng.randrange(n) for _ in range(n)]) for _ in range(RESAMPLES))
    return [values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES) - 1]]


def median_interval(values):
    return interval(lambda at: statistics.median(values[i] for i in at), len(values))


def turns(samples, size):
    """One value a turn: the median of the samples taken in it."""
    return [statistics.median(samples[i:i + size]) for i in range(0, len(samples), size)]


def ratio(case, floor, bare):
    """Of medians, of two lists of turns that were interleaved, with its interval."""
    n = min(len(case), len(floor))

    def of(at):
        cost = statistics.median(case[i] for i in at) - bare
        return cost / (statistics.median(floor[i] for i in at) - bare)

    return of(range(n)), interval(of, n)
