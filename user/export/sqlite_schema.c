// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables, with the names, columns and units that "nsys export --type sqlite" gives
 * them, as its documentation describes them. What gbpf does not know is NULL.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/sqlite.h"
#include "model/grow.h"

#define INT " INTEGER"
#define KEPT " INTEGER NOT NULL"
#define WHERE_ON_GPU                                                                               \
	"start" KEPT ", end" KEPT ", deviceId" KEPT ", contextId" KEPT ", greenContextId" INT      \
	", streamId" KEPT ", correlationId" INT ", globalPid" INT

struct table {
	const char *name, *columns;
};

static const struct table tables[TABLES] = {
	[TABLE_STRINGS] = {"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL"},
	[TABLE_RUNTIME] = {"CUPTI_ACTIVITY_KIND_RUNTIME",
		"start" KEPT ", end" KEPT ", eventClass" KEPT ", globalTid" INT
		", correlationId" INT ", nameId" KEPT ", returnValue" KEPT ", callchainId" INT},
	[TABLE_KERNEL] = {"CUPTI_ACTIVITY_KIND_KERNEL",
		WHERE_ON_GPU ", demangledName" KEPT ", shortName" KEPT ", mangledName" INT
		", launchType" INT ", cacheConfig" INT ", registersPerThread" KEPT ", gridX" KEPT
		", gridY" KEPT ", gridZ" KEPT ", blockX" KEPT ", blockY" KEPT ", blockZ" KEPT
		", staticSharedMemory" KEPT ", dynamicSharedMemory" KEPT
		", localMemoryPerThread" KEPT ", localMemoryTotal" INT ", gridId" INT
		", sharedMemoryExecuted" INT ", graphNodeId" INT ", sharedMemoryLimitConfig" INT
		", graphId" INT},
	[TABLE_MEMCPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
		WHERE_ON_GPU ", bytes" KEPT ", copyKind" KEPT ", deprecatedSrcId" INT
		", srcKind" INT ", dstKind" INT ", srcDeviceId" INT ", srcContextId" INT
		", dstDeviceId" INT ", dstContextId" INT ", migrationCause" INT
		", graphNodeId" INT ", virtualAddress" INT ", copyCount" INT},
	[TABLE_MEMSET] = {"CUPTI_ACTIVITY_KIND_MEMSET",
		WHERE_ON_GPU ", value" INT ", bytes" KEPT ", graphNodeId" INT ", memKind" INT},
	[TABLE_SYNC] = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
		WHERE_ON_GPU ", syncType" KEPT ", eventId" KEPT ", eventSyncId" INT},
	[TABLE_NVTX] = {"NVTX_EVENTS",
		"start" KEPT ", end" INT ", eventType" KEPT ", rangeId" INT ", category" INT
		", color" INT ", text TEXT, globalTid" INT ", endGlobalTid" INT ", textId" INT
		", domainId" INT},
	[TABLE_OVERHEAD] = {"PROFILER_OVERHEAD",
		"start" KEPT ", end" KEPT ", globalTid" INT ", correlationId" INT ", nameId" KEPT
		", callchainId" INT ", overheadType" INT},
	[TABLE_THREADS] = {"ThreadNames", "nameId" KEPT ", priority" INT ", globalTid" INT},
	[TABLE_PROCESSES] = {"PROCESSES", "globalPid" INT ", pid" INT ", name TEXT"},
	[TABLE_GPU] = {"TARGET_INFO_GPU",
		"vmId" KEPT ", id" KEPT ", name TEXT, busLocation TEXT, isDiscrete" INT
		", l2CacheSize" INT ", totalMemory" INT ", memoryBandwidth" INT ", clockRate" INT
		", smCount" INT ", pwGpuId" INT ", uuid TEXT, luid" INT ", chipName TEXT, cuDevice"
		INT ", ctxswDevPath TEXT, ctrlDevPath TEXT, revision" INT ", nodeMask" INT
		", constantMemory" INT ", maxIPC" INT ", maxRegistersPerBlock" INT
		", maxShmemPerBlock" INT ", maxShmemPerBlockOptin" INT ", maxShmemPerSm" INT
		", maxRegistersPerSm" INT ", threadsPerWarp" INT ", asyncEngines" INT
		", maxWarpsPerSm" INT ", maxBlocksPerSm" INT ", maxThreadsPerBlock" INT
		", maxBlockDimX" INT ", maxBlockDimY" INT ", maxBlockDimZ" INT ", maxGridDimX" INT
		", maxGridDimY" INT ", maxGridDimZ" INT ", computeMajor" INT ", computeMinor" INT
		", smMajor" INT ", smMinor" INT},
	[TABLE_DEVICE] = {"TARGET_INFO_CUDA_DEVICE",
		"gpuId" INT ", cudaId" KEPT ", pid" KEPT ", uuid TEXT, numMultiprocessors" INT},
	[TABLE_CONTEXT] = {"TARGET_INFO_CUDA_CONTEXT_INFO",
		"nullStreamId" INT ", hwId" KEPT ", vmId" KEPT ", processId" KEPT ", deviceId" KEPT
		", contextId" KEPT ", parentContextId" INT ", isGreenContext" INT},
	[TABLE_ENV] = {"TARGET_INFO_SYSTEM_ENV",
		"globalVid" INT ", devStateName TEXT, name TEXT, nameEnum TEXT, value TEXT"},
	[TABLE_START] = {"TARGET_INFO_SESSION_START_TIME",
		"utcEpochNs" INT ", utcTime TEXT, localTime TEXT"},
	[TABLE_CAPTURE] = {"META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT"},
	[TABLE_EXPORT] = {"META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT"},
	[TABLE_DIAGNOSTIC] = {"DIAGNOSTIC_EVENT",
		"timestamp" KEPT ", timestampType" KEPT ", source" KEPT ", severity" KEPT
		", text TEXT NOT NULL, globalPid" INT},
	[TABLE_STATE] = {"GBPF_CALL_STATE",
		"globalTid" INT ", correlationId" INT ", state TEXT, queries" INT
		", insideQueriesNs" INT},
};

