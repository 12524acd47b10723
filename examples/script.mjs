// What the scripted models of these examples say: no key, no model, no network.

/** Returns the calls that a prompt such as "refund R-17 4200; cancel R-18" wants. */
export function calls(prompt) {
  return prompt.split(';').map((line, i) => {
    const [name, order, cents] = line.trim().split(' ')
    return { id: `call_${i + 1}`, name, args: name === 'refund' ? { order, cents: Number(cents) } : { order } }
  })
}

/** Returns the answer to the results of the calls: the model repeats what it read. */
export const answer = (results) => `I read: ${results.join(' ')}`
