/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether threads still record something; see opstrobe/internal/progress.h.
 */
#include <opstrobe/internal/progress.h>

#include "record/block.h"
#include "record/recorder.h"

uint64_t ops_recording_progress(void)
{
	uint64_t progress = 0;

	pthread_mutex_lock(&ops_recorder.lock);
	if (ops_recorder.session) {
		progress = (uint64_t)(ops_recorder.last_block - ops_recorder.observer_blocks) * OPS_BLOCK_BYTES;
		for (const struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
			if (!thread->is_observer && thread->hot.block && thread->hot.block->epoch == ops_recorder.session)
				progress += __atomic_load_n(&thread->hot.block->count, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	return progress;
}

uint64_t ops_recording_slots(void)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&ops_recorder.lock);
	if (ops_recorder.session) {
		bytes = (uint64_t)(ops_recorder.last_block - ops_recorder.observer_blocks) * (OPS_BLOCK_BYTES - sizeof(struct ops_block));
		for (const struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
			if (!thread->is_observer && thread->hot.block && thread->hot.block->epoch == ops_recorder.session)
				bytes -= ops_block_free_bytes(thread->hot.block);
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	return bytes / sizeof(struct ops_slot);
}

void ops_recording_observe(void)
{
	if (!ops_recorder_thread())
		return;
	pthread_mutex_lock(&ops_recorder.lock);
	ops_this_thread->is_observer = true;
	pthread_mutex_unlock(&ops_recorder.lock);
}
