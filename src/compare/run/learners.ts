import { createHmac } from 'node:crypto'

import { AdapterError } from '../../errors.ts'
import { isGuid } from '../../odata/index.ts'
import { isMembers } from '../diff/values.ts'
import { type ComparedSide, readRows } from './sides.ts'

/** Faulty lines that are named. */
const MAX_NAMED = 10
/** A large school has some 3,000 with its leavers. */
const MAX_LEARNERS = 100_000

/**
 * Reads a list of learners: one guid a line, blank lines and lines that begin with `#` left out, each learner once.
 * Error: `ADP_USAGE` with `name` and the numbers of the lines that are none, never with their text.
 */
export function parseLearnerList(text: string, name: string): readonly string[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  const ids = new Set<string>()
  const faulty: number[] = []
  for (const [index, line] of lines.entries()) {
    const id = line.trim()
    if (id === '' || id.startsWith('#')) continue
    if (isGuid(id)) ids.add(id.toLowerCase())
    else faulty.push(index + 1)
  }
  if (faulty.length > 0) {
    const more = faulty.length > MAX_NAMED ? ` and ${faulty.length - MAX_NAMED} more` : ''
    const named = `line${faulty.length === 1 ? '' : 's'} ${faulty.slice(0, MAX_NAMED).join(', ')}${more}`
    throw new AdapterError(
      'ADP_USAGE',
      `${name}: The list of learners has no guid in ${named}. Write one guid a line.`,
    )
  }
  if (ids.size === 0) throw new AdapterError('ADP_USAGE', `${name}: The list of learners is empty.`)
  return [...ids]
}

/**
 * Chooses a share of the learners that V3 lists. By a keyed hash of the id, so that a run that goes on chooses the same ones and no
 * other run does. Fewer calls than reading all rows and leaving most of them out: a read costs what it returns.
 * Errors: those of the side; `ADP_UPSTREAM_PROTOCOL` for rows without an id.
 */
export async function sampleLearners(
  side: ComparedSide,
  percent: number,
  key: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const read = await readRows(side, '', MAX_LEARNERS, signal)
  if (read.kind === 'failed') throw read.cause
  if (read.kind === 'tooMany') throw brokenList('does not end')
  const ids = read.rows.map((row) => {
    const id = isMembers(row) ? row['ExternalID'] : undefined
    if (typeof id !== 'string' || !isGuid(id)) throw brokenList('has a row without an id')
    return id.toLowerCase()
  })
  return [...new Set(ids)].filter((id) => shareOf(id, key) * 100 < percent).sort()
}

/** 0 to 1, evenly over ids. */
function shareOf(id: string, key: string): number {
  return createHmac('sha256', key).update(id).digest().readUInt32BE() / 2 ** 32
}

function brokenList(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `V3's list of learners ${fault}.`)
}
