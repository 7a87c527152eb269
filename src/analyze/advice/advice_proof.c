/* SPDX-License-Identifier: Apache-2.0
 *
 * The gain that `opstrobe prove` measured with the fix of a finding: the metadata "proof" of a trace, an object by
 * rule. Any program may have written it.
 */
#include <ctype.h>
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/json_walk.h"
#include "base/text.h"

static const char *const kinds[] = {"equal", "close", "changed", "unknown"};

static struct ops_string unquoted(struct ops_string value)
{
	return value.size >= 2 && value.bytes[0] == '"' ? (struct ops_string){value.bytes + 1, value.size - 2}
	                                                : (struct ops_string){"", 0};
}

static bool is_fix_name(struct ops_string name)
{
	size_t used = 0;

	while (used < name.size && (isalnum((unsigned char)name.bytes[used]) || name.bytes[used] == '-'))
		used++;
	return name.size && used == name.size;
}

struct advice_proof advice_find_proof(const struct advice *advice, const char *rule)
{
	struct advice_proof proof = {.gain_ms = NAN, .gain_pct = NAN, .lower_pct = NAN, .upper_pct = NAN};
	struct ops_string all, found, key, value;
	struct ops_json_walk walk;

	if (!ops_trace_find_metadata(advice->trace, "proof", &all) || all.bytes[0] != '{' ||
	    !ops_json_find_member(all, rule, &found) || !found.size || found.bytes[0] != '{')
		return proof;
	walk = ops_json_walk(found.bytes, found.size);
	while (ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "gain_ms_per_step"))
			ops_json_parse_number(value, &proof.gain_ms);
		else if (ops_string_is(key, "gain_percent"))
			ops_json_parse_number(value, &proof.gain_pct);
		else if (ops_string_is(key, "gain_lower_percent"))
			ops_json_parse_number(value, &proof.lower_pct);
		else if (ops_string_is(key, "gain_upper_percent"))
			ops_json_parse_number(value, &proof.upper_pct);
		else if (ops_string_is(key, "fix"))
			proof.fix = unquoted(value);
		for (size_t i = 0; ops_string_is(key, "results") && i < sizeof(kinds) / sizeof(*kinds); i++)
			if (ops_string_is(unquoted(value), kinds[i]))
				proof.results = kinds[i];
	}
	proof.is_known = is_fix_name(proof.fix) && proof.results && isfinite(proof.gain_ms) && isfinite(proof.gain_pct) &&
	                 isfinite(proof.lower_pct) && isfinite(proof.upper_pct);
	return proof;
}
