// Asks Countersign for approval of tool calls. No packages, nothing but fetch.
// Everything that fails throws, and then nothing runs.

/** Why a call did not run, in words for a person. */
export class NotApproved extends Error {}

/**
 * Asks for approval of calls. The run is the name that the program gives to what it
 * is doing; before is the request before this one in the same run, if there was one.
 */
export function ask(run, before, request) {
  const pause = before ? Number(before.external_id.split('/').at(-1)) + 1 : 1
  return call('POST', '/v1/approvals', { group: run, external_id: `${run}/${pause}`, ...request })
}

/** Returns the newest request of the run, to continue after a crash or a long wait. */
export async function newest(run) {
  const { approvals } = await call('GET', `/v1/approvals?limit=1&group=${encodeURIComponent(run)}`)
  return approvals.length ? call('GET', `/v1/approvals/${approvals[0].id}`) : undefined
}

/** Waits until people have decided about all calls of the request. */
export async function decided(request, seconds = Number(process.env.COUNTERSIGN_WAIT ?? 3600)) {
  for (const end = Date.now() + seconds * 1000; request.status === 'pending'; ) {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left <= 0) throw new NotApproved(`Nobody has decided yet about ${request.external_id}. Start again later: the request stays open.`)
    request = await call('GET', `/v1/approvals/${request.id}?wait=${Math.min(left, 50)}s`)
  }
  return request
}

/** Returns the decisions of a request with a format, as its framework takes them. */
export const results = (request) => call('GET', `/v1/approvals/${request.id}/results`)

/** Says whether a call may run, and if not, why, in words for the model. */
export function decision({ outcome, reason }) {
  const approved = outcome === 'approved' || outcome === 'allowed'
  return approved ? { approved } : { approved, reason: reason ?? `This call is ${outcome}. It must not run.` }
}

/**
 * Runs an approved call of the request, once, whoever else resumes it. The tool gets
 * the arguments that were approved, whatever the framework says they are.
 */
export async function once(request, id, tool, execute) {
  if (request?.calls.find((c) => c.id === id)?.tool !== tool) throw new NotApproved(`Nobody was asked about ${tool}.`)
  const path = `/v1/approvals/${request.id}/calls/${encodeURIComponent(id)}`
  const claim = await call('POST', `${path}/claim`) // fails if it is not approved, or taken
  const report = (state, words) => call('POST', `${path}/result`, { state, words }).catch(() => {}) // only the card says it
  try {
    const result = await execute(JSON.parse(claim.args_text))
    await report('ran')
    return result
  } catch (err) {
    await report('failed', err.message)
    throw err
  }
}

async function call(method, path, body) {
  const { COUNTERSIGN_URL: url, COUNTERSIGN_TOKEN: token } = process.env
  let answer, doc
  try {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(70_000) })
    doc = await answer.json()
  } catch (err) {
    throw new NotApproved(`Countersign cannot be reached: ${err.cause?.message || err.cause?.code || err.message}.`)
  }
  if (!answer.ok) throw new NotApproved([doc.title, doc.detail].filter(Boolean).join(' '))
  return doc
}
