/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares and recordings (recording.h): the result of a session, which the reader consumes.
 */
#include "record/recording.h"

#include <string.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "record/activities.h"
#include "record/block.h"
#include "record/pool.h"
#include "record/recorder.h"
#include "record/spill.h"

void ops_share_append(struct ops_share *share, struct ops_block *block)
{
	block->next = NULL;
	if (share->last)
		share->last->next = block;
	else
		share->blocks = block;
	share->last = block;
	share->slot_count += block->count;
}

void ops_share_join_held(struct ops_share *share)
{
	struct ops_block *last = share->held;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	last->next = share->blocks;
	if (!share->last)
		share->last = last;
	share->blocks = share->held;
	share->held = NULL;
}

void ops_share_free(struct ops_share *share)
{
	ops_intern_release(&share->texts);
	ops_intern_release(&share->names);
	ops_free(share->name);
	ops_free(share);
}

void ops_share_drop_block(struct ops_share *share)
{
	struct ops_block *block = share->blocks;

	share->blocks = block->next;
	if (!share->blocks)
		share->last = NULL;
	if (ops_block_open(block) && block->home) {
		pthread_mutex_lock(&ops_recorder.lock);
		ops_recorder_retire(block);
		pthread_mutex_unlock(&ops_recorder.lock);
	} else {
		ops_pool_return(block); /* a packed copy has no slots in use */
	}
}

/* For interned names, tracks and the like. */
#define SPARE_BYTES ((size_t)8 << 20)

bool ops_recording_has_memory(uint64_t bytes)
{
	void *pages = bytes < SIZE_MAX - SPARE_BYTES ? ops_pages_map((size_t)bytes + SPARE_BYTES) : NULL;

	ops_pages_unmap(pages, (size_t)bytes + SPARE_BYTES);
	return pages != NULL;
}

bool ops_recording_add_function(struct ops_recording *recording, const struct ops_recorded_function *function)
{
	struct ops_function_names names = {
		.row_name = ops_intern_add(&recording->texts, function->row_name, function->row_name_bytes),
		.name = OPS_INTERN_NONE,
		.file = OPS_INTERN_NONE,
		.line = function->line,
	};
	struct ops_function_names *added;

	if (function->name)
		names.name = ops_intern_add(&recording->texts, function->name, function->name_bytes);
	if (function->file)
		names.file = ops_intern_add(&recording->texts, function->file, function->file_bytes);
	if (names.row_name == OPS_INTERN_NONE || (function->name && names.name == OPS_INTERN_NONE) ||
	    (function->file && names.file == OPS_INTERN_NONE))
		return false;
	added = OPS_ARRAY_PUSH(&recording->functions);
	if (added)
		*added = names;
	return added != NULL;
}

enum ops_code ops_recording_set_pair_times(struct ops_recording *recording, const int64_t *times_ns, size_t count,
                                           struct ops_error *error)
{
	int64_t *copy = ops_realloc_array(NULL, count + 1, sizeof(*copy));

	if (!copy)
		return ops_fault_memory(error);
	if (count)
		memcpy(copy, times_ns, count * sizeof(*copy));
	recording->pair_times_ns = copy;
	recording->pair_count = count;
	return OPS_OK;
}

void ops_recording_free(struct ops_recording *recording)
{
	struct ops_share *share;
	struct ops_block *block;
	bool idle;

	if (!recording)
		return;
	if (recording->reading)
		recording->free_reading(recording->reading);
	while ((share = recording->shares)) {
		recording->shares = share->next;
		while (share->blocks)
			ops_share_drop_block(share);
		ops_share_free(share);
	}
	while ((block = recording->baseline)) {
		recording->baseline = block->next;
		ops_pool_return(block);
	}
	ops_arena_release(&recording->module_arena);
	ops_intern_release(&recording->texts);
	OPS_ARRAY_RELEASE(&recording->functions);
	ops_free(recording->pair_times_ns);
	ops_activities_free(recording->activities);
	ops_spill_free(recording->spill);
	ops_free(recording->recovered);
	ops_free(recording);
	pthread_mutex_lock(&ops_recorder.lock);
	idle = !ops_recorder.session;
	if (idle)
		ops_pool_trim();
	pthread_mutex_unlock(&ops_recorder.lock);
}
