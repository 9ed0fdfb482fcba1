#!/bin/bash
# The checks of the unit within the Debian that packaging/lib/check.sh boots. The last line confirms success; after a failure it is missing.
set -euo pipefail
exec >/srv/said 2>&1

# A server that has been started listens a moment later.
ready() {
  local _
  for _ in $(seq 100); do
    if cogn serve --check; then return; fi
    sleep 0.1
  done
  journalctl -u cogn -o cat --no-pager
  return 1
}

ready
process=$(systemctl show --property MainPID --value cogn)
grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$process/status"
! grep -Eq "^(Uid:\s0|CapEff:.*[1-9a-f])" "/proc/$process/status"
envelope="no envelope, there are no weights"
if [ -e /srv/weights.gguf ]; then
  exec 3<>/dev/tcp/127.0.0.1/8000
  printf 'POST /api/run/text-classifier HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer 0123456789abcdef\r\n' >&3
  printf 'content-type: application/json\r\ncontent-length: %s\r\n\r\n' "$(stat -c %s /srv/body.json)" >&3
  cat /srv/body.json >&3
  cat <&3 >/srv/answer
  cat /srv/answer
  grep -q '"ok":true' /srv/answer
  envelope="an envelope"
fi
systemctl restart cogn
ready
systemctl stop cogn
[ "$(systemctl show --property Result --value cogn)" = success ]
echo "started, $envelope, started again, stopped; as a user of its own, without capabilities"
