/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of Python threads, read from outside the interpreter; see stack_reader.h.
 */
#include "stack_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "frames.h"
#include "path_prefixes.h"

#define THREADS_MAX 256 /* limit for a list that changes while it is read and could become cyclic */
#define WINDOW 256
#define FRAME_AREA_BYTES 16384

static PyInterpreterState *interpreter;
static pthread_t main_thread;
static pid_t process;

void ops_stacks_init(void)
{
	interpreter = PyInterpreterState_Main();
	process = getpid();
	main_thread = pthread_self();
}

/* --- memory that may be unmapped -------------------------------------------------------------------------------------- */

static bool stack_copy(void *to, const void *from, size_t size)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)from, size};

	return from && process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void append_character(char *to, size_t room, size_t *at, uint32_t code)
{
	char bytes[4];
	size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	if (size == 1)
		bytes[0] = (char)code;
	for (size_t i = size; size > 1 && i-- > 1; code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	if (size > 1)
		bytes[0] = (char)((0xf00 >> size & 0xff) | code);
	if (*at + size >= room)
		return;
	memcpy(to + *at, bytes, size);
	*at += size;
}

/* Copies a str, or its end if it does not fit. */
static void stack_copy_text(char *to, size_t room, const PyObject *text, bool keep_end)
{
	PyCompactUnicodeObject head;
	uint32_t wide[WINDOW];
	size_t at = 0, count, first, kind;
	const char *data;

	to[0] = '\0';
	if (!stack_copy(&head, text, sizeof(PyASCIIObject)) || !head._base.state.compact || head._base.length < 0)
		return;
	kind = head._base.state.ascii ? 1 : head._base.state.kind;
	data = (const char *)text + (head._base.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject));
	count = (size_t)head._base.length < WINDOW ? (size_t)head._base.length : WINDOW;
	count = count < room ? count : room - 1;
	first = keep_end ? (size_t)head._base.length - count : 0;
	if ((kind != 1 && kind != 2 && kind != 4) || !stack_copy(wide, data + first * kind, count * kind))
		return;
	for (size_t i = 0; i < count; i++)
		append_character(to, room, &at,
		                 kind == 1 ? ((const uint8_t *)wide)[i] : kind == 2 ? ((const uint16_t *)wide)[i] : wide[i]);
	to[at] = '\0';
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

/* A bytes object, read piece by piece. */
struct stack_table {
	const char *next;
	size_t left;
	size_t at, size;
	uint8_t window[WINDOW];
};

static bool stack_table_open(struct stack_table *table, const PyObject *bytes)
{
	PyVarObject head;

	*table = (struct stack_table){.next = (const char *)bytes + offsetof(PyBytesObject, ob_sval)};
	if (!stack_copy(&head, bytes, sizeof(head)) || head.ob_base.ob_type != &PyBytes_Type || head.ob_size < 0)
		return false;
	table->left = (size_t)head.ob_size;
	return true;
}

/* Returns the next byte; -1 at the end. */
static int stack_table_byte(struct stack_table *table)
{
	if (table->at == table->size) {
		table->size = table->left < WINDOW ? table->left : WINDOW;
		if (!table->size || !stack_copy(table->window, table->next, table->size)) {
			table->size = table->at = table->left = 0;
			return -1;
		}
		table->next += table->size;
		table->left -= table->size;
		table->at = 0;
	}
	return table->window[table->at++];
}

#if PY_VERSION_HEX >= 0x030b0000
static int stack_table_number(struct stack_table *table)
{
	unsigned value = 0, shift = 0;
	int byte;

	do {
		byte = stack_table_byte(table);
		if (byte < 0 || shift > 24)
			return 0;
		value |= (unsigned)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40);
	return (int)value;
}

/* Returns the line of an instruction (its offset in bytes) from the table of locations; 0 if it has none. */
static int stack_line(const PyCodeObject *code, int offset)
{
	struct stack_table table;
	int line = code->co_firstlineno, end = 0, byte, form, delta;

	if (offset < 0)
		return line;
	if (!stack_table_open(&table, code->co_linetable))
		return 0;
	while ((byte = stack_table_byte(&table)) >= 0) {
		form = byte >> 3 & 15;
		end += ((byte & 7) + 1) * (int)sizeof(_Py_CODEUNIT);
		if (form == 14 || form == 13) {
			delta = stack_table_number(&table);
			line += delta & 1 ? -(delta >> 1) : delta >> 1;
		} else if (form >= 10 && form != 15) {
			line += form - 10;
		}
		for (int i = form == 14 ? 3 : 0; i > 0; i--)
			stack_table_number(&table);
		for (int i = form < 10 ? 1 : form < 13 ? 2 : 0; i > 0; i--)
			stack_table_byte(&table);
		if (offset < end)
			return form == 15 ? 0 : line;
	}
	return 0;
}
#else
static int stack_line(const PyCodeObject *code, int offset)
{
	struct stack_table table;
	int line = code->co_firstlineno, end = 0, length, delta;

	if (offset < 0)
		return line;
	if (!stack_table_open(&table, code->co_linetable))
		return 0;
	while ((length = stack_table_byte(&table)) >= 0 && (delta = stack_table_byte(&table)) >= 0) {
		end += length;
		line += delta == 0x80 ? 0 : (int8_t)delta;
		if (offset < end)
			return delta == 0x80 ? 0 : line;
	}
	return 0;
}
#endif

/* --- frames ----------------------------------------------------------------------------------------------------------- */

static ops_frame *stack_innermost(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030d0000
	return thread->current_frame;
#elif PY_VERSION_HEX >= 0x030b0000
	_PyCFrame frame;

	return stack_copy(&frame, thread->cframe, sizeof(frame)) ? frame.current_frame : NULL;
#else
	return thread->frame;
#endif
}

#if PY_VERSION_HEX >= 0x030b0000
#define CODE_BYTES offsetof(PyCodeObject, co_code_adaptive)
#define CODE_NAME co_qualname
#else
#define CODE_BYTES sizeof(PyCodeObject)
#define CODE_NAME co_name
#endif

/* Reads the position of the instruction at `offset` from a copy of a code object. */
static void stack_code_read(const PyCodeObject *code, int offset, struct ops_stack_frame *ret_frame)
{
	int line = stack_line(code, offset);

	ret_frame->line = line > 0 ? (uint32_t)line : (uint32_t)code->co_firstlineno;
	stack_copy_text(ret_frame->file, sizeof(ret_frame->file), code->co_filename, true);
	ops_path_normalize(ret_frame->file);
	stack_copy_text(ret_frame->function, sizeof(ret_frame->function), code->CODE_NAME, false);
}

static bool stack_is_code(const PyCodeObject *copy)
{
	return ((const PyObject *)copy)->ob_type == &PyCode_Type;
}

bool ops_stack_frame_read(ops_frame *frame, struct ops_stack_frame *ret_frame)
{
	PyCodeObject code;

	if (!stack_copy(&code, ops_frame_code(frame), CODE_BYTES) || !stack_is_code(&code))
		return false;
	stack_code_read(&code, ops_frame_offset(frame), ret_frame);
	return true;
}

static void stack_frames_read(const PyThreadState *thread, struct ops_stack *stack)
{
	ops_frame *next = stack_innermost(thread), frame;

	stack->count = 0;
	stack->is_cut = false;
	for (unsigned i = 0; next && i < 4 * OPS_STACK_FRAMES && stack_copy(&frame, next, offsetof(ops_frame, OPS_FRAME_END)); i++) {
		if (!ops_frame_is_of_c(&frame)) {
			if (stack->count == OPS_STACK_FRAMES) {
				stack->is_cut = true;
				return;
			}
			if (ops_stack_frame_read(&frame, &stack->frames[stack->count]))
				stack->count++;
		}
		next = ops_frame_previous(&frame);
	}
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

static bool read_task_file(int64_t tid, const char *name, char *to, size_t room)
{
	char path[64];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%lld/%s", (long long)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, to, room - 1);
	close(fd);
	to[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* Reads "12 (name) S 1 …", and "202 0x7f… …" or "running". */
static void stack_task_read(struct ops_stack *stack)
{
	char text[512];
	const char *open_name, *end_name;

	stack->state = 0;
	stack->system_call = -1;
	stack->name[0] = '\0';
	if (!stack->tid || !read_task_file(stack->tid, "stat", text, sizeof(text)))
		return;
	open_name = strchr(text, '(');
	end_name = strrchr(text, ')');
	if (open_name && end_name && end_name - open_name - 1 < (ptrdiff_t)sizeof(stack->name)) {
		memcpy(stack->name, open_name + 1, (size_t)(end_name - open_name - 1));
		stack->name[end_name - open_name - 1] = '\0';
	}
	if (end_name && end_name[1])
		stack->state = end_name[2];
	if (read_task_file(stack->tid, "syscall", text, sizeof(text)) && text[0] >= '0' && text[0] <= '9')
		stack->system_call = atoi(text);
}

static int64_t stack_tid(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030b0000
	return (int64_t)thread->native_thread_id;
#else
	return thread->thread_id == (unsigned long)main_thread ? process : 0;
#endif
}

static bool stack_read(const PyThreadState *address, struct ops_stack *ret_stack, PyThreadState **ret_next)
{
	PyThreadState thread;

	if (!stack_copy(&thread, address, sizeof(thread)))
		return false;
	*ret_next = thread.next;
	ret_stack->tid = stack_tid(&thread);
	ret_stack->has_gil = address == ops_gil_holder(interpreter);
	stack_frames_read(&thread, ret_stack);
	stack_task_read(ret_stack);
	return true;
}

size_t ops_stacks_read(struct ops_stack *ret_stacks, size_t capacity)
{
	PyThreadState *next = interpreter ? PyInterpreterState_ThreadHead(interpreter) : NULL;
	size_t count = 0;

	for (int i = 0; next && i < THREADS_MAX && count < capacity && stack_read(next, &ret_stacks[count], &next); i++)
		count += ret_stacks[count].count > 0; /* a thread without frames does not run Python */
	return count;
}

bool ops_stack_read_of(int64_t tid, struct ops_stack *ret_stack)
{
	PyThreadState *next = interpreter ? PyInterpreterState_ThreadHead(interpreter) : NULL;

	for (int i = 0; next && i < THREADS_MAX; i++) {
		PyThreadState thread, *address = next;

		if (!stack_copy(&thread, address, sizeof(thread)))
			return false;
		next = thread.next;
		if (stack_tid(&thread) == tid)
			return stack_read(address, ret_stack, &next);
	}
	return false;
}

void ops_stack_read_own(struct ops_stack *ret_stack)
{
	int64_t tid = syscall(SYS_gettid);
	int before = errno;

	if (!ops_stack_read_of(tid, ret_stack)) {
		ret_stack->tid = tid;
		ret_stack->count = 0;
		ret_stack->has_gil = false;
		stack_task_read(ret_stack);
	}
	errno = before;
}

/* --- positions -------------------------------------------------------------------------------------------------------- */

#define FRAME_BYTES offsetof(ops_frame, OPS_FRAME_END)

/* The innermost frames of most threads are next to each other on the interpreter's stack, so the end of it is copied at once. */
struct frame_area {
	uintptr_t begin, end;
	_Alignas(ops_frame) char copy[FRAME_AREA_BYTES];
};

static void frame_area_read(struct frame_area *area, const PyThreadState *thread)
{
	area->begin = area->end = 0;
#if PY_VERSION_HEX >= 0x030b0000
	uintptr_t end = (uintptr_t)thread->datastack_top, begin = (uintptr_t)thread->datastack_chunk;

	if (!begin || end <= begin)
		return;
	if (end - begin > sizeof(area->copy))
		begin = end - sizeof(area->copy);
	if (stack_copy(area->copy, (const void *)begin, end - begin)) {
		area->begin = begin;
		area->end = end;
	}
#else
	(void)thread;
#endif
}

static bool frame_area_copy(const struct frame_area *area, const ops_frame *at, ops_frame *ret_frame)
{
	uintptr_t begin = (uintptr_t)at;

	if (begin < area->begin || begin >= area->end || area->end - begin < FRAME_BYTES)
		return stack_copy(ret_frame, at, FRAME_BYTES);
	memcpy(ret_frame, area->copy + (begin - area->begin), FRAME_BYTES);
	return true;
}

/* The code objects of a stack, copied by one system call. */
struct code_copies {
	struct iovec local[OPS_SAMPLE_FRAMES_MAX], remote[OPS_SAMPLE_FRAMES_MAX];
	PyCodeObject codes[OPS_SAMPLE_FRAMES_MAX];
};

/* Copies the code objects of `count` positions. One that cannot be read gets no type. */
static void code_copies_read(struct code_copies *copies, const struct ops_stack_position *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		copies->local[i] = (struct iovec){&copies->codes[i], CODE_BYTES};
		copies->remote[i] = (struct iovec){(void *)items[i].code, CODE_BYTES};
	}
	for (uint32_t done = 0; done < count;) { /* it ends at the first that cannot be read */
		ssize_t size = process_vm_readv(process, copies->local + done, count - done, copies->remote + done, count - done, 0);

		done += size > 0 ? (uint32_t)((size_t)size / CODE_BYTES) : 0;
		if (done < count)
			((PyObject *)&copies->codes[done++])->ob_type = NULL;
	}
}

static void position_identify(struct ops_stack_position *position, const PyCodeObject *copy)
{
	position->first_line = copy->co_firstlineno;
	position->identity[0] = (uintptr_t)copy->co_filename;
	position->identity[1] = (uintptr_t)copy->CODE_NAME;
	position->identity[2] = (uintptr_t)copy->co_linetable;
}

/* Keeps the positions whose code objects could be read. */
static void positions_identify(struct ops_stack_positions *stack, struct code_copies *copies)
{
	uint32_t kept = 0;

	code_copies_read(copies, stack->items, stack->count);
	for (uint32_t i = 0; i < stack->count; i++) {
		if (!stack_is_code(&copies->codes[i]))
			continue;
		stack->items[kept] = stack->items[i];
		position_identify(&stack->items[kept++], &copies->codes[i]);
	}
	stack->count = kept;
}

static void positions_read(const PyThreadState *thread, struct ops_stack_positions *stack)
{
	static struct frame_area area; /* too large for a stack; used by the sampling thread alone */
	static struct code_copies copies;
	ops_frame *next = stack_innermost(thread), frame;

	frame_area_read(&area, thread);
	for (unsigned i = 0; next && i < 4 * OPS_SAMPLE_FRAMES_MAX && frame_area_copy(&area, next, &frame); i++) {
		next = ops_frame_previous(&frame);
		if (ops_frame_is_of_c(&frame))
			continue;
		if (stack->count == OPS_SAMPLE_FRAMES_MAX - 1) {
			stack->is_cut = true;
			break;
		}
		stack->items[stack->count++] =
			(struct ops_stack_position){.code = (uintptr_t)ops_frame_code(&frame), .offset = ops_frame_offset(&frame)};
	}
	positions_identify(stack, &copies);
}

void ops_stack_threads_start(struct ops_stack_threads *threads)
{
	*threads = (struct ops_stack_threads){.next = interpreter ? PyInterpreterState_ThreadHead(interpreter) : NULL};
}

bool ops_stack_threads_next(struct ops_stack_threads *threads, struct ops_stack_positions *ret_stack)
{
	PyThreadState thread;

	if (!threads->next || threads->count++ == THREADS_MAX || !stack_copy(&thread, threads->next, sizeof(thread)))
		return false;
	threads->next = thread.next;
	ret_stack->tid = stack_tid(&thread);
	ret_stack->count = 0;
	ret_stack->is_cut = false;
	positions_read(&thread, ret_stack);
	return true;
}

bool ops_stack_position_resolve(const struct ops_stack_position *position, struct ops_stack_frame *ret_frame)
{
	PyCodeObject code;

	if (!stack_copy(&code, (const void *)position->code, CODE_BYTES) || !stack_is_code(&code))
		return false;
	stack_code_read(&code, position->offset, ret_frame);
	return true;
}
