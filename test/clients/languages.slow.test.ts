import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test as plainTest } from 'vitest'

import { journalFile } from '../e2e/support/journal-file.ts'
import { startFaultProxy } from '../faults/proxy/fault-proxy.ts'
import { fixed } from '../sandbox/start-sandbox.ts'
import { isMissing, languageClients, runClient } from './support/language-client.ts'
import { type Mark, marksOf, startService, toldOf } from './support/start-service.ts'

/** A service whose first reply to a batch is lost on its way to the client. */
async function startLossy(layout: string) {
  const service = await startService({ layout }, {}, { journal: journalFile() })
  let lost = false
  const proxy = await startFaultProxy({
    targets: [service.adapter.port],
    plan: {
      connection: () => 'pass',
      request: () => {
        const kind = lost ? 'pass' : 'resetAfter'
        lost = true
        return { kind }
      },
    },
  })
  onTestFinished(() => proxy.close())
  return { ...service, layout, proxy, root: service.root.replace(service.adapter.url, proxy.url) }
}

function writeRecords(records: readonly Mark[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-records-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  const path = join(folder, 'records')
  writeFileSync(path, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  return path
}

/** A line of a client: what it says, what was told, and the JSON. */
function readLine(line: string) {
  const [, kind = '', words = '', json = 'null'] = /^(\w+) ?([^{[]*?) ?([{[].*)?$/.exec(line) ?? []
  return { kind, words: words.split(' '), json: JSON.parse(json) as unknown }
}

describe.each(languageClients)('a client in $language', (client) => {
  const test = plainTest.skipIf(isMissing(client))

  test('writes a register whose reply is lost, sends it again, writes one record and reads, layouts flat and nested', async () => {
    const services = [await startLossy('flat'), await startLossy('nested')]
    const [{ register, samples }] = services as [(typeof services)[0]]
    const single: Mark = {
      Present: true,
      Absent: false,
      Learner: samples.learners[register.length] ?? '',
      AttendableEvent: fixed.morning,
      SchoolAttendanceCode: fixed.present,
      MinutesLate: null,
      Comment: 'à bientôt 😀',
    }
    const lines = await runClient(client, [
      writeRecords([...register, single]),
      single.Learner,
      ...services.map(({ root }) => root),
    ])
    // Some libraries send a request again by themselves.
    const said = lines.filter((line) => line !== 'lost').map(readLine)
    const each = said.length / services.length
    for (const [index, service] of services.entries()) {
      const own = said.slice(index * each, (index + 1) * each)
      expect(own.map(({ kind }) => kind)).toEqual([
        'batch',
        ...register.map(() => 'part'),
        'record',
        'read',
        'page',
      ])
      const [batch, ...rest] = own
      expect(batch?.words).toEqual(['200'])
      const parts = rest.slice(0, register.length)
      expect(parts.map(({ words }) => words[0])).toEqual(register.map((_, position) => `${position + 1}`))
      expect(parts.map(({ words, json }) => toldOf(Number(words[1]), json))).toEqual(service.told)
      const [record, read, page] = rest.slice(register.length)
      const { ExternalID } = record?.json as { ExternalID: string }
      expect(record?.words).toEqual(['201', `${service.root}AttendanceRecords(${ExternalID})`])
      expect([read?.words, read?.json]).toMatchObject([['200'], { ExternalID, ...single }])
      const { value } = page?.json as { value: { ExternalID: string }[] }
      expect([page?.words, value.filter((row) => row.ExternalID === ExternalID)]).toMatchObject([
        ['200'],
        [single],
      ])
      expect(service.proxy.counts().resetAfter).toBe(1)
      expect(service.adapter.events().filter(({ replayed }) => replayed === true)).toHaveLength(1)
      expect(await service.taken()).toEqual([single, ...marksOf(service.told)])
    }
  })
})
