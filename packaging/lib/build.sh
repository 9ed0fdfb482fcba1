# Builds the artefacts: one program, and what carries it. Sourced by packaging/release, in a clean clone.

# The static program if its target can be had, else one for this machine's own C library.
build_program() {
  echo "program"
  musl="$machine-unknown-linux-musl"
  if [ -n "$binary" ]; then
    program=$binary
    echo "  given: $binary"
  elif has_musl; then
    export "CC_${musl//-/_}=musl-gcc"
    step "static build" cargo_build --target "$musl"
    program="$work/target/$musl/release/cogn"
  elif parts=$(static_parts 2>"$work/static-parts.log"); then
    echo "  the library of $musl is built as well: $parts"
    step "static build" cargo_build_all
    program="$work/target/$musl/release/cogn"
  else
    left_out "static build" "neither the target $musl nor what it is made of can be had; its compiler musl-gcc is in Debian's musl-tools"
    step "native build" cargo_build
    program="$work/target/release/cogn"
  fi
  [ -x "$program" ] || { report_end; exit 1; }
  cp "$program" "$work/cogn"
  strip "$work/cogn" 2>/dev/null || true
  program="$work/cogn"
  if is_static "$program"; then
    kind=musl
  else
    [ -z "$binary" ] || left_out "static build" "the given program is not static"
    kind=gnu
    export COGN_NPM_LIBC=glibc
  fi
}

has_musl() {
  command -v musl-gcc >/dev/null || return 1
  [ -d "$(rustc --print target-libdir --target "$musl")" ] || rustup target add "$musl" >/dev/null 2>&1
}

# The parts of a target that rustup does not provide: the sources of the library, and LLVM's unwinder, which Debian has. The
# unwinder was built for another C library and asks it for one function that musl does not have.
static_parts() {
  local package folder="$work/unwinder"
  command -v musl-gcc >/dev/null && command -v apt-get >/dev/null && packaging/lib/rust-src.sh >"$work/rust-src" || return 1
  mkdir -p "$folder"
  package=$(apt-cache search --names-only '^libunwind-[0-9]+-dev$' | cut -d' ' -f1 | sort -V | tail -1)
  (cd "$folder" && apt-get download -qq "$package" >&2 && dpkg-deb -x "$package"_*.deb .) || return 1
  cp -L "$(find "$folder/usr/lib" -name libunwind.a -print -quit)" "$folder/libunwind.a" || return 1
  printf '%s\n' '#include <stdarg.h>' '#include <stdio.h>' \
    'int __fprintf_chk(FILE *file, int flag, const char *format, ...) {' \
    '  va_list values; va_start(values, format); int count = vfprintf(file, format, values); va_end(values); return count; }' \
    >"$folder/checked.c"
  musl-gcc -O2 -c "$folder/checked.c" -o "$folder/checked.o" && ar q "$folder/libunwind.a" "$folder/checked.o" || return 1
  echo "$(cat "$work/rust-src"), $package"
}

