/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a trace to a file, in the form that its name says.
 */
#ifndef OPS_CLI_WRITE_H
#define OPS_CLI_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/write.h>

/* The lines on forms for a usage text. */
#define CLI_FORMS                                                                                  \
	"  .json .json.gz                 Chrome JSON, which most viewers read\n"                      \
	"  .pftrace .pftrace.gz           Perfetto's native format\n"                                        \
	"  .speedscope.json .svg .folded  stacks for speedscope, as a flame graph, and for\n"               \
	"                                 flamegraph.pl (also .collapsed and .txt)\n"                   \
	"  .pb.gz .pb                     stacks as a profile of pprof\n"

/* False, after saying why. Ctrl-C leaves no half of a file. `stacks` may be NULL. */
bool cli_write(const char *command, struct ops_trace *trace, const char *path, const struct ops_flame_options *stacks);
/* The stacks of the trace and of `stacks->base`, per step; false, after saying why. Says what was written. */
bool cli_write_flame_diff(const char *command, const struct ops_trace *trace, const char *path,
                          const struct ops_flame_options *stacks);
/* Whether that can write a file of this name that is none of the `count` inputs; prints why, if not. */
bool cli_can_write_flame_diff(const char *command, const char *path, const char *const *inputs, size_t count);
/* Whether a name has a suffix of a known format and is none of the `count` inputs; prints why, if not. */
bool cli_can_write(const char *command, const char *path, const char *const *inputs, size_t count);
/* Prints to standard error what a file that was just written holds of the `total` events. */
void cli_report_written(const char *path, size_t events, size_t total);

#endif
