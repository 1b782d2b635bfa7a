/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe/site.h"
#include "tests/unit/elf_image.h"

#define AT 0x1000

static struct site decode(const char *code, unsigned len)
{
	return site_decode(ELF_X86_64, (const uint8_t *)code, len, AT);
}

/* The bytes as a string literal. */
#define DECODE(code) decode(code, sizeof(code) - 1)

static void expect_ok(struct site s, uint64_t offset, bool after_endbr)
{
	assert_int_equal(s.verdict, SITE_OK);
	assert_int_equal(s.offset, offset);
	assert_string_equal(s.reason, "");
	assert_int_equal(s.after_endbr, after_endbr);
}

static void expect(struct site s, enum site_verdict verdict, const char *part)
{
	assert_int_equal(s.verdict, verdict);
	if (!strstr(s.reason, part))
		fail_msg("\"%s\" does not say \"%s\"", s.reason, part);
}

static void every_push(void **state)
{
	for (unsigned reg = 0; reg < 8; reg++) {
		const uint8_t low[] = {(uint8_t)(0x50 + reg), 0x48};
		const uint8_t high[] = {0x41, (uint8_t)(0x50 + reg)};

		expect_ok(site_decode(ELF_X86_64, low, 2, AT), AT, false);
		expect_ok(site_decode(ELF_X86_64, low, 1, AT), AT, false);
		expect_ok(site_decode(ELF_X86_64, high, 2, AT), AT, false);
	}
}

static void near_pushes_are_none(void **state)
{
	expect(DECODE("\x4f\x90"), SITE_SLOW, "single-stepped");
	expect(DECODE("\x58"), SITE_SLOW, "single-stepped");	  /* pop */
	expect(DECODE("\x41\x58"), SITE_SLOW, "single-stepped"); /* pop %r8 */
	expect(DECODE("\x41\x4f"), SITE_SLOW, "single-stepped");
	expect(DECODE("\x41"), SITE_SLOW, "single-stepped"); /* cut */
	expect(DECODE("\x49\x50"), SITE_SLOW, "single-stepped"); /* another prefix */
}

static void nops_jumps_and_calls(void **state)
{
	expect_ok(DECODE("\x90\x48"), AT, false);
	expect_ok(DECODE("\x0f\x1f\x44\x00\x00"), AT, false);
	expect_ok(DECODE("\xe9\x00\x10\x00\x00"), AT, false);
	expect_ok(DECODE("\xeb\x05"), AT, false);
	expect_ok(DECODE("\xe8\x00\x10\x00\x00"), AT, false);
	expect(DECODE("\x0f\x1f\x44\x00\x01"), SITE_SLOW, "single-stepped");
	expect(DECODE("\x0f\x1f\x44\x00"), SITE_SLOW, "single-stepped"); /* cut */
	expect(DECODE("\x0f\x1f\x40\x00\x00"), SITE_SLOW, "single-stepped");
	expect(DECODE("\xff\x25\x00\x00\x00\x00"), SITE_SLOW, "ff 25");
}

