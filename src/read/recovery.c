/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a recording file to a recording, and that to a trace (recovery.h). Nothing in the file is trusted: the file of a
 * killed process is complete up to the counts that it published, but files are also truncated, copied while they grow, and
 * damaged.
 *
 *     units ── blocks ─▶ slots with plausible times ────▶ shares ─┐
 *        └──── parts of the log ─▶ one text ─▶ recovery_log ─────┴─▶ recording ─▶ trace
 *
 * Blocks are read before the log, because a process that still records writes a name to the log before a slot has it.
 */
#include "read/recovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/snapshot.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "read/recovery_log.h"
#include "read/recovery_units.h"
#include "record/recorder.h"
#include "record/spill.h"
#include "record/spill_format.h"

#define BLOCK_SLOTS ((OPS_BLOCK_BYTES - sizeof(struct ops_block)) / sizeof(struct ops_slot))

/* Limit of plausible times: ten years before and after the start. */
#define FAR_NS 3.2e17

struct part {
	uint64_t unit;
	uint32_t sequence;
};

struct recovery {
	struct ops_recovery_units units;
	struct ops_recording *recording;
	struct ops_clock_map clock;
	OPS_ARRAY(struct ops_block *) blocks; /* in order of their sequence after sorting */
	struct ops_buffer text; /* of the log */
	struct ops_recovery_log log;
	uint64_t last_ticks;
	uint64_t event_ticks; /* of the last record that is not a sample; 0: none */
	uint64_t until_ticks; /* slots that start later are left out; 0: none */
	struct ops_block *baseline; /* linked by `next` */
	uint64_t missing; /* number of invalid or missing slots */
	bool is_torn;
};

/* --- clocks --------------------------------------------------------------------------------------------------------- */

static bool is_later(const struct ops_clock_pair *pair, const struct ops_clock_pair *start)
{
	return pair->ticks > start->ticks && pair->monotonic_ns > start->monotonic_ns;
}

/* Returns the pair for measuring the rate of the ticks: that of the end of a copy, the current one if the counter is the same, else
 * the last one in the file. */
static struct ops_clock_pair latest_pair(const struct recovery *recovery)
{
	const struct ops_spill_header *header = &recovery->units.header;
	struct ops_clock_pair now = ops_clock_pair_of_tsc();

	if (is_later(&header->end, &header->start))
		return header->end;
	if (ops_recovery_has_this_clock(&recovery->units) && is_later(&now, &header->start))
		return now;
	return is_later(&recovery->log.last_clock, &header->start) ? recovery->log.last_clock : header->start;
}

static enum ops_code find_clock(struct recovery *recovery, struct ops_error *error)
{
	const struct ops_spill_header *header = &recovery->units.header;
	struct ops_clock_pair first = header->first.ticks && is_later(&header->start, &header->first) ? header->first
	                                                                                              : header->start;
	struct ops_clock_pair last = latest_pair(recovery);
	double rate = 1;

	if (header->tsc && is_later(&last, &first))
		rate = (double)(last.monotonic_ns - first.monotonic_ns) / (double)(last.ticks - first.ticks);
	/* Between 20 MHz and 50 GHz, as when the recorder chose the clock, and a wall clock within a century of 1970. */
	if (!(rate > 0.02 && rate < 50) || header->start.wall_ns < 0 || header->start.wall_ns > INT64_C(4000000000000000000))
		return ops_fault(error, OPS_CORRUPT, "its clocks are inconsistent");
	recovery->clock = (struct ops_clock_map){header->start.ticks, header->start.wall_ns, rate};
	return OPS_OK;
}

static bool makes_sense(const struct recovery *recovery, uint64_t ticks)
{
	double ns = (double)(int64_t)(ticks - recovery->clock.base_ticks) * recovery->clock.ns_per_tick;

	return ns > -FAR_NS && ns < FAR_NS;
}

/* Leaves out what a process records after this moment, if its clock is this machine's, so that all threads end at the same
 * moment. Of a copy, this is the moment at which it was made. */
