/* SPDX-License-Identifier: BSD-2-Clause */
/* The library goes over: a memfd and a socket made by the target, whose other ends we get. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/load.h"
#include "inject/private.h"
#include "inject/remote.h"
#include "util/text.h"

#ifdef __x86_64__

#define SPINS 1500000 /* of "pause", until it no longer waits for us: 30 to 70 ms */
#define PATH_BITS 15
#define CALL_NS 1000000000 /* dlopen(), dlsym() and entry() together */

static uint64_t at(const struct tracee *t, size_t offset)
{
	return tracee_memory(t) + STUB_PAGE + offset;
}

static int copy_fd(const struct loading *l, int32_t fd)
{
	int ours = (int)syscall(SYS_pidfd_getfd, l->plan->pidfd, fd, 0);

	return ours < 0 ? -errno : ours;
}

/* The process says which descriptors: it could name a file on which writing hangs. */
static bool is_memfd(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t size = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX;
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

static int data_prepare(struct loading *l)
{
	struct stub_data d = {
		.errno_location = l->plan->errno_location,
		.dlopen = l->plan->dlopen,
		.dlsym = l->plan->dlsym,
		.dlerror = l->plan->dlerror,
		.memfd = -1,
		.pair = {-1, -1},
		.spins = SPINS,
	};

	snprintf(d.entry, sizeof(d.entry), "%s", l->options->entry);
	snprintf(d.name, sizeof(d.name), "%s", l->options->name);
	return inject_write(l->plan->pid, at(l->tracee, 0), &d, sizeof(d)) ? 0 : -EFAULT;
}

static bool data_read(const struct loading *l, struct stub_data *d)
{
	return inject_read(l->plan->pid, at(l->tracee, 0), d, sizeof(*d));
}

/* Not if we were too slow: it has closed them then, and the numbers may be others'. */
static bool still_waits(const struct loading *l)
{
	uint32_t go;

	return inject_read(l->plan->pid, at(l->tracee, offsetof(struct stub_data, go)), &go,
			   sizeof(go)) &&
	       go != STUB_WAITED;
}

static int descriptors_take(struct loading *l, const struct stub_data *d, int *memfd, int *socket)
{
	int err = 0;

	*memfd = copy_fd(l, d->memfd);
	*socket = *memfd < 0 ? *memfd : copy_fd(l, d->pair[1]);
	if (!still_waits(l))
		err = -EAGAIN;
	else if (*socket < 0)
		err = inject_refuse(l->plan, *socket, "Its descriptors cannot be copied (%s).",
				    strerror(-*socket));
	else if (!is_memfd(*memfd) || !is_socket(*socket))
		err = inject_refuse(l->plan, -EBADF, "What came is no memfd, or no socket.");
	if (err && *memfd >= 0)
		close(*memfd);
	if (err && *socket >= 0)
		close(*socket);
	return err;
}

static int library_write(struct loading *l, const struct stub_data *d)
{
	int memfd, socket, err = descriptors_take(l, d, &memfd, &socket);

	if (err)
		return err;
	err = write_all(memfd, l->options->library, l->options->size);
	close(memfd);
	if (err) {
		close(socket);
		return inject_refuse(l->plan, err, "The library could not be handed over (%s).",
				     strerror(-err));
	}
	l->result->socket = socket;
	return 0;
}

/*
 * The dynamic linker takes a library of the same path for the one that it has loaded,
 * and numbers of descriptors are used again: so each path looks different, by "//" or
 * "/." for each bit of a number. Threads can have descriptors of their own.
 */
static void path_make(char *path, size_t size, int fd, uint64_t number)
{
	char bits[2 * PATH_BITS + 1] = "";
	int i;

	for (i = 0; i < PATH_BITS; i++)
		memcpy(bits + (size_t)i * 2, number >> i & 1 ? "/." : "//", 3);
	snprintf(path, size, "/proc/thread-self/fd%s/%d", bits, fd);
}

/* The stub is ready and waits, but not for long. */
static int hand_over(struct loading *l)
{
	struct stub_data d;
	char path[sizeof(d.path)] = "";
	uint32_t go = STUB_GO;
	int err;

	if (!data_read(l, &d))
		return inject_refuse(l->plan, -ESRCH, "The process has ended.");
	err = library_write(l, &d);
	path_make(path, sizeof(path), d.memfd, (uint64_t)inject_now() >> 10);
	if (!err && !inject_write(l->plan->pid, at(l->tracee, offsetof(struct stub_data, path)),
				  path, sizeof(path)))
		err = inject_refuse(l->plan, -ESRCH, "The process has ended.");
	if (err)
		go = STUB_CANCEL;
	inject_write(l->plan->pid, at(l->tracee, offsetof(struct stub_data, go)), &go, sizeof(go));
	return err;
}

/* What the stub does not come to close. */
static void descriptors_close(struct loading *l)
{
	struct stub_data d;
	int64_t result;
	size_t i;

	if (!data_read(l, &d))
		return;
	const int fds[] = {d.memfd, d.pair[0], d.pair[1]};

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

/* What the stub says that it did. */
static int outcome(struct loading *l, const struct stub_data *d)
{
	int err;

	switch (d->state & ~(uint32_t)STUB_LEFT) {
	case STUB_DONE:
		l->result->returned = d->returned;
		return 0;
	case STUB_FAILED:
		err = d->memfd < 0 ? d->memfd : d->returned;
		return inject_refuse(l->plan, err, "%s() failed in the process (%s).",
				     d->memfd < 0 ? "memfd_create" : "socketpair", strerror(-err));
	case STUB_ABANDONED: /* we were too slow */
		return -EAGAIN;
	default:
		return linker_error(l, d->error);
	}
}

static int went_wrong(struct loading *l, int err)
{
	switch (err) {
	case -EBUSY:
		return inject_refuse(l->plan, err,
				     "Other threads of the process keep its dynamic "
				     "linker busy; try again.");
	case -ETIMEDOUT:
		return inject_refuse(l->plan, err,
				     "The call in the process has not returned in time; it "
				     "goes on by itself when it does.");
	case -EFAULT:
		return inject_refuse(l->plan, err, "The library crashed when it was called.");
	default:
		return inject_refuse(l->plan, err, "The thread was lost in the call (%s).",
				     strerror(-err));
	}
}

/* With the stub running. *stands: see load(). */
static int accompany(struct loading *l, bool *stands)
{
	int64_t until = inject_now() + CALL_NS;
	uint32_t state = STUB_RUNNING;
	struct stub_data d;
	int err, refused = 0;

	until = until < l->until ? until : l->until;
	err = tracee_await(l->tracee, STUB_RUNNING, until, &state);
	if (!err && state == STUB_READY) {
		refused = hand_over(l);
		err = tracee_await(l->tracee, STUB_READY, until, &state);
	}
	*stands = err == -EBUSY || err == -EFAULT;
	if (err == -EBUSY)
		descriptors_close(l);
	if (err)
		return refused ? refused : went_wrong(l, err);
	if (!data_read(l, &d))
		return went_wrong(l, -ESRCH);
	err = tracee_take_over(l->tracee);
	*stands = !err || err == -EFAULT;
	if (err && err != -ESTALE)
		return went_wrong(l, err);
	return refused ? refused : outcome(l, &d);
}

static void socket_close(struct loading *l)
{
	if (l->result->socket >= 0)
		close(l->result->socket);
	l->result->socket = -1;
}

int load(struct loading *l, bool *stands)
{
	int err = tracee_enter(l->tracee);

	*stands = true;
	if (!err)
		err = data_prepare(l);
	if (!err)
		err = tracee_start(l->tracee);
	if (err)
		return inject_refuse(l->plan, err, "The thread could not be borrowed (%s).",
				     strerror(-err));
	err = accompany(l, stands);
	if (err)
		socket_close(l);
	return err;
}

#endif
