// SPDX-License-Identifier: BSD-2-Clause
/*
 * From notices to processes: a pid may name several of them one after another,
 * and each may run several programs. Epochs say which, at any time.
 */
#include "model/internal.h"

/* /proc gives start times in clock ticks, the kernel in ns; no pid returns that fast. */
#define START_SLACK (20 * INT64_C(1000000))

static int note_order(const void *pa, const void *pb)
{
	const struct process_note *a = pa, *b = pb;

	if (a->r.pid != b->r.pid)
		return a->r.pid < b->r.pid ? -1 : 1;
	if (a->r.ts != b->r.ts)
		return a->r.ts < b->r.ts ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int epoch_order(const void *pa, const void *pb)
{
	const struct epoch *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static int epoch_add(struct session_builder *b, uint32_t pid, uint32_t process, int64_t from)
{
	int err = GROW(b->epochs, b->epochs_cap, b->epochs_count + 1);

	if (!err)
		b->epochs[b->epochs_count++] = (struct epoch){ from, pid, process };
	return err;
}

static int process_add(struct session_builder *b, uint32_t pid, int64_t start)
{
	struct session *s = b->s;
	int err = GROW(s->processes, b->processes_cap, s->processes_count + 1);

	if (err)
		return err;
	s->processes[s->processes_count] = (struct session_process){
		.pid = pid, .uid = UINT32_MAX, .start = start,
		.first = INT64_MIN, .last = INT64_MAX };
	s->processes_count++;
	return 0;
}

static bool same_process(const struct session_process *p, const struct record_process *r)
{
	if (p->pid != r->pid)
		return false;
	if (p->start > 0 && r->start > 0) {
		uint64_t a = (uint64_t)p->start, b = (uint64_t)r->start;

		return (a > b ? a - b : b - a) < (uint64_t)START_SLACK;
	}
	return !p->exited || r->event == RECORD_PROCESS_EXIT;
}

static int replace_text(char **field, const char *text, bool always)
{
	char *copy;

	if (*field && !always && (**field || !*text))
		return 0;
	if (*field && !*text)
		return 0;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int process_update(struct session_process *p, const struct record_process *r)
{
	bool newer = r->event == RECORD_PROCESS_EXEC;

	if (r->start > 0 && p->start <= 0)
		p->start = r->start;
	if (r->ppid)
		p->ppid = r->ppid;
	if (r->ns_pid)
		p->ns_pid = r->ns_pid;
	if (r->uid || p->uid == UINT32_MAX)
		p->uid = r->uid;
	p->flags |= r->flags;
	if (r->event == RECORD_PROCESS_FORK && p->first == INT64_MIN)
		p->first = r->ts;
	if ((r->event == RECORD_PROCESS_FORK || newer) && !p->begun)
		p->begun = r->ts;
	if (r->event == RECORD_PROCESS_EXIT && !p->exited) {
		p->exited = true;
		p->last = r->ts;
		p->exit_code = r->exit_code;
	}
	return replace_text(&p->comm, r->comm, newer) |
	       replace_text(&p->cmdline, r->cmdline, newer) |
	       replace_text(&p->exe, r->exe, newer) |
	       replace_text(&p->container, r->container, newer);
}

/* b->notes are sorted: the process a note may continue is the last one. */
static int process_note(struct session_builder *b, const struct record_process *r)
{
	struct session *s = b->s;
	size_t count = s->processes_count;
	struct session_process *p = count ? &s->processes[count - 1] : NULL;
	bool known_pid = p && p->pid == r->pid;
	int64_t from = 0;
	int err = 0;

	if (!p || !same_process(p, r)) {
		if (known_pid)
			from = p->exited ? p->last : r->ts;
		err = process_add(b, r->pid, r->start);
		if (!err)
			err = epoch_add(b, r->pid, (uint32_t)s->processes_count - 1, from);
		if (err)
			return err;
	}
	p = &s->processes[s->processes_count - 1];
	if (r->event == RECORD_PROCESS_EXEC)
		err = epoch_add(b, r->pid, (uint32_t)s->processes_count - 1, r->ts);
	return err ? err : process_update(p, r);
}

/* Processes of which only calls or GPU work were seen. */
static int process_unknown(struct session_builder *b, struct map *known, uint32_t pid)
{
	struct session_process *p;
	int err;

	if (map_get(known, pid, 0) != MAP_NONE)
		return 0;
	err = map_put(known, pid, 0, 0);
	if (!err)
		err = process_add(b, pid, 0);
	if (err)
		return err;
	p = &b->s->processes[b->s->processes_count - 1];
	err = replace_text(&p->comm, "", true) | replace_text(&p->cmdline, "", true) |
	      replace_text(&p->exe, "", true) | replace_text(&p->container, "", true);
	return err ? err : epoch_add(b, pid, (uint32_t)b->s->processes_count - 1, 0);
}

int builder_processes(struct session_builder *b)
{
	struct map known = { 0 };
	int err = 0;

	if (b->notes_count)
		qsort(b->notes, b->notes_count, sizeof(*b->notes), note_order);
	for (size_t i = 0; i < b->notes_count && !err; i++) {
		err = process_note(b, &b->notes[i].r);
		if (!err)
			err = map_put(&known, b->notes[i].r.pid, 0, 0);
	}
	for (size_t i = 0; i < b->queues_count && !err; i++)
		err = process_unknown(b, &known, b->queues[i].pid);
	for (size_t i = 0; i < b->works.pids_count && !err; i++)
		err = process_unknown(b, &known, b->works.pids[i]);
	map_free(&known);
	if (!err && b->epochs_count)
		qsort(b->epochs, b->epochs_count, sizeof(*b->epochs), epoch_order);
	return err;
}

size_t epochs_of(const struct session_builder *b, uint32_t pid, size_t *count)
{
	size_t low = 0, high = b->epochs_count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->epochs[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < b->epochs_count && b->epochs[end].pid == pid; end++)
		;
	*count = end - low;
	return low;
}

uint32_t epoch_at(const struct session_builder *b, uint32_t pid, int64_t ts)
{
	size_t count;
	size_t first = epochs_of(b, pid, &count);

	if (!count)
		return NO_INDEX;
	while (count > 1 && b->epochs[first + 1].from <= ts) {
		first++;
		count--;
	}
	return (uint32_t)first;
}
