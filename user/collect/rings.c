/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/gbpf.h"

#define BATCH 1024
#define PAUSE_MIN_NS 2000000LL
#define PAUSE_MAX_NS 100000000LL
#define BURST_BYTES_PER_NS 0.06 /* one CPU flat out writes about 60 MB/s of records */

struct rings {
	struct ring_buffer *buffer;
	struct probes *probes;
	struct collect_sink sink;
	struct collect_stats stats;
	size_t round;	  /* records in this round */
	int error;	  /* what a sink said */
	size_t count;	  /* events in the batch */
	struct event batch[BATCH];
};

static int batch_flush(struct rings *r)
{
	size_t count = r->count;

	r->count = 0;
	if (!count)
		return 0;
	r->stats.events += count;
	return r->sink.events(r->sink.ctx, r->batch, count);
}

static int record_take(struct rings *r, void *data, size_t size)
{
	switch (decode(data, size, &r->batch[r->count])) {
	case DECODED_EVENT:
		if (++r->count == BATCH)
			return batch_flush(r);
		return 0;
	case DECODED_NAME:
		return r->sink.name(r->sink.ctx, data);
	case DECODED_PROCESS:
		return r->sink.process(r->sink.ctx, data);
	case DECODED_NOTHING:
		return 0;
	case DECODED_MALFORMED:
		break;
	}
	r->stats.malformed++;
	return 0;
}

/* A negative return stops libbpf's loop, after this record. */
static int on_record(void *ctx, void *data, size_t size)
{
	struct rings *r = ctx;

	r->stats.records++;
	r->stats.bytes += size + 8; /* and the ring's own header */
	r->error = record_take(r, data, size);
	if (r->error)
		return -ECANCELED;
	return ++r->round < RINGS_ROUND_MOST ? 0 : -EAGAIN;
}

int rings_new(struct rings **out, struct probes *p, const struct collect_sink *sink)
{
	struct rings *r = calloc(1, sizeof(*r));
	size_t i;
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->probes = p;
	r->sink = *sink;
	r->buffer = ring_buffer__new(probes_ring_fd(p, 0), on_record, r, NULL);
	if (!r->buffer)
		err = -errno;
	for (i = 1; !err && i < probes_ring_count(p); i++)
		err = ring_buffer__add(r->buffer, probes_ring_fd(p, i), on_record, r);
	if (err) {
		rings_free(r);
		return err;
	}
	*out = r;
	return 0;
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	ring_buffer__free(r->buffer);
	free(r);
}

int rings_consume(struct rings *r)
{
	int err;

	r->round = 0;
	r->error = 0;
	err = ring_buffer__consume(r->buffer);
	if (r->error)
		return r->error;
	if (err < 0 && err != -EAGAIN)
		return err;
	err = batch_flush(r);
	return err ? err : (int)r->round;
}

int rings_finish(struct rings *r)
{
	int fd = probes_polls_fd(r->probes), err = 0;
	uint64_t key, next, *at = NULL;
	struct gbpf_poll_state s;

	while (!err && !bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(fd, &key, &s) || (!s.count && !s.entered))
			continue;
		decode_open_poll(&s, &r->batch[r->count]);
		if (++r->count == BATCH)
			err = batch_flush(r);
	}
	return err ? err : batch_flush(r);
}

const struct collect_stats *rings_stats(const struct rings *r)
{
	return &r->stats;
}

int64_t rings_pause(const struct rings *r, int64_t round_ns, uint64_t round_bytes)
{
	double room = (double)probes_ring_bytes(r->probes);
	double burst = room / 2 / BURST_BYTES_PER_NS, rate, pause;

	pause = burst < PAUSE_MAX_NS ? burst : PAUSE_MAX_NS;
	if (round_bytes && round_ns > 0) {
		rate = (double)round_bytes / (double)round_ns;
		if (room / 8 / rate < pause)
			pause = room / 8 / rate;
	}
	return pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : (int64_t)pause;
}