static void endbr64_is_stepped_over(void **state)
{
	expect_ok(DECODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5"), AT + 4, true);
	expect_ok(DECODE("\xf3\x0f\x1e\xfa\x41\x57"), AT + 4, true);
	expect_ok(DECODE("\xf3\x0f\x1e\xfa\x90"), AT + 4, true);
	expect(DECODE("\xf3\x0f\x1e\xfa\x48\x83\xec\x18"), SITE_SLOW, "48 83 ec");
	expect(DECODE("\xf3\x0f\x1e\xfa\xcc"), SITE_REFUSED, "breakpoint");
	expect(DECODE("\xf3\x0f\x1e\xfa"), SITE_SLOW, "endbr64"); /* the function ends here */
	expect(DECODE("\xf3\x0f\x1e\xfb\x55"), SITE_SLOW, "f3"); /* endbr32 */
	expect(DECODE("\xf3\x0f\x1e"), SITE_SLOW, "f3");
	/* Only one is stepped over. */
	expect(DECODE("\xf3\x0f\x1e\xfa\xf3\x0f\x1e\xfa\x55"), SITE_SLOW, "f3");
}

static void slow_ones_say_their_bytes(void **state)
{
	expect(DECODE("\x48\x83\xec\x08"), SITE_SLOW, "sub $,%rsp (48 83 ec)");
	expect(DECODE("\x48\x81\xec\x00\x10\x00\x00"), SITE_SLOW, "48 81 ec");
	expect(DECODE("\x48\x89\x5c\x24\x08"), SITE_SLOW, "mov (48 89)");
	expect(DECODE("\x48\x8d\x05\x00\x00\x00\x00"), SITE_SLOW, "lea (48 8d)");
	expect(DECODE("\x31\xc0"), SITE_SLOW, "xor (31)");
	expect(DECODE("\xb8\x00\x00\x00\x00"), SITE_SLOW, "b8");
	expect(DECODE("\xc3"), SITE_SLOW, "ret (c3)");
	expect(DECODE("\x64\x48\x8b\x04\x25"), SITE_SLOW, "64");
	expect(DECODE("\xd9\xe8"), SITE_SLOW, "an instruction");
	assert_int_equal(DECODE("\x31\xc0").offset, AT);
}

static void refused(void **state)
{
	const uint8_t push[] = {0x55};

	expect(DECODE("\xcc\x48\x89\xe5"), SITE_REFUSED, "breakpoint");
	expect(DECODE(""), SITE_REFUSED, "no code");
	expect(site_decode(ELF_AARCH64, push, 1, AT), SITE_REFUSED,
	       "arm64 probes are not proven safe yet");
	expect(site_decode(EM_386, push, 1, AT), SITE_REFUSED, "another machine");
	expect(site_decode(EM_RISCV, NULL, 0, AT), SITE_REFUSED, "another machine");
}

/* ---- in a file ---- */

static int setup(void **state)
{
	struct image *m = malloc(sizeof(*m));

	assert_non_null(m);
	image_make(m);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	image_free(*state);
	free(*state);
	return 0;
}

static struct site choose(const struct image *m, struct elf_symbol s)
{
	int fd = image_file(m, m->size);
	struct site site;
	struct elf *e;

	assert_int_equal(elf_open(&e, fd), 0);
	s.offset = elf_offset(e, s.value);
	site = site_choose(e, &s);
	elf_close(e);
	close(fd);
	return site;
}

static void chooses_in_a_file(void **state)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55};
	struct image *m = *state;

	expect_ok(choose(m, (struct elf_symbol){.value = 0x2000, .size = 0x20}), 0x1000, false);
	memcpy(m->bytes + AT_TEXT + 0x20, endbr, sizeof(endbr));
	expect_ok(choose(m, (struct elf_symbol){.value = 0x2020}), 0x1024, true);
	expect_ok(choose(m, (struct elf_symbol){.value = 0x2020, .size = 5}), 0x1024, true);
	/* The byte after endbr64 is another function's. */
	expect(choose(m, (struct elf_symbol){.value = 0x2020, .size = 4}), SITE_SLOW, "endbr64");
	/* The last bytes of the file. */
	expect_ok(choose(m, (struct elf_symbol){.value = 0x20ff, .size = 64}), 0x10ff, false);
}

static void refuses_in_a_file(void **state)
{
	struct image *m = *state;

	expect(choose(m, (struct elf_symbol){.value = 0x2040, .ifunc = true}), SITE_REFUSED,
	       "indirect function");
	expect(choose(m, (struct elf_symbol){.value = 0x7000}), SITE_REFUSED, "outside");
	expect(choose(m, (struct elf_symbol){.value = 0x2100}), SITE_REFUSED, "outside");
	expect(choose(m, (struct elf_symbol){.value = 0x10}), SITE_REFUSED, "not executable");
	m->bytes[AT_TEXT] = 0xcc;
	expect(choose(m, (struct elf_symbol){.value = 0x2000}), SITE_REFUSED, "breakpoint");
	m->header->e_machine = EM_AARCH64;
	expect(choose(m, (struct elf_symbol){.value = 0x2020}), SITE_REFUSED, "arm64");
	m->header->e_machine = EM_PPC64;
	expect(choose(m, (struct elf_symbol){.value = 0x2020}), SITE_REFUSED, "another machine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_push),
		cmocka_unit_test(near_pushes_are_none),
		cmocka_unit_test(nops_jumps_and_calls),
		cmocka_unit_test(endbr64_is_stepped_over),
		cmocka_unit_test(slow_ones_say_their_bytes),
		cmocka_unit_test(refused),
		cmocka_unit_test_setup_teardown(chooses_in_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_in_a_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
