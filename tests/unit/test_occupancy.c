// SPDX-License-Identifier: BSD-2-Clause
/* Occupancy: what PyTorch's own profiler wrote on an H200, and the published limits. */
#include <limits.h>
#include <math.h>

#include "gpu_session.h"

#include "model/gpu.h"

static const struct record_device h200 = {
	.major = 9, .minor = 0, .sms = 132, .warp = 32, .block_threads = 1024, .sm_threads = 2048,
	.sm_blocks = 32, .block_registers = 65536, .sm_registers = 65536, .block_smem = 49152,
	.block_smem_optin = 232448, .sm_smem = 233472, .reserved_smem = 1024,
};

/* Every kernel shape of four profiles of PyTorch 2.11. */
static const struct {
	uint32_t registers, smem, grid[3], block[3];
	double blocks, warps;
	int percent;
} reference[] = {
	{ 74, 20480, { 4, 1, 4 }, { 128, 1, 1 }, 0.121212, 0.484848, 1 },
	{ 32, 0, { 8, 4, 1 }, { 32, 16, 1 }, 0.242424, 3.878788, 6 },
	{ 28, 0, { 16, 1, 1 }, { 128, 1, 1 }, 0.121212, 0.484848, 1 },
	{ 18, 0, { 1, 2, 1 }, { 256, 1, 1 }, 0.015152, 0.121212, 0 },
	{ 32, 4356, { 1, 2, 5 }, { 16, 16, 1 }, 0.075758, 0.606061, 1 },
	{ 26, 0, { 2, 2, 1 }, { 8, 32, 1 }, 0.030303, 0.242424, 0 },
	{ 21, 0, { 4, 1, 1 }, { 16, 8, 1 }, 0.030303, 0.121212, 0 },
	{ 32, 256, { 1, 1, 1 }, { 32, 1, 1 }, 0.007576, 0.007576, 0 },
	{ 16, 0, { 1, 1, 1 }, { 128, 1, 1 }, 0.007576, 0.030303, 0 },
	{ 76, 20480, { 4, 1, 3 }, { 128, 1, 1 }, 0.090909, 0.363636, 1 },
	{ 90, 6144, { 1, 8, 1 }, { 64, 1, 1 }, 0.060606, 0.121212, 0 },
	{ 40, 16, { 1, 1, 1 }, { 4, 64, 1 }, 0.007576, 0.060606, 0 },
	{ 32, 0, { 16, 1, 1 }, { 128, 1, 1 }, 0.121212, 0.484848, 1 },
	{ 80, 6528, { 2, 8, 4 }, { 64, 1, 1 }, 0.484848, 0.969697, 2 },
	{ 72, 4608, { 2, 8, 1 }, { 64, 1, 1 }, 0.121212, 0.242424, 0 },
	{ 90, 6144, { 8, 8, 1 }, { 64, 1, 1 }, 0.484848, 0.969697, 2 },
	{ 54, 2064, { 2, 1, 1 }, { 32, 4, 1 }, 0.015152, 0.060606, 0 },
	{ 27, 0, { 10, 1, 1 }, { 512, 1, 1 }, 0.075758, 1.212121, 2 },
	{ 80, 6528, { 2, 2, 1 }, { 64, 1, 1 }, 0.030303, 0.060606, 0 },
	{ 18, 0, { 65536, 1, 1 }, { 128, 1, 1 }, 496.484863, 1985.939453, 100 },
	{ 254, 67584, { 16, 32, 1 }, { 256, 1, 1 }, 3.878788, 31.030304, 0 },
	{ 32, 0, { 4, 1, 1 }, { 128, 1, 1 }, 0.030303, 0.121212, 0 },
};

static struct record_shape shape_of(uint32_t registers, uint32_t smem, const uint32_t grid[3],
				    const uint32_t block[3])
{
	struct record_shape s = { .registers = registers, .smem_static = smem };

	memcpy(s.grid, grid, sizeof(s.grid));
	memcpy(s.block, block, sizeof(s.block));
	return s;
}

static void test_reference(void **state)
{
	for (size_t i = 0; i < sizeof(reference) / sizeof(reference[0]); i++) {
		struct record_shape s = shape_of(reference[i].registers, reference[i].smem,
						 reference[i].grid, reference[i].block);
		struct occupancy o;

		assert_int_equal(occupancy_of(&h200, &s, &o), 0);
		/* They were written from a float. */
		assert_true(fabs(o.grid_blocks_per_sm - reference[i].blocks) <
			    1e-6 + reference[i].blocks * 1e-7);
		assert_true(fabs(o.warps_per_sm - reference[i].warps) <
			    1e-6 + reference[i].warps * 1e-7);
		assert_int_equal(o.percent, reference[i].percent);
	}
}

