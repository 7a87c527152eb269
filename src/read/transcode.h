/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of other formats as Chrome JSON, made while it is read: so their events, arguments and arrows mean what they mean there,
 * and a format is one function that writes text.
 */
#ifndef OPS_READ_TRANSCODE_H
#define OPS_READ_TRANSCODE_H

#include "base/buffer.h"
#include "read/reading.h"

#define OPS_TRANSCODED_BYTES 65536u /* about as much text is made at once */

struct ops_transcoder {
	/* Appends the text of what comes next in the file; nothing at its end. */
	enum ops_code (*next)(struct ops_transcoder *transcoder, struct ops_buffer *text);
};

/* Members of an object that begins in the same buffer, with a comma before all but the first: a text, and a time in microseconds. */
void ops_put_text_member(struct ops_buffer *out, const char *key, struct ops_string text);
void ops_put_time_member(struct ops_buffer *out, const char *key, int64_t ns);

enum ops_code ops_read_transcoded(struct ops_reading *reading, struct ops_transcoder *transcoder, struct ops_trace **ret_trace);

#endif
