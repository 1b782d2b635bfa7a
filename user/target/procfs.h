/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading /proc: the files of processes that may end at any moment. */
#ifndef GBPF_TARGET_PROCFS_H
#define GBPF_TARGET_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What an errno met under /proc/PID means: -ESRCH, -EACCES, or itself negated. */
int proc_error(int error);

/*
 * An fd of the directory /proc/PID. It stays that process's even if the number is used
 * again: once the process is gone, reads under it fail. -ESRCH, -EACCES (hidden
 * by hidepid; CAP_SYS_PTRACE sees through it).
 */
int proc_open(uint32_t pid);
int proc_open_thread(uint32_t pid, uint32_t tid); /* likewise /proc/PID/task/TID */

/* Reads at most size - 1 bytes of a file, terminated. Bytes read, -ESRCH, -EACCES, -errno. */
ssize_t proc_read(int dir, const char *name, char *buf, size_t size);
/* Like proc_read() for a link; more than fits is cut. */
ssize_t proc_readlink(int dir, const char *name, char *buf, size_t size);

/* Lines of a file, each terminated instead of its newline; longer ones are cut. */
struct proc_lines {
	int fd;
	size_t pos, len;
	bool cut, end;
	char buf[16384];
};

int proc_lines_open(struct proc_lines *l, int dir, const char *name); /* 0 or like proc_read() */
/* 1 and a line (valid until the next call), 0 at the end, or like proc_read(). */
int proc_lines_next(struct proc_lines *l, char **line, size_t *len);
void proc_lines_close(struct proc_lines *l);

/* Calls each(number) for the entries of a directory that are numbers, until it returns non-zero. */
int proc_each_number(const char *path, int (*each)(uint32_t number, void *ctx), void *ctx);

/* A decimal number that fits and is all of s. */
bool proc_number(const char *s, uint32_t *out);

/* Pids that grow; items belongs to whoever takes it and is freed with free(). */
struct pid_list {
	uint32_t *items;
	size_t count, room;
};
int pid_list_add(struct pid_list *l, uint32_t pid); /* 0 or -ENOMEM */
void pid_list_sort_unique(struct pid_list *l);

#endif
