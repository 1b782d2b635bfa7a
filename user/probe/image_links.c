/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "bpf/monitor.h"
#include "probe/catalogue.h"
#include "probe/images.h"

/* The sites of one kind; *out is the caller's. How many, or -ENOMEM. */
static int sites_pick(const struct image *i, bool hot, uint64_t flags, struct probe_site **out)
{
	struct probe_site *sites = calloc(i->sites_count + 1, sizeof(*sites));
	size_t n = 0, k;

	if (!sites)
		return -ENOMEM;
	for (k = 0; k < i->sites_count; k++) {
		if (i->sites[k].state == SITE_NOT_HOOKED || i->sites[k].hot != hot)
			continue;
		sites[n].offset = i->sites[k].offset;
		sites[n].cookie = catalogue_cookie(i->sites[k].api, i->slot) | flags;
		sites[n++].entry_only = i->sites[k].state == SITE_ENTRY_ONLY;
	}
	*out = sites;
	return (int)n;
}

int image_replan(struct image *i, struct probes *p, struct probe_link **old)
{
	uint8_t parity = i->link ? !i->parity : i->parity;
	struct probe_link *link = NULL;
	struct probe_site *sites;
	int n, err = 0;

	n = sites_pick(i, false, (parity ? GBPF_COOKIE_PARITY : 0) | i->always_flags, &sites);
	if (n < 0)
		return n;
	if (n)
		err = probes_attach(p, i->fd, sites, (size_t)n, &link);
	free(sites);
	if (err)
		return err;
	*old = i->link;
	i->link = link;
	i->parity = parity;
	return 0;
}

int image_window_open(struct image *i, struct probes *p)
{
	struct probe_site *sites;
	int n, err;

	if (i->window)
		return -EALREADY;
	n = sites_pick(i, true, GBPF_COOKIE_HOT, &sites);
	if (n < 0)
		return n;
	err = n ? probes_attach(p, i->fd, sites, (size_t)n, &i->window) : -ENOENT;
	free(sites);
	return err;
}

struct probe_link *image_window_take(struct image *i)
{
	struct probe_link *link = i->window;

	i->window = NULL;
	return link;
}
