/* SPDX-License-Identifier: Apache-2.0
 *
 * The second half of the torch bridge: observers, which create a node of an execution trace for every operator, with all its
 * inputs and outputs (opstrobe/internal/execution_trace.h). Part of torch_bridge.cpp; a separate file because of its length.
 *
 * Each observer has a place, with a pair of global callbacks for that place, because torch passes no context to callbacks. An
 * operator's inputs are recorded at its start, in the ObserverContext that torch keeps for it, and its outputs at its end, when
 * the node is complete and delivered. A context has the number of its observer, so that it does nothing if it outlives the
 * observer.
 *
 * An observer's lock is held only briefly: never while the sizes of a tensor are queried, which may run Python code.
 */
#ifndef OPS_TORCH_OBSERVER_HPP
#define OPS_TORCH_OBSERVER_HPP

#include "torch_bridge.h"
#include "torch_integers.hpp"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

namespace observing {

using at::RecordFunction;
using at::RecordScope;

constexpr size_t place_count = 8;
constexpr size_t text_max = 8192;    /* longer strings are truncated */
constexpr int depth_max = 16;        /* nested lists */
constexpr char process_name[] = "[pytorch|profiler|execution_trace|process]";
constexpr char thread_name[] = "[pytorch|profiler|execution_trace|thread]";
constexpr uint64_t process_id = 1;

struct place {
	std::mutex lock; /* protects the following members */
	uint64_t number = 0; /* of the observer that uses the place; 0: none */
	bool running = false;
	ops_node_sink sink = {};
	std::shared_ptr<const integers::wishes> integers;
	at::CallbackHandle handle = 0;
	uint64_t last_id = 0;
	std::unordered_map<const void *, uint64_t> objects;  /* ids of tensors, and of storages' bytes, by address */
	std::unordered_map<uint64_t, uint64_t> current; /* by torch's thread number: id of the node in which the thread is */

	uint64_t id_of(const void *object)
	{
		uint64_t &id = objects[object];
		if (!id)
			id = ++last_id;
		return id;
	}
};
inline place places[place_count];
inline uint64_t last_number = 0;
/* Counts the users of torch's own RecordFunctions. */
void count_observers(int change);

inline ops_node_text text_of(const std::string &text)
{
	return {text.data(), text.size()};
}

inline void hand_over(const place &at, const ops_node &node)
{
	at.sink.add(at.sink.context, &node);
}

inline void add_root(const place &at, uint64_t id, uint64_t thread, const char *name)
{
	ops_node node = {};

	node.id = id;
	node.parent = process_id;
	node.sequence_nr = -1;
	node.thread = thread;
	node.scope = static_cast<uint64_t>(RecordScope::USER_SCOPE);
	node.name = {name, std::strlen(name)};
	hand_over(at, node);
}

/* --- values --------------------------------------------------------------------------------------------------------- */

class encoder {
public:
	encoder(place &at, uint64_t number, std::string &out) : at_(at), number_(number), out_(out) {}

	void put(const c10::IValue &value, int depth = 0)
	{
		if (value.isTensor())
			put_tensor(value.toTensor());
		else if (depth < depth_max && value.isTuple())
			put_items(OPS_NODE_TUPLE, value.toTupleRef().elements(), depth);
		else if (depth < depth_max && value.isList())
			put_items(OPS_NODE_LIST, value.toListRef(), depth);
		else
			put_plain(value);
	}

	void put_int(int64_t value)
	{
		put_head(OPS_NODE_INT, 0);
		put_bytes(&value, sizeof(value));
	}

private:
	void put_bytes(const void *bytes, size_t size)
	{
		out_.append(static_cast<const char *>(bytes), size);
		out_.append((8 - size % 8) % 8, '\0');
	}
	void put_head(uint8_t tag, size_t n, uint8_t dtype = 0)
	{
		const ops_node_head head = {tag, dtype, 0, static_cast<uint32_t>(n)};
		put_bytes(&head, sizeof(head));
	}
	void put_text(uint8_t tag, const std::string &text)
	{
		const size_t size = std::min(text.size(), text_max);
		put_head(tag, size);
		put_bytes(text.data(), size);
	}