/* ids, labels and names of the documentation; CUPTI's enumerations but for memory kinds. */
static const char enums[] =
	"CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (0,'CUDA_MEMCPY_KIND_UNKNOWN','Unknown'),"
	"(1,'CUDA_MEMCPY_KIND_HTOD','Host-to-Device'),(2,'CUDA_MEMCPY_KIND_DTOH','Device-to-Host'),"
	"(3,'CUDA_MEMCPY_KIND_HTOA','Host-to-Array'),(4,'CUDA_MEMCPY_KIND_ATOH','Array-to-Host'),"
	"(5,'CUDA_MEMCPY_KIND_ATOA','Array-to-Array'),"
	"(6,'CUDA_MEMCPY_KIND_ATOD','Array-to-Device'),"
	"(7,'CUDA_MEMCPY_KIND_DTOA','Device-to-Array'),"
	"(8,'CUDA_MEMCPY_KIND_DTOD','Device-to-Device'),"
	"(9,'CUDA_MEMCPY_KIND_HTOH','Host-to-Host'),(10,'CUDA_MEMCPY_KIND_PTOP','Peer-to-Peer');"
	"CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
	"INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE','Pageable'),"
	"(1,'CUDA_MEMOPR_MEMORY_KIND_PINNED','Pinned'),"
	"(2,'CUDA_MEMOPR_MEMORY_KIND_DEVICE','Device'),"
	"(3,'CUDA_MEMOPR_MEMORY_KIND_ARRAY','Array'),"
	"(4,'CUDA_MEMOPR_MEMORY_KIND_MANAGED','Managed'),"
	"(5,'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC','Device Static'),"
	"(6,'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC','Managed Static'),"
	"(65535,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN','Unknown');"
	"CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES "
	"(0,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN','Unknown'),"
	"(1,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE','Event synchronize'),"
	"(2,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT','Stream wait event'),"
	"(3,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE','Stream synchronize'),"
	"(4,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE','Context synchronize');"
	"CREATE TABLE ENUM_CUDA_KERNEL_LAUNCH_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_CUDA_KERNEL_LAUNCH_TYPE VALUES "
	"(0,'CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN','Unknown'),"
	"(1,'CUDA_KERNEL_LAUNCH_TYPE_REGULAR','Regular');"
	"CREATE TABLE ENUM_NSYS_EVENT_CLASS (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_NSYS_EVENT_CLASS VALUES "
	"(0,'TRACE_PROCESS_EVENT_CUDA_RUNTIME','CUDA runtime'),"
	"(1,'TRACE_PROCESS_EVENT_CUDA_DRIVER','CUDA driver');"
	"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (59,'NvtxPushPopRange','NvtxPushPopRange');"
	"CREATE TABLE ENUM_CUPTI_OVERHEAD_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_CUPTI_OVERHEAD_TYPE VALUES (0,'UNKNOWN','Unknown'),"
	"(1,'DRIVER_COMPILER','Driver compiler'),(65536,'CUPTI_BUFFER_FLUSH','CUPTI buffer flush'),"
	"(131072,'CUPTI_INSTRUMENTATION','CUPTI instrumentation'),"
	"(196608,'CUPTI_RESOURCE','CUPTI resource'),"
	"(262144,'RUNTIME_TRIGGERED_MODULE_LOADING','Runtime triggered module loading'),"
	"(327680,'LAZY_FUNCTION_LOADING','Lazy function loading'),"
	"(393216,'COMMAND_BUFFER_FULL','Command buffer full'),"
	"(458752,'ACTIVITY_BUFFER_REQUEST','Activity buffer request'),"
	"(524288,'UVM_ACTIVITY_INIT','UVM activity init');"
	"CREATE TABLE ENUM_DIAGNOSTIC_SEVERITY_LEVEL (id INTEGER NOT NULL PRIMARY KEY, name TEXT, "
	"label TEXT);"
	"INSERT INTO ENUM_DIAGNOSTIC_SEVERITY_LEVEL VALUES (1,'Information','Information'),"
	"(2,'Warning','Warning'),(3,'Error','Error');";

