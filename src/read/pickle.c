/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack machine of pickles, protocols 2 to 5 (Python's pickletools describes the opcodes).
 */
#include "read/pickle.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/text.h"

/* Opcodes, by the names of pickletools. */
enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_POP = '0',
	OP_POP_MARK = '1',
	OP_BINFLOAT = 'G',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_NONE = 'N',
	OP_BINUNICODE = 'X',
	OP_BINBYTES = 'B',
	OP_SHORT_BINBYTES = 'C',
	OP_EMPTY_LIST = ']',
	OP_EMPTY_DICT = '}',
	OP_EMPTY_TUPLE = ')',
	OP_APPEND = 'a',
	OP_APPENDS = 'e',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_SETITEM = 's',
	OP_SETITEMS = 'u',
	OP_TUPLE = 't',
	OP_PROTO = 0x80,
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
	OP_LONG4 = 0x8b,
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE8 = 0x8d,
	OP_BINBYTES8 = 0x8e,
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
};

/* On the stack, a value takes 8 bytes: three bits are its kind, the others a small integer or an index. In the memo, which has each
 * list and dict of the file, it takes 4. */
enum slot_kind { SLOT_NONE, SLOT_BOOL, SLOT_SMALL, SLOT_INTEGER, SLOT_REAL, SLOT_TEXT, SLOT_CONTAINER, SLOT_BIG };
typedef uint64_t slot_t;
#define SLOT(kind, value) ((slot_t)(value) << 3 | (kind))
#define SLOT_SMALL_MAX (INT64_C(1) << 60)
#define MEMO_UNSET UINT32_MAX /* of unused numbers */

/* What a list or dict became: four bits are the type of its record, the others its number. There are as many as lists and dicts. */
typedef uint32_t container_t;
#define CONTAINER_TYPES 16
#define CONTAINER_NUMBERS (UINT32_MAX / CONTAINER_TYPES)

struct machine {
	struct ops_reading *in;
	struct pickle_visitor *visitor;
	OPS_ARRAY(slot_t) stack;
	OPS_ARRAY(size_t) marks; /* heights of the stack */
	OPS_ARRAY(uint32_t) memo; /* values that fit into 32 bits, or MEMO_UNSET */
	OPS_ARRAY(container_t) containers;
	OPS_ARRAY(int64_t) integers; /* integers that are not small */
	OPS_ARRAY(double) reals;
	OPS_ARRAY(struct pickle_value) values; /* values of the current container */
	enum ops_code code;
	bool stopped;
};

static bool pickle_fail(struct machine *m, const char *why)
{
	m->code = ops_reading_fault(m->in, m->in->window.at, why);
	return false;
}

static bool pickle_fail_memory(struct machine *m)
{
	m->code = ops_fault_memory(m->in->error);
	return false;
}

/* --- values --------------------------------------------------------------------------------------------------------- */

static bool push(struct machine *m, slot_t slot)
{
	slot_t *place = OPS_ARRAY_PUSH(&m->stack);

	if (!place)
		return pickle_fail_memory(m);
	*place = slot;
	return true;
}

static bool push_integer(struct machine *m, int64_t value)
{
	int64_t *kept;

	if (value > -SLOT_SMALL_MAX && value < SLOT_SMALL_MAX)
		return push(m, SLOT(SLOT_SMALL, value));
	kept = OPS_ARRAY_PUSH(&m->integers);
	if (!kept)
		return pickle_fail_memory(m);
	*kept = value;
	return push(m, SLOT(SLOT_INTEGER, m->integers.count - 1));
}

static bool push_real(struct machine *m, double value)
{
	double *kept = OPS_ARRAY_PUSH(&m->reals);

	if (!kept)
		return pickle_fail_memory(m);
	*kept = value;
	return push(m, SLOT(SLOT_REAL, m->reals.count - 1));
}

static bool push_container(struct machine *m)
{
	if (!OPS_ARRAY_APPEND(&m->containers, 0))
		return pickle_fail_memory(m);
	return push(m, SLOT(SLOT_CONTAINER, m->containers.count - 1));
}

static struct pickle_value value_of(const struct machine *m, slot_t slot)
{
	uint64_t index = slot >> 3;

