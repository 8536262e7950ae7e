# `make` lists what there is. The recipes are POSIX sh; GNU make 3.81 is enough.

.DEFAULT_GOAL := help
.PHONY: fuzz test-cases test-checks test-agents test-beads help demo demo-clean test lint bench board-image build install docs

# Where cargo puts its binaries. Expanded by the shell, so blanks in paths do no harm.
GT = "$${CARGO_TARGET_DIR:-target}/release/gt"
# The program of the demo, which compiles faster and runs slower.
DEMO_GT = "$${CARGO_TARGET_DIR:-target}/demo/gt"

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: ## make a demo town and start agents in it (installs tmux and git if missing)
	@sh scripts/need.sh cargo cc tmux git
	cargo build --profile demo -p gt
	@$(DEMO_GT) demo

demo-clean: ## stop the demo's agents and remove every trace of it
	@if [ ! -x $(DEMO_GT) ] && [ ! -e "$$HOME/gt-demo/town.toml" ]; then \
		echo "There is no demo, and nothing to remove."; \
	else \
		if [ ! -x $(DEMO_GT) ]; then \
			sh scripts/need.sh cargo cc && cargo build --profile demo -p gt || exit; \
		fi; \
		$(DEMO_GT) demo --clean; \
	fi

test: ## run every test, and the quick checks
	@sh scripts/need.sh cargo cc tmux git python3
	@sh scripts/need.sh --if-possible gh openssl zsh fish
	@if [ "$$(uname -s)" = Linux ]; then \
		sh scripts/need.sh --if-possible notify-send dbus-daemon python3-dbus python3-gi bwrap podman runc valgrind; \
	fi
	@sh scripts/test.sh build
	@$(MAKE) --no-print-directory -j2 -k test-cases test-checks

test-cases:
	@sh scripts/test.sh cases

test-checks:
	@sh scripts/test.sh checks

test-agents: ## install the pinned real agent programs and test against them, in full
	@sh scripts/need.sh cargo cc tmux git
	@GT_AGENTS_FULL=1 sh scripts/agents.sh

# It asks for a newer compiler than it needs, and for what this one has, but does not promise.
BR = RUSTC_BOOTSTRAP=1 cargo install beads_rust --version 0.7.6 --locked --no-default-features --ignore-rust-version

test-beads: ## build the real br, which takes a quarter of an hour, and test against it
	@sh scripts/need.sh cargo cc tmux git python3
	@set -e; root="$${GT_BEADS_DIR:-$$HOME/.cache/gt-beads}"; \
	[ -x "$$root/bin/br" ] || $(BR) --root "$$root"; \
	"$$root/bin/br" --version; \
	GT_TEST_BR="$$root/bin/br" cargo test -p gt --test cli beads::

fuzz: ## fuzz every parser of external bytes for MINUTES each (FUZZ_TARGETS selects some)
	@sh scripts/need.sh cargo cc
	@sh scripts/fuzz.sh "$${MINUTES:-1}"

lint: ## formatting, clippy, and where installed cargo deny and a check for macOS
	@sh scripts/need.sh cargo cc
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	@if rustup target list --installed 2>/dev/null | grep -q '^aarch64-apple-darwin$$'; then \
		echo "cargo check for macOS"; : "a check links nothing, so the C of SQLite needs no compiler of theirs"; \
		CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true \
			cargo check --workspace --all-targets --target aarch64-apple-darwin; \
	else \
		echo "skipped: cargo check for macOS (rustup target add aarch64-apple-darwin)"; \
	fi
	@if cargo deny --version >/dev/null 2>&1; then \
		echo "cargo deny check"; cargo deny check; \
	else \
		echo "skipped: cargo deny (cargo install --locked cargo-deny)"; \
	fi

bench: ## measure gt against bare tmux commands, and against the agent programs themselves
	@sh scripts/need.sh cargo cc tmux git
	cargo build --release -p gt
	cargo bench -p gt --bench bench
	cargo bench -p gt --bench growth
	cargo bench -p gt --bench instructions
	cargo bench -p gt --bench contract
	cargo bench -p gt --bench remembering
	cargo bench -p gt --bench history
	cargo bench -p gt --bench board
	cargo bench -p gt --bench idle
	@sh scripts/agents.sh bench

board-image: ## make the images of the board in docs/images anew, from a real run of some minutes
	@sh scripts/need.sh cargo cc tmux git python3
	cargo build --release -p gt
	@python3 scripts/board-image $(GT) --minutes 5

docs: ## build the documentation as a book into target/book (compiles mdbook the first time)
	@sh scripts/need.sh cargo cc
	@sh scripts/docs.sh

build: ## build the release binary
	@sh scripts/need.sh cargo cc
	cargo build --release -p gt

install: ## install gt, its completions and manual pages under PREFIX (~/.local)
	@sh scripts/need.sh cargo cc
	@set -e; prefix="$${PREFIX:-$$HOME/.local}"; share="$$prefix/share"; \
	cargo install --locked --path crates/gt --root "$$prefix"; \
	gt="$$prefix/bin/gt"; \
	mkdir -p "$$share/bash-completion/completions" "$$share/zsh/site-functions" \
		"$$share/fish/vendor_completions.d" "$$share/man/man1"; \
	"$$gt" completions bash > "$$share/bash-completion/completions/gt"; \
	"$$gt" completions zsh > "$$share/zsh/site-functions/_gt"; \
	"$$gt" completions fish > "$$share/fish/vendor_completions.d/gt.fish"; \
	"$$gt" man "$$share/man/man1"; \
	echo "Installed $$gt, and completions and manual pages under $$share."; \
	for program in tmux git; do \
		command -v $$program >/dev/null 2>&1 || echo "gt needs $$program: install it before the first start."; \
	done
