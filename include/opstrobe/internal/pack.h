/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/pack.h: functions that merging and the Python extension need beyond opstrobe/merge.h: alignment of the clocks
 * of ranks, and serialization of a trace for another process.
 */
#ifndef OPSTROBE_INTERNAL_PACK_H
#define OPSTROBE_INTERNAL_PACK_H

#include <opstrobe/merge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the clock offsets of ranks from the ends of collective operations, which all ranks reach together: the median of the
 * differences. Ranks on the host of the first have its clock. `ret_shifts` has `count` elements. OPS_NO_MEMORY. */
enum ops_code ops_trace_align(const struct ops_trace *const *traces, size_t count, struct ops_clock_shift *ret_shifts,
                              struct ops_error *error);

/* Serializes the trace, about 45 bytes an event, for another process on the same machine type with the same version of the
 * library. Not a file format. `*ret_bytes` is freed with ops_free. */
enum ops_code ops_trace_pack(const struct ops_trace *trace, char **ret_bytes, size_t *ret_size, struct ops_error *error);

/* Deserializes a trace. OPS_CORRUPT, with the byte, if ops_trace_pack did not produce the bytes. They need not be aligned. The
 * caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_unpack(const char *bytes, size_t size, struct ops_trace **ret_trace, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
