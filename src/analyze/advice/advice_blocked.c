/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls in which the thread only waits, identified by their names. Functions of C have names such as "<built-in method
 * acquire of _thread.lock object at 0x7f>", those of the standard library "threading.py(355): wait", with or without the class
 * before it.
 */
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

struct blocking {
	enum advice_blocked kind;
	const char *file; /* end of the path; NULL: a function of C, whose name has this prefix */
	const char *name;
};

static const struct blocking calls[] = {
	{ADVICE_BLOCKED_LOCK, NULL, "<built-in method acquire of _thread."},
	{ADVICE_BLOCKED_LOCK, NULL, "<built-in method __enter__ of _thread."},
	{ADVICE_BLOCKED_LOCK, NULL, "<built-in method acquire of _multiprocessing."},
	{ADVICE_BLOCKED_LOCK, NULL, "<built-in method __enter__ of _multiprocessing."},
	{ADVICE_BLOCKED_LOCK, "threading.py", "acquire"},
	{ADVICE_BLOCKED_THREAD, "threading.py", "wait"},
	{ADVICE_BLOCKED_THREAD, "threading.py", "wait_for"},
	{ADVICE_BLOCKED_THREAD, "threading.py", "join"},
	{ADVICE_BLOCKED_THREAD, "threading.py", "_wait_for_tstate_lock"},
	{ADVICE_BLOCKED_THREAD, NULL, "<built-in method join of _thread."},
	{ADVICE_BLOCKED_THREAD, "concurrent/futures/_base.py", "result"},
	{ADVICE_BLOCKED_THREAD, "concurrent/futures/_base.py", "exception"},
	{ADVICE_BLOCKED_THREAD, "concurrent/futures/_base.py", "wait"},
	{ADVICE_BLOCKED_QUEUE, NULL, "<built-in method get of _queue."},
	{ADVICE_BLOCKED_QUEUE, "queue.py", "get"},
	{ADVICE_BLOCKED_QUEUE, "queue.py", "put"},
	{ADVICE_BLOCKED_QUEUE, "queue.py", "join"},
	{ADVICE_BLOCKED_QUEUE, "multiprocessing/queues.py", "get"},
	{ADVICE_BLOCKED_QUEUE, "multiprocessing/queues.py", "put"},
	{ADVICE_BLOCKED_PROCESS, "multiprocessing/connection.py", "wait"},
	{ADVICE_BLOCKED_PROCESS, "multiprocessing/connection.py", "poll"},
	{ADVICE_BLOCKED_PROCESS, "multiprocessing/process.py", "join"},
	{ADVICE_BLOCKED_PROCESS, "multiprocessing/popen_fork.py", "wait"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "run"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "call"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "check_call"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "check_output"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "__init__"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "__exit__"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "communicate"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "wait"},
	{ADVICE_BLOCKED_PROCESS, "subprocess.py", "poll"},
	{ADVICE_BLOCKED_PROCESS, "selectors.py", "select"},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in function select>"},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method select of "},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in function waitpid>"},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method poll of select."},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method accept of "},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method recv of "},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method recv_into of "},
	{ADVICE_BLOCKED_PROCESS, NULL, "<built-in method read of "},
	{ADVICE_BLOCKED_TIME, NULL, "<built-in function sleep>"},
};

/* Whether a path is the file of the standard library: as Kineto shortens it, or below ".../python3.12/". */
static bool advice_blocked_is_file(struct ops_string path, const char *file)
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

/* "Condition.wait" and "wait". */
static bool is_method(struct ops_string name, const char *method)
{
	const char *dot = name.size ? memrchr(name.bytes, '.', name.size) : NULL;

	if (dot) {
		name.size -= (size_t)(dot + 1 - name.bytes);
		name.bytes = dot + 1;
	}
	return ops_string_is(name, method);
}

static enum advice_blocked advice_blocked_kind_of(struct ops_string name)
{
	struct ops_function_text function;
	bool python = ops_function_parse(name, &function);

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].file ? python && advice_blocked_is_file(function.file, calls[i].file) &&
		                            is_method(function.name, calls[i].name)
		                  : ops_string_starts(name, calls[i].name))
			return calls[i].kind;
	return ADVICE_RUNS;
}

uint8_t *advice_find_blocked(const struct advice *advice)
{
	size_t count = ops_trace_string_count(advice->trace);
	uint8_t *kinds = ops_alloc_zeroed(count + 1, 1);

	for (size_t i = 0; kinds && i < count; i++)
		kinds[i] = (uint8_t)advice_blocked_kind_of(ops_trace_string(advice->trace, (uint32_t)i));
	return kinds;
}
