/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of CUPTI's records: the output of a GPU, for replay on machines without one. Created by make_records.c from the
 * structures of CUPTI's headers, and by ../record/ from a real GPU. All numbers are little endian; a file is
 *
 *     "OPSCUPTI"  uint32_t 2  uint32_t CUPTI's version, as from cuptiGetVersion
 *
 * and sections: uint32_t kind, uint32_t bytes, the bytes, zeros up to a multiple of 8.
 *
 *     TEXT     uint64_t number, the text       the text to which pointers with that number refer; before its use
 *     RECORD   one record, as CUPTI wrote it   but its pointers are numbers of TEXT
 *     CLOCK    int64_t device, int64_t host    one moment in ns; the first is the start, the last is the stop
 *     DEVICE   struct records_device, JSON     a device, and its element of "deviceProperties"
 *     CALL     uint32_t domain, uint32_t id, the name   the result of cuptiGetCallbackName
 *     RANGE    struct records_range, the name  an operator or annotation of the host, by host time
 *     DROPPED  uint64_t count                  number of records that CUPTI dropped
 *                                            and, which ../record/ does not write:
 *     NODE     struct records_node             a node of a CUDA graph was captured, or copied from `other`
 *     EDGE     struct records_node             a graph was instantiated in which it waits for `other`
 *     FUNCTION struct records_function, the name   what a node calls on the host; the name may be empty
 */
#ifndef OPS_TESTS_GPU_RECORDS_H
#define OPS_TESTS_GPU_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RECORDS_MAGIC "OPSCUPTI"
#define RECORDS_FORMAT 2
#define RECORD_BYTES_MAX 512 /* no record of CUPTI's is larger */

enum records_kind {
	RECORDS_TEXT = 1,
	RECORDS_RECORD,
	RECORDS_CLOCK,
	RECORDS_DEVICE,
	RECORDS_CALL,
	RECORDS_RANGE,
	RECORDS_DROPPED,
	RECORDS_NODE,
	RECORDS_EDGE,
	RECORDS_FUNCTION,
};

struct records_head {
	char magic[8];
	uint32_t format;
	uint32_t version;
};

struct records_clock {
	int64_t device_ns;
	int64_t host_ns;
};

/* What occupancy needs to know of a device; see base/occupancy.h. */
struct records_device {
	uint32_t ordinal;
	uint32_t compute_major;
	uint32_t compute_minor;
	uint32_t multiprocessors;
	uint32_t warp_size;
	uint32_t threads_max;
	uint32_t registers;
	uint32_t shared_bytes;
	uint32_t shared_reserved_bytes;
	uint32_t blocks_max;
};

struct records_range {
	uint32_t thread; /* id in the system */
	uint32_t is_operator;
	int64_t start_ns;
	int64_t end_ns;
};

struct records_node {
	uint64_t node;
	uint64_t other; /* 0: none */
	int64_t device_ns;
	uint32_t thread; /* id in the system */
	uint32_t unused;
};

struct records_function {
	uint64_t node;
	uint64_t address;
};

/* --- reading -------------------------------------------------------------------------------------------------------- */

struct records {
	const uint8_t *bytes;
	size_t size;
	size_t at; /* of the next section */
};

struct records_section {
	uint32_t kind;
	uint32_t size;
	const uint8_t *bytes;
};

/* Returns false if the bytes are not such a file. */
bool records_open(struct records *records, const void *bytes, size_t size, uint32_t *ret_version);
/* Reads the next section. Returns false at the end, or at a truncated section. */
bool records_next(struct records *records, struct records_section *ret_section);
/* Reads the fixed part of a section, and the rest. Returns false if the section is too small. */
bool records_read(const struct records_section *section, void *ret_fixed, size_t fixed_bytes, const char **ret_text,
                  size_t *ret_text_bytes);

/* --- in records ----------------------------------------------------------------------------------------------------- */

/* Replaces every time or pointer of a record that is not 0 by the result of `change`, up to the end of the record. */
typedef uint64_t records_change(void *context, uint64_t value);
void records_change_times(void *record, size_t size, records_change *change, void *context);
void records_change_pointers(void *record, size_t size, records_change *change, void *context);

/* --- writing -------------------------------------------------------------------------------------------------------- */

void records_write_head(FILE *file, uint32_t version);
/* A section of a fixed part and a text or bytes behind it; either may be empty. */
void records_write(FILE *file, enum records_kind kind, const void *fixed, size_t fixed_bytes, const void *rest, size_t rest_bytes);

#endif
