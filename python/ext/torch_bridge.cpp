/* SPDX-License-Identifier: Apache-2.0
 *
 * The torch bridge: converts torch's RecordFunction callbacks and allocator reports to records of the core. The only C++ file.
 *
 * An operator costs one reserved slot and nothing else: no heap, no end callback. Torch keeps, from an operator's start to its
 * end, a pointer to an ObserverContext that the start callback returned. That context is the slot itself:
 *
 *     ops_slot ┌───────────────┬─────────────┬───────────┬ ─ ─
 *              │ owner: vtable │ start_ticks │ end_ticks │
 *              └───────────────┴─────────────┴───────────┴ ─ ─
 *                └ an op_context, no bytes beyond its vtable pointer
 *
 * When torch destroys the operator's RecordFunction it deletes the context, and op_context's own `operator delete` closes the
 * slot. By then the object has been destroyed and the slot is memory of the core again, which keeps a block as long as a slot in
 * it is open, whatever the state of the session.
 *
 * Torch destroys the context with the RecordFunction and not at its end(). For operators that is the same moment. For user ranges
 * it is not (Python holds the RecordFunction longer, futures end it elsewhere), so USER_SCOPE has separate callbacks: an end
 * callback, and a context on the heap.
 */
#include "torch_bridge.h"
#include "torch_allocator.hpp"
#include "torch_collective.hpp"
#include "torch_device_events.hpp"
#include "torch_fork.hpp"
#include "torch_names.hpp"
#include "torch_observer.hpp"
#include "torch_payload.hpp"
#include "torch_script.hpp"
#include "torch_sizes.hpp"
#include "torch_storages.hpp"

#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <pthread.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

/* Declared here because the headers are too large to include for two functions. Weak: NULL in a torch that lacks them. */
namespace torch {
namespace jit::tracer {
struct TracingState;
__attribute__((weak, visibility("default"))) const std::shared_ptr<TracingState> &getTracingState();
} // namespace jit::tracer
namespace profiler::impl {
__attribute__((weak, visibility("default"))) bool get_fwd_bwd_enabled();
} // namespace profiler::impl
} // namespace torch

