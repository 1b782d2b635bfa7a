/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves the pages of a struct metrics over HTTP: /metrics, a page that leads there
 * at /, and /-/healthy. One thread, with no capability and every signal blocked.
 */
#ifndef GBPF_EXPORT_SERVE_H
#define GBPF_EXPORT_SERVE_H

#include "export/openmetrics.h"

struct serve_options {
	const char *address;   /* "127.0.0.1:9477", "[::1]:9477", ":9477" (all); NULL: the first */
	const char *cert_file; /* PEM chain; with key_file: TLS 1.2 and 1.3 only */
	const char *key_file;
	const char *auth_file; /* lines "user:hash", as htpasswd and crypt(5) write them */
	unsigned connections;  /* at the same time; 0: 16 */
	unsigned timeout_s;    /* without a byte, then a connection is closed; 0: 10 */
	const char *library;   /* of libmicrohttpd; NULL: as usual */
};

struct serve;

/*
 * Listens when it returns. The key and auth files must be regular, ours or root's, and
 * not accessible by others; they are read once. m must outlive the server. 0, with a
 * warning in why if the address can be reached from elsewhere without TLS or a password,
 * otherwise ""; -errno with a sentence in why that names what to do.
 */
int serve_new(struct serve **out, const struct serve_options *o, struct metrics *m, char *why,
	      size_t size);
/* "http://127.0.0.1:9477/metrics", with the port that was got if 0 was asked for. */
const char *serve_url(const struct serve *s);
/* Ends the thread and closes every connection; again does nothing. */
void serve_stop(struct serve *s);
void serve_free(struct serve *s); /* stops it too; NULL is accepted */

#endif
