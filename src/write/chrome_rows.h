/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a Chrome trace of which there may be millions: events, memory reports, counters, flows. chrome_json.c writes the
 * document around them.
 */
#ifndef OPS_WRITE_CHROME_ROWS_H
#define OPS_WRITE_CHROME_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <opstrobe/write.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "write/chrome_storages.h"
#include "write/fragments.h"

/* The data for rows. Everything is borrowed, except for the buffers. */
struct ops_chrome_rows {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_chrome_json_options *options; /* may be NULL */
	struct ops_sink *sink;
	char *row; /* start of the current row in the sink's room */
	int64_t base_ns;
	struct ops_fragments names;      /* string id → JSON text without the quotes */
	struct ops_fragments inputs;     /* input list id → members of args, followed by a comma */
	const struct ops_string *tracks; /* track → `","pid":1,"tid":2,"ts":`, followed by padding */
	const uint8_t *overlaps;         /* bits: rows that are written as a pair, see overlap.h */
	struct ops_chrome_storages storages;
	const uint8_t *ill_formed;       /* bits: strings with invalid UTF-8; NULL if there are none */
	const uint32_t *callers;         /* ops_python_callers if call stacks are written, else NULL */
	bool was_read;      /* the trace comes from a file, which has its own spans and marks */
	bool out_of_memory; /* see ops_chrome_rows_failed */
	bool cancelled;
};

#define OPS_PUT(at, literal) ((char *)memcpy(at, literal, sizeof(literal) - 1) + sizeof(literal) - 1)

/* Returns whether memory has run out. */
static inline bool ops_chrome_rows_failed(const struct ops_chrome_rows *rows)
{
	return rows->out_of_memory || rows->names.scratch.failed || rows->inputs.scratch.failed ||
	       rows->storages.text.failed;
}

/* Every row begins with a comma and a new line. If out of memory, the disk is full or the caller has cancelled, these functions
 * stop early. */
void ops_chrome_write_events(struct ops_chrome_rows *rows);
void ops_chrome_write_memory(struct ops_chrome_rows *rows);
void ops_chrome_write_counters(struct ops_chrome_rows *rows);
void ops_chrome_write_links(struct ops_chrome_rows *rows);

#endif
