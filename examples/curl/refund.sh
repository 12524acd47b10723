#!/bin/sh
# refund.sh ORDER CENTS refunds an order after people have approved it.
set -eu
here=$(dirname "$0")
order=$1 cents=$2

args=$("$here/approved.sh" refund "{\"order\":\"$order\",\"cents\":$cents}" "refund-$order")
echo "refunding with $args" # here the real call runs, with these arguments and no others
