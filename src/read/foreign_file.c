/* SPDX-License-Identifier: Apache-2.0
 *
 * See foreign_file.h.
 */
#include "read/foreign_file.h"

#include <stdbool.h>
#include <string.h>

enum place { AT_START, ANYWHERE };

/* Returns whether the first record is four numbers: time, action, bytes, category. */
static bool is_memory_timeline(const char *head, size_t size)
{
	const char *end = memchr(head, ']', size);
	size_t commas = 0;

	for (const char *at = head + 2; end && at < end; at++) {
		if (!strchr("-0123456789, ", *at) || !*at)
			return false;
		commas += *at == ',';
	}
	return end && commas == 3;
}

/* Returns whether the first list has times, and lists of sizes follow. Both may be longer than the beginning of the file. */
static bool is_memory_curve(const char *head, size_t size)
{
	const char *at = head + 2, *end = head + size;

	while (at < end && *at && strchr("-0123456789, \n", *at))
		at++;
	if (at == end)
		return size > 2;
	for (; at < end && *at && strchr("], \n", *at); at++)
		;
	return at + 1 < end && at > head + 2 && at[0] == '[' && at[1] == '[';
}

#define PICKLE "a Python pickle, but neither a memory snapshot nor a dump of the flight recorder of torch"

static const struct kind {
	const char *mark;
	size_t mark_size;
	enum place place;
	struct ops_foreign_file file;
	bool (*is_kind)(const char *head, size_t size); /* NULL: the mark is sufficient */
} kinds[] = {
#define MARK(text) text, sizeof(text) - 1
	{MARK("PK\x03\x04"), AT_START, {"a zip archive; unpack it first", OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\xfd" "7zXZ"), AT_START, {"a file compressed by xz; unpack it first", OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("BZh"), AT_START, {"a file compressed by bzip2; unpack it first", OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\"timeDeltas\""), ANYWHERE, {"a CPU profile of V8; open it in Chrome DevTools", OPS_FOREIGN_WITHOUT_EVENTS}, NULL},
	{MARK("\x80\x02"), AT_START, {PICKLE, OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\x80\x03"), AT_START, {PICKLE, OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\x80\x04"), AT_START, {PICKLE, OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\x80\x05"), AT_START, {PICKLE, OPS_FOREIGN_ALWAYS}, NULL},
	{MARK("\"nodes\""), ANYWHERE,
	 {"an execution trace, but not one of torch's ExecutionTraceObserver or Chakra", OPS_FOREIGN_WITHOUT_EVENTS}, NULL},
	{MARK("[["), AT_START,
	 {"a raw memory timeline; 'opstrobe analyze memory_timeline FILE' reads it", OPS_FOREIGN_ALWAYS},
	 is_memory_timeline},
	{MARK("[["), AT_START,
	 {"a memory timeline without its blocks; export_memory_timeline('FILE.raw.json.gz') writes one that "
	  "'opstrobe analyze memory_timeline' reads", OPS_FOREIGN_ALWAYS},
	 is_memory_curve},
	{MARK("\"highres-ticks\""), ANYWHERE,
	 {"a profile of JAX or TensorFlow (XLA); read the .xplane.pb file of the same run, or open this one in XProf", OPS_FOREIGN_WITHOUT_CATEGORIES}, NULL},
	{MARK("/job:localhost/"), ANYWHERE, {"a timeline of TensorFlow; open it at ui.perfetto.dev", OPS_FOREIGN_WITHOUT_CATEGORIES}, NULL},
	{MARK("devtools.timeline"), ANYWHERE, {"a performance profile of Chrome DevTools; open it there", OPS_FOREIGN_WITHOUT_CATEGORIES}, NULL},
	{MARK("\"source\":\"DevTools\""), ANYWHERE, {"a performance profile of Chrome DevTools; open it there", OPS_FOREIGN_WITHOUT_CATEGORIES}, NULL},
#undef MARK
};

static bool foreign_file_matches(const struct kind *kind, const char *head, size_t size)
{
	if (kind->place == ANYWHERE)
		return memmem(head, size, kind->mark, kind->mark_size) != NULL;
	if (size < kind->mark_size || memcmp(head, kind->mark, kind->mark_size) != 0)
		return false;
	return !kind->is_kind || kind->is_kind(head, size);
}

const struct ops_foreign_file *ops_find_foreign_file(const char *head, size_t size)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (foreign_file_matches(&kinds[i], head, size))
			return &kinds[i].file;
	return NULL;
}
