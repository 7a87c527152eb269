/* SPDX-License-Identifier: Apache-2.0
 *
 * Flame graphs' data as a file, whose name says the format.
 */
#include "write/stack_files.h"

#include <opstrobe/write.h>

#include <string.h>

#include "base/fault.h"

static const struct {
	const char *suffix;
	bool (*put)(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);
} formats[] = {
	{".speedscope.json", ops_put_speedscope},
	{".svg", ops_put_flame_svg},
	{"", ops_put_collapsed},
};

static bool stack_files_ends_with(const char *text, const char *suffix)
{
	size_t size = strlen(text), suffix_size = strlen(suffix);

	return size >= suffix_size && memcmp(text + size - suffix_size, suffix, suffix_size) == 0;
}

enum ops_code ops_write_flame(const struct ops_flame *flame, const char *path, struct ops_flame_cut *ret_cut,
                              struct ops_error *error)
{
	struct ops_sink *sink;
	enum ops_code code = ops_sink_open_file(path, 0, &sink, error);
	struct ops_flame_cut cut = {0};
	size_t format = 0;

	if (code)
		return ops_fault_context(error, code, "cannot write stacks '%s'", path);
	while (!stack_files_ends_with(path, formats[format].suffix))
		format++;
	if (formats[format].put(flame, sink, &cut)) {
		code = ops_sink_close(sink, error);
	} else {
		ops_sink_abandon(sink);
		code = ops_fault_memory(error);
	}
	if (code)
		return ops_fault_context(error, code, "cannot write stacks '%s'", path);
	if (ret_cut)
		*ret_cut = cut;
	return OPS_OK;
}
