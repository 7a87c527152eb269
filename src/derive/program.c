/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the program and of libraries; see program.h.
 */
#include "derive/program.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/text.h"
#include "derive/modules.h"
#include "trace/derived.h"

/* A wrapper's own code takes at most a twentieth of its call, or as long as a few interpreter calls take while they are
 * recorded. */
#define WRAPPER_PART 20
#define WRAPPER_NS 20000

/* --- files ---------------------------------------------------------------------------------------------------------- */

/* Kineto shortens paths by sys.path. */
bool ops_file_is_own(struct ops_string file)
{
	return ops_string_starts(file, "opstrobe/") || ops_string_contains(file, "-packages/opstrobe/") ||
	       ops_string_contains(file, "/python/opstrobe/");
}

/* Inductor writes generated modules to its cache directory and names them by hash, such as "ab/cab….py". */
bool ops_file_is_generated(struct ops_string file)
{
	const char *slash = file.size ? memrchr(file.bytes, '/', file.size) : NULL;

	return (slash && slash - file.bytes >= 3 && file.size - (size_t)(slash - file.bytes) > 40 && slash[-3] == '/' &&
	        slash[1] == 'c' && memcmp(slash + 2, slash - 2, 2) == 0) ||
	       ops_string_contains(file, "torchinductor_") || ops_string_contains(file, "/inductor_cache/") ||
	       ops_string_contains(file, "/torch_compile_cache/");
}

/* A recording has complete paths. Kineto shortens paths by sys.path, which leaves little of the paths of the standard
 * library, so the files that calls of torch pass through are listed here. */
bool ops_file_is_library(struct ops_string file)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"};
	static const char *const starts[] = {"torch/", "torchvision/", "numpy/", "<", "collections/", "multiprocessing/",
	                                     "logging/", "json/", "importlib/", "concurrent/", NULL};
	static const char *const files[] = {"typing.py", "contextlib.py", "threading.py", "functools.py", "enum.py", "abc.py",
	                                    "random.py", "copy.py", "runpy.py", "queue.py", "weakref.py", "warnings.py"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (ops_string_contains(file, parts[i]))
			return true;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (ops_string_is(file, files[i]))
			return true;
	return ops_string_starts_any(file, starts) || ops_file_is_own(file) || ops_file_is_generated(file);
}

bool ops_is_worker_loop(struct ops_string file, struct ops_string function)
{
	return ops_string_ends(file, "torch/utils/data/_utils/worker.py") && ops_string_is(function, "_worker_loop");
}

bool ops_is_launcher(struct ops_string file, struct ops_string function)
{
	static const char *const files[] = {"runpy.py", "/torch/distributed/run.py", "/torch/distributed/launcher/api.py", "/bin/torchrun",
	                                    "/opstrobe/launcher/program.py", "/opstrobe/run.py", "/multiprocessing/spawn.py"};
	static const char *const threads[] = {"_bootstrap", "_bootstrap_inner", "run"}; /* functions of threading.Thread */
	const char *dot = function.size ? memrchr(function.bytes, '.', function.size) : NULL;

	if (ops_string_starts(file, "<frozen "))
		return true;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (ops_string_ends(file, files[i]))
			return true;
	if (dot)
		function = (struct ops_string){dot + 1, function.size - (size_t)(dot + 1 - function.bytes)};
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		if (ops_string_is(function, threads[i]))
			return ops_string_is(file, "threading.py") || ops_string_ends(file, "/threading.py");
	return false;
}

struct ops_string ops_file_in_package(struct ops_string file)
{
	static const char packages[] = "-packages/"; /* site-packages, and Debian's dist-packages */
	const char *found = memmem(file.bytes, file.size, packages, strlen(packages));

	if (!found)
		return (struct ops_string){"", 0};
	found += strlen(packages);
	return (struct ops_string){found, file.size - (size_t)(found - file.bytes)};
}

