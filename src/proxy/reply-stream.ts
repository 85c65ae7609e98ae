import type { ServerResponse } from 'node:http'

import { type BatchEncoder, encodeMismatch, locationOf, type PartReply } from '../v2/index.ts'
import type { Plan } from '../writes/plan.ts'
import type { Reply } from '../writes/reply.ts'

/** The time in milliseconds that a finished part waits for more parts. Each write wakes the client and costs more than posting a record. */
const COALESCE_MS = 25
/** The limits of one write to the response. Encoding more at once would delay other requests. */
const MAX_PARTS = 1_000
const MAX_CHARACTERS = 1_048_576

/**
 * Creates a streamed batch reply (batch-wire A7). A part is written as soon as all earlier parts are known, and parts that finish at about
 * the same time share one write. If the client disconnects, nothing more is written, but the records are still posted. If the client reads
 * slowly, parts are encoded only as it reads them. `timing` returns the value of `Server-Timing` when the head is sent.
 */
export function createBatchReply(
  response: ServerResponse,
  encoder: BatchEncoder,
  { records, changesets }: Pick<Plan, 'records' | 'changesets'>,
  timing: () => string | undefined,
): Reply {
  const parts = new Array<PartReply | undefined>(records.length).fill(undefined)
  let next = 0
  let hasBegun = false
  let isEnding = false
  let isBlocked = false
  let timer: NodeJS.Timeout | undefined
  const takeReady = (): string => {
    let text = ''
    const end = next + MAX_PARTS
    for (let part = parts[next]; part !== undefined; part = parts[next]) {
      if (next >= end || text.length >= MAX_CHARACTERS) break
      text += encoder.part(part)
      parts[next] = undefined
      next += 1
    }
    return text
  }
  const writeHead = (): void => {
    if (response.headersSent || response.destroyed) return
    const value = timing()
    if (value !== undefined) response.setHeader('Server-Timing', value)
    response.writeHead(200, { 'Content-Type': encoder.contentType })
  }
  const pump = (): void => {
    timer = undefined
    if (isBlocked || response.destroyed || response.writableEnded) return
    const text = takeReady()
    if (isEnding && parts[next] === undefined) {
      writeHead()
      response.end(text + encoder.close(changesets), 'utf8')
    } else if (text !== '') {
      writeHead()
      isBlocked = !response.write(text, 'utf8')
      if (isBlocked) response.once('drain', unblock)
      else schedule()
    }
  }
  const unblock = (): void => {
    isBlocked = false
    pump()
  }
  const schedule = (): void => {
    if (isEnding) setImmediate(pump)
    else if (!isBlocked && parts[next] !== undefined) timer ??= setTimeout(pump, COALESCE_MS)
  }
  return {
    begin: () => {
      hasBegun = true
      schedule()
    },
    isStatusSent: () => response.headersSent,
    setPart: (index, part) => {
      if (index < next || parts[index] !== undefined) return
      parts[index] = part
      if (hasBegun) schedule()
    },
    // Resolves at once and not when the reply has been sent, because the client may read the rest slowly.
    end: () => {
      hasBegun = isEnding = true
      clearTimeout(timer)
      pump()
      return Promise.resolve()
    },
  }
}

/** Creates the reply to a batch whose ids differ: a single 200 without the outcomes of the records (batch-wire 3). */
export function createMismatchReply(response: ServerResponse, newId: () => string): Reply {
  return {
    setPart: () => undefined,
    begin: () => undefined,
    isStatusSent: () => false,
    end: () => {
      const { contentType, body } = encodeMismatch(newId)
      if (response.destroyed) return Promise.resolve()
      response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) })
      response.end(body)
      return Promise.resolve()
    },
  }
}

/** Creates the reply to a single flat record, with the status and body that the record's part of a batch would have. */
export function createRecordReply(
  response: ServerResponse,
  recordsUrl: string | undefined,
  timing: () => string | undefined,
): Reply {
  return {
    setPart: (_index, { status, json }) => {
      if (response.headersSent || response.destroyed) return
      response.statusCode = status
      if (status < 300) response.setHeader('OData-Version', '4.0')
      const location = locationOf({ status, json }, recordsUrl)
      if (location !== undefined) response.setHeader('Location', location)
      const value = timing()
      if (value !== undefined) response.setHeader('Server-Timing', value)
      if (json !== undefined) response.setHeader('Content-Type', 'application/json; odata.metadata=minimal')
      response.end(json)
    },
    begin: () => undefined,
    isStatusSent: () => response.headersSent,
    end: () => Promise.resolve(),
  }
}
