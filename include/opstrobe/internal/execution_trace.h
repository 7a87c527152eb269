/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/execution_trace.h: execution traces in the Chakra schema: every operator as a node of a graph, with its
 * inputs and results. A collector in the profiled process adds nodes in a compact form; the JSON is rendered when the trace is
 * written.
 *
 *     struct ops_execution_trace *et = ops_execution_trace_new();
 *     ops_execution_trace_add(et, &node);                 // from any thread
 *     code = ops_execution_trace_write(et, "trace.json", &error);
 *     ops_execution_trace_free(et);
 *
 * Values are a sequence of items, each a head {tag, dtype, n} and its data, padded to 8 bytes:
 *
 *     tag     n              data                                        "types"
 *     NONE    0              –                                           "None"
 *     INT     0              int64                                       "Int"
 *     DOUBLE  0              double                                      "Double"
 *     BOOL    0 or 1         –                                           "Bool"
 *     STRING  bytes          the bytes                                   "String"
 *     DEVICE  bytes          the bytes ("cpu", "cuda:0")                 "Device"
 *     OTHER   bytes          its type ("Generator"), shown in brackets    the same
 *     TENSOR  dimensions     struct ops_node_tensor, int64 sizes[n], int64 strides[n]   "Tensor(float)"
 *     LIST    items          n items                                     "GenericList[Int,Int]"
 *     TUPLE   items          n items                                     "Tuple[Int,Int]"
 *
 * The layout is part of OPS_TORCH_BRIDGE_ABI, because the torch bridge is built at another time than the library.
 */
#ifndef OPSTROBE_EXECUTION_TRACE_H
#define OPSTROBE_EXECUTION_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ops_node_tag {
	OPS_NODE_NONE,
	OPS_NODE_INT,
	OPS_NODE_DOUBLE,
	OPS_NODE_BOOL,
	OPS_NODE_STRING,
	OPS_NODE_DEVICE,
	OPS_NODE_OTHER,
	OPS_NODE_TENSOR,
	OPS_NODE_LIST,
	OPS_NODE_TUPLE,
	OPS_NODE_TAG_COUNT
};

struct ops_node_head {
	uint8_t tag;   /* enum ops_node_tag */
	uint8_t dtype; /* c10::ScalarType of a tensor */
	uint16_t unused;
	uint32_t n;
};

/* A tensor without its sizes and strides. Ids identify objects in this trace. */
struct ops_node_tensor {
	uint64_t id;
	uint64_t storage_id; /* 0: none */
	int64_t offset;      /* of the first element in the storage, in elements */
	int64_t elements;
	int64_t element_bytes;
	char device[24]; /* NUL-terminated */
};

struct ops_node_text {
	const char *bytes;
	size_t size;
};

/* One node. Texts and values are borrowed during the call. */
struct ops_node {
	uint64_t id;
	uint64_t parent;    /* the enclosing node: "ctrl_deps" */
	uint64_t record_id; /* id of torch's RecordFunction, "Record function id" in the profile; 0: none */
	uint64_t forward_parent; /* for a backward node, the node in which its forward thread was; else 0 */
	int64_t sequence_nr;     /* -1: none */
	uint64_t thread;         /* torch's logical thread number */
	uint64_t forward_thread; /* 0: none */
	uint64_t scope;          /* at::RecordScope */
	struct ops_node_text name;
	struct ops_node_text schema; /* empty if it is not an operator */
	struct ops_node_text kernel_backend;
	struct ops_node_text kernel_file;
	struct ops_node_text tensor_range; /* JSON: smallest and largest element of integer input tensors; may be "" */
	struct ops_node_text inputs; /* values */
	struct ops_node_text outputs;
};

struct ops_execution_trace;

/* Records the current time. Returns NULL if out of memory. */
struct ops_execution_trace *ops_execution_trace_new(void);
/* NULL is allowed. */
void ops_execution_trace_free(struct ops_execution_trace *trace);

/* Appends a copy of a node. If out of memory, the node counts as lost. Any thread. */
void ops_execution_trace_add(struct ops_execution_trace *trace, const struct ops_node *node);
/* Returns the number of nodes in the trace and the number of lost nodes. */
void ops_execution_trace_counts(struct ops_execution_trace *trace, uint64_t *ret_nodes, uint64_t *ret_lost);

/* Writes the complete file, or nothing on failure; compressed if the path ends in ".gz". May be called repeatedly. OPS_IO with
 * errno on any file system error. */
enum ops_code ops_execution_trace_write(struct ops_execution_trace *trace, const char *path, struct ops_error *error);

#ifdef __cplusplus
}
static_assert(sizeof(struct ops_node_head) == 8 && sizeof(struct ops_node_tensor) == 64, "value layout");
#else
_Static_assert(sizeof(struct ops_node_head) == 8 && sizeof(struct ops_node_tensor) == 64, "value layout");
#endif
#endif
