// SPDX-License-Identifier: BSD-2-Clause
/*
 * A database with the tables that "nsys export --type sqlite" makes, so that scripts and
 * queries written for it run. One transaction into a new file without a journal: what is
 * not whole is never seen under its name (trace_file.c).
 */
#include "export/sqlite.h"

#include <errno.h>
#include <stdlib.h>

#define CACHE "PRAGMA cache_size=-16384;" /* KiB */

static int open_database(struct sqlite_writer *w, const char *path)
{
	int code = sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
						 SQLITE_OPEN_NOMUTEX, NULL);

	sqlite_fail(w, code);
	sqlite_exec(w, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
		       "PRAGMA locking_mode=EXCLUSIVE; PRAGMA encoding='UTF-8';" CACHE);
	sqlite_exec(w, "BEGIN");
	sqlite_schema(w);
	return w->err;
}

/* A host of a merged file is the hardware of nsys' numbers. */
static void number_process(struct sqlite_writer *w, uint32_t process)
{
	const struct session_process *p = &w->s->processes[process];
	const char *label = session_label(w->s, process, "host_pid");
	uint32_t pid = label ? (uint32_t)strtoul(label, NULL, 10) : p->pid;
	uint64_t host = ((uint64_t)p->pid - pid) >> 22 & 0x7f;

	w->id_shifts[process] = p->pid - pid;
	w->global_pids[process] = host << 56 | ((uint64_t)pid & 0xffffff) << 24;
}

static int allocate(struct sqlite_writer *w)
{
	const struct session *s = w->s;
	int err;

	w->api_names = calloc(s->apis_count + 1, sizeof(*w->api_names));
	w->short_names = calloc(s->kernels_count + 1, sizeof(*w->short_names));
	w->full_names = calloc(s->kernels_count + 1, sizeof(*w->full_names));
	w->mangled_names = calloc(s->kernels_count + 1, sizeof(*w->mangled_names));
	w->global_pids = calloc(s->processes_count + 1, sizeof(*w->global_pids));
	w->id_shifts = calloc(s->processes_count + 1, sizeof(*w->id_shifts));
	if (!w->api_names || !w->short_names || !w->full_names || !w->mangled_names ||
	    !w->global_pids || !w->id_shifts)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->processes_count; i++)
		number_process(w, i);
	err = export_ids_new(&w->ids, s);
	return err ? err : export_syncs_new(&w->syncs, s);
}

static void writer_free(struct sqlite_writer *w)
{
	for (unsigned i = 0; i < TABLES; i++)
		sqlite3_finalize(w->insert[i]);
	sqlite3_close(w->db);
	for (size_t i = 0; i < w->strings_count; i++)
		free(w->strings[i]);
	map_free(&w->string_of);
	export_ids_free(&w->ids);
	export_syncs_free(&w->syncs);
	free(w->strings);
	free(w->api_names);
	free(w->short_names);
	free(w->full_names);
	free(w->mangled_names);
	free(w->global_pids);
	free(w->id_shifts);
}

static int fill(struct sqlite_writer *w)
{
	struct export_item item;
	struct export_walk *walk;
	int err = export_walk_new(&walk, w->s, w->o);
	bool any;

	if (err)
		return err;
	any = export_walk_next(walk, &item);
	w->base = any && item.begin < w->s->begin ? item.begin : w->s->begin;
	sqlite_about(w);
	err = sqlite_rows(w, walk, &item, any);
	export_walk_free(walk);
	if (!err) {
		sqlite_exec(w, "COMMIT");
		err = w->err;
	}
	return err;
}

static int write_sqlite(const struct session *s, const struct export_options *o,
			struct export_file *f, char *why, size_t size)
{
	struct sqlite_writer w = {.s = s, .o = o};
	int err = allocate(&w);

	if (!err)
		err = open_database(&w, export_path(f));
	if (!err)
		err = fill(&w);
	if (w.db && err == -EIO)
		snprintf(why, size, "%s", sqlite3_errmsg(w.db));
	writer_free(&w);
	return err;
}

static const char *const endings[] = {".sqlite", ".sqlite3", ".db", NULL};

const struct export_writer export_sqlite = {
	.name = "sqlite",
	.endings = endings,
	.what = "SQLite, with the tables that nsys exports",
	.own_file = true,
	.write = write_sqlite,
};
