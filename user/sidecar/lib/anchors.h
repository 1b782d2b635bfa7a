/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments in which calls are recorded, too. A work and its call have a correlation id in
 * common, and of one thread and stream both come in order: a few calls now and then tell
 * whose works are whose. All calls would, too, but to record them makes each one dearer
 * (a training step on an H200 took 1.44 instead of 1.2 times as long, with CUPTI 13.0).
 * session.control is held.
 */
#ifndef GBPF_SIDECAR_LIB_ANCHORS_H
#define GBPF_SIDECAR_LIB_ANCHORS_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"

/*
 * A window begins: calls are recorded until some that launch were seen, and with
 * WIRE_ALL_API as long as the window lasts; not at all where works are numbered without, unless
 * one of the flags asks for it. A CUptiResult; other than 0, anchors_off() is due.
 */
int anchors_begin(struct session *s);
/* Does what is due at now, CLOCK_MONOTONIC ns. A CUptiResult; other than 0, it is over. */
int anchors_step(struct session *s, int64_t now);
/* Records no calls any more. Idempotent. A CUptiResult. */
int anchors_off(struct session *s);

/* A call that launches something has begun then, by CUPTI's clock. Any thread. */
void anchors_saw(struct session *s, int64_t begin);

#endif
