/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of kernels, read out of the process when somebody wants to see one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "monitor/private.h"

#define NAME_ROOM 1024
#define NAME_OFFSET 8 /* in a CUfunction and a CUkernel of driver 580; not documented */

int kernels_harvest(struct monitor *m)
{
	size_t i;

	for (i = 0; i < GBPF_KERNELS; i++) {
		struct mon_kernel *k = m->kernels[i];

		if (!m->counts.kernels_keys[i] || !m->counts.kernels[i].handle)
			continue;
		if (!k && !process_get(m, m->counts.kernels[i].pid)) {
			counts_free_kernel(&m->counts, i); /* gone before anybody knew of it */
			continue;
		}
		if (!k) {
			k = m->kernels[i] = calloc(1, sizeof(*k));
			if (!k)
				return -ENOMEM;
			k->slot = (uint32_t)i;
			k->pid = m->counts.kernels[i].pid;
		}
		k->launches = m->counts.kernels[i].launches;
	}
	return 0;
}

static bool read_memory(uint32_t pid, uint64_t at, void *out, size_t size)
{
	struct iovec to = {out, size}, from = {(void *)(uintptr_t)at, size};

	return process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0) == (ssize_t)size;
}

/* At most to the end of the page, which is all that surely is there. */
static bool read_string(uint32_t pid, uint64_t at, char *out, size_t size)
{
	size_t n = 0, part;

	while (n + 1 < size) {
		part = 4096 - (at + n) % 4096;
		if (part > size - 1 - n)
			part = size - 1 - n;
		if (!read_memory(pid, at + n, out + n, part))
			return false;
		if (memchr(out + n, '\0', part))
			return true;
		n += part;
	}
	out[n] = '\0';
	return true;
}

/* What stands there is a mangled or C name, or it is not the name. */
static bool looks_like_name(const char *s)
{
	return *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_$.")] == '\0' &&
	       !strchr("0123456789", *s);
}

const char *kernels_name(struct monitor *m, struct mon_kernel *k)
{
	uint64_t handle = m->counts.kernels[k->slot].handle, where;
	char name[NAME_ROOM];

	if (k->name)
		return k->name;
	if (!read_memory(k->pid, handle + NAME_OFFSET, &where, sizeof(where)) ||
	    !read_string(k->pid, where, name, sizeof(name)) || !looks_like_name(name))
		name[0] = '\0';
	k->name = strdup(name);
	return k->name ? k->name : "";
}

void kernels_drop(struct monitor *m, uint32_t pid)
{
	size_t i;

	for (i = 0; i < GBPF_KERNELS; i++) {
		if (!m->counts.kernels_keys[i] || (pid && m->counts.kernels[i].pid != pid))
			continue;
		counts_free_kernel(&m->counts, i);
		if (m->kernels[i])
			free(m->kernels[i]->name);
		free(m->kernels[i]);
		m->kernels[i] = NULL;
	}
}
