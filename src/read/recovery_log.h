/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a recording file: the data needed to interpret its blocks. Its records become parts of a recording; invalid ones are
 * left out and counted.
 */
#ifndef OPS_READ_RECOVERY_LOG_H
#define OPS_READ_RECOVERY_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>

#include "base/array.h"
#include "base/map.h"
#include "record/recording.h"

struct ops_recovery_metadata {
	struct ops_string key; /* in the log */
	struct ops_string json;
};

/* A module that was called, with its id in slots. */
struct ops_recovery_module {
	uint32_t id;
	uint32_t number;
	struct ops_string name;
	struct ops_string class_name;
};

struct ops_recovery_log {
	struct ops_recording *recording;
	struct ops_map by_number; /* thread number → index in `shares` */
	OPS_ARRAY(struct ops_share *) shares; /* those of the recording */
	OPS_ARRAY(struct ops_recovery_metadata) metadata;
	OPS_ARRAY(struct ops_recovery_module) called;
	struct ops_string modules; /* the payload of the last table of modules */
	struct ops_clock_pair last_clock; /* zeros: none */
	uint64_t ignored; /* number of invalid records */
};

/* Reads all records of `text` except an incomplete last one; the text must live as long as the log. Returns false if out of
 * memory. */
bool ops_recovery_log_read(struct ops_recovery_log *log, struct ops_string text);
/* Returns the share of a thread, added if new; NULL if out of memory. */
struct ops_share *ops_recovery_log_share(struct ops_recovery_log *log, uint32_t number);
/* Sets the modules of the recording. Returns false if out of memory. */
bool ops_recovery_log_set_modules(struct ops_recovery_log *log);
void ops_recovery_log_release(struct ops_recovery_log *log);

#endif
