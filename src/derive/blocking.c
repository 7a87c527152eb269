/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls in which the thread only waits, by name; see blocking.h. Functions of C have names such as "<built-in method
 * acquire of _thread.lock object at 0x7f>", those of the standard library have names such as "threading.py(355): wait",
 * with or without a class before the method.
 */
#include "derive/blocking.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/text.h"

struct blocking {
	enum ops_blocking kind;
	const char *file; /* end of the path; NULL: a C function whose name has this prefix */
	const char *name;
};

static const struct blocking calls[] = {
	{OPS_BLOCKING_LOCK, NULL, "<built-in method acquire of _thread."},
	{OPS_BLOCKING_LOCK, NULL, "<built-in method __enter__ of _thread."},
	{OPS_BLOCKING_LOCK, NULL, "<built-in method acquire of _multiprocessing."},
	{OPS_BLOCKING_LOCK, NULL, "<built-in method __enter__ of _multiprocessing."},
	{OPS_BLOCKING_LOCK, "threading.py", "acquire"},
	{OPS_BLOCKING_THREAD, "threading.py", "wait"},
	{OPS_BLOCKING_THREAD, "threading.py", "wait_for"},
	{OPS_BLOCKING_THREAD, "threading.py", "join"},
	{OPS_BLOCKING_THREAD, "threading.py", "_wait_for_tstate_lock"},
	{OPS_BLOCKING_THREAD, NULL, "<built-in method join of _thread."},
	{OPS_BLOCKING_THREAD, "concurrent/futures/_base.py", "result"},
	{OPS_BLOCKING_THREAD, "concurrent/futures/_base.py", "exception"},
	{OPS_BLOCKING_THREAD, "concurrent/futures/_base.py", "wait"},
	{OPS_BLOCKING_QUEUE, NULL, "<built-in method get of _queue."},
	{OPS_BLOCKING_QUEUE, "queue.py", "get"},
	{OPS_BLOCKING_QUEUE, "queue.py", "put"},
	{OPS_BLOCKING_QUEUE, "queue.py", "join"},
	{OPS_BLOCKING_QUEUE, "multiprocessing/queues.py", "get"},
	{OPS_BLOCKING_QUEUE, "multiprocessing/queues.py", "put"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/connection.py", "wait"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/connection.py", "poll"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/connection.py", "recv"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/connection.py", "recv_bytes"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/managers.py", "_callmethod"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/process.py", "join"},
	{OPS_BLOCKING_PROCESS, "multiprocessing/popen_fork.py", "wait"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "run"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "call"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "check_call"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "check_output"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "__init__"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "__exit__"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "communicate"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "wait"},
	{OPS_BLOCKING_PROCESS, "subprocess.py", "poll"},
	{OPS_BLOCKING_PROCESS, "selectors.py", "select"},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in function select>"},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method select of "},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in function waitpid>"},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method poll of select."},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method accept of "},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method recv of "},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method recv_into of "},
	{OPS_BLOCKING_PROCESS, NULL, "<built-in method read of "},
	{OPS_BLOCKING_TIME, NULL, "<built-in function sleep>"},
};

/* Returns true if a path is this file of the standard library: as Kineto shortens it, or below ".../python3.12/". */
static bool blocking_is_file(struct ops_string path, const char *file)
{
	size_t size = strlen(file);
	const char *slash;

	if (path.size < size || memcmp(path.bytes + path.size - size, file, size) != 0)
		return false;
	path.size -= size;
	if (!path.size)
		return true;
	if (path.bytes[--path.size] != '/')
		return false;
	slash = memrchr(path.bytes, '/', path.size);
	if (slash) {
		path.size -= (size_t)(slash + 1 - path.bytes);
		path.bytes = slash + 1;
	}
	return ops_string_starts(path, "python3");
}

/* True for "Condition.wait" and "wait". */
static bool is_method(struct ops_string name, const char *method)
{
	const char *dot = name.size ? memrchr(name.bytes, '.', name.size) : NULL;

	if (dot) {
		name.size -= (size_t)(dot + 1 - name.bytes);
		name.bytes = dot + 1;
	}
	return ops_string_is(name, method);
}

enum ops_blocking ops_blocking_of(struct ops_string name)
{
	struct ops_function_text function;
	bool python = ops_function_parse(name, &function);

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].file ? python && blocking_is_file(function.file, calls[i].file) &&
		                            is_method(function.name, calls[i].name)
		                  : ops_string_starts(name, calls[i].name))
			return calls[i].kind;
	return OPS_BLOCKING_NONE;
}

uint8_t *ops_blocking_names(const struct ops_trace *trace)
{
	size_t count = ops_trace_string_count(trace);
	uint8_t *kinds = ops_alloc_zeroed(count + 1, 1);

	for (size_t i = 0; kinds && i < count; i++)
		kinds[i] = (uint8_t)ops_blocking_of(ops_trace_string(trace, (uint32_t)i));
	return kinds;
}