namespace {

using at::ObserverContext;
using at::RecordFunction;
using at::RecordFunctionCallback;
using at::RecordScope;
using c10::ThreadLocalDebugInfo;
using context_ptr = std::unique_ptr<ObserverContext>;

/* --- state -------------------------------------------------------------------------------------------------------- */

/* Which threads a session records. If another thread stops a session, the thread that started it keeps its callbacks for a while;
 * once that has happened in this process, callbacks check whether they belong to the session. */
enum reach { inheriting, inheriting_checked, all_threads };

/* Written by attach and detach, read by every operator. */
struct alignas(64) attachment {
	const ops_collector *collector; /* set by the first attach; constant afterwards */
	uint64_t session;               /* epoch of the attached session; 0: none; release store, acquire load */
	enum reach reach;
	int observed; /* number of running observers, and of sessions that run along with one of torch's or that time ranges;
	               * relaxed */
	bool observes; /* the session is counted in `observed`; used only by attach and detach */
	bool more;    /* the options require more of an operator than its name and inputs */
	bool needs_state; /* allocators report to the profiler state of each thread */
	bool own_memory; /* the allocator of torch_allocator.hpp reports, and torch's CPU allocator does not */
	bool records_memory; /* allocations are recorded now; relaxed */
	int64_t cpu_bytes;     /* of the living allocations that `own_memory` has reported; relaxed */
	ops_torch_options options;
	uint64_t op_handle;    /* of the callbacks of that session; 0: none */
	uint64_t range_handle;
};
attachment attached;

uint64_t attached_session()
{
	return __atomic_load_n(&attached.session, __ATOMIC_ACQUIRE);
}

/* --- threads and names --------------------------------------------------------------------------------------------- */

/* Programs use the same inputs repeatedly. The positions in the block of some of the last lists, by a hash of their contents.
 * They are compared before use, so nothing has to be cleared for a new block or session. */
constexpr size_t list_bits = 8;

struct recorder {
	ops_thread *thread;
	uint64_t epoch; /* session of the ids in `names` */
	name_table names;
	uint16_t lists[size_t{1} << list_bits];
};

/* In the thread's static block, so that access takes one load. A pointer fits into the space that the loader reserves for
 * libraries loaded late. */
__attribute__((tls_model("initial-exec"))) thread_local recorder *this_recorder = nullptr;
thread_local int exit_rounds = 0;
pthread_key_t exit_key;

void free_recorder(recorder *self)
{
	self->names.clear();
	std::free(self);
}

/* The core removes a thread in the last round of its destructors but one. So that no recorder outlives the objects to which it
 * points, this one is removed a round earlier, after requesting further calls; later records are counted as lost. */
constexpr int last_round = PTHREAD_DESTRUCTOR_ITERATIONS - 2;

void thread_exit(void *self)
{
	if (++exit_rounds < last_round && pthread_setspecific(exit_key, self) == 0)
		return;
	exit_rounds = last_round;
	this_recorder = nullptr;
	free_recorder(static_cast<recorder *>(self));
}

OPS_COLD recorder *make_recorder()
{
	ops_thread *thread = attached.collector->thread();
	recorder *self = nullptr;

	if (!thread)
		return nullptr;
	if (exit_rounds < last_round)
		self = static_cast<recorder *>(std::aligned_alloc(alignof(recorder), sizeof(recorder)));
	if (!self || pthread_setspecific(exit_key, self) != 0) {
		std::free(self);
		__atomic_store_n(&thread->lost, thread->lost + 1, __ATOMIC_RELAXED);
		return nullptr;
	}
	std::memset(static_cast<void *>(self), 0, sizeof(*self));
	self->thread = thread;
	__atomic_store_n(&thread->torch_number, static_cast<uint32_t>(RecordFunction::currentThreadId()), __ATOMIC_RELAXED);
	this_recorder = self;
	return self;
}

inline recorder *current_recorder()
{
	return OPS_LIKELY(this_recorder != nullptr) ? this_recorder : make_recorder();
}

/* Returns which arguments an operator writes to according to its schema: bit i for argument i. */
uint64_t find_writes(const RecordFunction &fn)
{
	const auto schema = fn.operator_schema(); /* a copy */
	uint64_t writes = 0;

	for (size_t i = 0; schema && i < schema->arguments().size() && i < 64; i++) {
		const c10::AliasInfo *alias = schema->arguments()[i].alias_info();
		if (alias && alias->isWrite())
			writes |= uint64_t{1} << i;
	}
	return writes;
}

/* What the bridge knows about an operator by its schema's name; all zero for functions that are not operators, or if out of
 * memory. */
struct operator_name {
	uint32_t id;
	uint64_t writes;
};

/* Returns NULL for a name that this thread has not met in this session. */
OPS_INLINE name_entry *find_known_name(recorder *self, const char *name, uint64_t epoch)
{
	return OPS_LIKELY(self->epoch == epoch) ? self->names.find(name) : nullptr;
}

/* Returns the name of an operator that is not cached. With overload names all operators are handled here, because the name alone
 * is not sufficient. */
OPS_COLD operator_name find_schema_name(recorder *self, const RecordFunction &fn, const char *name, uint64_t epoch) noexcept
{
	try {
		const auto schema = fn.operator_name();
		const bool overload = attached.options.capture_overload_names;
		if (!schema)
			return {};
		if (self->epoch != epoch)
			self->names.clear();
		self->epoch = epoch;
		const uint64_t writes = attached.options.profile_memory ? find_writes(fn) : 0;
		const uint32_t id = attached.collector->intern(self->thread, name, std::strlen(name),
		                                               overload ? schema->overload_name.data() : nullptr,
		                                               overload ? schema->overload_name.size() : 0);
		if (id && !overload)
			self->names.put(name, id, writes);
		return {id, writes};
	} catch (...) {
		return {};
	}
}

/* --- slots ---------------------------------------------------------------------------------------------------------- */

/* How much is recorded of every operator. */
enum detail { with_name, with_inputs, with_storages };

/* What to record. Name and args go into the payload; their bytes are NULL if they do not. */
struct record {
	text name;
	text args;
	const RecordFunction *inputs; /* NULL: without its inputs */
	uint64_t writes; /* which inputs the operator may write to */
	named_values values;
	script_place script;
	uint32_t id;
	uint8_t kind;
	bool storages; /* with the storages of its inputs */
};

inline bool has_values(const record &what)
{
	return what.values.record_id || what.values.device_time || what.values.counters || what.values.given.bytes;
}

inline bool has_script(const record &what)
{
	return what.script.call_stack || what.script.module_hierarchy;
}

char *put_payload(const place &to, char *at, const record &what)
{
	uint64_t hash;

	if (what.inputs)
		at = put_inputs(to, at, what.inputs->inputs(), &hash);
	if (at && what.inputs && what.storages)
		at = put_storages(to, at, what.inputs->inputs(), what.writes);
	if (OPS_UNLIKELY(at && has_script(what)))
		at = put_script(to, at, what.script);
	if (OPS_UNLIKELY(at && has_values(what)))
		at = put_values(to, at, what.values);
	if (at && what.args.bytes)
		at = put_text(to, at, what.args);
	return at && what.name.bytes ? put_text(to, at, what.name) : at;
}

inline uint16_t payload_flags(const record &what)
{
	return static_cast<uint16_t>((what.name.bytes ? OPS_SLOT_NAME_INLINE : 0) |
	                             (what.args.bytes ? OPS_SLOT_HAS_ARGS : 0) |
	                             (what.inputs ? OPS_SLOT_HAS_INPUTS : 0) |
	                             (what.inputs && what.storages ? OPS_SLOT_HAS_STORAGES : 0) |
	                             (has_values(what) ? OPS_SLOT_HAS_VALUES : 0) |
	                             (has_script(what) ? OPS_SLOT_HAS_SCRIPT : 0));
}

/* Uses a buffer, for a new block, or if writing in place was disturbed. Clears `what->inputs` and the given values if they do not
 * fit into any block. */
OPS_COLD ops_slot *reserve_by_copy(recorder *self, uint64_t epoch, record *what)
{
	const ops_thread nobody = {};
	char small[2 * (inline_max + sizeof(uint32_t)) + 512]; /* sufficient without inputs */
	const size_t large_bytes = OPS_PAYLOAD_MAX & ~size_t{3};
	const bool is_large = what->inputs || what->values.given.bytes;
	char *const large = is_large ? static_cast<char *>(std::malloc(large_bytes)) : nullptr;
	place to = {large ? large : small, &nobody, nullptr, 0, false};
	char *const end = large ? large + large_bytes : small + sizeof(small);
	char *at = nullptr;

	if (large) {
		at = put_payload(to, end, *what);
		to.short_lists = true;
		if (!at)
			at = put_payload(to, end, *what);
	}
	if (!at) {
		what->inputs = nullptr;
		what->values.given = {};
		what->values.given_count = 0;
		at = put_payload(to, end, *what);
	}
	const size_t bytes = static_cast<size_t>(end - at);
	ops_slot *slot = ops_reserve(attached.collector, self->thread, epoch, bytes);
	if (slot && bytes)
		std::memcpy(ops_slot_payload(self->thread, slot), at, bytes);
	std::free(large);
	return slot;
}

/* Returns the end of the free space in the thread's block, where payloads are written before they are reserved: below it, and
 * above the slot that will have them. Returns NULL if there is none. */
OPS_INLINE char *find_room(const recorder *self, uint64_t epoch, place *ret_place)
{
	const ops_thread *const thread = self->thread;
	const size_t front = offsetof(ops_block, slots) + (size_t{thread->reserved_slots} + 1) * sizeof(ops_slot);
	char *const base = reinterpret_cast<char *>(thread->block);

	if (OPS_UNLIKELY(thread->epoch != epoch || front > thread->payload_start))
		return nullptr;
	*ret_place = {base + front, thread, thread->block, thread->reserved_slots, false};
	return base + thread->payload_start;
}

ops_slot *reserve(recorder *self, uint64_t epoch, record *what)
{
	place to;

	if (!what->inputs && !what->name.bytes && !has_values(*what) && !has_script(*what))
		return ops_reserve(attached.collector, self->thread, epoch, 0);
	char *const end = find_room(self, epoch, &to);
	const char *const at = end ? put_payload(to, end, *what) : nullptr;
	return at ? ops_reserve_in_block(self->thread, static_cast<size_t>(end - at)) : reserve_by_copy(self, epoch, what);
}

/* Returns 0 if the 4-byte words at two positions are equal. */
OPS_INLINE uint32_t difference(const char *a, const char *b)
{
	uint32_t left, right;

	std::memcpy(&left, a, sizeof(left));
	std::memcpy(&right, b, sizeof(right));
	return left ^ right;
}

/* Compares words that were just written: wider reads would have to wait for several of those writes. */
OPS_INLINE bool equal_words(const char *a, const char *b, size_t bytes)
{
	uint32_t differing = 0;
	size_t i = 0;

	for (; i + 16 <= bytes; i += 16)
		differing |= difference(a + i, b + i) | difference(a + i + 4, b + i + 4) |
		             difference(a + i + 8, b + i + 8) | difference(a + i + 12, b + i + 12);
	for (; i < bytes; i += 4)
		differing |= difference(a + i, b + i);
	return differing == 0;
}

/* Reserves a slot that shares the payload of another slot of the block. */
OPS_INLINE ops_slot *reserve_shared(ops_thread *thread, size_t payload, size_t bytes)
{
	ops_slot *const slot = ops_reserve_in_block(thread, 0);

	slot->payload = static_cast<uint16_t>(payload);
	slot->payload_bytes = static_cast<uint16_t>(bytes);
	return slot;
}

/* Reserves a slot with the operator's last input list, if the block still has it and it equals these inputs; then nothing is
 * written. Else returns NULL. The list is compared by its bytes, so an outdated entry is harmless. */
OPS_INLINE ops_slot *reserve_last_list(recorder *self, uint64_t epoch, const name_entry *name,
                                       c10::ArrayRef<const c10::IValue> inputs)
{
	ops_thread *const thread = self->thread;
	const char *const block = reinterpret_cast<const char *>(thread->block);
	const size_t start = name->list, bytes = name->list_words * sizeof(uint32_t);

	if (OPS_UNLIKELY(thread->epoch != epoch || ops_next_slot_end(thread) > thread->payload_start) ||
	    start < thread->payload_start || start + bytes > OPS_BLOCK_BYTES ||
	    !is_list_of(block + start, block + start + bytes, inputs))
		return nullptr;
	return reserve_shared(thread, start, bytes);
}

OPS_INLINE void remember_list(name_entry *name, const ops_slot *slot)
{
	const size_t words = slot->payload_bytes / sizeof(uint32_t);

	name->list = words <= UINT8_MAX ? slot->payload : 0;
	name->list_words = static_cast<uint8_t>(words);
}

/* Reserves a slot with an input list that has been written where the next payload goes. An equal list in the block is shared:
 * finding it takes a few nanoseconds, about as much as fresh memory for another one. */
OPS_INLINE ops_slot *reserve_list(recorder *self, const char *at, size_t bytes, uint64_t hash)
{
	ops_thread *const thread = self->thread;
	uint16_t *const list = &self->lists[(hash * 0x9e3779b97f4a7c15u) >> (64 - list_bits)];
	const size_t known = *list;

	if (known >= thread->payload_start && known + bytes <= OPS_BLOCK_BYTES &&
	    equal_words(reinterpret_cast<const char *>(thread->block) + known, at, bytes))
		return reserve_shared(thread, known, bytes);
	ops_slot *const slot = ops_reserve_in_block(thread, bytes);
	*list = slot->payload;
	return slot;
}

/* Reserves a slot for a cached operator with only its inputs. Returns NULL if they do not fit into the block unchanged. */
template <detail Detail>
OPS_INLINE ops_slot *reserve_usual(recorder *self, uint64_t epoch, const RecordFunction &fn, name_entry *name)
{
	place to;

	if (Detail == with_name)
		return ops_reserve(attached.collector, self->thread, epoch, 0);
	if (Detail == with_inputs) {
		ops_slot *const slot = reserve_last_list(self, epoch, name, fn.inputs());
		if (OPS_LIKELY(slot != nullptr))
			return slot;
	}
	char *const end = find_room(self, epoch, &to);
	uint64_t hash;
	char *at = OPS_LIKELY(end != nullptr) ? put_inputs(to, end, fn.inputs(), &hash) : nullptr;
	if (Detail == with_inputs && OPS_LIKELY(at != nullptr)) {
		ops_slot *const slot = reserve_list(self, at, static_cast<size_t>(end - at), hash);
		remember_list(name, slot);
		return slot;
	}
	if (Detail == with_storages && at)
		at = put_storages(to, at, fn.inputs(), name->writes);
	return OPS_LIKELY(at != nullptr) ? ops_reserve_in_block(self->thread, static_cast<size_t>(end - at)) : nullptr;
}

/* Sets the members of the slot except for `owner` and the start, and leaves it open. */
OPS_INLINE void fill(ops_slot *slot, const RecordFunction &fn, uint32_t name, uint8_t kind, uint16_t flags)
{
	slot->end_ticks = 0;
	slot->sequence_nr = fn.seqNr();
	slot->name = name;
	slot->call_line = ops_call_line(attached.collector);
	slot->forward_thread = static_cast<uint32_t>(fn.forwardThreadId());
	slot->end_thread = 0;
	slot->kind = kind;
	slot->scope = static_cast<uint8_t>(fn.scope());
	slot->flags = flags;
}

inline void close(ops_slot *slot, uint64_t ticks)
{
	const ops_thread *thread = OPS_LIKELY(this_recorder != nullptr) ? this_recorder->thread : attached.collector->thread();

	ops_slot_close(slot, ticks, thread ? thread->number : 0);
}

inline void close(ops_slot *slot)
{
	close(slot, ops_ticks(attached.collector->tsc));
}

/* --- callbacks ------------------------------------------------------------------------------------------------------- */

bool is_live(bool global);
void leave_thread() noexcept;
void ensure_state() noexcept;

/* Handles a pause, a check, or the end of the session. */
OPS_COLD uint64_t epoch_if_live(uint64_t epoch, bool global)
{
	if (is_live(global))
		return epoch;
	leave_thread();
	return 0;
}

/* Returns the epoch if this callback is to record, else 0. */
template <bool Global>
OPS_INLINE uint64_t epoch_to_record()
{
	const uint64_t epoch = ops_collector_epoch(attached.collector);

	if (OPS_LIKELY(epoch && epoch == attached_session() && attached.reach == (Global ? all_threads : inheriting)))
		return epoch;
	return epoch_if_live(epoch, Global);
}

struct op_context final : ObserverContext {
	static void *operator new(size_t, ops_slot *slot) noexcept
	{
		return slot;
	}
	static void operator delete(void *slot) noexcept
	{
		close(static_cast<ops_slot *>(slot));
	}
	static void operator delete(void *, ops_slot *) noexcept {}
};
static_assert(sizeof(op_context) == sizeof(ops_slot::owner) && offsetof(ops_slot, owner) == 0, "the slot's first word");

/* An operator with counters or with a device time: read at its start and at its end, on one thread. */
struct counted_context final : ObserverContext {
	ops_slot *slot = nullptr;
	char *values = nullptr; /* the first counter in the slot's payload */
	char *device_time = nullptr;
	device_events::open_pair pair;
	const ops_counters *counters = nullptr;
	const recorder *self = nullptr;
	uint64_t session = 0; /* session of the counters; 0: not read at the start */
	int64_t start[OPS_COUNTERS_MAX] = {};

