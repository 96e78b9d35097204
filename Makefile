# The two commands that matter: `make run` and `make test`. Both install what is missing.

CARGO ?= cargo
PREFIX ?= /usr/local

.PHONY: run test build bench lint install-missing install-missing-test install-missing-bench clean-strays

## Build, then run the main job: the built-in plan in a lab on this machine.
run: build
	./target/release/wirecost run

build: install-missing
	$(CARGO) build --release --locked --package wirecost

## Format, lints, unit, property, snapshot and namespace tests, documentation.
test: install-missing-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

## Our load beside iperf3's on the same lab; takes some minutes and wants the machine for itself.
bench: build install-missing-bench
	$(CARGO) run --release --locked --package wirecost-bench

install-missing:
	@scripts/install-missing cc:build-essential

install-missing-test: install-missing
	@scripts/install-missing ip:iproute2 unshare:util-linux setpriv:util-linux nft:nftables tc:iproute2

install-missing-bench: install-missing
	@scripts/install-missing iperf3:iperf3 nsenter:util-linux taskset:util-linux
