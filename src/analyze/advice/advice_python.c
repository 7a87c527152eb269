/* SPDX-License-Identifier: Apache-2.0
 *
 * What functions of the program spend their time outside of operators on: calls of a library or of C, and searches.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/program.h"

/* Minimum share of the time of a call, or of a search, to be mentioned. */
#define PART_MIN 0.4

/* A test with `in` of a set or a dictionary takes a tenth of a microsecond. Time of a function for each of its calls and of the calls
 * that it makes; more is a search through many items. */
#define SEARCH_NS_MIN 2000

/* What to do about calls that often take most of the time, by the end of the name. */
struct known_call {
	const char *name, *advised;
};

static const struct known_call known_calls[] = {
	{"NpzFile.__getitem__", "An .npz archive reads and decompresses an array each time it is accessed: keep the array instead of the archive. "},
	{"copy.deepcopy", "A deep copy walks all objects one by one: copy only what changes, such as lists by slicing, or take changes back afterwards. "},
	{"torch.tensor", "torch.tensor() converts a list or tuple element by element, also one of arrays: make one array of it with np.stack or np.array and pass "
			"that to torch.from_numpy, or keep tensors and use torch.stack. "},
	{"list.index", "It searches the list from its beginning: keep a dictionary of positions. "},
	{"list.remove", "It searches the list from its beginning: keep a set or a dictionary. "},
	{"list.count", "It goes through the list: count once, with collections.Counter. "},
	{"list.insert", "It moves all items behind: use collections.deque, or append and reverse once. "},
	{"list.pop", "At the beginning of the list it moves all items behind: use collections.deque. "},
	{"list.sort", "It goes through all items again: insert new ones with bisect.insort, or keep them in heapq. "},
	{"sorted", "It sorts all items again: insert new ones with bisect.insort, keep them in heapq, or sort tensors. "},
	{"Random.sample", "From a deque it takes each item by going there from an end: draw from a list, such as a ring buffer, or keep the items in arrays and draw their indices. "},
	{"Random.choices", "It adds up the weights again in each call: pass cum_weights, or draw many items with one call. "},
	{"vectorize.__call__", "It calls a Python function for each element: write the function with operations on arrays. "},
	{"loadtxt", "Parse each text once, before the loop, and keep the array. "},
	{"read_csv", "Parse each text once, before the loop, and keep the table. "},
	{"json.loads", "Parse each text once, before the loop. "},
	{"pickle.loads", "Keep the objects, or store tensors in one array. "},
	{"_iLocIndexer.__getitem__", "pandas takes microseconds for each row: convert the columns to arrays once, before the loop. "},
	{"_LocIndexer.__getitem__", "pandas takes microseconds for each row: convert the columns to arrays once, before the loop. "},
	{"DataFrame.__getitem__", "pandas takes microseconds for each access: convert the columns to arrays once, before the loop. "},
	{"Series.__getitem__", "pandas takes microseconds for each access: convert the columns to arrays once, before the loop. "},
	{"DataFrame.iterrows", "pandas makes an object for each row: convert the columns to arrays once, before the loop. "},
	{"_strptime_datetime", "Parse each text once, before the loop. "},
	{"Optimizer.profile_hook_step.<locals>.wrapper", "That is the optimizer, which prepares lists of tensors in Python: pass fused=True (SGD, Adam, AdamW, Adagrad). "},
};

bool advice_find_search_lines(struct advice *advice)
{
	size_t strings = ops_trace_string_count(advice->trace);
	bool done = ops_source_read(&advice->source, advice->trace);

	advice->search_site = ops_alloc_none(strings + 1);
	if (!done || !advice->search_site)
		return false;
	for (size_t i = 0; done && advice->source.list.count && i < advice->named.count; i++) {
		uint32_t row = advice->named.items[i], name = advice->events->name[row], line;
		struct ops_function_text function;

		if (advice->own_site[name] == OPS_NONE || !ops_event_function(advice->trace, row, &function))
			continue;
		line = ops_source_search(&advice->source, function.file, function.line);
		done = !line || advice_add_site(advice, row, line, &advice->search_site[name]);
	}
	return done;
}

static bool is_in_zone(const struct advice *advice, uint32_t row, bool in_loader)
{
	return advice_counts(advice, row) && !(advice->zone[row] & ADVICE_WAITING) && ((advice->zone[row] & ADVICE_IN_LOADER) != 0) == in_loader;
}

/* Time and calls by name. */
struct python_tally {
	int64_t *ns;
	uint64_t *calls;
	uint32_t most; /* a row of the name with most time; OPS_NONE: none */
};

static bool python_tally_init(struct python_tally *tally, const struct advice *advice)
{
	size_t strings = ops_trace_string_count(advice->trace) + 1;

	*tally = (struct python_tally){ops_alloc_zeroed(strings, sizeof(*tally->ns)), ops_alloc_zeroed(strings, sizeof(*tally->calls)), OPS_NONE};
	return tally->ns && tally->calls;
}

static void python_tally_release(struct python_tally *tally)
{
	ops_free(tally->ns);
	ops_free(tally->calls);
}

static void python_tally_add(struct python_tally *tally, const struct advice *advice, uint32_t row, int64_t ns)
{
	uint32_t name = advice->events->name[row];

	tally->calls[name]++;
	tally->ns[name] = ops_sum(tally->ns[name], ns);
	if (tally->most == OPS_NONE || tally->ns[name] > tally->ns[advice->events->name[tally->most]])
		tally->most = row;
}

/* Returns the name with most time, at a site by name, or where it is called if `sites` is NULL. */
static struct advice_python_part python_tally_most(const struct python_tally *tally, const struct advice *advice, const uint32_t *sites)
{
	uint32_t row = tally->most, name;