	~counted_context() override
	{
		int64_t now[OPS_COUNTERS_MAX];
		char *at = values;

		if (!slot)
			return;
		if (session && session == attached_session() && self == this_recorder && counters->read(now)) {
			for (uint32_t i = 0; i < counters->count; i++) {
				const int64_t value = now[i] - start[i];
				at += text_bytes(std::strlen(counters->names[i])) + sizeof(uint32_t);
				std::memcpy(at, &value, sizeof(value));
				at += sizeof(value);
			}
		}
		const uint64_t ticks = ops_ticks(attached.collector->tsc);
		pair.end(device_time);
		close(slot, ticks);
	}
};

/* Returns the position of the first named value, after the record's id, in the payload. */
char *place_of_values(const recorder *self, ops_slot *slot, const record &what)
{
	char *at = static_cast<char *>(ops_slot_payload(self->thread, slot));

	if (what.name.bytes)
		at += text_bytes(what.name.size);
	if (what.args.bytes)
		at += text_bytes(what.args.size);
	at += sizeof(uint32_t);
	if (what.values.record_id)
		at += text_bytes(std::strlen(record_id_name)) + sizeof(uint32_t) + sizeof(int64_t);
	return at;
}

/* Returns the position of the number of a pair, if that is the next named value. */
char *place_of_pair(char *values)
{
	return values + text_bytes(std::strlen(OPS_DEVICE_TIME_NAME)) + sizeof(uint32_t);
}

/* `context` is NULL if out of memory, else it has begun. */
OPS_COLD context_ptr open_counted(const RecordFunction &fn, recorder *self, ops_slot *slot, const record &what,
                                  std::unique_ptr<counted_context> context) noexcept
{
	char *at = place_of_values(self, slot, what);

	fill(slot, fn, what.id, what.kind, payload_flags(what));
	slot->owner = nullptr;
	slot->start_ticks = ops_ticks(attached.collector->tsc);
	if (!context)
		slot->end_ticks = slot->start_ticks; /* no memory for recording the end */
	ops_publish(self->thread);
	if (!context)
		return nullptr;
	context->slot = slot;
	if (what.values.device_time) {
		context->device_time = place_of_pair(at);
		at = context->device_time + sizeof(int64_t);
	}
	context->values = at;
	context->counters = what.values.counters;
	context->self = self;
	if (context->counters && context->counters->read(context->start))
		context->session = attached_session();
	return context;
}

/* Called before the slot is reserved, so that operators run by the device for this are not part of it. Returns NULL if out of
 * memory. */
OPS_COLD std::unique_ptr<counted_context> begin_counted(const record &what, uint64_t session) noexcept
{
	std::unique_ptr<counted_context> context(new (std::nothrow) counted_context);

	if (context && what.values.device_time)
		context->pair.begin(session);
	return context;
}

inline bool is_observed()
{
	return __atomic_load_n(&attached.observed, __ATOMIC_RELAXED) != 0;
}

/* Returns the id that torch assigns if an observer requests it. */
inline uint64_t record_id(const RecordFunction &fn)
{
	return is_observed() ? fn.handle() : 0;
}

uint32_t intern_text(recorder *self, const std::string &text)
{
	return text.empty() ? 0 : attached.collector->intern(self->thread, text.data(), text.size(), nullptr, 0);
}

/* Returns the position in a running script; backward nodes are called by the engine. */
OPS_COLD script_place find_script(recorder *self, const RecordFunction &fn) noexcept
{
	script_place script = {};

	if (fn.scope() == RecordScope::BACKWARD_FUNCTION)
		return script;
	try {
		if (attached.options.script_stacks)
			script.call_stack = intern_text(self, scripting::call_stack());
		if (attached.options.script_modules)
			script.module_hierarchy = intern_text(self, scripting::module_hierarchy());
	} catch (...) { /* if out of memory, it is left out */
	}
	return script;
}

/* Returns whether more than its name and inputs is recorded of this operator. */
__attribute__((noinline)) bool needs_more(const RecordFunction &fn) noexcept
{
	const ops_torch_options &options = attached.options;

	if (is_observed() || options.counters || options.device_events)
		return true;
	return (options.script_stacks || options.script_modules) && fn.scope() != RecordScope::BACKWARD_FUNCTION &&
	       scripting::is_running();
}

/* Returns the keyword values of a function; nothing if out of memory. */
named::values find_keywords(const RecordFunction &fn) noexcept
{
	try {
		return named::of_keywords(fn.kwinputs());
	} catch (...) {
		return {};
	}
}

/* Returns torch's description of a collective; nothing for other operators, or if out of memory. */
OPS_COLD named::values find_collective(const char *name) noexcept
{
	try {
		return std::strcmp(name, collectives::operator_name) == 0 ? collectives::describe() : named::values();
	} catch (...) {
		return {};
	}
}

void give(record &what, const named::values &given)
{
	if (!given.count)
		return;
	what.values.given = {given.bytes.data(), given.bytes.size()};
	what.values.given_count = given.count;
}

/* Opens the slot: it becomes the context that torch deletes at the operator's end. */
OPS_INLINE context_ptr open(ops_slot *slot, recorder *self)
{
	context_ptr context(new (slot) op_context);

	slot->start_ticks = ops_ticks(attached.collector->tsc);
	ops_publish(self->thread);
	return context;
}

/* The slow path for any operator: a new one, one without a schema, or one of which more is recorded. */
template <detail Detail>
__attribute__((noinline)) context_ptr op_start_any(const RecordFunction &fn, recorder *self, const char *name,
                                                   operator_name schema, uint64_t epoch) noexcept
{
	const bool more = needs_more(fn);
	named::values given; /* for functions without a schema, which are never cached */
	std::unique_ptr<counted_context> context;
	record what = {};

	if (device_events::is_recording)
		return nullptr;
	if (!schema.id)
		schema = find_schema_name(self, fn, name, epoch);
	what.kind = OPS_SLOT_OP;
	what.inputs = Detail != with_name ? &fn : nullptr;
	what.storages = Detail == with_storages;
	what.writes = schema.writes;
	what.id = schema.id;
	if (!what.id)
		what.name = {name, std::strlen(name)};
	if (what.name.size > inline_max) {
		what.id = attached.collector->intern(self->thread, name, what.name.size, nullptr, 0);
		if (!what.id)
			return nullptr;
		what.name = {};
	}
	if (more) {
		what.values.record_id = record_id(fn);
		what.values.counters = attached.options.counters;
		what.values.device_time = attached.options.device_events != OPS_DEVICE_EVENTS_NONE;
		what.script = find_script(self, fn);
	}
	if (!schema.id) {
		given = find_collective(name);
		if (Detail != with_name && !given.count && fn.scope() == RecordScope::FUNCTION)
			given = find_keywords(fn);
		give(what, given);
	}
	const bool counted = what.values.counters || what.values.device_time;
	if (counted)
		context = begin_counted(what, epoch);
	ops_slot *const slot = reserve(self, epoch, &what);
	if (!slot)
		return nullptr;
	if (counted)
		return open_counted(fn, self, slot, what, std::move(context));
	fill(slot, fn, what.id, what.kind, payload_flags(what));
	return open(slot, self);
}

/* The fast path of nearly all operators. */
template <detail Detail, bool Global>
OPS_HOT context_ptr op_start(const RecordFunction &fn) noexcept
{
	constexpr uint16_t flags = (Detail != with_name ? OPS_SLOT_HAS_INPUTS : 0) |
	                           (Detail == with_storages ? OPS_SLOT_HAS_STORAGES : 0);
	const uint64_t epoch = epoch_to_record<Global>();
	recorder *const self = epoch ? current_recorder() : nullptr;

	if (OPS_UNLIKELY(!self))
		return nullptr;
	if (Global && attached.needs_state)
		ensure_state();
	ops_note_context_again(attached.collector, self->thread, epoch);
	const char *const name = fn.name();
	name_entry *const known = find_known_name(self, name, epoch);
	if (OPS_UNLIKELY(!known))
		return op_start_any<Detail>(fn, self, name, {}, epoch);
	if (OPS_UNLIKELY((is_observed() || attached.more) && needs_more(fn)))
		return op_start_any<Detail>(fn, self, name, {known->id, known->writes}, epoch);
	ops_slot *const slot = reserve_usual<Detail>(self, epoch, fn, known);
	if (OPS_UNLIKELY(!slot))
		return Detail == with_name ? nullptr : op_start_any<Detail>(fn, self, name, {known->id, known->writes}, epoch);
	fill(slot, fn, known->id, OPS_SLOT_OP, flags);
	return open(slot, self);
}

thread_local bool range_recorded = false; /* a range was recorded on this thread */

/* Closes its slot at end() or, without that, when it is destroyed. */
struct range_context final : ObserverContext {
	ops_slot *slot = nullptr;
	char *device_time = nullptr;
	device_events::open_pair pair;

