/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's life. */
#include "export/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "export/serve_private.h"

#define CONNECTIONS 16
#define TIMEOUT_S 10
#define CONNECTION_MEMORY ((size_t)16384) /* headers and what is being sent of a page */

/* What libmicrohttpd says while it starts says why it does not. */
static void remember(void *cls, const char *format, va_list args)
{
	struct serve *s = cls;

	if (atomic_load(&s->started)) /* what it says is of connections */
		return;
	vsnprintf(s->log, sizeof(s->log), format, args);
	s->log[strcspn(s->log, "\n")] = '\0';
}

static struct MHD_Daemon *start(struct serve *s, const struct serve_options *o, int fd)
{
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0,
		  (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (!s->key)
		tls[0].option = MHD_OPTION_END;
	return s->mhd.start_daemon(
		MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG |
			(s->key ? MHD_USE_TLS : 0),
		0, NULL, NULL, serve_request, s, MHD_OPTION_EXTERNAL_LOGGER, remember, s,
		MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, o->connections ? o->connections : CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, o->timeout_s ? o->timeout_s : TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

/* Of this thread, and of those that it starts. */
static void drop_rights(void)
{
	cap_t none = cap_init();

	if (none) {
		cap_set_proc(none);
		cap_free(none);
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_NAME, "gbpf-http", 0, 0, 0);
}

struct starter {
	struct serve *serve;
	const struct serve_options *options;
	int fd;
};

static void *start_without_rights(void *arg)
{
	struct starter *st = arg;

	drop_rights();
	st->serve->daemon = start(st->serve, st->options, st->fd);
	atomic_store(&st->serve->started, true);
	return NULL;
}

/*
 * libmicrohttpd's thread has the rights and blocks the signals that the thread that
 * starts it does: so one without any right, and with all signals blocked, starts it.
 * Signals are for the program's other threads.
 */
static int start_thread(struct serve *s, const struct serve_options *o, int fd)
{
	struct starter st = { s, o, fd };
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, start_without_rights, &st);
	if (!err)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static int read_files(struct serve *s, const struct serve_options *o, char *why, size_t size)
{
	int err = 0;

	if (!o->cert_file != !o->key_file) {
		snprintf(why, size, "TLS needs both a certificate and its key");
		return -EINVAL;
	}
	if (o->key_file) {
		s->cert = serve_read_file(o->cert_file, false, why, size, &err);
		s->key = s->cert ? serve_read_file(o->key_file, true, why, size, &err) : NULL;
		if (!s->key)
			return err;
	}
	return o->auth_file ? serve_auth_read(&s->auth, o->auth_file, why, size) : 0;
}

static int check_features(const struct serve *s, char *why, size_t size)
{
	if (s->key && s->mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		snprintf(why, size, "libmicrohttpd was built without TLS here");
	else if (s->auth && s->mhd.is_feature_supported(MHD_FEATURE_BASIC_AUTH) != MHD_YES)
		snprintf(why, size, "libmicrohttpd was built without basic auth here");
	else if (s->mhd.is_feature_supported(MHD_FEATURE_EPOLL) != MHD_YES)
		snprintf(why, size, "libmicrohttpd was built without epoll here");
	else
		return 0;
	return -ENOTSUP;
}

static int start_daemon(struct serve *s, const struct serve_options *o, char *why, size_t size)
{
	struct sockaddr_storage got;
	int fd = serve_listen(o->address, &got, why, size), err;

	if (fd < 0)
		return fd;
	serve_make_url(&got, s->key != NULL, s->url, sizeof(s->url));
	err = start_thread(s, o, fd);
	if (err) {
		close(fd);
		snprintf(why, size, "cannot start a thread: %s", strerror(-err));
		return err;
	}
	if (!s->daemon) { /* which has closed fd */
		snprintf(why, size, "cannot serve %s: %s", s->url,
			 s->log[0] ? s->log : "libmicrohttpd does not say why");
		return -EINVAL;
	}
	if (!s->key && !s->auth && !serve_is_loopback(&got))
		snprintf(why, size, "%s can be read by whoever reaches this machine: neither a "
			 "certificate nor a password file was given", s->url);
	return 0;
}

int serve_new(struct serve **out, const struct serve_options *o, struct metrics *m, char *why,
	      size_t size)
{
	struct serve *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	snprintf(why, size, "%s", s ? "" : "out of memory");
	if (s) {
		s->metrics = m;
		err = mhd_load(&s->mhd, o->library, why, size);
	}
	if (!err)
		err = read_files(s, o, why, size);
	if (!err)
		err = check_features(s, why, size);
	if (!err)
		err = start_daemon(s, o, why, size);
	if (!err)
		*out = s;
	else
		serve_free(s);
	return err;
}

const char *serve_url(const struct serve *s)
{
	return s->url;
}

void serve_stop(struct serve *s)
{
	if (s->daemon)
		s->mhd.stop_daemon(s->daemon);
	s->daemon = NULL;
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	serve_stop(s);
	serve_auth_free(s->auth);
	if (s->key)
		explicit_bzero(s->key, strlen(s->key));
	free(s->key);
	free(s->cert);
	free(s);
}
