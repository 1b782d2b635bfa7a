// SPDX-License-Identifier: BSD-2-Clause
/* Where the wall time of threads and processes went: thread_sum, proc_sum. */
#include "report/row.h"

static void fill_busy(struct row *r, const struct busy *b, int64_t wall)
{
	r->calls = (int64_t)b->calls;
	r->launches = (int64_t)b->launches;
	r->graph_launches = (int64_t)b->graph_launches;
	r->errors = known_errors((int64_t)b->errors, b->entries, b->entered);
	r->wall = wall;
	r->rate = rate(r->launches + r->graph_launches, wall);
	if (b->unknown)
		return;
	r->dispatch = b->dispatch;
	r->waiting = b->waiting;
	r->elsewhere = busy_elsewhere(b, wall);
	r->dispatch_share = share(r->dispatch, wall);
	r->waiting_share = share(r->waiting, wall);
	r->elsewhere_share = share(r->elsewhere, wall);
}

void fill_process(const struct session_process *p, struct row *r)
{
	r->pid = p->pid;
	r->ns_pid = p->ns_pid ? p->ns_pid : NA;
	r->comm = p->comm && *p->comm ? p->comm : NULL;
	r->cmdline = p->cmdline && *p->cmdline ? p->cmdline : NULL;
	r->exe = p->exe && *p->exe ? p->exe : NULL;
	r->container = p->container && *p->container ? p->container : NULL;
}

static int build_thread(struct report_ctx *c)
{
	const struct session *s = c->s;
	int err = 0;

	for (size_t i = 0; i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];
		const struct session_process *p = &s->processes[t->process];
		struct busy b;
		struct row *r;

		err = rows_add(&c->rows, &r);
		if (err)
			break;
		fill_process(p, r);
		r->tid = t->tid;
		r->ns_tid = t->ns_tid ? t->ns_tid : NA;
		r->name = t->comm && *t->comm ? t->comm : r->comm;
		thread_busy(s, t, NULL, &b);
		fill_busy(r, &b, process_wall(s, p));
	}
	return err;
}

static const struct column columns_thread[] = {
	COLUMN("dispatch_pct", "Dispatch, % of wall", INT, PERCENT, dispatch_share),
	COLUMN("waiting_pct", "Waiting, % of wall", INT, PERCENT, waiting_share),
	COLUMN("elsewhere_pct", "Elsewhere, % of wall", INT, PERCENT, elsewhere_share),
	TIME_OPTIONAL("dispatch_ns", "Dispatch", dispatch, wall),
	TIME_OPTIONAL("waiting_ns", "Waiting", waiting, wall),
	TIME_OPTIONAL("elsewhere_ns", "Elsewhere", elsewhere, wall),
	COLUMN("wall_ns", "Wall", INT, NS, wall),
	COLUMN("calls", "Calls", INT, NONE, calls),
	COLUMN("launches", "Launches", INT, NONE, launches),
	COLUMN_OPTIONAL("graph_launches", "Graph launches", INT, NONE, graph_launches),
	COLUMN("launches_per_s", "Launches/s", INT, MILLI, rate),
	COLUMN_OPTIONAL("errors", "Errors", INT, NONE, errors),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("tid", "TID", INT, ID, tid),
	COLUMN_OPTIONAL("ns_tid", "TID in container", INT, ID, ns_tid),
	COLUMN("name", "Thread", TEXT, NONE, name),
	{ 0 },
};

const struct view view_thread = {
	.about = { "thread_sum", NULL, "each thread: dispatching, waiting, elsewhere" },
	.columns = columns_thread,
	.sort = "-calls",
	.bases = "Wall: the time traced while the thread's process lived; shares and rates are of "
		 "it.",
	.build = build_thread,
};

/* ---- proc_sum ---- */

static const char *process_notes(const struct session_process *p)
{
	if (p->flags & RECORD_PROCESS_ENTRY_ONLY)
		return "entry-only: no durations";
	if (p->flags & RECORD_PROCESS_SECCOMP)
		return "has a seccomp filter";
	return NULL;
}

/* As a shell gives it: 128+n for the signal n. */
static int64_t exit_status(int32_t wait_status)
{
	return wait_status & 0x7f ? 128 + (wait_status & 0x7f) : wait_status >> 8 & 0xff;
}