	template <class Items>
	void put_items(uint8_t tag, const Items &items, int depth)
	{
		put_head(tag, items.size());
		for (const c10::IValue &item : items)
			put(item, depth + 1);
	}

	void put_plain(const c10::IValue &value)
	{
		if (value.isNone())
			put_head(OPS_NODE_NONE, 0);
		else if (value.isInt())
			put_int(value.toInt());
		else if (value.isBool())
			put_head(OPS_NODE_BOOL, value.toBool());
		else if (value.isString())
			put_text(OPS_NODE_STRING, value.toStringRef());
		else if (value.isDevice())
			put_text(OPS_NODE_DEVICE, value.toDevice().str());
		else if (value.isDouble())
			put_double(value.toDouble());
		else
			put_text(OPS_NODE_OTHER, value.tagKind());
	}

	void put_double(double value)
	{
		put_head(OPS_NODE_DOUBLE, 0);
		put_bytes(&value, sizeof(value));
	}

	void put_tensor(const at::Tensor &tensor)
	{
		const at::TensorImpl *impl = tensor.unsafeGetTensorImpl();
		ops_node_tensor fixed = {};
		std::string dimensions; /* sizes, then strides */

		if (!tensor.defined()) {
			put_head(OPS_NODE_TENSOR, 0, static_cast<uint8_t>(c10::ScalarType::Undefined));
			std::strcpy(fixed.device, "cpu");
			put_bytes(&fixed, sizeof(fixed));
			return;
		}
		caffe2::TypeMeta type = impl->dtype();
		const size_t n = describe(impl, &fixed, &dimensions);
		add_ids(impl, &fixed);
		put_head(OPS_NODE_TENSOR, n, static_cast<uint8_t>(type.toScalarType()));
		put_bytes(&fixed, sizeof(fixed));
		out_ += dimensions;
	}

	/* Members that a tensor without plain sizes lacks remain zero. Returns the number of dimensions. */
	static size_t describe(const at::TensorImpl *impl, ops_node_tensor *fixed, std::string *dimensions)
	{
		try {
			const std::string device = impl->device().str();
			device.copy(fixed->device, sizeof(fixed->device) - 1);
			fixed->element_bytes = static_cast<int64_t>(impl->itemsize());
			if (impl->is_nested() || impl->has_symbolic_sizes_strides())
				return 0;
			const auto sizes = impl->sizes();
			const bool strided = impl->layout() == c10::kStrided;
			const auto strides = strided ? impl->strides() : sizes;
			fixed->elements = impl->numel();
			fixed->offset = strided ? impl->storage_offset() : 0;
			dimensions->append(reinterpret_cast<const char *>(sizes.data()), sizes.size() * sizeof(int64_t));
			if (strided)
				dimensions->append(reinterpret_cast<const char *>(strides.data()), sizes.size() * sizeof(int64_t));
			else
				dimensions->append(sizes.size() * sizeof(int64_t), '\0');
			return sizes.size();
		} catch (...) {
			dimensions->clear();
			return 0;
		}
	}

	void add_ids(const at::TensorImpl *impl, ops_node_tensor *fixed)
	{
		const std::lock_guard<std::mutex> held(at_.lock);
		if (at_.number != number_)
			return;
		fixed->id = at_.id_of(impl);
		if (impl->has_storage() && impl->unsafe_storage().unsafeGetStorageImpl())
			fixed->storage_id = at_.id_of(impl->unsafe_storage().data());
	}

