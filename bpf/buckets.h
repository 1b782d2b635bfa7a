/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which bucket of a histogram a duration falls into: the same code on both sides. */
#ifndef GBPF_BUCKETS_H
#define GBPF_BUCKETS_H

/*
 * Bucket 0 holds what is below 64 ns, then come eight buckets an octave, and
 * the last of all holds what is 2^38 ns (275 s) or longer.
 */
#define GBPF_BUCKET_MIN_SHIFT 6
#define GBPF_BUCKET_MAX_SHIFT 38
#define GBPF_BUCKETS ((GBPF_BUCKET_MAX_SHIFT - GBPF_BUCKET_MIN_SHIFT) * 8 + 2)

static inline unsigned int gbpf_log2(unsigned long long v) /* v is not 0 */
{
	unsigned int r = 0;

	/* no clz: BPF has no such instruction before v4 */
	if (v >> 32) {
		v >>= 32;
		r += 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return r + (unsigned int)(v >> 1);
}

static inline unsigned int gbpf_bucket(unsigned long long ns)
{
	unsigned int shift;

	if (ns < 1ULL << GBPF_BUCKET_MIN_SHIFT)
		return 0;
	if (ns >= 1ULL << GBPF_BUCKET_MAX_SHIFT)
		return GBPF_BUCKETS - 1;
	shift = gbpf_log2(ns);
	return 1 + (shift - GBPF_BUCKET_MIN_SHIFT) * 8 +
	       (unsigned int)(ns >> (shift - 3) & 7);
}

#endif
