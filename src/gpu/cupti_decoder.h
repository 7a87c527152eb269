/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the decoder share; see cupti_records.h.
 */
#ifndef OPS_GPU_CUPTI_DECODER_H
#define OPS_GPU_CUPTI_DECODER_H

#include "gpu/cupti_records.h"

#include <cupti_activity_deprecated.h>

/* The record layouts of CUPTI 11.8, which are prefixes of those of all later versions. */
typedef CUpti_ActivityKernel8 cupti_kernel;
typedef CUpti_ActivityMemcpy5 cupti_copy;
typedef CUpti_ActivityMemcpyPtoP4 cupti_peer_copy;
typedef CUpti_ActivityMemset4 cupti_set;
typedef CUpti_ActivityMemory2 cupti_memory;

/* Finds the text that is built once for each key (any bytes). Returns true, with its id, if it exists. Else decoder->text is
 * empty; the caller fills it and calls ops_cupti_keep, which returns the id, or 0 if out of memory. */
bool ops_cupti_known(struct ops_cupti_decoder *decoder, const void *key, size_t size, uint32_t *ret_text);
uint32_t ops_cupti_keep(struct ops_cupti_decoder *decoder, const void *key, size_t size);
/* Returns the id of the contents of decoder->text; 0 if out of memory. */
uint32_t ops_cupti_text(struct ops_cupti_decoder *decoder);
/* Returns the id of a kernel's demangled name; 0 if out of memory. */
uint32_t ops_cupti_kernel_name(struct ops_cupti_decoder *decoder, const char *mangled);
/* Returns the name of a CUpti_ActivityMemoryKind. */
const char *ops_cupti_memory_name(uint32_t kind);

/* Decodes a record into the fields of `activity`, whose kind remains OPS_ACTIVITY_KIND_COUNT if the record results in no
 * activity. `size` is at least that of the record's structure. */
typedef void ops_cupti_decode_function(struct ops_cupti_decoder *decoder, const void *record, size_t size,
                                       struct ops_activity *activity);

/* cupti_work.c */
ops_cupti_decode_function ops_cupti_decode_kernel;
ops_cupti_decode_function ops_cupti_decode_copy;
ops_cupti_decode_function ops_cupti_decode_peer_copy;
ops_cupti_decode_function ops_cupti_decode_set;
ops_cupti_decode_function ops_cupti_decode_host_node;
ops_cupti_decode_function ops_cupti_decode_event_node; /* a CUDA_EVENT recorded by a graph node, which has its position already */
/* cupti_sync.c */
ops_cupti_decode_function ops_cupti_decode_sync;
ops_cupti_decode_function ops_cupti_decode_event;
/* cupti_extras.c */
ops_cupti_decode_function ops_cupti_decode_marker;
ops_cupti_decode_function ops_cupti_decode_name;
ops_cupti_decode_function ops_cupti_decode_environment;
ops_cupti_decode_function ops_cupti_decode_pool;
/* cupti_memory.c; the second function adds what the first one deferred. */
ops_cupti_decode_function ops_cupti_decode_memory;
void ops_cupti_memory_end(struct ops_cupti_decoder *decoder);

#endif