	if (row == OPS_NONE)
		return (struct advice_python_part){.row = OPS_NONE, .site = OPS_NONE};
	name = advice->events->name[row];
	return (struct advice_python_part){row, sites ? sites[name] : advice->site[row], tally->ns[name], tally->calls[name]};
}

/* Adds a call of a function of a library, or in C, by a function of the program. */
static void add_library_call(struct python_tally *called, const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];
	int64_t ns;

	if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || parent == OPS_NONE || advice_own_site(advice, parent) == OPS_NONE ||
	    advice_own_site(advice, row) != OPS_NONE || advice->views->parts[row] == VIEW_LOADER)
		return;
	ns = ops_difference(advice_host_ns(advice, row), advice->operator_ns[row]);
	python_tally_add(called, advice, row, ns > 0 ? ns : 0);
}

/* Adds a call of a function that searches, with its self time, or a call that one makes. */
static void add_search(struct python_tally *search, const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	if (parent != OPS_NONE && advice->search_site[advice->events->name[parent]] != OPS_NONE)
		search->calls[advice->events->name[parent]]++;
	if (advice->search_site[advice->events->name[row]] != OPS_NONE && advice_own_site(advice, row) != OPS_NONE)
		python_tally_add(search, advice, row, advice_host_self_ns(advice, row));
}

bool advice_find_python_parts(const struct advice *advice, bool in_loader, struct advice_python_parts *ret_parts)
{
	struct python_tally called = {.most = OPS_NONE}, search = {.most = OPS_NONE};
	bool done = python_tally_init(&called, advice) && python_tally_init(&search, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		if (!is_in_zone(advice, row, in_loader))
			continue;
		add_library_call(&called, advice, row);
		add_search(&search, advice, row);
	}
	if (done) {
		ret_parts->called = python_tally_most(&called, advice, NULL);
		ret_parts->search = python_tally_most(&search, advice, advice->search_site);
		if ((double)ret_parts->search.ns < SEARCH_NS_MIN * (double)ret_parts->search.calls)
			ret_parts->search.row = OPS_NONE;
	}
	python_tally_release(&called);
	python_tally_release(&search);
	return done;
}

/* Formats "list.index", "copy.deepcopy" or "NpzFile.__getitem__". */
static void format_callee(const struct advice *advice, uint32_t row, char *text, size_t size)
{
	struct ops_string name = advice_name(advice, row), file = {"", 0};
	struct ops_function_text function;
	const char *of = memmem(name.bytes, name.size, " of ", 4);
	static const char method[] = "<built-in method ", c_function[] = "<built-in function ";
	/* Functions of torch are methods of a class, which has no better name. Of these, no operator shows what they do. */
	static const char *const of_torch[] = {"<built-in method tensor of type>", "<built-in method as_tensor of type>", "<built-in method asarray of type>", NULL};

	if (ops_string_starts(name, method) && of) {
		const char *begin = name.bytes + strlen(method), *end = name.bytes + name.size - 1;

		if (ops_string_starts_any(name, of_torch))
			snprintf(text, size, "torch.%.*s", (int)(of - begin), begin);
		else
			snprintf(text, size, "%.*s.%.*s", (int)(end - of - 4), of + 4, (int)(of - begin), begin);
		return;
	}
	if (ops_string_starts(name, c_function)) {
		snprintf(text, size, "%.*s", (int)(name.size - strlen(c_function) - 1), name.bytes + strlen(c_function));
		return;
	}
	if (ops_event_function(advice->trace, row, &function)) {
		name = function.name;
		file = ops_file_package(function.file).size ? file : function.file;
	}
	if (file.size > 3 && ops_string_ends(file, ".py")) {
		const char *stem = memrchr(file.bytes, '/', file.size);

		stem = stem ? stem + 1 : file.bytes;
		snprintf(text, size, "%.*s.%.*s", (int)(file.bytes + file.size - 3 - stem), stem, (int)name.size, name.bytes);
		return;
	}
	snprintf(text, size, "%.*s", (int)name.size, name.bytes);
}

const struct advice_python_part *advice_describe_python(const struct advice *advice, const struct advice_python_parts *parts, const char *of, double all_ns,
                                                        char *fact, char *advised, size_t size)
{
	const struct advice_python_part *search = &parts->search, *called = &parts->called;
	char callee[96];

	*fact = *advised = '\0';
	if (search->row != OPS_NONE && (double)search->ns >= PART_MIN * all_ns) {
		struct ops_function_text function;

		if (!ops_event_function(advice->trace, search->row, &function))
			return NULL;
		snprintf(fact, size, " Of %s, %s is in %.*s itself, which searches with `in` at line %u.", of, advice_time(advice_step_ms(advice, fmin((double)search->ns, all_ns))).text,
		         (int)(function.name.size < 64 ? function.name.size : 64), function.name.bytes, advice->sites.items[search->site].line);
		snprintf(advised, size, "If the search is in a list or an array, it goes through the items one by one: keep a set or a dictionary. ");
		return search;
	}
	if (called->row == OPS_NONE || (double)called->ns < PART_MIN * all_ns)
		return NULL;
	format_callee(advice, called->row, callee, sizeof(callee));
	snprintf(fact, size, " Of %s, %s is in %s of %s.", of, advice_time(advice_step_ms(advice, fmin((double)called->ns, all_ns))).text,
	         advice_counted(advice, called->calls, "call", "calls").text, callee);
	for (size_t i = 0; i < sizeof(known_calls) / sizeof(*known_calls); i++)
		if (ops_string_ends(ops_string_of(callee), known_calls[i].name))
			snprintf(advised, size, "%s", known_calls[i].advised);
	return called;
}
