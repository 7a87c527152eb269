/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory timeline as JSON, in torch's two forms: the bytes of each category after each microsecond with a change, or every
 * single step.
 */
#include "write/memory_html.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/text.h"

static int64_t memory_json_time_us(const struct ops_memory_step *step)
{
	return step->time_ns == -1 ? -1 : step->time_ns / 1000;
}

static char *memory_json_put_text(char *at, const char *text)
{
	return stpcpy(at, text);
}

/* --- raw -------------------------------------------------------------------------------------------------------------- */

static void put_raw(struct ops_sink *sink, const struct ops_memory_step *step, int64_t bytes, uint8_t category, bool *first)
{
	char *room = ops_sink_room(sink);
	char *at = memory_json_put_text(room, *first ? "[" : ", [");

	*first = false;
	at = memory_json_put_text(ops_json_int_to(at, step->time_ns), ", ");
	at = memory_json_put_text(ops_json_int_to(at, step->action), ", ");
	at = memory_json_put_text(ops_json_int_to(at, bytes), ", ");
	at = memory_json_put_text(ops_json_int_to(at, category), "]");
	ops_sink_advance(sink, (size_t)(at - room));
}

static void write_raw(struct ops_sink *sink, const struct ops_memory_timeline *timeline, struct ops_memory_device device)
{
	bool first = true;

	ops_sink_write(sink, "[", 1);
	for (size_t i = 0; i < timeline->step_count && !ops_sink_failed(sink); i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		const struct ops_memory_block *block = &timeline->blocks[step->block];

		if (!ops_memory_on_device(block, device))
			continue;
		if (step->action == OPS_MEMORY_DESTROY || step->action == OPS_MEMORY_INCREMENT_VERSION)
			put_raw(sink, step, -block->bytes, step->category, &first);
		if (step->action != OPS_MEMORY_DESTROY)
			put_raw(sink, step, block->bytes, step->next_category, &first);
	}
	ops_sink_write(sink, "]", 1);
}

/* --- times and sizes -------------------------------------------------------------------------------------------------- */

/* Returns the next step of the device from `i` on; step_count if there is none. */
static size_t next_step(const struct ops_memory_timeline *timeline, struct ops_memory_device device, size_t i)
{
	while (i < timeline->step_count && !ops_memory_on_device(&timeline->blocks[timeline->steps[i].block], device))
		i++;
	return i;
}

/* Calls `put` after the last step of each microsecond. */
static void each_state(struct ops_sink *sink, const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                       void (*put)(struct ops_sink *sink, int64_t time_us, const int64_t *held, bool first))
{
	int64_t held[OPS_MEMORY_CATEGORY_COUNT] = {0};
	int64_t first_us = -1;
	bool first = true;
	size_t next;

	for (size_t i = next_step(timeline, device, 0); i < timeline->step_count && first_us == -1;
	     i = next_step(timeline, device, i + 1))
		first_us = memory_json_time_us(&timeline->steps[i]);
	for (size_t i = next_step(timeline, device, 0); i < timeline->step_count && !ops_sink_failed(sink); i = next) {
		int64_t now_us = memory_json_time_us(&timeline->steps[i]);

		ops_memory_apply(timeline, &timeline->steps[i], held);
		next = next_step(timeline, device, i + 1);
		if (next < timeline->step_count && memory_json_time_us(&timeline->steps[next]) == now_us)
			continue;
		put(sink, now_us == -1 ? first_us : now_us, held, first);
		first = false;
	}
}

static void memory_json_put_time(struct ops_sink *sink, int64_t now_us, const int64_t *held, bool first)
{
	char *room = ops_sink_room(sink);
	char *at = memory_json_put_text(room, first ? "" : ", ");

	(void)held;
	at = ops_json_int_to(at, now_us);
	ops_sink_advance(sink, (size_t)(at - room));
}

static void put_sizes(struct ops_sink *sink, int64_t now_us, const int64_t *held, bool first)
{
	char *room = ops_sink_room(sink);
	char *at = memory_json_put_text(room, first ? "[0" : ", [0");

	(void)now_us;
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		at = ops_json_int_to(memory_json_put_text(at, ", "), held[i]);
	at = memory_json_put_text(at, "]");
	ops_sink_advance(sink, (size_t)(at - room));
}

static void write_sizes(struct ops_sink *sink, const struct ops_memory_timeline *timeline, struct ops_memory_device device)
{
	ops_sink_write(sink, "[[", 2);
	each_state(sink, timeline, device, memory_json_put_time);
	ops_sink_write(sink, "], [", 4);
	each_state(sink, timeline, device, put_sizes);
	ops_sink_write(sink, "]]", 2);
}

/* --- file ------------------------------------------------------------------------------------------------------------- */

enum ops_code ops_write_memory_timeline(const struct ops_memory_timeline *timeline, const char *path,
                                        enum ops_memory_format format, struct ops_memory_device device,
                                        struct ops_error *error)
{
	struct ops_sink *sink;
	enum ops_code code = ops_sink_open_file(path, ops_ends_with(path, ".gz") ? 4 : 0, &sink, error);

	if (!code && format == OPS_MEMORY_HTML) {
		code = ops_write_memory_html(sink, timeline, device, error);
		if (code)
			ops_sink_abandon(sink);
	} else if (!code) {
		(format == OPS_MEMORY_RAW ? write_raw : write_sizes)(sink, timeline, device);
	}
	if (!code)
		code = ops_sink_close(sink, error);
	return code ? ops_fault_context(error, code, "cannot write a memory timeline") : OPS_OK;
}