struct ops_string ops_file_package(struct ops_string file)
{
	struct ops_string package = ops_file_in_package(file);
	const char *end = memchr(package.bytes, '/', package.size);

	package.size = end ? (size_t)(end - package.bytes) : 0;
	return package;
}

/* --- wrappers ------------------------------------------------------------------------------------------------------- */

struct wrapping {
	const struct ops_events *events;
	uint8_t *library; /* bits by row: a call of a library function or a C function */
	uint8_t *works;   /* bits by row: the call does more than call library functions */
	uint32_t *only;   /* by row: the only call inside it that does work, or SEVERAL; OPS_NONE: none */
	int32_t *votes;   /* by name: calls with only one call inside that take little time next to it, less those that take more */
	uint32_t *into;
	size_t count;
};
#define SEVERAL (OPS_NONE - 1)

/* Calls of modules count as the program's, whoever wrote the module. */
static bool find_library_calls(struct wrapping *w, const struct ops_trace *trace)
{
	const struct ops_events *events = w->events;
	enum ops_module_source modules = ops_module_source(trace);
	size_t strings = ops_trace_string_count(trace);
	uint8_t *known = ops_alloc_zeroed(strings + 1, 1); /* by name: 1 library, 2 program */

	for (uint32_t row = 0; known && row < events->count; row++) {
		uint8_t *is = &known[events->name[row]];
		struct ops_function_text function;

		if (events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || ops_is_module_call(trace, modules, row))
			continue;
		if (!*is)
			*is = ops_event_function(trace, row, &function) && function.file.size &&
			              !ops_file_is_library(function.file)
			              ? 2 : 1;
		if (*is == 1)
			ops_bit_set(w->library, row);
	}
	ops_free(known);
	return known != NULL;
}

/* A library function that makes only one call that does work. */
static bool is_forwarding(const struct wrapping *w, uint32_t row)
{
	return w->only[row] < SEVERAL && ops_bit(w->library, row);
}

static bool is_brief(const struct wrapping *w, uint32_t row)
{
	const struct ops_events *events = w->events;
	uint32_t inner = w->only[row];
	uint64_t duration_ns = (uint64_t)events->end_ns[row] - (uint64_t)events->start_ns[row];
	uint64_t inner_ns = (uint64_t)events->end_ns[inner] - (uint64_t)events->start_ns[inner];
	uint64_t most_ns = duration_ns / WRAPPER_PART > WRAPPER_NS ? duration_ns / WRAPPER_PART : WRAPPER_NS;

	return inner_ns >= duration_ns || duration_ns - inner_ns <= most_ns;
}

/* Parents come before their children, so a walk from the last row up has seen all rows inside a call before the call
 * itself. */
static void find_only_calls(struct wrapping *w)
{
	const struct ops_events *events = w->events;

	for (size_t row = events->count; row-- > 0;) {
		uint32_t parent = events->parent[row];

		if (w->only[row] != OPS_NONE || !ops_bit(w->library, row))
			ops_bit_set(w->works, row);
		if (is_forwarding(w, (uint32_t)row))
			w->votes[events->name[row]] += is_brief(w, (uint32_t)row) ? 1 : -1;
		if (parent != OPS_NONE && ops_bit(w->works, row))
			w->only[parent] = w->only[parent] == OPS_NONE ? (uint32_t)row : SEVERAL;
	}
}

/* The calls of a function are wrappers alike, if half of them take little time, since the thread may lose its processor in any. */
static void find_wrappers(struct wrapping *w)
{
	const struct ops_events *events = w->events;

	for (size_t row = events->count; row-- > 0;) {
		uint32_t inner = w->only[row];

		if (!is_forwarding(w, (uint32_t)row) || w->votes[events->name[row]] < 0)
			continue;
		w->into[row] = w->into[inner] == OPS_NONE ? inner : w->into[inner];
		w->count++;
	}
	for (size_t row = 0; w->count && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (parent != OPS_NONE && w->into[parent] != OPS_NONE && !ops_bit(w->works, row)) {
			w->into[row] = w->into[parent];
			w->count++;
		}
	}
}

