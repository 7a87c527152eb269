/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes recording files; see spill.h.
 */
#include "record/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <opstrobe/record.h>
#include <opstrobe/version.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "record/block.h"
#include "record/pool.h"
#include "record/spill_format.h"

struct ops_spill {
	char *path;
	struct ops_pool_file *file; /* NULL: it could not be created */
	int error;                  /* errno: why it could not be created, or why nothing more can be written to it; 0: none */
	uint64_t session;
	struct ops_block *header;
	struct ops_block *log; /* its parts, linked by `next`; the last one is being filled */
	uint64_t start_ticks;
	uint64_t clock_ticks; /* of the last pair in the log */
	bool keep;
	bool made; /* there is a file to remove */
};

uint64_t ops_spill_session;

static struct {
	pthread_mutex_t lock;
	struct ops_spill *spill; /* whose log may be written */
} active = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct ops_spill_header *spill_header(const struct ops_spill *spill)
{
	return (struct ops_spill_header *)(void *)(spill->header + 1);
}

/* --- units ---------------------------------------------------------------------------------------------------------- */

/* Stops writing to the file. */
static void spill_fail(struct ops_spill *spill, int error)
{
	spill->error = error;
	if (spill->header)
		spill_header(spill)->end_errno = (uint32_t)error;
	__atomic_store_n(&ops_spill_session, 0, __ATOMIC_RELAXED);
	ops_pool_use_file(NULL);
}

/* Returns a unit of the file. Returns NULL, and the spill fails, if the file cannot grow. */
static struct ops_block *next_unit(struct ops_spill *spill)
{
	struct ops_block *unit = ops_pool_alloc();

	if (unit && ops_pool_is_in_file(unit))
		return unit;
	if (unit)
		ops_pool_return(unit);
	spill_fail(spill, ops_pool_file_error(spill->file) ? ops_pool_file_error(spill->file) : ENOSPC);
	return NULL;
}

/* Starts a new part of the log. */
static bool add_part(struct ops_spill *spill)
{
	struct ops_block *part = next_unit(spill);

	if (!part)
		return false;
	ops_block_init(part, spill->session, 0);
	part->sequence = spill->log ? spill->log->sequence + 1 : 0;
	part->next = spill->log;
	ops_block_show(part, OPS_SPILL_LOG_MAGIC);
	spill->log = part;
	return true;
}

/* --- the log -------------------------------------------------------------------------------------------------------- */

/* Appends bytes to the stream; readers ignore them until they are published. */
static bool append_bytes(struct ops_spill *spill, const char *bytes, size_t size)
{
	while (size) {
		uint32_t used = spill->log ? spill->log->count : OPS_SPILL_LOG_BYTES;
		size_t fits = OPS_SPILL_LOG_BYTES - used < size ? OPS_SPILL_LOG_BYTES - used : size;

		if (!fits) {
			if (!add_part(spill))
				return false;
			continue;
		}
		memcpy((char *)(spill->log + 1) + used, bytes, fits);
		__atomic_store_n(&spill->log->count, used + (uint32_t)fits, __ATOMIC_RELEASE);
		bytes += fits;
		size -= fits;
	}
	return true;
}

/* Begins a record of the session's log in `out`; end_record completes it. Returns false if the session has no log. */
static bool begin_record(uint64_t session, uint32_t kind, struct ops_buffer *out)
{
	const struct ops_spill_record head = {.kind = kind};

	if (!ops_spill_is_on(session))
		return false;
	ops_buffer_append(out, &head, sizeof(head));
	return true;
}

static void end_record(uint64_t session, struct ops_buffer *record)
{
	static const char zeros[8];
	uint32_t size = (uint32_t)(record->size - sizeof(struct ops_spill_record));
	bool fits = record->size < UINT32_MAX - 16;

	ops_buffer_append(record, zeros, -record->size & 7);
	pthread_mutex_lock(&active.lock);
	if (active.spill && active.spill->session == session && !active.spill->error) {
		if (!record->failed && fits) {
			memcpy(record->bytes, &size, sizeof(size));
			append_bytes(active.spill, record->bytes, record->size);
		} else {
			spill_fail(active.spill, ENOMEM);
		}
	}
	pthread_mutex_unlock(&active.lock);
	ops_buffer_release(record);
}

