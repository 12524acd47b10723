#!/bin/sh
# approved.sh TOOL ARGS KEY asks for approval of one call, waits for the decision
# and claims it. It prints the arguments to run the call with; if the call may not
# run, it says why on standard error and fails. KEY names the call: the same
# program, started again after a crash, finds its request by it.
#
# It needs COUNTERSIGN_URL, COUNTERSIGN_TOKEN, curl and jq.
set -eu
tool=$1 args=$2 key=$3

# Every failure of curl, and every status from 400 on, ends the script (-f, set -e):
# no answer never means yes.
call() {
  method=$1 path=$2
  shift 2
  answer=$(curl -sS --fail-with-body --max-time 70 -X "$method" "$COUNTERSIGN_URL$path" \
    -H "Authorization: Bearer $COUNTERSIGN_TOKEN" -H 'Content-Type: application/json' "$@") || {
    code=$?
    printf '%s\n' "$answer" >&2 # says why, if there is one
    return $code
  }
  printf '%s\n' "$answer"
}

# The arguments are put in as they stand: jq would round large numbers.
asked=$(call POST /v1/approvals -d "{\"external_id\":\"$key\",\"calls\":[{\"id\":\"c1\",\"tool\":\"$tool\",\"args\":$args}]}")
id=$(printf %s "$asked" | jq -r .id)
if [ "$(printf %s "$asked" | jq -r .status)" = pending ]; then
  echo "waiting for people to decide about $key (request $id)" >&2
fi
while [ "$(printf %s "$asked" | jq -r .status)" = pending ]; do
  asked=$(call GET "/v1/approvals/$id?wait=50s")
done
case $(printf %s "$asked" | jq -r '.calls[0].outcome') in
approved | allowed) ;;
*)
  printf %s "$asked" | jq -r '.calls[0] | .reason // .outcome' >&2
  exit 1
  ;;
esac
claim=$(call POST "/v1/approvals/$id/calls/c1/claim") # once: whoever gets it runs the call
printf '%s\n' "$claim" | jq -r .args_text
