/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a recording file, also while its process records; see snapshot.h. Blocks are copied before the log, because a process writes
 * a name to the log before a slot has it. What a block holds is checked when the copy is read.
 */
#include <opstrobe/internal/snapshot.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/sink.h"
#include "read/recovery_units.h"

struct copying {
	struct ops_recovery_units units;
	struct ops_sink *sink;
	struct ops_block *block; /* one unit */
	struct ops_clock_pair end;
	uint64_t records;
};

static bool is_copied(const struct copying *copying, const struct ops_block *head, bool is_log)
{
	return head->epoch == copying->units.session && (head->magic == OPS_SPILL_LOG_MAGIC) == is_log &&
	       (is_log || head->magic == OPS_BLOCK_MAGIC || head->magic == OPS_SPILL_BASELINE_MAGIC);
}

static enum ops_code copy_unit(struct copying *copying, uint64_t unit, struct ops_error *error)
{
	struct ops_block *block = copying->block;
	size_t got;
	enum ops_code code = ops_recovery_unit(&copying->units, unit, block, OPS_BLOCK_BYTES, &got, error);

	if (code || !ops_recovery_is_still(&copying->units, unit, block))
		return code;
	ops_sink_write(copying->sink, block, OPS_BLOCK_BYTES);
	if (block->magic == OPS_BLOCK_MAGIC)
		copying->records += block->count;
	return OPS_OK;
}

static enum ops_code copy_units(struct copying *copying, bool is_log, struct ops_error *error)
{
	enum ops_code code = OPS_OK;
	struct ops_block head;
	size_t got;

	for (uint64_t unit = 1; !code && !ops_sink_failed(copying->sink) && unit < copying->units.count; unit++) {
		code = ops_recovery_unit(&copying->units, unit, &head, sizeof(head), &got, error);
		if (!code && is_copied(copying, &head, is_log))
			code = copy_unit(copying, unit, error);
	}
	return code;
}

/* Writes the header, whose window is known last, in front of the rest, and fills the file up to a size that files have. */
static enum ops_code copy_header(struct copying *copying, struct ops_error *error)
{
	struct ops_block *block = copying->block;
	size_t got;
	enum ops_code code = ops_recovery_unit(&copying->units, 0, block, OPS_BLOCK_BYTES, &got, error);
	struct ops_spill_header *header = (struct ops_spill_header *)(void *)(block + 1);

	if (code)
		return code;
	header->window_ticks = copying->units.header.window_ticks;
	header->dropped = copying->units.header.dropped;
	header->end = copying->end;
	copying->units.header = *header;
	ops_sink_rewrite(copying->sink, 0, block, OPS_BLOCK_BYTES);
	memset(block, 0, OPS_BLOCK_BYTES);
	while (ops_sink_total(copying->sink) % OPS_SPILL_GROWTH_BYTES)
		ops_sink_write(copying->sink, block, OPS_BLOCK_BYTES);
	return OPS_OK;
}

static enum ops_code copy_file(struct copying *copying, struct ops_recovery_source *source, struct ops_error *error)
{
	enum ops_code code = ops_recovery_measure(source, error);

	if (!code)
		code = ops_recovery_open(&copying->units, source, error);
	if (code)
		return code;
	if (source->is_running && ops_recovery_has_this_clock(&copying->units))
		copying->end = ops_clock_pair_now();
	memset(copying->block, 0, OPS_BLOCK_BYTES);
	ops_sink_write(copying->sink, copying->block, OPS_BLOCK_BYTES); /* replaced by the header */
	code = copy_units(copying, false, error);
	if (!code)
		code = ops_recovery_read_window(&copying->units, copying->end.ticks, error);
	if (!code)
		code = copy_units(copying, true, error);
	return code ? code : copy_header(copying, error);
}

static enum ops_code copy_to(struct copying *copying, struct ops_recovery_source *source, const char *output, struct ops_error *error)
{
	enum ops_code code = ops_sink_open_file(output, 0, &copying->sink, error);

	if (code)
		return code;
	code = copy_file(copying, source, error);
	if (!code)
		return ops_sink_close(copying->sink, error);
	ops_sink_abandon(copying->sink);
	return code;
}

/* Returns how long the copied part is. */
static double copied_seconds(const struct copying *copying)
{
	const struct ops_spill_header *header = &copying->units.header;
	const struct ops_clock_pair *first = header->first.ticks ? &header->first : &header->start;
	uint64_t from = header->window_ticks ? header->window_ticks : header->start.ticks;
	double ticks = (double)(int64_t)(header->end.ticks - from);

	if (!header->end.ticks || header->end.ticks <= first->ticks)
		return 0;
	return ticks * (double)(header->end.monotonic_ns - first->monotonic_ns) / (double)(header->end.ticks - first->ticks) / 1e9;
}

enum ops_code ops_recording_copy(const char *path, const char *output, struct ops_recording_copy *ret_copy, struct ops_error *error)
{
	struct copying copying = {.block = ops_alloc(OPS_BLOCK_BYTES)};
	struct ops_recovery_source source;
	enum ops_code code = copying.block ? ops_recovery_open_file(path, &source, error) : ops_fault_memory(error);

	if (code) {
		ops_free(copying.block);
		return code;
	}
	code = OPS_BUSY;
	for (int i = 0; code == OPS_BUSY && i < OPS_RECOVERY_ATTEMPTS; i++) {
		copying.records = 0;
		code = copy_to(&copying, &source, output, error);
	}
	if (!code) {
		*ret_copy = (struct ops_recording_copy){
			.records = copying.records, .dropped = copying.units.header.dropped, .seconds = copied_seconds(&copying)};
		ops_recovery_describe_overhead(&copying.units.header.overhead, ret_copy->black_box);
	}
	close(source.fd);
	ops_free(copying.block);
	return code ? ops_fault_context(error, code, "cannot copy '%s'", path) : OPS_OK;
}
