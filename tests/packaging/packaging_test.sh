#!/bin/sh
# Usage: packaging_test.sh man|units PROGRAM SOURCE
set -eu
part=$1 program=$2 source=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "$*"
  exit 1
}
need() {
  command -v "$1" >/dev/null || {
    echo "skipped: $1 is not installed"
    exit 77
  }
}

case $part in
man)
  need help2man
  "$source/packaging/man/make_pages.sh" "$program" 1.2.3 "$folder"
  # Every command has its page, and every option of its help text stands there.
  for command in $("$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p'); do
    page=$folder/ztape-$command.1
    [ -s "$page" ] || fail "no page for $command"
    grep -q "^ztape-$command \\\\- " "$page" || fail "$page: no name"
    for option in $("$program" "$command" --help | sed -n 's/^ *\(-., \)\?\(--[a-z0-9-]*\).*/\2/p'); do
      grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" "$page" || fail "$page: $option is missing"
    done
    grep -q "ztape-$command (1)" "$folder/ztape.1" || fail "ztape.1 does not name ztape-$command"
  done
  if command -v man >/dev/null; then
    warnings=$(MANPAGER=cat man --warnings -l "$folder"/*.1 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "$warnings"
  fi
  ;;
units)
  need systemd-analyze
  for unit in "$source"/packaging/systemd/*@*; do
    # The program is not installed, nor are its pages.
    sed -e "s,/usr/bin/ztape,$program," -e '/^Documentation=/d' "$unit" >"$folder/$(basename "$unit")"
  done
  found=$(systemd-analyze verify "$folder"/*@* 2>&1) || fail "$found"
  [ -z "$found" ] || fail "$found"
  systemd-analyze security --offline=true --threshold=20 "$folder/ztape-proxy@.service" >"$folder/score" 2>&1 ||
    fail "$(tail -n 1 "$folder/score")"
  tail -n 1 "$folder/score"
  ;;
esac
