// SPDX-License-Identifier: BSD-2-Clause
/*
 * Theoretical occupancy, as NVIDIA describes it: registers are given to warps in units of
 * 256, from four parts of an SM; shared memory in units of 128 bytes (256 before compute
 * capability 8.0), a reserved part a block on top of what is asked for from 8.0 on (CUDA C++
 * Programming Guide, "Compute Capabilities"; cuda_occupancy.h).
 */
#include <errno.h>
#include <limits.h>

#include "model/gpu.h"

#define REGISTER_UNIT 256
#define SM_PARTS 4
#define MAX_REGISTERS 255
#define DEFAULT_BLOCK_SMEM 49152 /* without opting in to more */

static int64_t round_up(int64_t v, int64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static int limited(int64_t v)
{
	return v > INT_MAX ? INT_MAX : (int)v;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Blocks an SM at most, where the driver did not say: by compute capability. */
static int max_blocks(const struct record_device *d)
{
	if (d->sm_blocks > 0)
		return d->sm_blocks;
	switch (d->major * 10 + d->minor) {
	case 75: case 86: case 87:
		return 16;
	case 89: case 110: case 120: case 121:
		return 24;
	default:
		return 32;
	}
}

static bool known(const struct record_device *d)
{
	return d->major >= 7 && d->sms > 0 && d->warp > 0 && d->sm_threads >= d->warp &&
	       d->block_registers > 0 && d->sm_registers > 0 && d->sm_smem > 0;
}

static void by_registers(const struct record_device *d, const struct record_shape *shape,
			 int64_t warps, struct occupancy *o)
{
	int64_t a_warp = round_up((int64_t)shape->registers * d->warp, REGISTER_UNIT);
	int64_t parts = d->sm_registers / SM_PARTS;

	o->limit_registers = INT_MAX;
	o->allocated_registers = limited(a_warp * warps);
	if (!a_warp)
		return;
	o->limit_registers = 0;
	if (shape->registers > MAX_REGISTERS ||
	    a_warp * round_up(warps, SM_PARTS) > d->block_registers)
		return;
	o->limit_registers = limited(parts / a_warp * SM_PARTS / warps);
}

static void by_smem(const struct record_device *d, const struct record_shape *shape,
		    struct occupancy *o)
{
	int64_t asked = (int64_t)shape->smem_static + shape->smem_dynamic;
	int64_t reserved = d->major < 8 ? 0 : d->reserved_smem >= 0 ? d->reserved_smem : 1024;
	int64_t most = d->block_smem_optin > 0 ? d->block_smem_optin
		       : d->block_smem > 0     ? d->block_smem
					       : DEFAULT_BLOCK_SMEM;
	int64_t block = round_up(asked + reserved, d->major < 8 ? 256 : 128);

	o->allocated_smem = limited(block);
	o->limit_smem = !block ? INT_MAX : asked > most ? 0 : limited(d->sm_smem / block);
}

static void find_limiting(struct occupancy *o)
{
	const int limits[] = { o->limit_blocks, o->limit_registers, o->limit_smem, o->limit_warps,
			       o->limit_barriers };

	o->blocks_per_sm = INT_MAX;
	for (int i = 0; i < 5; i++)
		o->blocks_per_sm = least(o->blocks_per_sm, limits[i]);
	for (unsigned i = 0; i < 5; i++)
		if (limits[i] == o->blocks_per_sm)
			o->limiting |= 1u << i;
}

/* In float, as Kineto does, so that the same is rounded. */
static int kineto_percent(const struct record_device *d, const struct record_shape *shape,
			  const struct occupancy *o, int64_t threads)
{
	int64_t asked = (int64_t)shape->smem_static + shape->smem_dynamic;
	int64_t most = d->block_smem > 0 ? d->block_smem : DEFAULT_BLOCK_SMEM;
	float blocks = (float)o->grid_blocks_per_sm;

	if (asked > most)
		return 0;
	if ((float)o->blocks_per_sm < blocks)
		blocks = (float)o->blocks_per_sm;
	return (int)(0.5 + (double)(blocks * (float)threads / (float)d->sm_threads) * 100.0);
}

int occupancy_of(const struct record_device *d, const struct record_shape *shape,
		 struct occupancy *out)
{
	uint64_t threads = (uint64_t)shape->block[0] * shape->block[1];
	double grid = (double)shape->grid[0] * shape->grid[1] * shape->grid[2];
	int64_t warps;

	*out = (struct occupancy){ .limit_barriers = INT_MAX };
	if (!known(d) || !threads || !shape->block[2] || threads > INT_MAX / shape->block[2])
		return -ENODATA;
	threads *= shape->block[2];
	warps = ((int64_t)threads + d->warp - 1) / d->warp;
	out->limit_blocks = max_blocks(d);
	out->limit_warps = limited(d->sm_threads / d->warp / warps);
	if (d->block_threads > 0 && threads > (uint64_t)d->block_threads)
		out->limit_warps = 0;
	by_registers(d, shape, warps, out);
	by_smem(d, shape, out);
	find_limiting(out);
	out->grid_blocks_per_sm = grid / d->sms;
	out->warps_per_sm = out->grid_blocks_per_sm * (double)threads / d->warp;
	out->percent = kineto_percent(d, shape, out, (int64_t)threads);
	return 0;
}
