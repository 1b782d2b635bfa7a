/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the sqlite writer share. Internal to export/. */
#ifndef GBPF_EXPORT_SQLITE_H
#define GBPF_EXPORT_SQLITE_H

#include <sqlite3.h>

#include "export/trace.h"
#include "export/trace_ids.h"
#include "export/trace_sync.h"
#include "model/map.h"

enum sqlite_table {
	TABLE_STRINGS, TABLE_RUNTIME, TABLE_KERNEL, TABLE_MEMCPY, TABLE_MEMSET, TABLE_SYNC,
	TABLE_NVTX, TABLE_OVERHEAD, TABLE_THREADS, TABLE_PROCESSES, TABLE_GPU, TABLE_DEVICE,
	TABLE_CONTEXT, TABLE_ENV, TABLE_START, TABLE_CAPTURE, TABLE_EXPORT, TABLE_DIAGNOSTIC,
	TABLE_STATE, TABLES,
};

struct sqlite_writer {
	const struct session *s;
	const struct export_options *o;
	sqlite3 *db;
	sqlite3_stmt *insert[TABLES];
	int64_t base;	/* CLOCK_MONOTONIC ns that the file counts from */
	char **strings; /* by id less 1; valid UTF-8 */
	size_t strings_count, strings_cap;
	struct map string_of; /* (hash, attempt) to id */
	uint32_t *api_names, *short_names, *full_names, *mangled_names; /* ids, 0: not yet */
	uint64_t *global_pids; /* by process */
	uint32_t *id_shifts;   /* of pids and tids in a merged file, by process */
	struct export_ids ids;
	struct export_syncs syncs;
	int err; /* the first, -errno */
};

/* ---- sqlite_schema.c ---- */
/* Creates all tables and what they are numbered by, and prepares their statements. */
void sqlite_schema(struct sqlite_writer *w);
void sqlite_exec(struct sqlite_writer *w, const char *sql);
void sqlite_fail(struct sqlite_writer *w, int code); /* of SQLite's; SQLITE_OK is none */

/* A row: values bound one after the other, then added. */
struct sqlite_row {
	struct sqlite_writer *w;
	sqlite3_stmt *stmt;
	int at;
};
struct sqlite_row sqlite_row(struct sqlite_writer *w, enum sqlite_table table);
void row_int(struct sqlite_row *r, int64_t value);
void row_known(struct sqlite_row *r, int64_t value); /* below 0: NULL */
void row_text(struct sqlite_row *r, const char *text); /* made valid UTF-8; NULL: NULL */
void row_null(struct sqlite_row *r);
void row_add(struct sqlite_row *r); /* columns not bound are NULL */

/* Id of a string; of those that are equal once they are valid UTF-8, the same. 0: an error. */
uint32_t sqlite_string(struct sqlite_writer *w, const char *text);

/* ---- sqlite_rows.c ---- */
int sqlite_rows(struct sqlite_writer *w, struct export_walk *walk, struct export_item *item,
		bool any);
uint64_t sqlite_global_tid(const struct sqlite_writer *w, uint32_t process, uint32_t tid);

/* ---- sqlite_about.c ---- */
void sqlite_about(struct sqlite_writer *w);

#endif
