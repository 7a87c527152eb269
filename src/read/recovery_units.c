/* SPDX-License-Identifier: Apache-2.0
 *
 * See recovery_units.h.
 */
#include "read/recovery_units.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/text.h"
#include "record/spill.h"

enum ops_code ops_recovery_unit(const struct ops_recovery_units *units, uint64_t unit, void *out, size_t size, size_t *ret_got,
                                struct ops_error *error)
{
	const struct ops_recovery_source *source = units->source;
	uint64_t offset = unit * OPS_BLOCK_BYTES;
	size_t wanted = source->size - offset < size ? (size_t)(source->size - offset) : size, got = 0;

	if (source->fd < 0) {
		memcpy(out, source->bytes + offset, wanted);
		got = wanted;
	}
	while (got < wanted) {
		ssize_t more = pread(source->fd, (char *)out + got, wanted - got, (off_t)(offset + got));

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return ops_fault_errno(error, errno, "cannot read");
		if (more == 0)
			break;
		got += (size_t)more;
	}
	memset((char *)out + got, 0, size - got);
	*ret_got = got;
	return OPS_OK;
}

enum ops_code ops_recovery_open(struct ops_recovery_units *units, const struct ops_recovery_source *source, struct ops_error *error)
{
	struct ops_spill_header *header = &units->header;
	struct ops_block head;
	char unit[sizeof(head) + sizeof(*header)];
	enum ops_code code;
	size_t got;

	*units = (struct ops_recovery_units){
		.source = source, .count = source->size / OPS_BLOCK_BYTES + (source->size % OPS_BLOCK_BYTES != 0)};
	code = ops_recovery_unit(units, 0, unit, sizeof(unit), &got, error);
	if (code)
		return code;
	memcpy(&head, unit, sizeof(head));
	memcpy(header, unit + sizeof(head), sizeof(*header));
	if (got < sizeof(unit) || head.magic != OPS_SPILL_MAGIC)
		return ops_fault(error, OPS_CORRUPT, "not a recording file");
	header->boot_id[sizeof(header->boot_id) - 1] = '\0';
	header->opstrobe_version[sizeof(header->opstrobe_version) - 1] = '\0';
	header->process_name[sizeof(header->process_name) - 1] = '\0';
	header->host_name[sizeof(header->host_name) - 1] = '\0';
	if (header->byte_order != OPS_SPILL_BYTE_ORDER)
		return ops_fault(error, OPS_UNSUPPORTED, "it was written by a machine with another byte order");
	if (header->version != OPS_SPILL_VERSION || head.abi != OPS_COLLECTOR_ABI ||
	    header->slot_bytes != sizeof(struct ops_slot)) {
		ops_make_plain(header->opstrobe_version);
		return ops_fault(error, OPS_UNSUPPORTED, "Opstrobe %s wrote it in another format; recover it with that version",
		                 header->opstrobe_version);
	}
	units->session = head.epoch;
	return OPS_OK;
}

bool ops_recovery_is_still(const struct ops_recovery_units *units, uint64_t unit, const struct ops_block *copy)
{
	struct ops_block head;
	size_t got;

	if (!units->source->is_running)
		return true;
	return ops_recovery_unit(units, unit, &head, sizeof(head), &got, NULL) == OPS_OK && head.magic == copy->magic &&
	       head.sequence == copy->sequence && head.thread == copy->thread && head.epoch == copy->epoch;
}

enum ops_code ops_recovery_read_window(struct ops_recovery_units *units, uint64_t until_ticks, struct ops_error *error)
{
	char unit[sizeof(struct ops_block) + sizeof(struct ops_spill_header)];
	struct ops_spill_header header;
	size_t got;
	enum ops_code code = ops_recovery_unit(units, 0, unit, sizeof(unit), &got, error);

	if (code)
		return code;
	memcpy(&header, unit + sizeof(struct ops_block), sizeof(header));
	units->header.window_ticks = header.window_ticks;
	units->header.dropped = header.dropped;
	if (until_ticks && (int64_t)(header.window_ticks - until_ticks) > 0)
		return ops_fault(error, OPS_BUSY, "the recording is overwritten faster than it can be read");
	return OPS_OK;
}

bool ops_recovery_has_this_clock(const struct ops_recovery_units *units)
{
	char boot_id[40];

	ops_spill_boot_id(boot_id);
	return boot_id[0] && strcmp(boot_id, units->header.boot_id) == 0 && units->header.tsc == ops_clock_tsc();
}

enum ops_code ops_recovery_open_file(const char *path, struct ops_recovery_source *ret_source, struct ops_error *error)
{
	struct ops_recovery_source source = {.fd = open(path, O_RDONLY | O_CLOEXEC)};

	if (source.fd < 0)
		return ops_fault_errno(error, errno, "cannot open '%s'", path);
	/* A recording process holds a lock until it ends. */
	source.is_running = flock(source.fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	*ret_source = source;
	return OPS_OK;
}

enum ops_code ops_recovery_measure(struct ops_recovery_source *source, struct ops_error *error)
{
	struct stat seen;

	if (fstat(source->fd, &seen) != 0)
		return ops_fault_errno(error, errno, "cannot read");
	source->size = seen.st_size > 0 ? (uint64_t)seen.st_size : 0;
	return OPS_OK;
}