	place &at_;
	const uint64_t number_;
	std::string &out_;
};

/* --- operators ------------------------------------------------------------------------------------------------------ */

struct context final : at::ObserverContext {
	uint64_t number = 0;
	uint64_t outer = 0; /* node in which the thread was before */
	ops_node node = {};
	std::string name;
	std::string schema;
	std::string kernel_backend;
	std::string kernel_file;
	std::string inputs;
	std::string tensor_range;
	std::shared_ptr<const integers::wishes> integers; /* NULL: nothing is recorded about them */
};

/* Adds the operator to those in progress. Returns false if the observer does not run any more. */
inline bool enter(place &at, context *op, const RecordFunction &fn)
{
	const std::lock_guard<std::mutex> held(at.lock);
	ops_node &node = op->node;

	if (!at.number || !at.running)
		return false;
	op->number = at.number;
	op->integers = at.integers;
	uint64_t &current = at.current[fn.threadId()];
	if (!current) {
		current = ++at.last_id;
		add_root(at, current, fn.threadId(), thread_name);
	}
	node.id = ++at.last_id;
	node.parent = op->outer = current;
	node.record_id = fn.handle();
	node.sequence_nr = fn.seqNr();
	node.thread = fn.threadId();
	node.forward_thread = fn.forwardThreadId();
	node.scope = static_cast<uint64_t>(fn.scope());
	if (fn.scope() == RecordScope::BACKWARD_FUNCTION) {
		const auto forward = at.current.find(node.forward_thread);
		node.forward_parent = forward == at.current.end() ? 0 : forward->second;
	}
	current = node.id;
	return true;
}

inline const c10::IValue *find(const std::unordered_map<std::string, c10::IValue> &values, const char *key)
{
	const auto found = values.find(key);
	return found == values.end() ? nullptr : &found->second;
}

/* The keyword values of a generated kernel describe its origin. */
inline void describe_kernel(context *op, const RecordFunction &fn, encoder &out)
{
	const auto values = fn.kwinputs();
	const c10::IValue *const backend = find(values, "kernel_backend");
	const c10::IValue *const file = find(values, "kernel_file");
	const c10::IValue *const stream = find(values, "stream");

	if (backend && backend->isString())
		op->kernel_backend = backend->toStringRef();
	if (file && file->isString()) {
		const std::string &path = file->toStringRef();
		op->kernel_file = path.substr(path.find_last_of('/') + 1);
	}
	if (backend && stream && stream->isInt())
		out.put_int(stream->toInt());
}

/* Restores the node in which the thread was before. The lock must be held, and the observer be that of the operator. */
inline void leave(place &at, const context *op)
{
	const auto current = at.current.find(op->node.thread);

	if (current != at.current.end() && current->second == op->node.id)
		current->second = op->outer;
}

/* Returns nothing for an operator whose tensors cannot be read. */
inline std::string read_integers(const context &op, const RecordFunction &fn) noexcept
{
	try {
		return integers::reader(*op.integers, op.name, op.node.id).read(fn.inputs());
	} catch (...) {
		return {};
	}
}

template <size_t I>
std::unique_ptr<at::ObserverContext> start(const RecordFunction &fn) noexcept
{
	place &at = places[I];
	std::unique_ptr<context> op(new (std::nothrow) context);

	try {
		if (!op || !enter(at, op.get(), fn))
			return nullptr;
		op->name = fn.name();
		if (const auto schema = fn.operator_schema())
			op->schema = c10::toString(*schema);
		encoder out(at, op->number, op->inputs);
		for (const c10::IValue &value : fn.inputs())
			out.put(value);
		if (op->schema.empty())
			describe_kernel(op.get(), fn, out);
		if (op->integers)
			op->tensor_range = read_integers(*op, fn);
		return op;
	} catch (...) { /* out of memory: the node is lost */
		const std::lock_guard<std::mutex> held(at.lock);
		if (op->number && at.number == op->number)
			leave(at, op.get());
		return nullptr;
	}
}

/* Also called after a stop: operators that began before it are part of the trace. */
template <size_t I>
void end(const RecordFunction &fn, at::ObserverContext *given) noexcept
{
	place &at = places[I];
	auto *op = static_cast<context *>(given);

	if (!op)
		return;
	try {
		std::string outputs;
		encoder out(at, op->number, outputs);
		for (const c10::IValue &value : fn.outputs())
			out.put(value);
		op->node.name = text_of(op->name);
		op->node.schema = text_of(op->schema);
		op->node.kernel_backend = text_of(op->kernel_backend);
		op->node.kernel_file = text_of(op->kernel_file);
		op->node.tensor_range = text_of(op->tensor_range);
		op->node.inputs = text_of(op->inputs);
		op->node.outputs = text_of(outputs);
		const std::lock_guard<std::mutex> held(at.lock);
		if (at.number != op->number)
			return;
		leave(at, op);
		hand_over(at, op->node);
	} catch (...) {
	}
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

template <size_t... I>
at::RecordFunctionCallback make_callback(size_t place, std::index_sequence<I...>)
{
	static constexpr at::RecordFunctionCallback::StartCallback starts[] = {start<I>...};
	static constexpr at::RecordFunctionCallback::EndCallback ends[] = {end<I>...};

	return at::RecordFunctionCallback(starts[place], ends[place]).needsInputs(true).needsOutputs(true).needsIds(true);
}

inline place *place_of(uint64_t observer)
{
	for (place &at : places)
		if (observer && at.number == observer)
			return &at;
	return nullptr;
}

/* A forked child has no observers; the owners of the locks are unknown. */
inline void forked()
{
	for (place &at : places) {
		new (&at.lock) std::mutex;
		if (at.running)
			count_observers(-1);
		at.number = 0;
		at.running = false;
	}
}

/* Removes the callbacks that a parent left in the place. */
inline void remove_callbacks(place &at) noexcept
{
	try {
		if (at.handle)
			at::removeCallback(at.handle);
	} catch (...) {
	}
	at.handle = 0;
}

/* Returns false if out of memory. */
inline bool copy_wishes(const ops_integer_options &options, std::shared_ptr<const integers::wishes> *ret_wishes) noexcept
{
	try {
		if (options.ranges || options.data_of[0])
			*ret_wishes = std::make_shared<const integers::wishes>(integers::wishes_of(options));
		return true;
	} catch (...) {
		return false;
	}
}

inline const char *open(const ops_node_sink *sink, const ops_integer_options *options, uint64_t *ret_observer) noexcept
{
	static const bool fork_safe = pthread_atfork(nullptr, nullptr, forked) == 0;
	std::shared_ptr<const integers::wishes> wishes;

	if (!fork_safe || !copy_wishes(*options, &wishes))
		return "out of memory";
	for (place &at : places) {
		if (!at.number)
			remove_callbacks(at);
		const std::lock_guard<std::mutex> held(at.lock);
		if (at.number)
			continue;
		at.sink = *sink;
		at.integers = wishes;
		at.last_id = process_id;
		at.objects.clear();
		at.current.clear();
		at.number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
		*ret_observer = at.number;
		return nullptr;
	}
	return "eight execution trace observers are registered already";
}

inline void pause(uint64_t observer) noexcept
{
	place *at = place_of(observer);

	if (!at || !at->running)
		return;
	remove_callbacks(*at);
	count_observers(-1);
	const std::lock_guard<std::mutex> held(at->lock);
	at->running = false;
}

inline const char *begin(uint64_t observer) noexcept
{
	place *at = place_of(observer);

	if (!at || at->running)
		return nullptr;
	try {
		{
			const std::lock_guard<std::mutex> held(at->lock);
			at->running = true;
		}
		count_observers(1);
		at->handle = at::addGlobalCallback(
			make_callback(static_cast<size_t>(at - places), std::make_index_sequence<place_count>()));
		return nullptr;
	} catch (...) {
		pause(observer);
		return "out of memory";
	}
}

inline void close(uint64_t observer) noexcept
{
	place *at = place_of(observer);

	if (!at)
		return;
	pause(observer);
	const std::lock_guard<std::mutex> held(at->lock);
	try {
		add_root(*at, process_id, 0, process_name);
	} catch (...) {
	}
	at->number = 0;
	at->sink = {};
}

} // namespace observing

#endif