	void end()
	{
		if (!slot)
			return;
		const uint64_t ticks = ops_ticks(attached.collector->tsc);
		pair.end(device_time);
		note_end();
		close(slot, ticks);
		slot = nullptr;
	}
	~range_context() override
	{
		end();
	}

private:
	static void note_end()
	{
		const uint64_t epoch = ops_collector_epoch(attached.collector);

		if (epoch && this_recorder)
			ops_note_context_again(attached.collector, this_recorder->thread, epoch);
	}
};

/* Returns the argument text of record_function(name, args), which torch passes as the only input. */
inline text args_of(const RecordFunction &fn)
{
	const auto inputs = fn.inputs();

	if (inputs.size() != 1 || !inputs[0].isString())
		return {};
	const std::string &args = inputs[0].toStringRef();
	return {args.data(), args.size()};
}

template <detail Detail, bool Global>
context_ptr range_start(const RecordFunction &fn) noexcept
{
	const uint64_t epoch = epoch_to_record<Global>();
	recorder *self = epoch ? current_recorder() : nullptr;

	if (!self || device_events::is_recording)
		return nullptr;
	ops_note_context(attached.collector, self->thread, epoch);
	std::unique_ptr<range_context> context(new (std::nothrow) range_context);
	if (!context)
		return nullptr;

	record what = {};
	const char *name = fn.name();
	const text args = args_of(fn);
	named::values given;
	what.kind = OPS_SLOT_RANGE;
	what.inputs = Detail != with_name ? &fn : nullptr;
	what.name = {name, std::strlen(name)};
	what.args = args;
	if (what.name.size > inline_max || args.size > inline_max) {
		what.id = attached.collector->intern(self->thread, name, what.name.size, args.bytes, args.size);
		if (!what.id)
			return nullptr;
		what.name = what.args = {};
	}
	if (Detail != with_name) {
		given = find_keywords(fn);
		give(what, given);
	}
	what.values.record_id = record_id(fn);
	what.values.device_time = attached.options.device_events != OPS_DEVICE_EVENTS_NONE;
	if (what.values.device_time)
		context->pair.begin(epoch);
	ops_slot *slot = reserve(self, epoch, &what);
	if (!slot)
		return nullptr;
	if (what.values.device_time)
		context->device_time = place_of_pair(place_of_values(self, slot, what));
	fill(slot, fn, what.id, what.kind, payload_flags(what));
	/* Only for ranges: torch marks no other function as asynchronous, and checking takes a call. */
	slot->flags |= static_cast<uint16_t>((args.bytes ? OPS_SLOT_HAS_ARGS : 0) | (fn.isAsync() ? OPS_SLOT_ASYNC : 0));
	slot->owner = nullptr;
	slot->start_ticks = ops_ticks(attached.collector->tsc);
	ops_publish(self->thread);
	context->slot = slot;
	range_recorded = true;
	return context;
}

void range_end(const RecordFunction &, ObserverContext *context) noexcept
{
	if (context)
		static_cast<range_context *>(context)->end();
}

/* --- profiler state ------------------------------------------------------------------------------------------------- */

/* The thread's PROFILER_STATE while a session records, which torch propagates to other threads like callbacks. Allocators report
 * to it, and torch's own fast ranges (_RecordFunctionFast) run only if there is one.
 *
 * Other code in torch queries it: _profiler_enabled() and _profiler_type(), which torch.utils.data and RPC call, and the fast
 * ranges, which pass their values only to a profiler that records the shapes of inputs. So it has the class of torch's own
 * states. ProfilerState::CPU is a state that is not disabled, and that torch's own profiler refuses to stop; with
 * ActiveProfilerType::NONE no code mistakes the class for a derived one. */
uint64_t states_gone = 0;

inline bool records_memory()
{
	return __atomic_load_n(&attached.records_memory, __ATOMIC_RELAXED);
}

struct memory_report {
	uint64_t time_ticks;
	uint64_t address;
	int64_t bytes;
	size_t total_allocated;
	size_t total_reserved;
	c10::Device device;
	uint8_t kind;
};

void write_memory(recorder *self, uint64_t session, const memory_report &what) noexcept
{
	ops_slot *const reserved = ops_reserve(attached.collector, self->thread, session, 0);
	auto *const slot = reinterpret_cast<ops_memory_slot *>(reserved);

	if (OPS_UNLIKELY(!slot))
		return;
	slot->address = what.address;
	slot->time_ticks = what.time_ticks;
	slot->bytes = what.bytes;
	slot->total_allocated = what.total_allocated;
	slot->total_reserved = what.total_reserved;
	slot->unused[0] = slot->unused[1] = 0;
	slot->device_index = what.device.index();
	slot->device_type = static_cast<uint16_t>(what.device.type());
	slot->kind = what.kind;
	std::memset(slot->reserved, 0, sizeof(slot->reserved));
	ops_publish(self->thread);
}

class profiler_state final : public torch::profiler::impl::ProfilerStateBase {
public:
	profiler_state(uint64_t of_session, const ops_torch_options &options)
		: ProfilerStateBase(torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::CPU,
	                                                              options.record_shapes)),
		  session(of_session), memory(options.profile_memory)
	{
	}
	void reportMemoryUsage(void *address, int64_t bytes, size_t total_allocated, size_t total_reserved,
	                       c10::Device device) override
	{
		report(OPS_SLOT_MEMORY, address, bytes, total_allocated, total_reserved, device);
	}
	void reportOutOfMemory(int64_t bytes, size_t total_allocated, size_t total_reserved, c10::Device device) override
	{
		report(OPS_SLOT_OOM, nullptr, bytes, total_allocated, total_reserved, device);
	}
	bool memoryProfilingEnabled() const override
	{
		return !attached.own_memory && is_recording();
	}
	torch::profiler::impl::ActiveProfilerType profilerType() override
	{
		return torch::profiler::impl::ActiveProfilerType::NONE;
	}
	bool live() const
	{
		return attached_session() == session;
	}
	~profiler_state() override
	{
		__atomic_add_fetch(&states_gone, 1, __ATOMIC_RELEASE);
	}

private:
	bool is_recording() const
	{
		return memory && records_memory() && live() && ops_collector_epoch(attached.collector) == session;
	}
	void report(uint8_t kind, const void *address, int64_t bytes, size_t total_allocated, size_t total_reserved,
	            c10::Device device) noexcept
	{
		recorder *const self = is_recording() ? current_recorder() : nullptr;

		if (OPS_UNLIKELY(!self))
			return;
		if (attached.own_memory && kind == OPS_SLOT_MEMORY && bytes > 0)
			sizes::put(sizes::key_of(address, device), static_cast<uint64_t>(bytes));
		else if (attached.own_memory && kind == OPS_SLOT_MEMORY)
			sizes::remove(sizes::key_of(address, device));
		write_memory(self, session, {ops_ticks(attached.collector->tsc), reinterpret_cast<uintptr_t>(address), bytes,
		                             total_allocated, total_reserved, device, kind});
	}

