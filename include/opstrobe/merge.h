/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/merge.h: makes new traces from parts of other traces: merges several, leaves out kinds of events, or selects a range
 * of time. The sources do not change.
 */
#ifndef OPSTROBE_MERGE_H
#define OPSTROBE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What ops_trace_merge copies from one trace: all of it (`whole`), or the function events `refs`: rows, or memory records with
 * OPS_MEMORY_REF. */
struct ops_trace_part {
	const struct ops_trace *trace;
	const uint32_t *refs;
	size_t ref_count;
	bool whole;
	bool with_counters; /* with `refs`: also the counters */
	bool with_roles;    /* with `refs`: also the roles of storages */
	/* Prefix for the names of the processes, for ranks side by side, whose processes may have equal ids. Processes and
	 * correlations then get new ids. NULL: processes with equal ids are one process. */
	const char *rank_name;
	/* Name of a process that the process of the first part started. With it, metadata, memory records and storages are not copied,
	 * since those of two processes have nothing in common but their addresses. NULL: not such a process. */
	const char *process_name;
	int64_t shift_ns; /* with `whole`: added to all times */
	int64_t clip_from_ns, clip_to_ns; /* clips the spans of sessions (OPS_EVENT_TRACE) and Python functions; an empty
	                                   * interval: no clipping */
};

/* Makes one trace from `count` parts of different traces. Without parts the trace is empty. Tracks of the same thread become one,
 * unless their sessions overlap in time. The session starts with the first and stops with the last. Numbers of lost records are
 * added. If parts have metadata with the same key, the last part wins. Parents, self times and links are computed among the
 * copied events. Event ids are kept if there is only one part.
 *
 * `ret_refs`, which may be NULL, receives the ref in the new trace of each ref, for all parts in order. The caller owns one
 * reference to `*ret_trace`. */
enum ops_code ops_trace_merge(const struct ops_trace_part *parts, size_t count, uint32_t *ret_refs,
                              struct ops_trace **ret_trace, struct ops_error *error);

/* What ops_trace_select leaves out: bit 1u << kind for the events of a kind, and a bit for the allocator's reports. */
#define OPS_SELECT_MEMORY (1u << 31)

/* Makes a trace without the kinds in `left_out`. Parents, self times and links are as if they had not been recorded. Event ids
 * and counters are kept. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_select(const struct ops_trace *trace, uint32_t left_out, struct ops_trace **ret_trace,
                               struct ops_error *error);

/* A range of time on the threads `tids` (none: all threads): events and allocations that end at or after `from_ns` and begin
 * before `to_ns`. */
struct ops_trace_cut {
	int64_t from_ns;
	int64_t to_ns;
	const int64_t *tids;
	size_t tid_count;
};

/* Makes a trace of a range of time. Events that overlap its ends are complete, except for the span of the session and for Python
 * functions that contain the complete range, which are clipped (OPS_EVENT_CUT): otherwise what they did before and after would be
 * self time of the range. If the range has the start or the end of the trace, they are clipped at its other end only. Device work is
 * kept with the call that launched it. Counters are omitted. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_cut(const struct ops_trace *trace, const struct ops_trace_cut *cut, struct ops_trace **ret_trace,
                            struct ops_error *error);
/* Computes the range of the steps `first` to `last` ("ProfilerStep#3"). Returns false if the trace has none of them. */
bool ops_trace_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns, int64_t *ret_to_ns);

/* The clock offset of a rank. */
struct ops_clock_shift {
	int64_t shift_ns;   /* added to its times to get those of the first rank */
	size_t collectives; /* number of collectives that the offset was computed from; 0: the offset is unknown, or both have the
	                     * same clock */
};
/* Merges the ranks of a run side by side, with these names. With `align`, aligns their clocks to that of the first rank by the
 * ends of collective operations, which all ranks reach together. Takes each trace from the source twice and holds at most two at
 * a time. `ret_shifts` has `count` elements. The caller owns one reference to `*ret_trace`. OPS_NO_MEMORY, or the error of the
 * source. */
enum ops_code ops_trace_merge_ranks(const struct ops_trace_source *source, const char *const *names, size_t count, bool align,
                                    struct ops_clock_shift *ret_shifts, struct ops_trace **ret_trace,
                                    struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
