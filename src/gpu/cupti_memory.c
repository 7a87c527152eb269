/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that CUDA calls allocate and free: an event for each, and counters of live bytes. Records arrive in any order, so both
 * are derived at the end, in order of time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "gpu/cupti_decoder.h"

#define SAME_PLACE(field) _Static_assert(offsetof(cupti_memory, field) == offsetof(CUpti_ActivityMemory4, field), "records of CUPTI")
SAME_PLACE(timestamp);
SAME_PLACE(isAsync);
SAME_PLACE(memoryPoolConfig.address);

/* Value of CUPTI_INVALID_CONTEXT_ID up to CUPTI 13.0; since 13.3 at the latest it is 0. */
#define NO_CONTEXT UINT32_MAX

/* --- records -------------------------------------------------------------------------------------------------------- */

void ops_cupti_decode_memory(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const cupti_memory *record = bytes;
	struct ops_cupti_memory *memory;

	(void)size;
	(void)activity;
	if (!(decoder->kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_MEMORY)) ||
	    (record->memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION &&
	     record->memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE))
		return;
	memory = record->timestamp ? OPS_ARRAY_PUSH(&decoder->memories) : NULL;
	if (!memory) {
		decoder->activities->lost++;
		return;
	}
	*memory = (struct ops_cupti_memory){
		.time_ns = (int64_t)record->timestamp,
		.address = record->address,
		.bytes = record->bytes,
		.pool = record->memoryPoolConfig.memoryPoolType ? record->memoryPoolConfig.address : 0,
		.correlation = record->correlationId,
		.context = record->contextId,
		.stream = record->isAsync ? (int32_t)record->streamId : -1,
		.kind = record->memoryKind,
		.device = (uint16_t)record->deviceId,
		.is_release = record->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
	};
	if (record->name) /* the name may be freed before the end */
		memory->variable = ops_activities_text(decoder->activities, record->name, strlen(record->name));
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static uint32_t row_details(struct ops_cupti_decoder *decoder, const struct ops_cupti_memory *memory)
{
	const struct ops_intern_entry *variable = &decoder->activities->texts.entries[memory->variable];
	struct ops_buffer *text = &decoder->text;

	text->size = 0;
	ops_buffer_printf(text, "\"device\":%u,\"stream\":%d", memory->device, memory->stream);
	if (memory->context && memory->context != NO_CONTEXT)
		ops_buffer_printf(text, ",\"context\":%u", memory->context);
	ops_buffer_printf(text, ",\"address\":%llu,\"bytes\":%llu", (unsigned long long)memory->address,
	                  (unsigned long long)memory->bytes);
	if (memory->pool)
		ops_buffer_printf(text, ",\"memory pool\":%llu", (unsigned long long)memory->pool);
	if (memory->variable) {
		ops_buffer_append_text(text, ",\"variable\":");
		ops_json_string(text, variable->bytes, variable->size);
	}
	return ops_cupti_text(decoder);
}

static void cupti_memory_add_row(struct ops_cupti_decoder *decoder, const struct ops_cupti_memory *memory)
{
	struct ops_activity row = {.kind = OPS_ACTIVITY_MEMORY, .start_ns = memory->time_ns, .end_ns = memory->time_ns,
	                           .correlation = memory->correlation, .stream = memory->stream, .device = memory->device};

	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "Memory %s (%s)", memory->is_release ? "Release" : "Allocation",
	                  ops_cupti_memory_name(memory->kind));
	row.name = ops_cupti_text(decoder);
	row.details = row_details(decoder, memory);
	ops_activities_add(decoder->activities, &row);
}

/* --- live bytes ----------------------------------------------------------------------------------------------------- */

/* The live bytes of a kind of memory on a device. */
struct holding {
	uint64_t bytes;
	uint32_t kind;
	uint16_t device;
};

struct block {
	uint64_t bytes; /* 0: freed */
	uint32_t holding;
};

