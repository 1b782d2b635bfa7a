/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and answers. */
#include <string.h>

#include "export/serve_private.h"

#define BLOCK 65536 /* of a page that is sent at a time */

static const char front_page[] =
	"<!DOCTYPE html>\n<html lang=\"en\">"
	"<head><meta charset=\"utf-8\"><title>gbpf</title></head>\n"
	"<body><h1>gbpf " GBPF_VERSION "</h1>\n"
	"<p><a href=\"/metrics\">Metrics</a> for Prometheus and its kin.</p></body></html>\n";

static enum MHD_Result queue(struct serve *s, struct MHD_Connection *c, unsigned status,
			     struct MHD_Response *r)
{
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	s->mhd.add_response_header(r, "X-Content-Type-Options", "nosniff");
	result = s->mhd.queue_response(c, status, r);
	s->mhd.destroy_response(r);
	return result;
}

static struct MHD_Response *constant(struct serve *s, const char *text, const char *type)
{
	struct MHD_Response *r = s->mhd.create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

	if (r)
		s->mhd.add_response_header(r, "Content-Type", type);
	return r;
}

static enum MHD_Result say(struct serve *s, struct MHD_Connection *c, unsigned status,
			   const char *text)
{
	return queue(s, c, status, constant(s, text, "text/plain; charset=utf-8"));
}

static ssize_t read_page(void *cls, uint64_t at, char *to, size_t size)
{
	const struct metrics_page *page = cls;

	if (at >= page->size)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (size > page->size - at)
		size = page->size - at;
	memcpy(to, page->bytes + at, size);
	return (ssize_t)size;
}

static void free_page(void *cls)
{
	metrics_page_release(cls);
}

/* NULL: it was not sent. */
static const char *header(struct serve *s, struct MHD_Connection *c, const char *name)
{
	return s->mhd.lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result send_metrics(struct serve *s, struct MHD_Connection *c)
{
	enum metrics_format format = metrics_negotiate(header(s, c, "Accept"));
	bool gzip = metrics_accepts_gzip(header(s, c, "Accept-Encoding"));
	const struct metrics_page *page;
	struct MHD_Response *r;

	if (metrics_page(s->metrics, format, gzip, &page))
		return say(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	r = s->mhd.create_response_from_callback(page->size, BLOCK, read_page,
						 (void *)(uintptr_t)page, free_page);
	if (!r) {
		metrics_page_release(page);
		return MHD_NO;
	}
	s->mhd.add_response_header(r, "Content-Type", metrics_content_type(format));
	s->mhd.add_response_header(r, "Vary", "Accept, Accept-Encoding");
	s->mhd.add_response_header(r, "Cache-Control", "no-store");
	if (gzip)
		s->mhd.add_response_header(r, "Content-Encoding", "gzip");
	return queue(s, c, MHD_HTTP_OK, r);
}

static bool may(struct serve *s, struct MHD_Connection *c)
{
	char *user, *password = NULL;
	bool right;

	if (!s->auth)
		return true;
	user = s->mhd.basic_auth_get(c, &password);
	right = serve_auth_check(s->auth, user, password);
	if (password)
		explicit_bzero(password, strlen(password));
	s->mhd.free(password);
	s->mhd.free(user);
	return right;
}

static enum MHD_Result refuse(struct serve *s, struct MHD_Connection *c)
{
	struct MHD_Response *r = constant(s, "a user and a password are needed\n",
					  "text/plain; charset=utf-8");
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	result = s->mhd.queue_basic_auth_fail_response(c, "gbpf", r);
	s->mhd.destroy_response(r);
	return result;
}

static enum MHD_Result answer(struct serve *s, struct MHD_Connection *c, const char *url)
{
	if (!strcmp(url, "/-/healthy")) /* what asks this has no password */
		return say(s, c, MHD_HTTP_OK, "gbpf is up\n");
	if (!may(s, c))
		return refuse(s, c);
	if (!strcmp(url, "/metrics"))
		return send_metrics(s, c);
	if (!strcmp(url, "/"))
		return queue(s, c, MHD_HTTP_OK,
			     constant(s, front_page, "text/html; charset=utf-8"));
	return say(s, c, MHD_HTTP_NOT_FOUND, "there is /metrics here\n");
}

enum MHD_Result serve_request(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	static char begun;
	struct serve *s = cls;
	struct MHD_Response *r;

	if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
		r = constant(s, "only GET and HEAD\n", "text/plain; charset=utf-8");
		if (r)
			s->mhd.add_response_header(r, "Allow", "GET, HEAD");
		return queue(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, r);
	}
	/* an answer before the request is read to its end would close the connection */
	if (!*request) {
		*request = &begun;
		return MHD_YES;
	}
	if (!*upload_size)
		return answer(s, c, url);
	*upload_size = 0; /* a body that nobody asked for */
	return MHD_YES;
}
