/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is this file probed already, perhaps under another name? Device and inode do
 * not tell under overlayfs, where two mounts of one layer show one real file as
 * two. The kernel writes a breakpoint into every private executable mapping of
 * the real file, our own included: so map it, and look.
 */
#ifndef GBPF_PROBE_IDENTITY_H
#define GBPF_PROBE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/*
 * How many of the offsets (at most the first 8 are looked at) hold something
 * else in memory than in the file. -errno if the file cannot be mapped.
 */
int identity_probed(int fd, const uint64_t *offsets, size_t count);

#endif
