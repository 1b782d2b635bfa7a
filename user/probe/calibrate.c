/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/private.h"


#define BATCHES 9
#define CALLS 400
#define WORK_BATCHES 25
#define WORK_BYTES 32768 /* the nearest cache, or most of it */
#define URETPROBE_SYSCALL 335 /* x86-64, since 6.11 */

typedef long (*calibration_fn)(void *, long, long, long, long, long, long, long, long);

/* Begins with the instruction that the CUDA libraries begin with, and has their stack arguments. */
long gbpf_calibration_target(void *, long, long, long, long, long, long, long, long);

/* The same, never probed. */
long gbpf_calibration_twin(void *, long, long, long, long, long, long, long, long);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl gbpf_calibration_target\n"
	".type gbpf_calibration_target, @function\n"
	".balign 16\n"
	"gbpf_calibration_target:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	xor %eax, %eax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size gbpf_calibration_target, . - gbpf_calibration_target\n"
	".balign 16\n"
	"gbpf_calibration_twin:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	xor %eax, %eax\n"
	"	pop %rbp\n"
	"	ret\n"
	".balign 16\n"
	"gbpf_calibration_stepped:\n"
	"	sub $24, %rsp\n"
	"	xor %eax, %eax\n"
	"	add $24, %rsp\n"
	"	ret\n"
	".popsection\n");

/* The same with a first instruction that the kernel does not emulate. */
long gbpf_calibration_stepped(void *, long, long, long, long, long, long, long, long);
#else
long __attribute__((noinline)) gbpf_calibration_target(void *a, long b, long c, long d, long e,
						       long f, long g, long h, long i)
{
	__asm__ volatile("" ::: "memory");
	return 0;
}

long __attribute__((noinline)) gbpf_calibration_twin(void *a, long b, long c, long d, long e,
						     long f, long g, long h, long i)
{
	__asm__ volatile("" ::: "memory");
	return 0;
}
#endif

struct site_search {
	uintptr_t address;
	uint64_t offset;
};

static int site_in_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct site_search *s = ctx;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || s->address < start ||
		    s->address >= start + ph->p_filesz)
			continue;
		s->offset = s->address - start + ph->p_offset;
		return 1;
	}
	return 0;
}

