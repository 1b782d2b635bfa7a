/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probe/catalogue.h"
#include "probe/elf.h"
#include "probe/identity.h"
#include "probe/site.h"

struct known { /* files looked at, ours or not */
	uint64_t dev, ino;
};

struct images {
	struct probes *probes;
	struct images_options options;
	struct image **items;
	size_t count;
	struct known *known;
	size_t known_count, known_room;
	uint16_t next_slot;
};

int images_new(struct images **out, struct probes *p, const struct images_options *o)
{
	struct images *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->probes = p;
	m->options = *o;
	m->next_slot = GBPF_IMAGE_CALIBRATION + 1;
	*out = m;
	return 0;
}

static void image_free(struct image *i)
{
	if (!i)
		return;
	probe_link_free(i->link);
	probe_link_free(i->window);
	if (i->fd >= 0)
		close(i->fd);
	free(i->sites);
	free(i->path);
	free(i->version);
	free(i);
}

void images_detach(struct images *m)
{
	size_t i;

	for (i = 0; i < m->count; i++) {
		probe_link_free(m->items[i]->link);
		probe_link_free(m->items[i]->window);
		m->items[i]->link = m->items[i]->window = NULL;
	}
}

void images_free(struct images *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->count; i++)
		image_free(m->items[i]);
	free(m->items);
	free(m->known);
	free(m);
}

bool images_known(const struct images *m, uint64_t dev, uint64_t ino)
{
	size_t i;

	for (i = 0; i < m->known_count; i++)
		if (m->known[i].ino == ino && m->known[i].dev == dev)
			return true;
	return false;
}

size_t images_count(const struct images *m)
{
	return m->count;
}

struct image *images_get(const struct images *m, size_t i)
{
	return i < m->count ? m->items[i] : NULL;
}