	const uint64_t session;
	const bool memory;
};

const auto state_kind = c10::DebugInfoKind::PROFILER_STATE;

/* The state that was last seen on this thread and was valid: checking its class takes longer than recording an operator. After a
 * state is destroyed, another object may be at its address. */
struct seen_state {
	const c10::DebugInfoBase *state;
	uint64_t session;
	uint64_t gone;
};
__attribute__((tls_model("initial-exec"))) thread_local seen_state seen = {};

void push_state(uint64_t session)
{
	ThreadLocalDebugInfo::_push(state_kind, std::make_shared<profiler_state>(session, attached.options));
}

/* For memory in all threads. Threads that record only because all threads do have not inherited the state: they get it with the
 * first operator, allocation or free, and again after a scope in which torch restores an earlier state. After the session it
 * remains, inactive, in all threads except the one that stops, because no thread can change another's state: such a thread cannot
 * start torch.profiler itself ("already enabled on this thread") before it has started a session of ours once. */
void ensure_state() noexcept
{
	try {
		const uint64_t gone = __atomic_load_n(&states_gone, __ATOMIC_ACQUIRE), session = attached_session();
		c10::DebugInfoBase *const state = ThreadLocalDebugInfo::get(state_kind);
		if (OPS_LIKELY(state && state == seen.state && session == seen.session && gone == seen.gone))
			return;
		const auto *present = dynamic_cast<profiler_state *>(state);
		if (present && present->live())
			seen = {state, session, gone};
		else if (present || !state)
			push_state(session);
	} catch (...) { /* if out of memory, this thread's reports are missing */
	}
}

