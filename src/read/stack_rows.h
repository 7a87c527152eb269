/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of sampled profiles as Chrome JSON (transcode.h). The frames that two consecutive samples of a thread have in common,
 * from the outermost on, continue between them:
 *
 *     sample at 0 ns   main, step, mm          main ├──────────────┤
 *     sample at 10 ns  main, step, add    ─▶   step ├──────────────┤
 *     end at 20 ns                             mm   ├───────┤ add ─┤
 *
 * Such a trace shows how much time functions and lines took, and what called them. It does not show how often a function was
 * called, when a call began, or what happened between samples; if samples have no times, not even their order. Notes report this.
 */
#ifndef OPS_READ_STACK_ROWS_H
#define OPS_READ_STACK_ROWS_H

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "read/transcode.h"

struct ops_stack_thread {
	int64_t pid;
	int64_t tid;
	OPS_ARRAY(uint32_t) open; /* frames, outermost first */
};

/* Zero-initialised except for `in`. */
struct ops_stack_rows {
	struct ops_reading *in;
	struct ops_intern frames; /* by number: text of the frame, see frame_text.h */
	struct ops_buffer scratch;
	bool has_rows;
	bool failed; /* out of memory */
};

/* Returns the number of a frame; OPS_INTERN_NONE, with `failed` set, if out of memory. */
uint32_t ops_stack_frame(struct ops_stack_rows *rows, struct ops_string file, uint32_t line, struct ops_string name);
/* Like ops_stack_frame, for a text: "name (file.py:12)" of py-spy, "file.py(12): name" of Opstrobe, or only a name. */
uint32_t ops_stack_frame_text(struct ops_stack_rows *rows, struct ops_string text);

/* Begin a call inside the open ones, and end the innermost. */
void ops_stack_open(struct ops_stack_rows *rows, struct ops_stack_thread *thread, uint32_t frame, int64_t ns, struct ops_buffer *out);
void ops_stack_close(struct ops_stack_rows *rows, struct ops_stack_thread *thread, int64_t ns, struct ops_buffer *out);
/* For stacks with the innermost frame first. */
void ops_stack_reverse(uint32_t *frames, size_t count);
/* Sets the stack of the thread from now on, outermost frame first. */
void ops_stack_set(struct ops_stack_rows *rows, struct ops_stack_thread *thread, const uint32_t *frames, size_t count, int64_t ns,
                   struct ops_buffer *out);

/* Reports, at a byte of the file, that the trace consists of samples, that these have no order, or that their weights are not
 * times. */
void ops_stack_report(struct ops_stack_rows *rows, uint64_t byte, bool has_order, bool is_time);
/* Returns the first line of a file that is neither empty nor a comment, without its end; its bytes are NULL if there is none. */
struct ops_string ops_stack_first_line(const char *head, size_t size);

/* Writes the names of a thread's pid and tid. An empty name is not written. */
void ops_stack_put_name(struct ops_stack_rows *rows, const struct ops_stack_thread *thread, const char *what, struct ops_string name,
                        struct ops_buffer *out);
/* Writes the end of the document, after the stacks of all threads are empty. */
void ops_stack_put_end(struct ops_stack_rows *rows, struct ops_buffer *out);
void ops_stack_rows_release(struct ops_stack_rows *rows);

#endif
