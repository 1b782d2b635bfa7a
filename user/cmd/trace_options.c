// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/trace_options.h"

#include <stddef.h>

#define SECOND 1000000000LL

static const char *const rungs[] = {"auto", "session", "multi", "single", NULL};

#define FIELD(f) .offset = offsetof(struct trace_options, f)
const struct opt trace_opts[] = {
	{.name = "pid", .letter = 'p', .type = OPT_LIST, .arg = "PID[,PID…]", FIELD(pids),
	 .help = "Trace these processes and all their descendants, present and future: a PID may "
		 "be a launcher such as torchrun. Numbers of a container's own are accepted."},
	{.name = "cgroup", .type = OPT_STRING, .arg = "PATH", FIELD(cgroup),
	 .help = "Trace every process below this cgroup directory."},
	{.name = "all", .letter = 'a', .type = OPT_FLAG, FIELD(all),
	 .help = "Trace every process of the machine that uses CUDA."},
	{.name = "duration", .letter = 'd', .type = OPT_DURATION, .arg = "SECONDS",
	 FIELD(duration),
	 .help = "Stop after this time; 0 has no end. The default is 10 seconds when attaching, "
		 "the command's own end with -- CMD, the last window of a schedule, and no end "
		 "with --keep."},
	{.name = "output", .letter = 'o', .type = OPT_STRING, .arg = "FILE", FIELD(output),
	 .help = "Write the recording here (default trace.gbpf). The one before is kept as "
		 "FILE.old. A name such as run.pftrace, run.json.gz, run.sqlite or run.csv asks "
		 "for that file of gbpf export as well, beside the recording run.gbpf."},
	{.name = "api", .type = OPT_STRING, .arg = "driver|runtime|all|NAME,…", FIELD(api),
	 .help = "Which functions to record: driver (the default: launches, syncs, copies, "
		 "allocations and the like of libcuda, which everything passes, and NCCL's), "
		 "runtime (libcudart's on top of these), all (rare and costly ones too), or "
		 "exported names."},
	{.name = "no-follow", .type = OPT_FLAG, FIELD(no_follow),
	 .help = "Only the processes named, not their children."},
	{.name = "no-wait", .type = OPT_FLAG, FIELD(no_wait),
	 .help = "End at once if the target uses no CUDA yet, instead of waiting for it."},
	{.name = "buffer", .type = OPT_UINT, .arg = "MIB", FIELD(buffer_mib),
	 .help = "Memory for events on their way from the kernel, all CPUs together (default "
		 "8 MiB a CPU, at most 128 MiB). More of it survives longer bursts."},
	{.name = "allow-slow-probes", .type = OPT_FLAG, FIELD(allow_slow),
	 .help = "Hook functions, too, whose first instruction the kernel must single-step: a "
		 "call of these costs ten times as much."},
	{.name = "quiet", .letter = 'q', .type = OPT_FLAG, FIELD(quiet),
	 .help = "No status line and no summary; problems are still told."},
	{.name = "entry-only", .type = OPT_FLAG, FIELD(entry_only),
	 .help = "Use no return probes: calls and their arguments are recorded, durations and "
		 "errors are not. For jobs that cancel threads (pthread_cancel) inside CUDA "
		 "calls or throw through them: while such a call has a return probe, stack "
		 "unwinding ends at it, so that destructors and cleanup handlers of its callers "
		 "do not run. Where return probes could kill a process, this is chosen by "
		 "itself."},
	{.name = "gpu-time", .type = OPT_FLAG, FIELD(gpu.asked),
	 .help = "Record as well when each kernel, copy and set ran on the GPU. CUPTI tells it, "
		 "from a small library inside the process: a command loads it by itself, into "
		 "running processes it is injected. Where another profiler is or may be in the "
		 "process, it stays away. The library and CUPTI stay in the process, in "
		 "which a launch takes half a microsecond longer from then on. See "
		 "docs/gpu-time.md."},
	{.name = "gpu-window", .type = OPT_DURATION, .arg = "SECONDS", FIELD(gpu.window),
	 .help = "With --gpu-time: record the GPU for so long in each process, at the most "
		 "(default 60 seconds); in a schedule, once for each warm-up and window."},
	{.name = "cupti", .type = OPT_STRING, .arg = "PATH", FIELD(gpu.cupti),
	 .help = "With --gpu-time: use this libcupti, a path as the process sees it, and not the "
		 "one that it has loaded or that lies beside its libcudart."},
	{.name = "cupti-calls", .type = OPT_FLAG, FIELD(gpu.calls),
	 .help = "With --gpu-time: let CUPTI record some calls, too, now and then for some "
		 "milliseconds, so that works are told whose they are where their numbers and "
		 "times alone do not say it. It makes each call of the process 0.1 to 0.2 us "
		 "dearer for good: a small training step that the CPU limits was 18 % slower "
		 "afterwards. CUPTI before 13.0 is used in this way in any case."},
	{.name = "wait", .type = OPT_STRING, .arg = "N", FIELD(schedule.wait),
	 .help = "Record in windows, as torch.profiler.schedule does: do nothing for N steps (or "
		 "seconds), while no probe is attached. See docs/schedules.md."},
	{.name = "warmup", .type = OPT_STRING, .arg = "N", FIELD(schedule.warmup),
	 .help = "Then attach, and throw away what N steps bring. At least one step is needed for "
		 "the window to begin on time."},
	{.name = "active", .type = OPT_STRING, .arg = "N", FIELD(schedule.active),
	 .help = "Then record N steps."},
	{.name = "repeat", .type = OPT_UINT, .arg = "N", FIELD(schedule.repeat),
	 .help = "Do that N times (default 1); 0: until ended."},
	{.name = "steps", .type = OPT_FLAG, FIELD(schedule.steps),
	 .help = "Count steps, and end if none can be seen. Without it, --wait, --warmup and "
		 "--active count steps if something marks them, and seconds otherwise."},
	{.name = "seconds", .type = OPT_FLAG, FIELD(schedule.seconds),
	 .help = "Count seconds. Times such as 250ms say so by themselves."},
	{.name = "step-marker", .type = OPT_STRING, .arg = "NAME", FIELD(schedule.marker),
	 .help = "What is called when a step begins: an exported function (SYMBOL, as the linker "
		 "knows it, or LIBRARY:SYMBOL), a CUDA function such as cuGraphLaunch, or the "
		 "launch of a kernel (kernel:REGEX). The default is PyTorch's "
		 "torch::autograd::Engine::execute, once a backward pass, or else the launch of "
		 "a graph. One that is called several times a step makes no more steps."},
	{.name = "keep", .type = OPT_DURATION, .arg = "SECONDS", FIELD(keep.keep),
	 .help = "Be a flight recorder: keep only the last SECONDS, in memory, for as long as "
		 "it takes. They are written to FILE when the recording ends; or, with --trigger, "
		 "to a numbered file (run.1.gbpf, run.2.gbpf, … for -o run.gbpf) when one fires. "
		 "SIGUSR1 asks for a numbered file, too. See docs/flight-recorder.md."},
	{.name = "trigger", .type = OPT_LIST, .arg = "CONDITION", FIELD(keep.triggers),
	 .help = "With --keep: write a numbered file whenever this holds, such as "
		 "'p99(cuStreamSynchronize) > 5ms' or 'count(launch) < 1 over 5s'. In front "
		 "stands p50, p90, p99, max, avg, count, rate, errors or bytes; in parentheses a "
		 "function, or a kind such as sync, launch, copy; what is compared is of the "
		 "last 10 seconds (over TIME), and of a minimum of calls (min CALLS). Of several, "
		 "any is enough."},
	{.name = "trigger-after", .type = OPT_DURATION, .arg = "SECONDS", FIELD(keep.after),
	 .help = "Write what comes so long after a trigger, too (default 1 second)."},
	{.name = "trigger-max", .type = OPT_UINT, .arg = "N", FIELD(keep.most),
	 .help = "End after N files by triggers (default 10). Between two of them is at least the "
		 "time that --keep says."},
	{.name = "keep-size", .type = OPT_UINT, .arg = "MIB", FIELD(keep.mib),
	 .help = "Memory for what is kept (default 256). Where that holds less than --keep asks "
		 "for, there is less, and gbpf says so."},
	{.name = "keep-last", .type = OPT_FLAG, FIELD(keep.last),
	 .help = "With --trigger: write what is kept to FILE when the recording ends, as well."},
	{.name = "rung", .type = OPT_CHOICE, .arg = "RUNG", .choices = rungs, FIELD(rung),
	 .hidden = true, .help = "Attach in this way only."},
	{0},
};

