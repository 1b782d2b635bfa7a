// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUDA libraries that are installed here, found by name alone: no file is
 * opened. Which directories are looked at is said by the tables below; each is
 * read flat, so the depth is that of its pattern.
 */
#include "target/target.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

#define DIRS_MAX 512	   /* directories looked at in one search */
#define ENTRIES_MAX 100000 /* entries read of one directory */

static bool has_prefix(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

/* NAME.so or NAME.so.VERSION */
static bool is_library(const char *base, size_t len, const char *name)
{
	size_t n = strlen(name);

	return has_prefix(base, len, name) && has_prefix(base + n, len - n, ".so") &&
	       (len == n + 3 || base[n + 3] == '.');
}

/* Wheels bundle the runtime as libcudart-HASH.so.VERSION. */
static bool is_bundled_runtime(const char *base, size_t len)
{
	static const char name[] = "libcudart-";
	size_t n = sizeof(name) - 1;

	if (!has_prefix(base, len, name))
		return false;
	while (n < len && isxdigit((unsigned char)base[n]))
		n++;
	return n > sizeof(name) - 1 && has_prefix(base + n, len - n, ".so") &&
	       (len == n + 3 || base[n + 3] == '.');
}

enum image_hint image_hint(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t len;

	/* Nearly all names end here: this is called for every mapping of the machine. */
	if (strncmp(base, "libcuda", 7) && strncmp(base, "libnccl", 7))
		return HINT_NONE;
	len = parse_deleted(base, strlen(base));
	if (is_library(base, len, "libcuda"))
		return HINT_DRIVER;
	if (is_library(base, len, "libcudart") || is_bundled_runtime(base, len))
		return HINT_RUNTIME;
	return is_library(base, len, "libnccl") ? HINT_NCCL : HINT_NONE;
}

struct file_id {
	dev_t dev;
	ino_t ino;
};

struct finder {
	int (*each)(const char *path, enum image_hint hint, void *ctx);
	void *ctx;
	struct file_id dirs[DIRS_MAX];
	size_t dir_count;
	struct file_id *files;
	size_t file_count, file_room;
};

static bool known(const struct file_id *ids, size_t count, const struct stat *st)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i].dev == st->st_dev && ids[i].ino == st->st_ino)
			return true;
	return false;
}

static int report(struct finder *f, int dir, const char *dir_path, const char *name)
{
	enum image_hint hint = image_hint(name);
	char path[PATH_MAX], real[PATH_MAX];
	struct stat st;

	if (hint == HINT_NONE || fstatat(dir, name, &st, 0) || !S_ISREG(st.st_mode) ||
	    known(f->files, f->file_count, &st))
		return 0;
	if (f->file_count == f->file_room) {
		size_t room = f->file_room ? 2 * f->file_room : 32;
		struct file_id *files = realloc(f->files, room * sizeof(*files));

		if (!files)
			return -ENOMEM;
		f->files = files;
		f->file_room = room;
	}
	f->files[f->file_count++] = (struct file_id){ st.st_dev, st.st_ino };
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir_path, name) >= sizeof(path))
		return 0;
	return f->each(realpath(path, real) ? real : path, hint, f->ctx);
}

static int search_dir(struct finder *f, const char *path)
{
	int ret = 0, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || f->dir_count == DIRS_MAX || known(f->dirs, f->dir_count, &st) ||
	    !(dir = fdopendir(fd))) {
		close(fd);
		return 0;
	}
	f->dirs[f->dir_count++] = (struct file_id){ st.st_dev, st.st_ino };
	for (size_t i = 0; !ret && i < ENTRIES_MAX && (entry = readdir(dir)); i++)
		ret = report(f, fd, path, entry->d_name);
	closedir(dir);
	return ret;
}

static int search_pattern(struct finder *f, const char *pattern)
{
	glob_t found;
	int ret = 0;

	if (glob(pattern, GLOB_NOSORT | GLOB_ONLYDIR | GLOB_BRACE, NULL, &found))
		return 0;
	for (size_t i = 0; !ret && i < found.gl_pathc; i++)
		ret = search_dir(f, found.gl_pathv[i]);
	globfree(&found);
	return ret;
}

