/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a recording file: what explains its blocks. Its records become parts of a recording; what makes no sense is left
 * out and counted.
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

/* A module that was called, by the id that slots have for it. */
struct ops_recovery_module {
	uint32_t id;
	uint32_t number;
	struct ops_string name;
	struct ops_string class_name;
};

struct ops_recovery_log {
	struct ops_recording *recording;
	struct ops_map by_number; /* thread number -> place in `shares` */
	OPS_ARRAY(struct ops_share *) shares; /* the recording's */
	OPS_ARRAY(struct ops_recovery_metadata) metadata;
	OPS_ARRAY(struct ops_recovery_module) called;
	struct ops_string modules; /* the payload of the last table of modules */
	struct ops_clock_pair last_clock; /* zeros: none */
	uint64_t ignored; /* records that make no sense */
};

/* Reads all records of `text` but a last one that is not complete; it has to live as long as the log. False when memory is out. */
bool ops_recovery_log_read(struct ops_recovery_log *log, struct ops_string text);
/* The share of a thread, made if there is none; NULL when memory is out. */
struct ops_share *ops_recovery_log_share(struct ops_recovery_log *log, uint32_t number);
/* Gives the recording its modules. False when memory is out. */
bool ops_recovery_log_set_modules(struct ops_recovery_log *log);
void ops_recovery_log_release(struct ops_recovery_log *log);

#endif
