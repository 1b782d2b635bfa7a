/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests inject: answers on the socket, and leaves nothing of the thread as it was. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int entry(int fd);
int entry_keep(int fd);
int entry_slow(int fd);
int entry_crash(int fd);

static int runs;

/* Memory, errno, rounding, x87 and all vector registers. */
static void disturb(void)
{
	const uint32_t rounding = 0x7f80; /* MXCSR: towards zero, all exceptions masked */
	const uint16_t control = 0x0c7f;
	void *p[64];
	size_t i;

	for (i = 0; i < 64; i++) {
		p[i] = malloc(1u << (i % 16));
		if (p[i])
			memset(p[i], 0xa5, 1u << (i % 16));
	}
	for (i = 0; i < 64; i++)
		free(p[i]);
	errno = E2BIG;
	__asm__ volatile("ldmxcsr %0\n\tfldcw %1\n\tfldpi\n\t"
			 "pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm5, %%xmm5\n\t"
			 "pcmpeqd %%xmm9, %%xmm9\n\tpcmpeqd %%xmm15, %%xmm15\n\t"
			 "std\n\tcld\n\tvzeroupper"
			 :
			 : "m"(rounding), "m"(control)
			 : "xmm0", "xmm5", "xmm9", "xmm15", "cc");
}

static void answer(int fd)
{
	const int32_t said[3] = {getpid(), (int32_t)syscall(SYS_gettid), ++runs};

	if (send(fd, said, sizeof(said), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		runs = -1000;
}

int entry(int fd)
{
	answer(fd);
	close(fd);
	disturb();
	return 42;
}

/* The socket stays open as long as the process lives. */
int entry_keep(int fd)
{
	answer(fd);
	return fd;
}

int entry_slow(int fd)
{
	answer(fd);
	close(fd);
	sleep(2);
	return 1;
}

int entry_crash(int fd)
{
	close(fd);
	__asm__ volatile("movl $1, 8");
	return 0;
}
