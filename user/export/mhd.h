/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmicrohttpd, loaded when somebody wants pages served: its archive needs GnuTLS,
 * which no distribution ships as one, so it cannot be linked statically.
 */
#ifndef GBPF_EXPORT_MHD_H
#define GBPF_EXPORT_MHD_H

#define MHD_NO_DEPRECATION /* what 1.0 calls old is what 0.9 has */
#include <microhttpd.h>
#include <stddef.h>

#define MHD_LIBRARY "libmicrohttpd.so.12"

struct mhd {
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_get_version) get_version;
	__typeof__(&MHD_is_feature_supported) is_feature_supported;
	__typeof__(&MHD_lookup_connection_value) lookup_connection_value;
	__typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
	__typeof__(&MHD_create_response_from_callback) create_response_from_callback;
	__typeof__(&MHD_add_response_header) add_response_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_queue_basic_auth_fail_response) queue_basic_auth_fail_response;
	__typeof__(&MHD_basic_auth_get_username_password) basic_auth_get;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_free) free;
};

/*
 * library NULL: MHD_LIBRARY. 0; -ENOENT: it is not here, -ENOEXEC: it is too old, with
 * a sentence in why. It is never unloaded: GnuTLS does not let go of what it has set up.
 */
int mhd_load(struct mhd *m, const char *library, char *why, size_t size);

#endif
