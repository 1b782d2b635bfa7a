/* SPDX-License-Identifier: BSD-2-Clause */
/* What injection decides from bytes: is a thread at a safe place, where is what in a process. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "inject/frame.h"
#include "inject/private.h"

#define RESTORER 0x7f0000001000u
#define ALLOCATOR 0x7f0000200000u

/* ---- a stack ---- */

static struct inject_plan stack_plan(void)
{
	return (struct inject_plan){
		.restorer = RESTORER,
		.allocators = {{ALLOCATOR, ALLOCATOR + 4096}},
		.allocators_count = 1,
	};
}

static bool safe_with(const struct inject_plan *p, size_t at, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t words[64];
	size_t i;

	for (i = 0; i < 64; i++)
		words[i] = 0x555500000000 + i * 8;
	words[at] = a;
	if (at + 2 < 64) {
		words[at + 1] = b;
		words[at + 2] = c;
	}
	return inject_safe_stack(p, words, 64);
}

static void frame_of_a_signal(void **state)
{
	struct inject_plan p = stack_plan();

	assert_true(safe_with(&p, 5, 0x1234, 0, 0));
	assert_false(safe_with(&p, 5, RESTORER, 7, 0));
	assert_false(safe_with(&p, 0, RESTORER, 6, 0));
	/* no ucontext behind it: a leftover */
	assert_true(safe_with(&p, 5, RESTORER, 0x555512345678, 0));
	assert_true(safe_with(&p, 5, RESTORER, 7, 0x555512345678));
	assert_true(safe_with(&p, 63, RESTORER, 0, 0));
}

static void return_into_an_allocator(void **state)
{
	struct inject_plan p = stack_plan();

	assert_false(safe_with(&p, 63, ALLOCATOR + 17, 0, 0));
	assert_true(safe_with(&p, 63, ALLOCATOR - 1, 0, 0));
	assert_true(safe_with(&p, 63, ALLOCATOR + 4096, 0, 0));
}

/* ---- the lock of the loader ---- */

static void put_mutex(uint8_t *at, int32_t lock, int32_t owner, int32_t kind)
{
	memset(at, 0, 40);
	memcpy(at, &lock, 4);
	memcpy(at + 8, &owner, 4);
	memcpy(at + 16, &kind, 4);
}

static void lock_among_others(void **state)
{
	uint8_t bytes[4096];

	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), SIZE_MAX);
	put_mutex(bytes + 64, 0, 0, 1); /* one alone */
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), SIZE_MAX);
	put_mutex(bytes + 1000, 0, 0, 1);
	put_mutex(bytes + 1040, 0, 0, 1);
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), 1000);
	put_mutex(bytes + 1000, 2, 4711, 1); /* held, and others wait */
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), 1000);
	put_mutex(bytes + 1000, 3, 0, 1);
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), SIZE_MAX);
	put_mutex(bytes + 1000, 0, 0, 0); /* not recursive */
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), SIZE_MAX);
	put_mutex(bytes + 4016, 0, 0, 1);
	put_mutex(bytes + 4056, 0, 0, 1);
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes)), 4016);
	assert_int_equal(inject_find_lock(bytes, sizeof(bytes) - 1), SIZE_MAX);
	assert_int_equal(inject_find_lock(bytes, 0), SIZE_MAX);
}

#ifdef __x86_64__

/* ---- a frame ---- */

static struct user_regs_struct some_regs(void)
{
	struct user_regs_struct r;
	uint8_t *bytes = (uint8_t *)&r;
	size_t i;

	for (i = 0; i < sizeof(r); i++)
		bytes[i] = (uint8_t)(i * 3 + 1);
	return r;
}