const struct opt_example trace_examples[] = {
	{"sudo gbpf trace -p 4242", "ten seconds of a running job"},
	{"sudo gbpf trace -a -d 60 -o node.gbpf", "every CUDA process for a minute"},
	{"sudo gbpf trace -p 4242 --wait 100 --warmup 2 --active 5 --repeat 3",
	 "three times five steps of a training job"},
	{"sudo gbpf trace -a --keep 30s --trigger 'p99(cuStreamSynchronize) > 5ms'",
	 "wait for hours, keep the half minute before it goes wrong"},
	{"sudo gbpf trace --api runtime -- python train.py", "a command from its first call on"},
	{0},
};

void trace_options_init(struct trace_options *o)
{
	*o = (struct trace_options){
		.duration = -1,
		.output = "trace.gbpf",
		.gpu = {.window = GPU_TIME_WINDOW},
		.schedule = {.repeat = 1},
		.keep = {.mib = KEEP_MIB, .most = KEEP_FILES, .after = KEEP_AFTER},
	};
}

const char *trace_options_check(const struct trace_options *o, bool command)
{
	int forms = (o->pids.count > 0) + (o->cgroup != NULL) + o->all + command;

	if (!forms)
		return "say what to trace: -p PID, --cgroup PATH, --all, or -- COMMAND";
	if (forms > 1)
		return "-p, --cgroup, --all and -- COMMAND exclude each other";
	if (keep_asked(&o->keep) && schedule_asked(&o->schedule))
		return "--keep records all the time, and --wait, --active and their like only in "
		       "windows: leave out one of them";
	if (keep_asked(&o->keep) && o->gpu.asked)
		return "--gpu-time records a minute or so, and --keep waits for hours: leave out "
		       "one of them";
	return NULL;
}

int64_t trace_options_duration(const struct trace_options *o, bool command)
{
	if (o->duration >= 0)
		return o->duration;
	if (command || schedule_asked(&o->schedule) || o->keep.keep)
		return 0;
	return 10 * SECOND;
}