static void find_until(struct recovery *recovery)
{
	const struct ops_recovery_units *units = &recovery->units;

	if (is_later(&units->header.end, &units->header.start) && makes_sense(recovery, units->header.end.ticks))
		recovery->until_ticks = units->header.end.ticks;
	else if (units->source->is_running && ops_recovery_has_this_clock(units))
		recovery->until_ticks = ops_ticks(ops_clock_tsc());
	if (recovery->until_ticks)
		recovery->last_ticks = recovery->until_ticks;
}

static void note_ticks(struct recovery *recovery, uint64_t ticks)
{
	if (!recovery->until_ticks && (int64_t)(ticks - recovery->last_ticks) > 0)
		recovery->last_ticks = ticks;
}

/* Samples continue while a program hangs, so they do not count as the end of the last part. */
static void note_event(struct recovery *recovery, const struct ops_slot *slot)
{
	uint64_t ticks = ops_slot_is_memory(slot) || !slot->end_ticks ? slot->start_ticks : slot->end_ticks;

	if (slot->kind != OPS_SLOT_SAMPLE && (!recovery->event_ticks || (int64_t)(ticks - recovery->event_ticks) > 0))
		recovery->event_ticks = ticks;
}

/* --- blocks --------------------------------------------------------------------------------------------------------- */

/* Returns whether a slot can be shown; removes what is unknown because its end is missing. */
static bool check_slot(struct recovery *recovery, struct ops_slot *slot, size_t got)
{
	if (!makes_sense(recovery, slot->start_ticks))
		return false;
	note_ticks(recovery, slot->start_ticks);
	if (ops_slot_is_memory(slot))
		return true;
	if (slot->payload && (size_t)slot->payload + slot->payload_bytes > got)
		return false;
	if (slot->forward_thread > INT32_MAX)
		slot->forward_thread = 0;
	if (slot->end_ticks && !makes_sense(recovery, slot->end_ticks))
		return false;
	if (slot->end_ticks)
		note_ticks(recovery, slot->end_ticks);
	return true;
}

/* Keeps the valid slots of a block, of which `got` bytes were read. */
static void check_slots(struct recovery *recovery, struct ops_block *block, size_t got)
{
	size_t there = got < sizeof(*block) ? 0 : (got - sizeof(*block)) / sizeof(struct ops_slot);
	uint32_t count = 0;

	if (block->count > BLOCK_SLOTS) {
		recovery->is_torn = true;
		block->count = BLOCK_SLOTS;
	}
	for (uint32_t i = 0; i < block->count; i++) {
		if (i < there && recovery->until_ticks && block->slots[i].start_ticks > recovery->until_ticks)
			continue;
		if (i >= there || !check_slot(recovery, &block->slots[i], got)) {
			recovery->missing++;
			continue;
		}
		note_event(recovery, &block->slots[i]);
		block->slots[count++] = block->slots[i];
	}
	block->count = count;
	block->bytes = OPS_BLOCK_BYTES;
	block->home = NULL;
	block->next = NULL;
}

/* Keeps the valid memory records of the baseline. */
static enum ops_code read_baseline(struct recovery *recovery, uint64_t unit, struct ops_error *error)
{
	struct ops_block *block = ops_alloc(OPS_BLOCK_BYTES);
	uint32_t count = 0;
	enum ops_code code;
	size_t got;

	if (!block)
		return ops_fault_memory(error);
	code = ops_recovery_unit(&recovery->units, unit, block, OPS_BLOCK_BYTES, &got, error);
	if (code) {
		ops_free(block);
		return code;
	}
	if (block->count > BLOCK_SLOTS)
		recovery->is_torn = true;
	for (uint32_t i = 0; i < block->count && i < BLOCK_SLOTS; i++)
		if (block->slots[i].kind == OPS_SLOT_MEMORY && makes_sense(recovery, block->slots[i].start_ticks))
			block->slots[count++] = block->slots[i];
	block->count = count;
	block->thread = 0; /* each record has its own */
	block->bytes = OPS_BLOCK_BYTES;
	block->home = NULL;
	block->next = recovery->baseline;
	recovery->baseline = block;
	return OPS_OK;
}