	switch ((enum slot_kind)(slot & 7)) {
	case SLOT_BOOL:
		return (struct pickle_value){.kind = PICKLE_BOOL, .integer = (int64_t)index};
	case SLOT_SMALL:
		return (struct pickle_value){.kind = PICKLE_INTEGER, .integer = (int64_t)slot >> 3};
	case SLOT_INTEGER:
		return (struct pickle_value){.kind = PICKLE_INTEGER, .integer = m->integers.items[index]};
	case SLOT_REAL:
		return (struct pickle_value){.kind = PICKLE_REAL, .real = m->reals.items[index]};
	case SLOT_TEXT:
		return (struct pickle_value){.kind = PICKLE_TEXT, .number = (uint32_t)index};
	case SLOT_CONTAINER:
		return (struct pickle_value){.kind = PICKLE_RECORD, .type = m->containers.items[index] % CONTAINER_TYPES,
		                             .number = m->containers.items[index] / CONTAINER_TYPES};
	case SLOT_BIG:
		return (struct pickle_value){.kind = PICKLE_BIG};
	case SLOT_NONE:
		break;
	}
	return (struct pickle_value){.kind = PICKLE_NONE};
}

/* --- the memo ------------------------------------------------------------------------------------------------------- */

/* Makes a value fit into the memo. */
static bool narrow(struct machine *m, slot_t slot, uint32_t *ret_slot)
{
	if ((slot & 7) == SLOT_SMALL && slot >= MEMO_UNSET) {
		if (!OPS_ARRAY_APPEND(&m->integers, (int64_t)slot >> 3))
			return pickle_fail_memory(m);
		slot = SLOT(SLOT_INTEGER, m->integers.count - 1);
	}
	if (slot >= MEMO_UNSET)
		return pickle_fail(m, "too many values");
	*ret_slot = (uint32_t)slot;
	return true;
}

/* Numbers are assigned in order, though some may be skipped; a number far beyond the previous ones is invalid. */
static bool put(struct machine *m, uint64_t place)
{
	if (!m->stack.count)
		return pickle_fail(m, "nothing to remember");
	if (place > 2 * m->memo.count + 1024)
		return pickle_fail(m, "a memo index far beyond the others");
	while (m->memo.count <= place) {
		if (!OPS_ARRAY_APPEND(&m->memo, MEMO_UNSET))
			return pickle_fail_memory(m);
	}
	return narrow(m, m->stack.items[m->stack.count - 1], &m->memo.items[place]);
}

static bool get(struct machine *m, uint64_t place)
{
	if (place >= m->memo.count || m->memo.items[place] == MEMO_UNSET)
		return pickle_fail(m, "a memo index that was not set");
	return push(m, m->memo.items[place]);
}

/* --- containers ----------------------------------------------------------------------------------------------------- */

/* Returns the height of the stack at the last mark, which is removed. */
static bool pop_mark(struct machine *m, size_t *ret_height)
{
	if (!m->marks.count)
		return pickle_fail(m, "items without a mark");
	*ret_height = m->marks.items[--m->marks.count];
	return true;
}

/* Passes the items of the stack from `height` on to the container. */
static bool pickle_add_items(struct machine *m, slot_t container, size_t height, bool as_dict)
{
	size_t count = m->stack.count - height;
	struct pickle_value became = value_of(m, container);
	enum ops_code (*visit)(struct pickle_visitor *, const struct pickle_value *, size_t, struct pickle_value *) =
		as_dict ? m->visitor->on_dict : m->visitor->on_list;

	m->values.count = 0;
	for (size_t i = height; i < m->stack.count; i++) {
		struct pickle_value *value = OPS_ARRAY_PUSH(&m->values);

		if (!value)
			return pickle_fail_memory(m);
		*value = value_of(m, m->stack.items[i]);
	}
	m->stack.count = height;
	m->code = visit(m->visitor, m->values.items, as_dict ? count / 2 : count, &became);
	if (m->code)
		return false;
	if (became.type >= CONTAINER_TYPES || became.number >= CONTAINER_NUMBERS)
		return pickle_fail(m, "too many values");
	m->containers.items[container >> 3] = became.number * CONTAINER_TYPES + became.type;
	return true;
}

/* The items are above their container on the stack. */
static bool add_items(struct machine *m, size_t height, bool as_dict)
{
	slot_t container = height && height <= m->stack.count ? m->stack.items[height - 1] : 0;

	if ((container & 7) != SLOT_CONTAINER)
		return pickle_fail(m, "items for a value that is not a container");
	if (as_dict && (m->stack.count - height) % 2)
		return pickle_fail(m, "a key without a value");
	return pickle_add_items(m, container, height, as_dict);
}