static int site_of(calibration_fn target, int *fd, uint64_t *offset)
{
	struct site_search s = {.address = (uintptr_t)target};

	if (!dl_iterate_phdr(site_in_object, &s))
		return -ENOENT;
	*offset = s.offset;
	*fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

int calibration_site(int *fd, uint64_t *offset)
{
	return site_of(gbpf_calibration_target, fd, offset);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What a program does between two calls: here, to throw what we use out of the nearest cache. */
static void work_between(unsigned char *memory)
{
	volatile unsigned char *m = memory;
	size_t i;

	for (i = 0; i < WORK_BYTES; i += 64)
		m[i]++;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double batch_ns(calibration_fn function, unsigned char *memory)
{
	static const char name[] = "gbpf_calibration";
	volatile calibration_fn target = function;
	const void *handle[2] = {NULL, name}; /* the name where the driver keeps it */
	int64_t begin = now_ns();
	int i;

	for (i = 0; i < CALLS; i++) {
		if (memory)
			work_between(memory);
		target(handle, 1, 1, 1, 64, 1, 1, 0, 0);
	}
	return (double)(now_ns() - begin) / CALLS;
}

/*
 * ns a call: the quickest of several batches of one call right after the other, which
 * is what a hit costs when nothing disturbs; or with work between calls, the median,
 * which is what it costs in a program that does something else.
 */
static double cost_of_calls(calibration_fn function, bool work)
{
	unsigned char memory[WORK_BYTES];
	int batches = work ? WORK_BATCHES : BATCHES, batch;
	double each[WORK_BATCHES] = {0};

	memset(memory, 0, sizeof(memory));
	for (batch = 0; batch < batches; batch++)
		each[batch] = batch_ns(function, work ? memory : NULL);
	qsort(each, (size_t)batches, sizeof(*each), by_value);
	return each[work ? batches / 2 : 0];
}

static uint64_t cookie_of(unsigned shape)
{
	return GBPF_COOKIE(0, GBPF_IMAGE_CALIBRATION, shape) |
	       GBPF_COOKIE_ARG(GBPF_ARG_OBJECT, 1);
}

static int cost_of_shape(struct probes *p, calibration_fn function, unsigned shape,
			 bool entry_only, double *out)
{
	struct probe_site site = {.cookie = cookie_of(shape), .entry_only = entry_only};
	struct probe_link *link;
	int fd, err;

	err = site_of(function, &fd, &site.offset);
	if (err)
		return err;
	err = probes_attach(p, fd, &site, 1, &link);
	close(fd);
	if (!err) {
		*out = cost_of_calls(function, p->counting);
		probe_link_free(link);
	}
	return err;
}

struct calibration_begun {
	uint32_t mode;
	bool wanted;
};

static struct calibration_begun calibration_begin(struct probes *p)
{
	struct gbpf_switches *sw = probes_switches(p);
	struct calibration_begun b = {sw->mode, probes_wanted(p, sw->self)};

	if (sw->mode == GBPF_MODE_OFF)
		sw->mode = GBPF_MODE_PIDS; /* else events of targets flow already: leave it */
	probes_want(p, sw->self, true);
	return b;
}

static void calibration_end(struct probes *p, const struct calibration_begun *b)
{
	struct gbpf_switches *sw = probes_switches(p);

	probes_want(p, sw->self, b->wanted);
	sw->mode = b->mode;
}

int calibrate(struct probes *p, struct calibration *out, int (*between)(void *ctx), void *ctx)
{
	const calibration_fn target = gbpf_calibration_target;
	struct calibration_begun begun = calibration_begin(p);
	double bare, begin, pair, launch;
	int err;

	memset(out, 0, sizeof(*out));
	probes_trial_end(p);
	probes_name_offset(p, GBPF_IMAGE_CALIBRATION, 8);
	bare = cost_of_calls(target, p->counting);
	err = cost_of_shape(p, target, GBPF_SHAPE_OBJECT, true, &begin);
	if (!err && between)
		err = between(ctx);
	if (!err)
		err = cost_of_shape(p, target, GBPF_SHAPE_OBJECT, false, &pair);
	if (!err && between)
		err = between(ctx);
	if (!err)
		err = cost_of_shape(p, target, GBPF_SHAPE_LAUNCH, false, &launch);
	calibration_end(p, &begun);
	if (err)
		return err;
	out->begin_ns = (int64_t)(begin - bare + 0.5);
	out->pair_ns = (int64_t)(pair - bare + 0.5);
	out->launch_ns = (int64_t)(launch - bare + 0.5);
	return 0;
}

/* The two take turns, so that what else the machine does is in both. */
static double cost_beside_twin(void)
{
	unsigned char memory[WORK_BYTES];
	double each[WORK_BATCHES] = {0};
	int batch;

	memset(memory, 0, sizeof(memory));
	for (batch = 0; batch < WORK_BATCHES; batch++) {
		each[batch] = batch_ns(gbpf_calibration_target, memory);
		each[batch] -= batch_ns(gbpf_calibration_twin, memory);
	}
	qsort(each, WORK_BATCHES, sizeof(*each), by_value);
	return each[WORK_BATCHES / 2];
}

int calibrate_launches(struct probes *p, uint64_t flags, double *ns)
{
	struct probe_site site = {.cookie = cookie_of(GBPF_SHAPE_LAUNCH) | flags};
	struct calibration_begun begun;
	struct probe_link *link;
	int fd, err;

	err = site_of(gbpf_calibration_target, &fd, &site.offset);
	if (err)
		return err;
	begun = calibration_begin(p);
	err = probes_attach(p, fd, &site, 1, &link);
	close(fd);
	if (!err) {
		*ns = cost_beside_twin();
		probe_link_free(link);
	}
	calibration_end(p, &begun);
	return err;
}

int calibrate_stepped(struct probes *p, int64_t *begin_ns)
{
#if defined(__x86_64__)
	struct calibration_begun begun = calibration_begin(p);
	double bare = cost_of_calls(gbpf_calibration_stepped, p->counting), begin;
	int err = cost_of_shape(p, gbpf_calibration_stepped, GBPF_SHAPE_OBJECT, true, &begin);

	calibration_end(p, &begun);
	if (!err)
		*begin_ns = (int64_t)(begin - bare + 0.5);
	return err;
#else
	return -EOPNOTSUPP;
#endif
}

/* Installs a filter that does not know the return probe's system call, as container engines do. */
static int filter_install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, URETPROBE_SYSCALL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(*code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}

static void filtered_child(int go)
{
	volatile calibration_fn target = gbpf_calibration_target;
	const void *handle[2] = {NULL, NULL};
	char byte;
	int i;

	if (read(go, &byte, 1) != 1 || filter_install())
		_exit(2);
	for (i = 0; i < 4; i++)
		target(handle, 1, 1, 1, 1, 1, 1, 0, 0);
	_exit(0);
}

static int child_try(struct probes *p)
{
	int go[2], status = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(go[0]);
		close(go[1]);
		return -EAGAIN;
	}
	if (!pid)
		filtered_child(go[0]);
	probes_want(p, (uint32_t)pid, true);
	close(go[0]);
	if (write(go[1], "", 1) != 1)
		status = -1;
	close(go[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	probes_want(p, (uint32_t)pid, false);
	if (WIFSIGNALED(status))
		return 1;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EINVAL;
}

int calibrate_seccomp(struct probes *p)
{
	struct probe_site site = {.cookie = cookie_of(GBPF_SHAPE_OBJECT)};
	struct gbpf_switches *sw = probes_switches(p);
	uint32_t mode = sw->mode;
	int fd, err;

	if (!p->trial) { /* else the one from finding the rung serves */
		err = calibration_site(&fd, &site.offset);
		if (err)
			return err;
		err = probes_attach(p, fd, &site, 1, &p->trial);
		close(fd);
		if (err)
			return err;
	}
	sw->mode = GBPF_MODE_PIDS;
	err = child_try(p);
	sw->mode = mode;
	return err;
}
