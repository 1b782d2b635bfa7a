// SPDX-License-Identifier: BSD-2-Clause
/*
 * How long attaching and detaching take: prints JSON, milliseconds.
 *
 *   bench_attach LIBRARY RUNG SITES REPEAT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "probe/elf.h"
#include "probe/probes.h"
#include "probe/site.h"
#include "tools/bench/bench.h"

struct sites {
	struct elf *elf;
	struct probe_site *site;
	size_t count, wanted;
};

static int on_function(const struct elf_symbol *s, void *ctx)
{
	struct sites *sites = ctx;
	struct site site;

	if (sites->count == sites->wanted)
		return 1;
	if (!s->dynamic || s->ifunc)
		return 0;
	site = site_choose(sites->elf, s);
	if (site.verdict == SITE_OK)
		sites->site[sites->count++] = (struct probe_site){
			.offset = site.offset, .cookie = GBPF_COOKIE(1, 1, GBPF_SHAPE_BARE)};
	return 0;
}

static int sites_find(struct sites *s, int fd)
{
	int err;

	s->site = calloc(s->wanted + 1, sizeof(*s->site));
	if (!s->site)
		return -ENOMEM;
	err = elf_open(&s->elf, fd);
	if (!err)
		err = elf_each_function(s->elf, on_function, s);
	return err < 0 ? err : s->count < s->wanted ? -ENOENT : 0;
}

static int measure(struct probes *p, int fd, const struct sites *s, unsigned repeat)
{
	struct probe_link *link;
	unsigned i;
	int err;

	printf("{\"rung\": \"%s\", \"sites\": %zu, \"attach_detach_ms\": [",
	       rung_name(probes_rung(p)), s->count);
	for (i = 0; i < repeat; i++) {
		int64_t begin = bench_clock(CLOCK_MONOTONIC), middle;

		err = probes_attach(p, fd, s->site, s->count, &link);
		if (err)
			return err;
		middle = bench_clock(CLOCK_MONOTONIC);
		probe_link_free(link);
		printf("%s[%.3f, %.3f]", i ? ", " : "", (double)(middle - begin) * 1e-6,
		       (double)(bench_clock(CLOCK_MONOTONIC) - middle) * 1e-6);
	}
	printf("]}\n");
	return 0;
}

static enum rung rung_named(const char *name)
{
	if (!strcmp(name, "session"))
		return RUNG_SESSION;
	return !strcmp(name, "multi") ? RUNG_MULTI : RUNG_SINGLE;
}

int main(int argc, char **argv)
{
	struct probes_options o = {0};
	struct probes *p = NULL;
	struct sites s = {0};
	int fd, err;

	if (argc != 5) {
		fprintf(stderr, "usage: bench_attach LIBRARY session|multi|single SITES REPEAT\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	o.rung = rung_named(argv[2]);
	s.wanted = strtoul(argv[3], NULL, 10);
	err = fd < 0 ? -errno : sites_find(&s, fd);
	if (!err)
		err = probes_new(&p, &o, NULL);
	if (!err)
		err = measure(p, fd, &s, (unsigned)strtoul(argv[4], NULL, 10));
	probes_free(p);
	elf_close(s.elf);
	free(s.site);
	if (fd >= 0)
		close(fd);
	return err ? bench_fail("bench_attach", err) : 0;
}