/* Makes the items a tuple, which is treated as a list. */
static bool make_tuple(struct machine *m, size_t height)
{
	slot_t tuple;

	if (height > m->stack.count)
		return pickle_fail(m, "a tuple with more items than the stack has");
	if (!push_container(m))
		return false;
	tuple = m->stack.items[--m->stack.count];
	return pickle_add_items(m, tuple, height, false) && push(m, tuple);
}

static bool add_above_mark(struct machine *m, bool as_dict)
{
	size_t height;

	return pop_mark(m, &height) && add_items(m, height, as_dict);
}

/* Adds items without a mark: the top `count` of the stack. */
static bool add_last(struct machine *m, size_t count, bool as_dict)
{
	if (m->stack.count <= count)
		return pickle_fail(m, "too few items");
	return add_items(m, m->stack.count - count, as_dict);
}

static bool make_last_tuple(struct machine *m, size_t count)
{
	return make_tuple(m, m->stack.count >= count ? m->stack.count - count : SIZE_MAX);
}

/* --- bytes ---------------------------------------------------------------------------------------------------------- */

static bool need(struct machine *m, size_t size)
{
	m->code = ops_reading_need(m->in, size);
	return m->code == OPS_OK;
}

/* Reads a number of `size` bytes, lowest byte first. */
static bool pickle_read_number(struct machine *m, size_t size, uint64_t *ret_number)
{
	if (!need(m, size))
		return false;
	*ret_number = 0;
	for (size_t i = 0; i < size; i++)
		*ret_number |= (uint64_t)(uint8_t)m->in->window.at[i] << 8 * i;
	m->in->window.at += size;
	return true;
}

/* Reads an integer of `size` bytes in two's complement. */
static bool read_long(struct machine *m, uint64_t size)
{
	uint64_t number;

	if (size > 8) {
		if (size > OPS_WINDOW_VALUE_MAX)
			return pickle_fail(m, "a number with too many digits");
		if (!need(m, size))
			return false;
		m->in->window.at += size;
		return push(m, SLOT(SLOT_BIG, 0));
	}
	if (!pickle_read_number(m, size, &number))
		return false;
	if (size && size < 8 && number >> (8 * size - 1))
		number |= ~UINT64_C(0) << 8 * size;
	return push_integer(m, (int64_t)number);
}

static bool read_real(struct machine *m)
{
	uint64_t bits = 0;
	double value;

	if (!need(m, 8))
		return false;
	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | (uint8_t)m->in->window.at[i];
	m->in->window.at += 8;
	memcpy(&value, &bits, sizeof(value));
	return push_real(m, value);
}

/* Reads a text preceded by its size, which has `size_bytes` bytes. */
static bool read_text(struct machine *m, size_t size_bytes)
{
	uint64_t size;
	uint32_t id;

	if (!pickle_read_number(m, size_bytes, &size))
		return false;
	if (size > OPS_WINDOW_VALUE_MAX)
		return pickle_fail(m, "a text that is too long");
	if (!need(m, size))
		return false;
	id = ops_builder_string(m->in->builder, m->in->window.at, size);
	m->in->window.at += size;
	return id == OPS_NONE ? pickle_fail_memory(m) : push(m, SLOT(SLOT_TEXT, id));
}

static bool push_mark(struct machine *m)
{
	size_t *mark = OPS_ARRAY_PUSH(&m->marks);

	if (!mark)
		return pickle_fail_memory(m);
	*mark = m->stack.count;
	return true;
}

static bool pop(struct machine *m)
{
	if (!m->stack.count)
		return pickle_fail(m, "the stack is empty");
	m->stack.count--;
	return true;
}

/* --- main loop ------------------------------------------------------------------------------------------------------ */

