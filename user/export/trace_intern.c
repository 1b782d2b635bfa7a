// SPDX-License-Identifier: BSD-2-Clause
/* Names that are said once a sequence, and arguments that are called by them. */
#include "export/trace_packet.h"
#include "probe/catalogue.h"

/* Longer names would be no use to anybody, and a target chooses them. */
#define NAME_SIZE 4096

static const char *const words[WORDS] = {
	[WORD_COPY + RECORD_COPY_UNKNOWN] = "Memcpy",
	[WORD_COPY + RECORD_COPY_HTOD] = "Memcpy HtoD",
	[WORD_COPY + RECORD_COPY_DTOH] = "Memcpy DtoH",
	[WORD_COPY + RECORD_COPY_HTOA] = "Memcpy HtoA",
	[WORD_COPY + RECORD_COPY_ATOH] = "Memcpy AtoH",
	[WORD_COPY + RECORD_COPY_ATOA] = "Memcpy AtoA",
	[WORD_COPY + RECORD_COPY_ATOD] = "Memcpy AtoD",
	[WORD_COPY + RECORD_COPY_DTOA] = "Memcpy DtoA",
	[WORD_COPY + RECORD_COPY_DTOD] = "Memcpy DtoD",
	[WORD_COPY + RECORD_COPY_HTOH] = "Memcpy HtoH",
	[WORD_COPY + RECORD_COPY_PTOP] = "Memcpy PtoP",
	[WORD_SET] = "Memset",
	[WORD_KERNEL] = "Kernel",
	[WORD_LOST] = "events were lost here",
	[WORD_ATTACHED] = "probes attached",
	[WORD_ERROR] = "error",
	[WORD_COLD] = "cold start",
	[WORD_XID] = "XID",
	[WORD_TRIGGER] = "why this was written",
	[WORD_RECORDING] = "GPU work recorded",
	[WORD_SIDECAR + RECORD_SIDECAR_ATTACHED] = "sidecar loaded",
	[WORD_SIDECAR + RECORD_SIDECAR_BEGAN] = "sidecar began to record",
	[WORD_SIDECAR + RECORD_SIDECAR_ENDED] = "sidecar ended recording",
	[WORD_SIDECAR + RECORD_SIDECAR_REFUSED] = "sidecar refused",
	[WORD_SIDECAR + RECORD_SIDECAR_WITHDREW] = "sidecar withdrew",
	[WORD_SIDECAR + RECORD_SIDECAR_FAILED] = "sidecar failed",
	[WORD_SIDECAR + RECORD_SIDECAR_DROPPED] = "GPU records were lost here",
	[WORD_SIDECAR + RECORD_SIDECAR_BAD] = "GPU records made no sense",
	[WORD_SIDECAR + RECORD_SIDECAR_CLOCK] = "clock of the GPU records",
	[WORD_SIDECAR + RECORD_SIDECAR_GONE] = "sidecar gone",
	[WORD_SIDECAR + RECORD_SIDECAR_RUNNING] = "GPU work ran on as recording ended",
};

const char *packet_word(unsigned word)
{
	return word < WORDS ? words[word] : NULL;
}

static const char *category_name(size_t key)
{
	static const char *const own[] = {"wait", "gpu", "counter", "mark"};
	const char *kind;

	if (key >= CATEGORY_WAIT)
		return own[key - CATEGORY_WAIT];
	kind = api_kind_name((unsigned)key);
	return kind ? kind : "other";
}

size_t packets_key_kernel(const struct packets *p, uint32_t kernel)
{
	return p->s->apis_count + kernel;
}

size_t packets_key_word(const struct packets *p, unsigned word)
{
	return p->s->apis_count + p->s->kernels_count + word;
}

static const char *event_name(const struct packets *p, size_t key)
{
	const struct session *s = p->s;
	const char *word;

	if (key < s->apis_count)
		return s->apis[key].display;
	key -= s->apis_count;
	if (key < s->kernels_count)
		return s->kernels[key].short_name;
	word = words[key - s->kernels_count];
	return word ? word : "?";
}

/* Of the field that holds this space's names: as long as one entry is all that is added. */
static void data_set(Perfetto__Protos__InternedData *data, enum intern_space space,
		     Perfetto__Protos__InternedName **one)
{
	switch (space) {
	case INTERN_CATEGORY:
		data->n_event_categories = 1;
		data->event_categories = one;
		break;
	case INTERN_EVENT:
		data->n_event_names = 1;
		data->event_names = one;
		break;
	case INTERN_NOTE:
		data->n_debug_annotation_names = 1;
		data->debug_annotation_names = one;
		break;
	default:
		data->n_compute_arg_names = 1;
		data->compute_arg_names = one;
	}
}

static void data_add(struct packets *p, Perfetto__Protos__InternedData *data)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.interned_data = data;
	packets_add(p, &packet);
}

static void name_it(struct packets *p, enum intern_space space, size_t key, const char *name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedName entry = PERFETTO__PROTOS__INTERNED_NAME__INIT,
				       *one = &entry;
	char text[NAME_SIZE];

	export_text(name && *name ? name : "?", text, sizeof(text));
	entry.has_iid = true;
	entry.iid = key + 1;
	entry.name = text;
	data_set(&data, space, &one);
	data_add(p, &data);
}

