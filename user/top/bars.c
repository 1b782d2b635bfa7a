/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/bars.h"

#include <math.h>
#include <string.h>

/* Buckets 1 to GBPF_BUCKETS - 2 are eight to an octave; the first and last stand apart. */
static unsigned group_of(unsigned bucket, unsigned per)
{
	if (bucket == 0)
		return 0;
	if (bucket == GBPF_BUCKETS - 1)
		return 1 + (GBPF_BUCKETS - 3) / per + 1;
	return 1 + (bucket - 1) / per;
}

size_t bars_make(const struct histogram *h, struct bar *out, size_t max)
{
	unsigned first = 0, last = GBPF_BUCKETS - 1, per = 1;
	size_t count;

	while (first < GBPF_BUCKETS && !h->bucket[first])
		first++;
	if (first == GBPF_BUCKETS || max == 0)
		return 0;
	while (!h->bucket[last])
		last--;
	while (per < 256 && group_of(last, per) - group_of(first, per) + 1 > max)
		per *= 2;
	count = group_of(last, per) - group_of(first, per) + 1;
	if (count > max)
		return 0;
	memset(out, 0, count * sizeof(*out));
	for (unsigned i = 0; i < GBPF_BUCKETS; i++) {
		unsigned group = group_of(i, per), at = group - group_of(first, per);

		if (group < group_of(first, per) || at >= count)
			continue;
		if (!out[at].high)
			out[at].low = bucket_low(i);
		out[at].high = bucket_high(i);
		out[at].count += h->bucket[i];
	}
	return count;
}

size_t bars_find(const struct bar *bars, size_t count, int64_t ns)
{
	for (size_t i = 0; i < count; i++) {
		if (ns >= bars[i].low && ns < bars[i].high)
			return i;
	}
	return count;
}

size_t bars_length(uint64_t count, uint64_t largest, size_t columns, bool log_counts)
{
	double share;
	size_t length;

	if (!count || !largest)
		return 0;
	share = log_counts ? log1p((double)count) / log1p((double)largest) :
			     (double)count / (double)largest;
	length = (size_t)lround(share * 8 * (double)columns);
	return length ? length : 1;
}

const char *bars_draw(size_t eighths, bool utf8, char *buf, size_t size)
{
	static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
	size_t at = 0;

	if (size == 0)
		return buf;
	while (eighths > 0) {
		size_t n = eighths < 8 ? eighths : 8;
		const char *part = utf8 ? parts[n] : "#";

		if (at + strlen(part) >= size)
			break;
		memcpy(buf + at, part, strlen(part));
		at += strlen(part);
		eighths -= n;
	}
	buf[at] = '\0';
	return buf;
}
