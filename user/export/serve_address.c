/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a server listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/serve_private.h"
#include "util/text.h"

#define DEFAULT_ADDRESS "127.0.0.1:9477"

static bool parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > 65535)
		return false;
	*port = (uint16_t)value;
	return true;
}

/* "127.0.0.1:9477", "[::1]:9477", "localhost:9477", ":9477" */
static bool parse(const char *text, struct sockaddr_storage *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	const char *colon = strrchr(text, ':');
	char host[64];
	uint16_t port;
	size_t length;

	memset(to, 0, sizeof(*to));
	if (!colon || !parse_port(colon + 1, &port))
		return false;
	length = (size_t)(colon - text);
	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (!length || (length > 2 && host[0] == '[' && host[length - 1] == ']')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		if (!length)
			return true; /* in6addr_any */
		host[length - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	return inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
			 &v4->sin_addr) == 1;
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* -errno of what failed. */
static int bind_and_listen(int fd, const struct sockaddr_storage *a)
{
	static const int on = 1, off;

	/* all addresses means those of both kinds */
	if (a->ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		return -errno;
	/* a restart must not wait for connections that linger */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)a, length_of(a)) || listen(fd, 64))
		return -errno;
	return 0;
}

static bool is_any(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* All addresses of a machine without IPv6. */
static void to_any_v4(struct sockaddr_storage *a)
{
	in_port_t port = ((struct sockaddr_in6 *)a)->sin6_port;
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;

	memset(a, 0, sizeof(*a));
	v4->sin_family = AF_INET;
	v4->sin_port = port;
}

static void explain(int err, const char *address, char *why, size_t size)
{
	char shown[128];

	text_printable(address, shown, sizeof(shown), 80);
	if (err == -EADDRINUSE)
		snprintf(why, size, "%s is in use by another program: choose another with "
			 "--listen", shown);
	else if (err == -EADDRNOTAVAIL)
		snprintf(why, size, "%s is no address of this machine: see ip address", shown);
	else if (err == -EACCES || err == -EPERM)
		snprintf(why, size, "%s may not be listened on: choose a port from 1024 on",
			 shown);
	else if (err == -EAFNOSUPPORT)
		snprintf(why, size, "%s cannot be listened on: this machine has no IPv6", shown);
	else
		snprintf(why, size, "cannot listen on %s: %s", shown, strerror(-err));
}

int serve_listen(const char *address, struct sockaddr_storage *got, char *why, size_t size)
{
	socklen_t length = sizeof(*got);
	char shown[128];
	int fd, err;

	if (!address)
		address = DEFAULT_ADDRESS;
	if (!parse(address, got)) {
		snprintf(why, size, "%s is no address to listen on: write 127.0.0.1:9477, "
			 "[::1]:9477, or :9477 for all addresses",
			 text_printable(address, shown, sizeof(shown), 80));
		return -EINVAL;
	}
	fd = socket(got->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 && errno == EAFNOSUPPORT && is_any(got)) {
		to_any_v4(got);
		fd = socket(got->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	err = fd < 0 ? -errno : bind_and_listen(fd, got);
	if (!err && getsockname(fd, (struct sockaddr *)got, &length))
		err = -errno;
	if (!err)
		return fd;
	explain(err, address, why, size);
	if (fd >= 0)
		close(fd);
	return err;
}

bool serve_is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;

	if (a->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

void serve_make_url(const struct sockaddr_storage *a, bool tls, char *url, size_t size)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	bool is_v6 = a->ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN];

	inet_ntop(a->ss_family, is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
		  sizeof(host));
	snprintf(url, size, is_v6 ? "http%s://[%s]:%u/metrics" : "http%s://%s:%u/metrics",
		 tls ? "s" : "", host, ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
}