static struct occupancy limits(const struct record_device *d, uint32_t threads, uint32_t registers,
			       uint32_t smem)
{
	const uint32_t grid[3] = { 100000, 1, 1 }, block[3] = { threads, 1, 1 };
	struct record_shape s = shape_of(registers, smem, grid, block);
	struct occupancy o;

	assert_int_equal(occupancy_of(d, &s, &o), 0);
	return o;
}

/* The GEMM of the reference: one block fits, for want of registers. */
static void test_limits(void **state)
{
	struct occupancy o = limits(&h200, 256, 254, 67584);

	assert_int_equal(o.limit_registers, 1);
	assert_int_equal(o.allocated_registers, 65536);
	assert_int_equal(o.limit_smem, 3); /* 66 KiB + 1 KiB of 228 KiB */
	assert_int_equal(o.allocated_smem, 68608);
	assert_int_equal(o.limit_warps, 8);
	assert_int_equal(o.blocks_per_sm, 1);
	assert_int_equal(o.limiting, OCCUPANCY_REGISTERS);
	o = limits(&h200, 32, 16, 0);
	assert_int_equal(o.blocks_per_sm, 32);
	assert_int_equal(o.limiting, OCCUPANCY_BLOCKS);
	assert_int_equal(o.percent, 50);
	o = limits(&h200, 1024, 32, 0);
	assert_int_equal(o.blocks_per_sm, 2);
	assert_int_equal(o.limiting, OCCUPANCY_REGISTERS | OCCUPANCY_WARPS);
	assert_int_equal(o.percent, 100);
	o = limits(&h200, 1024, 33, 0); /* 40 registers a thread, as they are given */
	assert_int_equal(o.blocks_per_sm, 1);
	o = limits(&h200, 96, 255, 0); /* three warps take four parts */
	assert_int_equal(o.limit_registers, 2);
	o = limits(&h200, 128, 32, 232448);
	assert_int_equal(o.limiting, OCCUPANCY_SMEM);
	assert_int_equal(o.blocks_per_sm, 1);
	o = limits(&h200, 128, 32, 232449);
	assert_int_equal(o.blocks_per_sm, 0);
	o = limits(&h200, 1025, 32, 0);
	assert_int_equal(o.blocks_per_sm, 0);
}

/* Where they differ: Volta's unit of shared memory, and blocks an SM by capability. */
static void test_capabilities(void **state)
{
	static const struct { int major, minor, blocks; } most[] = {
		{ 7, 0, 32 }, { 7, 5, 16 }, { 8, 0, 32 }, { 8, 6, 16 }, { 8, 9, 24 }, { 9, 0, 32 },
		{ 10, 0, 32 }, { 12, 0, 24 },
	};
	struct record_device d = h200;

	d.sm_blocks = -1;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		d.major = most[i].major;
		d.minor = most[i].minor;
		assert_int_equal(limits(&d, 32, 16, 0).limit_blocks, most[i].blocks);
	}
	d.major = 7;
	assert_int_equal(limits(&d, 32, 16, 100).allocated_smem, 256);
	assert_int_equal(limits(&d, 32, 16, 0).limit_smem, INT_MAX);
	d.major = 8;
	assert_int_equal(limits(&d, 32, 16, 100).allocated_smem, 1152);
}

static void test_not_known(void **state)
{
	const uint32_t one[3] = { 1, 1, 1 }, none[3] = { 0, 1, 1 };
	const uint32_t huge[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
	struct record_shape s = shape_of(32, 0, one, none);
	struct record_device d = h200;
	struct occupancy o;

	assert_int_equal(occupancy_of(&h200, &s, &o), -ENODATA);
	s = shape_of(UINT32_MAX, UINT32_MAX, huge, huge);
	assert_int_equal(occupancy_of(&h200, &s, &o), -ENODATA);
	s = shape_of(UINT32_MAX, UINT32_MAX, huge, one);
	s.smem_dynamic = UINT32_MAX;
	assert_int_equal(occupancy_of(&h200, &s, &o), 0);
	assert_int_equal(o.blocks_per_sm, 0);
	d.sms = -1;
	assert_int_equal(occupancy_of(&d, &s, &o), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