# musl-gcc links static programs that are not relocated; relocated ones would need its loader. The compiler's own library for C code
# comes last.
cargo_build_all() {
  local name=${musl//-/_}
  export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$(cat "$work/rust-src")/library" "CC_$name=musl-gcc"
  export "CARGO_TARGET_${name^^}_LINKER=musl-gcc"
  export "CARGO_TARGET_${name^^}_RUSTFLAGS=-Clink-self-contained=no -Crelocation-model=static -Lnative=$work/unwinder -Clink-arg=-lgcc"
  cargo_build -Zbuild-std=std,panic_unwind --target "$musl"
}

cargo_build() {
  CARGO_TARGET_DIR="$work/target" cargo build --release --locked --package cogn-cli --bin cogn "$@"
}

# Returns whether a program needs no loader and no libraries.
is_static() { ! readelf --program-headers "$1" | grep -q INTERP; }

# An archive with the program, its short name, the licences and the unit.
build_archive() {
  archive="cogn-$version-$machine-linux-$kind.tar.gz"
  step "archive" pack_archive
}

pack_archive() {
  local folder="$work/${archive%.tar.gz}"
  mkdir -p "$folder"
  cp "$program" "$folder/cogn"
  ln -sf cogn "$folder/cog"
  cp LICENSE-* README.md packaging/systemd/cogn.service "$folder"
  tar --sort=name --owner=0 --group=0 --mtime="@$(git log -1 --format=%ct)" -C "$work" -cf - "${folder##*/}" | gzip -9n >"$out/$archive"
  echo "$archive"
}

# The wheel: the library that Python loads, which is never static, and the program.
build_wheel() {
  if ! command -v python3 >/dev/null; then left_out wheel "there is no python3"; return; fi
  if [ -n "$library" ]; then
    echo "  given: $library"
  else
    step "Python library" cargo_build_library
    library="$work/target/release/libcogn_python.so"
  fi
  if [ ! -e "$library" ]; then left_out wheel "there is no library"; return; fi
  step "wheel" pack_wheel
  wheel=$(find "$out" -name "cognitive_runtime-$version-*.whl" -print -quit)
}

cargo_build_library() {
  CARGO_TARGET_DIR="$work/target" cargo build --release --locked --package cogn-python --lib
}

pack_wheel() {
  local glibc
  # The newest version of a symbol that library or program need says which systems have it.
  # A program that is not relocated has no such table, and objdump fails on it.
  glibc=$({ objdump -T "$library" "$program" 2>/dev/null || true; } | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
  glibc=${glibc#GLIBC_}
  rm -f "$out"/cognitive_runtime-*.whl
  packaging/python/build "$program" "$library" "$out" "manylinux_${glibc//./_}_$machine"
  (cd "$out" && echo cognitive_runtime-*.whl)
}

build_npm() {
  if ! command -v npm >/dev/null; then left_out npm "there is no npm"; return; fi
  case $machine in x86_64) npm_platform=linux-x64 ;; aarch64) npm_platform=linux-arm64 ;; *) left_out npm "Node has no name for $machine"; return ;; esac
  step "npm" node packaging/npm/pack.mjs "$out" "$npm_platform=$program"
}

# The client for TypeScript, with the contract as WebAssembly.
build_client() {
  local said
  if ! command -v npm >/dev/null; then left_out client "there is no npm"; return; fi
  if ! said=$(CARGO_TARGET_DIR="$work/target" typescript/build-wasm "$work/contract.wasm" 2>&1); then
    left_out client "${said##*$'\n'}"
    return
  fi
  step "client" env WASM="$work/contract.wasm" typescript/pack "$out"
}

# The image, by whichever builder is here. Its base is empty, so nothing has to be pulled.
build_image() {
  image="cogn-$version-image.tar"
  if [ $kind != musl ]; then left_out image "it holds nothing but a static program"; return; fi
  if command -v buildah >/dev/null; then
    step "image" pack_image_buildah
  elif docker info >/dev/null 2>&1; then
    step "image" pack_image_docker
  else
    left_out image "there is neither buildah nor a running docker"
  fi
}

# Separate storage, without mounts of the kernel, so that it works inside other containers too.
storage=(--storage-driver vfs --root "$work/storage" --runroot "$work/storage-run")
builder() { buildah "${storage[@]}" "$@"; }

pack_image_buildah() {
  packaging/image-root "$program" dist/image
  builder bud --isolation chroot --format docker --target prebuilt --file packaging/Dockerfile --tag "cogn:$version" .
  rm -f "$out/$image"
  builder push "cogn:$version" "docker-archive:$out/$image:cogn:$version"
  echo "$image"
}

pack_image_docker() {
  packaging/image-root "$program" dist/image
  docker build --target prebuilt --file packaging/Dockerfile --tag "cogn:$version" .
  docker save --output "$out/$image" "cogn:$version"
  echo "$image"
}

build_files() {
  cp packaging/systemd/cogn.service "$out/cogn.service"
  cp packaging/nginx/cogn.conf "$out/cogn.nginx.conf"
}
