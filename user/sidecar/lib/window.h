/* SPDX-License-Identifier: BSD-2-Clause */
/* A window of recording: what is switched on, and off again. session.control is held. */
#ifndef GBPF_SIDECAR_LIB_WINDOW_H
#define GBPF_SIDECAR_LIB_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"

/* Makes answer one to the loader: of this type, with this text. */
void answer_with(struct wire_message *answer, enum wire_type type, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* answer: WIRE_BEGAN; WIRE_REFUSED, nothing was changed; or WIRE_FAILED, all is off again. */
void window_begin(struct session *s, int64_t length_ns, struct wire_message *answer);
/* answer: WIRE_ENDED, all records are in the ring; or WIRE_WITHDREW. Only while it is on. */
void window_end(struct session *s, struct wire_message *answer);
/* It cannot go on, for what says code, a CUptiResult. answer: WIRE_FAILED; else as at its end. */
void window_fail(struct session *s, const char *what, int code, struct wire_message *answer);
/*
 * Somebody else records now: leaves to them what they may use. answer: WIRE_WITHDREW.
 * True: nobody had taken CUPTI over yet, and window_off() is due soon.
 */
bool window_withdraw(struct session *s, const char *why, struct wire_message *answer);
/* Switches off whatever this window switched on. Idempotent. */
void window_off(struct session *s);

/* Has somebody else begun to record since the window began? */
bool window_taken(const struct session *s);
/* Are we the ones that CUPTI gives its records to? */
bool window_ours(const struct session *s);
/* The closest of a few readings of CUPTI's clock. A CUptiResult. */
int window_clock(const struct session *s, struct wire_message *m);

/* Whom the loader learns of as little as it can help; does nothing. */
void window_ignore(void *user, int domain, uint32_t cbid, const void *data);

#endif