void prepare_thread() noexcept
{
	if (attached.needs_state && attached_session())
		ensure_state();
}

/* --- reports of our allocator ----------------------------------------------------------------------------------------- */

/* Returns the recorder if reports of the allocator are recorded now. */
OPS_INLINE recorder *memory_recorder(uint64_t *ret_epoch) noexcept
{
	if (OPS_LIKELY(!attached.own_memory || !records_memory()))
		return nullptr;
	*ret_epoch = ops_collector_epoch(attached.collector);
	return *ret_epoch && *ret_epoch == attached_session() ? current_recorder() : nullptr;
}

/* Records `bytes` of CPU memory. */
void note_memory(recorder *self, uint64_t epoch, uint8_t kind, const void *memory, int64_t bytes) noexcept
{
	const int64_t change = kind == OPS_SLOT_MEMORY ? bytes : 0;
	const int64_t total = __atomic_add_fetch(&attached.cpu_bytes, change, __ATOMIC_RELAXED);

	write_memory(self, epoch, {ops_ticks(attached.collector->tsc), reinterpret_cast<uintptr_t>(memory), bytes,
	                           static_cast<size_t>(total > 0 ? total : 0), 0, c10::Device(c10::DeviceType::CPU), kind});
}

void note_allocated(const void *memory, size_t bytes) noexcept
{
	uint64_t epoch;
	recorder *const self = memory ? memory_recorder(&epoch) : nullptr;

	if (OPS_LIKELY(!self))
		return;
	sizes::put(sizes::key_of(memory, c10::Device(c10::DeviceType::CPU)), bytes);
	note_memory(self, epoch, OPS_SLOT_MEMORY, memory, static_cast<int64_t>(bytes));
}

void note_failed(size_t bytes) noexcept
{
	uint64_t epoch;
	recorder *const self = memory_recorder(&epoch);

	if (self)
		note_memory(self, epoch, OPS_SLOT_OOM, nullptr, static_cast<int64_t>(bytes));
}

