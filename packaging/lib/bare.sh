# A bare Debian to try things on: what debootstrap puts there and nothing else, no compiler, no Python, no Node. Each way of
# installing gets a separate copy. Needs root and debootstrap. Sourced by packaging/release.
suite=bookworm
certificates=/usr/local/share/this-machine.pem

# Why there can be none here; nothing if there can.
bare_lacks() {
  [ "$(id -u)" = 0 ] || { echo "a bare Debian needs root"; return; }
  command -v debootstrap >/dev/null || echo "debootstrap is not installed"
}

bare_make() {
  if [ -n "$bare" ] && [ -e "$bare/home/guest" ]; then
    cp -a --reflink=auto "$bare" "$work/bare"
  else
    bare_bootstrap
    [ -z "$bare" ] || cp -a --reflink=auto "$work/bare" "$bare"
  fi
  local each
  for each in python3 node cargo rustc; do
    ! chroot "$work/bare" sh -c "command -v $each" || { echo "there is a $each"; return 1; }
  done
  echo "no python3, node, cargo, rustc; $(du -sm "$work/bare" | cut -f1) MB"
}

bare_bootstrap() {
  debootstrap --variant=minbase "$suite" "$work/bare" "${COGN_DEBIAN_MIRROR:-http://deb.debian.org/debian}"
  # The network access of this machine: names, certificates, the index of Python packages.
  cp /etc/resolv.conf "$work/bare/etc/resolv.conf"
  # Outside of Debian's own place, because installing its certificates would overwrite them.
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$work/bare$certificates"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$work/bare/etc/pip.conf"
  chroot "$work/bare" useradd --create-home guest
}

# bare_copy NAME: a separate machine.
bare_copy() {
  cp -a --reflink=auto "$work/bare" "$work/$1"
  mount -t proc proc "$work/$1/proc"
}

# bare_root NAME COMMAND...: as root, to prepare it.
bare_root() {
  local machine_root="$work/$1"
  shift
  chroot "$machine_root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# bare_user NAME COMMAND...: as the user, at home, with nothing of this machine's environment.
bare_user() {
  local machine_root="$work/$1"
  shift
  chroot --userspec=guest:guest "$machine_root" env -i --chdir=/home/guest HOME=/home/guest LANG=C.UTF-8 \
    PATH=/home/guest/bin:/usr/local/bin:/usr/bin:/bin SSL_CERT_FILE=$certificates PIP_CERT=$certificates "$@"
}

bare_remove() {
  local each
  for each in "$work"/*/proc; do
    ! mountpoint -q "$each" || umount "$each"
  done
}
