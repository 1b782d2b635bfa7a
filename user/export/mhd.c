/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/mhd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * 0.9.71 is the first without CVE-2021-3466, and the oldest that the distributions
 * still look after have: Debian 11 0.9.72, Ubuntu 22.04 and Debian 12 0.9.75.
 */
#define OLDEST { 0, 9, 71 }

/* Addresses of functions come out of dlsym() as void *, which ISO C does not convert. */
static bool load(void *handle, const char *name, void *field)
{
	void *symbol = dlsym(handle, name);

	memcpy(field, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load_all(void *handle, struct mhd *m)
{
	return load(handle, "MHD_start_daemon", &m->start_daemon) &&
	       load(handle, "MHD_stop_daemon", &m->stop_daemon) &&
	       load(handle, "MHD_get_version", &m->get_version) &&
	       load(handle, "MHD_is_feature_supported", &m->is_feature_supported) &&
	       load(handle, "MHD_lookup_connection_value", &m->lookup_connection_value) &&
	       load(handle, "MHD_create_response_from_buffer", &m->create_response_from_buffer) &&
	       load(handle, "MHD_create_response_from_callback",
		    &m->create_response_from_callback) &&
	       load(handle, "MHD_add_response_header", &m->add_response_header) &&
	       load(handle, "MHD_queue_response", &m->queue_response) &&
	       load(handle, "MHD_queue_basic_auth_fail_response",
		    &m->queue_basic_auth_fail_response) &&
	       load(handle, "MHD_basic_auth_get_username_password", &m->basic_auth_get) &&
	       load(handle, "MHD_destroy_response", &m->destroy_response) &&
	       load(handle, "MHD_free", &m->free);
}

static bool new_enough(const char *version)
{
	static const unsigned long oldest[] = OLDEST;

	for (size_t i = 0; i < sizeof(oldest) / sizeof(oldest[0]); i++) {
		char *end;
		unsigned long part = strtoul(version, &end, 10);

		if (end == version || part < oldest[i])
			return false;
		if (part > oldest[i])
			return true;
		version = *end == '.' ? end + 1 : end;
	}
	return true;
}

int mhd_load(struct mhd *m, const char *library, char *why, size_t size)
{
	void *handle = dlopen(library ? library : MHD_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		snprintf(why, size, "serving metrics needs libmicrohttpd, which is not here: "
			 "install libmicrohttpd12 (Debian, Ubuntu 22.04), libmicrohttpd12t64 "
			 "(Ubuntu 24.04) or libmicrohttpd (Fedora, RHEL)");
		return -ENOENT;
	}
	if (!load_all(handle, m) || !new_enough(m->get_version())) {
		snprintf(why, size, "libmicrohttpd is too old: 0.9.71 or newer is needed");
		dlclose(handle);
		return -ENOEXEC;
	}
	return 0;
}
