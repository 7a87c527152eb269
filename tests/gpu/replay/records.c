/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of CUPTI's records; see records.h.
 */
#include "records.h"

#include <string.h>

#include <cupti.h>

/* --- reading -------------------------------------------------------------------------------------------------------- */

bool records_open(struct records *records, const void *bytes, size_t size, uint32_t *ret_version)
{
	struct records_head head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.magic, RECORDS_MAGIC, sizeof(head.magic)) != 0 || head.format != RECORDS_FORMAT)
		return false;
	*records = (struct records){bytes, size, sizeof(head)};
	*ret_version = head.version;
	return true;
}

bool records_next(struct records *records, struct records_section *ret_section)
{
	uint32_t head[2];
	size_t left = records->size - records->at;

	if (left < sizeof(head))
		return false;
	memcpy(head, records->bytes + records->at, sizeof(head));
	if (head[1] > left - sizeof(head))
		return false;
	*ret_section = (struct records_section){head[0], head[1], records->bytes + records->at + sizeof(head)};
	left -= sizeof(head) + head[1];
	records->at += sizeof(head) + head[1];
	records->at += (8 - records->at % 8) % 8 < left ? (8 - records->at % 8) % 8 : left;
	return true;
}

bool records_read(const struct records_section *section, void *ret_fixed, size_t fixed_bytes, const char **ret_text,
                  size_t *ret_text_bytes)
{
	if (section->size < fixed_bytes)
		return false;
	memcpy(ret_fixed, section->bytes, fixed_bytes);
	*ret_text = (const char *)section->bytes + fixed_bytes;
	*ret_text_bytes = section->size - fixed_bytes;
	return true;
}

/* --- in records ----------------------------------------------------------------------------------------------------- */

#define PLACES_MAX 4
#define AT(type, field) offsetof(type, field)

/* Where records have times and pointers; 0 is the kind, and ends a list. */
static const struct {
	CUpti_ActivityKind kind;
	size_t times[PLACES_MAX + 1];
	size_t pointers[PLACES_MAX + 1];
} places[] = {
	{CUPTI_ACTIVITY_KIND_KERNEL,
	 {AT(CUpti_ActivityKernel9, start), AT(CUpti_ActivityKernel9, end), AT(CUpti_ActivityKernel9, queued),
	  AT(CUpti_ActivityKernel9, submitted)},
	 {AT(CUpti_ActivityKernel9, name)}},
	{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	 {AT(CUpti_ActivityKernel9, start), AT(CUpti_ActivityKernel9, end), AT(CUpti_ActivityKernel9, queued),
	  AT(CUpti_ActivityKernel9, submitted)},
	 {AT(CUpti_ActivityKernel9, name)}},
	{CUPTI_ACTIVITY_KIND_MEMCPY, {AT(CUpti_ActivityMemcpy6, start), AT(CUpti_ActivityMemcpy6, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_MEMCPY2, {AT(CUpti_ActivityMemcpyPtoP4, start), AT(CUpti_ActivityMemcpyPtoP4, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_MEMSET, {AT(CUpti_ActivityMemset4, start), AT(CUpti_ActivityMemset4, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_RUNTIME, {AT(CUpti_ActivityAPI, start), AT(CUpti_ActivityAPI, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_DRIVER, {AT(CUpti_ActivityAPI, start), AT(CUpti_ActivityAPI, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
	 {AT(CUpti_ActivitySynchronization2, start), AT(CUpti_ActivitySynchronization2, end)},
	 {0}},
	{CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE,
	 {AT(CUpti_ActivityGraphHostNode, start), AT(CUpti_ActivityGraphHostNode, end)},
	 {0}},
	{CUPTI_ACTIVITY_KIND_CUDA_EVENT, {AT(CUpti_ActivityCudaEvent2, deviceTimestamp)}, {0}},
	{CUPTI_ACTIVITY_KIND_OVERHEAD, {AT(CUpti_ActivityOverhead3, start), AT(CUpti_ActivityOverhead3, end)}, {0}},
	{CUPTI_ACTIVITY_KIND_ENVIRONMENT, {AT(CUpti_ActivityEnvironment, timestamp)}, {0}},
	{CUPTI_ACTIVITY_KIND_MEMORY2, {AT(CUpti_ActivityMemory4, timestamp)},
	 {AT(CUpti_ActivityMemory4, name), AT(CUpti_ActivityMemory4, source)}},
	{CUPTI_ACTIVITY_KIND_MEMORY_POOL, {AT(CUpti_ActivityMemoryPool3, timestamp)}, {0}},
	{CUPTI_ACTIVITY_KIND_NAME, {0}, {AT(CUpti_ActivityName, name)}},
	{CUPTI_ACTIVITY_KIND_MARKER,
	 {AT(CUpti_ActivityMarker2, timestamp)},
	 {AT(CUpti_ActivityMarker2, name), AT(CUpti_ActivityMarker2, domain)}},
};

static void change_at(void *record, size_t size, const size_t *offsets, records_change *change, void *context)
{
	for (size_t i = 0; offsets[i]; i++) {
		uint64_t value;

		if (offsets[i] + sizeof(value) > size)
			return;
		memcpy(&value, (char *)record + offsets[i], sizeof(value));
		value = value ? change(context, value) : 0;
		memcpy((char *)record + offsets[i], &value, sizeof(value));
	}
}

static size_t place_of(const void *record, size_t size)
{
	CUpti_ActivityKind kind;
	size_t i = sizeof(places) / sizeof(places[0]);

	if (size < sizeof(kind))
		return i;
	memcpy(&kind, record, sizeof(kind));
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i].kind == kind)
			break;
	return i;
}

void records_change_times(void *record, size_t size, records_change *change, void *context)
{
	size_t place = place_of(record, size);

	if (place < sizeof(places) / sizeof(places[0]))
		change_at(record, size, places[place].times, change, context);
}

void records_change_pointers(void *record, size_t size, records_change *change, void *context)
{
	size_t place = place_of(record, size);

	if (place < sizeof(places) / sizeof(places[0]))
		change_at(record, size, places[place].pointers, change, context);
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

void records_write_head(FILE *file, uint32_t version)
{
	const struct records_head head = {.magic = RECORDS_MAGIC, .format = RECORDS_FORMAT, .version = version};

	fwrite(&head, sizeof(head), 1, file);
}

void records_write(FILE *file, enum records_kind kind, const void *fixed, size_t fixed_bytes, const void *rest, size_t rest_bytes)
{
	static const char zeros[8];
	const uint32_t head[2] = {kind, (uint32_t)(fixed_bytes + rest_bytes)};

	fwrite(head, sizeof(head), 1, file);
	if (fixed_bytes)
		fwrite(fixed, fixed_bytes, 1, file);
	if (rest_bytes)
		fwrite(rest, rest_bytes, 1, file);
	if (head[1] % 8)
		fwrite(zeros, 8 - head[1] % 8, 1, file);
}
