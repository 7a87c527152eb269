/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sanitizers the compiler adds, for gcc and clang: OPS_ADDRESS_SANITIZER and OPS_THREAD_SANITIZER are 1 or 0.
 */
#ifndef OPS_BASE_SANITIZER_H
#define OPS_BASE_SANITIZER_H

#ifdef __has_feature /* clang */
#define OPS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#define OPS_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else /* gcc */
#ifdef __SANITIZE_ADDRESS__
#define OPS_ADDRESS_SANITIZER 1
#else
#define OPS_ADDRESS_SANITIZER 0
#endif
#ifdef __SANITIZE_THREAD__
#define OPS_THREAD_SANITIZER 1
#else
#define OPS_THREAD_SANITIZER 0
#endif
#endif

#endif
