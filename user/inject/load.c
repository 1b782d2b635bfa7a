/* SPDX-License-Identifier: BSD-2-Clause */
/* The library goes over: a memfd and a socket made by the target, whose other ends we get. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/load.h"
#include "inject/private.h"
#include "inject/remote.h"
#include "util/text.h"

#ifdef __x86_64__

#define SPINS 400000 /* of "pause", until it no longer waits for us: 5 to 20 ms */
#define CALL_NS 1000000000 /* dlopen(), dlsym() and entry() together */

static uint64_t at(const struct tracee *t, size_t offset)
{
	return tracee_memory(t) + STUB_PAGE + offset;
}

static int copy_fd(const struct inject_plan *p, int64_t fd)
{
	int ours, pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	if (pidfd < 0)
		return -errno;
	ours = (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);
	ours = ours < 0 ? -errno : ours;
	close(pidfd);
	return ours;
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = pwrite(fd, bytes + done, size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* A system call in the target that says what failed. */
static int call(struct loading *l, const char *name, long nr, const uint64_t args[6],
		int64_t *result)
{
	int err = tracee_syscall(l->tracee, nr, args, result);

	if (err)
		return inject_refuse(l->plan, err, "The thread was lost in %s() (%s).", name,
				     strerror(-err));
	if (*result < 0 && *result > -4096)
		return inject_refuse(l->plan, (int)*result, "%s() failed in the process (%s).", name,
				     strerror((int)-*result));
	return 0;
}

static int data_prepare(struct loading *l)
{
	struct stub_data d = {
		.errno_location = l->plan->errno_location,
		.dlopen = l->plan->dlopen,
		.dlsym = l->plan->dlsym,
		.dlerror = l->plan->dlerror,
		.spins = SPINS,
	};

	snprintf(d.entry, sizeof(d.entry), "%s", l->options->entry);
	snprintf(d.name, sizeof(d.name), "%s", l->options->name);
	return inject_write(l->plan->pid, at(l->tracee, 0), &d, sizeof(d)) ? 0 : -EFAULT;
}

static int descriptors_make(struct loading *l)
{
	const uint64_t memfd[6] = {at(l->tracee, offsetof(struct stub_data, name)), MFD_CLOEXEC};
	const uint64_t pair[6] = {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				  at(l->tracee, offsetof(struct stub_data, pair))};
	int64_t result;
	int32_t fds[2];
	int err = call(l, "memfd_create", SYS_memfd_create, memfd, &result);

	if (err)
		return err;
	l->memfd = (int)result;
	err = call(l, "socketpair", SYS_socketpair, pair, &result);
	if (err)
		return err;
	if (!inject_read(l->plan->pid, pair[3], fds, sizeof(fds)))
		return inject_refuse(l->plan, -EFAULT, "The process's memory cannot be read.");
	l->theirs = fds[0];
	l->loader_end = fds[1];
	return 0;
}

static int library_write(struct loading *l)
{
	int err, fd = copy_fd(l->plan, l->memfd);

	if (fd < 0)
		return inject_refuse(l->plan, fd, "Its descriptors cannot be copied (%s).",
				     strerror(-fd));
	err = write_all(fd, l->options->library, l->options->size);
	close(fd);
	if (err)
		return inject_refuse(l->plan, err, "The library could not be handed over (%s).",
				     strerror(-err));
	fd = copy_fd(l->plan, l->loader_end);
	if (fd < 0)
		return inject_refuse(l->plan, fd, "Its socket cannot be copied (%s).", strerror(-fd));
	l->result->socket = fd;
	return 0;
}

static int data_complete(struct loading *l)
{
	const uint32_t fds[] = {(uint32_t)l->theirs, (uint32_t)l->memfd, (uint32_t)l->loader_end};
	char path[64];

	/* Threads can have descriptors of their own. */
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", l->memfd);
	if (inject_write(l->plan->pid, at(l->tracee, offsetof(struct stub_data, socket)), fds,
			 sizeof(fds)) &&
	    inject_write(l->plan->pid, at(l->tracee, offsetof(struct stub_data, path)), path,
			 sizeof(path)))
		return 0;
	return inject_refuse(l->plan, -EFAULT, "The process's memory cannot be written.");
}

/* What was made is closed in the target, as the stub does not come to it. */
static void descriptors_close(struct loading *l)
{
	const int fds[] = {l->memfd, l->theirs, l->loader_end};
	int64_t result;
	size_t i;

	for (i = 0; i < 3; i++) {
		const uint64_t args[6] = {(uint64_t)fds[i]};

		if (fds[i] >= 0 && tracee_syscall(l->tracee, SYS_close, args, &result))
			return;
	}
}

/* What the target's dynamic linker said. */
static int linker_error(struct loading *l, uint64_t address)
{
	char said[160] = "", shown[160];
	size_t i;

	for (i = 0; i + 1 < sizeof(said); i++)
		if (!inject_read(l->plan->pid, address + i, &said[i], 1) || !said[i])
			break;
	said[i] = '\0';
	text_printable(said, shown, sizeof(shown), 0);
	return inject_refuse(l->plan, -ELIBACC, "The process could not load it: %s", shown);
}

static int outcome(struct loading *l, int err)
{
	struct stub_data d = {0};
	bool read = inject_read(l->plan->pid, at(l->tracee, 0), &d, sizeof(d));

	l->result->returned = d.returned;
	if (err == -EBUSY)
		return inject_refuse(l->plan, err, "Other threads of the process keep its dynamic "
						   "linker busy; try again.");
	if (err == -ETIMEDOUT)
		return inject_refuse(l->plan, err, "The call in the process has not returned in time; it "
						   "goes on by itself when it does.");
	if (err == -EFAULT)
		return inject_refuse(l->plan, err, "The library crashed when it was called.");
	if (err == -ESTALE && read && (d.state & ~(uint32_t)STUB_LEFT) == STUB_DONE)
		return 0; /* we were late, and it has gone on by itself */
	if (err)
		return inject_refuse(l->plan, err, "The thread was lost in the call (%s).",
				     strerror(-err));
	if (!read || d.state == STUB_RUNNING)
		return inject_refuse(l->plan, -EFAULT, "The process's memory cannot be read.");
	return d.state == STUB_DONE ? 0 : linker_error(l, d.error);
}

int load(struct loading *l, bool *stands)
{
	int64_t until = inject_now() + CALL_NS;
	int err = tracee_enter(l->tracee);

	l->memfd = l->theirs = l->loader_end = -1;
	*stands = true;
	if (err)
		return inject_refuse(l->plan, err, "The thread could not be borrowed (%s).",
				     strerror(-err));
	err = data_prepare(l);
	if (!err)
		err = descriptors_make(l);
	if (!err)
		err = library_write(l);
	if (!err)
		err = data_complete(l);
	if (err) {
		descriptors_close(l);
		return err;
	}
	err = tracee_call(l->tracee, until < l->until ? until : l->until);
	*stands = !err || err == -EBUSY || err == -EFAULT;
	if (err == -EBUSY) {
		descriptors_close(l);
		close(l->result->socket);
		l->result->socket = -1;
	}
	return outcome(l, err);
}

#endif
