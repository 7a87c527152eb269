/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite exports of NVIDIA Nsight Systems (`nsys export --type sqlite`), whose tables its user guide describes: kernels, copies,
 * fills, CUDA calls, NVTX ranges and system calls become Chrome JSON (transcode.h). Columns differ between versions: a missing
 * column is null. Ranges of torch.autograd.profiler.emit_nvtx() are operators.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/text.h"
#include "read/nvtx_text.h"
#include "read/sqlite_library.h"
#include "read/transcode.h"

#define COLUMNS_MAX 16

/* NVTX_EVENTS.eventType */
enum { NVTX_MARK = 34, NVTX_PUSH_POP = 59, NVTX_START_END = 60 };

struct nsight {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_reading *in;
	const struct ops_sqlite *sqlite;
	struct sqlite3 *database;
	struct sqlite3_stmt *rows; /* of the current table; NULL before it is opened */
	size_t table;
	int64_t epoch_ns; /* start of the session */
	uint64_t pairs;
	OPS_ARRAY(int64_t) pids; /* known processes, because correlations are counted for each process */
	struct ops_buffer sql;
	struct ops_buffer devices; /* deviceProperties */
	bool has_rows;
	bool has_ended;
};

/* --- columns of the current row ------------------------------------------------------------------------------------- */

static bool nsight_is_null(const struct nsight *n, int column)
{
	return n->sqlite->column_type(n->rows, column) == OPS_SQLITE_NULL;
}

static int64_t integer(const struct nsight *n, int column)
{
	return n->sqlite->column_int64(n->rows, column);
}

static struct ops_string nsight_text(const struct nsight *n, int column)
{
	const char *bytes = (const char *)n->sqlite->column_text(n->rows, column);

	return bytes ? (struct ops_string){bytes, (size_t)n->sqlite->column_bytes(n->rows, column)} : (struct ops_string){"", 0};
}

/* A global id contains the process and the thread in 24 bits each. */
static int64_t pid_of(int64_t global)
{
	return global >> 24 & 0xffffff;
}

static int64_t tid_of(int64_t global)
{
	return global & 0xffffff;
}

