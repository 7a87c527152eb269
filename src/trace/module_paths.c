/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of modules that are unique in a trace with several models: "Encoder.net.0" and "Decoder.net.0", where each model alone has
 * "net.0".
 */
#include "trace/module_paths.h"

#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/buffer.h"
#include "trace/names.h"
#include "trace/table.h"

/* The roots of modules. Those with the same path and name are one root, of several processes. */
struct module_roots {
	uint32_t *of;      /* by module: the number of its root */
	uint32_t *holders; /* by string: the first root with a module of that path */
	uint8_t *shared;   /* by root: another root has a module of the same path */
	uint32_t *same;    /* by string: the number of such roots that have this path */
	struct ops_intern roots; /* path and name */
};

static bool is_root(const struct ops_trace *trace, size_t i)
{
	return trace->modules.items[i].parent >= i;
}

static bool module_paths_find_roots(const struct ops_trace *trace, struct module_roots *roots)
{
	for (size_t i = 0; i < trace->modules.count; i++) {
		const struct ops_module *module = &trace->modules.items[i];
		const uint32_t key[] = {module->path, module->name};

		roots->of[i] = is_root(trace, i) ? ops_intern_add(&roots->roots, key, sizeof(key)) : roots->of[module->parent];
		if (roots->of[i] == OPS_INTERN_NONE)
			return false;
	}
	return true;
}

/* A root without modules, such as a loss or an activation that is made for each call, is known by its class. */
static bool has_modules(const struct ops_trace *trace, size_t i)
{
	return !is_root(trace, i) || (i + 1 < trace->modules.count && trace->modules.items[i + 1].parent == i);
}

static void module_paths_find_shared(const struct ops_trace *trace, struct module_roots *roots)
{
	for (size_t i = 0; i < trace->modules.count; i++) {
		uint32_t *holder = &roots->holders[trace->modules.items[i].path];

		if (!has_modules(trace, i))
			continue;
		if (*holder == OPS_NONE)
			*holder = roots->of[i];
		if (*holder != roots->of[i])
			roots->shared[*holder] = roots->shared[roots->of[i]] = true;
	}
	for (uint32_t i = 0; i < roots->roots.count; i++) {
		uint32_t path;

		memcpy(&path, ops_intern_text(&roots->roots, i).bytes, sizeof(path));
		roots->same[path] += roots->shared[i];
	}
}

/* Returns the name of a root: its class or, if several have that, the name of its calls. */
static struct ops_string root_name(const struct ops_trace *trace, const struct module_roots *roots, size_t i)
{
	const struct ops_module *root = &trace->modules.items[i];
	struct ops_string name = ops_intern_text(&trace->strings, root->name);

	if (roots->same[root->path] < 2 || !ops_is_module_name(name))
		return ops_intern_text(&trace->strings, root->path);
	return (struct ops_string){name.bytes + strlen(OPS_MODULE_PREFIX), name.size - strlen(OPS_MODULE_PREFIX)};
}

static bool module_paths_set(struct ops_trace *trace, const struct module_roots *roots)
{
	struct ops_string name = {0};
	struct ops_buffer text = {0};
	bool done = true;

	for (size_t i = 0; done && i < trace->modules.count; i++) {
		struct ops_module *module = &trace->modules.items[i];
		struct ops_string path = ops_intern_text(&trace->strings, module->path);

		module->unique_path = module->path;
		if (!roots->shared[roots->of[i]] || !has_modules(trace, i))
			continue;
		text.size = 0;
		if (is_root(trace, i))
			name = root_name(trace, roots, i);
		ops_buffer_append(&text, name.bytes, name.size);
		if (!is_root(trace, i)) {
			ops_buffer_append_text(&text, ".");
			ops_buffer_append(&text, path.bytes, path.size);
		}
		module->unique_path = text.failed ? OPS_INTERN_NONE : ops_intern_add(&trace->strings, text.bytes, text.size);
		done = module->unique_path != OPS_INTERN_NONE;
	}
	ops_buffer_release(&text);
	return done;
}

bool ops_module_paths_find(struct ops_trace *trace)
{
	size_t count = trace->modules.count;
	struct module_roots roots = {
		.of = ops_alloc_none(count + 1),
		.holders = ops_alloc_none(trace->strings.count + 1),
		.shared = ops_alloc_zeroed(count + 1, 1),
		.same = ops_alloc_zeroed(trace->strings.count + 1, sizeof(*roots.same)),
	};
	bool done = roots.of && roots.holders && roots.shared && roots.same && module_paths_find_roots(trace, &roots);

	if (done) {
		module_paths_find_shared(trace, &roots);
		done = module_paths_set(trace, &roots);
	}
	ops_free(roots.of);
	ops_free(roots.holders);
	ops_free(roots.shared);
	ops_free(roots.same);
	ops_intern_release(&roots.roots);
	return done;
}
