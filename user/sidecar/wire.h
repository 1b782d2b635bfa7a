/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the loader and libgbpf-cupti.so, inside the target, say to each other. Commands
 * and answers go over a SOCK_SEQPACKET socket, one struct a message; records go through a
 * ring in a memfd that the loader sends with WIRE_HELLO. Each side takes the other for
 * hostile: sizes, indices and strings are checked before use.
 *
 * The sidecar is told where the socket is in one of two ways: injected, its entry
 * gbpf_sidecar_begin(fd) gets the descriptor; loaded by CUDA_INJECTION64_PATH,
 * InitializeInjection() connects to the path in GBPF_SIDECAR_SOCKET.
 *
 * loader                         sidecar
 *   HELLO (memfd of the ring) ->
 *                              <- READY, or REFUSED and the socket is closed
 *   START ->
 *                              <- BEGAN, then CLOCK now and then; or REFUSED, FAILED
 *   STOP ->
 *                              <- ENDED, after the last record of the window is in the ring
 * WITHDREW can come instead of ENDED at any time. Either side may close the socket: the
 * sidecar then disables what it enabled, and waits for nobody.
 */
#ifndef GBPF_SIDECAR_WIRE_H
#define GBPF_SIDECAR_WIRE_H

#include <stdint.h>

#define WIRE_VERSION 1
#define WIRE_TEXT 256

enum wire_type {
	/* loader to sidecar */
	WIRE_HELLO = 1,
	WIRE_START = 2,
	WIRE_STOP = 3,
	/* sidecar to loader */
	WIRE_READY = 16,
	WIRE_BEGAN = 17,
	WIRE_ENDED = 18,
	WIRE_REFUSED = 19,
	WIRE_WITHDREW = 20,
	WIRE_FAILED = 21,
	WIRE_CLOCK = 22,
};

enum wire_flags {
	/*
	 * Records of all calls of the driver and the runtime, of the whole window; which makes
	 * each call dearer.
	 */
	WIRE_ALL_API = 1u << 0,
	WIRE_OVERHEAD = 1u << 1, /* records of CUPTI's own overhead */
	WIRE_OWN_CUPTI = 1u << 2, /* READY: nobody had loaded CUPTI before us */
	/*
	 * STOP: somebody else has just begun to use CUPTI. What could be theirs by now is left
	 * as it is (callbacks, kinds of records); the answer is WITHDREW or ENDED.
	 */
	WIRE_FOREIGN = 1u << 3,
	/*
	 * Records of calls that launch, now and then for a moment, also where works are numbered
	 * without (layout.h): each call of the process is dearer from then on, for good.
	 */
	WIRE_CALLS = 1u << 4,
};

/* Every message has this size and form; what a type does not use is 0. */
struct wire_message {
	uint32_t type, version;
	uint32_t flags;	 /* HELLO, READY, STOP: enum wire_flags */
	int32_t code;	 /* FAILED: CUptiResult, or -errno */
	uint32_t cupti;	 /* READY: cuptiGetVersion() */
	uint32_t pid;	 /* READY: as the target numbers itself */
	uint64_t size;	 /* HELLO: bytes of the memfd */
	/*
	 * START: ns after which it stops by itself. BEGAN: CLOCK_MONOTONIC when it began to
	 * switch on; ENDED, WITHDREW: when it began to switch off, 0: not said.
	 */
	int64_t window;
	/*
	 * CLOCK, BEGAN, ENDED: CLOCK_MONOTONIC before and after cuptiGetTimestamp() said
	 * stamp, ns: the closest of a few readings.
	 */
	int64_t before, stamp, after;
	uint64_t dropped; /* ENDED, WITHDREW: by CUPTI, in this window */
	char text[WIRE_TEXT]; /* HELLO: libcupti to use, or ""; READY: that in use; else why */
};

/*
 * The ring: a header of one page, then data. head and tail count bytes from the
 * beginning and never wrap; a record lies at its count modulo the data's size, whole: a
 * WIRE_SKIP fills what is left at the end. One producer at a time (a lock in the sidecar),
 * one consumer.
 */
#define WIRE_RING_HEADER 4096u
#define WIRE_RING_BYTES (8u << 20) /* of data; a power of two */

struct wire_ring {
	_Alignas(64) uint64_t head; /* written by the sidecar, release */
	uint64_t dropped; /* records for which there was no room */
	uint64_t bad[4];  /* enum wire_bad: records of CUPTI's that made no sense */
	uint64_t running; /* works that still ran when the window's last records were taken */
	_Alignas(64) uint64_t tail; /* written by the loader, release */
};

enum wire_bad { WIRE_BAD_ZERO, WIRE_BAD_NEGATIVE, WIRE_BAD_FORM, WIRE_BAD_NAME };

enum wire_record_type {
	WIRE_SKIP = 0,
	WIRE_WORK = 1,
	WIRE_CALL = 2,
	WIRE_SHAPE = 3,
	WIRE_DEVICE = 4,
	WIRE_OVERHEAD_RECORD = 5,
};

/* Begins every record; size is of all of it, a multiple of 8. */
struct wire_record {
	uint32_t size;
	uint32_t type;
};

/* Times are CUPTI's, unconverted. Fields as in struct record_work. */
struct wire_work {
	struct wire_record r;
	int64_t begin, end;
	uint32_t kind, device, context, stream, correlation, shape, graph, direction;
	uint64_t graph_node, bytes;
	uint32_t source, target, channel, channel_type;
	int32_t priority;
	uint32_t peer;
};

struct wire_call {
	struct wire_record r;
	int64_t begin, end;
	uint32_t tid; /* as the target numbers it */
	uint32_t domain, cbid, correlation;
	int32_t ret;
	uint32_t reserved;
};

struct wire_shape {
	struct wire_record r;
	uint32_t id, registers;
	uint32_t grid[3], block[3];
	uint32_t smem_static, smem_dynamic, local;
	uint32_t name_size; /* with its NUL; at most WIRE_NAME_MAX */
	char name[];
};
#define WIRE_NAME_MAX 8192u

struct wire_device {
	struct wire_record r;
	int64_t memory;
	uint32_t ordinal;
	int32_t major, minor, sms, warp, block_threads, sm_threads, sm_blocks, block_registers,
		sm_registers, block_smem, block_smem_optin, sm_smem, reserved_smem;
	uint8_t uuid[16];
	char name[128];
};

struct wire_overhead {
	struct wire_record r;
	int64_t begin, end;
	uint32_t tid, kind;
};

#endif
