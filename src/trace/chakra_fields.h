/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers and names of Chakra's messages, for the reader and the writer, from MLCommons' schema/protobuf/et_def.proto.
 */
#ifndef OPS_TRACE_CHAKRA_FIELDS_H
#define OPS_TRACE_CHAKRA_FIELDS_H

#include <stddef.h>

/* GlobalMetadata */
enum { CHAKRA_VERSION = 1 };
/* Node */
enum { NODE_ID = 1, NODE_NAME = 2, NODE_TYPE = 3, NODE_CTRL_DEPS = 4, NODE_DATA_DEPS = 5, NODE_START_US = 6, NODE_DURATION_US = 7,
       NODE_INPUTS = 8, NODE_ATTRIBUTE = 10 };
/* NodeType */
enum { TYPE_METADATA = 1, TYPE_MEMORY_LOAD = 2, TYPE_MEMORY_STORE = 3, TYPE_COMPUTE = 4, TYPE_SEND = 5, TYPE_RECEIVE = 6,
       TYPE_COLLECTIVE = 7, TYPE_COUNT = 11 };
/* IOInfo */
enum { IO_VALUES = 1, IO_SHAPES = 2, IO_TYPES = 3 };
/* AttributeProto */
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_DOUBLE = 3, ATTRIBUTE_INT64 = 9, ATTRIBUTE_UINT32 = 11, ATTRIBUTE_UINT64 = 13, ATTRIBUTE_BOOL = 27,
       ATTRIBUTE_TEXT = 29 };

#define CHAKRA_SCOPE_USER 7 /* at::RecordScope::USER_SCOPE: an annotation */

/* CollectiveCommType, by the names that torch uses */
static const char *const chakra_collectives[] = {"allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "all_to_all",
                                                 "reduce_scatter", "reduce_scatter_block", "barrier"};
#define CHAKRA_COLLECTIVE_COUNT (sizeof(chakra_collectives) / sizeof(chakra_collectives[0]))

#endif