static void spill_put_u32(struct ops_buffer *out, uint32_t value)
{
	ops_buffer_append(out, &value, sizeof(value));
}

static void spill_put_u64(struct ops_buffer *out, uint64_t value)
{
	ops_buffer_append(out, &value, sizeof(value));
}

static void spill_put_text(struct ops_buffer *out, const char *bytes, size_t size)
{
	static const char zeros[4];

	spill_put_u32(out, (uint32_t)size);
	ops_buffer_append(out, bytes, size);
	ops_buffer_append(out, zeros, -size & 3);
}

void ops_spill_thread(uint64_t session, uint32_t number, uint32_t torch_number, int64_t tid, struct ops_string name)
{
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_THREAD, &record))
		return;
	spill_put_u32(&record, number);
	spill_put_u32(&record, torch_number);
	spill_put_u64(&record, (uint64_t)tid);
	spill_put_text(&record, name.bytes, name.size);
	end_record(session, &record);
}

void ops_spill_thread_name(uint64_t session, int64_t tid, struct ops_string name)
{
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_THREAD_NAME, &record))
		return;
	spill_put_u64(&record, (uint64_t)tid);
	spill_put_text(&record, name.bytes, name.size);
	end_record(session, &record);
}

void ops_spill_name(uint64_t session, uint32_t thread, uint32_t id, struct ops_string first, struct ops_string second)
{
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_NAME, &record))
		return;
	spill_put_u32(&record, thread);
	spill_put_u32(&record, id);
	spill_put_text(&record, first.bytes, first.size);
	spill_put_u32(&record, second.bytes != NULL);
	spill_put_text(&record, second.bytes, second.bytes ? second.size : 0);
	end_record(session, &record);
}

bool ops_session_wants_notes(void)
{
	return ops_spill_current() != 0;
}

void ops_session_note_function(uint32_t number, const struct ops_recorded_function *function)
{
	uint64_t session = ops_spill_current();
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_FUNCTION, &record))
		return;
	spill_put_u32(&record, number);
	spill_put_u32(&record, function->line);
	spill_put_text(&record, function->row_name, function->row_name_bytes);
	spill_put_u32(&record, function->name != NULL);
	spill_put_text(&record, function->name, function->name ? function->name_bytes : 0);
	spill_put_u32(&record, function->file != NULL);
	spill_put_text(&record, function->file, function->file ? function->file_bytes : 0);
	end_record(session, &record);
}

void ops_session_note_module(uint32_t id, uint32_t number, struct ops_text name, struct ops_text class_name)
{
	uint64_t session = ops_spill_current();
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_MODULE, &record))
		return;
	spill_put_u32(&record, id);
	spill_put_u32(&record, number);
	spill_put_text(&record, name.bytes, name.size);
	spill_put_text(&record, class_name.bytes, class_name.size);
	end_record(session, &record);
}

void ops_session_note_modules(const struct ops_recorded_module *modules, const uint32_t *ids, size_t count)
{
	uint64_t session = ops_spill_current();
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_MODULES, &record))
		return;
	spill_put_u32(&record, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct ops_recorded_module *module = &modules[i];

		spill_put_u32(&record, ids[i]);
		spill_put_u32(&record, module->parent);
		spill_put_u32(&record, module->number);
		spill_put_u32(&record, 0);
		spill_put_u64(&record, module->address);
		spill_put_u64(&record, module->parameter_count);
		spill_put_u64(&record, module->parameter_bytes);
		spill_put_u64(&record, module->own_parameter_count);
		spill_put_u64(&record, module->own_parameter_bytes);
		spill_put_text(&record, module->name.bytes, module->name.size);
		spill_put_text(&record, module->class_name.bytes, module->class_name.size);
		spill_put_text(&record, module->path.bytes, module->path.size);
		spill_put_u32(&record, (uint32_t)module->alias_count);
		for (size_t k = 0; k < module->alias_count; k++)
			spill_put_text(&record, module->aliases[k].bytes, module->aliases[k].size);
	}
	end_record(session, &record);
}

