/* SPDX-License-Identifier: BSD-2-Clause */
/* Links between programs and sites, on each rung. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/private.h"

struct probe_link {
	int *fds;
	size_t count;
};

/*
 * The head of union bpf_attr for BPF_LINK_CREATE with a uprobe multi link, as
 * include/uapi/linux/bpf.h has it since 6.6. Our own, because the headers and
 * the libbpf we build with may be older than the kernel we run on.
 */
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, path_fd;
	uint8_t rest[64];
};

enum { ATTACH_MULTI = 48, ATTACH_SESSION = 57, MULTI_RETURN = 1 };

int perf_uprobe_pmu(uint32_t *type, uint32_t *return_bit)
{
	static const char dir[] = "/sys/bus/event_source/devices/uprobe/";
	char path[96];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "%stype", dir);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fscanf(f, "%u", type);
	fclose(f);
	if (n != 1)
		return -EBADMSG;
	snprintf(path, sizeof(path), "%sformat/retprobe", dir);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fscanf(f, "config:%u", return_bit);
	fclose(f);
	return n == 1 && *return_bit < 32 ? 0 : -EBADMSG;
}

static int link_add(struct probe_link *l, int fd)
{
	int *grown;

	if (fd < 0)
		return fd;
	grown = realloc(l->fds, (l->count + 1) * sizeof(*grown));
	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	l->fds = grown;
	l->fds[l->count++] = fd;
	return 0;
}

static int multi_create(int prog, const char *path, const uint64_t *offsets,
			const uint64_t *cookies, size_t count, uint32_t attach_type, uint32_t flags)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.count = (uint32_t)count,
		.multi_flags = flags,
	};
	long fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		return -errno;
	/* libbpf would have set it; a child must not keep our probes alive */
	fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	return (int)fd;
}

static uint64_t cookie_of(const struct probe_site *site)
{
	return site->cookie | (site->entry_only ? GBPF_COOKIE_ENTRY_ONLY : 0);
}

/* One link for both ends, or one for each where a session cannot be had. */
static int multi_attach(struct probes *p, const char *path, const struct probe_site *sites,
			size_t count, struct probe_link *l)
{
	bool session = p->rung == RUNG_SESSION;
	uint64_t *offsets = calloc(count, 2 * sizeof(*offsets)), *cookies;
	size_t i, n = 0;
	int err;

	if (!offsets)
		return -ENOMEM;
	cookies = offsets + count;
	for (i = 0; i < count; i++) {
		offsets[i] = sites[i].offset;
		cookies[i] = cookie_of(&sites[i]);
	}
	err = link_add(l, multi_create(probes_entry_fd(p), path, offsets, cookies, count,
				       session ? ATTACH_SESSION : ATTACH_MULTI, 0));
	if (!err && !session && probes_returns(p)) {
		for (i = 0; i < count; i++) {
			if (sites[i].entry_only)
				continue;
			offsets[n] = sites[i].offset;
			cookies[n++] = cookie_of(&sites[i]);
		}
		if (n)
			err = link_add(l, multi_create(probes_return_fd(p), path, offsets, cookies,
						       n, ATTACH_MULTI, MULTI_RETURN));
	}
	free(offsets);
	return err;
}

static int single_create(const struct probes *p, struct probe_link *l, const char *path,
			 const struct probe_site *site, int prog, bool is_return)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie_of(site));
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = p->perf_type,
		.config = is_return ? 1ULL << p->perf_return : 0,
		.config1 = (uintptr_t)path,
		.config2 = site->offset,
	};
	int perf = (int)syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int link, err;

	if (perf < 0)
		return -errno;
	link = bpf_link_create(prog, perf, BPF_PERF_EVENT, &opts);
	if (link < 0)
		link = -errno;
	/* the link goes first when freed, the event after it */
	err = link_add(l, link);
	if (err) {
		close(perf);
		return err;
	}
	return link_add(l, perf);
}

static int single_attach(struct probes *p, const char *path, const struct probe_site *sites,
			 size_t count, struct probe_link *l)
{
	int entry = probes_entry_fd(p), returns = probes_return_fd(p);
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		/* the return first: a begin without an end tells of a call that never was open */
		if (probes_returns(p) && !sites[i].entry_only) {
			err = single_create(p, l, path, &sites[i], returns, true);
			if (err)
				return err;
		}
		err = single_create(p, l, path, &sites[i], entry, false);
		if (err)
			return err;
	}
	return 0;
}

int probes_attach(struct probes *p, int fd, const struct probe_site *sites, size_t count,
		  struct probe_link **out)
{
	struct probe_link *l;
	char path[40];
	int err;

	if (!count)
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	/* follows the descriptor to the very file, deleted or renamed meanwhile */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (p->rung == RUNG_SINGLE)
		err = single_attach(p, path, sites, count, l);
	else
		err = multi_attach(p, path, sites, count, l);
	if (err) {
		probe_link_free(l);
		return err;
	}
	*out = l;
	return 0;
}

static int entries_attach(struct probes *p, int prog, const char *path,
			  const struct probe_site *sites, size_t count, struct probe_link *l)
{
	uint64_t *offsets = calloc(count, 2 * sizeof(*offsets));
	size_t i;
	int err = 0;

	if (!offsets)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		offsets[i] = sites[i].offset;
		offsets[count + i] = sites[i].cookie;
		if (!err && p->rung == RUNG_SINGLE)
			err = single_create(p, l, path, &sites[i], prog, false);
	}
	if (p->rung != RUNG_SINGLE)
		err = link_add(l, multi_create(prog, path, offsets, offsets + count, count,
					       ATTACH_MULTI, 0));
	free(offsets);
	return err;
}

int probes_attach_entries(struct probes *p, int prog, int fd, const struct probe_site *sites,
			  size_t count, struct probe_link **out)
{
	struct probe_link *l = calloc(1, sizeof(*l));
	char path[40];
	int err;

	if (!l)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = entries_attach(p, prog, path, sites, count, l);
	if (err) {
		probe_link_free(l);
		return err;
	}
	*out = l;
	return 0;
}

int probes_attach_entry(struct probes *p, int prog, int fd, const struct probe_site *site,
			struct probe_link **out)
{
	return probes_attach_entries(p, prog, fd, site, 1, out);
}

void probe_link_free(struct probe_link *l)
{
	if (!l)
		return;
	while (l->count)
		close(l->fds[--l->count]);
	free(l->fds);
	free(l);
}