static void string_it(struct packets *p, size_t key, const char *string)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString entry = PERFETTO__PROTOS__INTERNED_STRING__INIT,
					 *one = &entry;
	char text[NAME_SIZE];

	entry.has_iid = entry.has_str = true;
	entry.iid = key + 1;
	entry.str.len = export_text(string, text, sizeof(text));
	entry.str.data = (uint8_t *)text;
	data.n_debug_annotation_string_values = 1;
	data.debug_annotation_string_values = &one;
	data_add(p, &data);
}

bool packets_knows(const struct packets *p, enum intern_space space, size_t key)
{
	return p->defined[space][key] == p->sequence;
}

uint64_t packets_intern(struct packets *p, enum intern_space space, size_t key)
{
	if (p->defined[space][key] == p->sequence)
		return key + 1;
	p->defined[space][key] = p->sequence;
	switch (space) {
	case INTERN_CATEGORY:
		name_it(p, space, key, category_name(key));
		break;
	case INTERN_EVENT:
		name_it(p, space, key, event_name(p, key));
		break;
	case INTERN_STRING:
		string_it(p, key, p->s->kernels[key].demangled);
		break;
	default:
		name_it(p, space, key, export_field((enum export_field_id)key)->name);
	}
	return key + 1;
}

uint64_t packets_intern_shape(struct packets *p, uint32_t shape,
			      Perfetto__Protos__InternedComputeKernel *about)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;

	p->defined[INTERN_KERNEL][shape] = p->sequence;
	about->has_iid = true;
	about->iid = (uint64_t)shape + 1;
	data.n_compute_kernels = 1;
	data.compute_kernels = &about;
	data_add(p, &data);
	return about->iid;
}

static struct packet_arg *arg_add(struct packet_args *a, enum export_field_id field)
{
	struct packet_arg *arg = &a->list[a->count < PACKET_ARGS ? a->count++ : PACKET_ARGS - 1];

	arg->name = packets_intern(a->p, a->space, field);
	return arg;
}

#define ARG(suffix, type, what, member)                                                            \
	void packet_arg_##suffix(struct packet_args *a, enum export_field_id field, type v)        \
	{                                                                                          \
		struct packet_arg *arg = arg_add(a, field);                                        \
		arg->kind = what;                                                                  \
		arg->member = v;                                                                   \
	}

ARG(uint, uint64_t, NOTE_OF_UINT, u)
ARG(int, int64_t, NOTE_OF_INT, i)
ARG(double, double, NOTE_OF_DOUBLE, d)
ARG(pointer, uint64_t, NOTE_OF_POINTER, u)
ARG(text, const char *, NOTE_OF_TEXT, text)

void packet_arg_kernel(struct packet_args *a, enum export_field_id field, uint32_t kernel)
{
	uint64_t id = packets_intern(a->p, INTERN_STRING, kernel);
	struct packet_arg *arg = arg_add(a, field);

	arg->kind = NOTE_OF_STRING;
	arg->u = id;
}

void packet_arg_dim(struct packet_args *a, enum export_field_id field, const uint32_t v[3])
{
	struct packet_arg *arg = arg_add(a, field);

	arg->kind = NOTE_OF_DIM;
	arg->dim = v;
}

static void note_dim(struct packets *p, const uint32_t v[3])
{
	for (int i = 0; i < 3; i++) {
		size_t at = packet_nest(p, NOTE_ARRAY);

		packet_uint(p, NOTE_UINT, v[i]);
		packet_unnest(p, at);
	}
}

static void note(struct packets *p, const struct packet_arg *arg)
{
	switch (arg->kind) {
	case NOTE_OF_UINT: packet_uint(p, NOTE_UINT, arg->u); break;
	case NOTE_OF_INT: packet_uint(p, NOTE_INT, (uint64_t)arg->i); break;
	case NOTE_OF_DOUBLE: packet_double(p, NOTE_DOUBLE, arg->d); break;
	case NOTE_OF_POINTER: packet_uint(p, NOTE_POINTER, arg->u); break;
	case NOTE_OF_TEXT: packet_text(p, NOTE_STRING, arg->text); break;
	case NOTE_OF_STRING: packet_uint(p, NOTE_STRING_ID, arg->u); break;
	case NOTE_OF_DIM: note_dim(p, arg->dim); break;
	}
}

void packet_notes(struct packets *p, const struct packet_args *a)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t at = packet_nest(p, EVENT_ANNOTATION);

		packet_uint(p, NOTE_NAME, a->list[i].name);
		note(p, &a->list[i]);
		packet_unnest(p, at);
	}
}

void packet_launch_args(struct packets *p, const struct packet_args *a)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct packet_arg *arg = &a->list[i];
		size_t at = packet_nest(p, LAUNCH_ARG);

		packet_uint(p, ARG_NAME, arg->name);
		switch (arg->kind) {
		case NOTE_OF_INT: packet_wide(p, ARG_INT, (uint64_t)arg->i); break;
		case NOTE_OF_DOUBLE: packet_double(p, ARG_DOUBLE, arg->d); break;
		case NOTE_OF_TEXT: packet_text(p, ARG_STRING, arg->text); break;
		default: packet_uint(p, ARG_UINT, arg->u);
		}
		packet_unnest(p, at);
	}
}

void packet_dim(struct packets *p, enum packet_field field, const uint32_t v[3])
{
	size_t at = packet_nest(p, field);

	packet_uint(p, DIM_X, v[0]);
	packet_uint(p, DIM_Y, v[1]);
	packet_uint(p, DIM_Z, v[2]);
	packet_unnest(p, at);
}
