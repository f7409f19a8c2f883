#!/bin/sh
# Man pages out of the help texts: ztape.1, and ztape-COMMAND.1 for each command that `ztape --help` lists.
# Usage: make_pages.sh PROGRAM VERSION FOLDER        needs help2man
set -eu
program=$1 version=$2 folder=$3
here=$(dirname "$0")
mkdir -p "$folder"
# help2man starts what it is given by its name: the folder of the program first.
PATH=$(dirname "$program"):$PATH

commands=$("$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *[^ ].*/\1/p')
[ -n "$commands" ] || { echo "make_pages.sh: no commands in the help text" >&2; exit 1; }
see=$(for command in $commands; do printf '.BR ztape-%s (1),\n' "$command"; done)
{
  cat "$here/ztape.h2m"
  printf '\n[SEE ALSO]\n%s\n.BR zstd (1)\n' "$see"
} >"$folder/ztape.h2m"
help2man --no-info --section=1 --manual="User Commands" --source="ztape $version" --version-string="$version" \
  --name="records, replays and compares the gRPC traffic of Zcash light wallets" \
  --include="$folder/ztape.h2m" --output="$folder/ztape.1" ztape
for command in $commands; do
  summary=$("$program" --help | sed -n "s/^  $command  *\([^ ].*\)/\1/p" | head -n 1)
  {
    cat "$here/ztape.h2m"
    printf '\n[SEE ALSO]\n.BR ztape (1)\n'
  } >"$folder/command.h2m"
  help2man --no-info --section=1 --manual="User Commands" --source="ztape $version" --version-string="$version" \
    --name="$summary" --include="$folder/command.h2m" "ztape $command" |
    # A page has no space in its name.
    sed -e "s/^\.TH ZTAPE /.TH ZTAPE-$(echo "$command" | tr a-z A-Z) /" -e "s/^ztape $command \\\\- /ztape-$command \\\\- /" \
      >"$folder/ztape-$command.1"
done
rm -f "$folder/ztape.h2m" "$folder/command.h2m"
