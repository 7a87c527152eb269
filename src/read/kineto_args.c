/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an event: those with a column are stored there, the others are kept as text. Texts repeat from event to event,
 * so results are looked up by their bytes, and only new texts are parsed.
 */
#include "read/kineto.h"

#include <string.h>

#include "base/alloc.h"

/* Tables of texts are cleared when they reach this size: they would fill memory for a file in which every event has its own. */
#define TEXTS_MAX 65536u

enum arg {
	ARG_EXTRA, /* an argument without a column */
	ARG_DIMS,
	ARG_TYPES,
	ARG_STRIDES,
	ARG_CONCRETE,
	ARG_EXTERNAL_ID,
	ARG_CORRELATION,
	ARG_SEQUENCE,
	ARG_FORWARD_THREAD,
	ARG_PYTHON_ID,
	ARG_PYTHON_PARENT,
	ARG_PYTHON_MODULE,
	ARG_CALL_STACK,
	ARG_OVERLOAD,
	ARG_TEXT,
	ARG_RECORD_FUNCTION_ID,
	ARG_ROW,
	ARG_FINISHED,
	ARG_CUT,
	ARG_SCOPE,
	ARG_ASYNC,
	ARG_END_TRACK,
	ARG_RAW_NAME,
	ARG_FUNCTION,
	ARG_CALL_FROM,
	ARG_CALL_LINE,
	ARG_MODULE,
	ARG_STORAGES,
};

#define FIRST_INPUT ARG_DIMS
#define INPUT_COUNT 4

static const struct {
	const char *name;
	uint8_t size;
	uint8_t arg;
	bool own; /* has a meaning only in Opstrobe's files */
} arg_names[] = {
#define NAME(text) text, sizeof(text) - 1
	{NAME("Input Dims"), ARG_DIMS, false},
	{NAME("Input dims"), ARG_DIMS, false},
	{NAME("Input type"), ARG_TYPES, false},
	{NAME("Input Strides"), ARG_STRIDES, false},
	{NAME("Concrete Inputs"), ARG_CONCRETE, false},
	{NAME("External id"), ARG_EXTERNAL_ID, false},
	{NAME("external id"), ARG_EXTERNAL_ID, false},
	{NAME("correlation"), ARG_CORRELATION, false},
	{NAME("Sequence number"), ARG_SEQUENCE, false},
	{NAME("Fwd thread id"), ARG_FORWARD_THREAD, false},
	{NAME("Python id"), ARG_PYTHON_ID, false},
	{NAME("Python parent id"), ARG_PYTHON_PARENT, false},
	{NAME("Python module id"), ARG_PYTHON_MODULE, false},
	{NAME("Call stack"), ARG_CALL_STACK, false},
	{NAME("Overload Name"), ARG_OVERLOAD, false},
	{NAME("Record function id"), ARG_RECORD_FUNCTION_ID, false},
	{NAME("Ev Idx"), ARG_ROW, false},
	{NAME("Profiler Event Index"), ARG_ROW, false},
	{NAME("finished"), ARG_FINISHED, true},
	{NAME("cut"), ARG_CUT, true},
	{NAME("Args"), ARG_TEXT, true},
	{NAME("Scope"), ARG_SCOPE, true},
	{NAME("Async"), ARG_ASYNC, true},
	{NAME("End track"), ARG_END_TRACK, true},
	{NAME("Raw name"), ARG_RAW_NAME, true},
	{NAME("Function"), ARG_FUNCTION, true},
	{NAME("CallFrom"), ARG_CALL_FROM, false},
	{NAME("Call line"), ARG_CALL_LINE, true},
	{NAME("Module"), ARG_MODULE, true},
	{NAME("Storages"), ARG_STORAGES, true},
#undef NAME
};

#define NAME_COUNT (sizeof(arg_names) / sizeof(arg_names[0]))

_Static_assert(NAME_COUNT <= KINETO_ARG_NAMES_MAX, "chains of names");

void kineto_chain_args(struct kineto_arg_chains *chains)
{
	for (size_t i = NAME_COUNT; i-- > 0;) {
		chains->next[i] = chains->first[arg_names[i].size];
		chains->first[arg_names[i].size] = (uint8_t)(i + 1);
	}
}

