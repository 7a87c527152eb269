/* SPDX-License-Identifier: Apache-2.0
 *
 * See recovery_log.h.
 */
#include "read/recovery_log.h"

#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/recording.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/text.h"
#include "read/slot_values.h"
#include "record/spill_format.h"

/* Upper bound on ids of modules. A damaged file could contain any, and each takes a place. */
#define MODULE_IDS_MAX (1u << 22)

enum outcome { READ, IGNORED, NO_MEMORY };

static bool read_payload_u32(struct ops_payload *payload, uint32_t *ret_value)
{
	return ops_payload_read(payload, ret_value, sizeof(*ret_value));
}

static bool read_payload_i64(struct ops_payload *payload, int64_t *ret_value)
{
	return ops_payload_read(payload, ret_value, sizeof(*ret_value));
}

/* --- threads -------------------------------------------------------------------------------------------------------- */

struct ops_share *ops_recovery_log_share(struct ops_recovery_log *log, uint32_t number)
{
	uint32_t at = ops_map_find(&log->by_number, number);
	struct ops_share **place, *share;

	if (at != OPS_NONE)
		return log->shares.items[at];
	share = ops_alloc_zeroed(1, sizeof(*share));
	place = share ? OPS_ARRAY_PUSH(&log->shares) : NULL;
	if (!place || !ops_map_add(&log->by_number, number, (uint32_t)(log->shares.count - 1))) {
		log->shares.count -= place != NULL;
		ops_free(share);
		return NULL;
	}
	*place = share;
	share->number = number;
	share->next = log->recording->shares;
	log->recording->shares = share;
	log->recording->share_count++;
	return share;
}

static bool set_thread_name(struct ops_share *share, struct ops_string name)
{
	char *copy = ops_alloc(name.size + 1);

	if (!copy)
		return false;
	if (name.size)
		memcpy(copy, name.bytes, name.size);
	copy[name.size] = '\0';
	ops_free(share->name);
	share->name = copy;
	share->name_size = name.size;
	return true;
}

static enum outcome read_thread(struct ops_recovery_log *log, struct ops_payload payload)
{
	uint32_t number, torch_number;
	struct ops_share *share;
	struct ops_string name;
	int64_t tid;

	if (!read_payload_u32(&payload, &number) || !read_payload_u32(&payload, &torch_number) || !read_payload_i64(&payload, &tid) ||
	    !ops_payload_text(&payload, &name))
		return IGNORED;
	share = ops_recovery_log_share(log, number);
	if (!share)
		return NO_MEMORY;
	share->tid = tid;
	share->torch_number = torch_number <= INT32_MAX ? torch_number : 0;
	return share->named || set_thread_name(share, name) ? READ : NO_MEMORY;
}

/* An earlier thread may have had the same id: the name belongs to the latest one. */
static enum outcome read_thread_name(struct ops_recovery_log *log, struct ops_payload payload)
{
	struct ops_string name;
	int64_t tid;

	if (!read_payload_i64(&payload, &tid) || !ops_payload_text(&payload, &name))
		return IGNORED;
	for (size_t i = log->shares.count; i-- > 0;) {
		struct ops_share *share = log->shares.items[i];

		if (share->tid == tid) {
			share->named = true;
			return set_thread_name(share, name) ? READ : NO_MEMORY;
		}
	}
	return READ; /* of a thread that recorded nothing */
}

static enum outcome read_name(struct ops_recovery_log *log, struct ops_payload payload)
{
	struct ops_string first, second;
	uint32_t thread, id, has_second;
	struct ops_share *share;
	struct ops_name pair;

	if (!read_payload_u32(&payload, &thread) || !read_payload_u32(&payload, &id) || !ops_payload_text(&payload, &first) ||
	    !read_payload_u32(&payload, &has_second) || !ops_payload_text(&payload, &second))
		return IGNORED;
	share = ops_recovery_log_share(log, thread);
	if (!share)
		return NO_MEMORY;
	if (id - 1 != share->names.count)
		return IGNORED;
	pair.first = ops_intern_add(&share->texts, first.bytes, first.size);
	pair.second = has_second ? ops_intern_add(&share->texts, second.bytes, second.size) : OPS_INTERN_NONE;
	if (pair.first == OPS_INTERN_NONE || (has_second && pair.second == OPS_INTERN_NONE))
		return NO_MEMORY;
	if (ops_intern_find(&share->names, &pair, sizeof(pair)) != OPS_INTERN_NONE)
		return IGNORED;
	return ops_intern_add(&share->names, &pair, sizeof(pair)) != OPS_INTERN_NONE ? READ : NO_MEMORY;
}

