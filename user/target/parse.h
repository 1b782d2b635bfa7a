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
	uint64_t cpu;	/* clock ticks used, children that were waited for included: 14 to 17 */
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

/* ---- who a process is on a cluster (parse_labels.c) ---- */

/* One line of /proc/PID/cgroup: the UID of its pod, its job. False, and "" in out: names none. */
bool parse_pod_line(const char *line, size_t len, char *out, size_t size);
bool parse_slurm_line(const char *line, size_t len, char *out, size_t size);

/* The only variables of a process that are ever kept; in each group the first one set counts. */
enum parsed_variable {
	ENV_POD = 0, /* POD_NAME, K8S_POD_NAME, KUBERNETES_POD_NAME, MY_POD_NAME */
	ENV_NAMESPACE, /* POD_NAMESPACE, and likewise */
	ENV_HOSTNAME,
	ENV_KUBERNETES, /* KUBERNETES_SERVICE_HOST */
	ENV_RANK, /* RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK; digits only */
	ENV_LOCAL_RANK, /* LOCAL_RANK, SLURM_LOCALID, OMPI_COMM_WORLD_LOCAL_RANK; digits only */
	ENV_SLURM_JOB, /* SLURM_JOB_ID, SLURM_JOBID; digits only */
	ENV_VARIABLES,
};

/*
 * /proc/PID/environ, handed over in pieces of any length, 0 at first, and its end told by
 * parse_environ_end(). Of a name that is set twice the first value is kept, as getenv() does;
 * values are cut to what fits.
 */
struct parsed_environ {
	char value[ENV_VARIABLES][128]; /* "": not set */
	unsigned order[ENV_VARIABLES];	/* 1 + place in its group of the name that was kept */
	char entry[192];
	size_t len;
};
void parse_environ(struct parsed_environ *e, const char *bytes, size_t len);
void parse_environ_end(struct parsed_environ *e);

/* ---- what was used (parse_usage.c) ---- */

/* /proc/PID/io, proc_pid_io(5). 0 or -EINVAL unless both numbers are there. */
struct parsed_io {
	uint64_t read_bytes, write_bytes;
};
int parse_io(const char *text, size_t len, struct parsed_io *out);

/* /proc/PID/task/TID/schedstat: ns on a CPU, ns waiting for one. 0 or -EINVAL. */
int parse_schedstat(const char *text, size_t len, uint64_t *run_ns, uint64_t *delay_ns);

/* cpu.stat of either version: periods in which it was throttled, ns of that. 0 or -EINVAL. */
int parse_cpu_stat(const char *text, size_t len, uint64_t *ns, uint64_t *periods);

/* Does cpu.max (v2) or cpu.cfs_quota_us (v1) set a quota? "max …" and "-1" do not. */
bool parse_cpu_quota(const char *text, size_t len);

/*
 * One line of /proc/PID/cgroup: path of the cgroup that limits CPU time, "/…", pointing into
 * line and ending with it. 1: version 1's cpu controller, 2: version 2; 0: another hierarchy.
 */
int parse_cpu_cgroup(const char *line, size_t len, const char **path);

/* ---- for these only ---- */

/* Unlike strtoull: no blanks, no sign, no 0x, and too large is an error. Moves *p. */
bool parse_number(const char **p, const char *end, unsigned base, uint64_t *out);
/* The path in a line of /proc/PID/cgroup, NULL if there is none; *len becomes its length. */
const char *parse_cgroup_path(const char *line, size_t *len);

#endif