static enum ops_code recovery_read_block(struct recovery *recovery, uint64_t unit, struct ops_error *error)
{
	struct ops_block *block = ops_alloc(OPS_BLOCK_BYTES), **added;
	enum ops_code code;
	size_t got;

	if (!block)
		return ops_fault_memory(error);
	code = ops_recovery_unit(&recovery->units, unit, block, OPS_BLOCK_BYTES, &got, error);
	if (!code && !ops_recovery_is_still(&recovery->units, unit, block)) {
		ops_free(block);
		return OPS_OK;
	}
	if (!code) {
		check_slots(recovery, block, got);
		added = OPS_ARRAY_PUSH(&recovery->blocks);
		if (added) {
			*added = block;
			return OPS_OK;
		}
		code = ops_fault_memory(error);
	}
	ops_free(block);
	return code;
}

static enum ops_code read_blocks(struct recovery *recovery, struct ops_error *error)
{
	struct ops_block head;
	enum ops_code code = OPS_OK;
	size_t got;

	for (uint64_t unit = 1; !code && unit < recovery->units.count; unit++) {
		code = ops_recovery_unit(&recovery->units, unit, &head, sizeof(head), &got, error);
		if (code || head.magic == 0 || head.magic == OPS_SPILL_LOG_MAGIC)
			continue;
		if (head.magic == OPS_BLOCK_MAGIC && head.epoch == recovery->units.session)
			code = recovery_read_block(recovery, unit, error);
		else if (head.magic == OPS_SPILL_BASELINE_MAGIC && head.epoch == recovery->units.session)
			code = read_baseline(recovery, unit, error);
		else
			recovery->is_torn = true;
	}
	return code;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct ops_block *left = *(const struct ops_block *const *)a, *right = *(const struct ops_block *const *)b;

	return left->sequence < right->sequence ? -1 : left->sequence > right->sequence;
}

/* Gives each block to the share of its thread, and replaces it by NULL in the list. */
static bool share_blocks(struct recovery *recovery)
{
	if (recovery->blocks.count)
		qsort(recovery->blocks.items, recovery->blocks.count, sizeof(struct ops_block *), compare_blocks);
	for (size_t i = 0; i < recovery->blocks.count; i++) {
		struct ops_block *block = recovery->blocks.items[i];
		struct ops_share *share = ops_recovery_log_share(&recovery->log, block->thread);

		if (!share)
			return false;
		/* Each block has the number of records that its thread had lost by then. */
		if (block->lost > (share->last ? share->last->lost : 0))
			recovery->recording->lost += block->lost - (share->last ? share->last->lost : 0);
		else if (share->last)
			block->lost = share->last->lost;
		ops_share_append(share, block);
		recovery->recording->slot_count += block->count;
		recovery->blocks.items[i] = NULL;
	}
	return true;
}

/* --- log ------------------------------------------------------------------------------------------------------------ */

static int compare_parts(const void *a, const void *b)
{
	const struct part *left = a, *right = b;

	if (left->sequence != right->sequence)
		return left->sequence < right->sequence ? -1 : 1;
	return left->unit < right->unit ? -1 : left->unit > right->unit;
}

/* Appends the published bytes of a part to the text. */
static enum ops_code read_part(struct recovery *recovery, uint64_t unit, bool is_last, struct ops_error *error)
{
	struct ops_block *part = ops_alloc(OPS_BLOCK_BYTES);
	enum ops_code code;
	size_t got, published;

	if (!part)
		return ops_fault_memory(error);
	code = ops_recovery_unit(&recovery->units, unit, part, OPS_BLOCK_BYTES, &got, error);
	published = part->count <= OPS_SPILL_LOG_BYTES ? part->count : OPS_SPILL_LOG_BYTES;
	got = got > sizeof(*part) ? got - sizeof(*part) : 0;
	if (!code && (published > got || part->count > OPS_SPILL_LOG_BYTES || (!is_last && published < OPS_SPILL_LOG_BYTES)))
		recovery->is_torn = true;
	if (!code)
		ops_buffer_append(&recovery->text, part + 1, published < got ? published : got);
	ops_free(part);
	if (!code && recovery->text.failed)
		code = ops_fault_memory(error);
	return code;
}