/* Frees of memory that was allocated before are not recorded, as torch does it. */
void note_freed(const void *memory) noexcept
{
	uint64_t epoch;
	recorder *const self = memory ? memory_recorder(&epoch) : nullptr;

	if (OPS_LIKELY(!self))
		return;
	const uint64_t bytes = sizes::remove(sizes::key_of(memory, c10::Device(c10::DeviceType::CPU)));
	if (bytes)
		note_memory(self, epoch, OPS_SLOT_MEMORY, memory, -static_cast<int64_t>(bytes));
}

/* Records all allocations as freed, because their frees will not be recorded. */
void forget_allocations() noexcept
{
	const uint64_t epoch = ops_collector_epoch(attached.collector);
	recorder *const self = epoch && epoch == attached_session() ? current_recorder() : nullptr;

	sizes::drain([self, epoch](uint64_t key, uint64_t bytes) {
		const c10::Device device(static_cast<c10::DeviceType>(key >> 58), static_cast<c10::DeviceIndex>((key >> 52 & 63) == 63 ? -1 : static_cast<int>(key >> 52 & 63)));
		if (self)
			write_memory(self, epoch, {ops_ticks(attached.collector->tsc), key & ((uint64_t{1} << 52) - 1),
			                           -static_cast<int64_t>(bytes), 0, 0, device, OPS_SLOT_MEMORY});
	});
	__atomic_store_n(&attached.cpu_bytes, 0, __ATOMIC_RELAXED);
}

/* --- own ranges for observers --------------------------------------------------------------------------------------- */

struct own_range {
	std::vector<c10::IValue> args;
	RecordFunction function{RecordScope::USER_SCOPE};
};

void *own_range_begin(const char *name, const char *args, size_t args_size, bool *ret_recorded) noexcept
{
	try {
		auto range = std::make_unique<own_range>();
		if (args)
			range->args.emplace_back(std::string(args, args_size));
		range_recorded = false;
		if (range->function.isActive())
			range->function.before(name, &range->args);
		*ret_recorded = range_recorded;
		return range.release();
	} catch (...) {
		return nullptr;
	}
}

void own_range_end(void *range) noexcept
{
	delete static_cast<own_range *>(range);
}

/* --- attach and detach ----------------------------------------------------------------------------------------------- */

struct callback_pair {
	RecordFunctionCallback::StartCallback op;
	RecordFunctionCallback::StartCallback range;
};
/* By detail and all_threads. */
template <detail Detail>
constexpr callback_pair callbacks_of[2] = {
	{op_start<Detail, false>, range_start<Detail, false>},
	{op_start<Detail, true>, range_start<Detail, true>},
};
const callback_pair *const callbacks[] = {callbacks_of<with_name>, callbacks_of<with_inputs>, callbacks_of<with_storages>};

detail detail_of(const ops_torch_options &options)
{
	return !options.record_shapes ? with_name : options.profile_memory ? with_storages : with_inputs;
}

bool is_ours(RecordFunctionCallback::StartCallback start)
{
	for (const callback_pair *by_threads : callbacks)
		for (const callback_pair *pair = by_threads; pair < by_threads + 2; pair++)
			if (start == pair->op || start == pair->range)
				return true;
	return false;
}

bool left_behind = false; /* some thread still has callbacks of a session that another thread stopped */

bool thread_holds(at::CallbackHandle handle)
{
	for (const auto &entry : at::get_record_function_tls_().sorted_tls_callbacks_)
		if (entry.handle_ == handle)
			return true;
	return false;
}

/* Returns whether the calling callback belongs to the attached session. */
bool is_live(bool global)
{
	if (!attached_session() || (attached.reach == all_threads) != global)
		return false;
	return attached.reach != inheriting_checked || thread_holds(attached.op_handle);
}

/* Removes from this thread's state everything that sessions other than the attached one left in it. Works inside a callback, too:
 * a RecordFunction has its own copy of the callbacks it runs. */
void leave_thread() noexcept
{
	try {
		const uint64_t session = attached_session();
		at::CallbackHandle stale[16];
		size_t count = 0;
		for (const auto &entry : at::get_record_function_tls_().sorted_tls_callbacks_) {
			const bool live = session && (entry.handle_ == attached.op_handle || entry.handle_ == attached.range_handle);
			if (!live && is_ours(entry.callback_.start()) && count < sizeof(stale) / sizeof(stale[0]))
				stale[count++] = entry.handle_;
		}
		if (count > 0) {
			const std::lock_guard<std::mutex> held(forking::changing);
			while (count > 0)
				at::removeCallback(stale[--count]);
		}
		const auto *state = dynamic_cast<profiler_state *>(ThreadLocalDebugInfo::get(state_kind));
		if (state && !state->live())
			ThreadLocalDebugInfo::_pop(state_kind); /* throws if something was pushed over it; then it stays */
	} catch (...) {
	}
}

void remove_global_callbacks()
{
	if (attached.reach == all_threads) {
		const std::lock_guard<std::mutex> held(forking::changing);
		for (const uint64_t handle : {attached.op_handle, attached.range_handle})
			if (handle)
				at::removeCallback(handle);
	}
	attached.op_handle = attached.range_handle = 0;
}

void detach() noexcept
{
	__atomic_store_n(&attached.session, 0, __ATOMIC_RELEASE);
	if (attached.observes)
		observing::count_observers(-1);
	attached.observes = false;
	allocator::remove();
	device_events::close();
	left_behind = left_behind || (attached.reach != all_threads && !thread_holds(attached.op_handle));
	try {
		remove_global_callbacks();
	} catch (...) {
	}
	leave_thread();
}

/* Leaves out the three scopes that only occur in a torch built for tracing selective mobile builds: torch allocates memory for
 * every scope of a callback whenever it sets a thread's state, which it does twice for each backward node. */
RecordFunctionCallback op_callback(RecordFunctionCallback::StartCallback start)
{
	return RecordFunctionCallback(start)
		.needsInputs(attached.options.record_shapes)
		.scopes({RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION, RecordScope::TORCHSCRIPT_FUNCTION,
		         RecordScope::LITE_INTERPRETER, RecordScope::STATIC_RUNTIME_OP, RecordScope::STATIC_RUNTIME_MODEL});
}

/* Always with inputs, because the argument text is one. */
RecordFunctionCallback range_callback(RecordFunctionCallback::StartCallback start)
{
	return RecordFunctionCallback(start, range_end).needsInputs(true).scopes({RecordScope::USER_SCOPE});
}

/* Returns whether torch has a device with separate memory. */
bool has_device()
{
	for (const auto type : {c10::DeviceType::CUDA, c10::DeviceType::HIP, c10::DeviceType::XPU, c10::DeviceType::MPS,
	                        c10::DeviceType::MTIA, c10::DeviceType::PrivateUse1})
		if (c10::impl::hasDeviceGuardImpl(type))
			return true;
	return false;
}

