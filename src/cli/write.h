/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a trace to a file, in the format that the file name selects.
 */
#ifndef OPS_CLI_WRITE_H
#define OPS_CLI_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/write.h>

/* The lines about formats for a usage text. */
#define CLI_FORMS                                                                                  \
	"  .json .json.gz                 Chrome JSON, which most viewers read\n"                      \
	"  .pftrace .pftrace.gz           Perfetto's native format\n"                                        \
	"  .firefox.json .firefox.json.gz a profile for profiler.firefox.com\n"                              \
	"  .et                            an execution trace of MLCommons Chakra\n"                      \
	"  .speedscope.json .svg .folded  stacks for speedscope, as a flame graph, and for\n"               \
	"                                 flamegraph.pl (also .collapsed and .txt)\n"                   \
	"  .pb.gz .pb                     stacks as a profile of pprof\n"

/* Returns false after printing an error. Ctrl-C leaves no partial file. `stacks` may be NULL. */
bool cli_write(const char *command, struct ops_trace *trace, const char *path, const struct ops_flame_options *stacks);
/* The same without stacks, and with the quickest level of gzip. */
bool cli_write_quickly(const char *command, struct ops_trace *trace, const char *path);
/* Writes the stacks of the trace and of `stacks->base`, per step, and prints what was written. Returns false after printing an
 * error. */
bool cli_write_flame_diff(const char *command, const struct ops_trace *trace, const char *path,
                          const struct ops_flame_options *stacks);
/* Returns whether the stacks can be written to a file of this name, which must not be one of the `count` inputs. Prints the
 * reason if not. */
bool cli_can_write_flame_diff(const char *command, const char *path, const char *const *inputs, size_t count);
/* Returns whether a name has a suffix of a known format and is not one of the `count` inputs. Prints the reason if not. */
bool cli_can_write(const char *command, const char *path, const char *const *inputs, size_t count);
/* Returns whether a file is not one of the `count` inputs. Prints the reason if not. */
bool cli_can_replace(const char *command, const char *path, const char *const *inputs, size_t count);
/* Prints to standard error how many of the `total` events a new file contains. */
void cli_report_written(const char *path, size_t events, size_t total);

#endif