static void fill_proc(const struct session *s, const struct session_process *p, struct row *r)
{
	fill_process(p, r);
	r->name = r->comm;
	r->ppid = p->ppid ? p->ppid : NA;
	r->uid = p->uid != UINT32_MAX ? (int64_t)p->uid : NA;
	r->begin = p->begun ? p->begun - s->begin : NA;
	r->end = p->exited ? p->last - s->begin : NA;
	r->exit_code = p->exited ? exit_status(p->exit_code) : NA;
	r->state = p->exited ? "ended" : "running";
	r->notes = process_notes(p);
	r->wall = process_wall(s, p);
	r->dispatch = r->waiting = 0;
}

static void add_busy(struct row *r, const struct busy *b)
{
	r->threads++;
	r->calls += (int64_t)b->calls;
	r->launches += (int64_t)b->launches;
	r->graph_launches += (int64_t)b->graph_launches;
	r->errors += (int64_t)b->errors;
	r->entries += b->entries;
	r->entered += b->entered;
	if (b->unknown || r->dispatch == NA) {
		r->dispatch = r->waiting = NA;
		return;
	}
	if (__builtin_add_overflow(r->dispatch, b->dispatch, &r->dispatch))
		r->dispatch = INT64_MAX;
	if (__builtin_add_overflow(r->waiting, b->waiting, &r->waiting))
		r->waiting = INT64_MAX;
}

static int build_proc(struct report_ctx *c)
{
	const struct session *s = c->s;
	struct row *r;
	int err = 0;

	for (size_t i = 0; i < s->processes_count && !err; i++) {
		err = rows_add(&c->rows, &r);
		if (!err)
			fill_proc(s, &s->processes[i], r);
	}
	for (size_t i = 0; i < s->threads_count && !err; i++) {
		struct busy b;

		thread_busy(s, &s->threads[i], NULL, &b);
		add_busy(&c->rows.items[s->threads[i].process], &b);
	}
	for (size_t i = 0; i < c->rows.count && !err; i++) {
		r = &c->rows.items[i];
		r->rate = rate(r->launches + r->graph_launches, r->wall);
		r->errors = known_errors(r->errors, r->entries, r->entered);
	}
	return err;
}

static const struct column columns_proc[] = {
	COLUMN("calls", "Calls", INT, NONE, calls),
	COLUMN("launches", "Launches", INT, NONE, launches),
	COLUMN_OPTIONAL("graph_launches", "Graph launches", INT, NONE, graph_launches),
	COLUMN("launches_per_s", "Launches/s", INT, MILLI, rate),
	TIME("dispatch_ns", "Dispatch", dispatch, wall),
	TIME("waiting_ns", "Waiting", waiting, wall),
	COLUMN("wall_ns", "Wall", INT, NS, wall),
	COLUMN_OPTIONAL("threads", "Threads", INT, NONE, threads),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN_OPTIONAL("begin_ns", "Begun at", INT, NS, begin),
	COLUMN_OPTIONAL("end_ns", "Ended at", INT, NS, end),
	COLUMN_OPTIONAL("exit_code", "Exit status", INT, NONE, exit_code),
	COLUMN("state", "State", TEXT, NONE, state),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN_OPTIONAL("ppid", "Parent", INT, ID, ppid),
	COLUMN_OPTIONAL("ns_pid", "PID in container", INT, ID, ns_pid),
	COLUMN_OPTIONAL("uid", "UID", INT, ID, uid),
	COLUMN_OPTIONAL("container", "Container", TEXT, NONE, container),
	COLUMN_OPTIONAL("notes", "Notes", TEXT, NONE, notes),
	COLUMN("name", "Name", TEXT, NONE, name),
	COLUMN_OPTIONAL("exe", "Executable", TEXT, NONE, exe),
	COLUMN_OPTIONAL("cmdline", "Command", TEXT, NONE, cmdline),
	{ 0 },
};

const struct view view_proc = {
	.about = { "proc_sum", NULL, "each process: calls, launches, time, how it ended" },
	.columns = columns_proc,
	.sort = "-calls",
	.bases = "Wall: the time traced while the process lived; rates are of it. Dispatch and "
		 "waiting: all threads together.",
	.build = build_proc,
};