/* Only compares names of the same length. */
static enum arg arg_of(const struct kineto_reader *reader, const struct ops_json_member *member)
{
	const struct kineto_arg_chains *chains = &reader->arg_chains;
	size_t at = member->key_size < KINETO_ARG_SIZE_MAX ? chains->first[member->key_size] : 0;

	for (; at; at = chains->next[at - 1]) {
		if (memcmp(arg_names[at - 1].name, member->key, member->key_size) == 0 && (reader->own || !arg_names[at - 1].own))
			return arg_names[at - 1].arg;
	}
	return ARG_EXTRA;
}

const struct ops_json_member *kineto_find_arg(const struct kineto_reader *reader, const char *key)
{
	const struct ops_json_object *object = reader->object;

	for (uint32_t i = 0; i < object->arg_count; i++)
		if (kineto_is(object->args[i].key, object->args[i].key_size, key, strlen(key)))
			return &object->args[i];
	return NULL;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* Parses an integer from `low` to `high`. */
static bool kineto_args_parse_number(const struct ops_json_member *member, int64_t low, int64_t high, int64_t *ret_value)
{
	int64_t value;

	if (!kineto_integer(member, &value) || value < low || value > high)
		return false;
	*ret_value = value;
	return true;
}

static bool kineto_args_parse_id(const struct ops_json_member *member, uint32_t *ret_id)
{
	int64_t value;

	if (!kineto_args_parse_number(member, 0, (int64_t)OPS_NONE - 1, &value))
		return false;
	*ret_id = (uint32_t)value;
	return true;
}

static bool is_null(const struct ops_json_member *member)
{
	return member->type == OPS_JSON_WORD && KINETO_IS(member->value, member->value_size, "null");
}

static bool kineto_args_parse_text(struct kineto_reader *reader, const struct ops_json_member *member, uint32_t *ret_string)
{
	if (member->type != '"')
		return false;
	*ret_string = kineto_string(reader, member);
	return true;
}

/* Decodes the bytes of a name with invalid UTF-8, each written as the character of that number. */
static bool parse_raw_name(struct kineto_reader *reader, const struct ops_json_member *member, uint32_t *ret_name)
{
	struct ops_buffer *text = &reader->scratch;
	size_t size = 0;

	text->size = 0;
	ops_json_decode(text, member->value, member->value_size);
	for (size_t i = 0; i < text->size && !text->failed; i++) {
		uint8_t byte = (uint8_t)text->bytes[i];

		if ((byte == 0xc2 || byte == 0xc3) && i + 1 < text->size)
			byte = (uint8_t)(byte << 6 | ((uint8_t)text->bytes[++i] & 0x3f));
		text->bytes[size++] = (char)byte;
	}
	*ret_name = ops_builder_string(reader->builder, text->bytes, size);
	return member->type == '"';
}

/* Parses "file:line". In a recording's file it follows from the rows. */
static bool parse_call_from(const struct kineto_reader *reader, const struct ops_json_member *member,
                            struct ops_new_event *event)
{
	const char *end = member->value + member->value_size;
	struct ops_json_member line = {.value = end, .type = OPS_JSON_NUMBER};
	int64_t value;

	while (line.value > member->value && line.value[-1] >= '0' && line.value[-1] <= '9')
		line.value--;
	line.value_size = (size_t)(end - line.value);
	if (member->type == '"' && line.value > member->value && line.value[-1] == ':' &&
	    kineto_args_parse_number(&line, 1, UINT32_MAX, &value))
		event->call_line = (uint32_t)value;
	return reader->recorded && event->call_line;
}

static bool parse_own_column(struct kineto_reader *reader, enum arg arg, const struct ops_json_member *member,
                             struct ops_new_event *event, struct kineto_own_args *own)
{
	int64_t value;

	switch (arg) {
	case ARG_FINISHED:
		own->unfinished = member->value[0] == 'f';
		return member->type == OPS_JSON_WORD;
	case ARG_CUT:
		event->flags |= member->value[0] == 't' ? OPS_EVENT_CUT : 0;
		return member->type == OPS_JSON_WORD;
	case ARG_ASYNC:
		own->async = member->value[0] == 't';
		return member->type == OPS_JSON_WORD;
	case ARG_TEXT:
		return kineto_args_parse_text(reader, member, &event->args);
	case ARG_RAW_NAME:
		return parse_raw_name(reader, member, &own->name);
	case ARG_SCOPE:
		if (!kineto_args_parse_number(member, 0, UINT8_MAX, &value))
			return false;
		event->scope = (uint8_t)value;
		return true;
	case ARG_CALL_LINE: /* in Perfetto's format */
		if (!kineto_args_parse_number(member, 1, UINT32_MAX, &value))
			return false;
		event->call_line = (uint32_t)value;
		return true;
	case ARG_MODULE:
		return kineto_args_parse_number(member, 0, (int64_t)reader->module_count - 1, &value) &&
		       kineto_args_parse_id(member, &event->module);
	case ARG_STORAGES:
		return kineto_read_storages(reader, member, &event->storages);
	case ARG_END_TRACK:
		return kineto_args_parse_number(member, 0, (int64_t)reader->tracks.count - 1, &value) &&
		       kineto_args_parse_id(member, &event->end_track);
	case ARG_FUNCTION:
		if (event->kind != OPS_EVENT_PYTHON_FUNCTION ||
		    !kineto_args_parse_number(member, 0, (int64_t)reader->functions.count - 1, &value))
			return false;
		event->function = reader->functions.items[value];
		return true;
	default:
		return false;
	}
}

/* Stores the argument in its column. Returns false if it does not fit; then it is kept as text. */
static bool set_column(struct kineto_reader *reader, enum arg arg, const struct ops_json_member *member,
                       struct ops_new_event *event, struct kineto_own_args *own)
{
	int64_t value;

	switch (arg) {
	case ARG_EXTERNAL_ID:
		if (!kineto_args_parse_number(member, 0, INT64_MAX, &value))
			return false;
		event->id = (uint64_t)value;
		return true;
	case ARG_CORRELATION:
		return kineto_args_parse_number(member, 0, INT64_MAX, &event->correlation);
	case ARG_SEQUENCE:
		return kineto_args_parse_number(member, 0, INT64_MAX, &event->sequence_nr);
	case ARG_FORWARD_THREAD:
		return kineto_args_parse_id(member, &event->forward_thread);
	case ARG_PYTHON_ID:
		return kineto_args_parse_id(member, &event->python_id);
	case ARG_PYTHON_PARENT:
		return is_null(member) || kineto_args_parse_id(member, &event->python_parent);
	case ARG_PYTHON_MODULE:
		return kineto_args_parse_id(member, &event->python_module);
	case ARG_CALL_STACK:
		return kineto_args_parse_text(reader, member, &event->call_stack);
	case ARG_OVERLOAD:
		return kineto_args_parse_text(reader, member, &event->overload);
	case ARG_RECORD_FUNCTION_ID:
		return kineto_args_parse_number(member, 0, 0, &value);
	case ARG_CALL_FROM:
		return parse_call_from(reader, member, event);
	case ARG_ROW: /* the position in the writer's order, which is different in each writer */
		return kineto_integer(member, &value);
	default:
		return parse_own_column(reader, arg, member, event, own);
	}
}

/* --- inputs --------------------------------------------------------------------------------------------------------- */

/* Appends ,"key":"value" directly, because this is done for most arguments of a file. */
static void append_member(struct ops_buffer *out, const struct ops_json_member *member)
{
	bool quoted = member->type == '"';
	char *at = ops_buffer_room(out, member->key_size + member->value_size + 6);

	if (!at)
		return;
	if (out->size)
		*at++ = ',';
	*at++ = '"';
	memcpy(at, member->key, member->key_size);
	at += member->key_size;
	*at++ = '"';
	*at++ = ':';
	if (quoted)
		*at++ = '"';
	memcpy(at, member->value, member->value_size);
	at += member->value_size;
	if (quoted)
		*at++ = '"';
	out->size = (size_t)(at - out->bytes);
}

/* Finds or builds the input list; what it cannot represent is kept in `text`. Returns false if out of memory. */
static bool parse_inputs(struct kineto_reader *reader, const struct ops_json_member *const arrays[INPUT_COUNT],
                         struct ops_new_event *event)
{
	struct kineto_inputs *inputs;
	uint32_t text;

	reader->text.size = 0;
	for (int i = 0; i < INPUT_COUNT; i++)
		if (arrays[i])
			append_member(&reader->text, arrays[i]);
	if (reader->text.failed)
		return false;
	text = ops_intern_find(&reader->inputs_texts, reader->text.bytes, reader->text.size);
	if (text == OPS_INTERN_NONE) {
		struct kineto_inputs made = kineto_convert_inputs(reader, arrays);

		if (reader->inputs_texts.count >= TEXTS_MAX) {
			ops_intern_release(&reader->inputs_texts);
			reader->inputs.count = 0;
		}
		text = ops_intern_add(&reader->inputs_texts, reader->text.bytes, reader->text.size);
		inputs = text == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&reader->inputs);
		if (!inputs)
			return false;
		*inputs = made;
	}
	inputs = &reader->inputs.items[text];
	event->inputs = inputs->id;
	if (!inputs->keep_text)
		reader->text.size = 0;
	return true;
}

