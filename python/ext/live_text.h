/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of `opstrobe run --live`: several lines for a terminal, or one line, or JSON for `opstrobe tui --live`.
 */
#ifndef OPS_EXT_LIVE_TEXT_H
#define OPS_EXT_LIVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/internal/live.h>

#define LIVE_ROWS 8
#define LIVE_LINES (LIVE_ROWS + 2)
#define LIVE_LINE_ROOM 1024
#define LIVE_JSON_ROWS 40
#define LIVE_JSON_ROOM 32768 /* more than LIVE_JSON_ROWS names of maximum length need */

struct live_look {
	bool utf8;
	unsigned columns;
	double elapsed_s;
	uint64_t resident_bytes;
};

/* Writes line `index` of LIVE_LINES, without a line end; at most LIVE_LINE_ROOM bytes and a NUL. */
void live_text_line(const struct ops_live_state *state, const struct live_look *look, unsigned index,
                    char ret_line[LIVE_LINE_ROOM + 1]);
/* Writes everything in one line. */
void live_text_summary(const struct ops_live_state *state, const struct live_look *look, char ret_line[LIVE_LINE_ROOM + 1]);
/* Writes everything as one JSON object. */
void live_text_json(const struct ops_live_state *state, const struct live_look *look, char ret_text[LIVE_JSON_ROOM]);

#endif