/* Returns a number of the call that is unique across processes. */
static int64_t correlation(struct nsight *n, int64_t pid, int64_t number)
{
	size_t place = 0;
	int64_t *added;

	while (place < n->pids.count && n->pids.items[place] != pid)
		place++;
	if (place == n->pids.count && (added = OPS_ARRAY_PUSH(&n->pids)))
		*added = pid;
	return (int64_t)place << 40 | (number & UINT32_MAX);
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

static void nsight_begin_row(struct nsight *n, struct ops_buffer *out, const char *phase)
{
	ops_buffer_printf(out, "%s{\"ph\":\"%s\"", n->has_rows ? ",\n" : "{\"traceEvents\":[", phase);
	n->has_rows = true;
	n->in->events++;
}

/* Begins the row of a span from column 0 to column 1. The caller appends its arguments and a brace. */
static void put_span(struct nsight *n, struct ops_buffer *out, const char *category, struct ops_string name, int64_t pid, int64_t tid)
{
	int64_t start_ns = integer(n, 0), end_ns = integer(n, 1);
	bool open = nsight_is_null(n, 1);

	nsight_begin_row(n, out, open ? "B" : "X");
	ops_put_text_member(out, "name", name);
	ops_buffer_printf(out, ",\"cat\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, category, pid, tid);
	ops_put_time_member(out, "ts", n->epoch_ns + start_ns);
	if (!open)
		ops_put_time_member(out, "dur", end_ns > start_ns ? end_ns - start_ns : 0);
}

/* Writes device work; columns 2 to 6 are device, context, stream, correlation and process. */
static void nsight_put_work(struct nsight *n, struct ops_buffer *out, const char *category, struct ops_string name)
{
	put_span(n, out, category, name, integer(n, 2), integer(n, 4));
	ops_buffer_printf(out, ",\"args\":{\"device\":%" PRId64 ",\"context\":%" PRId64 ",\"stream\":%" PRId64, integer(n, 2),
	                  integer(n, 3), integer(n, 4));
	if (!nsight_is_null(n, 5))
		ops_buffer_printf(out, ",\"correlation\":%" PRId64, correlation(n, pid_of(integer(n, 6)), integer(n, 5)));
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

static void nsight_put_kernel(struct nsight *n, struct ops_buffer *out)
{
	nsight_put_work(n, out, "kernel", nsight_text(n, 7));
	ops_buffer_printf(out, ",\"grid\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"block\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]",
	                  integer(n, 8), integer(n, 9), integer(n, 10), integer(n, 11), integer(n, 12), integer(n, 13));
	ops_buffer_printf(out, ",\"registers per thread\":%" PRId64 ",\"shared memory\":%" PRId64 "}}", integer(n, 14), integer(n, 15));
}

static void put_copy(struct nsight *n, struct ops_buffer *out)
{
	static const char *const kinds[] = {"", " HtoD", " DtoH", " HtoA", " AtoH", " AtoA", " AtoD", " DtoA", " DtoD", " HtoH", " PtoP"};
	int64_t kind = integer(n, 8);
	char name[24];
	int size = snprintf(name, sizeof(name), "Memcpy%s", kind >= 0 && kind <= 10 ? kinds[kind] : "");

	nsight_put_work(n, out, "gpu_memcpy", (struct ops_string){name, (size_t)size});
	ops_buffer_printf(out, ",\"bytes\":%" PRId64 "}}", integer(n, 7));
}

static void put_fill(struct nsight *n, struct ops_buffer *out)
{
	nsight_put_work(n, out, "gpu_memset", (struct ops_string){"Memset", 6});
	ops_buffer_printf(out, ",\"bytes\":%" PRId64 ",\"value\":%" PRId64 "}}", integer(n, 7), integer(n, 8));
}

static void nsight_put_graph(struct nsight *n, struct ops_buffer *out)
{
	char name[40];
	int size = snprintf(name, sizeof(name), "CUDA graph %" PRId64, integer(n, 7));

	nsight_put_work(n, out, "kernel", (struct ops_string){name, (size_t)size});
	ops_buffer_append_text(out, "}}");
}

static void put_call(struct nsight *n, struct ops_buffer *out)
{
	struct ops_string name = nsight_text(n, 4);
	int64_t global = integer(n, 2);

	put_span(n, out, ops_string_starts(name, "cuda") ? "cuda_runtime" : "cuda_driver", name, pid_of(global), tid_of(global));
	ops_buffer_printf(out, ",\"args\":{\"correlation\":%" PRId64 "}}", correlation(n, pid_of(global), integer(n, 3)));
}

static void put_system_call(struct nsight *n, struct ops_buffer *out)
{
	put_span(n, out, "os_runtime", nsight_text(n, 3), pid_of(integer(n, 2)), tid_of(integer(n, 2)));
	ops_buffer_append_text(out, "}");
}

/* Writes a range of emit_nvtx(). Returns false for other ranges. */
static bool put_operator(struct nsight *n, struct ops_buffer *out, struct ops_string text, int64_t global)
{
	struct nvtx_operator operator;

	if (!nvtx_parse_operator(text, &operator))
		return false;
	put_span(n, out, "cpu_op", operator.name, pid_of(global), tid_of(global));
	nvtx_put_args(out, &operator);
	ops_buffer_append_text(out, "}");
	return true;
}

static void nsight_put_pair(struct nsight *n, struct ops_buffer *out, struct ops_string name, int64_t global, const char *phase, int64_t ns)
{
	nsight_begin_row(n, out, phase);
	ops_put_text_member(out, "name", name);
	ops_buffer_printf(out, ",\"cat\":\"user_annotation\",\"id\":\"n%" PRIu64 "\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, n->pairs,
	                  pid_of(global), tid_of(global));
	ops_put_time_member(out, "ts", n->epoch_ns + ns);
	ops_buffer_append_text(out, "}");
}

static void put_range(struct nsight *n, struct ops_buffer *out)
{
	struct ops_string name = nsight_text(n, 4);
	int64_t global = integer(n, 2), type = integer(n, 3);

	if (type == NVTX_PUSH_POP && !put_operator(n, out, name, global)) {
		put_span(n, out, "user_annotation", name, pid_of(global), tid_of(global));
		ops_buffer_append_text(out, "}");
	} else if (type == NVTX_START_END && !nsight_is_null(n, 1)) {
		n->pairs++;
		nsight_put_pair(n, out, name, global, "b", integer(n, 0));
		nsight_put_pair(n, out, name, global, "e", integer(n, 1));
	} else if (type == NVTX_MARK) {
		nsight_begin_row(n, out, "i");
		ops_put_text_member(out, "name", name);
		ops_buffer_printf(out, ",\"s\":\"t\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, pid_of(global), tid_of(global));
		ops_put_time_member(out, "ts", n->epoch_ns + integer(n, 0));
		ops_buffer_append_text(out, "}");
	}
}

static void put_process(struct nsight *n, struct ops_buffer *out)
{
	struct ops_string path = nsight_text(n, 1);
	const char *slash = memrchr(path.bytes, '/', path.size);

	if (slash)
		path = (struct ops_string){slash + 1, path.size - (size_t)(slash + 1 - path.bytes)};
	nsight_begin_row(n, out, "M");
	ops_buffer_printf(out, ",\"pid\":%" PRId64 ",\"name\":\"process_name\",\"args\":{\"name\":", integer(n, 0));
	ops_json_string(out, path.bytes, path.size);
	ops_buffer_append_text(out, "}}");
}

static void put_thread(struct nsight *n, struct ops_buffer *out)
{
	struct ops_string name = nsight_text(n, 1);

	nsight_begin_row(n, out, "M");
	ops_buffer_printf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"name\":\"thread_name\",\"args\":{\"name\":", pid_of(integer(n, 0)),
	                  tid_of(integer(n, 0)));
	ops_json_string(out, name.bytes, name.size);
	ops_buffer_append_text(out, "}}");
}

/* Writes what CUDA reports about a device under Kineto's names. */
static void put_device(struct nsight *n, struct ops_buffer *out)
{
	static const char *const names[] = {"totalGlobalMem",          "computeMajor",         "computeMinor",          "numSms",
	                                    "warpSize",                "maxThreadsPerBlock",   "regsPerMultiprocessor", "sharedMemPerMultiprocessor",
	                                    "sharedMemPerBlock",       "sharedMemPerBlockOptin"};

	(void)out;
	ops_buffer_printf(&n->devices, "%s{\"id\":%" PRId64, n->devices.size ? "," : "", nsight_is_null(n, 0) ? integer(n, 1) : integer(n, 0));
	ops_put_text_member(&n->devices, "name", nsight_text(n, 2));
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		if (!nsight_is_null(n, 3 + i))
			ops_buffer_printf(&n->devices, ",\"%s\":%" PRId64, names[i], integer(n, 3 + i));
	ops_buffer_append_text(&n->devices, "}");
}

static void read_epoch(struct nsight *n, struct ops_buffer *out)
{
	(void)out;
	n->epoch_ns = integer(n, 0) > 0 && integer(n, 0) < OPS_TIME_MAX_NS ? integer(n, 0) : 0;
}

/* Columns: a name, "=name" for the text in StringIds with that number, "a|b" for the first that is not null. */
static const struct nsight_table {
	const char *name;
	const char *columns[COLUMNS_MAX];
	void (*put)(struct nsight *n, struct ops_buffer *out);
} tables[] = {
	{"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, read_epoch},
	{"PROCESSES", {"pid", "name"}, put_process},
	{"ThreadNames", {"globalTid", "=nameId"}, put_thread},
	{"TARGET_INFO_GPU", {"cuDevice", "id", "name", "totalMemory", "computeMajor", "computeMinor", "smCount", "threadsPerWarp",
	                     "maxThreadsPerBlock", "maxRegistersPerSm", "maxShmemPerSm", "maxShmemPerBlock", "maxShmemPerBlockOptin"}, put_device},
	{"NVTX_EVENTS", {"start", "end", "globalTid", "eventType", "text|=textId"}, put_range},
	{"OSRT_API", {"start", "end", "globalTid", "=nameId"}, put_system_call},
	{"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "=nameId"}, put_call},
	{"CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "=demangledName|=shortName",
	                                "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
	                                "staticSharedMemory+dynamicSharedMemory"}, nsight_put_kernel},
	{"CUPTI_ACTIVITY_KIND_MEMCPY", {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "copyKind"},
	 put_copy},
	{"CUPTI_ACTIVITY_KIND_MEMSET", {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "value"},
	 put_fill},
	{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId"},
	 nsight_put_graph},
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

/* --- queries -------------------------------------------------------------------------------------------------------- */

static enum ops_code fail_query(struct nsight *n)
{
	return ops_fault(n->in->error, OPS_CORRUPT, "SQLite: %s", n->sqlite->errmsg(n->database));
}

static enum ops_code prepare_query(struct nsight *n, struct sqlite3_stmt **ret_statement)
{
	if (n->sql.failed)
		return ops_fault_memory(n->in->error);
	if (n->sqlite->prepare_v2(n->database, n->sql.bytes, (int)n->sql.size, ret_statement, NULL))
		return fail_query(n);
	return OPS_OK;
}

/* Returns whether a table has a column; with an empty name, whether the table exists. */
static enum ops_code has_column(struct nsight *n, const char *table, const char *column, size_t size, bool *ret_has)
{
	struct sqlite3_stmt *statement = NULL;
	enum ops_code code;

	n->sql.size = 0;
	ops_buffer_printf(&n->sql, "SELECT 1 FROM pragma_table_info('%s') WHERE name = '%.*s' OR '' = '%.*s'", table, (int)size, column,
	                  (int)size, column);
	code = prepare_query(n, &statement);
	if (code)
		return code;
	*ret_has = n->sqlite->step(statement) == OPS_SQLITE_ROW;
	n->sqlite->finalize(statement);
	return OPS_OK;
}

/* Appends an expression for one of the columns, which are separated by '|'. */
static enum ops_code put_column(struct nsight *n, struct ops_buffer *sql, const char *table, const char *column)
{
	enum ops_code code = OPS_OK;

	ops_buffer_append_text(sql, "coalesce(NULL");
	while (!code && *column) {
		bool is_text = *column == '=', has = false;
		const char *name = column + is_text;
		size_t size = strcspn(name, "|");

		code = has_column(n, table, name, strcspn(name, "|+"), &has);
		if (has && is_text)
			ops_buffer_printf(sql, ", (SELECT value FROM StringIds WHERE id = t.\"%.*s\")", (int)size, name);
		else if (has)
			ops_buffer_printf(sql, ", %.*s", (int)size, name);
		column = name + size + (name[size] == '|');
	}
	ops_buffer_append_text(sql, ", NULL)");
	return code;
}

/* Begins the query of a table, ordered by its first column; the table may not exist. */
static enum ops_code open_table(struct nsight *n, const struct nsight_table *table)
{
	struct ops_buffer sql = {0}, scratch;
	bool has = false;
	enum ops_code code = has_column(n, table->name, "", 0, &has);

	if (code || !has)
		return code;
	ops_buffer_append_text(&sql, "SELECT ");
	for (size_t i = 0; !code && i < COLUMNS_MAX && table->columns[i]; i++) {
		ops_buffer_append_text(&sql, i ? ", " : "");
		code = put_column(n, &sql, table->name, table->columns[i]);
	}
	ops_buffer_printf(&sql, " FROM \"%s\" t ORDER BY 1", table->name);
	scratch = n->sql;
	n->sql = sql;
	if (!code)
		code = prepare_query(n, &n->rows);
	ops_buffer_release(&n->sql);
	n->sql = scratch;
	return code;
}

/* Reads the next row of the current table, or continues with the next table. */
static enum ops_code transcode_next(struct nsight *n, struct ops_buffer *out)
{
	const struct nsight_table *table = &tables[n->table];
	enum ops_code code = n->rows ? OPS_OK : open_table(n, table);
	int state;

	if (code)
		return code;
	state = n->rows ? n->sqlite->step(n->rows) : OPS_SQLITE_DONE;
	if (state == OPS_SQLITE_ROW) {
		table->put(n, out);
		return OPS_OK;
	}
	if (state != OPS_SQLITE_DONE)
		return fail_query(n);
	n->sqlite->finalize(n->rows);
	n->rows = NULL;
	n->table++;
	return OPS_OK;
}

static enum ops_code nsight_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct nsight *n = (struct nsight *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && n->table < TABLE_COUNT && !text->failed && text->size < OPS_TRANSCODED_BYTES)
		code = transcode_next(n, text);
	if (code || n->table < TABLE_COUNT || n->has_ended)
		return code;
	n->has_ended = true;
	ops_buffer_append_text(text, n->has_rows ? "]" : "{\"traceEvents\":[]");
	ops_buffer_append_text(text, ",\"deviceProperties\":[");
	ops_buffer_append(text, ops_buffer_text(&n->devices), n->devices.size);
	ops_buffer_append_text(text, "]}");
	text->failed |= n->devices.failed;
	return OPS_OK;
}

static enum ops_code nsight_check_tables(struct nsight *n)
{
	bool has = false;
	enum ops_code code = has_column(n, "StringIds", "value", 5, &has);

	if (code || has)
		return code;
	return ops_fault(n->in->error, OPS_CORRUPT, "not a PyTorch trace: an SQLite database, but not an export of Nsight Systems; open it with sqlite3");
}

enum ops_code ops_read_nsight_systems(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct nsight n = {.transcoder = {nsight_next}, .in = reading};
	enum ops_code code;

	if (!reading->path)
		return ops_fault(reading->error, OPS_UNSUPPORTED, "an SQLite database, which must be a regular file");
	code = ops_sqlite_load(&n.sqlite, reading->error);
	if (code)
		return code;
	if (n.sqlite->open_v2(reading->path, &n.database, OPS_SQLITE_OPEN_READONLY, NULL))
		code = n.database ? fail_query(&n) : ops_fault_memory(reading->error);
	if (!code)
		code = nsight_check_tables(&n);
	if (!code)
		code = ops_read_transcoded(reading, &n.transcoder, ret_trace);
	n.sqlite->finalize(n.rows);
	n.sqlite->close_v2(n.database);
	OPS_ARRAY_RELEASE(&n.pids);
	ops_buffer_release(&n.sql);
	ops_buffer_release(&n.devices);
	return code;
}
