/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the decoder share; see cupti_records.h for what it does.
 */
#ifndef OPS_GPU_CUPTI_DECODER_H
#define OPS_GPU_CUPTI_DECODER_H

#include "gpu/cupti_records.h"

#include <cupti_activity_deprecated.h>

/* The records as CUPTI 11.8 has them, with which those of all later ones begin. */
typedef CUpti_ActivityKernel8 cupti_kernel;
typedef CUpti_ActivityMemcpy5 cupti_copy;
typedef CUpti_ActivityMemcpyPtoP4 cupti_peer_copy;
typedef CUpti_ActivityMemset4 cupti_set;
typedef CUpti_ActivityMemory2 cupti_memory;

/* A text that is made once for each key, of whatever bytes: true with its id when it was made before. Else decoder->text is
 * empty, to be filled and handed to `keep`, which gives the id; 0 when memory is out. */
bool ops_cupti_known(struct ops_cupti_decoder *decoder, const void *key, size_t size, uint32_t *ret_text);
uint32_t ops_cupti_keep(struct ops_cupti_decoder *decoder, const void *key, size_t size);
/* The id of what is in decoder->text; 0 when memory is out. */
uint32_t ops_cupti_text(struct ops_cupti_decoder *decoder);
/* The id of a kernel's name as its source has it; 0 when memory is out. */
uint32_t ops_cupti_kernel_name(struct ops_cupti_decoder *decoder, const char *mangled);
/* What a CUpti_ActivityMemoryKind is called. */
const char *ops_cupti_memory_name(uint32_t kind);

/* What becomes of a record: its fields in `activity`, whose kind stays OPS_ACTIVITY_KIND_COUNT when nothing does; `size` is
 * at least that of the structure it is named after. */
typedef void ops_cupti_decode_function(struct ops_cupti_decoder *decoder, const void *record, size_t size,
                                       struct ops_activity *activity);

/* cupti_work.c */
ops_cupti_decode_function ops_cupti_decode_kernel;
ops_cupti_decode_function ops_cupti_decode_copy;
ops_cupti_decode_function ops_cupti_decode_peer_copy;
ops_cupti_decode_function ops_cupti_decode_set;
ops_cupti_decode_function ops_cupti_decode_host_node;
ops_cupti_decode_function ops_cupti_decode_event_node; /* of a CUDA_EVENT that a node recorded, which has its place already */
/* cupti_sync.c */
ops_cupti_decode_function ops_cupti_decode_sync;
ops_cupti_decode_function ops_cupti_decode_event;
/* cupti_extras.c */
ops_cupti_decode_function ops_cupti_decode_marker;
ops_cupti_decode_function ops_cupti_decode_name;
ops_cupti_decode_function ops_cupti_decode_environment;
ops_cupti_decode_function ops_cupti_decode_pool;
/* cupti_memory.c; the second adds what the first has put aside. */
ops_cupti_decode_function ops_cupti_decode_memory;
void ops_cupti_memory_end(struct ops_cupti_decoder *decoder);

#endif
