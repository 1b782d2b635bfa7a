/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/site.h"

#include <stddef.h>
#include <string.h>

#define CODE_BYTES 16
#define ENDBR_BYTES 4

struct pattern {
	uint8_t len, bytes[5];
	const char *reason;
};

/* arch/x86/kernel/uprobes.c executes these itself; push is matched apart. */
static const struct pattern emulated[] = {
	{1, {0x90}, ""},
	{5, {0x0f, 0x1f, 0x44, 0x00, 0x00}, ""},
	{1, {0xe8}, ""},
	{1, {0xe9}, ""},
	{1, {0xeb}, ""},
};

/* Instructions that compilers put first, so that the reason says which it is. */
static const struct pattern stepped[] = {
	{3, {0x48, 0x83, 0xec}, "starts with sub $,%rsp (48 83 ec), which is single-stepped"},
	{3, {0x48, 0x81, 0xec}, "starts with sub $,%rsp (48 81 ec), which is single-stepped"},
	{2, {0x48, 0x89}, "starts with mov (48 89), which is single-stepped"},
	{2, {0x49, 0x89}, "starts with mov (49 89), which is single-stepped"},
	{2, {0x4c, 0x89}, "starts with mov (4c 89), which is single-stepped"},
	{2, {0x48, 0x8b}, "starts with mov (48 8b), which is single-stepped"},
	{2, {0x4c, 0x8b}, "starts with mov (4c 8b), which is single-stepped"},
	{2, {0x48, 0x8d}, "starts with lea (48 8d), which is single-stepped"},
	{2, {0x4c, 0x8d}, "starts with lea (4c 8d), which is single-stepped"},
	{2, {0x48, 0x85}, "starts with test (48 85), which is single-stepped"},
	{2, {0x48, 0xc7}, "starts with mov (48 c7), which is single-stepped"},
	{1, {0x48}, "starts with a 64-bit operation (48), which is single-stepped"},
	{1, {0x31}, "starts with xor (31), which is single-stepped"},
	{1, {0x33}, "starts with xor (33), which is single-stepped"},
	{1, {0x83}, "starts with an operation on a small constant (83), which is single-stepped"},
	{1, {0x85}, "starts with test (85), which is single-stepped"},
	{1, {0x89}, "starts with mov (89), which is single-stepped"},
	{1, {0x8b}, "starts with mov (8b), which is single-stepped"},
	{1, {0xb8}, "starts with mov $,%eax (b8), which is single-stepped"},
	{1, {0xc3}, "starts with ret (c3), which is single-stepped"},
	{1, {0xf3}, "starts with a prefix (f3), which is single-stepped"},
	{1, {0x64}, "starts with a thread-local access (64), which is single-stepped"},
	{2, {0xff, 0x25}, "starts with an indirect jump (ff 25), which is single-stepped"},
};

static const uint8_t endbr64[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};

static const struct pattern *match(const struct pattern *patterns, size_t count,
				   const uint8_t *code, unsigned len)
{
	for (size_t i = 0; i < count; i++)
		if (len >= patterns[i].len && !memcmp(code, patterns[i].bytes, patterns[i].len))
			return &patterns[i];
	return NULL;
}

static bool is_push(const uint8_t *code, unsigned len)
{
	if (len >= 2 && code[0] == 0x41)
		return code[1] >= 0x50 && code[1] <= 0x57;
	return len >= 1 && code[0] >= 0x50 && code[0] <= 0x57;
}

static bool is_emulated(const uint8_t *code, unsigned len)
{
	return is_push(code, len) ||
	       match(emulated, sizeof(emulated) / sizeof(emulated[0]), code, len);
}

static struct site refuse(uint64_t offset, const char *reason)
{
	return (struct site){SITE_REFUSED, offset, reason, false};
}

static struct site decode_entry(const uint8_t *code, unsigned len, uint64_t offset)
{
	const struct pattern *p;

	if (!len)
		return refuse(offset, "has no code in the file");
	if (code[0] == 0xcc)
		return refuse(offset, "starts with a breakpoint (cc) that somebody else put there");
	if (is_emulated(code, len))
		return (struct site){SITE_OK, offset, "", false};
	p = match(stepped, sizeof(stepped) / sizeof(stepped[0]), code, len);
	return (struct site){SITE_SLOW, offset,
			     p ? p->reason : "starts with an instruction that is single-stepped",
			     false};
}

struct site site_decode(unsigned machine, const uint8_t *code, unsigned len, uint64_t offset)
{
	struct site after;

	if (machine == ELF_AARCH64)
		return refuse(offset, "arm64 probes are not proven safe yet");
	if (machine != ELF_X86_64)
		return refuse(offset, "is code for another machine");
	if (len < ENDBR_BYTES || memcmp(code, endbr64, ENDBR_BYTES))
		return decode_entry(code, len, offset);
	if (len == ENDBR_BYTES)
		return (struct site){SITE_SLOW, offset,
				     "is endbr64 and nothing else, which is single-stepped", false};
	after = decode_entry(code + ENDBR_BYTES, len - ENDBR_BYTES, offset + ENDBR_BYTES);
	after.after_endbr = true;
	return after;
}

struct site site_choose(const struct elf *e, const struct elf_symbol *s)
{
	uint8_t code[CODE_BYTES];
	size_t want = sizeof(code);
	int len;

	if (elf_machine(e) != ELF_X86_64)
		return site_decode(elf_machine(e), NULL, 0, s->offset);
	if (s->ifunc)
		return refuse(s->offset, "is an indirect function, resolved only at run time");
	if (s->offset == UINT64_MAX)
		return refuse(s->offset, "is outside every segment of the file");
	if (!elf_executable(e, s->value))
		return refuse(s->offset, "is in a segment that is not executable");
	if (s->size && s->size < want)
		want = s->size; /* what follows belongs to another function */
	len = elf_read(e, s->offset, code, want);
	if (len < 0)
		return refuse(s->offset, "cannot be read");
	return site_decode(ELF_X86_64, code, (unsigned)len, s->offset);
}