static enum outcome read_function(struct ops_recovery_log *log, struct ops_payload payload)
{
	uint32_t number, line, has_name, has_file;
	struct ops_string row_name, name, file;

	if (!read_payload_u32(&payload, &number) || !read_payload_u32(&payload, &line) || !ops_payload_text(&payload, &row_name) ||
	    !read_payload_u32(&payload, &has_name) || !ops_payload_text(&payload, &name) || !read_payload_u32(&payload, &has_file) ||
	    !ops_payload_text(&payload, &file) || number - 1 != log->recording->functions.count)
		return IGNORED;
	return ops_recording_add_function(log->recording, &(struct ops_recorded_function){
		.row_name = row_name.bytes,
		.row_name_bytes = row_name.size,
		.name = has_name ? name.bytes : NULL,
		.name_bytes = name.size,
		.file = has_name && has_file ? file.bytes : NULL,
		.file_bytes = file.size,
		.line = line <= INT32_MAX ? line : 0,
	}) ? READ : NO_MEMORY;
}

static enum outcome read_called_module(struct ops_recovery_log *log, struct ops_payload payload)
{
	struct ops_recovery_module module, *added;

	if (!read_payload_u32(&payload, &module.id) || !read_payload_u32(&payload, &module.number) ||
	    !ops_payload_text(&payload, &module.name) || !ops_payload_text(&payload, &module.class_name) ||
	    module.id >= MODULE_IDS_MAX || module.number > INT32_MAX)
		return IGNORED;
	added = OPS_ARRAY_PUSH(&log->called);
	if (!added)
		return NO_MEMORY;
	*added = module;
	return READ;
}

static enum outcome read_metadata(struct ops_recovery_log *log, struct ops_payload payload)
{
	struct ops_recovery_metadata row, *added;

	if (!ops_payload_text(&payload, &row.key) || !ops_payload_text(&payload, &row.json))
		return IGNORED;
	added = OPS_ARRAY_PUSH(&log->metadata);
	if (!added)
		return NO_MEMORY;
	*added = row;
	return READ;
}

static enum outcome read_record(struct ops_recovery_log *log, uint32_t kind, struct ops_payload payload)
{
	switch (kind) {
	case OPS_SPILL_THREAD:
		return read_thread(log, payload);
	case OPS_SPILL_THREAD_NAME:
		return read_thread_name(log, payload);
	case OPS_SPILL_NAME:
		return read_name(log, payload);
	case OPS_SPILL_FUNCTION:
		return read_function(log, payload);
	case OPS_SPILL_MODULE:
		return read_called_module(log, payload);
	case OPS_SPILL_MODULES:
		log->modules = (struct ops_string){payload.at, payload.size};
		return READ;
	case OPS_SPILL_METADATA:
		return read_metadata(log, payload);
	case OPS_SPILL_CLOCK:
		return ops_payload_read(&payload, &log->last_clock, sizeof(log->last_clock)) ? READ : IGNORED;
	default:
		return READ; /* of a later version */
	}
}

