/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of libnccl, with the arguments of nccl.h 2.28. */
#include "probe/catalogue_table.h"

#define CATALOGUE_LIBRARY API_NCCL

static const struct api rows[] = {
	/* Collectives: the communicator, elements and their ncclDataType_t. */
	FN(ncclAllReduce, COLLECTIVE, DEFAULT, CALL, OBJ(6), LEN(3), KIND(4), ON(7)),
	FN(ncclReduce, COLLECTIVE, DEFAULT, CALL, OBJ(7), LEN(3), KIND(4), ON(8)),
	FN(ncclBroadcast, COLLECTIVE, DEFAULT, CALL, OBJ(6), LEN(3), KIND(4), ON(7)),
	FN(ncclBcast, COLLECTIVE, DEFAULT, CALL, OBJ(5), LEN(2), KIND(3), ON(6)),
	FN(ncclAllGather, COLLECTIVE, DEFAULT, CALL, OBJ(5), LEN(3), KIND(4), ON(6)),
	FN(ncclReduceScatter, COLLECTIVE, DEFAULT, CALL, OBJ(6), LEN(3), KIND(4), ON(7)),
	FN(ncclAlltoAll, COLLECTIVE, DEFAULT, CALL, OBJ(5), LEN(3), KIND(4), ON(6)),
	FN(ncclGather, COLLECTIVE, DEFAULT, CALL, OBJ(6), LEN(3), KIND(4), ON(7)),
	FN(ncclScatter, COLLECTIVE, DEFAULT, CALL, OBJ(6), LEN(3), KIND(4), ON(7)),
	FN(ncclSend, COLLECTIVE, DEFAULT, CALL, OBJ(5), LEN(2), KIND(3), ON(6)),
	FN(ncclRecv, COLLECTIVE, DEFAULT, CALL, OBJ(5), LEN(2), KIND(3), ON(6)),
	FN(ncclGroupStart, COLLECTIVE, DEFAULT, BARE),
	FN(ncclGroupEnd, COLLECTIVE, DEFAULT, BARE),

	/* Communicators. */
	FN(ncclGetUniqueId, CONTEXT, DEFAULT, BARE),
	FN(ncclCommInitRank, CONTEXT, DEFAULT, CALL, OUT(1)),
	FN(ncclCommInitRankConfig, CONTEXT, DEFAULT, CALL, OUT(1)),
	FN(ncclCommInitRankScalable, CONTEXT, DEFAULT, CALL, OUT(1)),
	FN(ncclCommInitAll, CONTEXT, DEFAULT, CALL, OUT(1)),
	FN(ncclCommSplit, CONTEXT, DEFAULT, CALL, OBJ(1), OUT(4)),
	FN(ncclCommShrink, CONTEXT, DEFAULT, CALL, OBJ(1), OUT(4)),
	FN(ncclCommFinalize, CONTEXT, DEFAULT, OBJECT, OBJ(1)),
	FN(ncclCommDestroy, CONTEXT, DEFAULT, OBJECT, OBJ(1)),
	FN(ncclCommAbort, CONTEXT, DEFAULT, OBJECT, OBJ(1)),
	FN(ncclCommRevoke, CONTEXT, DEFAULT, OBJECT, OBJ(1)),

	/* Memory. */
	FN(ncclMemAlloc, ALLOC, DEFAULT, CALL, LEN(2), OUT(1)),
	FN(ncclMemFree, FREE, DEFAULT, OBJECT, OBJ(1)),
	FN(ncclCommRegister, OTHER, ALL, CALL, MOVE(1, 2, 3)),
	FN(ncclCommDeregister, OTHER, ALL, OBJECT, OBJ(1)),
	FN(ncclCommWindowRegister, OTHER, ALL, CALL, MOVE(1, 2, 3), OUT(4)),
	FN(ncclCommWindowDeregister, OTHER, ALL, OBJECT, OBJ(1)),
};

const struct catalogue_table catalogue_nccl = {rows, sizeof(rows) / sizeof(rows[0])};
