/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the end of a system call does not tell by itself: was it made from a signal
 * handler that interrupted the allocator, or under an allocator of another library?
 * The stack is searched for that; what is left there of earlier calls can make us wait
 * for another thread, no more. Constructors run under the lock of the loader, which
 * must be free. (Addresses of the dynamic linker say nothing: each first call of a
 * function leaves some behind.)
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "inject/private.h"

#define SCAN_BYTES 65536
#define PAGE 4096
#define FLAGS_MAX 0x1f /* of struct ucontext */

/* syscall; ret */
const uint8_t inject_syscall_ret[3] = {0x0f, 0x05, 0xc3};
/* mov $15, %rax; syscall */
const uint8_t inject_restorer[9] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/* glibc's pthread_mutex_t (bits/struct_mutex.h) on x86-64, 40 bytes. */
struct mutex {
	int32_t lock;
	uint32_t count;
	int32_t owner;
	uint32_t users;
	int32_t kind;
	int16_t spins, elision;
	uint64_t list[2];
};

static bool inside(const struct inject_range *r, uint64_t address)
{
	return address >= r->start && address < r->end;
}

static bool word_safe(const struct inject_plan *p, const uint64_t *word, size_t left)
{
	size_t i;

	/* The frame of a signal: restorer, uc_flags, uc_link. */
	if (*word == p->restorer && left >= 3 && word[1] <= FLAGS_MAX && !word[2])
		return false;
	for (i = 0; i < p->allocators_count; i++)
		if (inside(&p->allocators[i], *word))
			return false;
	return true;
}

bool inject_safe_stack(const struct inject_plan *p, const uint64_t *words, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!word_safe(p, &words[i], count - i))
			return false;
	return true;
}

/* As much as there is: a remote range is read up to the first piece that is not mapped. */
static size_t stack_read(uint32_t pid, uint64_t sp, uint8_t *to)
{
	struct iovec remote[SCAN_BYTES / PAGE + 1], local = {to, SCAN_BYTES};
	uint64_t at = sp, end = sp + SCAN_BYTES;
	unsigned long n = 0;
	ssize_t size;

	while (at < end) {
		uint64_t next = (at | (PAGE - 1)) + 1;

		next = next < end ? next : end;
		remote[n++] = (struct iovec){(void *)(uintptr_t)at, next - at};
		at = next;
	}
	size = process_vm_readv((pid_t)pid, &local, 1, remote, n, 0);
	return size > 0 ? (size_t)size : 0;
}

/* After an execve() another program has the addresses; a breakpoint may be in the way. */
static bool code_there(const struct inject_plan *p)
{
	uint8_t call[sizeof(inject_syscall_ret)], restorer[sizeof(inject_restorer)];

	return inject_read(p->pid, p->syscall_ret, call, sizeof(call)) &&
	       inject_read(p->pid, p->restorer, restorer, sizeof(restorer)) &&
	       !memcmp(call, inject_syscall_ret, sizeof(call)) &&
	       !memcmp(restorer, inject_restorer, sizeof(restorer));
}

/* Neither this thread nor another one is in dlopen(), a constructor or dl_iterate_phdr(). */
static bool loader_free(const struct inject_plan *p)
{
	struct mutex pair[2];

	return inject_read(p->pid, p->load_lock, pair, sizeof(pair)) && !pair[0].lock &&
	       !pair[1].lock;
}

bool inject_safe(const struct inject_plan *p, uint64_t sp)
{
	uint64_t *words = malloc(SCAN_BYTES);
	size_t size;
	bool safe;

	if (!words)
		return false;
	size = stack_read(p->pid, sp, (uint8_t *)words);
	safe = code_there(p) && size >= sizeof(*words) && !(sp & 7) &&
	       inject_safe_stack(p, words, size / sizeof(*words)) && loader_free(p);
	free(words);
	return safe;
}

static bool is_recursive(const struct mutex *m)
{
	return m->kind == 1 && m->lock >= 0 && m->lock <= 2 && m->owner >= 0 && !m->spins &&
	       !m->elision && !m->list[0] && !m->list[1] && m->count < 1024;
}

/*
 * _dl_load_lock and _dl_load_write_lock follow each other, both recursive; the
 * locks before them, one a namespace, have other fields between them.
 */
size_t inject_find_lock(const uint8_t *global, size_t size)
{
	struct mutex pair[2];
	size_t at;

	for (at = 0; at + sizeof(pair) <= size; at += 8) {
		memcpy(pair, global + at, sizeof(pair));
		if (is_recursive(&pair[0]) && is_recursive(&pair[1]))
			return at;
	}
	return SIZE_MAX;
}