/* --- other arguments ------------------------------------------------------------------------------------------------ */

/* Returns the string id of the members in `text` in valid form. Returns false if out of memory or if they are invalid. */
static bool kineto_args_keep_text(struct kineto_reader *reader, uint32_t *ret_string)
{
	uint32_t text = ops_intern_find(&reader->extra_texts, reader->text.bytes, reader->text.size);
	struct kineto_extra *extra;
	bool words = false;

	if (text != OPS_INTERN_NONE) {
		*ret_string = reader->extras.items[text].string;
		if (reader->extras.items[text].words)
			kineto_note(reader, OPS_NOTE_BARE_WORD);
		return true;
	}
	reader->scratch.size = 0;
	reader->failure = ops_json_clean(&reader->scratch, reader->text.bytes, reader->text.size, true, &words);
	if (reader->failure || reader->scratch.failed)
		return false;
	if (words)
		kineto_note(reader, OPS_NOTE_BARE_WORD);
	*ret_string = ops_builder_string(reader->builder, reader->scratch.bytes, reader->scratch.size);
	if (reader->extra_texts.count >= TEXTS_MAX) {
		ops_intern_release(&reader->extra_texts);
		reader->extras.count = 0;
	}
	text = ops_intern_add(&reader->extra_texts, reader->text.bytes, reader->text.size);
	extra = text == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&reader->extras);
	if (!extra)
		return false;
	*extra = (struct kineto_extra){*ret_string, words};
	return true;
}

