/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/opstrobe.h: all of libopstrobe. A program that includes only the headers it uses compiles faster. The server is in
 * another library (opstrobe/serve.h).
 */
#ifndef OPSTROBE_OPSTROBE_H
#define OPSTROBE_OPSTROBE_H

#include <opstrobe/arrow.h>
#include <opstrobe/common.h>
#include <opstrobe/device.h>
#include <opstrobe/error.h>
#include <opstrobe/files.h>
#include <opstrobe/inputs.h>
#include <opstrobe/merge.h>
#include <opstrobe/query.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>
#include <opstrobe/storage.h>
#include <opstrobe/trace.h>
#include <opstrobe/version.h>
#include <opstrobe/write.h>

#endif
