/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of sampled profiles as Chrome JSON (transcode.h). What two samples of a thread have in common, from the outermost frame on, goes
 * on between them:
 *
 *     sample at 0 ns   main, step, mm          main ├──────────────┤
 *     sample at 10 ns  main, step, add    ─▶   step ├──────────────┤
 *     end at 20 ns                             mm   ├───────┤ add ─┤
 *
 * Such a trace answers which functions and lines took how much of the time, and which called them. It does not say how often a function
 * was called, when a call began, or what happened between samples; where samples have no times, not even in which order. Notes say so.
 */
#ifndef OPS_READ_STACK_ROWS_H
#define OPS_READ_STACK_ROWS_H

#include "base/array.h"
#include "base/intern.h"
#include "read/transcode.h"

struct ops_stack_thread {
	int64_t pid;
	int64_t tid;
	OPS_ARRAY(uint32_t) open; /* frames, the outermost first */
};

/* Zero-initialised but for `in`. */
struct ops_stack_rows {
	struct ops_reading *in;
	struct ops_intern frames; /* by number: their text, see frame_text.h */
	struct ops_buffer scratch;
	bool has_rows;
	bool failed; /* memory is out */
};

/* The number of a frame; OPS_INTERN_NONE when memory is out, which `failed` says. */
uint32_t ops_stack_frame(struct ops_stack_rows *rows, struct ops_string file, uint32_t line, struct ops_string name);
/* Likewise, of text that is "name (file.py:12)" of py-spy, "file.py(12): name" of Opstrobe, or only a name. */
uint32_t ops_stack_frame_text(struct ops_stack_rows *rows, struct ops_string text);

/* A call begins, inside those that are open, and the innermost ends. */
void ops_stack_open(struct ops_stack_rows *rows, struct ops_stack_thread *thread, uint32_t frame, int64_t ns, struct ops_buffer *out);
void ops_stack_close(struct ops_stack_rows *rows, struct ops_stack_thread *thread, int64_t ns, struct ops_buffer *out);
/* For stacks whose innermost frame comes first. */
void ops_stack_reverse(uint32_t *frames, size_t count);
/* From now on the thread has this stack, the outermost frame first. */
void ops_stack_set(struct ops_stack_rows *rows, struct ops_stack_thread *thread, const uint32_t *frames, size_t count, int64_t ns,
                   struct ops_buffer *out);

/* Names of what a thread's pid and tid are. An empty name writes nothing. */
void ops_stack_put_name(struct ops_stack_rows *rows, const struct ops_stack_thread *thread, const char *what, struct ops_string name,
                        struct ops_buffer *out);
/* The end of the document, after all threads have the empty stack. */
void ops_stack_put_end(struct ops_stack_rows *rows, struct ops_buffer *out);
void ops_stack_rows_release(struct ops_stack_rows *rows);

#endif