struct held {
	struct ops_intern kinds; /* device and kind: uint32_t[2] */
	OPS_ARRAY(struct holding) holdings; /* by id in kinds */
	struct ops_intern addresses; /* uint64_t */
	OPS_ARRAY(struct block) blocks; /* by id in addresses */
};

/* Returns the block at an address, empty if nothing was allocated there; NULL if out of memory. */
static struct block *find_block(struct held *held, uint64_t address)
{
	uint32_t number = ops_intern_add(&held->addresses, &address, sizeof(address));
	struct block *block = NULL;

	if (number < held->blocks.count)
		return &held->blocks.items[number];
	if (number != OPS_INTERN_NONE && (block = OPS_ARRAY_PUSH(&held->blocks)))
		*block = (struct block){0};
	return block;
}

/* Returns the number of the holding that a record changes; OPS_INTERN_NONE if out of memory. */
static uint32_t find_holding(struct held *held, const struct ops_cupti_memory *memory)
{
	const uint32_t key[2] = {memory->device, memory->kind};
	uint32_t number = ops_intern_add(&held->kinds, key, sizeof(key));
	struct holding *holding;

	if (number < held->holdings.count || number == OPS_INTERN_NONE)
		return number;
	holding = OPS_ARRAY_PUSH(&held->holdings);
	if (!holding)
		return OPS_INTERN_NONE;
	*holding = (struct holding){.kind = memory->kind, .device = memory->device};
	return number;
}

static void add_held(struct ops_cupti_decoder *decoder, const struct holding *holding, int64_t time_ns)
{
	struct ops_activity counter = {.kind = OPS_ACTIVITY_MEMORY, .is_held = 1, .start_ns = time_ns, .end_ns = time_ns,
	                               .device = holding->device, .value = (double)holding->bytes};

	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "%s Memory Held (B)", ops_cupti_memory_name(holding->kind));
	counter.name = ops_cupti_text(decoder);
	ops_activities_add(decoder->activities, &counter);
}

/* Gives a free the properties of its allocation. If a block is allocated twice, there was a free without a record. */
static void read_block(struct ops_cupti_decoder *decoder, struct held *held, struct ops_cupti_memory *memory)
{
	uint32_t holding = memory->is_release ? OPS_INTERN_NONE : find_holding(held, memory);
	struct block *block = find_block(held, memory->address);

	if (!block || (!memory->is_release && holding == OPS_INTERN_NONE)) {
		decoder->activities->lost++;
		return;
	}
	if (block->bytes) {
		held->holdings.items[block->holding].bytes -= block->bytes;
		if (memory->is_release && !memory->bytes)
			memory->bytes = block->bytes;
		if (memory->is_release || block->holding != holding)
			add_held(decoder, &held->holdings.items[block->holding], memory->time_ns);
	}
	*block = (struct block){memory->is_release ? 0 : memory->bytes, holding};
	if (memory->is_release)
		return;
	held->holdings.items[holding].bytes += memory->bytes;
	add_held(decoder, &held->holdings.items[holding], memory->time_ns);
}

static int compare_times(const void *a, const void *b)
{
	const struct ops_cupti_memory *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

void ops_cupti_memory_end(struct ops_cupti_decoder *decoder)
{
	struct held held = {0};

	if (decoder->memories.count)
		qsort(decoder->memories.items, decoder->memories.count, sizeof(*decoder->memories.items), compare_times);
	for (size_t i = 0; i < decoder->memories.count; i++) {
		read_block(decoder, &held, &decoder->memories.items[i]);
		cupti_memory_add_row(decoder, &decoder->memories.items[i]);
	}
	decoder->memories.count = 0;
	ops_intern_release(&held.kinds);
	OPS_ARRAY_RELEASE(&held.holdings);
	ops_intern_release(&held.addresses);
	OPS_ARRAY_RELEASE(&held.blocks);
}
