// What the agents of these examples do: stand-ins for programs with effects.

export function refund(args) {
  console.log('refunding with', JSON.stringify(args))
  return `Refunded ${args.cents} cents of order ${args.order}.`
}

export function cancel(args) {
  console.log('canceling with', JSON.stringify(args))
  return `Canceled order ${args.order}.`
}
