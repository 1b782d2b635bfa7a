/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "util/err.h"

enum { FORMAT_TABLE, FORMAT_JSON };

static const char *const formats[] = {"table", "json", NULL};
static const char *const rungs[] = {"auto", "session", "multi", "single", NULL};

#define FIELD(f) .offset = offsetof(struct doctor_options, f)
static const struct opt opts[] = {
	{.name = "pid", .letter = 'p', .type = OPT_STRING, .arg = "PID", FIELD(pid),
	 .help = "Look at this process, too. A number of a container's own is accepted."},
	{.name = "api", .type = OPT_STRING, .arg = "driver|runtime|all|NAME,…", FIELD(api),
	 .help = "Say what gbpf trace --api with the same words would hook (default driver)."},
	{.name = "no-attach", .type = OPT_FLAG, FIELD(no_attach),
	 .help = "Only look at the process. Without this its calls are counted for a second "
		 "through the probes that gbpf trace would attach."},
	{.name = "format", .letter = 'f', .type = OPT_CHOICE, .arg = "FORMAT", .choices = formats,
	 FIELD(format),
	 .help = "How to print: table (the default) for people, json for programs."},
	{.name = "verbose", .letter = 'v', .type = OPT_FLAG, FIELD(verbose),
	 .help = "Name each function, hooked or not, with its offset in the file. The json format "
		 "always does."},
	{.name = "rung", .type = OPT_CHOICE, .arg = "RUNG", .choices = rungs, FIELD(rung),
	 .hidden = true, .help = "Try this way of attaching only."},
	{0},
};

/* Would trace see anything of the process? One that maps no CUDA yet is waited for. */
static const char *process_trouble(const struct doctor_process *p)
{
	size_t i;

	if (p->error)
		return "CUDA";
	for (i = 0; i < p->images_count; i++)
		if (!p->images[i].trouble[0])
			return NULL;
	return p->images_count ? "hooked" : NULL;
}

/* The first needed thing that does not work; that of the process comes last. */
static void judge(struct doctor *d)
{
	size_t i;

	d->trouble = NULL;
	for (i = 0; i < d->checks_count && !d->trouble; i++)
		if (d->checks[i].needed && d->checks[i].result != CHECK_OK)
			d->trouble = d->checks[i].name;
	if (!d->trouble && d->process) {
		d->trouble = process_trouble(d->process);
		d->process_trouble = d->trouble != NULL;
	}
	d->ok = !d->trouble;
}

static int failed(int err)
{
	err_report("cannot examine this machine: %s", strerror(-err));
	return EXIT_FAILED;
}

static int pid_parse(const char *text, uint32_t *pid)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end) {
		err_report("'%s' is not a process id", text);
		err_hint("gbpf doctor --help");
		return EXIT_USAGE;
	}
	return pid_find(number, pid);
}

static int examine(struct doctor *d)
{
	uint32_t pid = 0;
	int err, status = d->options->pid ? pid_parse(d->options->pid, &pid) : EXIT_OK;

	if (status)
		return status;
	err = doctor_try(d);
	doctor_rights(d);
	if (!err && pid)
		err = doctor_look(d, pid);
	if (err == -ESRCH) {
		err_report("process %u has ended", pid);
		return EXIT_FAILED;
	}
	if (!err && pid)
		err = doctor_measure(d);
	if (err)
		return failed(err);
	judge(d);
	if (d->options->format == FORMAT_JSON)
		doctor_print_json(d);
	else
		doctor_print_table(d);
	return d->ok ? EXIT_OK : EXIT_FAILED;
}

static int selections(struct doctor *d, struct selection both[2])
{
	char why[256];

	if (selection_parse(&both[0], d->options->api, why, sizeof(why)) ||
	    selection_parse(&both[1], "all", why, sizeof(why))) {
		err_report("%s", why);
		err_hint("gbpf doctor --help");
		return EXIT_USAGE;
	}
	d->selection = &both[0];
	d->everything = &both[1];
	return EXIT_OK;
}

static int run_doctor(const struct command *self, int argc, char **argv)
{
	struct doctor_options o = {.api = "driver"};
	struct doctor d = {.options = &o};
	struct selection both[2];
	int first, status;

	status = opt_parse(self, &o, argc, argv, &first);
	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (first < argc) {
		err_report("doctor: unexpected argument '%s'", argv[first]);
		err_hint("gbpf doctor --help");
		return EXIT_USAGE;
	}
	status = selections(&d, both);
	if (!status)
		status = examine(&d);
	doctor_free(&d);
	return status;
}

static const struct opt_example examples[] = {
	{"sudo gbpf doctor", "What this machine offers, what is missing, and what a call costs."},
	{"sudo gbpf doctor -p 4242", "What would be hooked in a process, and at what cost."},
	{"sudo gbpf doctor -p 4242 --api runtime -v", "Each function by name, libcudart's too."},
	{"gbpf doctor -f json", "For a program; without root it says which rights are missing."},
	{0},
};

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine and in a process, and why not",
	.usage = "[OPTION…]",
	.description =
		"Tries everything that gbpf trace needs, by doing it: loads the real programs, "
		"attaches them to a function of its own in each way that kernels offer, and looks "
		"whether records come. Says which capabilities are missing and what each is for, "
		"and how much a probed call costs on this machine.\n\n"
		"With -p it also lists every CUDA library of a process: which functions would be "
		"hooked, which not and why, whether other tools are there, how often the process "
		"calls CUDA now, and by how much probes are expected to slow it down. To count "
		"calls it attaches for one second; nothing is written and nothing stays behind.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 if gbpf trace can work, with -p on that process; 1 if it cannot; 2 for "
		       "wrong usage.",
	.run = run_doctor,
};
