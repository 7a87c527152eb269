/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces unzstd.c in builds without libzstd.
 */
#include "base/source.h"

#include "base/fault.h"

enum ops_code ops_source_open_zstd(struct ops_source *owned_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error)
{
	(void)head;
	(void)head_size;
	(void)ret_source;
	ops_source_close(owned_inner);
	return ops_fault(error, OPS_UNSUPPORTED, "compressed with zstd, and this build has no libzstd: decompress it "
	                 "first (zstd -d)");
}