/* Reads the log up to its last complete record. */
static enum ops_code read_log(struct recovery *recovery, struct ops_error *error)
{
	OPS_ARRAY(struct part) parts = {0};
	struct ops_block head;
	enum ops_code code = OPS_OK;
	size_t got;

	for (uint64_t unit = 1; !code && unit < recovery->units.count; unit++) {
		struct part *part;

		code = ops_recovery_unit(&recovery->units, unit, &head, sizeof(head), &got, error);
		if (code || head.magic != OPS_SPILL_LOG_MAGIC || head.epoch != recovery->units.session)
			continue;
		part = OPS_ARRAY_PUSH(&parts);
		if (part)
			*part = (struct part){unit, head.sequence};
		else
			code = ops_fault_memory(error);
	}
	if (parts.count)
		qsort(parts.items, parts.count, sizeof(*parts.items), compare_parts);
	for (size_t i = 0; !code && !recovery->is_torn && i < parts.count; i++) {
		if (parts.items[i].sequence != i)
			recovery->is_torn = true;
		else
			code = read_part(recovery, parts.items[i].unit, i + 1 == parts.count, error);
	}
	OPS_ARRAY_RELEASE(&parts);
	return code;
}

/* --- recovery ------------------------------------------------------------------------------------------------------- */

/* Returns the start of the requested part; 0: that of the recording. Its length is counted back from the last event, so that the
 * part of a process that hangs or waits is not empty. */
static uint64_t find_window(const struct recovery *recovery)
{
	double ticks = (double)recovery->units.source->last_ns / recovery->clock.ns_per_tick;
	uint64_t start = recovery->units.header.start.ticks, window = recovery->units.header.window_ticks, last = recovery->last_ticks;

	if (recovery->event_ticks && (int64_t)(last - recovery->event_ticks) > 0)
		last = recovery->event_ticks;

	if (window && (!makes_sense(recovery, window) || (int64_t)(window - recovery->last_ticks) > 0))
		window = 0;
	if (recovery->units.source->last_ns && ticks < (double)(int64_t)(last - start) && last - (uint64_t)ticks > window)
		window = last - (uint64_t)ticks;
	return window;
}

/* Threads of a ring without records are left out: there may be any number of them. */
static void drop_empty_shares(struct ops_recording *recording)
{
	struct ops_share **link = &recording->shares, *share;

	while ((share = *link)) {
		if (share->blocks) {
			link = &share->next;
			continue;
		}
		*link = share->next;
		recording->share_count--;
		ops_share_free(share);
	}
}

static enum ops_code describe_process(struct recovery *recovery, struct ops_error *error)
{
	struct ops_recording *recording = recovery->recording;
	struct ops_recovered *recovered = ops_alloc_zeroed(1, sizeof(*recovered));

	if (!recovered)
		return ops_fault_memory(error);
	recovered->clock = recovery->clock;
	recovered->pid = recovery->units.header.pid;
	memcpy(recovered->host_name, recovery->units.header.host_name, sizeof(recovered->host_name));
	memcpy(recovered->process_name, recovery->units.header.process_name, sizeof(recovered->process_name));
	recording->recovered = recovered;
	recording->epoch = recovery->units.session;
	recording->args_are_inputs = recovery->units.header.args_are_inputs != 0;
	recording->start = recovery->units.header.start;
	recording->stop = (struct ops_clock_pair){.ticks = recovery->last_ticks};
	recording->window_ticks = find_window(recovery);
	recording->dropped = recovery->units.header.dropped;
	recording->baseline = recovery->baseline;
	recovery->baseline = NULL;
	if (recovery->units.header.window_ticks)
		drop_empty_shares(recording);
	recording->lost += recovery->missing;
	return OPS_OK;
}

static enum ops_code recovery_read(struct recovery *recovery, const struct ops_recovery_source *source, struct ops_error *error)
{
	enum ops_code code = ops_recovery_open(&recovery->units, source, error);
	bool torn;