static bool is_launcher_call(const struct ops_trace *trace, uint32_t row)
{
	struct ops_function_text function;

	return ops_trace_events(trace)->kind[row] == OPS_EVENT_PYTHON_FUNCTION && ops_event_function(trace, row, &function) &&
	       ops_is_launcher(function.file, function.name);
}

/* Launchers that nothing but launchers called lead to the longest call in them. Parents are above their children, so rows that
 * are marked as launchers before their children are met. */
static bool fold_launchers(struct wrapping *w, const struct ops_trace *trace)
{
	const struct ops_events *events = w->events;
	uint8_t *launches = ops_alloc_zeroed(events->count / 8 + 1, 1);
	uint32_t *longest = ops_alloc_none(events->count + 1);
	bool done = launches && longest;

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t parent = events->parent[row], *of = parent == OPS_NONE ? NULL : &longest[parent];
		bool below = of && ops_bit(launches, parent);

		if ((!of || below) && is_launcher_call(trace, row))
			ops_bit_set(launches, row);
		if (below && (*of == OPS_NONE || events->end_ns[row] - events->start_ns[row] >
		                                         events->end_ns[*of] - events->start_ns[*of]))
			*of = row;
	}
	for (size_t row = done ? events->count : 0; row-- > 0;) {
		uint32_t inner = longest[row];

		if (inner == OPS_NONE || w->into[row] != OPS_NONE)
			continue;
		w->into[row] = inner;
		w->count++;
	}
	/* From below: a wrapper may lead to a launcher, and a launcher to a wrapper. */
	for (size_t row = done && w->count ? events->count : 0; row-- > 0;) {
		uint32_t inner = w->into[row];

		if (inner != OPS_NONE && inner > row && w->into[inner] != OPS_NONE)
			w->into[row] = w->into[inner];
	}
	/* What launchers also call folds with them. */
	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (parent == OPS_NONE || !ops_bit(launches, parent) || w->into[parent] == OPS_NONE || w->into[row] != OPS_NONE ||
		    w->into[parent] == row || ops_bit(w->works, row))
			continue;
		w->into[row] = w->into[parent];
		w->count++;
		ops_bit_set(launches, row);
	}
	ops_free(launches);
	ops_free(longest);
	return done;
}

static void free_wrappers(void *object)
{
	struct ops_wrappers *wrappers = object;

	ops_free(wrappers->into);
	ops_free(wrappers);
}

static void wrappers_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct wrapping w = {.events = ops_trace_events(trace)};
	size_t count = w.events->count;
	struct ops_wrappers *wrappers = ops_alloc_zeroed(1, sizeof(*wrappers));
	bool done;

	w.library = ops_alloc_zeroed(count / 8 + 1, 1);
	w.works = ops_alloc_zeroed(count / 8 + 1, 1);
	w.only = ops_alloc_none(count + 1);
	w.votes = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, sizeof(*w.votes));
	w.into = ops_alloc_none(count + 1);
	done = wrappers && w.library && w.works && w.only && w.votes && w.into && find_library_calls(&w, trace);
	if (done) {
		find_only_calls(&w);
		find_wrappers(&w);
	}
	done = done && fold_launchers(&w, trace);
	if (done)
		wrappers->count = w.count;
	if (done && w.count) {
		wrappers->into = w.into;
		w.into = NULL;
	}
	ops_free(w.library);
	ops_free(w.works);
	ops_free(w.only);
	ops_free(w.votes);
	ops_free(w.into);
	if (done)
		*ret_made = (struct ops_derived_object){wrappers, free_wrappers, w.count ? (count + 1) * sizeof(*w.into) : 0};
	else
		ops_free(wrappers);
}

const struct ops_wrappers *ops_wrappers_of(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_WRAPPERS, wrappers_derive);
}
