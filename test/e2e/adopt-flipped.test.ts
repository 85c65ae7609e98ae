import { writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describe, expect, it } from 'vitest'

import { runCommand } from '../cli/run-command.ts'
import { batchOf, created, flatRecords, outcomesOf, postBatch } from '../support/batch-request.ts'
import { keepMarks, postsOf, startUpstream } from '../support/scripted-upstream.ts'
import { codeOf, onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const first = batchOf(flatRecords(3))
const other = batchOf(flatRecords(2), { batch: 'batch_other', boundary: 'batch_other' })

const setMeta = (name: string, value: string): string =>
  `update journal_meta set value = ${value} where name = '${name}'`
const renameMeta = (name: string): string =>
  `update journal_meta set name = '${name.slice(0, -1)}~' where name = '${name}'`
/** Returns SQL that changes one character of the SQL expression `text`. The new character always differs from the old character. */
const change = (text: string): string => {
  const old = `substr(${text}, -30, 1)`
  return `replace(${text}, ${old}, case ${old} when 'z' then 'y' else 'z' end)`
}

/** The two possible replies to a resend of the batch that was posted before the damage: the stored outcomes, or an unknown outcome. */
const kept = created(3)
const unknown = '504 ADP_OUTCOME_UNKNOWN'

/**
 * Each row has SQL that changes an SQLite journal where SQLite's own checks do not detect the change, the report of `journal adopt`, and
 * the reply to a resend. No row changes the stored version number, because another number can come from a newer version of the program.
 */
const flips: readonly (readonly [what: string, sql: string, says: RegExp, reply: unknown])[] = [
  ['the sealed secret', setMeta('secret', change('value')), /secret of the journal was changed/, kept],
  ['the key id of the secret', setMeta('secret', "'j' || substr(value, 2)"), /secret of the journal was changed/, kept],
  ['the name of the secret', renameMeta('secret'), /no damage was found/, kept],
  ['the proof of a key', `update journal_keys set proof = ${change('proof')}`, /the proof of key k1/, kept],
  ['the salt, which stays well-formed', setMeta('salt', "'00' || substr(value, 3)"), /the proof of key k1/, kept],
  ['the salt, which becomes malformed', setMeta('salt', change('value')), /its salt cannot be read.*cannot be used/s, kept],
  ['the name of the version', renameMeta('version'), /its version cannot be read.*cannot be used/s, kept],
  ['the identity of the journal', setMeta('identity', change('value')), /its identity cannot be read/, kept],
  ['the age of the journal', setMeta('age', "'a' || value"), /its age cannot be read/, kept],
  ['the end of the read-backs after an earlier loss', "insert into journal_meta values ('read_back_until', '17~')", /its read_back_until/, kept],
  ['the size of a request', 'update journal_batches set bytes = bytes + 1099511627776', /no damage was found/, kept],
  ['a count of commits', 'update journal_commits set commits = -5 where commits > 0', /is an old copy: it contains -5/, kept],
  ['the number of the last batch', `update journal_commits set last_batch = ${2 ** 53 - 1}`, /no damage was found/, kept],
  ['the key id of a request', "update journal_payloads set key_id = 'k3'", /no damage was found/, unknown],
  ['the key id of the answers', "update journal_answers set key_id = 'c1'", /no damage was found/, unknown],
] // prettier-ignore

describe('adoption of a journal whose bits were flipped', () => {
  it.each(flips)(
    'lets the adapter answer both stored and new batches again if the flipped bits were in %s',
    async (_what, sql, says, reply) => {
      const upstream = await startUpstream(keepMarks())
      const journal = journalFile({ encrypted: true })
      const settings = { ...onePartner({ v3: { readBackAfterMs: [5] } }), journal }
      const before = await startAdapter(upstream.url, settings)
      expect(outcomesOf(await postBatch(before, first))).toEqual(kept)
      await before.app.close()
      const file = journal.url.replace('sqlite:', '')
      const database = new DatabaseSync(file)
      expect(database.prepare(sql).run().changes).toBeGreaterThan(0)
      database.close()

      const config = `${dirname(file)}/markbridge.json`
      await writeFile(
        config,
        JSON.stringify({
          upstreams: { v3: { baseUrl: upstream.url } },
          partners: [{ id: 'acme', match: { any: true } }],
          journal: { url: journal.url, keys: [{ id: 'k1', key: { file: `${config}.key` } }] },
        }),
      )
      await writeFile(`${config}.key`, 'ab'.repeat(32))
      const adopt = (...args: string[]) => runCommand(['journal', 'adopt', '--config', config, ...args])
      expect(await adopt()).toEqual({ status: 1, stdout: expect.stringMatching(says) as unknown, stderr: '' })
      expect(await adopt('--yes')).toMatchObject({ status: 0, stderr: '' })

      const after = await startAdapter(upstream.url, settings)
      const again = await postBatch(after, first)
      expect(again.status === 200 ? outcomesOf(again) : codeOf(again)).toEqual(reply)
      expect(outcomesOf(await postBatch(after, other))).toEqual(created(2))
      expect((await after.request('GET', '/readyz')).status).toBe(200)
      // Only the first batch was posted. The second batch has learners and events of the first, so its marks were found by read-back.
      expect(postsOf(upstream.seen)).toHaveLength(3)
    },
  )
})