static void frame_holds_the_registers(void **state)
{
	static uint8_t xstate[832], to[2048];
	struct user_regs_struct r = some_regs();
	struct frame_thread t = {&r, 0x123456789abcdef0, xstate, sizeof(xstate)};
	const uint64_t address = 0x7fff12345608; /* as misaligned as words can be */
	struct stub_frame f;
	uint32_t magic;
	uint64_t features = 7;
	size_t size;

	memset(xstate, 0x77, sizeof(xstate));
	memcpy(xstate + 464, &features, 8);
	size = frame_build(to, sizeof(to), address, RESTORER, &t);
	memcpy(&f, to, sizeof(f));
	assert_int_equal(f.restorer, RESTORER);
	assert_int_equal(f.ip, r.rip);
	assert_int_equal(f.sp, r.rsp);
	assert_int_equal(f.ax, r.rax);
	assert_int_equal(f.di, r.rdi);
	assert_int_equal(f.r15, r.r15);
	assert_int_equal(f.eflags, r.eflags);
	assert_int_equal(f.mask, t.mask);
	assert_int_equal(f.fpstate % 64, 0);
	assert_true(f.fpstate >= address + sizeof(f));
	assert_int_equal(size, f.fpstate - address + sizeof(xstate) + 4);
	assert_memory_equal(to + (f.fpstate - address), xstate, 464);
	memcpy(&magic, to + (f.fpstate - address) + 464, 4);
	assert_int_equal(magic, 0x46505853);
	assert_memory_equal(to + (f.fpstate - address) + 472, &features, 8);
	memcpy(&magic, to + size - 4, 4);
	assert_int_equal(magic, 0x46505845);
}

static void frame_in_little_room(void **state)
{
	static uint8_t xstate[832], to[2048];
	struct user_regs_struct r = some_regs();
	struct frame_thread t = {&r, 0, xstate, sizeof(xstate)};
	const uint64_t address = 0x7fff12345600;
	struct stub_frame f;
	size_t size, room;
	uint32_t magic;

	assert_int_equal(frame_build(to, sizeof(f) - 1, address, RESTORER, &t), 0);
	assert_int_equal(frame_build(to, sizeof(f), address, RESTORER, &t), sizeof(f));
	memcpy(&f, to, sizeof(f));
	assert_int_equal(f.fpstate, 0);
	/* what SSE needs, and no sign that there is more */
	size = frame_build(to, 1000, address, RESTORER, &t);
	memcpy(&f, to, sizeof(f));
	assert_int_equal(size, f.fpstate - address + 512);
	memcpy(&magic, to + (f.fpstate - address) + 464, 4);
	assert_int_equal(magic, 0);
	for (room = 0; room < sizeof(to); room++) {
		memset(to, 0xee, sizeof(to));
		size = frame_build(to, room, address, RESTORER, &t);
		assert_true(size <= room);
		assert_true(room == sizeof(to) || to[room] == 0xee);
	}
}

/* ---- seccomp filters ---- */

static const struct seccomp_data a_call = {
	.nr = 7, .arch = 0xc000003e, .instruction_pointer = 0x1122334455667788,
	.args = {0xaabbccdd00000005}};

static uint32_t answer(const struct sock_filter *code, size_t length)
{
	return filter_run(code, length, &a_call);
}

#define ANSWER(...)                                                                            \
	answer((const struct sock_filter[]){__VA_ARGS__},                                      \
	       sizeof((const struct sock_filter[]){__VA_ARGS__}) / sizeof(struct sock_filter))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IMM(value) BPF_STMT(BPF_LD | BPF_IMM, value)
#define ALU(op, value) BPF_STMT(BPF_ALU | BPF_K | (op), value)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define RETURN_A BPF_STMT(BPF_RET | BPF_A, 0)
#define IF(op, value) BPF_JUMP(BPF_JMP | BPF_K | (op), value, 0, 1)

