/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/merge.h: traces put together, picked apart, and carried to another process.
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

/* What a new trace takes from one trace: all of it, or only the function events that `refs` name (see
 * ops_function_events in opstrobe/analyze.h), then with what the next two say. */
struct ops_trace_part {
	const struct ops_trace *trace;
	const uint32_t *refs;
	size_t ref_count;
	bool whole;
	bool with_counters;
	bool with_roles; /* what storages are for */
	/* For ranks of a run side by side, which have their own processes though these share numbers; NULL: a process is one
	 * in all parts. "rank 3" stands before the names of its processes, which get numbers that no other part has, and so do
	 * correlations. */
	const char *rank_name;
	int64_t shift_ns; /* added to all its times; for whole parts */
	/* The spans of sessions (OPS_EVENT_TRACE) are clipped to this interval; an empty one clips nothing. */
	int64_t clip_from_ns, clip_to_ns;
};

/* Makes one trace of `count` parts, each trace named once; of none, an empty one. Tracks of the same thread become one, unless
 * the sessions overlap in time; a thread number that two tracks have is given anew to the second. Session start and stop
 * are the earliest and the latest, losses add up, of a metadata key the last part's value stays. Parents, self times and
 * links are computed among the events that are taken. Event ids stay only when there is one part.
 *
 * `ret_refs`, if not NULL, has room for the refs of all parts together and is filled with where they are in the new
 * trace. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_merge(const struct ops_trace_part *parts, size_t count, uint32_t *ret_refs,
                              struct ops_trace **ret_trace, struct ops_error *error);

/* What ops_trace_select leaves out: bit 1u << kind for events of a kind, and the allocator's reports. */
#define OPS_SELECT_MEMORY (1u << 31)

/* Makes a trace without what `left_out` names. Parents, self times and links are as if it had not been recorded; event ids
 * and counters stay. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_select(const struct ops_trace *trace, uint32_t left_out, struct ops_trace **ret_trace,
                               struct ops_error *error);

/* What ops_trace_cut keeps: of events and allocations that are not over before `from_ns` and begin before `to_ns`, those of
 * the threads with these numbers (`tid`), 0: of all. */
struct ops_trace_cut {
	int64_t from_ns;
	int64_t to_ns;
	const int64_t *tids;
	size_t tid_count;
};

/* Makes a trace of a stretch of a trace. Events are whole, but for the span of the session, which is clipped to them; what runs on a device goes with the call that started it. Counters
 * are left out. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_cut(const struct ops_trace *trace, const struct ops_trace_cut *cut, struct ops_trace **ret_trace,
                            struct ops_error *error);
/* The stretch of the steps `first` to `last` ("ProfilerStep#3"); false when there is none of them. */
bool ops_trace_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns, int64_t *ret_to_ns);

/* How far the clock of a rank is off. */
struct ops_clock_shift {
	int64_t shift_ns;   /* to be added to its times, so that they are those of the first */
	size_t collectives; /* how many operations that is known from; 0: not known, or clocks are one */
};
/* All ranks of a run side by side, as whole parts with these names, and set to the clock of the first if `align`. Each
 * comes from the source twice, and two are held at most. `ret_shifts` has room for `count`. OPS_NO_MEMORY, or as the source
 * fails. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_merge_ranks(const struct ops_trace_source *source, const char *const *names, size_t count, bool align,
                                    struct ops_clock_shift *ret_shifts, struct ops_trace **ret_trace,
                                    struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
