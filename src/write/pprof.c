/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles of pprof (profile.proto of github.com/google/pprof), which Go's pprof tool, Pyroscope and others read: a sample for
 * each stack, with its frames from the innermost on and its time in nanoseconds. For a difference, the time is that of the other
 * trace minus that of the base.
 *
 * As in collapsed stacks, a sample has all frames of its stack, so stacks are limited to the same depth: the outermost frames of
 * deeper ones become "[truncated]".
 */
#include "write/stack_files.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/protobuf.h"
#include "base/sum.h"
#include "write/pftrace.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4, FUNCTION_LINE = 5 };

struct pprof {
	const struct ops_flame *flame;
	struct ops_sink *sink;
	struct ops_buffer message; /* a field of the profile, then its contents */
	struct ops_buffer inner;
	struct ops_buffer out;
	uint32_t *depths; /* by chain: number of frames */
	uint32_t limit;   /* maximum number of frames in a sample */
	uint64_t strings; /* number of strings written */
};

static void pprof_write(struct pprof *p)
{
	ops_sink_write(p->sink, p->out.bytes, p->out.size);
	p->out.size = 0;
}

/* Writes a string. Returns its number in the profile. */
static uint64_t pprof_put_string(struct pprof *p, struct ops_string text)
{
	ops_pf_put_text(&p->out, PROFILE_STRING, text);
	return p->strings++;
}

static void put_value_type(struct pprof *p, uint32_t field, uint64_t type, uint64_t unit)
{
	ops_pb_uint(&p->message, VALUE_TYPE, type);
	ops_pb_uint(&p->message, VALUE_UNIT, unit);
	ops_pb_message(&p->out, field, &p->message);
}

/* Writes a function and its location, both numbered like the name, from 1. */
static void pprof_put_function(struct pprof *p, uint64_t id, struct ops_string name)
{
	struct ops_function_text function = {.name = name};
	uint64_t string;

	ops_function_parse(name, &function);
	string = pprof_put_string(p, function.name);
	ops_pb_uint(&p->message, FUNCTION_ID, id);
	ops_pb_uint(&p->message, FUNCTION_NAME, string);
	ops_pb_uint(&p->message, FUNCTION_SYSTEM_NAME, string);
	if (function.file.size)
		ops_pb_uint(&p->message, FUNCTION_FILE, pprof_put_string(p, function.file));
	if (function.line)
		ops_pb_uint(&p->message, FUNCTION_LINE, function.line);
	ops_pb_message(&p->out, PROFILE_FUNCTION, &p->message);
	ops_pb_uint(&p->inner, LINE_FUNCTION, id);
	if (function.line)
		ops_pb_uint(&p->inner, LINE_NUMBER, function.line);
	ops_pb_uint(&p->message, LOCATION_ID, id);
	ops_pb_message(&p->message, LOCATION_LINE, &p->inner);
	ops_pb_message(&p->out, PROFILE_LOCATION, &p->message);
	pprof_write(p);
}

static int64_t pprof_value(const struct pprof *p, size_t chain)
{
	int64_t base = ops_flame_is_diff(p->flame) ? p->flame->base_ns.items[chain] : 0;

	return ops_difference(p->flame->self_ns.items[chain], base);
}

/* Chooses a depth with which the samples together have at most as many frames as collapsed stacks may have. */
static void find_limit(struct pprof *p)
{
	const struct ops_frame *frames = p->flame->frames.frames.items;

	for (size_t i = 1; i < p->flame->frames.frames.count; i++)
		p->depths[i] = p->depths[frames[i].caller] + 1;
	for (p->limit = OPS_COLLAPSED_DEPTH; p->limit > OPS_COLLAPSED_LEAST; p->limit /= 2) {
		uint64_t sum = 0;

		for (size_t i = 1; i < p->flame->frames.frames.count; i++)
			sum += pprof_value(p, i) ? (p->depths[i] < p->limit ? p->depths[i] : p->limit) : 0;
		if (sum <= OPS_COLLAPSED_FRAMES)
			return;
	}
}

static void put_sample(struct pprof *p, uint32_t chain, int64_t value, uint64_t truncated)
{
	const struct ops_frame *frames = p->flame->frames.frames.items;
	uint32_t left = p->limit;

	for (; chain && left; chain = frames[chain].caller, left--)
		ops_pb_varint(&p->inner, (uint64_t)frames[chain].name + 1);
	if (chain)
		ops_pb_varint(&p->inner, truncated);
	ops_pb_message(&p->message, SAMPLE_LOCATIONS, &p->inner);
	ops_pb_varint(&p->inner, (uint64_t)value);
	ops_pb_message(&p->message, SAMPLE_VALUES, &p->inner);
	ops_pb_message(&p->out, PROFILE_SAMPLE, &p->message);
	pprof_write(p);
}

static void put_profile(struct pprof *p, struct ops_flame_cut *cut)
{
	size_t names = ops_frames_name_count(&p->flame->frames);
	uint64_t type, unit;

	pprof_put_string(p, (struct ops_string){"", 0});
	type = pprof_put_string(p, (struct ops_string){"time", 4});
	unit = pprof_put_string(p, (struct ops_string){"nanoseconds", 11});
	put_value_type(p, PROFILE_SAMPLE_TYPE, type, unit);
	put_value_type(p, PROFILE_PERIOD_TYPE, type, unit);
	ops_pb_uint(&p->out, PROFILE_PERIOD, 1);
	for (uint32_t name = 0; name < names; name++)
		pprof_put_function(p, (uint64_t)name + 1, ops_frames_text(&p->flame->frames, name));
	pprof_put_function(p, names + 1, (struct ops_string){"[truncated]", 11});
	for (uint32_t i = 1; i < p->flame->frames.frames.count; i++) {
		int64_t value = pprof_value(p, i);

		if (!value)
			continue;
		put_sample(p, i, value, names + 1);
		cut->stacks += p->depths[i] > p->limit;
	}
	cut->depth = p->limit;
}

bool ops_put_pprof(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut)
{
	struct pprof p = {.flame = flame, .sink = sink, .depths = ops_alloc_zeroed(flame->frames.frames.count + 1, sizeof(*p.depths))};
	bool ok = p.depths != NULL;

	if (ok) {
		find_limit(&p);
		put_profile(&p, cut);
		ok = !p.out.failed && !p.message.failed && !p.inner.failed;
	}
	ops_buffer_release(&p.message);
	ops_buffer_release(&p.inner);
	ops_buffer_release(&p.out);
	ops_free(p.depths);
	return ok;
}
