# Tries each artefact as a new user would: install it on a bare Debian, then run README's first command. Sourced by
# packaging/release, in a clean clone. Of each way the time to install and the time to the first envelope are told.

weights=${XDG_CACHE_HOME:-$HOME/.cache}/cogn/models/smollm2-135m-instruct-q4_1.gguf

# The words after `cogn` in README's first command.
first_words() { sed -n 's/^cargo run --locked -- //p' README.md | head -1; }

# envelope NAME PROGRAM: README's first command on a bare machine. Weights come from where the program gets them; where it
# reaches no source, those of this machine are put into its cache, and that is told.
envelope() {
  local name=$1 program=$2 began from="fetched by itself" home="$work/$1/home/guest"
  [ ! -e "$home/.cache/cogn" ] || from="were there"
  began=$(now)
  if ! bare_user "$name" sh -c "$program $(first_words)" >"$work/$name.json" 2>"$work/$name.err"; then
    cat "$work/$name.err" "$work/$name.json"
    grep -q 'has no weights' "$work/$name.json" && [ -e "$weights" ] || return 1
    from="from this machine's cache, no source was in reach"
    install -D -o 1000 -g 1000 -m 644 "$weights" "$home/.cache/cogn/models/${weights##*/}"
    chown -R 1000:1000 "$home/.cache"
    began=$(now)
    bare_user "$name" sh -c "$program $(first_words)" >"$work/$name.json" 2>"$work/$name.err" || { cat "$work/$name.json"; return 1; }
  fi
  cat "$work/$name.err" "$work/$name.json"
  grep -q '"ok": *true' "$work/$name.json" || return 1
  grep -q '"explain": *"[^"]' "$work/$name.json" || return 1
  echo "installed in $install_time s, first envelope after $(since "$began") s; weights: $from"
}

# installed COMMAND...: runs what installs, and takes the time.
installed() {
  local began
  began=$(now)
  "$@"
  install_time=$(since "$began")
}

check_all() {
  echo "checks, on a bare Debian $suite"
  # For the machines that reach no source of their own.
  [ -e "$weights" ] || step "weights" "$program" model pull
  local lacks
  lacks=$(bare_lacks)
  if [ -n "$lacks" ]; then
    left_out "bare Debian" "$lacks"
  else
    step "bare Debian" bare_make
    if ! has_failed "bare Debian"; then
      step "first envelope: archive" try_archive
      [ -z "${wheel:-}" ] || try_python
      [ ! -e "$out/cognitive-runtime-$version.tgz" ] || try_node
    fi
  fi
  try_image
  try_unit
  try_nginx
}

try_archive() {
  bare_copy archive
  cp "$out/$archive" "$work/archive/home/guest/"
  installed bare_user archive sh -c "mkdir bin && tar xzf $archive && ln -s ~/${archive%.tar.gz}/cogn bin/cogn"
  envelope archive cogn
}

# Python and nothing else of Debian's; pipx and uv by pip.
try_python() {
  step "bare Debian with Python" prepare_python
  has_failed "bare Debian with Python" && return
  step "first envelope: pip" try_pip
  step "first envelope: uvx" try_uvx
  step "first envelope: pipx" try_pipx
}

prepare_python() {
  bare_copy python
  bare_root python apt-get update -q
  bare_root python apt-get install -y -q --no-install-recommends python3-venv
  cp "$wheel" "$work/python/home/guest/"
  bare_user python sh -c "python3 -m venv tools && tools/bin/pip install -q uv pipx"
  bare_user python python3 --version
}

try_pip() {
  installed bare_user python sh -c "python3 -m venv v && v/bin/pip install -q --no-index ./${wheel##*/}"
  envelope python 'PATH=$HOME/v/bin:$PATH cogn'
}

try_uvx() {
  rm -rf "$work/python/home/guest/.cache/cogn"
  install_time=0
  envelope python "PATH=\$HOME/tools/bin:\$PATH uvx ./${wheel##*/}"
}

try_pipx() {
  installed bare_user python sh -c "PATH=\$HOME/tools/bin:\$PATH pipx install -q ./${wheel##*/}"
  envelope python '$HOME/.local/bin/cogn'
}

# The node and npm of this machine and nothing else: Debian's npm brings hundreds of packages.
try_node() {
  if ! command -v node >/dev/null; then left_out "first envelope: npm" "there is no node"; return; fi
  step "first envelope: npm" try_npm
}

try_npm() {
  bare_copy node
  cp "$(readlink -f "$(command -v node)")" "$work/node/usr/bin/node"
  mkdir -p "$work/node/usr/lib/node_modules"
  cp -r "$(npm root --global)/npm" "$work/node/usr/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/node/usr/bin/npm"
  cp "$out"/cognitive-runtime-*.tgz "$work/node/home/guest/"
  installed bare_user node sh -c 'npm install --prefix ~/p --offline --no-audit --no-fund ~/cognitive-runtime-*.tgz'
  envelope node '$HOME/p/node_modules/.bin/cogn'
}

try_image() {
  if [ ! -e "$out/$image" ]; then left_out "first envelope: image" "there is no image"; return; fi
  if ! command -v buildah >/dev/null; then left_out "first envelope: image" "there is no buildah to run it"; return; fi
  if [ ! -e "$weights" ]; then left_out "first envelope: image" "there are no weights: ${weights}"; return; fi
  step "first envelope: image" try_container
  echo "  not tried: the build from source in packaging/Dockerfile, which pulls an image with Rust"
}

