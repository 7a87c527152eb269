/* SPDX-License-Identifier: Apache-2.0
 *
 * Collective operations on devices, with their arguments.
 */
#ifndef OPS_ANALYZE_COLLECTIVES_H
#define OPS_ANALYZE_COLLECTIVES_H

#include "analyze/events/event_table.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/intern.h"

/* The texts that identify a kind of operation; they are ids in collectives.texts. */
enum collective_text { COLLECTIVE_NAME, COLLECTIVE_DTYPE, COLLECTIVE_GROUP, COLLECTIVE_GROUP_DESC, COLLECTIVE_RANKS,
	               COLLECTIVE_TEXT_COUNT };

struct collective_kind {
	uint32_t texts[COLLECTIVE_TEXT_COUNT];
	int64_t group_size;
};

struct collective {
	uint32_t kind;
	uint32_t row; /* row in its rank's event table */
	int64_t elements_in;
	int64_t elements_out;
};

struct collectives {
	struct ops_intern texts;
	struct ops_intern kinds; /* of struct collective_kind */
	OPS_ARRAY(struct collective) items; /* in order of the file */
	struct ops_buffer scratch;
};

/* Adds a row of the table if its arguments describe a collective. With `unnamed`, also adds other rows that
 * communicate, identified by their kernel's name. Returns false if out of memory. */
bool collectives_add(struct collectives *collectives, const struct event_table *table, uint32_t row, bool unnamed);
void collectives_release(struct collectives *collectives);

struct collective_kind collective_kind(const struct collectives *collectives, uint32_t kind);
struct ops_string collective_text(const struct collectives *collectives, const struct collective_kind *kind,
                                  enum collective_text which);
/* The first columns of a table of collectives, for rows that have these members. */
#define COLLECTIVE_COLUMNS(row_type)                                                                                    \
	{.name = "collective_name", .type = RESULT_TEXT, .title = "Collective", .about = "Name of the operation",            \
	 RESULT_FIELD(row_type, name)},                                                                                  \
	{.name = "msg_dtype", .type = RESULT_TEXT, .title = "Type", .about = "Type of the elements",                         \
	 RESULT_FIELD(row_type, dtype)},                                                                                 \
	{.name = "group_size", .type = RESULT_INTEGER, .title = "Group size", .about = "Number of ranks of the process group", \
	 RESULT_FIELD(row_type, group_size)},                                                                            \
	{.name = "process_group_name", .type = RESULT_TEXT, .title = "Group", .about = "Name of the process group",          \
	 RESULT_FIELD(row_type, group)}
#define COLLECTIVE_RANKS_COLUMN(row_type)                                                                               \
	{.name = "process_group_ranks", .type = RESULT_TEXT, .title = "Ranks of the group",                                \
	 .about = "Ranks of the process group", RESULT_FIELD(row_type, members)}

/* Bytes that each rank's link carries per byte of the larger side of an operation, as the NCCL tests define it. */
double collective_bus_factor(struct ops_string name, int64_t ranks);
/* Compares by texts, then by the size of the group. */
int collective_compare(const struct collectives *collectives, uint32_t left, uint32_t right);

#endif
