// SPDX-License-Identifier: BSD-2-Clause
#include "neighbour.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "code.h"

#define PAIR (2 * sizeof(void *))
#define PAGE 4096u

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
	struct data_search *s = user;

	if (!contains(info, s->inside))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (!s->data->whole.to || at < s->data->whole.from))
			s->data->whole.from = at;
		if (p->p_type == PT_LOAD && at + p->p_memsz > s->data->whole.to)
			s->data->whole.to = at + p->p_memsz;
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
	struct data_search s = { .data = data, .inside = (uintptr_t)inside };

	memset(data, 0, sizeof(*data));
	return dl_iterate_phdr(see_data, &s) && data->count;
}

static uintptr_t word_at(uintptr_t at)
{
	return __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED);
}

/* CUPTI 13.3 has an object for each client; before, there was one place. */
size_t neighbour_deep(uint32_t version)
{
	return version >= CUPTI_13_3 ? 0x70 : 0;
}

/* The words at address, if there are such. It need not be memory at all. */
static bool read_words(uintptr_t address, uintptr_t words[2])
{
	struct iovec to = { words, PAIR }, from = { (void *)address, PAIR };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)PAIR;
}

static bool may_point(const struct cupti_data *data, uintptr_t word)
{
	return word >= PAGE && !(word % sizeof(void *)) && !(word >> 47) &&
	       (word < data->whole.from || word >= data->whole.to);
}

/* The words at this place in data, or those that it points to. */
static bool pair_at(const struct neighbour *n, uintptr_t at, bool pointed, uintptr_t words[2])
{
	words[0] = word_at(at);
	if (pointed)
		return may_point(&n->data, words[0]) && read_words(words[0] + n->deep, words);
	words[1] = word_at(at + sizeof(void *));
	return true;
}

/* The first place at which found() says so; 0: none. */
static uintptr_t search(const struct neighbour *n, bool pointed,
			bool (*found)(const uintptr_t words[2], void *user), void *user)
{
	for (size_t i = 0; i < n->data.count; i++) {
		const struct address_range *r = &n->data.ranges[i];

		for (uintptr_t at = r->from; at + PAIR <= r->to; at += sizeof(void *)) {
			uintptr_t words[2];

			if (pair_at(n, at, pointed, words) && found(words, user))
				return at;
		}
	}
	return 0;
}

struct foreign {
	struct code code;
	uintptr_t first;
};

static bool is_foreign(const uintptr_t words[2], void *user)
{
	struct foreign *f = user;

	f->first = words[0];
	return code_foreign(&f->code, words[0]) && code_foreign(&f->code, words[1]);
}

/* Where ours were once, others would be, too: nothing else needs to be looked through. */
static uintptr_t find_foreign(const struct neighbour *n, struct foreign *f)
{
	uintptr_t words[2], at;

	if (n->pair && !n->pointed)
		return pair_at(n, n->pair, false, words) && is_foreign(words, f) ? n->pair : 0;
	at = search(n, false, is_foreign, f);
	if (!at && n->deep)
		at = search(n, true, is_foreign, f);
	return at;
}

int neighbour_registered(const struct neighbour *n, cupti_request_fn request, char *why,
			 size_t size)
{
	uintptr_t probe[2], at;
	struct foreign f;
	int err;

	if (n->deep && !read_words((uintptr_t)probe, probe)) {
		(void)snprintf(why, size, "process_vm_readv() is forbidden");
		return -EPERM;
	}
	err = code_read(&f.code, (uintptr_t)request);
	if (err) {
		(void)snprintf(why, size, "the process's mappings cannot be looked through");
		return err;
	}
	at = find_foreign(n, &f);
	if (at)
		code_name(f.first, why, size);
	code_free(&f.code);
	return at != 0;
}

static bool is_ours(const uintptr_t words[2], void *user)
{
	const uintptr_t *ours = user;

	return words[0] == ours[0] && words[1] == ours[1];
}

bool neighbour_note(struct neighbour *n, cupti_request_fn request, cupti_complete_fn complete)
{
	uintptr_t ours[2] = { (uintptr_t)request, (uintptr_t)complete };

	n->pointed = false;
	n->pair = search(n, false, is_ours, ours);
	if (n->pair || !n->deep)
		return n->pair != 0;
	n->pointed = true;
	n->pair = search(n, true, is_ours, ours);
	return n->pair != 0;
}

bool neighbour_ours(const struct neighbour *n, cupti_request_fn request,
		    cupti_complete_fn complete)
{
	uintptr_t ours[2] = { (uintptr_t)request, (uintptr_t)complete }, words[2];

	return n->pair && pair_at(n, n->pair, n->pointed, words) && is_ours(words, ours);
}
