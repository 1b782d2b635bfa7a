# SPDX-License-Identifier: BSD-2-Clause
#
# Man pages, completions and installing. Pages and completions are what the
# binary itself says about its options, so they cannot fall behind it.

PREFIX ?= /usr/local
DESTDIR ?=
COMMANDS := $(sort $(patsubst user/cmd/%.c,%,$(filter-out user/cmd/dispatch.c, \
	$(shell grep -l '^const struct command cmd_' user/cmd/*.c 2>/dev/null))))
MAN_PAGES := $(BUILD)/man/gbpf.1 $(COMMANDS:%=$(BUILD)/man/gbpf-%.1)
COMPLETIONS := $(BUILD)/completions/gbpf.bash $(BUILD)/completions/_gbpf \
	$(BUILD)/completions/gbpf.fish

.PHONY: man completions install uninstall
man: $(MAN_PAGES)
completions: $(COMPLETIONS)

$(BUILD)/man/gbpf.1: $(BUILD)/gbpf
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< --print-man gbpf > $@

$(BUILD)/man/gbpf-%.1: $(BUILD)/gbpf
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< --print-man $* > $@

$(BUILD)/completions/gbpf.bash: $(BUILD)/gbpf
	$(call say,COMPLETE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< --print-completion bash > $@

$(BUILD)/completions/_gbpf: $(BUILD)/gbpf
	$(call say,COMPLETE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< --print-completion zsh > $@

$(BUILD)/completions/gbpf.fish: $(BUILD)/gbpf
	$(call say,COMPLETE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< --print-completion fish > $@

INSTALLED = $(DESTDIR)$(PREFIX)

install: $(BUILD)/gbpf $(MAN_PAGES) $(COMPLETIONS)
	$(call say,INSTALL,$(INSTALLED))
	$(Q)install -D -m 755 $(BUILD)/gbpf $(INSTALLED)/bin/gbpf
	$(Q)install -d $(INSTALLED)/share/man/man1
	$(Q)install -m 644 $(MAN_PAGES) $(INSTALLED)/share/man/man1
	$(Q)install -D -m 644 $(BUILD)/completions/gbpf.bash \
		$(INSTALLED)/share/bash-completion/completions/gbpf
	$(Q)install -D -m 644 $(BUILD)/completions/_gbpf \
		$(INSTALLED)/share/zsh/site-functions/_gbpf
	$(Q)install -D -m 644 $(BUILD)/completions/gbpf.fish \
		$(INSTALLED)/share/fish/vendor_completions.d/gbpf.fish

uninstall:
	$(call say,REMOVE,$(INSTALLED))
	$(Q)rm -f $(INSTALLED)/bin/gbpf $(MAN_PAGES:$(BUILD)/man/%=$(INSTALLED)/share/man/man1/%) \
		$(INSTALLED)/share/bash-completion/completions/gbpf \
		$(INSTALLED)/share/zsh/site-functions/_gbpf \
		$(INSTALLED)/share/fish/vendor_completions.d/gbpf.fish
