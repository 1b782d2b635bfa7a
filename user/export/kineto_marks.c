// SPDX-License-Identifier: BSD-2-Clause
/* What is neither call nor work: windows, steps, and time that CUPTI took itself. */
#include <errno.h>
#include <stdlib.h>

#include "export/kineto.h"

static int mark_order(const void *pa, const void *pb)
{
	const struct kineto_mark *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void add(struct kineto *k, int64_t begin, int64_t end, unsigned kind, size_t number)
{
	struct kineto_mark *m = &k->marks[k->marks_count];

	if (!export_wants(k->o, begin, end))
		return;
	*m = (struct kineto_mark){begin, end, kind, (uint32_t)number};
	k->marks_count++;
}

/* A window is cut to what was asked for; everything else is whole. */
static void add_window(struct kineto *k, const struct record_window *w, size_t number)
{
	int64_t begin = w->begin > k->o->from ? w->begin : k->o->from;
	int64_t end = w->end < k->o->to ? w->end : k->o->to;

	if (begin < end)
		add(k, begin, end, MARK_WINDOW, number);
}

int kineto_marks(struct kineto *k)
{
	const struct session *s = k->s;
	int err = k->process == UINT32_MAX ? 0 : steps_find(s, k->process, &k->steps);
	size_t steps = k->steps.count ? k->steps.count - 1 : 0, number = 0;

	if (!err)
		err = export_lanes_new(&k->overhead_lanes, true);
	if (err)
		return err;
	k->marks = calloc(s->windows_count + s->overheads_count + s->losses_count + steps + 1,
			  sizeof(*k->marks));
	if (!k->marks)
		return -ENOMEM;
	for (size_t i = 0; i < s->windows_count; i++)
		add_window(k, &s->windows[i], i);
	for (size_t i = 0; i < steps; i++)
		if (!k->steps.cut[i])
			add(k, k->steps.begins[i], k->steps.begins[i + 1], MARK_STEP, number++);
	for (size_t i = 0; i < s->overheads_count; i++)
		if (s->overheads[i].process == k->process)
			add(k, s->overheads[i].begin, s->overheads[i].end, MARK_OVERHEAD,
			    s->overheads[i].kind);
	for (size_t i = 0; i < s->losses_count; i++)
		add(k, s->losses[i].ts, s->losses[i].ts, MARK_LOSS, i);
	qsort(k->marks, k->marks_count, sizeof(*k->marks), mark_order);
	return 0;
}

void kineto_marks_free(struct kineto *k)
{
	steps_free(&k->steps);
	export_lanes_free(k->overhead_lanes);
	free(k->marks);
}

/* CUpti_ActivityOverheadKind, in Kineto's words. */
static const char *overhead_name(uint32_t kind)
{
	static const char *const words[] = {
		"Driver Compiler", "Buffer Flush", "Instrumentation", "Resource",
		"Runtime Triggered Module Loading", "Lazy Function Loading",
		"Command Buffer Full", "Activity Buffer Request", "UVM Activity Init",
	};
	uint32_t number = kind == 1 ? 0 : kind >> 16;

	if (kind != 1 && (kind & 0xffff || !number))
		return "Unknown";
	return number < sizeof(words) / sizeof(*words) ? words[number] : "Unknown";
}

static void put_times(struct kineto *k, const struct kineto_mark *m)
{
	put(k, ",\"ts\":");
	put_ts(k, m->begin);
	put(k, ",\"dur\":");
	put_us(k, m->end - m->begin);
}

static void put_overhead(struct kineto *k, const struct kineto_mark *m)
{
	int lane = export_lanes_place(k->overhead_lanes, m->begin, m->end);

	if (lane < 0)
		k->err = lane;
	put_event(k);
	put(k, "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"");
	put(k, overhead_name(m->number));
	put(k, "\",\"pid\":-1,\"tid\":");
	put_int(k, lane);
	put_times(k, m);
	put(k, "}");
}

static void put_step(struct kineto *k, const struct kineto_mark *m)
{
	const struct call *anchor = &k->s->calls[k->steps.anchor];
	uint64_t tid = kineto_place(k, kineto_row_of_call(k, anchor), m->begin, m->end);

	put_event(k); /* after a new row has been named */
	put(k, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#");
	put_uint(k, m->number);
	put(k, "\",\"pid\":");
	put_uint(k, k->pid);
	put(k, ",\"tid\":");
	put_uint(k, tid);
	put_times(k, m);
	put(k, ",\"args\":{\"found in the order of calls\":true}}");
}

static void put_window(struct kineto *k, const struct kineto_mark *m)
{
	put_event(k);
	put(k, "{\"ph\":\"X\",\"cat\":\"Trace\"");
	put_times(k, m);
	put(k, ",\"pid\":\"Spans\",\"tid\":\"gbpf\",\"name\":\"gbpf (");
	put_uint(k, m->number);
	put(k, ")\",\"args\":{\"Op count\":0}}");
}

/* A global line, as "Record Window End" is one. */
static void put_loss(struct kineto *k, const struct kineto_mark *m)
{
	const struct record_loss *l = &k->s->losses[m->number];

	put_event(k);
	put(k, "{\"name\":\"events were lost before here\",\"ph\":\"i\",\"s\":\"g\","
	       "\"pid\":\"\",\"tid\":\"\",\"ts\":");
	put_ts(k, m->begin);
	put(k, ",\"args\":{\"count\":");
	put_uint(k, l->count);
	put(k, ",\"cause\":");
	put_uint(k, l->cause);
	put(k, "}}");
}

void kineto_put_marks(struct kineto *k, int64_t until)
{
	for (; k->marks_at < k->marks_count && k->marks[k->marks_at].begin <= until;
	     k->marks_at++) {
		const struct kineto_mark *m = &k->marks[k->marks_at];

		if (m->kind == MARK_WINDOW)
			put_window(k, m);
		else if (m->kind == MARK_STEP)
			put_step(k, m);
		else if (m->kind == MARK_LOSS)
			put_loss(k, m);
		else
			put_overhead(k, m);
	}
}

void kineto_put_end(struct kineto *k, int64_t last)
{
	int64_t end = k->s->end < k->o->to ? k->s->end : k->o->to;

	put_event(k);
	put(k, "{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\",\"pid\":\"\","
	       "\"tid\":\"\",\"ts\":");
	put_ts(k, end > last ? end : last);
	put(k, "}");
}
