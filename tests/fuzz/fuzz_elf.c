/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ELF reader and the choice of sites, by libFuzzer: whatever the bytes are,
 * what comes out keeps its promises.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/elf.h"
#include "probe/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

struct seen {
	struct elf *elf;
	size_t size, functions, name_bytes;
};

static int check(const struct elf_symbol *s, void *ctx)
{
	struct seen *seen = ctx;
	struct site site = site_choose(seen->elf, s);

	expect(s->name && s->name[0]);
	expect(s->offset == UINT64_MAX || s->offset < seen->size);
	expect(site.reason && (site.verdict == SITE_OK) == !site.reason[0]);
	if (site.verdict == SITE_REFUSED)
		return 0;
	expect(!s->ifunc && elf_executable(seen->elf, s->value));
	expect(site.offset < seen->size);
	expect(site.offset == s->offset + (site.after_endbr ? 4 : 0));
	seen->name_bytes += strlen(s->name);
	seen->functions++;
	return 0;
}

static void ask(struct elf *e, size_t size)
{
	struct elf_symbol s;
	uint64_t at = size;
	char path[64];

	if (!elf_exported(e, "alpha", &s))
		expect(!strcmp(s.name, "alpha"));
	if (!elf_interpreter(e, path, sizeof(path)))
		expect(strlen(path) < sizeof(path));
	expect(strlen(elf_build_id(e)) <= 128);
	expect(strlen(elf_soname(e)) < size);
	elf_needs(e, "lib");
	elf_has_section(e, ".text");
	elf_has_symtab(e);
	elf_machine(e);
	for (unsigned i = 0; i < 16; i++, at = at * 3 + i) {
		uint64_t offset = elf_offset(e, at);

		expect(offset == UINT64_MAX || offset < size);
		expect(offset != UINT64_MAX || !elf_executable(e, at));
	}
	at = elf_symbolize(e, 0x2000, &s) ? 0 : s.value;
	expect(at <= 0x2000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), err;
	struct seen seen = {.size = size};

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	err = elf_open(&seen.elf, fd);
	expect(err ? !seen.elf : seen.elf != NULL);
	expect(!err || err == -ENOEXEC || err == -EBADMSG);
	if (!err) {
		err = elf_each_function(seen.elf, check, &seen);
		expect(!err || err == -EBADMSG);
		/* A symbol takes 24 bytes of the file, though tables may overlap. */
		expect(seen.functions <= 2 * (size / 24));
		ask(seen.elf, size);
	}
	elf_close(seen.elf);
	close(fd);
	return 0;
}
