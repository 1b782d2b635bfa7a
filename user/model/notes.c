// SPDX-License-Identifier: BSD-2-Clause
/* Everything but events on its way in: copied, and sorted out at the end. */
#include "model/internal.h"
#include "probe/catalogue.h"

#include <stdio.h>

static int copy_text(char **out, const char *text)
{
	*out = strdup(text ? text : "");
	return *out ? 0 : -ENOMEM;
}

static int note_name(struct session_builder *b, const struct record_name *r)
{
	struct name_note *n;
	int err = GROW(b->names, b->names_cap, b->names_count + 1);

	if (err)
		return err;
	n = &b->names[b->names_count];
	*n = (struct name_note){ .ts = clamp_ts(r->ts), .handle = r->handle, .pid = r->pid,
				 .source = r->source, .kernel = NO_INDEX,
				 .order = b->names_count };
	n->text = strndup(r->name && r->source != GBPF_NAME_FAULT ? r->name : "", r->len);
	if (!n->text)
		return -ENOMEM;
	b->names_count++;
	return 0;
}

static int note_process(struct session_builder *b, const struct record_process *r)
{
	struct process_note *n;
	char *comm = NULL, *cmdline = NULL, *exe = NULL, *container = NULL;
	int err = GROW(b->notes, b->notes_cap, b->notes_count + 1);

	if (err)
		return err;
	err = copy_text(&comm, r->comm) | copy_text(&cmdline, r->cmdline) |
	      copy_text(&exe, r->exe) | copy_text(&container, r->container);
	if (err) {
		free(comm);
		free(cmdline);
		free(exe);
		free(container);
		return -ENOMEM;
	}
	n = &b->notes[b->notes_count];
	*n = (struct process_note){ .r = *r, .order = b->notes_count };
	n->r.ts = clamp_ts(r->ts);
	n->r.comm = comm;
	n->r.cmdline = cmdline;
	n->r.exe = exe;
	n->r.container = container;
	b->notes_count++;
	return 0;
}

static int note_thread(struct session_builder *b, const struct record_thread *r)
{
	struct session_thread *t;
	int err = GROW(b->named, b->named_cap, b->named_count + 1);

	if (err)
		return err;
	t = &b->named[b->named_count];
	*t = (struct session_thread){ .pid = r->pid, .tid = r->tid, .ns_tid = r->ns_tid };
	err = copy_text(&t->comm, r->comm);
	b->named_count += !err;
	return err;
}

static int note_image(struct session_builder *b, const struct record_image *r)
{
	struct session *s = b->s;
	struct record_image *i;
	char *path = NULL, *build_id = NULL, *version = NULL;
	int err = GROW(s->images, b->images_cap, s->images_count + 1);

	if (err)
		return err;
	err = copy_text(&path, r->path) | copy_text(&build_id, r->build_id) |
	      copy_text(&version, r->version);
	if (err) {
		free(path);
		free(build_id);
		free(version);
		return -ENOMEM;
	}
	i = &s->images[s->images_count++];
	*i = *r;
	i->mapped = clamp_ts(r->mapped);
	i->covered = clamp_ts(r->covered);
	i->path = path;
	i->build_id = build_id;
	i->version = version;
	return 0;
}

static int note_site(struct session_builder *b, const struct record_site *r)
{
	struct session *s = b->s;
	char *api = NULL, *reason = NULL;
	int err = GROW(s->sites, b->sites_cap, s->sites_count + 1);

	if (err)
		return err;
	err = copy_text(&api, r->api) | copy_text(&reason, r->reason);
	if (err) {
		free(api);
		free(reason);
		return -ENOMEM;
	}
	s->sites[s->sites_count] = *r;
	s->sites[s->sites_count].api = api;
	s->sites[s->sites_count++].reason = reason;
	return 0;
}

static int note_info(struct session_builder *b, const struct record_info *r)
{
	struct session *s = b->s;
	char *key = NULL, *value = NULL;
	int err = GROW(s->infos, b->infos_cap, s->infos_count + 1);

	if (err)
		return err;
	err = copy_text(&key, r->key) | copy_text(&value, r->value);
	if (err) {
		free(key);
		free(value);
		return -ENOMEM;
	}
	s->infos[s->infos_count++] = (struct record_info){ key, value };
	return 0;
}

static uint8_t word_index(const char *word, const char *(*name)(unsigned), unsigned last)
{
	for (unsigned i = 1; i <= last; i++) {
		const char *n = name(i);

		if (n && word && !strcmp(n, word))
			return (uint8_t)i;
	}
	return 0;
}

static uint8_t api_sorts(const struct session_api *a)
{
	const struct api *known = a->catalogue ? catalogue_get(a->catalogue) : NULL;

	switch (a->kind) {
	case API_LAUNCH:
		return strstr(a->name, "HostFunc") ? API_IS_LAUNCH
						   : API_IS_LAUNCH | API_IS_KERNEL_LAUNCH;
	case API_GRAPH:
		return strstr(a->name, "GraphLaunch") ? API_IS_LAUNCH | API_IS_GRAPH_LAUNCH : 0;
	case API_SYNC:
		return API_IS_WAIT;
	case API_COPY:
	case API_SET:
		return known && known->blocking ? API_IS_COPY | API_IS_WAIT : API_IS_COPY;
	}
	return 0;
}