	recovery->last_ticks = recovery->units.header.start.ticks;
	/* The rate of the clock is measured again with the log; this one suffices to detect impossible times. */
	if (!code)
		code = find_clock(recovery, error);
	if (!code)
		find_until(recovery);
	recovery->is_torn = !recovery->units.header.end_errno && source->size % OPS_SPILL_GROWTH_BYTES != 0;
	if (!code)
		code = read_blocks(recovery, error);
	torn = recovery->is_torn;
	recovery->is_torn = false; /* the log is handled separately: it is read up to the damage */
	if (!code)
		code = read_log(recovery, error);
	recovery->is_torn |= torn;
	if (!code && (!ops_recovery_log_read(&recovery->log, (struct ops_string){ops_buffer_text(&recovery->text), recovery->text.size}) ||
	              !ops_recovery_log_set_modules(&recovery->log) || !share_blocks(recovery)))
		code = ops_fault_memory(error);
	if (!code)
		code = find_clock(recovery, error);
	if (!code && source->is_running) /* blocks may have been reused while others were read */
		code = ops_recovery_read_window(&recovery->units, recovery->until_ticks, error);
	return code ? code : describe_process(recovery, error);
}

size_t ops_recovery_describe_overhead(const struct ops_overhead *overhead, char ret_json[OPS_RECOVERY_OVERHEAD_ROOM])
{
	char measured[160] = "null", exceeded[32] = "null";

	ret_json[0] = '\0';
	if (overhead->unit == OPS_OVERHEAD_NONE)
		return 0;
	if (ops_overhead_is_known(overhead))
		snprintf(measured, sizeof(measured), "{\"share\": %.6f, \"low\": %.6f, \"high\": %.6f, \"shadow_steps\": %" PRIu32 "}",
		         overhead->share_ppm / 1e6, overhead->low_ppm / 1e6, overhead->high_ppm / 1e6, overhead->pairs);
	if (overhead->exceeded_ppm)
		snprintf(exceeded, sizeof(exceeded), "%.6f", abs(overhead->exceeded_ppm) / 1e6);
	return (size_t)snprintf(ret_json, OPS_RECOVERY_OVERHEAD_ROOM, "{\"unit\": \"%s\", \"overhead\": %s, \"shadow_steps\": %" PRIu32 ", \"budget\": %.6f, \"detail\": \"%s\", \"exceeded\": %s, \"expected\": %s}",
	                overhead->unit == OPS_OVERHEAD_CALL ? "call" : "step", measured, overhead->pairs, overhead->budget_ppm / 1e6, ops_detail_name((enum ops_detail)overhead->detail), exceeded, overhead->exceeded_ppm < 0 ? "true" : "false");
}

/* Adds the overhead that the black box measured. Inconsistent figures of a running process are harmless. */
static enum ops_code add_overhead(const struct ops_overhead *overhead, struct ops_trace *trace, struct ops_error *error)
{
	char json[OPS_RECOVERY_OVERHEAD_ROOM];
	size_t size = ops_recovery_describe_overhead(overhead, json);

	return size ? ops_trace_set_metadata(trace, "black_box", 9, json, size, error) : OPS_OK;
}

/* Adds the metadata that the process had recorded, and facts about the recovery. */
static enum ops_code add_metadata(const struct recovery *recovery, const struct ops_recovery *recovered, struct ops_trace *trace,
                                  struct ops_error *error)
{
	char json[240];
	int size = snprintf(json, sizeof(json),
	                    "{\"torn\": %s, \"stopped\": %s, \"errno\": %d, \"missing\": %" PRIu64 ", \"dropped\": %" PRIu64 "}",
	                    recovered->is_torn ? "true" : "false", recovered->is_stopped ? "true" : "false", recovered->end_errno,
	                    recovery->missing, recovered->dropped);
	enum ops_code code = ops_trace_set_metadata(trace, "recovered", 9, json, (size_t)size, error);

	if (!code)
		code = add_overhead(&recovery->units.header.overhead, trace, error);
	for (size_t i = 0; !code && i < recovery->log.metadata.count; i++) {
		const struct ops_recovery_metadata *row = &recovery->log.metadata.items[i];

		code = ops_trace_set_metadata(trace, row->key.bytes, row->key.size, row->json.bytes, row->json.size, error);
		if (code != OPS_NO_MEMORY)
			code = OPS_OK; /* not JSON, so it is left out */
	}
	return code;
}