void sqlite_fail(struct sqlite_writer *w, int code)
{
	int err = -EIO;

	if (code == SQLITE_OK || code == SQLITE_DONE || w->err)
		return;
	if ((code & 0xff) == SQLITE_FULL)
		err = -ENOSPC;
	else if ((code & 0xff) == SQLITE_NOMEM)
		err = -ENOMEM;
	w->err = err;
}

void sqlite_exec(struct sqlite_writer *w, const char *sql)
{
	if (!w->err)
		sqlite_fail(w, sqlite3_exec(w->db, sql, NULL, NULL, NULL));
}

static unsigned columns_of(const char *columns)
{
	unsigned n = 1;

	for (; *columns; columns++)
		n += *columns == ',';
	return n;
}

static void create(struct sqlite_writer *w, enum sqlite_table table)
{
	const struct table *t = &tables[table];
	char sql[2048];
	int n = snprintf(sql, sizeof(sql), "CREATE TABLE %s (%s);", t->name, t->columns);

	if (n < 0 || (size_t)n >= sizeof(sql)) {
		w->err = -EOVERFLOW;
		return;
	}
	sqlite_exec(w, sql);
	n = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", t->name);
	for (unsigned i = 1; i < columns_of(t->columns); i++)
		n += snprintf(sql + n, sizeof(sql) - (size_t)n, ",?");
	snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
	if (!w->err)
		sqlite_fail(w, sqlite3_prepare_v2(w->db, sql, -1, &w->insert[table], NULL));
}

void sqlite_schema(struct sqlite_writer *w)
{
	for (unsigned i = 0; i < TABLES; i++)
		create(w, (enum sqlite_table)i);
	sqlite_exec(w, enums);
}

struct sqlite_row sqlite_row(struct sqlite_writer *w, enum sqlite_table table)
{
	return (struct sqlite_row){w, w->insert[table], 0};
}

void row_int(struct sqlite_row *r, int64_t value)
{
	sqlite3_bind_int64(r->stmt, ++r->at, value);
}

void row_known(struct sqlite_row *r, int64_t value)
{
	if (value < 0)
		row_null(r);
	else
		row_int(r, value);
}

/* SQLite would take any bytes, but readers take the text for UTF-8. To be freed. */
static char *valid_text(struct sqlite_writer *w, const char *text)
{
	size_t room = 3 * strlen(text) + 1;
	char *valid = malloc(room);

	if (valid)
		export_text(text, valid, room);
	else
		w->err = -ENOMEM;
	return valid;
}

void row_text(struct sqlite_row *r, const char *text)
{
	char *valid = text ? valid_text(r->w, text) : NULL;

	if (valid)
		sqlite3_bind_text(r->stmt, ++r->at, valid, -1, free);
	else
		row_null(r);
}

void row_null(struct sqlite_row *r)
{
	sqlite3_bind_null(r->stmt, ++r->at);
}

void row_add(struct sqlite_row *r)
{
	if (r->w->err)
		return;
	sqlite_fail(r->w, sqlite3_step(r->stmt));
	sqlite_fail(r->w, sqlite3_reset(r->stmt));
	sqlite3_clear_bindings(r->stmt);
}

static uint32_t string_add(struct sqlite_writer *w, char *text, uint64_t hash, uint64_t attempt)
{
	uint32_t id = (uint32_t)w->strings_count + 1;
	struct sqlite_row row;

	if (GROW(w->strings, w->strings_cap, w->strings_count + 1) ||
	    map_put(&w->string_of, hash, attempt, id)) {
		w->err = -ENOMEM;
		free(text);
		return 0;
	}
	w->strings[w->strings_count++] = text;
	row = sqlite_row(w, TABLE_STRINGS);
	row_int(&row, id);
	sqlite3_bind_text(row.stmt, ++row.at, text, -1, SQLITE_STATIC);
	row_add(&row);
	return id;
}

uint32_t sqlite_string(struct sqlite_writer *w, const char *given)
{
	char *text = valid_text(w, given);
	uint64_t hash, attempt = 0;
	uint32_t id;

	if (!text)
		return 0;
	hash = map_hash_bytes(text, strlen(text));
	while ((id = map_get(&w->string_of, hash, attempt)) != MAP_NONE) {
		if (!strcmp(w->strings[id - 1], text)) {
			free(text);
			return id;
		}
		attempt++;
	}
	return string_add(w, text, hash, attempt);
}
