/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct monitor, shared by the files of this folder. */
#ifndef GBPF_MONITOR_PRIVATE_H
#define GBPF_MONITOR_PRIVATE_H

#include "gpu/sampler.h"
#include "monitor/estimate.h"
#include "monitor/monitor.h"
#include "probe/closer.h"
#include "probe/counts.h"
#include "probe/images.h"
#include "probe/selection.h"
#include "target/labels.h"
#include "target/target.h"
#include "target/usage.h"

#define RECENT_TURN_NS 5000000000LL /* "recent" reaches back one to two of these */
#define PERIOD_NS 200000000LL /* budgets are kept over each of these, so that a second holds */

/* What is counted a process. */
enum quantity { Q_LAUNCHES, Q_COPIES, Q_COPY_BYTES, Q_ERRORS, Q_SLOW, Q_COUNT };

/* The counters of a cell, without its buckets. */
struct cell_read {
	uint64_t calls, errors, bytes, sum_ns, slow;
};

/* struct gbpf_gap of the threads of a process, of windows; the older, the less they count. */
struct gaps {
	double count[2], below[2], sum[2], squares[2];
};

/* What a hit costs somewhere, of what it was calibrated to; 1 standard deviation of that. */
struct cost {
	double factor, sd;
};

struct mon_api {
	uint16_t api;
	uint8_t class;
	bool hot;	  /* probed in windows, when it was read last */
	bool mixed;	  /* that changed in this interval, while windows went on */
	uint32_t slot;	  /* of its cell */
	struct cell_read last, begin; /* as read last; when the interval began */
	uint64_t fresh;	  /* calls since it was read before, while always probed */
	double peak;	  /* calls a second while probed; falls slowly */
	uint64_t pool_calls; /* seen since it was looked at last, */
	int64_t pool_ns;     /* in so long */
	uint64_t seen;	  /* in windows of this interval */
	struct series *calls; /* of windows; NULL until there was one */
	/* Buckets at the last two turns of "recent"; NULL: nobody wants to know. */
	uint32_t (*mark)[GBPF_BUCKETS];
};

/* A thread's counters, with what is still going on added up to the moment of reading. */
struct thread_read {
	int64_t at;
	uint64_t spent[2], calls[2], launches;
	uint64_t time[2][2]; /* [windows][waits], ns */
	uint64_t wait[GBPF_INS][GBPF_WAITS];
	uint64_t away, asleep; /* ns; away as far as calls were counted */
	uint64_t cut; /* ns; in a wait that only windows probe and that had not returned */
	struct gbpf_gap gap[2];
	uint16_t open_api;
	int64_t open_since;
};

/* What launches come with, and what of that are our probes (calibrated), ns. */
struct anchor {
	double all, spent;
};

struct mon_thread {
	uint32_t slot, tid;
	char comm[16];
	bool ended;
	struct thread_read begin, now;	  /* of the interval; latest */
	struct thread_read opened, closed; /* of the window, or the part of it that is told */
	struct series *share[2];     /* dispatch and waits, of windows; NULL until there was one */
	uint64_t seen[2];	     /* ns in windows of this interval */
	struct anchor anchor_at, anchors; /* when its image became hot; while it was */
	uint64_t spent_opened;	     /* by probes of windows, when one opened last */
	double window_rate;	     /* share of its time that probes took in the last window */
	double hot_peak;	     /* likewise while a window is open, lately */
};

struct mon_process {
	uint32_t pid;
	int64_t start, seen;
	char comm[16];
	char *command;
	struct labels labels;
	bool ended, told; /* told: a snapshot said what it did last */
	const struct image *image; /* the driver's that it maps; NULL: not known */
	struct mon_api **apis;
	size_t apis_count;
	struct mon_thread **threads;
	size_t threads_count;
	uint32_t proc_slot; /* in counts.procs, GBPF_PROCS: none yet */
	struct gbpf_proc proc_begin;
	uint64_t steady[Q_COUNT], sampled[Q_COUNT]; /* of this interval */
	struct series *series[Q_COUNT];
	uint64_t waits_seen, waits_cut; /* in windows of this interval: all; by a window's end */
	struct anchor anchors; /* thread_anchor() of all that launch, while its image was hot */
	double abreast;	 /* threads with probes that were at work at a time, in the last window */
	double hot_peak; /* share of its time that probes take while a window is open */
	struct gaps gaps;
	bool fresh;	/* something of it was seen for the first time in this window */
	struct histogram launch_ever, sync_ever;
	struct usage usage;
	struct usage_rate usage_rate;
	bool usage_known, quota_known;
	uint64_t throttled_ns, throttled_periods;
	double throttled;
};

