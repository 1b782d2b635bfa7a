/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/private.h"

#include "gbpf_monitor.skel.h"

struct live_key { /* as in bpf/monitor.bpf.c */
	uint64_t pointer;
	uint32_t pid, pad;
};

static size_t table_bytes(size_t slots, size_t each)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	each = (each + 7) & ~(size_t)7; /* as the kernel lays elements out */
	return (slots * each + page - 1) / page * page;
}

static int table_map(void *out, struct bpf_map *map, size_t slots, size_t each, uint64_t *bytes)
{
	size_t size = table_bytes(slots, each);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return -errno;
	*bytes += size;
	memcpy(out, &at, sizeof(at));
	return 0;
}

/* Elements of a hash table that are laid out beforehand: key, value and the kernel's own. */
static uint64_t hash_bytes(void)
{
	return (uint64_t)GBPF_LIVE * (48 + sizeof(struct live_key) + sizeof(uint64_t));
}

int counts_open(struct counts *c, struct probes *p)
{
	struct gbpf_monitor *s = p->programs.counter;
	int err;

	memset(c, 0, sizeof(*c));
	c->switch_link = -1;
	if (!s)
		return -EINVAL;
	c->bytes = sizeof(*s->bss) + hash_bytes() + bpf_map__max_entries(s->maps.notices);
	err = table_map(&c->cells, s->maps.cells, GBPF_CELLS, sizeof(*c->cells), &c->bytes);
	if (!err)
		err = table_map(&c->threads, s->maps.threads, GBPF_THREADS, sizeof(*c->threads),
				&c->bytes);
	if (!err)
		err = table_map(&c->procs, s->maps.procs, GBPF_PROCS, sizeof(*c->procs), &c->bytes);
	if (!err)
		err = table_map(&c->kernels, s->maps.kernels, GBPF_KERNELS, sizeof(*c->kernels),
				&c->bytes);
	if (err) {
		counts_close(c);
		return err;
	}
	c->cells_keys = s->bss->cells_keys;
	c->threads_keys = s->bss->threads_keys;
	c->procs_keys = s->bss->procs_keys;
	c->kernels_keys = s->bss->kernels_keys;
	c->mon = &s->bss->mon;
	c->counters = &s->bss->counters;
	c->api_class = s->bss->api_class;
	c->image_state = s->bss->image_state;
	c->syscall_wait = s->bss->syscall_wait;
	c->live_fd = bpf_map__fd(s->maps.live);
	c->notices_fd = bpf_map__fd(s->maps.notices);
	return 0;
}

static void table_unmap(void *at, size_t slots, size_t each)
{
	if (at)
		munmap(at, table_bytes(slots, each));
}

void counts_close(struct counts *c)
{
	if (c->cells && c->switch_link >= 0)
		close(c->switch_link);
	table_unmap(c->cells, GBPF_CELLS, sizeof(*c->cells));
	table_unmap(c->threads, GBPF_THREADS, sizeof(*c->threads));
	table_unmap(c->procs, GBPF_PROCS, sizeof(*c->procs));
	table_unmap(c->kernels, GBPF_KERNELS, sizeof(*c->kernels));
	memset(c, 0, sizeof(*c));
	c->switch_link = -1;
}

int counts_attach_switch(struct counts *c, struct probes *p)
{
	int prog = bpf_program__fd(p->programs.counter->progs.monitor_switch);
	int fd = bpf_raw_tracepoint_open("sched_switch", prog);

	if (fd < 0)
		return -errno;
	c->switch_link = fd;
	return 0;
}

/* The contents go first: whoever claims the slot finds them zeroed. */
static void slot_free(void *contents, size_t size, __u64 *key)
{
	memset(contents, 0, size);
	__atomic_store_n(key, 0, __ATOMIC_SEQ_CST);
}

void counts_free_cell(struct counts *c, size_t slot)
{
	slot_free(&c->cells[slot], sizeof(*c->cells), &c->cells_keys[slot]);
}

void counts_free_thread(struct counts *c, size_t slot)
{
	slot_free(&c->threads[slot], sizeof(*c->threads), &c->threads_keys[slot]);
}

void counts_free_kernel(struct counts *c, size_t slot)
{
	slot_free(&c->kernels[slot], sizeof(*c->kernels), &c->kernels_keys[slot]);
}

void counts_free_proc(struct counts *c, size_t slot)
{
	slot_free(&c->procs[slot], sizeof(*c->procs), &c->procs_keys[slot]);
}

void counts_forget_live(struct counts *c, uint32_t pid)
{
	struct live_key key, next;
	int more = !bpf_map_get_next_key(c->live_fd, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(c->live_fd, &key, &next);
		if (key.pid == pid)
			bpf_map_delete_elem(c->live_fd, &key);
	}
}