void ops_session_note_metadata(const char *key, size_t key_bytes, const char *json, size_t json_bytes)
{
	uint64_t session = ops_spill_current();
	struct ops_buffer record = {0};

	if (!begin_record(session, OPS_SPILL_METADATA, &record))
		return;
	spill_put_text(&record, key, key_bytes);
	spill_put_text(&record, json, json_bytes);
	end_record(session, &record);
}

void ops_session_note_overhead(const struct ops_overhead *overhead)
{
	pthread_mutex_lock(&active.lock);
	if (active.spill && active.spill->header) /* a concurrent reader may see some of the old values */
		spill_header(active.spill)->overhead = *overhead;
	pthread_mutex_unlock(&active.lock);
}

/* Returns whether the time since the start has doubled since the clocks were last recorded. */
static bool clocks_are_due(struct ops_spill *spill)
{
	uint64_t ticks = ops_ticks(ops_clock_tsc());

	if (ticks - spill->start_ticks <= 2 * (spill->clock_ticks - spill->start_ticks))
		return false;
	spill->clock_ticks = ticks;
	return true;
}

void ops_spill_block(uint64_t session, const struct ops_block *block)
{
	struct ops_buffer record = {0};
	struct ops_clock_pair pair;
	bool due;

	if (!ops_spill_is_on(session))
		return;
	pthread_mutex_lock(&active.lock);
	due = active.spill && active.spill->session == session && !active.spill->error;
	if (due && !ops_pool_is_in_file(block))
		spill_fail(active.spill, ops_pool_file_error(active.spill->file));
	due = due && !active.spill->error && clocks_are_due(active.spill);
	pthread_mutex_unlock(&active.lock);
	if (!due || !begin_record(session, OPS_SPILL_CLOCK, &record))
		return;
	pair = ops_clock_pair_now();
	ops_buffer_append(&record, &pair, sizeof(pair));
	end_record(session, &record);
}