/* prefix is taken literally, pattern is not. Too long: there is nothing there. */
static int search_under(struct finder *f, const char *prefix, const char *pattern)
{
	char joined[PATH_MAX];
	size_t n = 0;

	for (const char *p = prefix; *p; p++) {
		if (n + 3 > sizeof(joined))
			return 0;
		if (strchr("*?[]{}~,\\", *p))
			joined[n++] = '\\';
		joined[n++] = *p;
	}
	if ((size_t)snprintf(joined + n, sizeof(joined) - n, "%s", pattern) >= sizeof(joined) - n)
		return 0;
	return search_pattern(f, joined);
}

/* Each of the directories of a list like PATH; blanks of ld.so's own lists separate too. */
static int search_list(struct finder *f, const char *list, const char *const *patterns)
{
	int ret = 0;

	while (list && *list && !ret) {
		size_t len = strcspn(list, ":;");
		char dir[PATH_MAX];

		/* An empty or relative entry means wherever the command is started. */
		if (*list == '/' && len < sizeof(dir)) {
			memcpy(dir, list, len);
			dir[len] = '\0';
			for (size_t i = 0; !ret && patterns[i]; i++)
				ret = search_under(f, dir, patterns[i]);
		}
		list += len + (list[len] != '\0');
	}
	return ret;
}

static const char *const itself[] = { "", NULL };

/* Below a directory of Python packages: NVIDIA's wheels, PyTorch, and others that bundle. */
static const char *const packages[] = { "/nvidia/*/lib", "/torch/lib", "/*.libs", NULL };

/* Below a prefix that a Python interpreter or a conda environment lives in. */
static const char *const prefix_dirs[] = {
	"/lib",
	"/targets/*/lib",
	"/lib{,64}/python3*/{site,dist}-packages/nvidia/*/lib",
	"/lib{,64}/python3*/{site,dist}-packages/torch/lib",
	NULL,
};

static const char *const conda_dirs[] = {
	"/lib",
	"/lib/python3*/site-packages/nvidia/*/lib",
	"/lib/python3*/site-packages/torch/lib",
	"/envs/*/lib",
	"/envs/*/lib/python3*/site-packages/nvidia/*/lib",
	"/envs/*/lib/python3*/site-packages/torch/lib",
	NULL,
};

static const char *const home_dirs[] = {
	"/.local/lib/python3*/site-packages/nvidia/*/lib",
	"/.local/lib/python3*/site-packages/torch/lib",
	"/.pyenv/versions/*/lib/python3*/site-packages/nvidia/*/lib",
	"/.pyenv/versions/*/lib/python3*/site-packages/torch/lib",
	NULL,
};

static const char *const conda_names[] = { "/miniconda3", "/anaconda3", "/miniforge3",
					   "/mambaforge", "/micromamba", "/conda", NULL };

static const char *const system_dirs[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/lib64",
	"/usr/lib/{x86_64,aarch64}-linux-gnu/nvidia{,/current}",
	"/usr/lib/wsl/lib",
	"/usr/local/lib",
	"/usr/local/lib64",
	"/usr/local/nvidia/lib{,64}",
	"/usr/local/cuda*/{lib64,compat}",
	"/usr/local/cuda*/targets/*/lib",
	"/opt/cuda/{lib64,targets/*/lib}",
	"/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*/{lib64,targets/*/lib}",
	"/opt/nvidia/hpc_sdk/Linux_*/*/comm_libs/*/nccl/lib",
	"/run/opengl-driver/lib",
	"/usr{,/local}/lib{,64}/python3*/{site,dist}-packages/nvidia/*/lib",
	"/usr{,/local}/lib{,64}/python3*/{site,dist}-packages/torch/lib",
	"/opt/*/lib",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/*/lib/python3*/site-packages/torch/lib",
	NULL,
};

static int search_all(struct finder *f, const char *prefix, const char *const *patterns)
{
	int ret = 0;

	for (size_t i = 0; !ret && patterns[i]; i++)
		ret = search_under(f, prefix, patterns[i]);
	return ret;
}

/* One directory a line; ld.so.conf's own includes lead back to the files read here. */
static int search_ld_conf(struct finder *f)
{
	glob_t found;
	int ret = 0;

	if (glob("/etc/ld.so.conf.d/*.conf", GLOB_NOSORT, NULL, &found))
		return 0;
	for (size_t i = 0; !ret && i < found.gl_pathc; i++) {
		char text[8192], *rest = text, *line;

		if (proc_read(AT_FDCWD, found.gl_pathv[i], text, sizeof(text)) < 0)
			continue;
		while (!ret && (line = strsep(&rest, "\n"))) {
			line[strcspn(line, "#\r\t ")] = '\0';
			ret = search_list(f, line, itself);
		}
	}
	globfree(&found);
	return ret;
}

