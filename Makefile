# SPDX-License-Identifier: BSD-2-Clause
#
#   make            builds build/gbpf
#   make check      installs what is missing, builds, runs every quick test (root)
#   make check-long the slow ones: other kernels under QEMU, soak, long fuzzing
#   make demo       traces the simulated CUDA job and prints its report (root)
#   make bench      measures what the documentation claims, prints JSON (root)
#   make V=1        shows the commands

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

BUILD ?= build
CC = gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PROTOC_C ?= protoc-c
LLVM_STRIP ?= llvm-strip
PYTHON ?= /usr/bin/python3
SANITIZE ?=

ifeq ($(V),1)
Q =
say =
else
Q = @
say = @printf '  %-8s %s\n' $(1) $(2)
MAKEFLAGS += --no-print-directory
endif

VERSION := $(shell cat VERSION 2>/dev/null || echo 0.0.0)
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

CPPFLAGS += -D_GNU_SOURCE -DGBPF_VERSION='"$(VERSION)"' -Iuser -I. -I$(BUILD)
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=c11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wno-unused-parameter -Wformat=2 -fstack-protector-strong -fno-strict-aliasing $(CFLAGS)
BPF_CFLAGS = -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror \
	-Wno-unused-parameter -Ivmlinux -I.

# What the distribution ships as an archive is linked statically, so that one
# file runs on any node with glibc.
LDLIBS = -Wl,-Bstatic -lbpf -lelf -lzstd -lz -lcap -lcrypt -lprotobuf-c -lsqlite3 -lncursesw -ltinfo -lstdc++ -Wl,-Bdynamic -lm -lpthread
LDFLAGS += -static-libgcc
# For what only tests run; links in half the time.
TEST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld)

ifneq ($(SANITIZE),)
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS := -fsanitize=$(SANITIZE)
endif

LIB_SRCS := $(filter-out user/main.c,$(wildcard user/*.c user/*/*.c))
PROTO := $(patsubst user/export/%.proto,%,$(wildcard user/export/*.proto))
PROTO_H := $(PROTO:%=$(BUILD)/%.pb-c.h)
LIB_OBJS := $(LIB_SRCS:%.c=$(BUILD)/obj/%.o) $(PROTO:%=$(BUILD)/obj/%.pb-c.o)
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT_BINS := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/unit/%)
SKEL := $(BUILD)/gbpf.skel.h $(BUILD)/gbpf_foreign.skel.h $(BUILD)/gbpf_hold.skel.h \
	$(BUILD)/gbpf_inject.skel.h $(BUILD)/gbpf_monitor.skel.h

.PHONY: all clean
all: $(BUILD)/gbpf

clean:
	$(call say,CLEAN,$(BUILD))
	$(Q)rm -rf $(BUILD)

$(BUILD)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h vmlinux/*.h)
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@.tmp
	$(Q)$(LLVM_STRIP) -g $@.tmp
	$(Q)mv $@.tmp $@

$(BUILD)/gbpf.skel.h: $(BUILD)/gbpf.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_bpf > $@

$(BUILD)/gbpf_foreign.skel.h: $(BUILD)/foreign.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_foreign > $@

$(BUILD)/gbpf_hold.skel.h: $(BUILD)/hold.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_hold > $@

$(BUILD)/gbpf_inject.skel.h: $(BUILD)/inject.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_inject > $@

$(BUILD)/gbpf_monitor.skel.h: $(BUILD)/monitor.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_monitor > $@

$(BUILD)/%.pb-c.c $(BUILD)/%.pb-c.h: user/export/%.proto
	$(call say,PROTO,$(BUILD)/$*.pb-c.c)
	$(Q)mkdir -p $(BUILD)
	$(Q)$(PROTOC_C) --proto_path=$(<D) --c_out=$(BUILD) $<

$(BUILD)/obj/%.pb-c.o: $(BUILD)/%.pb-c.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/obj/%.o: %.c | $(SKEL) $(PROTO_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libgbpf.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/gbpf: $(BUILD)/obj/user/main.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

# ---- unit tests (cmocka); run by `make check` through pytest ----

# Optimizing them takes longer than it saves; but for those that do something a million times.
UNIT_COLD := $(filter-out tests/unit/test_record.c tests/unit/test_estimate.c,$(UNIT_SRCS))
$(UNIT_COLD:%.c=$(BUILD)/obj/%.o): CFLAGS = -O0 -g

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(TEST_LD) $^ -lcmocka $(LDLIBS) -o $@

.PHONY: unit
unit: $(UNIT_BINS)

.SECONDARY:
-include $(wildcard user/sidecar/lib/lib.mk tests/sim/*.mk tests/unit/san.mk tests/fuzz/fuzz.mk tests/integration/integration.mk tests/gpu/gpu.mk tools/*.mk docs/docs.mk)
-include $(LIB_OBJS:.o=.d) $(UNIT_BINS:$(BUILD)/tests/unit/%=$(BUILD)/obj/tests/unit/%.d)
