/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the declarations of all tables as JSON, for tools/generate_tables.py.
 */
#include <stdio.h>

#include "analyze/tables.h"

int main(void)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	bool done;

	result_tables_json(&json);
	done = !out.failed && fwrite(out.bytes, 1, out.size, stdout) == out.size;
	ops_buffer_release(&out);
	return done ? 0 : 1;
}