bool kineto_read_args(struct kineto_reader *reader, struct ops_new_event *event, struct kineto_own_args *own)
{
	const struct ops_json_object *object = reader->object;
	const struct ops_json_member *inputs[INPUT_COUNT] = {0};
	const struct ops_json_member *rest[OPS_JSON_MEMBERS_MAX];
	uint32_t rest_count = 0;
	bool has_inputs = false;

	*own = (struct kineto_own_args){.async = -1, .name = OPS_NONE};
	for (uint32_t i = 0; i < object->arg_count; i++) {
		const struct ops_json_member *member = &object->args[i];
		enum arg arg = arg_of(reader, member);

		if (member->flags & (OPS_JSON_HIGH | OPS_JSON_CONTROL))
			kineto_note_text(reader, member);
		if (arg - FIRST_INPUT < INPUT_COUNT && !inputs[arg - FIRST_INPUT]) {
			inputs[arg - FIRST_INPUT] = member;
			has_inputs = true;
		} else if (arg == ARG_EXTRA || !set_column(reader, arg, member, event, own)) {
			rest[rest_count++] = member;
		}
	}
	reader->text.size = 0;
	if (has_inputs && !parse_inputs(reader, inputs, event))
		return false;
	for (uint32_t i = 0; i < rest_count; i++)
		append_member(&reader->text, rest[i]);
	if (reader->text.failed)
		return false;
	return reader->text.size == 0 || kineto_args_keep_text(reader, &event->extra);
}
