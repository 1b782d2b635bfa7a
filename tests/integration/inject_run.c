/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_run PID LIBRARY NAME ENTRY LIMIT_MS [TIMES]: inject(), with "-N" behind NAME
 * when it is done several times. A line each: what came of it, and what was answered.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/inject.h"

static void answer(int fd)
{
	int32_t said[3] = {0};

	if (fd >= 0 && recv(fd, said, sizeof(said), 0) == sizeof(said))
		printf(" pid=%d tid=%d runs=%d", said[0], said[1], said[2]);
}

static int once(uint32_t pid, const struct inject_options *o)
{
	struct inject_result r;
	int err = inject(pid, o, &r);

	printf("err=%d returned=%d stopped=%" PRId64 " longest=%" PRId64, err, r.returned,
	       r.stopped_ns, r.longest_ns);
	answer(r.socket);
	printf(" left=%u why=%s\n", r.left, r.why);
	fflush(stdout);
	if (r.socket >= 0)
		close(r.socket);
	return err;
}

int main(int argc, char **argv)
{
	long i, times = argc > 6 ? atol(argv[6]) : 1;
	int fd = argc > 5 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1, failed = 0;
	struct inject_options o = {0};
	struct stat st;
	char name[64];

	if (fd < 0 || fstat(fd, &st))
		return 2;
	o.size = (size_t)st.st_size;
	o.library = mmap(NULL, o.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (o.library == MAP_FAILED)
		return 2;
	o.name = name;
	o.entry = argv[4];
	o.limit_ns = atol(argv[5]) * 1000000;
	for (i = 0; i < times; i++) {
		snprintf(name, sizeof(name), times > 1 ? "%s-%ld" : "%s", argv[3], i);
		failed += !!once((uint32_t)atol(argv[1]), &o);
	}
	return failed ? 1 : 0;
}
