/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of a recording, and the modules of its slots.
 */
#ifndef OPS_READ_RECORDING_MODULES_H
#define OPS_READ_RECORDING_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/recording.h"
#include "trace/builder.h"

struct ops_called_module {
	uint32_t module; /* index in the trace; OPS_NONE: the module does not exist */
	uint32_t number;
	uint32_t name;
};

struct ops_called_modules {
	struct ops_called_module *by_id;
	size_t count;
};

/* Adds the modules to the builder. Returns false if out of memory; the object must be released even then. */
bool ops_called_modules_init(struct ops_called_modules *called, const struct ops_recording *recording,
                             struct ops_builder *builder);
void ops_called_modules_release(struct ops_called_modules *called);

/* Sets name and module of the call whose slot has this id. Returns false if there is none. */
bool ops_called_modules_describe(const struct ops_called_modules *called, int64_t id, struct ops_new_event *event);

#endif