# As its own user, on its own files. The server in it is asked by the image's health check.
try_container() {
  local container began server port=18437 code=0
  builder rmi --all --force >/dev/null 2>&1 || true
  installed builder pull "docker-archive:$out/$image"
  container=$(builder from "cogn:$version")
  builder copy --chown 65532:65532 "$container" "$weights" /home/cogn/.cache/cogn/models/
  began=$(now)
  in_container() { builder run --isolation chroot "$container" -- /usr/local/bin/cogn "$@"; }
  eval "in_container $(first_words)" >"$work/image.json"
  local seconds
  seconds=$(since "$began")
  grep -q '"ok": *true' "$work/image.json"
  # A separate process group: ending the builder alone would leave the server in the container behind.
  setsid buildah "${storage[@]}" run --isolation chroot --env COGNITIVE_API_KEY=0123456789abcdef "$container" -- \
    /usr/local/bin/cogn serve --host 0.0.0.0 --port $port >"$work/image-serve.log" 2>&1 &
  server=$!
  wait_for "$work/image-serve.log" listening || { cat "$work/image-serve.log"; return 1; }
  in_container serve --check --port $port || code=$?
  kill -- "-$server"
  wait "$server" || true
  [ $code = 0 ]
  echo "loaded in $install_time s, first envelope after $seconds s, healthy; weights: from this machine's cache"
}

# Waits until a file holds a word, for a quarter of a minute.
wait_for() {
  local _
  for _ in $(seq 150); do
    ! grep -q "$2" "$1" || return 0
    sleep 0.1
  done
  return 1
}

try_unit() {
  if ! command -v systemd-analyze >/dev/null; then left_out "systemd unit" "there is no systemd-analyze"; return; fi
  step "systemd unit" verify_unit
  if ! command -v systemd-nspawn >/dev/null || [ ! -d "$work/bare" ]; then
    left_out "unit under systemd" "it needs a bare Debian and systemd-nspawn (Debian: systemd-container)"
    return
  fi
  step "unit under systemd" start_unit
}

# A Debian that is booted for it: the unit as docs/deploy.md installs it, asked for its health and for README's first envelope, started
# again and stopped. It has a separate network without other machines, so the weights come from this machine.
start_unit() {
  local root="$work/unit" body='{"text": "The delivery came two weeks late and the box was broken."}'
  bare_copy unit
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  bare_root unit apt-get update -q
  bare_root unit apt-get install -y -q --no-install-recommends systemd-sysv dbus
  umount "$root/proc"
  install -m 755 "$program" "$root/usr/local/bin/cogn"
  install -m 644 packaging/systemd/cogn.service "$root/etc/systemd/system/cogn.service"
  install -d -m 700 "$root/etc/cogn"
  printf 'COGNITIVE_API_KEY=0123456789abcdef\n' >"$root/etc/cogn/environment"
  if [ -e "$weights" ]; then
    install -D -m 644 "$weights" "$root/srv/weights.gguf"
    echo "COGN_MODEL=/srv/weights.gguf" >>"$root/etc/cogn/environment"
  fi
  chmod 600 "$root/etc/cogn/environment"
  printf '%s' "$body" >"$root/srv/body.json"
  install -m 755 packaging/lib/in-unit.sh "$root/usr/local/bin/in-unit"
  printf '[Unit]\nAfter=cogn.service\nSuccessAction=poweroff-force\nFailureAction=poweroff-force\n[Service]\nType=oneshot\nExecStart=/usr/local/bin/in-unit\n' \
    >"$root/etc/systemd/system/try.service"
  ln -s ../cogn.service ../try.service "$root/etc/systemd/system/multi-user.target.wants/"
  timeout 180 systemd-nspawn --quiet --register=no --keep-unit --private-network --directory "$root" --boot --console=pipe </dev/null || true
  cat "$root/srv/said"
  tail -1 "$root/srv/said" | grep -q '^started'
}

verify_unit() {
  mkdir -p "$work/unit-file"
  sed "s|/usr/local/bin/cogn|$program|" packaging/systemd/cogn.service >"$work/unit-file/cogn.service"
  systemd-analyze verify "$work/unit-file/cogn.service"
  systemd-analyze security --offline=yes "$work/unit-file/cogn.service" | sed -n 's/.*exposure level for [^:]*: /verified; exposure /p'
}

try_nginx() {
  if ! command -v nginx >/dev/null; then left_out "nginx" "there is no nginx"; return; fi
  step "nginx" serve_behind_nginx
}

# The configuration as it is shipped, with other ports and a self-signed certificate.
serve_behind_nginx() {
  local folder="$work/nginx" server port=18438 tls=18439 code=0
  mkdir -p "$folder"
  sed -e "s/127.0.0.1:8000/127.0.0.1:$port/" -e "s/listen 443/listen 127.0.0.1:$tls/" \
    -e "s|/etc/ssl/cogn/[a-z]*.pem|$PWD/crates/cognitive-testkit/certificates/self-signed.pem|" packaging/nginx/cogn.conf >"$folder/cogn.conf"
  printf 'pid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\ninclude %s/cogn.conf;\n}\n' "$folder" "$folder" >"$folder/nginx.conf"
  nginx -t -c "$folder/nginx.conf"
  COGNITIVE_API_KEY=0123456789abcdef HOME="$folder" "$program" serve --port $port --provider ollama >"$folder/log" 2>&1 &
  server=$!
  wait_for "$folder/log" listening || { cat "$folder/log"; return 1; }
  nginx -c "$folder/nginx.conf"
  curl -sfk "https://127.0.0.1:$tls/ready" -H 'Host: cogn.example' || code=$?
  nginx -c "$folder/nginx.conf" -s stop
  kill "$server"
  wait "$server" || true
  [ $code = 0 ]
  echo
  echo "configuration accepted, server ready behind it"
}
