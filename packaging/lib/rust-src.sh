#!/usr/bin/env bash
# Prints a folder that holds `library/`, the sources of Rust's standard library for the rustc of this checkout. They permit builds
# for a target that rustup does not provide:
#
#   RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$(packaging/lib/rust-src.sh)/library" cargo build -Zbuild-std --target …
#
# In this order: what the toolchain has, what an earlier call left in the cache, rustup, Debian's package. The package is taken from the
# mirror that apt uses on this machine and checked by apt against Debian's keys; nothing is installed, no root is needed. Refuses, with 1
# and the reason on stderr, sources of any other version of Rust: rustc builds only its own.
set -euo pipefail
suites=(trixie-backports sid trixie)
keys=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
  echo "rust-src: $1" >&2
  exit 1
}

version=$(rustc -vV | sed -n 's/^release: //p')
[ -n "$version" ] || fail "there is no rustc"
toolchain="$(rustc --print sysroot)/lib/rustlib/src/rust"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/cogn-rust-src/$version"

# Returns whether a folder has the complete library.
has_library() { [ -e "$1/library/Cargo.lock" ] && [ -e "$1/library/std/src/lib.rs" ]; }

# from_debian MIRROR SUITE: puts the library into the cache. apt gets separate folders, so that this machine's lists stay as they are.
from_debian() {
  local work package
  mkdir -p "${cache%/*}"
  work=$(mktemp -d "${cache%/*}/fetch.XXXXXX")
  # shellcheck disable=SC2064 # This folder, not whichever has the name later.
  trap "rm -rf '$work'" RETURN
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  echo "deb [signed-by=$keys] $1 $2 main" >"$work/sources.list"
  printf '%s\n' "Dir::State \"$work\";" "Dir::State::lists \"$work/lists\";" 'Dir::State::status "/dev/null";' "Dir::Cache \"$work/cache\";" \
    "Dir::Etc::sourcelist \"$work/sources.list\";" 'Dir::Etc::sourceparts "/dev/null";' 'Acquire::Languages "none";' \
    'APT::Sandbox::User "";' >"$work/apt.conf"
  APT_CONFIG="$work/apt.conf" timeout 300 apt-get update -qq >&2 || return 1
  package=$(APT_CONFIG="$work/apt.conf" apt-cache madison rust-src | awk -v wanted="$version+" 'index($3, wanted) == 1 { print $3; exit }')
  [ -n "$package" ] || return 1
  (cd "$work" && APT_CONFIG="$work/apt.conf" timeout 600 apt-get download -qq "rust-src=$package" >&2) || return 1
  dpkg-deb --fsys-tarfile "$work"/rust-src_*.deb | tar -x -C "$work" --strip-components=3 --wildcards --no-wildcards-match-slash './usr/src/*/library' || return 1
  has_library "$work"/rustc-* || return 1
  # Of two at once the first one wins; both have the same.
  mv -T "$work"/rustc-* "$cache" 2>/dev/null || has_library "$cache"
}

! has_library "$toolchain" || { echo "$toolchain"; exit; }
! has_library "$cache" || { echo "$cache"; exit; }

if command -v rustup >/dev/null && timeout 300 rustup component add rust-src >/dev/null 2>&1 && has_library "$toolchain"; then
  echo "$toolchain"
  exit
fi

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "rustup cannot bring the sources of Rust $version, and this is no Debian"
[ -e "$keys" ] || fail "rustup cannot bring the sources of Rust $version, and Debian's keys are not here: $keys"
mirror=$(apt-get indextargets --format '$(SITE)' | grep -m 1 '/debian/\?$') || fail "apt names no mirror of Debian; run \`apt-get update\`"
for suite in "${suites[@]}"; do
  if from_debian "$mirror" "$suite"; then
    echo "$cache"
    exit
  fi
done
fail "neither rustup nor Debian (${suites[*]}) has the sources of Rust $version"
