import { readFileSync } from 'node:fs'

import { expect, it, onTestFinished } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { batchOf, batchPath, flatRecord } from '../support/batch-request.ts'
import { onePartner, startWithV3 } from '../support/start-adapter.ts'
import { journalFile, rowsOf } from './support/journal-file.ts'

const WAL_HEADER = 32
const FRAME_HEADER = 24

/** Returns the number of transactions in the write-ahead log (https://www.sqlite.org/fileformat.html#the_write_ahead_log). */
function commitsIn(url: string): number {
  const log = readFileSync(`${url.slice('sqlite:'.length)}-wal`)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let at = WAL_HEADER; at < log.length; at += FRAME_HEADER + log.readUInt32BE(8)) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break
    // Only the last frame of a transaction contains the size of the database after the commit.
    if (log.readUInt32BE(at + 4) > 0) commits += 1
  }
  return commits
}

it('the journal commits twice before the reply to a write if one instance is alive, and three times if two instances are alive', async () => {
  const journal = journalFile()
  const leaseMs = 1_500
  const limited = onePartner({ v3: { callsPerSecond: 50 } })
  const { adapter } = await startWithV3(undefined, { ...limited, journal }, { leaseMs })
  let writes = 0
  const write = async (): Promise<number> => {
    const before = commitsIn(journal.url)
    const { headers, body } = batchOf([flatRecord(++writes)], { batch: `b${writes}` })
    expect((await adapter.request('POST', batchPath, { headers, body })).status).toBe(200)
    return commitsIn(journal.url) - before
  }
  /** Returns the fewest commits of three writes, because the renewal of a lease adds a commit to some of the writes. */
  const fewest = async (): Promise<number> => Math.min(await write(), await write(), await write())
  const options = { timeout: 30_000, interval: 500 }
  await expect.poll(fewest, options).toBe(2)
  expect(rowsOf(journal, 'SELECT name FROM journal_rate_slots')).toHaveLength(1)
  const other = await openJournal({ url: journal.url, leaseMs })
  onTestFinished(() => other.close())
  await expect.poll(fewest, options).toBe(3)
  await other.close()
  await expect.poll(fewest, options).toBe(2)
})
