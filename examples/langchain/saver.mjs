// A checkpointer whose content travels as the state of the request. If you have one
// that other processes reach, such as PostgresSaver, you need none of this: the state
// is the id of the thread.
import { MemorySaver } from '@langchain/langgraph'

const isBytes = (v) => v instanceof Uint8Array

/** Returns the content of the checkpointer as JSON. */
export function pack({ storage, writes }) {
  return JSON.stringify({ storage, writes }, (_key, v) => (isBytes(v) ? { bytes: Buffer.from(v).toString('base64') } : v))
}

/** Returns a checkpointer with the content, or an empty one. */
export function unpack(text = '{}') {
  const content = JSON.parse(text, (_key, v) => (typeof v?.bytes === 'string' ? new Uint8Array(Buffer.from(v.bytes, 'base64')) : v))
  return Object.assign(new MemorySaver(), content)
}
