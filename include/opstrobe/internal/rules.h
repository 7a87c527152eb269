/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/rules.h: whose definitions apply. A reference implementation's rules reproduce its figures, for
 * comparisons with it (docs/reference/definitions.md). src/derive/policy.c says what differs.
 */
#ifndef OPSTROBE_INTERNAL_RULES_H
#define OPSTROBE_INTERNAL_RULES_H

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ops_rules {
	OPS_RULES_OPSTROBE,
	OPS_RULES_TENSORBOARD, /* those of PyTorch's legacy TensorBoard plugin */
	OPS_RULES_HTA,         /* those of Holistic Trace Analysis */
};

/* The names of the rules, in the order of the enum, followed by NULL. */
extern const char *const ops_rules_names[];

/* Parses a name. NULL selects Opstrobe's rules. Fails with OPS_INVALID. */
enum ops_code ops_rules_parse(const char *name, enum ops_rules *ret_rules, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
