// SPDX-License-Identifier: BSD-2-Clause
#include "trace/place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libgbpf-cupti.so"
#define SOCKET "socket"
#define INJECTION "CUDA_INJECTION64_PATH"
#define DESCRIPTORS 1024

void place_init(struct place *p)
{
	*p = (struct place){.directory = -1, .listener = -1, .guard = -1};
}

/* A library must be mapped executable from there. */
static bool may_execute(const char *path)
{
	struct statvfs fs;

	return !statvfs(path, &fs) && !(fs.f_flag & (ST_NOEXEC | ST_RDONLY));
}

static int directory_make(struct place *p, uid_t uid)
{
	const char *tmpdir = getenv("TMPDIR");
	char own[40];
	const char *const bases[] = {tmpdir && *tmpdir == '/' ? tmpdir : "/tmp", "/tmp", "/dev/shm",
				     own};
	size_t i;

	snprintf(own, sizeof(own), "/run/user/%u", uid);
	for (i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		/* a longer one would not leave room for the socket's name */
		if (strlen(bases[i]) > sizeof(p->path) - 16 || !may_execute(bases[i]))
			continue;
		snprintf(p->path, sizeof(p->path), "%s/gbpf-XXXXXX", bases[i]);
		if (mkdtemp(p->path))
			break;
	}
	if (i == sizeof(bases) / sizeof(*bases)) {
		p->path[0] = '\0';
		return -EACCES;
	}
	p->directory = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return p->directory < 0 ? -errno : 0;
}

static int library_write(const struct place *p, const void *library, size_t size)
{
	int fd = openat(p->directory, LIBRARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	const char *from = library;
	size_t done = 0;
	ssize_t n = 1;
	int err = 0;

	if (fd < 0)
		return -errno;
	while (done < size && n > 0) {
		n = write(fd, from + done, size - done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (done < size)
		err = n < 0 ? -errno : -EIO;
	if (fchmod(fd, 0755) && !err) /* whatever our umask is */
		err = -errno;
	close(fd);
	return err;
}

static int socket_make(struct place *p, const struct invoker *who)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/" SOCKET, p->path);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    fchmodat(p->directory, SOCKET, 0600, 0) || listen(p->listener, 256))
		return -errno;
	if (who->uid == geteuid())
		return 0;
	/* by name, in a directory that is still ours alone */
	if (fchownat(p->directory, SOCKET, who->uid, who->gid, AT_SYMLINK_NOFOLLOW) ||
	    fchown(p->directory, who->uid, who->gid))
		return -errno;
	return 0;
}

int place_make(struct place *p, const struct invoker *who, const void *library, size_t size,
	       char *why, size_t why_size)
{
	const char *taken = getenv(INJECTION);
	int err;

	if (taken && *taken) {
		snprintf(why, why_size, INJECTION " is set (%.100s): another profiler is to be "
					"loaded there", taken);
		return -EEXIST;
	}
	err = directory_make(p, who->uid);
	if (!err)
		err = library_write(p, library, size);
	if (!err)
		err = socket_make(p, who);
	if (err) {
		snprintf(why, why_size, "there is no directory that the command could load a "
					"library from: %s", strerror(-err));
		place_free(p);
	}
	return err;
}

int place_enter(const struct place *p)
{
	char path[sizeof(p->path) + 32];

	if (!p->path[0])
		return 0;
	snprintf(path, sizeof(path), "%s/" LIBRARY, p->path);
	if (setenv(INJECTION, path, 1))
		return -errno;
	snprintf(path, sizeof(path), "%s/" SOCKET, p->path);
	return setenv("GBPF_SIDECAR_SOCKET", path, 1) ? -errno : 0;
}

void place_leave(const struct place *p)
{
	if (!p->path[0])
		return;
	unsetenv(INJECTION);
	unsetenv("GBPF_SIDECAR_SOCKET");
}

static void remove_all(const struct place *p)
{
	unlinkat(p->directory, LIBRARY, 0);
	unlinkat(p->directory, SOCKET, 0);
	rmdir(p->path);
}

static void close_all_but(int a, int b, int c)
{
	int fd;

	for (fd = 0; fd < DESCRIPTORS; fd++)
		if (fd != a && fd != b && fd != c)
			close(fd);
}

/*
 * The signals that gbpf takes are blocked here, as they were in it: a Ctrl-C for the
 * command is none for us.
 */
static void in_guard(const struct place *p, const struct invoker *who, int end, int command)
{
	struct pollfd ended = {.fd = command, .events = POLLIN};
	char byte;

	prctl(PR_SET_NAME, "gbpf-cleanup");
	close_all_but(p->directory, end, command);
	if (who->uid != geteuid() &&
	    (setgroups(1, &who->gid) || setresgid(who->gid, who->gid, who->gid) ||
	     setresuid(who->uid, who->uid, who->uid)))
		_exit(1);
	while (read(end, &byte, 1) < 0 && errno == EINTR)
		;
	while (command >= 0 && poll(&ended, 1, -1) < 0 && errno == EINTR)
		;
	remove_all(p);
	_exit(0);
}

int place_guard(struct place *p, const struct invoker *who, int command_pidfd)
{
	int ends[2];

	if (!p->path[0])
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	p->guard_pid = fork();
	if (!p->guard_pid)
		in_guard(p, who, ends[0], command_pidfd);
	close(ends[0]);
	if (p->guard_pid < 0) {
		p->guard_pid = 0;
		close(ends[1]);
		return -EAGAIN;
	}
	p->guard = ends[1];
	return 0;
}

void place_close(struct place *p)
{
	if (p->listener >= 0)
		close(p->listener);
	p->listener = -1;
}

void place_free(struct place *p)
{
	place_close(p);
	if (p->guard >= 0)
		close(p->guard);
	if (p->guard_pid)
		while (waitpid(p->guard_pid, NULL, 0) < 0 && errno == EINTR)
			;
	else if (p->path[0])
		remove_all(p);
	if (p->directory >= 0)
		close(p->directory);
	place_init(p);
}