static int note_api(struct session_builder *b, const struct record_api *r)
{
	struct session *s = b->s;
	struct session_api *a;
	char display[256];
	int err = GROW(s->apis, b->apis_cap, s->apis_count + 1);

	if (err || !r->name || r->id >= GBPF_MAX_API || b->api_of[r->id] != NO_INDEX)
		return err; /* the first record of an id counts */
	a = &s->apis[s->apis_count];
	*a = (struct session_api){ .catalogue = catalogue_find(r->name) };
	a->library = word_index(r->library, api_library_name, API_NCCL);
	a->kind = word_index(r->kind, api_kind_name, API_OTHER);
	if (!a->kind)
		a->kind = API_OTHER;
	a->name = strdup(r->name);
	a->display = strdup(catalogue_display(r->name, display, sizeof(display)));
	if (!a->name || !a->display) {
		free((char *)a->name);
		free(a->display);
		return -ENOMEM;
	}
	a->sorts = api_sorts(a);
	b->api_of[r->id] = (uint32_t)s->apis_count++;
	return 0;
}

uint32_t builder_api(struct session_builder *b, uint16_t id)
{
	char name[32];
	struct record_api r = { .id = id, .name = name, .library = "", .kind = "other" };

	if (b->api_of[id] == NO_INDEX) {
		snprintf(name, sizeof(name), "api#%u", id);
		if (note_api(b, &r))
			return NO_INDEX;
	}
	return b->api_of[id];
}

static int note_clock(struct session_builder *b, const struct record_clock *r)
{
	struct session *s = b->s;
	int err = GROW(s->clocks, b->clocks_cap, s->clocks_count + 1);

	if (!err)
		s->clocks[s->clocks_count++] = *r;
	return err;
}

static int note_window(struct session_builder *b, const struct record_window *r)
{
	struct session *s = b->s;
	int err = GROW(s->windows, b->windows_cap, s->windows_count + 1);

	if (!err)
		s->windows[s->windows_count++] =
			(struct record_window){ clamp_ts(r->begin), clamp_ts(r->end) };
	return err;
}

static int note_active(struct session_builder *b, const struct record_window *r)
{
	int err = GROW(b->actives, b->actives_cap, b->actives_count + 1);

	if (!err)
		b->actives[b->actives_count++] =
			(struct record_window){ clamp_ts(r->begin), clamp_ts(r->end) };
	return err;
}

static int note_loss(struct session_builder *b, const struct record_loss *r)
{
	struct session *s = b->s;
	int err = GROW(s->losses, b->losses_cap, s->losses_count + 1);

	/* A cause this build does not know is still a loss: slot 0 holds those. */
	s->quality.losses[r->cause < 8 ? r->cause : 0] += r->count;
	if (err)
		return err;
	s->losses[s->losses_count] = *r;
	s->losses[s->losses_count++].ts = clamp_ts(r->ts);
	return 0;
}

static int note_trigger(struct session_builder *b, const struct record_trigger *r)
{
	struct session *s = b->s;
	struct record_trigger *t;
	char *text;
	int err = GROW(s->triggers, b->triggers_cap, s->triggers_count + 1);

	if (!err)
		err = copy_text(&text, r->text);
	if (err)
		return err;
	t = &s->triggers[s->triggers_count++];
	for (; t > s->triggers && t[-1].ts > clamp_ts(r->ts); t--)
		*t = t[-1]; /* of merged files there are several */
	*t = *r;
	t->ts = clamp_ts(r->ts);
	t->begin = clamp_ts(r->begin);
	t->text = text;
	return 0;
}

int builder_note(struct session_builder *b, const struct record *r)
{
	switch (r->kind) {
	case RECORD_NAME: return note_name(b, &r->name);
	case RECORD_PROCESS: return note_process(b, &r->process);
	case RECORD_THREAD: return note_thread(b, &r->thread);
	case RECORD_IMAGE: return note_image(b, &r->image);
	case RECORD_SITE: return note_site(b, &r->site);
	case RECORD_API: return note_api(b, &r->api);
	case RECORD_CLOCK: return note_clock(b, &r->clock);
	case RECORD_LOSS: return note_loss(b, &r->loss);
	case RECORD_WINDOW: return note_window(b, &r->window);
	case RECORD_INFO: return note_info(b, &r->info);
	case RECORD_GPU: return builder_gpu(b, &r->gpu);
	case RECORD_GPU_SAMPLE: return builder_gpu_sample(b, &r->gpu_sample);
	case RECORD_LABEL: return builder_label(b, &r->label);
	case RECORD_DEVICE: return builder_device(b, &r->device);
	case RECORD_SHAPE: return builder_shape(b, &r->shape);
	case RECORD_WORK: return builder_work(b, &r->work);
	case RECORD_WORK_CALL: return builder_work_call(b, &r->work_call);
	case RECORD_OVERHEAD: return builder_overhead(b, &r->overhead);
	case RECORD_SIDECAR: return builder_sidecar(b, &r->sidecar);
	case RECORD_TRIGGER: return note_trigger(b, &r->trigger);
	case RECORD_ACTIVE: return note_active(b, &r->window);
	case RECORD_EVENTS:
	case RECORD_KINDS: break;
	}
	return 0; /* kinds of a newer file: the reader's concern */
}