bool ops_recovery_log_read(struct ops_recovery_log *log, struct ops_string text)
{
	struct ops_payload rest = {text.bytes, text.size};
	struct ops_spill_record head;

	while (rest.size) {
		enum outcome outcome;
		size_t padded;

		if (!ops_payload_read(&rest, &head, sizeof(head)))
			break;
		padded = ((size_t)head.bytes + 7) & ~(size_t)7;
		if (rest.size < padded)
			break;
		outcome = read_record(log, head.kind, (struct ops_payload){rest.at, head.bytes});
		if (outcome == NO_MEMORY)
			return false;
		log->ignored += outcome == IGNORED;
		rest.at += padded;
		rest.size -= padded;
	}
	return true;
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

struct module_table {
	OPS_ARRAY(struct ops_recorded_module) modules;
	OPS_ARRAY(struct ops_text) aliases;
	struct ops_map by_id; /* id → index in `modules` */
};

static bool read_payload_text(struct ops_payload *payload, struct ops_text *ret_text)
{
	struct ops_string text;

	if (!ops_payload_text(payload, &text))
		return false;
	*ret_text = (struct ops_text){text.bytes, text.size};
	return true;
}

/* The fixed-size part of a module in a table. */
struct module_row {
	uint32_t id, parent, number, unused;
	uint64_t address, parameters, parameter_bytes, own_parameters, own_parameter_bytes;
};

static enum outcome recovery_read_module(struct module_table *table, struct ops_payload *payload)
{
	struct ops_recorded_module module = {0}, *added;
	struct module_row row;
	uint32_t aliases;

	if (!ops_payload_read(payload, &row, sizeof(row)) || !read_payload_text(payload, &module.name) ||
	    !read_payload_text(payload, &module.class_name) || !read_payload_text(payload, &module.path) || !read_payload_u32(payload, &aliases) ||
	    row.id >= MODULE_IDS_MAX || ops_map_find(&table->by_id, row.id) != OPS_NONE)
		return IGNORED;
	module.id = row.number <= INT32_MAX ? (int64_t)row.id : -1;
	module.number = row.number <= INT32_MAX ? row.number : OPS_NONE;
	module.parent = row.parent < table->modules.count ? row.parent : OPS_NONE;
	module.address = row.address;
	module.parameter_count = row.parameters;
	module.parameter_bytes = row.parameter_bytes;
	module.own_parameter_count = row.own_parameters;
	module.own_parameter_bytes = row.own_parameter_bytes;
	module.alias_count = aliases;
	for (uint32_t i = 0; i < aliases; i++) {
		struct ops_text text, *alias;

		if (!read_payload_text(payload, &text))
			return IGNORED;
		if (!(alias = OPS_ARRAY_PUSH(&table->aliases)))
			return NO_MEMORY;
		*alias = text;
	}
	added = OPS_ARRAY_PUSH(&table->modules);
	if (!added || !ops_map_add(&table->by_id, row.id, (uint32_t)(table->modules.count - 1)))
		return NO_MEMORY;
	*added = module;
	return READ;
}

static enum outcome recovery_read_modules(struct module_table *table, struct ops_string text)
{
	struct ops_payload payload = {text.bytes, text.size};
	enum outcome outcome = READ;
	uint32_t count;
	size_t alias = 0;

	if (!text.size)
		return READ;
	if (!read_payload_u32(&payload, &count))
		return IGNORED;
	while (outcome == READ && table->modules.count < count)
		outcome = recovery_read_module(table, &payload);
	for (size_t i = 0; i < table->modules.count; i++) { /* they moved when the array grew */
		if (table->modules.items[i].alias_count)
			table->modules.items[i].aliases = table->aliases.items + alias;
		alias += table->modules.items[i].alias_count;
	}
	return outcome;
}

/* A called module must have a number, and one that was added after the table at least a name. */
static enum outcome add_called(struct module_table *table, const struct ops_recovery_module *called)
{
	uint32_t at = ops_map_find(&table->by_id, called->id);
	struct ops_recorded_module *module;

	if (at == OPS_NONE) {
		const char *dot = memrchr(called->class_name.bytes, '.', called->class_name.size);
		const char *end = ops_string_end(called->class_name);

		at = (uint32_t)table->modules.count;
		module = OPS_ARRAY_PUSH(&table->modules);
		if (!module || !ops_map_add(&table->by_id, called->id, at))
			return NO_MEMORY;
		dot = dot ? dot + 1 : called->class_name.bytes;
		*module = (struct ops_recorded_module){
			.class_name = {called->class_name.bytes, called->class_name.size},
			.path = {dot, (size_t)(end - dot)},
			.parent = OPS_NONE,
		};
	}
	module = &table->modules.items[at];
	module->id = called->id;
	module->number = called->number;
	module->name = (struct ops_text){called->name.bytes, called->name.size};
	return READ;
}

bool ops_recovery_log_set_modules(struct ops_recovery_log *log)
{
	struct module_table table = {0};
	enum outcome outcome = recovery_read_modules(&table, log->modules);
	bool done;

	log->ignored += outcome == IGNORED;
	for (size_t i = 0; outcome != NO_MEMORY && i < log->called.count; i++)
		outcome = add_called(&table, &log->called.items[i]);
	done = outcome != NO_MEMORY &&
	       !ops_recording_set_modules(log->recording, table.modules.items, table.modules.count, NULL);
	OPS_ARRAY_RELEASE(&table.modules);
	OPS_ARRAY_RELEASE(&table.aliases);
	ops_map_release(&table.by_id);
	return done;
}

void ops_recovery_log_release(struct ops_recovery_log *log)
{
	ops_map_release(&log->by_number);
	OPS_ARRAY_RELEASE(&log->shares);
	OPS_ARRAY_RELEASE(&log->metadata);
	OPS_ARRAY_RELEASE(&log->called);
}
