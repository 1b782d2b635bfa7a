/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_RECORD_TRIGGER_TEXT_H
#define GBPF_RECORD_TRIGGER_TEXT_H

#include "record/record.h"

/*
 * Why a file was written, for people: "p99(cuStreamSynchronize) > 5ms: 7.1 ms (130 calls in
 * 10 s)", "a signal asked for it", "the recording ended". Returns buf. The trigger's text comes
 * from the file as it is: to be made printable by whoever shows it.
 */
const char *trigger_text(const struct record_trigger *t, char *buf, size_t size);

#endif