void ops_spill_window(struct ops_spill *spill, uint64_t window_ticks, uint64_t dropped)
{
	struct ops_spill_header *header;

	if (!spill || !spill->header)
		return;
	header = spill_header(spill);
	__atomic_store_n(&header->dropped, dropped, __ATOMIC_RELAXED);
	__atomic_store_n(&header->window_ticks, window_ticks, __ATOMIC_RELEASE);
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

void ops_spill_boot_id(char out[40])
{
	char text[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	text[strcspn(text, "\n")] = '\0';
	memcpy(out, text, sizeof(text));
}

static void write_header(struct ops_spill *spill, const struct ops_spill_options *options)
{
	struct ops_spill_header *header = spill_header(spill);

	ops_block_init(spill->header, options->session, 0);
	*header = (struct ops_spill_header){
		.version = OPS_SPILL_VERSION,
		.byte_order = OPS_SPILL_BYTE_ORDER,
		.slot_bytes = sizeof(struct ops_slot),
		.tsc = ops_clock_tsc(),
		.args_are_inputs = options->args_are_inputs,
		.pid = getpid(),
		.first = ops_clock_first_pair(),
		.start = options->start,
	};
	ops_spill_boot_id(header->boot_id);
	snprintf(header->opstrobe_version, sizeof(header->opstrobe_version), "%s", ops_version());
	snprintf(header->process_name, sizeof(header->process_name), "%s", program_invocation_short_name);
	if (gethostname(header->host_name, sizeof(header->host_name) - 1) != 0)
		header->host_name[0] = '\0';
	ops_block_show(spill->header, OPS_SPILL_MAGIC);
}

/* Creates the file with its header. The lock on it ends with the process, and so shows whether the process still writes. */
static int spill_open(struct ops_spill *spill, const struct ops_spill_options *options)
{
	int fd = options->path ? open(options->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)
	                       : memfd_create("opstrobe", MFD_CLOEXEC);

	if (fd < 0)
		return errno;
	spill->made = options->path != NULL;
	flock(fd, LOCK_EX | LOCK_NB); /* on a file system without locks, readers cannot detect the writer */
	spill->file = ops_pool_file_new(fd, options->is_ring);
	if (!spill->file)
		return ENOMEM;
	ops_pool_use_file(spill->file);
	spill->header = next_unit(spill);
	if (!spill->header)
		return spill->error;
	write_header(spill, options);
	return add_part(spill) ? 0 : spill->error;
}

/* Returns the absolute path, so that it remains valid if the program changes its directory. Returns NULL if out of memory. */
static char *absolute_path(const char *path)
{
	char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0); /* if that fails, the relative path is used */
	size_t size = strlen(path) + (directory ? strlen(directory) : 0) + 2;
	char *both = ops_alloc(size);

	if (both)
		snprintf(both, size, "%s%s%s", directory ? directory : "", directory ? "/" : "", path);
	free(directory);
	return both;
}

struct ops_spill *ops_spill_new(const struct ops_spill_options *options)
{
	struct ops_spill *spill = ops_alloc_zeroed(1, sizeof(*spill));

	if (!spill || !(spill->path = absolute_path(options->path ? options->path : "/memory"))) {
		ops_free(spill);
		return NULL;
	}
	spill->session = options->session;
	spill->keep = options->keep;
	spill->start_ticks = spill->clock_ticks = options->start.ticks;
	spill->error = spill_open(spill, options);
	if (spill->error) {
		ops_pool_use_file(NULL);
		return spill;
	}
	pthread_mutex_lock(&active.lock);
	active.spill = spill;
	pthread_mutex_unlock(&active.lock);
	__atomic_store_n(&ops_spill_session, spill->session, __ATOMIC_RELAXED);
	return spill;
}

/* Disables writing to its log. */
static void detach(const struct ops_spill *spill)
{
	pthread_mutex_lock(&active.lock);
	if (active.spill == spill) {
		active.spill = NULL;
		__atomic_store_n(&ops_spill_session, 0, __ATOMIC_RELAXED);
		ops_pool_use_file(NULL);
	}
	pthread_mutex_unlock(&active.lock);
}

void ops_spill_stop(struct ops_spill *spill)
{
	if (!spill)
		return;
	detach(spill);
	if (spill->header)
		__atomic_store_n(&spill_header(spill)->state, OPS_SPILL_STOPPED, __ATOMIC_RELEASE);
}

static void release_spill(struct ops_spill *spill)
{
	struct ops_block *part;

	detach(spill);
	while ((part = spill->log)) {
		spill->log = part->next;
		ops_pool_return(part);
	}
	if (spill->header)
		ops_pool_return(spill->header);
	if (spill->file)
		ops_pool_file_unref(spill->file);
	ops_free(spill->path);
	ops_free(spill);
}

void ops_spill_free(struct ops_spill *spill)
{
	bool removes;

	if (!spill)
		return;
	removes = spill->made && (!spill->keep || !spill->header);
	if (removes)
		unlink(spill->path);
	if (spill->file)
		ops_pool_file_unlock(spill->file);
	release_spill(spill);
	if (removes)
		ops_pool_trim_files();
}

bool ops_recording_file_remove(const char *path)
{
	bool removed = unlink(path) == 0 || errno == ENOENT;

	ops_pool_trim_files();
	return removed;
}

void ops_spill_forget(struct ops_spill *spill)
{
	if (spill)
		release_spill(spill);
}

enum ops_code ops_spill_problem(const struct ops_spill *spill, struct ops_error *error)
{
	int problem = 0;

	pthread_mutex_lock(&active.lock);
	if (spill) {
		problem = spill->error;
		if (!problem && spill->file)
			problem = ops_pool_file_error(spill->file);
	}
	pthread_mutex_unlock(&active.lock);
	return problem ? ops_fault_errno(error, problem, "cannot write recording file '%s'", spill->path) : OPS_OK;
}

enum ops_code ops_spill_open_reader(const struct ops_spill *spill, int *ret_fd, struct ops_error *error)
{
	enum ops_code code = ops_spill_problem(spill, error);
	int fd;

	if (code)
		return code;
	if (!spill || !spill->file)
		return ops_fault(error, OPS_STATE, "the session has no recording file");
	fd = ops_pool_file_dup(spill->file);
	if (fd < 0)
		return ops_fault_errno(error, errno, "cannot read recording file '%s'", spill->path);
	*ret_fd = fd;
	return OPS_OK;
}

void ops_spill_lock(void)
{
	pthread_mutex_lock(&active.lock);
}

void ops_spill_unlock(void)
{
	pthread_mutex_unlock(&active.lock);
}