struct mon_kernel {
	uint32_t slot, pid;
	uint64_t launches, begin;
	char *name; /* NULL: not looked for yet */
};

/* A probed file and its windows. */
struct mon_image {
	struct image *image;
	bool hot;	    /* some of its functions are probed in windows only */
	bool open;
	bool always;	    /* as everything fits, the window stays open */
	bool known;	    /* a window was open since the choice was made */
	int64_t next;	    /* when the next window opens, or this one closes */
	int64_t first_opened, opened; /* the window; the part of it in this interval */
	int64_t closed;
	double told;	    /* how much of the window's stratum was told already */
	int64_t origin;	    /* of the grid of strata, each of which has one window */
	uint64_t stratum;   /* the next one's number */
	int64_t period;	    /* length of a stratum, ns */
	int64_t length;	    /* of a window */
	double peak;	    /* share of the worst process's time probes take while it is open */
	double ramp_ns;	    /* time that probes cost before and after a window */
	int64_t covered;    /* of this interval, ns in windows */
	int64_t hot_since;  /* something is probed in windows only; 0: nothing is */
	int64_t hot_ns;	    /* of this interval, until then */
	size_t windows;
	int64_t calm;	    /* since when some of it would fit the budget; 0: none would */
	bool settled;	    /* what is probed in windows was chosen by what was seen */
};

struct monitor {
	struct monitor_options options;
	struct selection selection;
	struct probes *probes;
	struct counts counts;
	struct images *images;
	struct closer *closer;
	struct watch *watch;
	struct gpu_sampler *sampler;
	struct gpu_samples gpus;
	struct ring_buffer *notices;
	struct calibration cost;
	double return_ns; /* of a hit's cost, what lies at its return; 0: not measured */
	uint64_t seed; /* of where windows are */
	struct mon_image *items; /* by index of images */
	size_t items_count;
	struct mon_process **processes; /* by pid */
	size_t processes_count, processes_room;
	struct mon_api *apis[GBPF_CELLS];	   /* by slot */
	struct mon_thread *threads[GBPF_THREADS]; /* by slot */
	struct mon_kernel *kernels[GBPF_KERNELS];
	int64_t begin;	   /* of the interval */
	int64_t next_tick, next_look, last_look, next_turn, next_usage, next_sweep;
	int64_t noticed; /* when mappings were looked at last */
	bool told;	 /* there are new ones */
	struct { uint32_t pid, tid; bool set; } tripped;
	bool denied, lost_notices;
	uint64_t self_cpu_ns; /* when the interval began */
	uint64_t lost_begin, unmatched_begin;
	uint32_t windows;     /* of this interval */
	struct snapshot snapshot;
	char limit[256];
};

