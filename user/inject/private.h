/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of inject/ share. Only its own files and its tests include this. */
#ifndef GBPF_INJECT_PRIVATE_H
#define GBPF_INJECT_PRIVATE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/filter.h"
#include "inject/inject.h"

#define INJECT_RANGES 4
#define INJECT_ALLOCATORS 8
#define INJECT_XSTATE_MAX 16384 /* of a thread that has not asked for AMX: 2.7 KiB so far */
#define INJECT_NAME_MAX 64

struct inject_range {
	uint64_t start, end;
};

/* What is known of a process before anything in it is touched. */
struct inject_plan {
	uint32_t pid;
	int pidfd; /* -1: none yet */
	uint64_t dlopen, dlsym, dlerror, errno_location; /* addresses in the target */
	uint64_t syscall_ret; /* "syscall; ret", any will do */
	uint64_t restorer;    /* of signal handlers: "mov $15, %rax; syscall" */
	struct inject_range calls[INJECT_RANGES]; /* text that system calls are accepted from */
	size_t calls_count;
	struct inject_range allocators[INJECT_ALLOCATORS];
	size_t allocators_count;
	bool filtered;		    /* there are seccomp filters */
	struct filters filters;	    /* of the thread stopped last */
	bool filters_good;	    /* and they were found harmless */
	bool standalone; /* the program names no dynamic linker: static, or it is one itself */
	bool own_malloc;	    /* the program brings an allocator that we cannot tell apart */
	uint64_t global, global_size; /* _rtld_global */
	uint64_t load_lock;	      /* glibc's lock of the loader, 0: not found */
	/* Memory that nobody uses: the last page of a library's data, after the data. */
	uint64_t spare;
	size_t spare_size;
	char *why; /* inject_result.why */
};

/* Sets why to a sentence and returns err. */
int inject_refuse(struct inject_plan *p, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int64_t inject_now(void); /* CLOCK_MONOTONIC, ns */

/* ---- before: is it possible, and where is what (look.c, find.c) ---- */

/* Refuses processes that cannot be injected into. 0 or a negative error, why set. */
int inject_look(struct inject_plan *p, const struct inject_options *o);
/* Finds the addresses. Likewise. */
int inject_find(struct inject_plan *p, const struct inject_options *o);
void inject_plan_free(struct inject_plan *p);

/* As many bytes as asked for, or false. */
bool inject_read(uint32_t pid, uint64_t address, void *to, size_t size);
bool inject_write(uint32_t pid, uint64_t address, const void *from, size_t size);

/* ---- a thread at the end of a system call (catch.c), and is it safe there (safe.c) ---- */

struct catcher;

struct caught {
	uint32_t tid;
	int64_t since;	   /* it stands since then: CLOCK_MONOTONIC, ns */
	uint64_t ip, ax;   /* that it returns to, with this result */
};

int catcher_new(struct catcher **out, struct inject_plan *p);
void catcher_free(struct catcher *c); /* NULL is accepted */
/*
 * Waits for a thread, attaches this thread of ours to it and asks it to stop.
 * -EAGAIN: none came in time, *seen says how many calls fit meanwhile; -ESTALE: it went
 * on, this thread of ours must end to let go of it; or what ptrace said.
 */
int catcher_catch(struct catcher *c, int64_t until, struct caught *out);
/*
 * Threads may wait again: the one that was caught has gone on. skip: not this one for the
 * next 5 ms, as it was of no use; or 0.
 */
void catcher_next(struct catcher *c, uint32_t skip);
uint64_t catcher_passed(const struct catcher *c);

/* The two pieces of code that are used where glibc has them. */
extern const uint8_t inject_syscall_ret[3], inject_restorer[9];
/*
 * Is the thread with this stack pointer in no signal handler and no allocator, and is
 * nobody loading a library, or walking the list of them?
 */
bool inject_safe(const struct inject_plan *p, uint64_t sp);
/* The words of a stack, without the process: for tests. */
bool inject_safe_stack(const struct inject_plan *p, const uint64_t *words, size_t count);
/* Finds glibc's lock of the loader in the bytes of _rtld_global: its offset, or SIZE_MAX. */
size_t inject_find_lock(const uint8_t *global, size_t size);

/* ---- calls on a stopped thread (remote.c) ---- */

struct tracee;

int tracee_new(struct tracee **out, const struct inject_plan *p, const struct caught *c);
void tracee_free(struct tracee *t);
/* Until its first stop; -ESRCH. -ESTALE: not where it was caught, and has been let go. */
int tracee_begin(struct tracee *t);
uint64_t tracee_sp(const struct tracee *t);
/* Registers, signal mask and vector state as they were, and off it goes. */
int tracee_release(struct tracee *t);
/* Signals are held back, and what follows happens on memory of ours. */
int tracee_enter(struct tracee *t);
/* result: of the system call, -errno in the usual range. */
int tracee_syscall(struct tracee *t, long nr, const uint64_t args[6], int64_t *result);
/* Memory of ours in the target (tracee_enter() made it). */
uint64_t tracee_memory(const struct tracee *t);
/* Lets it run the stub (stub.h). */
int tracee_start(struct tracee *t);
/*
 * Until the stub's state is another than known. -ETIMEDOUT; -EFAULT: it crashed, and
 * stands there; -EBUSY: it waited for another thread's dlopen(), and stands; -ESRCH.
 */
int tracee_await(struct tracee *t, uint32_t known, int64_t until, uint32_t *state);
/* Stops it where the stub waits for that. -ESTALE: it waits no longer, and has gone on. */
int tracee_take_over(struct tracee *t);
/* Unmaps what tracee_enter() mapped. */
int tracee_leave(struct tracee *t);
int64_t tracee_stopped_ns(const struct tracee *t);

#endif