static void recovery_release(struct recovery *recovery)
{
	for (size_t i = 0; i < recovery->blocks.count; i++)
		ops_free(recovery->blocks.items[i]);
	OPS_ARRAY_RELEASE(&recovery->blocks);
	while (recovery->baseline) {
		struct ops_block *next = recovery->baseline->next;

		ops_free(recovery->baseline);
		recovery->baseline = next;
	}
	ops_recovery_log_release(&recovery->log);
	ops_buffer_release(&recovery->text);
	ops_recording_free(recovery->recording);
}

enum ops_code ops_trace_recover_from(const struct ops_recovery_source *source, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error)
{
	struct recovery recovery = {
		.recording = ops_alloc_zeroed(1, sizeof(struct ops_recording)),
	};
	struct ops_trace *trace = NULL;
	struct ops_recovery recovered;
	enum ops_code code;

	if (!recovery.recording)
		return ops_fault_memory(error);
	recovery.log.recording = recovery.recording;
	code = recovery_read(&recovery, source, error);
	if (!code && !(code = ops_trace_from_recording(recovery.recording, &trace, error)))
		recovery.recording = NULL; /* it has been freed */
	if (!code) {
		recovered = (struct ops_recovery){
			.pid = recovery.units.header.pid,
			.is_running = source->is_running,
			.is_stopped = recovery.units.header.state == OPS_SPILL_STOPPED,
			.is_torn = recovery.is_torn || recovery.missing || recovery.log.ignored,
			.dropped = recovery.units.header.dropped,
			.end_errno = recovery.units.header.end_errno <= INT32_MAX ? (int)recovery.units.header.end_errno : 0,
		};
		code = add_metadata(&recovery, &recovered, trace, error);
	}
	if (code) {
		ops_trace_unref(trace);
	} else {
		*ret_trace = trace;
		if (ret_recovery)
			*ret_recovery = recovered;
	}
	recovery_release(&recovery);
	return code;
}

/* Reads the file of a descriptor. */
static enum ops_code recover_file(struct ops_recovery_source *source, struct ops_trace **ret_trace,
                                  struct ops_recovery *ret_recovery, struct ops_error *error)
{
	enum ops_code code = OPS_BUSY;

	for (int i = 0; code == OPS_BUSY && i < OPS_RECOVERY_ATTEMPTS; i++) {
		code = ops_recovery_measure(source, error);
		if (!code)
			code = ops_trace_recover_from(source, ret_trace, ret_recovery, error);
	}
	return code;
}

enum ops_code ops_trace_recover_path(const char *path, uint64_t last_ns, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error)
{
	struct ops_recovery_source source;
	enum ops_code code = ops_recovery_open_file(path, &source, error);

	if (code)
		return code;
	source.last_ns = last_ns;
	code = recover_file(&source, ret_trace, ret_recovery, error);
	close(source.fd);
	return code;
}

enum ops_code ops_trace_recover_last(const char *path, uint64_t last_ns, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error)
{
	enum ops_code code = ops_trace_recover_path(path, last_ns, ret_trace, ret_recovery, error);

	return code ? ops_fault_context(error, code, "cannot recover '%s'", path) : OPS_OK;
}

enum ops_code ops_trace_recover(const char *path, struct ops_trace **ret_trace, struct ops_recovery *ret_recovery,
                                struct ops_error *error)
{
	return ops_trace_recover_last(path, 0, ret_trace, ret_recovery, error);
}

enum ops_code ops_session_snapshot(const struct ops_session *session, uint64_t last_ns, struct ops_trace **ret_trace,
                                   struct ops_error *error)
{
	struct ops_recovery_source source = {.fd = -1, .is_running = true, .last_ns = last_ns};
	enum ops_code code = ops_recorder_open_reader(session, &source.fd, error);

	if (!code)
		code = recover_file(&source, ret_trace, NULL, error);
	if (source.fd >= 0)
		close(source.fd);
	return code ? ops_fault_context(error, code, "cannot make a snapshot of the session") : OPS_OK;
}
