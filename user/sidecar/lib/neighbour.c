// SPDX-License-Identifier: BSD-2-Clause
#include "neighbour.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "code.h"

#define PAIR (2 * sizeof(void *))

struct data_search {
	struct cupti_data *data;
	uintptr_t inside;
};

static void add_range(struct cupti_data *d, uintptr_t from, uintptr_t to)
{
	from = (from + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
	if (from < to && d->count < sizeof(d->ranges) / sizeof(*d->ranges))
		d->ranges[d->count++] = (struct address_range){ from, to };
}

/* Takes from..to out of what is there; in one piece each, so at most one more. */
static void cut_range(struct cupti_data *d, uintptr_t from, uintptr_t to)
{
	size_t count = d->count;

	for (size_t i = 0; i < count; i++) {
		struct address_range *r = &d->ranges[i];
		uintptr_t end = r->to;

		if (to <= r->from || from >= r->to)
			continue;
		r->to = from > r->from ? from : r->from;
		if (to < end)
			add_range(d, to, end);
	}
}

/* The table of the functions that it calls: those can be anybody's, of a malloc say. */
static void cut_calls(struct cupti_data *d, const ElfW(Dyn) *dyn)
{
	uintptr_t table = 0, entries = 0;

	for (; dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_PLTGOT)
			table = dyn->d_un.d_ptr;
		if (dyn->d_tag == DT_PLTRELSZ)
			entries = dyn->d_un.d_val / sizeof(ElfW(Rela));
	}
	if (table)
		cut_range(d, table, table + (entries + 3) * sizeof(void *));
}

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && address - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static int see_data(struct dl_phdr_info *info, size_t size, void *user)
{
	#define PAIR (2 * sizeof(void *))

struct data_search *s = user;

	if (!contains(info, s->inside))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & (PF_W | PF_R)) == (PF_W | PF_R))
			add_range(s->data, at, at + p->p_memsz);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO)
			cut_range(s->data, at, at + p->p_memsz);
		if (p->p_type == PT_DYNAMIC)
			cut_calls(s->data, (const ElfW(Dyn) *)at);
	}
	return 1;
}

bool neighbour_data(struct cupti_data *data, const void *inside)
{
	#define PAIR (2 * sizeof(void *))

struct data_search s = { .data = data, .inside = (uintptr_t)inside };

	data->count = 0;
	return dl_iterate_phdr(see_data, &s) && data->count;
}

static uintptr_t word_at(uintptr_t at)
{
	return __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED);
}

static int look(const struct cupti_data *data, struct code *code, char *why, size_t size)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct address_range *r = &data->ranges[i];

		for (uintptr_t at = r->from; at + PAIR <= r->to; at += sizeof(void *)) {
			uintptr_t first = word_at(at), second = word_at(at + sizeof(void *));

			if (!code_foreign(code, first) || !code_foreign(code, second))
				continue;
			code_name(first, why, size);
			return 1;
		}
	}
	return 0;
}

int neighbour_registered(const struct cupti_data *data, cupti_request_fn request, char *why,
			 size_t size)
{
	struct code code;
	int err = code_read(&code, (uintptr_t)request);

	if (err) {
		(void)snprintf(why, size, "the process's mappings cannot be looked through");
		return err;
	}
	err = look(data, &code, why, size);
	code_free(&code);
	return err;
}

bool neighbour_note(struct neighbour *n, cupti_request_fn request, cupti_complete_fn complete)
{
	n->pair = NULL;
	for (size_t i = 0; i < n->data.count; i++) {
		const struct address_range *r = &n->data.ranges[i];

		for (uintptr_t at = r->from; at + PAIR <= r->to; at += sizeof(void *)) {
			if (word_at(at) != (uintptr_t)request ||
			    word_at(at + sizeof(void *)) != (uintptr_t)complete)
				continue;
			n->pair = (uintptr_t *)at;
			return true;
		}
	}
	return false;
}

bool neighbour_ours(const struct neighbour *n, cupti_request_fn request,
		    cupti_complete_fn complete)
{
	return !n->pair || (word_at((uintptr_t)n->pair) == (uintptr_t)request &&
			    word_at((uintptr_t)(n->pair + 1)) == (uintptr_t)complete);
}
