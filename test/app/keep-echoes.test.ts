import { describe, expect, it } from 'vitest'

import { createEchoKeeper } from '../../src/app/journal.ts'
import { createNoJournal } from '../../src/journal/index.ts'
import { freshProfile } from '../../src/translate/index.ts'
import { createEchoLearning } from '../../src/writes/context.ts'
import { guid } from '../support/batch-request.ts'
import { startDuties } from '../support/start-duties.ts'
import { nestedRecord } from '../writes/planned-record.ts'

const nowMs = Date.parse('2026-06-10T11:00:00Z')
const baseUrl = new URL('http://user:secret@v3.example/api')

/** Creates an instance that shares its notes in the journal with other instances. */
function startInstance(notes: Map<string, string>) {
  const journal = {
    ...createNoJournal(),
    readNote: (name: string) => Promise.resolve(notes.get(name)),
    writeNote: (name: string, text: string) => {
      notes.set(name, text)
      return Promise.resolve()
    },
  }
  const echoes = createEchoLearning(() => nowMs)
  return { echoes, keeper: createEchoKeeper(echoes, journal, baseUrl) }
}

describe('createEchoKeeper', () => {
  it('passes the echo profile that one instance learned to the next instance through the journal', async () => {
    const notes = new Map<string, string>()
    const one = startInstance(notes)
    await one.keeper.load()
    const reply = { ExternalID: guid(7), RecordedOn: '2026-06-10T10:30:00.5Z' }
    one.echoes.accepted(nestedRecord(1), true, reply)
    await startDuties(one.keeper.duties).stop()
    const next = startInstance(notes)
    await next.keeper.load()
    expect(next.echoes.profile()).toEqual(one.echoes.profile())
    expect(next.echoes.profile().clockOffMs).toBe(1_799_500)
    expect([...notes.keys()]).toEqual(['echo profile of http://v3.example/api'])
  })

  it('keeps the fresh echo profile if the journal cannot be read or the stored profile is invalid', async () => {
    const notes = new Map([['echo profile of http://v3.example/api', 'x']])
    const { echoes, keeper } = startInstance(notes)
    await keeper.load()
    expect(echoes.profile()).toBe(freshProfile)
    const broken = createEchoKeeper(
      echoes,
      { readNote: () => Promise.reject(new Error('no')), writeNote: () => Promise.resolve() },
      baseUrl,
    )
    await broken.load()
  })
})
