# The two commands that matter: `make run` and `make test`. Both install what is missing.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=

# Where cargo puts the program: .cargo/config.toml builds for the host by name.
TARGET = $(or $(CARGO_TARGET_DIR),target)
# Without rustc in the PATH, as under sudo, what was built is still found.
TUPLE := $(or $(shell rustc --print host-tuple 2>/dev/null),$(shell uname -m)-unknown-linux-gnu)
BINARY = $(TARGET)/$(TUPLE)/release/wirecost
# What `make install` and `make deb` take.
PACKAGED = $(TARGET)/$(TUPLE)/dist/wirecost
# Bytes of it at most: it is copied to each host that has none.
LARGEST = 10485760
SOURCES = Cargo.toml Cargo.lock .cargo/config.toml $(wildcard plans/*) \
	$(shell find crates -path '*/src/*' -type f -o -path '*/bpf/*' -type f -o -name Cargo.toml -o -name build.rs)

SHARE = $(DESTDIR)$(PREFIX)/share
BASH_COMPLETIONS = $(SHARE)/bash-completion/completions
ZSH_COMPLETIONS = $(SHARE)/zsh/site-functions
FISH_COMPLETIONS = $(SHARE)/fish/vendor_completions.d
DOCS = $(SHARE)/doc/wirecost

.PHONY: run test check check-aarch64 ci-container size test-kernels build bench bench-check bench-datapaths bench-start bench-truth \
	bench-verdicts studies soak soak-stats fuzz deny install uninstall deb install-missing install-missing-test install-missing-bench

## Build, then run the main job: the built-in plan in a lab on this machine.
run: build
	$(BINARY) run

build: install-missing
	$(CARGO) build --release --locked --package wirecost

# What tests could not do here (tests/skips).
SKIPS = $(abspath $(TARGET))/skipped-tests
# KERNELS=: without the emulated machines, which take another quarter of an hour.
KERNELS ?= 1

## Format, lints, documentation, unit, property, snapshot, namespace and packaging tests; Debian's kernels unless KERNELS=.
test: install-missing-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	@rm -f '$(SKIPS)'
	WIRECOST_SKIPS='$(SKIPS)' $(CARGO) test --workspace --locked
	$(if $(KERNELS),WIRECOST_SKIPS='$(SKIPS)' $(MAKE) test-kernels)
	@scripts/skips '$(SKIPS)'

## Format, lints and unit tests: for every change while one works.
check: install-missing
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --lib --bins --locked --quiet

## Whether the program is as small as a host may be asked to take.
size: $(PACKAGED)
	@size=$$(stat -c %s '$(PACKAGED)'); echo "$(PACKAGED): $$size of at most $(LARGEST) bytes"; [ $$size -le $(LARGEST) ]

## Compiles for the other architecture, and runs nothing.
check-aarch64: install-missing
	rustup target add aarch64-unknown-linux-gnu
	$(CARGO) check --workspace --locked --target aarch64-unknown-linux-gnu

## What a container of the hosted CI needs first. The package's dates are the last commit's, and the checkout is another
## user's. Ubuntu 24.04's kernel gives unprivileged users no useful user namespaces.
UNPRIVILEGED = /proc/sys/kernel/apparmor_restrict_unprivileged_userns
ci-container:
	git config --global --add safe.directory '$(CURDIR)'
	rustup component add clippy rustfmt
	! test -e $(UNPRIVILEGED) || echo 0 >$(UNPRIVILEGED)

## The program in emulated machines with Debian's own kernels (docs/kernels.md); downloads each kernel once. Where these or
## QEMU cannot be had, it is skipped and says why; WIRECOST_REQUIRE_ROOT=1 makes a missing program a failure, and
## WIRECOST_REQUIRE_KERNELS=1 kernels that cannot be downloaded.
test-kernels: build
	-@scripts/install-missing qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod xz:xz-utils \
		setpriv:util-linux nft:nftables ethtool:ethtool tc:iproute2 ssh:openssh-client dropbear:dropbear-bin \
		ovs-vswitchd:openvswitch-switch ovn-northd:ovn-central ovn-controller:ovn-host teamnl:libteam-utils \
		ping:iputils-ping iscsistart:open-iscsi iperf3:iperf3
	tunnels=$$($(CARGO) test --locked --package wirecost-vtep --test tunnels --no-run --message-format=json | \
		sed -n 's/.*"executable":"\([^"]*\)".*/\1/p') && \
	faults=$$($(CARGO) test --locked --package wirecost --test faults --no-run --message-format=json | \
		sed -n '/"name":"faults"/s/.*"executable":"\([^"]*\)".*/\1/p') && \
	journal=$$($(CARGO) test --locked --package wirecost --test journal --no-run --message-format=json | \
		sed -n '/"name":"journal"/s/.*"executable":"\([^"]*\)".*/\1/p') && \
	WIRECOST_KERNELS=1 WIRECOST_TUNNELS=$$tunnels WIRECOST_JOURNAL_PROGRAM=$$journal WIRECOST_FAULTS_PROGRAM=$$faults WIRECOST_BINARY=$(abspath $(BINARY)) \
		$(CARGO) test --locked --package wirecost --test kernels -- --nocapture

## Our loads beside other generators' on the same lab; takes two hours or more and wants the machine for
## itself. BENCH takes options: make bench BENCH='--row tcp-rr --pairs 10'.
BENCH ?=
bench: build install-missing-bench
	$(CARGO) run --release --locked --package wirecost-bench --bin wirecost-bench -- $(BENCH)

## Verdicts where the truth is known: a cell twice, a path a tenth slower; half an hour, and as above.
bench-verdicts: build
	$(CARGO) run --release --locked --package wirecost-bench --bin wirecost-verdicts

## Whether verdicts are about the network: planted artefacts of which none is reported, true effects which are found; as
## root, ten minutes, and as above. BENCH takes options: make bench-truth BENCH='--row hop'.
bench-truth: build
	@scripts/install-missing taskset:util-linux nsenter:util-linux ip:iproute2 tc:iproute2 nft:nftables ethtool:ethtool
	$(CARGO) run --release --locked --package wirecost-bench --bin wirecost-truth -- $(BENCH)

## `wirecost check` beside tracepath and scamper on silent black holes: half an hour, most of it theirs.
## BENCH takes options: make bench-check BENCH='--alone', BENCH='--catalogue'.
bench-check: build
	@scripts/install-missing tracepath:iputils-tracepath scamper:scamper nsenter:util-linux \
		ip:iproute2 nft:nftables ethtool:ethtool
	$(CARGO) run --release --locked --package wirecost-bench --bin wirecost-paths -- $(BENCH)

## eBPF's tunnels beside the kernel's and Open vSwitch's, as root; about 20 minutes, and as above.
## BENCH takes options: make bench-datapaths BENCH='--row tcp-rr --pairs 10'.
bench-datapaths: build
	$(CARGO) run --release --locked --package wirecost-bench --bin wirecost-datapaths -- $(BENCH)

## Every published study in full, and docs/studies.md from their records; as root, half an hour, and as above.
## QUICK=--quick: fewer rounds.
QUICK ?=
studies: build
	scripts/studies '$(BINARY)' '$(abspath $(TARGET))/studies' docs/studies.md $(QUICK)

## How long the program takes to start, and the agents of two hosts to answer.
bench-start: build
	@scripts/install-missing hyperfine:hyperfine unshare:util-linux
	hyperfine --shell=none --warmup 20 --min-runs 500 '$(BINARY) --help'
	scripts/start-times '$(BINARY)'

## Licences, duplicate versions and sources of what comes from outside (deny.toml). Compiles
## cargo-deny where it is missing, which takes minutes; known vulnerabilities need the network:
## `cargo deny check advisories`.
deny:
	command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check licenses bans sources

# Only where a source is newer, so that `sudo make install` after `make deb` needs no cargo.
$(PACKAGED): $(SOURCES)
	@$(MAKE) install-missing
	$(CARGO) build --profile dist --locked --package wirecost
	@touch $@

## The program, its manual pages, completions and docs/, below DESTDIR and PREFIX.
install: $(PACKAGED)
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)/man/man1' '$(SHARE)/man/man5' \
		'$(BASH_COMPLETIONS)' '$(ZSH_COMPLETIONS)' '$(FISH_COMPLETIONS)' '$(DOCS)/decisions'
	install -m 644 docs/*.md docs/*.png '$(DOCS)'
	install -m 644 docs/decisions/*.md '$(DOCS)/decisions'
	install -s -m 755 '$(PACKAGED)' '$(DESTDIR)$(PREFIX)/bin/wirecost'
	pages=$$(mktemp -d) && trap 'rm -r "$$pages"' EXIT && \
	'$(PACKAGED)' man --out "$$pages" && \
	install -m 644 "$$pages"/*.1 '$(SHARE)/man/man1' && \
	install -m 644 "$$pages"/*.5 '$(SHARE)/man/man5' && \
	'$(PACKAGED)' completions bash > "$$pages/bash" && \
	'$(PACKAGED)' completions zsh > "$$pages/zsh" && \
	'$(PACKAGED)' completions fish > "$$pages/fish" && \
	install -m 644 "$$pages/bash" '$(BASH_COMPLETIONS)/wirecost' && \
	install -m 644 "$$pages/zsh" '$(ZSH_COMPLETIONS)/_wirecost' && \
	install -m 644 "$$pages/fish" '$(FISH_COMPLETIONS)/wirecost.fish'

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/wirecost' '$(SHARE)'/man/man1/wirecost.1 \
		'$(SHARE)'/man/man1/wirecost-*.1 '$(SHARE)'/man/man5/wirecost-plan.5 \
		'$(BASH_COMPLETIONS)/wirecost' '$(ZSH_COMPLETIONS)/_wirecost' '$(FISH_COMPLETIONS)/wirecost.fish'
	rm -rf '$(DOCS)'

## A Debian package in dist/; it needs nothing but dpkg-deb.
deb: $(PACKAGED)
	scripts/make-deb '$(PACKAGED)' dist
## KILLS kills of runs at random moments, a quarter of them on existing hosts, each of which must leave nothing; a thousand
## take about a quarter of an hour.
KILLS ?= 1000
soak: install-missing-test
	WIRECOST_KILLS=$(KILLS) $(CARGO) test --release --locked --package wirecost --test program kill:: -- --nocapture

## Every simulation behind docs/statistics.md, from fixed seeds; some minutes.
soak-stats: install-missing
	$(CARGO) run --release --locked --package wirecost-stats --example soak

## Ten million inputs each through all that reads what comes from outside (frames, NBD, probes, the kernel's routes, what
## agents say of TCP, the protocol, first bytes of flows, plans, records), from a fixed seed; an hour. FUZZ=fuzz_wire: one.
FUZZ ?= fuzz_wire fuzz_nbd fuzz_probe fuzz_audit fuzz_check fuzz_protocol fuzz_hello fuzz_plan fuzz_record
INPUTS ?= 10000000
fuzz: install-missing
	@for one in $(FUZZ); do \
		echo "$$one:"; $(CARGO) run --quiet --release --locked --example $$one -- $(INPUTS) || exit 1; \
	done

install-missing:
	@command -v '$(CARGO)' >/dev/null || \
		{ echo "wirecost: there is no cargo: install Rust 1.95 or later with rustup, then try again" >&2; exit 1; }
	@scripts/install-missing cc:build-essential clang:clang

install-missing-test: install-missing
	@scripts/install-missing ip:iproute2 unshare:util-linux setpriv:util-linux \
		nft:nftables ethtool:ethtool tc:iproute2 chromium:chromium man:man-db zsh:zsh fish:fish lintian:lintian tshark:tshark \
		ping:iputils-ping ovs-vswitchd:openvswitch-switch nbdkit:nbdkit qemu-img:qemu-utils nbdinfo:libnbd-bin fio:fio \
		ovn-northd:ovn-central ovn-controller:ovn-host vtep-ctl:openvswitch-vtep promtool:prometheus \
		podman:podman busybox:busybox-static qemu-system-x86_64:qemu-system-x86

install-missing-bench: install-missing
	@scripts/install-missing iperf3:iperf3 nuttcp:nuttcp sockperf:sockperf nsenter:util-linux \
		taskset:util-linux setpriv:util-linux ovs-vswitchd:openvswitch-switch fio:fio nbdkit:nbdkit