int64_t mon_now(void);
void mon_tell(const struct monitor *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
unsigned mon_class(const struct api *api); /* enum gbpf_class, with its flag */
uint32_t mon_cost(const struct monitor *m, unsigned class); /* ns a call */

/* find.c: who uses CUDA, and of which files */
int find_start(struct monitor *m, char *why, size_t size);
int find_notices(struct monitor *m);
int find_sweep(struct monitor *m); /* ends that nobody told of */
struct mon_image *find_item(const struct monitor *m, const struct image *image);

/* processes.c */
struct mon_process *process_get(const struct monitor *m, uint32_t pid); /* NULL */
/* Known or new; NULL with *err 0: it is gone already. */
struct mon_process *process_add(struct monitor *m, uint32_t pid, int *err);
void process_ended(struct monitor *m, uint32_t pid);
void process_info_read(struct mon_process *p);
void processes_remove_told(struct monitor *m); /* those that ended and were told of */
void processes_free(struct monitor *m);
void processes_usage(struct monitor *m); /* CPU and I/O of their trees, quotas */

/* harvest.c: tables → processes */
int harvest(struct monitor *m); /* everything, from the keys on */
void harvest_ramp(struct monitor *m, struct mon_image *item); /* before the first part */
void harvest_window_begin(struct monitor *m, const struct mon_image *item);
/* Where threads are when a window ends: at once, before anything that takes time. */
void harvest_window_read(struct monitor *m, const struct mon_image *item);
void harvest_window_end(struct monitor *m, struct mon_image *item, int64_t length);
void harvest_steady(struct monitor *m);
/* What an open window cost in the last period is to be paid back. */
void harvest_debt(struct monitor *m, struct mon_image *item);
/* The image is hot from here on, or until here. */
void harvest_turn(struct monitor *m, struct mon_image *item, bool hot, int64_t now);
void harvest_interval_begin(struct monitor *m);
void harvest_age(struct monitor *m); /* an interval more: what there was counts for less */
void cell_read(const struct gbpf_cell *c, struct cell_read *out);
/* The difference of two readings, to the quantities of its process. */
void quantities_add(const struct mon_api *a, const struct cell_read *from,
		    const struct cell_read *to, uint64_t *q);
struct anchor thread_anchor(const struct monitor *m, const struct thread_read *t);
/* What a thread worked so far, ns: on a CPU, not waiting for the GPU; our probes included. */
double thread_worked(const struct thread_read *t);
void peak_add(struct mon_api *a, uint64_t calls, int64_t ns);
void thread_read(const struct monitor *m, uint32_t slot, int64_t now, struct thread_read *out);

/* cost.c: what a hit costs */
int cost_measure(struct monitor *m); /* before anything is probed */
void cost_window(struct mon_process *p);
struct cost cost_of(const struct monitor *m, const struct mon_process *p);
/*
 * What probes cost a process whose threads they cost most at the most, and sum in all. Threads
 * that take turns, as a forward and a backward pass do, or whoever needs Python's lock, pay one
 * after the other; those that work at the same time (abreast: how many did) pay side by side.
 */
double cost_together(double most, double sum, double abreast);

/* windows.c: when windows are open */
int windows_step(struct monitor *m, int64_t now);   /* opens and closes what is due */
int64_t windows_next(const struct monitor *m);	    /* when that is */
int windows_trip(struct monitor *m, uint32_t pid);  /* a thread of it has spent what it may */
void windows_allow(struct monitor *m);	   /* what a thread may spend now, to the programs */
void windows_cut(struct monitor *m, int64_t now);   /* at the end of an interval */
void windows_begin(struct monitor *m, int64_t now); /* of the next one */
bool windows_possible(const struct monitor *m);	    /* on this rung, with this budget */
int window_open(struct monitor *m, struct mon_image *item);
void window_close(struct monitor *m, struct mon_image *item);
void window_leave(struct monitor *m, struct mon_image *item); /* it was to stay open */
/* What the window saw, or the part of it that ends now, is told. */
void window_tell(struct monitor *m, struct mon_image *item, int64_t now);
bool window_used(const struct monitor *m, const struct mon_image *item); /* somebody maps it */

/* plan.c: what is probed in windows */
int plan_all(struct monitor *m, int64_t now); /* after a harvest */
/*
 * Which of its APIs are probed in windows only: after a new one, another image or
 * another choice. still: others were before, and are now.
 */
void plan_mark(struct monitor *m, struct mon_process *p, bool still);
void plan_leave_open(struct monitor *m, struct mon_image *item);
void plan_measure(const struct monitor *m, struct mon_image *item);
bool windows_hot(const struct image *i); /* some of its functions are not always probed */

/* gather*.c: processes → snapshot */
struct gathering {
	struct monitor *m;
	int64_t now, length; /* of the interval, ns */
};

int gather(struct monitor *m, int64_t now);
void gather_free(struct monitor *m);
int process_gather(const struct gathering *g, struct mon_process *p, struct snapshot_process *out);
int threads_gather(const struct gathering *g, struct mon_process *p, struct snapshot_process *out);
/* Adding up buckets takes time: only where they are told. */
bool recent_wanted(const struct monitor *m, const struct mon_api *a);
struct estimate exactly(double value);
struct estimate sum_of(struct estimate a, struct estimate b); /* of independent things */
const struct mon_image *item_of(const struct gathering *g, const struct mon_process *p);
bool item_sampled(const struct mon_image *item); /* NULL: not */
/* anchor NULL: there is none */
struct interval_facts facts_of(const struct gathering *g, const struct mon_process *p,
			       const struct anchor *anchor, double seen);
struct estimate hot_part(const struct gathering *g, const struct mon_image *item,
			 struct estimate e);

/* self.c: what gbpf itself uses */
uint64_t self_cpu_ns(void);
uint64_t self_rss_bytes(void);

/* kernels.c: names */
int kernels_harvest(struct monitor *m);
const char *kernels_name(struct monitor *m, struct mon_kernel *k);
void kernels_drop(struct monitor *m, uint32_t pid); /* 0: of all */

#endif
