# SPDX-License-Identifier: Apache-2.0
# A thin front end for Meson. Each target does its own set-up, so that it works on a fresh Debian 12. `make help` lists
# the targets.

BUILD   ?= build
PREFIX  ?= /usr/local
SECONDS ?= 60

.PHONY: program build help start test bench fuzz check format clean install peers

program:          ## build the program alone, at build/stead
	@tools/setup build
	@tools/setup page || echo "building without the page: see tools/setup page"
	@test -f $(BUILD)/build.ninja || meson setup --prefix $(PREFIX) $(BUILD)
	ninja -C $(BUILD) stead

build: program    ## build the program, the library and the tests
	ninja -C $(BUILD)

help:             ## list the targets
	@sed -n 's/^\([a-z]*\):.*##\(.*\)/  make \1\t\2/p' Makefile | expand -t 18

start: program    ## build, serve a sample workspace, and show the address and what to paste into an MCP client
	@tools/start $(BUILD)

test: build       ## build and run every test; the last line is "N passed, N failed"
	@tools/setup test
	@tools/run-tests $(BUILD)

bench: build      ## compare with other programs; writes bench/RESULTS.md
	@tools/setup bench
	@bench/run $(BUILD)

fuzz:             ## fuzz every parser of outside bytes for SECONDS each (60)
	@tools/setup build dev
	@fuzz/run $(SECONDS)

check:            ## check formatting and the house rules (tools/check)
	@tools/setup dev
	@tools/check
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror

format:           ## format every source in place
	@tools/setup dev
	git ls-files '*.c' '*.h' | xargs clang-format -i

install: build    ## install under PREFIX (/usr/local); DESTDIR is honoured
	meson install -C $(BUILD) --no-rebuild

peers:            ## install the programs by others that tests and benchmarks run against
	@tools/setup test bench

clean:            ## remove build directories (workspaces and installed peers stay)
	rm -rf $(BUILD) build-*
