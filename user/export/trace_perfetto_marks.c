// SPDX-License-Identifier: BSD-2-Clause
/* What gbpf itself did and missed: windows, losses, the sidecar's doings. */
#include <errno.h>
#include <stdlib.h>

#include "export/trace_perfetto.h"
#include "record/trigger_text.h"

#define BEGIN PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
#define END PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END
#define INSTANT PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT

static void put(struct perfetto *f, int64_t ts, unsigned type, uint64_t track, unsigned word,
		const struct packet_args *args)
{
	struct packets *p = &f->packets;
	uint64_t name = packets_intern(p, INTERN_EVENT, packets_key_word(p, word));
	uint64_t category = packets_intern(p, INTERN_CATEGORY, CATEGORY_MARK);
	struct packet_open open = packet_begin(p, ts, PACKET_TRACK_EVENT);

	packet_uint(p, EVENT_TYPE, type);
	packet_uint(p, EVENT_CATEGORY, category);
	packet_uint(p, EVENT_NAME, name);
	if (track)
		packet_uint(p, EVENT_TRACK, track);
	if (args)
		packet_notes(p, args);
	packet_end(p, open);
}

void perfetto_instant(struct perfetto *f, int64_t ts, uint64_t track, unsigned word,
		      const struct packet_args *args)
{
	put(f, ts, INSTANT, track, word, args);
}

static void slice_end(struct perfetto *f, int64_t ts)
{
	struct packet_open open = packet_begin(&f->packets, ts, PACKET_TRACK_EVENT);

	packet_uint(&f->packets, EVENT_TYPE, END);
	packet_end(&f->packets, open);
}

static uint64_t recorder(struct perfetto *f)
{
	return perfetto_track(f, &(struct perfetto_track){
		TRACK_RECORDER, 0, 0, "gbpf", "What the recorder did, and what it missed", NULL,
		-100});
}

/* ---- windows ---- */

static int by_begin(const void *pa, const void *pb)
{
	const struct record_window *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static int put_windows(struct perfetto *f)
{
	const struct session *s = f->s;
	struct record_window *sorted = calloc(s->windows_count + 1, sizeof(*sorted));
	int64_t until = INT64_MIN;
	bool begun = false;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < s->windows_count; i++)
		sorted[i] = s->windows[i];
	qsort(sorted, s->windows_count, sizeof(*sorted), by_begin);
	for (size_t i = 0; i < s->windows_count; i++) {
		const struct record_window *w = &sorted[i];

		/* One that touches the one before is none of its own: files may hold nonsense. */
		if (w->end <= w->begin || w->begin < until ||
		    !export_wants(f->o, w->begin, w->end))
			continue;
		until = w->end;
		if (!begun)
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_WINDOWS, 0, recorder(f), "probes",
				"While probes were attached; outside nothing was recorded", NULL,
				1}), w->begin);
		begun = true;
		put(f, w->begin, BEGIN, 0, WORD_ATTACHED, NULL);
		slice_end(f, w->end);
	}
	free(sorted);
	return 0;
}

/* ---- losses ---- */

static const char *loss_word(uint32_t cause)
{
	static const char *const words[] = {
		[RECORD_LOSS_RING_FULL] = "the ring was full",
		[RECORD_LOSS_STATE_FULL] = "no room for their state",
		[RECORD_LOSS_PERF_LOST] = "notices of processes and mappings, by perf",
		[RECORD_LOSS_MALFORMED] = "they made no sense",
		[RECORD_LOSS_WRITE_FAILED] = "they could not be written",
		[RECORD_LOSS_NAME] = "names of kernels that could not be read",
	};

	return cause && cause < sizeof(words) / sizeof(*words) ? words[cause] : "unknown cause";
}

static int by_ts(const void *pa, const void *pb)
{
	const struct record_loss *a = pa, *b = pb;

	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

static int put_losses(struct perfetto *f)
{
	const struct session *s = f->s;
	struct record_loss *sorted = calloc(s->losses_count + 1, sizeof(*sorted));
	bool begun = false;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < s->losses_count; i++)
		sorted[i] = s->losses[i];
	qsort(sorted, s->losses_count, sizeof(*sorted), by_ts);
	for (size_t i = 0; i < s->losses_count; i++) {
		const struct record_loss *l = &sorted[i];
		struct packet_args args;

		packet_args_init(&args, &f->packets, INTERN_NOTE);
		if (!l->count || !export_wants(f->o, l->ts, l->ts))
			continue;
		if (!begun)
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_LOSSES, 0, recorder(f), "losses",
				"Lost between the mark before and this one", NULL, 2}), l->ts);
		begun = true;
		packet_arg_uint(&args, FIELD_COUNT, l->count);
		packet_arg_text(&args, FIELD_REASON, loss_word(l->cause));
		perfetto_instant(f, l->ts, 0, WORD_LOST, &args);
	}
	free(sorted);
	return 0;
}

/* ---- why a flight recorder wrote this ---- */

static void put_triggers(struct perfetto *f)
{
	const struct session *s = f->s;
	bool begun = false;

	for (size_t i = 0; i < s->triggers_count; i++) {
		const struct record_trigger *t = &s->triggers[i];
		struct packet_args args;
		char text[512], shown[1024];

		if (!export_wants(f->o, t->ts, t->ts))
			continue;
		if (!begun)
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_TRIGGERS, 0, recorder(f), "triggers",
				"Why a flight recorder wrote this file", NULL, 3}), t->ts);
		begun = true;
		packet_args_init(&args, &f->packets, INTERN_NOTE);
		trigger_text(t, text, sizeof(text));
		if (export_text(text, shown, sizeof(shown)))
			packet_arg_text(&args, FIELD_REASON, shown);
		perfetto_instant(f, t->ts, 0, WORD_TRIGGER, &args);
	}
}

/* ---- the sidecar ---- */

static void put_sidecar_event(struct perfetto *f, const struct record_sidecar *e)
{
	struct packet_args args;
	char text[512];

	packet_args_init(&args, &f->packets, INTERN_NOTE);
	if (e->count)
		packet_arg_uint(&args, FIELD_COUNT, e->count);
	if (export_text(e->text, text, sizeof(text)))
		packet_arg_text(&args, FIELD_REASON, text);
	perfetto_instant(f, e->ts, 0, WORD_SIDECAR + (e->event < RECORD_SIDECAR_EVENTS
						      ? e->event : RECORD_SIDECAR_FAILED), &args);
}

/* They are by time, so one process' are met by going over all: there are few. */
static void put_sidecar(struct perfetto *f, uint32_t process)
{
	const struct session *s = f->s;
	bool begun = false;

	for (size_t i = 0; i < s->sidecars_count; i++) {
		const struct record_sidecar *e = &s->sidecars[i];

		if (s->sidecar_process[i] != process || !export_wants(f->o, e->ts, e->ts))
			continue;
		if (!begun) {
			perfetto_process(f, process);
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_SIDECAR, process, track_id(TRACK_PROCESS, process),
				"GPU recording", "What the sidecar did in this process",
				NULL, -30}), e->ts);
		}
		begun = true;
		put_sidecar_event(f, e);
	}
}

int perfetto_marks(struct perfetto *f)
{
	int err = put_windows(f);

	if (!err)
		err = put_losses(f);
	if (!err)
		put_triggers(f);
	for (uint32_t i = 0; i < f->s->processes_count && !err; i++)
		if (export_wants_process(f->o, i) && f->s->sidecars_count)
			put_sidecar(f, i);
	return err;
}
