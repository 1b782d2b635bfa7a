/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct tracer, shared by the files of this folder. */
#ifndef GBPF_TRACE_PRIVATE_H
#define GBPF_TRACE_PRIVATE_H

#include "collect/rings.h"
#include "probe/hold.h"
#include "record/writer.h"
#include "target/target.h"
#include "trace/gpu_time.h"
#include "trace/idset.h"
#include "trace/tracer.h"

struct elf;

/* What is known of how this driver lays out its handles (names.c). */
struct name_layout {
	uint8_t offset;
	uint32_t confirmed, contradicted;
};

struct ended_list { /* processes of which the end was read */
	struct ended {
		uint32_t pid;
		int64_t ts;
	} *items;
	size_t count, room;
};

struct stub_file { /* an executable whose host functions stand for kernels */
	uint64_t dev, ino;
	int fd;
	struct elf *elf;
};

#define STUB_FILES 8

struct tracer {
	struct tracer_options options;
	struct probes *probes;
	struct images *images;
	struct watch *watch;
	bool holds; /* there was a hold */
	struct hold_stats held;
	struct hold *hold; /* NULL: not with a command, or this kernel cannot */
	struct rings *rings;
	struct writer *writer;
	int epoll;
	struct calibration cost;
	int64_t begin, end;
	int64_t next_tick, pause;
	uint64_t round_bytes;
	int64_t round_at;
	struct idset processes; /* pids recorded */
	struct idset threads;	/* (pid, tid) recorded */
	struct ended_list ended[2]; /* read in this round, in the one before */
	uint64_t last_thread;	/* the one most events in a row come from */
	uint32_t targets;
	bool cuda_seen;
	uint32_t denied; /* a process that may not be looked into: told once */
	uint64_t lost_ring, lost_state, lost_perf, lost_malformed, lost_names; /* as recorded */
	uint64_t perf_lost, names_lost;
	struct name_layout layout;
	struct stub_file stubs[STUB_FILES];
	size_t stubs_count, stubs_next;
	uint64_t bytes_written, events_written; /* once the file is closed */
	int64_t part; /* what is written begins there, ns; 0: where the recording does */
	int error; /* the first failure of the file */
	struct gpus_recorder *gpus; /* NULL: the GPUs are not asked */
	struct scheduled *scheduled; /* NULL: all of the time is recorded */
	struct recorder *recorder;   /* NULL: all that is recorded goes into one file */
	struct gpu_time *gpu_time;  /* NULL: not asked for, or over */
	struct gpu_time_stats gpu_time_stats; /* when it is over */
};

