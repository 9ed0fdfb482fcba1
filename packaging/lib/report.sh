# Reports the steps with their durations, and those that were skipped. Sourced by packaging/release.
skipped=()
failed=()

now() { date +%s.%N; }

# Seconds since a moment, with one digit.
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f", to - from }'; }

# step NAME COMMAND...: runs a step, and keeps what it said if it fails. A step is left out with `left_out NAME WHY`.
step() {
  local name=$1 log="$work/${1// /-}.log" began code
  shift
  began=$(now)
  printf '  %-28s ' "$name"
  # A separate shell, so that the first command that fails ends the step; within `||` it would go on.
  set +e
  (set -e; "$@") >"$log" 2>&1
  code=$?
  set -e
  if [ $code = 0 ]; then
    printf '%7s s  %s\n' "$(since "$began")" "$(tail -1 "$log")"
  else
    printf '%7s s  FAILED\n' "$(since "$began")"
    sed 's/^/    | /' "$log" | tail -25
    failed+=("$name")
  fi
  return 0
}

left_out() {
  printf '  %-28s %9s  left out: %s\n' "$1" - "$2"
  skipped+=("$1: $2")
}

# has_failed NAME: whether a step did.
has_failed() {
  local each
  for each in "${failed[@]:-}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

report_end() {
  echo
  (cd "$out" && find . -maxdepth 1 -type f -printf '%10s  %f\n' | sort -k2)
  [ ${#skipped[@]} = 0 ] || { echo; echo "left out:"; printf '  %s\n' "${skipped[@]}"; }
  if [ ${#failed[@]} -gt 0 ]; then
    echo
    echo "failed: ${failed[*]}"
    exit 1
  fi
  if [ ${#skipped[@]} -gt 0 ] && [ "${COGN_TEST_STRICT:-}" = 1 ]; then
    echo "COGN_TEST_STRICT=1: what was left out counts as failed"
    exit 1
  fi
}