static void instructions_of_filters(void **state)
{
	assert_int_equal(ANSWER(LOAD(0), RETURN_A), 7);
	assert_int_equal(ANSWER(LOAD(4), RETURN_A), 0xc000003e);
	assert_int_equal(ANSWER(LOAD(8), RETURN_A), 0x55667788);
	assert_int_equal(ANSWER(LOAD(12), RETURN_A), 0x11223344);
	assert_int_equal(ANSWER(LOAD(16), RETURN_A), 5);
	assert_int_equal(ANSWER(LOAD(20), RETURN_A), 0xaabbccdd);
	assert_int_equal(ANSWER(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), RETURN_A), 64);
	assert_int_equal(ANSWER(IMM(9), ALU(BPF_ADD, 4), ALU(BPF_MUL, 3), ALU(BPF_SUB, 1),
				ALU(BPF_DIV, 2), RETURN_A), 19);
	assert_int_equal(ANSWER(IMM(0xf0), ALU(BPF_OR, 0xf), ALU(BPF_AND, 0x3c), ALU(BPF_XOR, 1),
				ALU(BPF_LSH, 4), ALU(BPF_RSH, 2), RETURN_A), 0xf4);
	assert_int_equal(ANSWER(IMM(1), BPF_STMT(BPF_ALU | BPF_NEG, 0), RETURN_A), UINT32_MAX);
	assert_int_equal(ANSWER(IMM(6), BPF_STMT(BPF_ST, 3), IMM(1),
				BPF_STMT(BPF_LDX | BPF_MEM, 3),
				BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), RETURN_A), 7);
	assert_int_equal(ANSWER(IMM(5), BPF_STMT(BPF_MISC | BPF_TAX, 0), IMM(0),
				BPF_STMT(BPF_STX, 15), BPF_STMT(BPF_LD | BPF_MEM, 15),
				RETURN_A), 5);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JEQ, 5), RETURN(1), RETURN(2)), 1);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JEQ, 6), RETURN(1), RETURN(2)), 2);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JGT, 5), RETURN(1), RETURN(2)), 2);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JGE, 5), RETURN(1), RETURN(2)), 1);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JSET, 4), RETURN(1), RETURN(2)), 1);
	assert_int_equal(ANSWER(IMM(5), IF(BPF_JSET, 2), RETURN(1), RETURN(2)), 2);
	assert_int_equal(ANSWER(BPF_STMT(BPF_JMP | BPF_JA, 1), RETURN(1), RETURN(2)), 2);
}

