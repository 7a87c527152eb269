/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --steps of commands that list what a trace contains. Without it they list the whole trace, and say so if the steps are
 * only a part of it, since the pages of the viewer open on the steps.
 */
#ifndef OPS_CLI_STEPS_H
#define OPS_CLI_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/query.h>
#include <opstrobe/trace.h>

#define CLI_STEPS_OPTION                                                                                                               \
	"  --steps FIRST[:LAST]             only these steps, by number; default: the whole\n"                                       \
	"                                   trace\n"

struct cli_steps {
	bool is_range;        /* not the whole trace */
	uint64_t first, last; /* of a range */
	bool is_whole;        /* the query itself selects the steps of the whole trace */
	bool is_text;         /* the output is text or Markdown, which says what it covers */
	bool by_name;         /* says of which trace */
	char *head;           /* what it covers, to be printed before the list; NULL: nothing, or out of memory */
};

/* Parses "3" or "3:5". Returns false after printing an error. */
bool cli_steps_range(const char *command, const char *text, uint64_t *ret_first, uint64_t *ret_last);
/* Parses the value of the option, or NULL. Returns false after printing an error. */
bool cli_steps_parse(const char *command, const char *text, enum ops_format format, struct cli_steps *ret_steps);
/* Replaces a trace by the part that is listed, and adds to `head` what text covers. The reference moves to the part; on failure, the trace
 * is kept. OPS_INVALID if the trace does not have the steps. */
enum ops_code cli_steps_cut(struct cli_steps *steps, const char *path, const struct ops_trace **trace, struct ops_error *error);
/* Prints the head before a list in text, unless that failed, and frees it. */
void cli_steps_put_head(struct cli_steps *steps, enum ops_code code);

#endif
