/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of the catalogue's tables; only catalogue*.c include this.
 *
 * To add an API, add one line to the table of its library:
 *
 *	FN(name, KIND, TIER, SHAPE, what to read…),
 *
 * KIND and TIER are those of catalogue.h and SHAPE that of bpf/gbpf.h, without
 * their prefixes. PTSZ and PTDS in place of FN add the per-thread-stream twin
 * of the same arguments. What to read are argument positions: 1..6 are integer
 * argument registers, 7 and up stack words (System V; float arguments take no
 * position, structures of 16 bytes or less one for each 8 bytes, larger ones
 * stack words). An argument whose C type has 32 bits may be read only as KIND:
 * the upper half of its register is undefined.
 */
#ifndef GBPF_PROBE_CATALOGUE_TABLE_H
#define GBPF_PROBE_CATALOGUE_TABLE_H

#include "bpf/gbpf.h"
#include "probe/catalogue.h"

#define ROW(n, k, t, s, ...)                                                                       \
	{.name = n,                                                                                \
	 .library = CATALOGUE_LIBRARY,                                                             \
	 .kind = API_##k,                                                                          \
	 .tier = TIER_##t,                                                                         \
	 .shape = GBPF_SHAPE_##s,                                                                  \
	 .return_ok = true,                                                                        \
	 __VA_ARGS__}
#define FN(n, ...) ROW(#n, __VA_ARGS__)
#define PTSZ(n, ...) ROW(#n, __VA_ARGS__), ROW(#n "_ptsz", __VA_ARGS__)
#define PTDS(n, ...) ROW(#n, __VA_ARGS__), ROW(#n "_ptds", __VA_ARGS__)

#define OBJ(p) .arg[GBPF_ARG_OBJECT] = (p)
#define OBJ_ON(p) .arg[GBPF_ARG_OBJECT] = (p), .arg[GBPF_ARG_STREAM] = (p) /* it is a stream */
#define MOVE(to, from, bytes) OBJ(to), SRC(from), LEN(bytes)
#define SRC(p) .arg[GBPF_ARG_SOURCE] = (p)
#define LEN(p) .arg[GBPF_ARG_BYTES] = (p)
#define LEN2(p) .arg[GBPF_ARG_BYTES2] = (p)
#define KIND(p) .arg[GBPF_ARG_KIND] = (p)
#define ON(p) .arg[GBPF_ARG_STREAM] = (p)
#define OUT(p) .arg[GBPF_ARG_OUT] = (p)

#define ELEM(n) .element = (n)
#define HTOD .direction = COPY_HTOD
#define DTOH .direction = COPY_DTOH
#define DTOD .direction = COPY_DTOD
#define PEER .direction = COPY_PEER
#define BY_KIND(p) KIND(p), .direction = COPY_BY_KIND /* p: 0 where a structure holds it */
#define WAITS .blocking = true

struct catalogue_table {
	const struct api *rows;
	size_t count;
};

extern const struct catalogue_table catalogue_driver, catalogue_runtime, catalogue_nccl;

#endif