/* Until `session` is set, callbacks regard themselves as outdated. No operator runs on this thread meanwhile, and other threads,
 * which may see global callbacks, do not find them in their state to remove. */
void add_callbacks()
{
	const auto &options = attached.options;
	const callback_pair &pair = callbacks[detail_of(options)][options.all_threads];
	const auto add = options.all_threads ? at::addGlobalCallback : at::addThreadLocalCallback;
	const std::lock_guard<std::mutex> held(forking::changing);

	attached.op_handle = add(op_callback(pair.op));
	attached.range_handle = add(range_callback(pair.range));
}

/* A forked child has no session. Its callbacks belong to a session that has ended. */
void forked()
{
	forking::in_child();
	sizes::forked();
	__atomic_store_n(&attached.session, 0, __ATOMIC_RELEASE);
	device_events::forked();
}

const char *first_attach(const ops_collector *collector)
{
	if (pthread_key_create(&exit_key, thread_exit) != 0)
		return "all thread keys of the process are in use";
	if (pthread_atfork(forking::before, forking::in_parent, forked) != 0) {
		pthread_key_delete(exit_key);
		return "out of memory";
	}
	attached.collector = collector;
	return nullptr;
}

const char *attach(const ops_collector *collector, const ops_torch_options *options) noexcept
{
	const char *refusal = attached.collector ? nullptr : first_attach(collector);

	if (refusal)
		return refusal;
	try {
		if (!forking::can_change())
			return "this process was forked while another thread held a lock of torch's; profile in a process that is spawned";
		remove_global_callbacks(); /* in a forked child */
		leave_thread();
		if (ThreadLocalDebugInfo::get(state_kind))
			return "torch.profiler (or another profiler that uses torch's profiler state) is recording on this thread";
		attached.options = *options;
		attached.own_memory = attached.needs_state = false;
		attached.more = options->script_stacks || options->script_modules || options->counters || options->device_events;
		attached.observes = options->record_ids || options->device_events != OPS_DEVICE_EVENTS_NONE;
		if (attached.observes)
			observing::count_observers(1);
		attached.reach = options->all_threads ? all_threads : left_behind ? inheriting_checked : inheriting;
		const uint64_t session = ops_collector_epoch(collector);
		if (options->device_events != OPS_DEVICE_EVENTS_NONE)
			device_events::open(session, options->device_events);
		push_state(session);
		add_callbacks();
		sizes::drain([](uint64_t, uint64_t) {});
		attached.cpu_bytes = 0;
		if (options->all_threads && options->profile_memory)
			attached.own_memory = allocator::put() && options->own_memory;
		attached.needs_state = options->all_threads && options->profile_memory && (!attached.own_memory || has_device());
		__atomic_store_n(&attached.records_memory, options->profile_memory, __ATOMIC_RELAXED);
		__atomic_store_n(&attached.session, session, __ATOMIC_RELEASE);
		return nullptr;
	} catch (...) {
		detach();
		return "out of memory";
	}
}

/* Adds or removes a global callback. Each change makes all threads compute their lists of callbacks again. A callback that is only
 * disabled is still copied twice for each node of a backward pass, whenever torch sets the state of a thread. */
void set_global_callback(uint64_t *handle, bool wanted, RecordFunctionCallback callback)
{
	if (wanted && !*handle)
		*handle = at::addGlobalCallback(callback);
	else if (!wanted && *handle)
		at::removeCallback(std::exchange(*handle, 0));
}

/* Memory of torch's own allocator is freed without a call of ours, so what is not recorded has no frees either. */
void set_allocations(ops_allocations allocations)
{
	const bool was_recorded = records_memory(), is_recorded = allocations != OPS_ALLOCATIONS_NONE;

	if (allocations != OPS_ALLOCATIONS_ALL)
		allocator::remove();
	if (was_recorded && !is_recorded)
		__atomic_store_n(&attached.records_memory, false, __ATOMIC_RELAXED);
	if (was_recorded != is_recorded)
		forget_allocations();
	if (allocations == OPS_ALLOCATIONS_ALL)
		__atomic_store_n(&attached.records_memory, allocator::put(), __ATOMIC_RELAXED);
	else if (is_recorded)
		__atomic_store_n(&attached.records_memory, true, __ATOMIC_RELAXED);
}

/* Only torch can change the callbacks of a single thread, on that thread, so they stay. Torch's own reports of allocations stay, too,
 * because its table of sizes would miss frees. */
void set_detail(bool operators, bool ranges, ops_allocations allocations) noexcept
{
	try {
		const std::lock_guard<std::mutex> held(forking::changing);
		if (!attached_session() || attached.reach != all_threads)
			return;
		const callback_pair &pair = callbacks[detail_of(attached.options)][true];
		set_global_callback(&attached.op_handle, operators, op_callback(pair.op));
		set_global_callback(&attached.range_handle, ranges, range_callback(pair.range));
		if (attached.own_memory)
			set_allocations(allocations);
	} catch (...) {
	}
}

void set_state(bool wanted) noexcept
{
	try {
		const auto *const state = dynamic_cast<profiler_state *>(ThreadLocalDebugInfo::get(state_kind));
		if (!attached_session() || attached.reach != all_threads)
			return;
		if (wanted)
			ensure_state();
		else if (state && state->live())
			ThreadLocalDebugInfo::_pop(state_kind); /* throws if something was pushed over it; then it stays */
	} catch (...) {
	}
}

bool is_tracing() noexcept
{
	return &torch::jit::tracer::getTracingState && torch::jit::tracer::getTracingState() != nullptr;
}

bool forward_backward_enabled() noexcept
{
	try {
		return !&torch::profiler::impl::get_fwd_bwd_enabled || torch::profiler::impl::get_fwd_bwd_enabled();
	} catch (...) {
		return true;
	}
}

const ops_torch_bridge bridge = {
	OPS_TORCH_BRIDGE_ABI, OPS_COLLECTOR_ABI, OPS_TORCH_VERSION, attach, detach, set_detail, set_state,
	observing::open, observing::begin, observing::pause, observing::close,
	&attached.observed, own_range_begin, own_range_end,
	tensor_storage, storage_hold, storage_look, storage_drop,
	device_events::available, device_events::pop_times,
	is_tracing, forward_backward_enabled,
};

} // namespace

void observing::count_observers(int change)
{
	__atomic_add_fetch(&attached.observed, change, __ATOMIC_RELAXED);
}

extern "C" __attribute__((visibility("default"))) const ops_torch_bridge *ops_torch_bridge_get(void)
{
	return &bridge;
}