static int search_prefix(struct finder *f, const char *prefix)
{
	return prefix && *prefix == '/' ? search_all(f, prefix, prefix_dirs) : 0;
}

static int search_home(struct finder *f, const char *home)
{
	char conda[PATH_MAX];
	int ret;

	/* A home of "/" would only repeat the system's directories. */
	if (!home || home[0] != '/' || !home[1])
		return 0;
	ret = search_all(f, home, home_dirs);
	for (size_t i = 0; !ret && conda_names[i]; i++) {
		snprintf(conda, sizeof(conda), "%.3900s%s", home, conda_names[i]);
		ret = search_all(f, conda, conda_dirs);
	}
	return ret;
}

/* Under sudo, HOME is root's, but what is installed for the user who called counts too. */
static const char *sudo_home(void)
{
	const char *uid = getenv("SUDO_UID");
	uint32_t number;
	struct passwd *user;

	if (!uid || !proc_number(uid, &number))
		return NULL;
	user = getpwuid(number);
	return user ? user->pw_dir : NULL;
}

static struct finder *finder_new(int (*each)(const char *path, enum image_hint hint, void *ctx),
				 void *ctx)
{
	struct finder *f = calloc(1, sizeof(*f));

	if (f) {
		f->each = each;
		f->ctx = ctx;
	}
	return f;
}

static void finder_free(struct finder *f)
{
	free(f->files);
	free(f);
}

int images_installed(int (*each)(const char *path, enum image_hint hint, void *ctx), void *ctx)
{
	struct finder *f = finder_new(each, ctx);
	int ret;

	if (!f)
		return -ENOMEM;
	ret = search_all(f, "", system_dirs);
	if (!ret)
		ret = search_ld_conf(f);
	if (!ret)
		ret = search_list(f, getenv("LD_LIBRARY_PATH"), itself);
	if (!ret)
		ret = search_prefix(f, getenv("VIRTUAL_ENV"));
	if (!ret)
		ret = search_prefix(f, getenv("CONDA_PREFIX"));
	if (!ret)
		ret = search_all(f, "/opt/conda", conda_dirs);
	if (!ret)
		ret = search_home(f, getenv("HOME"));
	if (!ret)
		ret = search_home(f, sudo_home());
	finder_free(f);
	return ret;
}

static const char *variable(char *const envp[], const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static bool runnable(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

bool command_find(const char *command, char *const envp[], char *out, size_t size)
{
	const char *path = variable(envp, "PATH");

	if (strchr(command, '/'))
		return (size_t)snprintf(out, size, "%s", command) < size && runnable(out);
	while (path && *path) {
		int len = (int)strcspn(path, ":");

		if ((size_t)snprintf(out, size, "%.*s/%s", len ? len : 1, len ? path : ".",
				     command) < size &&
		    runnable(out))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* exe's directory, and where that is a "bin", the environment around it. */
static int search_around(struct finder *f, char *exe)
{
	char *slash = strrchr(exe, '/');
	int ret;

	if (!slash || slash == exe)
		return 0;
	*slash = '\0';
	ret = search_all(f, exe, itself);
	slash = strrchr(exe, '/');
	if (ret || !slash || slash == exe || strcmp(slash, "/bin"))
		return ret;
	*slash = '\0';
	return search_prefix(f, exe);
}

int images_of_command(const char *command, char *const envp[],
		      int (*each)(const char *path, enum image_hint hint, void *ctx), void *ctx)
{
	struct finder *f = finder_new(each, ctx);
	char exe[PATH_MAX], real[PATH_MAX];
	int ret = 0;

	if (!f)
		return -ENOMEM;
	/* A virtual environment's python is a link: what is around the link and around the file. */
	if (command_find(command, envp, exe, sizeof(exe))) {
		if (realpath(exe, real))
			ret = search_around(f, real);
		if (!ret)
			ret = search_around(f, exe);
	}
	if (!ret)
		ret = search_list(f, variable(envp, "LD_LIBRARY_PATH"), itself);
	if (!ret)
		ret = search_list(f, variable(envp, "PYTHONPATH"), packages);
	if (!ret)
		ret = search_prefix(f, variable(envp, "VIRTUAL_ENV"));
	if (!ret)
		ret = search_prefix(f, variable(envp, "CONDA_PREFIX"));
	finder_free(f);
	return ret;
}
