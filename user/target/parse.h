/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of /proc, parsed without any I/O. All of them may hold bytes that
 * a target chose. Every text has length len and a NUL at text[len].
 */
#ifndef GBPF_TARGET_PARSE_H
#define GBPF_TARGET_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pid namespaces nest at most 32 deep (MAX_PID_NS_LEVEL), and the host's is one more. */
#define PARSE_PID_LEVELS 33

/* /proc/PID/stat, proc_pid_stat(5): comm may hold anything, so its end is the last ')'. */
struct parsed_stat {
	char comm[16]; /* kernel threads can have more: cut */
	char state;
	uint32_t ppid, threads;
	uint64_t start; /* clock ticks since boot, field 22 */
};
int parse_stat(const char *text, size_t len, struct parsed_stat *out); /* 0 or -EINVAL */

/* /proc/PID/status, one line at a time; lines that are not asked for are passed over. */
struct parsed_status {
	uint32_t tgid, uid;
	unsigned seccomp; /* 0 off, 1 strict, 2 filter */
	unsigned levels;  /* how many of pids are there; 0: no NSpid line was seen */
	uint32_t pids[PARSE_PID_LEVELS]; /* NSpid, outermost first */
};
void parse_status_line(const char *line, size_t len, struct parsed_status *out);

/*
 * One line of /proc/PID/maps. path points into line, which is changed: "\012"
 * becomes the newline it stands for and " (deleted)" is cut off. A name that
 * really holds those texts cannot be told apart, so neither is proof.
 */
struct parsed_map {
	uint64_t start, end, offset, dev, ino;
	bool executable, deleted;
	char *path; /* "" for anonymous memory */
};
int parse_maps_line(char *line, size_t len, struct parsed_map *out); /* 0 or -EINVAL */

/* Cuts " (deleted)" off a path of this length: the length that is left. */
size_t parse_deleted(const char *path, size_t len);

/*
 * One line of /proc/PID/cgroup ("ID:CONTROLLERS:PATH", v1 and v2): writes the
 * innermost container's id, the first 12 digits where it is a hash. False, and
 * "" in id, if the path names no container.
 */
bool parse_cgroup_line(const char *line, size_t len, char *id, size_t size);

#endif
