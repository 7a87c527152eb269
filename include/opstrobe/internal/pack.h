/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/pack.h: what merging and the Python extension need beyond opstrobe/merge.h: the clocks of ranks, and a
 * trace as bytes for another process.
 */
#ifndef OPSTROBE_INTERNAL_PACK_H
#define OPSTROBE_INTERNAL_PACK_H

#include <opstrobe/merge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By the ends of collective operations, which all ranks reach together: the median of how far they are apart. Ranks on the
 * host of the first have its clock. `ret_shifts` has room for `count`. OPS_NO_MEMORY. */
enum ops_code ops_trace_align(const struct ops_trace *const *traces, size_t count, struct ops_clock_shift *ret_shifts,
                              struct ops_error *error);

/* The trace as one run of bytes, about 45 bytes an event, for another process of the same machine type and the same
 * version of the library: no file format. `*ret_bytes` is freed with ops_free. */
enum ops_code ops_trace_pack(const struct ops_trace *trace, char **ret_bytes, size_t *ret_size, struct ops_error *error);

/* The trace again; OPS_CORRUPT, naming the byte, for what ops_trace_pack did not make. Any alignment. The caller owns one
 * reference to `*ret_trace`. */
enum ops_code ops_trace_unpack(const char *bytes, size_t size, struct ops_trace **ret_trace, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
