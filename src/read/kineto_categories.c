/* SPDX-License-Identifier: Apache-2.0
 *
 * Categories: the names of kinds of events and flows in files of all versions.
 */
#include "read/kineto.h"
#include "trace/kinds.h"

#include <string.h>
#include <strings.h>

static const struct {
	const char *category;
	uint8_t kind;
} kinds[] = {
	{"cpu_op", OPS_EVENT_CPU_OP},
	{"operator", OPS_EVENT_CPU_OP},
	{"user_annotation", OPS_EVENT_USER_ANNOTATION},
	{"python_function", OPS_EVENT_PYTHON_FUNCTION},
	{"python", OPS_EVENT_PYTHON_FUNCTION},
	{"cpu_instant_event", OPS_EVENT_CPU_INSTANT},
	{"kernel", OPS_EVENT_KERNEL},
	{"gpu_memcpy", OPS_EVENT_GPU_MEMCPY},
	{"memcpy", OPS_EVENT_GPU_MEMCPY},
	{"gpu_memset", OPS_EVENT_GPU_MEMSET},
	{"memset", OPS_EVENT_GPU_MEMSET},
	{"gpu_user_annotation", OPS_EVENT_GPU_USER_ANNOTATION},
	{"runtime", OPS_EVENT_RUNTIME},
	{"cuda_runtime", OPS_EVENT_RUNTIME},
	{"xpu_runtime", OPS_EVENT_RUNTIME},
	{"mtia_runtime", OPS_EVENT_RUNTIME},
	{"glow_runtime", OPS_EVENT_RUNTIME},
	{"privateuse1_runtime", OPS_EVENT_RUNTIME},
	{"cuda_driver", OPS_EVENT_DRIVER},
	{"xpu_driver", OPS_EVENT_DRIVER},
	{"privateuse1_driver", OPS_EVENT_DRIVER},
	{"cuda_sync", OPS_EVENT_SYNC},
	{"xpu_sync", OPS_EVENT_SYNC},
	{"overhead", OPS_EVENT_OVERHEAD},
	{"trace", OPS_EVENT_TRACE},
};

static const struct {
	const char *category;
	uint8_t kind;
} link_kinds[] = {
	{"fwdbwd", OPS_LINK_FORWARD_BACKWARD},
	{"forward_backward", OPS_LINK_FORWARD_BACKWARD},
	{"ac2g", OPS_LINK_LAUNCH},
	{"async", OPS_LINK_LAUNCH},
	{"async_gpu", OPS_LINK_LAUNCH},
	{"async_cpu_to_gpu", OPS_LINK_LAUNCH},
};

/* The categories of MTIA's jobs, copies and firmware are not those of kernels, and the names of their threads do not contain
 * "stream". */
static bool is_on_device(uint8_t kind, const char *text, size_t size)
{
	return ops_kind_is_work(kind) || kind == OPS_EVENT_GPU_USER_ANNOTATION || kind == OPS_EVENT_SYNC ||
	       KINETO_IS(text, size, "mtia_ccp_events");
}

static void kineto_categories_classify(struct kineto_reader *reader, const char *text, size_t size,
                                       struct kineto_category *category)
{
	const char *own;

	category->kind = size ? OPS_EVENT_OTHER : OPS_EVENT_MARK;
	category->link_kind = OPS_LINK_OTHER;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].category) == size && strncasecmp(kinds[i].category, text, size) == 0)
			category->kind = kinds[i].kind;
	for (size_t i = 0; i < sizeof(link_kinds) / sizeof(link_kinds[0]); i++)
		if (kineto_is(text, size, link_kinds[i].category, strlen(link_kinds[i].category)))
			category->link_kind = link_kinds[i].kind;
	category->on_device = is_on_device(category->kind, text, size);
	category->id = ops_builder_string(reader->builder, text, size);
	category->link_id = category->id;
	own = ops_event_kind_category(category->kind);
	if (kineto_is(text, size, own, strlen(own)))
		category->id = OPS_NONE;
	if (KINETO_IS(text, size, "fwdbwd") || KINETO_IS(text, size, "ac2g"))
		category->link_id = OPS_NONE;
}

/* A file has few categories, and that of the previous event is the most likely. */
struct kineto_category kineto_category_of(struct kineto_reader *reader, const struct ops_json_member *cat)
{
	const char *text = cat && cat->type == '"' ? cat->value : "";
	size_t size = cat && cat->type == '"' ? cat->value_size : 0;
	struct kineto_category made = {.size = (uint32_t)size};

	for (uint32_t i = 0; i < reader->category_count; i++) {
		uint32_t at = (reader->last_category + i) % reader->category_count;
		const struct kineto_category *known = &reader->categories[at];

		if (kineto_is(text, size, known->text, known->size)) {
			reader->last_category = at;
			return *known;
		}
	}
	kineto_categories_classify(reader, text, size, &made);
	reader->has_known_category |= made.kind != OPS_EVENT_OTHER && made.kind != OPS_EVENT_MARK;
	if (size <= sizeof(made.text) && reader->category_count < KINETO_CATEGORIES_MAX) {
		memcpy(made.text, text, size);
		reader->categories[reader->last_category = reader->category_count++] = made;
	}
	return made;
}
