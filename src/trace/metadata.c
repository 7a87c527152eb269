/* SPDX-License-Identifier: Apache-2.0
 *
 * Metadata of a trace: JSON values by key. It is the only part of a trace that can be changed.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/trace.h>

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "trace/table.h"

/* Returns a NUL-terminated copy; NULL if out of memory. */
static char *metadata_copy_text(const char *bytes, size_t size)
{
	char *copy = ops_alloc(size + 1);

	if (copy) {
		if (size)
			memcpy(copy, bytes, size);
		copy[size] = '\0';
	}
	return copy;
}

static struct ops_metadata_entry *find_metadata(const struct ops_trace *trace, const char *key, size_t key_size)
{
	for (size_t i = 0; i < trace->metadata.count; i++) {
		struct ops_metadata_entry *entry = &trace->metadata.items[i];
		if (entry->key_size == key_size && (key_size == 0 || memcmp(entry->key, key, key_size) == 0))
			return entry;
	}
	return NULL;
}

enum ops_code ops_metadata_check(const char *key, size_t key_size, const char *json, size_t json_size,
                                 struct ops_error *error)
{
	enum ops_code code = ops_json_validate(json, json_size, error);

	if (code)
		return ops_fault_context(error, code, "metadata '%.*s'", (int)(key_size < 200 ? key_size : 200), key);
	return OPS_OK;
}

enum ops_code ops_trace_set_metadata(struct ops_trace *trace, const char *key, size_t key_size, const char *json,
                                     size_t json_size, struct ops_error *error)
{
	enum ops_code code = ops_metadata_check(key, key_size, json, json_size, error);
	struct ops_metadata_entry *entry;
	char *new_key = NULL;
	char *new_json;

	if (code)
		return code;
	new_json = metadata_copy_text(json, json_size);
	if (!new_json)
		return ops_fault_memory(error);
	entry = find_metadata(trace, key, key_size);
	if (!entry) {
		new_key = metadata_copy_text(key, key_size);
		if (!new_key || !(entry = OPS_ARRAY_PUSH(&trace->metadata))) {
			ops_free(new_key);
			ops_free(new_json);
			return ops_fault_memory(error);
		}
		*entry = (struct ops_metadata_entry){.key = new_key, .key_size = key_size};
	}
	ops_free(entry->json);
	entry->json = new_json;
	entry->json_size = json_size;
	ops_trace_clear_views(trace);
	return OPS_OK;
}

size_t ops_trace_metadata_count(const struct ops_trace *trace)
{
	return trace->metadata.count;
}

void ops_trace_metadata(const struct ops_trace *trace, size_t i, struct ops_string *ret_key, struct ops_string *ret_json)
{
	const struct ops_metadata_entry *entry = &trace->metadata.items[i];

	assert(i < trace->metadata.count);
	*ret_key = (struct ops_string){entry->key, entry->key_size};
	*ret_json = (struct ops_string){entry->json, entry->json_size};
}

bool ops_trace_find_metadata(const struct ops_trace *trace, const char *key, struct ops_string *ret_json)
{
	const struct ops_metadata_entry *entry = find_metadata(trace, key, strlen(key));

	if (entry)
		*ret_json = (struct ops_string){entry->json, entry->json_size};
	return entry != NULL;
}
