/* SPDX-License-Identifier: Apache-2.0
 *
 * See chrome_storages.h.
 *
 *     "storages":[[address,bytes],[address,bytes,device type,device index + 1],…]   with the device unless it is the CPU
 *     "roles":[[time,storage,role,"name",track],…]
 *     "lost_roles":3    number of dropped roles
 *     a row's "Storages":[1,-2]    indexes from 1, negative if the operator writes; [address,…] if not in the table
 */
#include "write/chrome_storages.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"

/* Limit of the table and of the text of all roles: a reader parses the member "opstrobe" as one value, whose size is limited. */
#define TABLE_MAX (1u << 19)
#define ROLES_TEXT_MAX (32u << 20)

static struct ops_storage chrome_storages_key_of(struct ops_storage storage)
{
	storage.written = 0;
	storage.role = OPS_ROLE_NONE;
	return storage;
}

static bool chrome_storages_add(struct ops_chrome_storages *storages, struct ops_storage storage)
{
	struct ops_storage key = chrome_storages_key_of(storage);

	return storages->table.count >= TABLE_MAX ||
	       ops_intern_add(&storages->table, &key, sizeof(key)) != OPS_INTERN_NONE;
}

bool ops_chrome_storages_collect(struct ops_chrome_storages *storages, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_storage storage;
	size_t count;
	const struct ops_role_record *roles = ops_trace_roles(trace, &count);

	for (size_t row = 0; events->storages && row < events->count; row++)
		for (size_t i = 0; ops_event_storage(trace, (uint32_t)row, i, &storage); i++)
			if (!chrome_storages_add(storages, storage))
				return false;
	for (size_t i = 0; i < count; i++)
		if (!chrome_storages_add(storages, roles[i].storage))
			return false;
	return true;
}

void ops_chrome_storages_release(struct ops_chrome_storages *storages)
{
	ops_intern_release(&storages->table);
	ops_buffer_release(&storages->text);
}

/* Writes addresses as signed numbers, because JSON readers do not accept larger integers. */
static void chrome_storages_add_whole(struct ops_buffer *out, const struct ops_storage *storage)
{
	ops_buffer_append_text(out, "[");
	ops_buffer_append_int(out, (int64_t)storage->address);
	ops_buffer_append_text(out, ",");
	ops_buffer_append_int(out, storage->bytes);
	if (storage->device_type || storage->device_index)
		ops_buffer_printf(out, ",%u,%u", storage->device_type, storage->device_index);
	ops_buffer_append_text(out, "]");
}

/* Writes the index in the table, or the complete storage if it is not in the table. */
static void add_place(struct ops_buffer *out, const struct ops_chrome_storages *storages, struct ops_storage storage)
{
	struct ops_storage key = chrome_storages_key_of(storage);
	uint32_t place = ops_intern_find(&storages->table, &key, sizeof(key));

	if (place == OPS_INTERN_NONE)
		chrome_storages_add_whole(out, &storage);
	else
		ops_buffer_append_int(out, storage.written ? -(int64_t)place - 1 : (int64_t)place + 1);
}

static void add_roles(struct ops_buffer *out, const struct ops_chrome_storages *storages, const struct ops_trace *trace,
                      int64_t base_ns)
{
	size_t count, i, start = out->size;
	const struct ops_role_record *roles = ops_trace_roles(trace, &count);

	for (i = 0; i < count && out->size - start < ROLES_TEXT_MAX; i++) {
		struct ops_string name = ops_trace_string(trace, roles[i].name);

		ops_buffer_append_text(out, i ? ",[" : ",\n\"roles\":[[");
		ops_buffer_append_int(out, roles[i].time_ns - base_ns);
		ops_buffer_append_text(out, ",");
		add_place(out, storages, roles[i].storage);
		ops_buffer_printf(out, ",%u,", roles[i].storage.role);
		ops_json_string(out, name.bytes, name.size);
		ops_buffer_printf(out, ",%" PRIu32 "]", roles[i].track);
	}
	ops_buffer_append_text(out, count ? "]" : "");
	if (i < count)
		ops_buffer_printf(out, ",\n\"lost_roles\":%zu", count - i);
}

void ops_chrome_add_storages(struct ops_buffer *out, const struct ops_chrome_storages *storages,
                             const struct ops_trace *trace, int64_t base_ns)
{
	for (size_t i = 0; i < storages->table.count; i++) {
		struct ops_storage storage;

		memcpy(&storage, storages->table.entries[i].bytes, sizeof(storage));
		ops_buffer_append_text(out, i ? "," : ",\n\"storages\":[");
		chrome_storages_add_whole(out, &storage);
	}
	ops_buffer_append_text(out, storages->table.count ? "]" : "");
	add_roles(out, storages, trace, base_ns);
}

struct ops_string ops_chrome_row_storages(struct ops_chrome_storages *storages, const struct ops_trace *trace, uint32_t row)
{
	struct ops_buffer *text = &storages->text;
	struct ops_storage storage;

	text->size = 0;
	ops_buffer_append_text(text, "\"Storages\":[");
	for (size_t i = 0; ops_event_storage(trace, row, i, &storage); i++) {
		if (i)
			ops_buffer_append_text(text, ",");
		add_place(text, storages, storage);
	}
	ops_buffer_append_text(text, "],");
	return (struct ops_string){text->bytes, text->failed ? 0 : text->size};
}
