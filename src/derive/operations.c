/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds operations of several ranks; see operations.h.
 */
#include "derive/operations.h"

bool ops_operation_append_group(const struct ops_trace *trace, uint32_t row, struct ops_buffer *kind)
{
	static const char *const names[] = {"Process Group Ranks", "Process Group Name", "Seq"};
	bool known = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct ops_string json;

		if (!ops_event_arg(trace, row, names[i], &json))
			continue;
		ops_buffer_append(kind, json.bytes, json.size);
		ops_buffer_append(kind, "\n", 1);
		known = true;
	}
	return known;
}

uint32_t ops_operations_number(struct ops_operations *operations, struct ops_map *seen, const void *kind, size_t size)
{
	uint32_t id = ops_intern_add(&operations->kinds, kind, size);
	uint32_t *nth = id == OPS_INTERN_NONE ? NULL : ops_map_slot(seen, id, 0);
	uint32_t *number = nth ? ops_map_slot(&operations->numbers, (uint64_t)id << 32 | (*nth)++, (uint32_t)operations->numbers.count) : NULL;

	return number ? *number : OPS_NONE;
}

void ops_operations_release(struct ops_operations *operations)
{
	ops_intern_release(&operations->kinds);
	ops_map_release(&operations->numbers);
}
