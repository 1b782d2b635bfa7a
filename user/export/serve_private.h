/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_EXPORT_SERVE_PRIVATE_H
#define GBPF_EXPORT_SERVE_PRIVATE_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "export/mhd.h"
#include "export/serve.h"

struct serve_auth;

struct serve {
	struct mhd mhd;
	struct metrics *metrics;
	struct serve_auth *auth; /* NULL: anybody */
	struct MHD_Daemon *daemon;
	char *cert, *key;
	atomic_bool started;
	char log[256]; /* what libmicrohttpd said last while it started */
	char url[96];
};

/* Answers one request. cls is the struct serve. */
enum MHD_Result serve_request(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request);

/*
 * A listening socket for an address of serve_options, and the address it got. host: the
 * address as it is written in a URL. Returns the fd, or -errno with a sentence in why.
 */
int serve_listen(const char *address, struct sockaddr_storage *got, char *why, size_t size);
bool serve_is_loopback(const struct sockaddr_storage *address);
void serve_make_url(const struct sockaddr_storage *address, bool tls, char *url, size_t size);

/*
 * A file that holds a secret (if secret: not accessible by others) of at most 64 KiB, with
 * a NUL at its end; the caller frees it. NULL with a sentence in why and -errno in *err.
 */
char *serve_read_file(const char *path, bool secret, char *why, size_t size, int *err);

/* 0; -errno with a sentence in why. */
int serve_auth_read(struct serve_auth **out, const char *path, char *why, size_t size);
/* user and password may be NULL: false. Takes as long for a user that is not there. */
bool serve_auth_check(const struct serve_auth *a, const char *user, const char *password);
void serve_auth_free(struct serve_auth *a);

#endif