/* The kernel would not have taken them; whoever says so must not be believed. */
static void filters_that_are_broken(void **state)
{
	const uint32_t killed = SECCOMP_RET_KILL_PROCESS;

	assert_int_equal(answer(NULL, 0), killed);
	assert_int_equal(ANSWER(IMM(5)), killed);
	assert_int_equal(ANSWER(LOAD(61), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(LOAD(64), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(LOAD(UINT32_MAX), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(BPF_STMT(BPF_LD | BPF_MEM, 16), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(BPF_STMT(BPF_ST, 16), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(ALU(BPF_DIV, 0), RETURN(0x7fff0000)), killed);
	assert_int_equal(ANSWER(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RETURN(1)), killed);
}

static int judged(const struct sock_filter *code, size_t length, long *nr)
{
	struct filters f = {.count = 1};

	f.programs[0].code = (struct sock_filter *)(uintptr_t)code;
	f.programs[0].length = length;
	return filters_judge(&f, nr);
}

#define JUDGED(nr, ...)                                                                        \
	judged((const struct sock_filter[]){__VA_ARGS__},                                      \
	       sizeof((const struct sock_filter[]){__VA_ARGS__}) / sizeof(struct sock_filter), nr)

static void filters_that_are_harmless(void **state)
{
	const uint32_t allow = SECCOMP_RET_ALLOW, error = SECCOMP_RET_ERRNO | EPERM;
	struct filters none = {0};
	long nr;

	assert_int_equal(filters_judge(&none, &nr), 0);
	assert_int_equal(JUDGED(&nr, RETURN(allow)), 0);
	assert_int_equal(JUDGED(&nr, RETURN(SECCOMP_RET_LOG)), 0);
	assert_int_equal(JUDGED(&nr, RETURN(error)), -EOPNOTSUPP);
	/* a call that nobody needs: an error is fine, everything else is not */
	assert_int_equal(JUDGED(&nr, LOAD(0), IF(BPF_JEQ, 321), RETURN(error), RETURN(allow)), 0);
	assert_int_equal(JUDGED(&nr, LOAD(0), IF(BPF_JEQ, 321), RETURN(SECCOMP_RET_TRAP),
				RETURN(allow)), -EOPNOTSUPP);
	assert_int_equal(nr, 321);
	assert_int_equal(JUDGED(&nr, LOAD(0), IF(BPF_JEQ, 321), RETURN(SECCOMP_RET_USER_NOTIF),
				RETURN(allow)), -EOPNOTSUPP);
	assert_int_equal(JUDGED(&nr, LOAD(0), IF(BPF_JEQ, 319), RETURN(error), RETURN(allow)),
			 -EOPNOTSUPP);
	assert_int_equal(nr, 319);
	/* no memory that can be written and executed (an argument), another architecture */
	assert_int_equal(JUDGED(&nr, LOAD(32), IF(BPF_JEQ, 7), RETURN(error), RETURN(allow)),
			 -EOPNOTSUPP);
	assert_int_equal(nr, 9);
	assert_int_equal(JUDGED(&nr, LOAD(4), IF(BPF_JEQ, 0xc000003e), RETURN(allow),
				RETURN(SECCOMP_RET_KILL_PROCESS)), 0);
}

/* ---- a process: a copy of this one, whose addresses are known ---- */

static struct inject_plan plan_of(pid_t pid, char *why)
{
	return (struct inject_plan){.pid = (uint32_t)pid, .pidfd = -1, .why = why};
}

static const struct inject_options some_options = {
	.library = "x", .size = 1, .name = "some.so", .entry = "entry", .limit_ns = 1000000};

static int in_callback(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const uint64_t *lock = ctx;

	/* the second lock of the pair is held while the list of libraries is walked */
	assert_int_equal(*(const volatile int32_t *)(uintptr_t)(*lock + 40), 1);
	assert_int_equal(*(const volatile int32_t *)(uintptr_t)(*lock + 48), gettid());
	return 1;
}

static void addresses_of_a_process(void **state)
{
	char why[200] = "";
	/* sanitizers have functions of the same names */
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	pid_t pid = fork();
	struct inject_plan p;

	if (!pid) {
		pause();
		_exit(0);
	}
	p = plan_of(pid, why);
	assert_int_equal(inject_look(&p, &some_options), 0);
	assert_int_equal(inject_find(&p, &some_options), 0);
	assert_string_equal(why, "");
	assert_int_equal(p.dlopen, (uintptr_t)dlsym(libc, "dlopen"));
	assert_int_equal(p.dlsym, (uintptr_t)dlsym(libc, "dlsym"));
	assert_int_equal(p.dlerror, (uintptr_t)dlsym(libc, "dlerror"));
	assert_int_equal(p.errno_location, (uintptr_t)dlsym(libc, "__errno_location"));
	assert_memory_equal((void *)(uintptr_t)p.syscall_ret, "\x0f\x05\xc3", 3);
	assert_memory_equal((void *)(uintptr_t)p.restorer, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	assert_true(p.spare_size >= 1024 && p.spare % 64 == 0);
	dl_iterate_phdr(in_callback, &p.load_lock);
	inject_plan_free(&p);
	dlclose(libc);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void refuse(uint32_t pid, struct inject_options o, int err, const char *why)
{
	struct inject_result r;

	assert_int_equal(inject(pid, &o, &r), err);
	assert_non_null(strstr(r.why, why));
	assert_int_equal(r.socket, -1);
	assert_int_equal(r.stopped_ns, 0);
}

static void options_that_cannot_be(void **state)
{
	struct inject_options o = some_options;
	char name[65];

	memset(name, 'n', 64);
	name[64] = '\0';
	o.size = 0;
	refuse(1, o, -EINVAL, "missing");
	o = some_options;
	o.name = name;
	refuse(1, o, -EINVAL, "too long");
	o.name = "a/b";
	refuse(1, o, -EINVAL, "missing");
	o.name = "";
	refuse(1, o, -EINVAL, "missing");
	o = some_options;
	o.entry = NULL;
	refuse(1, o, -EINVAL, "missing");
	o = some_options;
	o.limit_ns = 0;
	refuse(1, o, -EINVAL, "missing");
	refuse(0, some_options, -ESRCH, "no such process");
	refuse(UINT32_MAX, some_options, -ESRCH, "no such process");
}

static void process_that_has_ended(void **state)
{
	pid_t pid = fork();
	siginfo_t si;

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	refuse((uint32_t)pid, some_options, -ESRCH, "no such process"); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	refuse((uint32_t)pid, some_options, -ESRCH, "no such process");
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_of_a_signal),
		cmocka_unit_test(return_into_an_allocator),
		cmocka_unit_test(lock_among_others),
#ifdef __x86_64__
		cmocka_unit_test(frame_holds_the_registers),
		cmocka_unit_test(frame_in_little_room),
		cmocka_unit_test(instructions_of_filters),
		cmocka_unit_test(filters_that_are_broken),
		cmocka_unit_test(filters_that_are_harmless),
		cmocka_unit_test(addresses_of_a_process),
		cmocka_unit_test(options_that_cannot_be),
		cmocka_unit_test(process_that_has_ended),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