int64_t tracer_now(void);
int64_t tracer_realtime(void);
/* Into the file, or wherever records go instead. 0 or -errno. */
int tracer_add(struct tracer *t, const struct record *record);
void tracer_tell(const struct tracer *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* follow.c */
#define FOLLOW_DENIED                                                                              \
	"not permitted to look into process %u: run it with sudo (gbpf doctor says which rights "  \
	"are missing)"
int follow_targets(struct tracer *t, char *why, size_t size);
int follow_installed(struct tracer *t);
int follow_process_images(struct tracer *t, uint32_t pid);
int follow_notices(struct tracer *t);

/* held.c: with a command only; t->hold is NULL otherwise, and where the kernel cannot */
int held_new(struct tracer *t);
/* Looks at what they mapped, and lets those who wait go on. */
int held_release(struct tracer *t);
/* Nobody waits from here on; what was waited is kept in t->held. */
void held_stop(struct tracer *t);
/* A dynamic linker was mapped: wait in its processes, too. */
bool held_linker(struct tracer *t, uint32_t pid, const struct mapping *m);
bool held_wants_path(const struct tracer *t, const char *path);
/* Would this process have waited for what it mapped then (ns; 0: not seen)? */
bool held_covers(struct tracer *t, uint32_t pid, int64_t when);
/* The file behind fd was looked at: if it is probed, nobody need wait for it. */
void held_publish(struct tracer *t, const struct image *image, int fd);
bool follow_wants_path(const char *path, void *ctx);

/* processes.c */
/* Sets its bit, unless it has ended: a bit that no exit clears would stay for a reused pid. */
void processes_want(struct tracer *t, uint32_t pid);
int processes_seen(struct tracer *t, uint32_t pid, int64_t ts, unsigned event);
int processes_event(struct tracer *t, const struct gbpf_process *p);
int processes_threads(struct tracer *t, const struct event *events, size_t count);
void processes_round(struct tracer *t); /* all rings were read once more */
void processes_close(struct tracer *t);

/* labels.c: ranks and pods, where the environment says them; INFO clock_max_error_ns */
int labels_write(struct tracer *t, uint32_t pid, int64_t ts);
int clock_sync_write(struct tracer *t);

/* cgroup.c: depth of a cgroup2 directory below the root, -ENOTSUP where that cannot be known */
int cgroup_level(const char *path, uint32_t *level);

/* names.c */
int names_add(struct tracer *t, const struct gbpf_name *n);
void names_close(struct tracer *t);

/* gpus.c */
void gpus_start(struct tracer *t);
int gpus_tick(struct tracer *t);   /* writes what is new; 0 or -errno of the file */
int gpus_finish(struct tracer *t); /* the same, once more, and stops */
void gpus_stop(struct tracer *t);  /* lets go of the driver; may be repeated */

/* gpu_time.c; all but start do nothing where GPU time was not asked for. 0 or -errno. */
int gpu_time_start(struct tracer *t); /* before probes; sidecars start with the first step */
int gpu_time_step(struct tracer *t);
int64_t gpu_time_pause(const struct tracer *t); /* ns that a step may wait */
/* It called CUDA then (ns); one that had ended by then is another. */
int gpu_time_process(struct tracer *t, uint32_t pid, int64_t ts);
int gpu_time_missed(struct tracer *t, uint32_t pid, int64_t ts); /* and has ended since */
int gpu_time_ended(struct tracer *t, uint32_t pid, int64_t ts);  /* or became another program */
/* In a schedule: sidecars begin, if they rest; and end their windows, after which they rest. */
void gpu_time_turn(struct tracer *t);
void gpu_time_rest(struct tracer *t);
bool gpu_time_ready(const struct tracer *t); /* nobody is about to begin */
bool gpu_time_rests(const struct tracer *t); /* no sidecar records */
int gpu_time_stop(struct tracer *t);	/* has the sidecars end their windows */
int gpu_time_finish(struct tracer *t);	/* takes what is left, once they have stopped */
void gpu_time_free(struct tracer *t);	/* idempotent */
void gpu_time_stats(const struct tracer *t, struct gpu_time_stats *out);

/* scheduled.c; all do nothing where no schedule was asked for. 0 or -errno. */
int scheduled_new(struct tracer *t, struct images_options *io);
int scheduled_start(struct tracer *t);
int scheduled_step(struct tracer *t);
int64_t scheduled_pause(const struct tracer *t); /* ns that a step may wait */
bool scheduled_wants_path(const struct tracer *t, const char *path);
int scheduled_mapping(struct tracer *t, uint32_t pid, const struct mapping *m);
int scheduled_image(struct tracer *t, struct image *image); /* a new one */
int scheduled_name(struct tracer *t, const struct gbpf_name *n, const char *name);
void scheduled_ended(struct tracer *t, uint32_t pid); /* or became another program */
int scheduled_events(struct tracer *t, const struct event *events, size_t count);
int scheduled_stop(struct tracer *t); /* the window that is open ends */
int scheduled_end(struct tracer *t);  /* and what is recorded around it, with GPU time */
int scheduled_meta(struct tracer *t);
void scheduled_free(struct tracer *t); /* idempotent */
void scheduled_stats(const struct tracer *t, struct schedule_stats *out);
uint64_t scheduled_kept(const struct tracer *t); /* events; there is a schedule */

/* recorder.c; step, pause, ended, finish and free do nothing where there is no recorder. */
int recorder_new(struct tracer *t, char *why, size_t size); /* 0 or -errno */
int recorder_add(struct tracer *t, const struct record *record);
int recorder_events(struct tracer *t, const struct event *events, size_t count);
/* Each ring was emptied, and all that had happened by then (ns) was there. 0 or -errno. */
int recorder_round(struct tracer *t, int64_t upto);
void recorder_step(struct tracer *t); /* writes on, if a file is being written */
int64_t recorder_pause(const struct tracer *t); /* ns that a step may wait */
void recorder_ended(struct tracer *t);	/* a process did */
void recorder_finish(struct tracer *t); /* writes what is to be written at the end */
void recorder_free(struct tracer *t);	/* idempotent */
void recorder_stats(const struct tracer *t, struct recorder_stats *out);

/* meta.c */
int meta_catalogue(struct writer *w);
int meta_begin(struct tracer *t);
int meta_tick(struct tracer *t); /* clocks and losses */
int meta_end(struct tracer *t);
/* The same of a part [begin, end), ns, of the recording, into a file of its own. */
int meta_part(struct tracer *t, struct writer *w, int64_t begin, int64_t end);

#endif
