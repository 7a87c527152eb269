/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads options of callers that were compiled with other versions of the headers.
 */
#include "base/options.h"

#include <string.h>

#include "base/fault.h"

enum ops_code ops_options_read(void *to, size_t to_size, const void *from, struct ops_error *error)
{
	size_t size = from ? *(const size_t *)from : 0;

	memset(to, 0, to_size);
	*(size_t *)to = to_size;
	if (!from)
		return OPS_OK;
	if (size < sizeof(size))
		return ops_fault(error, OPS_INVALID, "options: 'size' is not set to the size of the struct");
	for (size_t i = to_size; i < size; i++)
		if (((const char *)from)[i])
			return ops_fault(error, OPS_UNSUPPORTED, "options: the program requires a newer version of libopstrobe");
	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size), (size < to_size ? size : to_size) - sizeof(size));
	return OPS_OK;
}
