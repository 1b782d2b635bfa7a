/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stand-in for NVML answers, read from the file that SIMNVML names (README.md). */
#ifndef SIMNVML_STATE_H
#define SIMNVML_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES 16
#define INSTANCES 8
#define PIDS 4096
#define FAILS 16
#define XIDS 64

struct device {
	bool there;
	char uuid[80], name[96], pci[32];
	/* what is not in the file is not supported: the device says so */
	int64_t sm, memory_clock, power, power_limit, temperature, throttle, energy;
	int64_t utilisation, memory_utilisation, memory_used, memory_total;
	double gpm[4]; /* SM, occupancy, tensor, DRAM; the first -1: none */
	unsigned int pids[PIDS];
	int64_t pids_count; /* -1: not supported */
	int result;	    /* of every call about it */
	struct device *instances; /* INSTANCES, of a device */
	struct device *parent;	  /* of an instance */
	size_t instances_count;
};

struct fail { /* of a function, from its Nth call on, or of one device from then on */
	char function[64];
	int code;
	uint64_t from, count, calls;
	uint64_t ms; /* or: it sleeps so long, and then answers */
};

struct xid {
	size_t device;
	unsigned int number;
};

struct state {
	struct device devices[DEVICES];
	struct device instances[DEVICES][INSTANCES];
	size_t count;
	bool long_processes;
	char log[256]; /* a file: every call is a line of it; "": none */
	struct fail fails[FAILS];
	size_t fails_count;
	struct xid xids[XIDS]; /* all that the file lists; told once each, if they come later */
	size_t xids_count;
};

/* Reads the file again if it is another one than last time; aborts if it is wrong. */
struct state *state_now(void);

/* To be called with the lock held: what this call of this function shall do. 0: answer. */
int state_fail(struct state *s, const char *function, uint64_t *sleep_ms);

#endif
