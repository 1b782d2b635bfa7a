// SPDX-License-Identifier: BSD-2-Clause
#include "target/watch_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "target/parse.h"

struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
};

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

struct task_record { /* fork and exit */
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static const unsigned char *at(const struct watch_range *r, uint64_t pos)
{
	return r->data + (pos & (r->size - 1));
}

int watch_record_peek(const struct watch_range *r, uint64_t *bytes, int64_t *ts)
{
	struct perf_event_header header;
	uint64_t have = r->head - r->tail;

	if (!have)
		return -EAGAIN;
	if (have > r->size || have < sizeof(header) || r->tail % 8)
		return -EBADMSG;
	/* Aligned words never wrap: header and time can be read in place. */
	memcpy(&header, at(r, r->tail), sizeof(header));
	if (header.size % 8 || header.size > have ||
	    header.size < sizeof(header) + sizeof(struct sample_id))
		return -EBADMSG;
	*bytes = header.size;
	memcpy(ts, at(r, r->tail + header.size - sizeof(*ts)), sizeof(*ts));
	return 0;
}

/* The record in one piece: in place, or copied where it wraps around. */
static const unsigned char *whole(const struct watch_range *r, size_t size, unsigned char *scratch)
{
	size_t first = (size_t)(r->size - (r->tail & (r->size - 1)));

	if (size <= first)
		return at(r, r->tail);
	memcpy(scratch, at(r, r->tail), first);
	memcpy(scratch + first, r->data, size - first);
	return scratch;
}

/* A string that ends before the record's sample_id does; NULL if it does not. */
static const char *text_in(const unsigned char *record, size_t from, size_t size)
{
	size_t end = size - sizeof(struct sample_id);

	if (from >= end || !memchr(record + from, '\0', end - from))
		return NULL;
	return (const char *)record + from;
}

/* The path without " (deleted)", which is cut off in scratch: the ring is left as it is. */
static const char *cut_deleted(const unsigned char *record, const char *path, size_t len,
			       unsigned char *scratch)
{
	size_t offset = (size_t)((const unsigned char *)path - record);

	if (record != scratch)
		memcpy(scratch + offset, path, len);
	scratch[offset + len] = '\0';
	return (const char *)scratch + offset;
}

static bool decode_map(const unsigned char *record, size_t size, unsigned char *scratch,
		       bool (*want)(const char *path, void *ctx), void *ctx,
		       struct watch_notice *out)
{
	const struct mmap2_record *m = (const void *)record;
	const char *path = text_in(record, sizeof(*m), size);
	size_t len, kept;

	/* "//anon" and "//toolong" are no paths, "[vdso]" and "anon_inode:" neither. */
	if (!path || path[0] != '/' || path[1] == '/' || !(m->prot & PROT_EXEC))
		return false;
	if ((m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || !m->ino ||
	    m->addr + m->len <= m->addr)
		return false;
	if (want && !want(path, ctx))
		return false;
	len = strlen(path);
	kept = parse_deleted(path, len);
	out->kind = WATCH_MAP;
	out->pid = m->pid;
	out->tid = m->tid;
	out->map = (struct mapping){
		.start = m->addr,
		.end = m->addr + m->len,
		.offset = m->pgoff,
		.dev = makedev(m->maj, m->min),
		.ino = m->ino,
		.path = kept < len ? cut_deleted(record, path, kept, scratch) : path,
		.deleted = kept < len,
	};
	return true;
}

/* Of threads' births and deaths only those of whole processes are of use. */
static bool decode_task(const unsigned char *record, size_t size, struct watch_notice *out)
{
	const struct task_record *t = (const void *)record;
	bool born = t->header.type == PERF_RECORD_FORK;

	if (size < sizeof(*t) + sizeof(struct sample_id))
		return false;
	if (born ? t->pid == t->ppid : t->pid != t->tid)
		return false;
	out->kind = born ? WATCH_FORK : WATCH_EXIT;
	out->pid = t->pid;
	out->tid = t->tid;
	out->ppid = t->ppid;
	return true;
}

static bool decode_comm(const unsigned char *record, size_t size, struct watch_notice *out)
{
	const struct comm_record *c = (const void *)record;

	out->comm = text_in(record, sizeof(*c), size);
	if (!out->comm)
		return false;
	out->kind = c->header.misc & PERF_RECORD_MISC_COMM_EXEC ? WATCH_EXEC : WATCH_COMM;
	out->pid = c->pid;
	out->tid = c->tid;
	return true;
}

static bool decode_lost(const unsigned char *record, size_t size, struct watch_notice *out)
{
	const struct lost_record *l = (const void *)record;

	if (size < sizeof(*l) + sizeof(struct sample_id))
		return false;
	out->kind = WATCH_LOST;
	out->lost = l->lost;
	return true;
}

/* Perf says 0 or -1 for a process outside our pid namespace or already reaped. */
static bool nameless(const struct watch_notice *n)
{
	return n->kind != WATCH_LOST && (!n->pid || n->pid == UINT32_MAX);
}

bool watch_record_decode(const struct watch_range *r, unsigned char *scratch,
			 bool (*want)(const char *path, void *ctx), void *ctx,
			 struct watch_notice *out)
{
	struct perf_event_header header;
	const unsigned char *record;
	bool useful;

	memset(out, 0, sizeof(*out));
	memcpy(&header, at(r, r->tail), sizeof(header));
	memcpy(&out->ts, at(r, r->tail + header.size - sizeof(out->ts)), sizeof(out->ts));
	record = whole(r, header.size, scratch);
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		useful = decode_map(record, header.size, scratch, want, ctx, out);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		useful = decode_task(record, header.size, out);
		break;
	case PERF_RECORD_COMM:
		useful = decode_comm(record, header.size, out);
		break;
	case PERF_RECORD_LOST:
		useful = decode_lost(record, header.size, out);
		break;
	default:
		return false;
	}
	return useful && !nameless(out);
}
