/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands against injecting into a process, found without touching it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "inject/private.h"
#include "probe/elf.h"
#include "target/procfs.h"
#include "target/target.h"

int inject_refuse(struct inject_plan *p, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(((struct inject_result *)NULL)->why), fmt, args);
	va_end(args);
	return err;
}

int64_t inject_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

bool inject_read(uint32_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = {to, size};
	struct iovec remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool inject_write(uint32_t pid, uint64_t address, const void *from, size_t size)
{
	struct iovec local = {(void *)(uintptr_t)from, size};
	struct iovec remote = {(void *)(uintptr_t)address, size};

	return process_vm_writev((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* The value of a line "KEY:\tVALUE", NULL if it is another line. */
static const char *value_of(const char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) || line[len] != ':')
		return NULL;
	return line + len + 1 + strspn(line + len + 1, " \t");
}

static int look_at_state(struct inject_plan *p, char state)
{
	if (state == 'T')
		return inject_refuse(p, -EBUSY,
				     "The process is stopped by a signal; let it go on "
				     "(kill -CONT %u) and try again.",
				     p->pid);
	if (state == 'Z' || state == 'X')
		return inject_refuse(p, -ESRCH,
				     "A thread of the process has ended or is a zombie: "
				     "it is about to end.");
	return 0;
}

/* One line of /proc/PID/task/TID/status. */
static int look_at_line(struct inject_plan *p, const char *line)
{
	const char *v;

	v = value_of(line, "State");
	if (v)
		return look_at_state(p, *v);
	v = value_of(line, "TracerPid");
	if (v && strcmp(v, "0"))
		return inject_refuse(p, -EPERM,
				     "Process %s traces it already (a debugger or strace); "
				     "only one can.",
				     v);
	v = value_of(line, "Seccomp");
	if (v && !strcmp(v, "1"))
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process runs in seccomp's strict mode, which allows "
				     "nothing that is needed.");
	if (v && strcmp(v, "0"))
		p->filtered = true; /* what the filters say can be read when a thread is stopped */
	v = value_of(line, "x86_Thread_features");
	if (v && strstr(v, "shstk"))
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process uses shadow stacks, which forbid "
				     "calls from outside.");
	return 0;
}

static int look_at_thread(uint32_t tid, void *ctx)
{
	struct inject_plan *p = ctx;
	struct proc_lines lines;
	char *line;
	size_t len;
	int err, dir = proc_open_thread(p->pid, tid);

	if (dir < 0)
		return dir == -ESRCH ? 0 : dir; /* it has ended since */
	err = proc_lines_open(&lines, dir, "status");
	close(dir);
	if (err)
		return err == -ESRCH ? 0 : err;
	while (!err && (err = proc_lines_next(&lines, &line, &len)) > 0)
		err = look_at_line(p, line);
	proc_lines_close(&lines);
	return err == -ESRCH && !p->why[0] ? 0 : err;
}

static int look_at_threads(struct inject_plan *p)
{
	int err = process_each_thread(p->pid, look_at_thread, p);

	if (err == -ESRCH && !p->why[0])
		inject_refuse(p, err, "The process has ended.");
	else if (err == -EACCES)
		inject_refuse(p, err, "The process may not be looked at; this takes root.");
	else if (err < 0 && !p->why[0])
		inject_refuse(p, err, "Reading /proc/%u failed (%s).", p->pid, strerror(-err));
	return err;
}

static int look_at_program(struct inject_plan *p, int fd)
{
	struct elf_symbol s;
	char interpreter[512];
	struct elf *e;
	int err = elf_open(&e, fd);

	if (err == -ENOEXEC)
		return inject_refuse(p, -EOPNOTSUPP, "The process is not a 64-bit one.");
	if (err)
		return inject_refuse(p, err, "Its program cannot be read (%s).", strerror(-err));
	if (elf_machine(e) != ELF_X86_64)
		err = inject_refuse(p, -EOPNOTSUPP, "The process is not an x86-64 one.");
	p->standalone = elf_interpreter(e, interpreter, sizeof(interpreter)) != 0;
	p->own_malloc = !p->standalone && !elf_exported(e, "malloc", &s);
	elf_close(e);
	return err;
}

/* dlopen() is given a path under /proc. */
static int look_at_proc(struct inject_plan *p, int dir)
{
	int fd = openat(dir, "root/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs = {0};

	if (fd >= 0) {
		if (fstatfs(fd, &fs))
			fs.f_type = 0;
		close(fd);
	}
	if (fs.f_type != PROC_SUPER_MAGIC)
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process sees no /proc, through which its "
				     "dynamic linker would get the library; mount it "
				     "there.");
	return 0;
}

static int look_at_exe(struct inject_plan *p, int dir)
{
	int err, exe = openat(dir, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (exe < 0 && errno == ENOENT)
		return inject_refuse(p, -EOPNOTSUPP, "It is a thread of the kernel.");
	if (exe < 0)
		return inject_refuse(p, -errno,
				     "Its program cannot be opened (%s); this takes root.",
				     strerror(errno));
	err = look_at_program(p, exe);
	close(exe);
	return err;
}

static int look_at_files(struct inject_plan *p)
{
	struct process_info info;
	int dir, err = process_read(p->pid, &info);

	dir = err ? err : proc_open(p->pid);
	if (dir < 0)
		return inject_refuse(p, dir,
				     dir == -ESRCH ? "There is no such process."
						   : "The process is hidden from us.");
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		err = inject_refuse(p, -errno, "The process cannot be opened (%s).",
				    strerror(errno));
	if (!err)
		err = look_at_exe(p, dir);
	if (!err)
		err = look_at_proc(p, dir);
	close(dir);
	return err;
}

static int look_at_kernel(struct inject_plan *p)
{
	if (!process_host_namespace())
		return inject_refuse(p, -EOPNOTSUPP,
				     "gbpf runs in a pid namespace of its own, where the kernel's "
				     "numbers of threads mean nothing.");
	/* An argument that cannot be right: the kernel has the call if it says so. */
	if (syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno == ENOSYS)
		return inject_refuse(p, -EOPNOTSUPP,
				     "This kernel lacks pidfd_getfd(2), which came "
				     "with Linux 5.6.");
	return 0;
}

int inject_look(struct inject_plan *p, const struct inject_options *o)
{
	int err = look_at_kernel(p);

	if (!o->library || !o->size || !o->name || !o->entry || !o->name[0] || !o->entry[0] ||
	    strlen(o->name) >= INJECT_NAME_MAX || strlen(o->entry) >= INJECT_NAME_MAX ||
	    strchr(o->name, '/') || o->limit_ns <= 0)
		return inject_refuse(p, -EINVAL,
				     "The library, its name, its entry or the limit is "
				     "missing or too long.");
	if (!err)
		err = look_at_files(p);
	return err ? err : look_at_threads(p);
}
