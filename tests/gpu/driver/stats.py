# SPDX-License-Identifier: BSD-2-Clause
"""The statistics of the measurements, without numpy."""
import bisect
import math
import random
import statistics
import struct

RESAMPLES = 2000


def steps_read(path):
    """(end_ns, length_ns) of each step that a free job wrote; a torn last one is left out."""
    with open(path, "rb") as f:
        data = f.read()
    return list(struct.iter_unpack("qq", data[: len(data) // 16 * 16]))


def within(steps, begin, end):
    """Lengths of the steps that lie wholly between two instants; steps sorted by end."""
    at = bisect.bisect_left(steps, (begin, 0))
    found = []
    for ended, length in steps[at:]:
        if ended > end:
            break
        if ended - length >= begin:
            found.append(length)
    return found


def quantile(values, q):
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def interval(samples, statistic, seed=1, resamples=RESAMPLES):
    """Percentile bootstrap: (low, high) of 95 % of the statistic over resampled samples."""
    rng = random.Random(seed)
    values = sorted(
        statistic([rng.choice(samples) for _ in samples]) for _ in range(resamples))
    return values[int(0.025 * resamples)], values[int(0.975 * resamples) - 1]


def ratio_of_pairs(pairs):
    """Pairs (on, off), neighbours in time: the mean ratio and its 95 % interval."""
    ratios = [on / off for on, off in pairs]
    if len(ratios) < 2:
        return {"ratio": geometric_mean(ratios), "low": None, "high": None, "n": len(ratios)}
    low, high = interval(ratios, geometric_mean)
    return {"ratio": geometric_mean(ratios), "low": low, "high": high, "n": len(ratios)}


def ratio_of_groups(after, before, seed=2, resamples=RESAMPLES):
    """Median of one group over that of another, both resampled."""
    rng = random.Random(seed)

    def draw(values):
        return statistics.median([rng.choice(values) for _ in values])

    values = sorted(draw(after) / draw(before) for _ in range(resamples))
    return {
        "ratio": statistics.median(after) / statistics.median(before),
        "low": values[int(0.025 * resamples)], "high": values[int(0.975 * resamples) - 1],
        "n": min(len(after), len(before)),
    }


def ratio_of_means(above, below, seed=3, resamples=RESAMPLES):
    """(low, high) of 95 % of the geometric mean of one group over another's, both resampled."""
    rng = random.Random(seed)

    def draw(values):
        return geometric_mean([rng.choice(values) for _ in values])

    values = sorted(draw(above) / draw(below) for _ in range(resamples))
    return values[int(0.025 * resamples)], values[int(0.975 * resamples) - 1]


def half_width(result):
    """Of the interval, relative to the ratio; infinite while there is none."""
    if result["low"] is None:
        return math.inf
    return (result["high"] - result["low"]) / 2 / result["ratio"]


def buckets(steps, begin, end, width):
    """[(start_ns, median length)] of each bucket of that width that has steps."""
    found = []
    for start in range(begin, end - width + 1, width):
        lengths = within(steps, start, start + width)
        if lengths:
            found.append((start, statistics.median(lengths)))
    return found


def back_to(found, limit, run=3):
    """Start of the first of `run` buckets in a row whose median is below limit; None if none."""
    for i in range(len(found) - run + 1):
        if all(median <= limit for _, median in found[i:i + run]):
            return found[i][0]
    return None