static bool do_number(struct machine *m, enum opcode op)
{
	uint64_t number;

	switch (op) {
	case OP_BININT:
		return pickle_read_number(m, 4, &number) && push_integer(m, (int32_t)(uint32_t)number);
	case OP_BININT1:
		return pickle_read_number(m, 1, &number) && push_integer(m, (int64_t)number);
	case OP_BININT2:
		return pickle_read_number(m, 2, &number) && push_integer(m, (int64_t)number);
	case OP_LONG1:
		return pickle_read_number(m, 1, &number) && read_long(m, number);
	case OP_LONG4:
		return pickle_read_number(m, 4, &number) && read_long(m, number);
	case OP_BINGET:
		return pickle_read_number(m, 1, &number) && get(m, number);
	case OP_LONG_BINGET:
		return pickle_read_number(m, 4, &number) && get(m, number);
	case OP_BINPUT:
		return pickle_read_number(m, 1, &number) && put(m, number);
	case OP_LONG_BINPUT:
		return pickle_read_number(m, 4, &number) && put(m, number);
	case OP_PROTO: /* announces the newest opcode; the actual opcodes decide */
		return pickle_read_number(m, 1, &number);
	case OP_FRAME: /* announces how much may be read at once */
		return pickle_read_number(m, 8, &number);
	default:
		m->in->window.at--;
		return pickle_fail(m, "an opcode that imports or calls something, which pickles of plain data do not contain");
	}
}

static bool do_opcode(struct machine *m, enum opcode op)
{
	size_t height;

	switch (op) {
	case OP_MARK:
		return push_mark(m);
	case OP_STOP:
		m->stopped = true;
		return m->stack.count == 1 || pickle_fail(m, "the end, but not exactly one value");
	case OP_POP:
		return pop(m);
	case OP_POP_MARK:
		return pop_mark(m, &height) && (m->stack.count = height, true);
	case OP_NONE:
		return push(m, SLOT(SLOT_NONE, 0));
	case OP_NEWTRUE:
		return push(m, SLOT(SLOT_BOOL, 1));
	case OP_NEWFALSE:
		return push(m, SLOT(SLOT_BOOL, 0));
	case OP_BINFLOAT:
		return read_real(m);
	case OP_SHORT_BINUNICODE:
	case OP_SHORT_BINBYTES:
		return read_text(m, 1);
	case OP_BINUNICODE:
	case OP_BINBYTES:
		return read_text(m, 4);
	case OP_BINUNICODE8:
	case OP_BINBYTES8:
		return read_text(m, 8);
	case OP_EMPTY_LIST:
	case OP_EMPTY_DICT:
	case OP_EMPTY_TUPLE:
		return push_container(m);
	case OP_APPEND:
		return add_last(m, 1, false);
	case OP_APPENDS:
		return add_above_mark(m, false);
	case OP_SETITEM:
		return add_last(m, 2, true);
	case OP_SETITEMS:
		return add_above_mark(m, true);
	case OP_TUPLE:
		return pop_mark(m, &height) && make_tuple(m, height);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		return make_last_tuple(m, (size_t)(op - OP_TUPLE1) + 1);
	case OP_MEMOIZE:
		return put(m, m->memo.count);
	default:
		return do_number(m, op);
	}
}

enum ops_code pickle_read(struct ops_reading *reading, struct pickle_visitor *visitor, struct pickle_value *ret_top)
{
	struct machine m = {.in = reading, .visitor = visitor};
	uint64_t op;

	while (!m.code && !m.stopped)
		if (pickle_read_number(&m, 1, &op))
			do_opcode(&m, (enum opcode)op);
	if (!m.code)
		*ret_top = value_of(&m, m.stack.items[0]);
	OPS_ARRAY_RELEASE(&m.stack);
	OPS_ARRAY_RELEASE(&m.marks);
	OPS_ARRAY_RELEASE(&m.memo);
	OPS_ARRAY_RELEASE(&m.containers);
	OPS_ARRAY_RELEASE(&m.integers);
	OPS_ARRAY_RELEASE(&m.reals);
	OPS_ARRAY_RELEASE(&m.values);
	return m.code;
}

const struct pickle_value *pickle_find(const struct pickle_dict *dict, const char *name)
{
	for (size_t i = 0; i < dict->count; i++) {
		const struct pickle_value *key = &dict->pairs[2 * i], *value = key + 1;

		if (key->kind == PICKLE_TEXT && ops_string_is(ops_builder_text(dict->in->builder, key->number), name))
			return value->kind == PICKLE_NONE ? NULL : value;
	}
	return NULL;
}

bool pickle_find_integer(const struct pickle_dict *dict, const char *name, int64_t *ret_value)
{
	const struct pickle_value *value = pickle_find(dict, name);
	bool is_integer = value && value->kind == PICKLE_INTEGER;

	*ret_value = is_integer ? value->integer : 0;
	return is_integer;
}

uint32_t pickle_find_text(const struct pickle_dict *dict, const char *name)
{
	const struct pickle_value *value = pickle_find(dict, name);

	return value && value->kind == PICKLE_TEXT ? value->number : 0;
}
