# SPDX-License-Identifier: BSD-2-Clause
"""Two kernels that Triton compiles and launches by its own launcher."""
import triton
import triton.language as tl


@triton.jit
def gbpf_triton_add(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def gbpf_triton_scale(y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, tl.load(y + at, mask=inside) * 0.5, mask=inside)
