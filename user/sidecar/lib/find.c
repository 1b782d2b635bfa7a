// SPDX-License-Identifier: BSD-2-Clause
#include "find.h"

#include <dirent.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct wanted {
	const char *prefix;
	char *path;
	size_t size;
};

struct counted {
	const char *prefix;
	unsigned count;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int see_object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct wanted *w = user;

	if (!info->dlpi_name || strncmp(base_of(info->dlpi_name), w->prefix, strlen(w->prefix)) ||
	    strlen(info->dlpi_name) >= w->size)
		return 0;
	memcpy(w->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
	return 1;
}

bool find_loaded(const char *prefix, char *path, size_t size)
{
	struct wanted w = { .prefix = prefix, .path = path, .size = size };

	return dl_iterate_phdr(see_object, &w) != 0;
}

static int count_object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct counted *c = user;
	const char *name = info->dlpi_name ? base_of(info->dlpi_name) : "";

	c->count += !strncmp(name, c->prefix, strlen(c->prefix));
	return 0;
}

unsigned find_count(const char *prefix)
{
	struct counted c = { .prefix = prefix };

	(void)dl_iterate_phdr(count_object, &c);
	return c.count;
}

/*
 * The libcupti.so* in directory that try likes. The plain name first: it is the toolkit's
 * own choice. Wheels have only versioned ones.
 */
static bool try_directory(const char *directory, bool (*try)(void *, const char *), void *user)
{
	static const char name[] = "libcupti.so";
	char path[PATH_MAX];
	struct dirent *entry;
	bool found;
	DIR *dir = opendir(directory);

	if (!dir)
		return false;
	found = snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
		try(user, path);
	while (!found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, name, sizeof(name) - 1) ||
		    !entry->d_name[sizeof(name) - 1])
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) <
		    (int)sizeof(path))
			found = try(user, path);
	}
	closedir(dir);
	return found;
}

/* Relative to the directory of libcudart: itself, toolkits, wheels of CUDA 11 and 12. */
static const char *const beside[] = {
	"", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64", "/../../cuda_cupti/lib",
};
static const char *const toolkit[] = {
	"/usr/local/cuda/extras/CUPTI/lib64",
	"/usr/local/cuda/lib64",
	"/usr/local/cuda/targets/x86_64-linux/lib",
	"/usr/local/cuda/targets/sbsa-linux/lib",
	"/usr/lib/x86_64-linux-gnu",
};

bool find_cupti(bool (*try)(void *user, const char *path), void *user)
{
	char cudart[PATH_MAX], directory[PATH_MAX + 64];

	if (find_loaded("libcudart.so", cudart, sizeof(cudart)) && strchr(cudart, '/')) {
		*strrchr(cudart, '/') = '\0';
		for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
			(void)snprintf(directory, sizeof(directory), "%s%s", cudart, beside[i]);
			if (try_directory(directory, try, user))
				return true;
		}
	}
	for (size_t i = 0; i < sizeof(toolkit) / sizeof(*toolkit); i++)
		if (try_directory(toolkit[i], try, user))
			return true;
	return false;
}