static int remember(struct images *m, uint64_t dev, uint64_t ino)
{
	if (m->known_count == m->known_room) {
		size_t room = m->known_room ? 2 * m->known_room : 64;
		struct known *grown = realloc(m->known, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->known = grown;
		m->known_room = room;
	}
	m->known[m->known_count++] = (struct known){dev, ino};
	return 0;
}

static struct image *find(const struct images *m, uint64_t dev, uint64_t ino)
{
	size_t i;

	for (i = 0; i < m->count; i++)
		if (m->items[i]->ino == ino && m->items[i]->dev == dev)
			return m->items[i];
	return NULL;
}

/* "580.159.04" of ".../libcuda.so.580.159.04"; "" where the name does not say. */
static char *version_of(const char *path)
{
	const char *base = strrchr(path, '/'), *so;

	base = base ? base + 1 : path;
	so = strstr(base, ".so.");
	return strdup(so ? so + 4 : "");
}

struct site_scan {
	const struct images *images;
	struct image *image;
	struct elf *elf;
	size_t room;
	bool seen_library[API_NCCL + 1];
};

static struct image_site *site_known(struct image *i, uint16_t api)
{
	size_t n;

	for (n = 0; n < i->sites_count; n++)
		if (i->sites[n].api == api)
			return &i->sites[n];
	return NULL;
}

static bool offset_taken(const struct image *i, uint64_t offset)
{
	size_t n;

	for (n = 0; n < i->sites_count; n++)
		if (i->sites[n].offset == offset && i->sites[n].state != SITE_NOT_HOOKED)
			return true;
	return false;
}

static void site_judge(const struct site_scan *scan, const struct elf_symbol *symbol,
		       struct image_site *out)
{
	struct site where = site_choose(scan->elf, symbol);

	out->offset = where.offset;
	out->reason = where.reason;
	out->state = SITE_HOOKED;
	if (where.verdict == SITE_REFUSED ||
	    (where.verdict == SITE_SLOW && !scan->images->options.allow_slow))
		out->state = SITE_NOT_HOOKED;
	else if (offset_taken(scan->image, where.offset)) {
		out->state = SITE_NOT_HOOKED;
		out->reason = "another name of a function that is hooked";
	} else if (!catalogue_get(out->api)->return_ok)
		out->state = SITE_ENTRY_ONLY;
}

/* Where each probe is dear to take away: what launches, waits, moves and allocates. */
static bool among_few(const struct api *api)
{
	switch (api->kind) {
	case API_LAUNCH:
	case API_SYNC:
	case API_COPY:
	case API_SET:
	case API_ALLOC:
	case API_FREE:
	case API_QUERY:
	case API_COLLECTIVE:
		return true;
	case API_GRAPH:
		return strstr(api->name, "GraphLaunch") != NULL;
	default:
		return api->shape == GBPF_SHAPE_GET_NAMED || api->shape == GBPF_SHAPE_UNLOAD;
	}
}

static bool is_hot(const struct images_options *o, uint16_t api)
{
	if (!o->windows)
		return false;
	return o->always ? !o->always[api] : o->hot(catalogue_get(api));
}

static int on_function(const struct elf_symbol *symbol, void *ctx)
{
	uint16_t api = catalogue_find(symbol->name);
	struct site_scan *scan = ctx;
	struct image_site site = {.api = api};
	struct image *i = scan->image;

	if (!api)
		return 0;
	scan->seen_library[catalogue_get(api)->library] = true;
	if (!scan->images->options.selection->wanted[api] || site_known(i, api))
		return 0;
	if (scan->images->options.few && !among_few(catalogue_get(api)))
		return 0;
	if (i->sites_count == scan->room) {
		size_t room = scan->room ? 2 * scan->room : 256;
		struct image_site *grown = realloc(i->sites, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		i->sites = grown;
		scan->room = room;
	}
	site_judge(scan, symbol, &site);
	site.hot = is_hot(&scan->images->options, api);
	i->sites[i->sites_count++] = site;
	i->hooked += site.state != SITE_NOT_HOOKED;
	return 0;
}

/* Executables and libraries with device code but no libcudart carry a runtime of their own. */
static bool has_static_runtime(struct elf *e)
{
	return (elf_has_section(e, ".nvFatBinSegment") || elf_has_section(e, ".nv_fatbin")) &&
	       !elf_needs(e, "libcudart.so");
}

static enum image_kind kind_of(const struct site_scan *scan, bool library_name)
{
	if (scan->seen_library[API_DRIVER] && library_name)
		return IMAGE_DRIVER;
	if (scan->seen_library[API_NCCL] && library_name)
		return IMAGE_NCCL;
	if (scan->seen_library[API_RUNTIME])
		return library_name ? IMAGE_RUNTIME : IMAGE_STATIC_RUNTIME;
	return has_static_runtime(scan->elf) ? IMAGE_STATIC_RUNTIME : IMAGE_NONE;
}

/* Does its name say that it is one of NVIDIA's libraries? Others may embed their functions. */
static bool library_name(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, "libcuda.so", 10) || !strncmp(base, "libcudart", 9) ||
	       !strncmp(base, "libnccl", 7);
}

static int image_scan(struct images *m, struct image *i, struct elf *e)
{
	struct site_scan scan = {.images = m, .image = i, .elf = e};
	bool named = library_name(i->path);
	int err;

	snprintf(i->build_id, sizeof(i->build_id), "%s", elf_build_id(e));
	if (!named && !has_static_runtime(e))
		return 0;
	err = elf_each_function(e, on_function, &scan);
	if (err)
		return err;
	i->kind = kind_of(&scan, named);
	if (i->hooked)
		return 0;
	if (i->kind == IMAGE_STATIC_RUNTIME && !i->sites_count &&
	    selection_wants_library(m->options.selection, API_RUNTIME))
		i->trouble = "a runtime is linked in and its symbols are stripped: its own calls "
			     "cannot be seen, the driver calls it makes can";
	else if (i->sites_count)
		i->trouble = "no function begins with an instruction that is safe and cheap to "
			     "probe (--allow-slow-probes hooks them all the same)";
	else
		i->trouble = "exports none of the functions asked for";
	return 0;
}

static bool of_build(const struct images *m, const struct image *other, const struct image *i)
{
	return (other->link || (m->options.always && other->slot && !other->same_as)) &&
	       !strcmp(other->build_id, i->build_id);
}

/* Only a file that has probes now can be known again: takes them there for the moment. */
static int probed_sites(struct images *m, const struct image *i, int fd, const uint64_t *offsets,
			size_t n)
{
	bool *opened = calloc(m->count + 1, sizeof(*opened));
	int probed;
	size_t k;

	if (!opened)
		return -ENOMEM;
	for (k = 0; k < m->count; k++)
		opened[k] = m->options.always && of_build(m, m->items[k], i) &&
			    !image_window_open(m->items[k], m->probes);
	probed = identity_probed(fd, offsets, n);
	for (k = 0; k < m->count; k++)
		if (opened[k])
			probe_link_free(image_window_take(m->items[k]));
	free(opened);
	return probed;
}

/* The same real file under another name: its first sites hold breakpoints already. */
static struct image *same_file(struct images *m, const struct image *i, int fd)
{
	struct image *twin = NULL;
	uint64_t offsets[8];
	size_t n = 0, k;
	int probed;

	for (k = 0; k < m->count && !twin; k++)
		if (of_build(m, m->items[k], i))
			twin = m->items[k];
	if (!twin)
		return NULL; /* another tracer's probes, if any: they do not keep us away */
	for (k = 0; k < i->sites_count && n < 8; k++)
		if (i->sites[k].state != SITE_NOT_HOOKED &&
		    (m->options.always || !i->sites[k].hot))
			offsets[n++] = i->sites[k].offset;
	probed = probed_sites(m, i, fd, offsets, n);
	return probed > 0 && (size_t)probed >= n ? twin : NULL;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int image_attach(struct images *m, struct image *i, int fd)
{
	struct probe_link *none;
	int err = 0;

	i->slot = m->next_slot++;
	i->always_flags = m->options.always_flags;
	if (i->kind == IMAGE_DRIVER)
		probes_name_offset(m->probes, i->slot, 8);
	i->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (i->fd < 0)
		err = -errno;
	if (!err)
		err = image_replan(i, m->probes, &none);
	if (i->fd >= 0 && !m->options.windows) {
		close(i->fd);
		i->fd = -1;
	}
	if (err) {
		i->trouble = "the kernel refused the probes";
		return err;
	}
	i->covered = now_ns();
	return 0;
}

static int image_examine(struct images *m, struct image *i, int fd)
{
	struct elf *e;
	int err = elf_open(&e, fd);

	if (!err) {
		err = image_scan(m, i, e);
		elf_close(e);
	} else if (err != -EBADMSG && err != -EFBIG && err != -ENOMEM) {
		return 0; /* not an ELF file we can read: none of ours */
	}
	if (err == -EBADMSG || err == -EFBIG) {
		i->kind = library_name(i->path) ? IMAGE_DRIVER : IMAGE_NONE;
		i->trouble = "its tables are damaged";
		i->hooked = i->sites_count = 0; /* what was found until then is not hooked */
		return 0;
	}
	return err;
}

static int image_keep(struct images *m, struct image *i)
{
	struct image **grown = realloc(m->items, (m->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	m->items = grown;
	m->items[m->count++] = i;
	return 0;
}

static struct image *image_new(const struct stat *st, const char *path, int64_t mapped)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->dev = st->st_dev;
	i->ino = st->st_ino;
	i->mapped = mapped;
	i->fd = -1;
	i->path = strdup(path);
	i->version = version_of(path);
	if (i->path && i->version)
		return i;
	image_free(i);
	return NULL;
}

/* Attaches what was found worth it; the image is kept already. */
static int image_probe(struct images *m, struct image *i, int fd)
{
	if (!i->hooked || m->options.dry)
		return 0;
	i->same_as = same_file(m, i, fd);
	if (i->same_as) {
		i->slot = i->same_as->slot;
		i->covered = i->same_as->covered;
		return 0;
	}
	if (m->next_slot == 0xffff)
		return -ENOSPC;
	return image_attach(m, i, fd);
}

int images_add(struct images *m, int fd, const char *path, int64_t mapped, struct image **out)
{
	struct image *i;
	struct stat st;
	int err;

	*out = NULL;
	if (fstat(fd, &st))
		return -errno;
	if (images_known(m, st.st_dev, st.st_ino)) {
		*out = find(m, st.st_dev, st.st_ino);
		return 0;
	}
	err = remember(m, st.st_dev, st.st_ino);
	if (err)
		return err;
	if (!library_name(path) && !m->options.static_runtime)
		return 0;
	i = image_new(&st, path, mapped);
	if (!i)
		return -ENOMEM;
	err = image_examine(m, i, fd);
	if (err || i->kind == IMAGE_NONE) {
		image_free(i);
		return err;
	}
	err = image_keep(m, i);
	if (err) {
		image_free(i);
		return err;
	}
	*out = i;
	err = image_probe(m, i, fd);
	return err ? err : 1;
}
