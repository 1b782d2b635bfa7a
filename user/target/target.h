/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes there are, what they map, and what starts or ends: /proc,
 * perf's mapping and task notices, containers. Knows nothing about probes.
 */
#ifndef GBPF_TARGET_TARGET_H
#define GBPF_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- one process (process.c) ---- */

struct process_info {
	uint32_t pid, ppid, uid;
	uint32_t ns_pid;  /* its number in its innermost pid namespace */
	int64_t start;	  /* CLOCK_BOOTTIME ns; clock-tick granularity, as /proc gives it */
	bool seccomp;	  /* a seccomp filter is installed (Seccomp: 2) */
	char comm[16];
	char cmdline[512];   /* arguments joined by blanks, "" for kernel threads */
	char exe[512];	     /* as /proc/PID/exe reads, with " (deleted)"; "" if not readable */
	char container[128]; /* short id from the cgroup path, "" if none */
};

/*
 * 0, -ESRCH (no such process, only a thread of that number, it ended meanwhile
 * or is a zombie without threads), -EACCES (hidden by hidepid).
 */
int process_read(uint32_t pid, struct process_info *out);
int64_t process_start(uint32_t pid); /* ns as in process_info.start, or -errno */
/* Thread's name; "" if it is gone. */
void process_thread_comm(uint32_t pid, uint32_t tid, char comm[16]);
/* Thread's number in its innermost pid namespace, 0 if unknown. */
uint32_t process_thread_ns_tid(uint32_t pid, uint32_t tid);

/* Calls each(pid) for all processes until it returns non-zero, and returns that. */
int process_each(int (*each)(uint32_t pid, void *ctx), void *ctx);
int process_each_thread(uint32_t pid, int (*each)(uint32_t tid, void *ctx), void *ctx);
/* All present descendants of pid, itself first. Grown with realloc, caller frees. */
int process_tree(uint32_t pid, uint32_t **pids, size_t *count);
/* Processes of a cgroup (v1 or v2), its children included. -ENOENT, -ENOTDIR (not a cgroup). */
int process_in_cgroup(const char *path, uint32_t **pids, size_t *count);
/*
 * Which host process does a user mean by this number? The host's own reading
 * wins; else it is looked for as a number inside pid namespaces. Returns how
 * many candidates there are (0: none) and the first few in out.
 */
size_t process_resolve(uint32_t number, uint32_t *out, size_t max);
/* Is this process in the initial pid namespace? Host pids mean nothing to us elsewhere. */
bool process_host_namespace(void);

/* ---- executable mappings (maps.c) ---- */

struct mapping {
	uint64_t start, end, offset; /* bytes; offset in the file */
	uint64_t dev, ino;	     /* as the mapping shows them: no identity under overlayfs */
	const char *path;	     /* raw; " (deleted)" removed and said in deleted */
	bool deleted;
};

/* Each file-backed executable mapping, once a file. -ESRCH, -EACCES. */
int maps_each(uint32_t pid, int (*each)(const struct mapping *m, void *ctx), void *ctx);
/*
 * Opens the very file behind a mapping, whatever its path now means: through
 * map_files, else /proc/PID/root + path with device and inode compared.
 * Returns an fd (O_RDONLY | O_CLOEXEC) or -errno.
 */
int maps_open(uint32_t pid, const struct mapping *m);

/* Does this path look like a library of ours by its base name? */
enum image_hint { HINT_NONE = 0, HINT_DRIVER, HINT_RUNTIME, HINT_NCCL };
enum image_hint image_hint(const char *path);

/*
 * CUDA libraries installed on this machine, before anybody maps them: the
 * loader's cache and directories, CUDA toolkits, LD_LIBRARY_PATH, and the
 * Python environments that can be found. Calls each(path, hint).
 */
int images_installed(int (*each)(const char *path, enum image_hint hint, void *ctx), void *ctx);
/*
 * Those that a command about to be started would find besides: beside its
 * executable (looked for in the PATH of envp), in its LD_LIBRARY_PATH and
 * PYTHONPATH and in the Python environment it belongs to. envp ends with NULL.
 * Both return what each returned if that was not 0, else 0, or -ENOMEM.
 */
int images_of_command(const char *command, char *const envp[],
		      int (*each)(const char *path, enum image_hint hint, void *ctx), void *ctx);

/* Path of a command as execvpe() would look for it in the PATH of envp; false if it is nowhere. */
bool command_find(const char *command, char *const envp[], char *out, size_t size);

/* ---- notices of new mappings, forks, execs and exits (watch.c) ---- */

enum watch_kind { WATCH_MAP = 1, WATCH_FORK, WATCH_EXEC, WATCH_EXIT, WATCH_COMM, WATCH_LOST };

struct watch_notice {
	enum watch_kind kind;
	int64_t ts; /* CLOCK_MONOTONIC ns */
	uint32_t pid, tid, ppid; /* ppid: FORK and EXIT; COMM of a thread: tid != pid */
	uint64_t lost;		 /* WATCH_LOST: how many */
	struct mapping map;	 /* WATCH_MAP; executable and file-backed only */
	const char *comm;	 /* WATCH_COMM, WATCH_EXEC */
};

struct watch;

/*
 * System-wide, one perf event a CPU. -EACCES/-EPERM without the rights. FORK and
 * EXIT are those of processes: EXIT is the end of the first thread, which other
 * threads can outlive (process_read() tells).
 */
int watch_new(struct watch **out);
/* Mappings of paths that want() refuses are dropped unseen; NULL, as at first: none is. */
void watch_filter(struct watch *w, bool (*want)(const char *path, void *ctx), void *ctx);
/*
 * An epoll fd that becomes readable when notices come. Being told once uses that
 * up: consume after each time. Every notice wakes, so on a machine that starts
 * thousands of processes a second let a millisecond pass before waiting again.
 */
int watch_fd(const struct watch *w);
/*
 * Hands over what happened before the call, in the order of time over all CPUs,
 * until each returns non-zero. Returns how many notices were handed over, what
 * each returned if that was negative, or -errno.
 */
int watch_consume(struct watch *w, int (*each)(const struct watch_notice *n, void *ctx), void *ctx);
void watch_free(struct watch *w); /* NULL is accepted */

#endif
