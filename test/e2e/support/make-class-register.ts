/**
 * Writes the ids of the sandbox's class of pupils (seed 1) into the files of fixtures/class-register. All ids have the same length, so the
 * rest is unchanged. Run this script after a change of the sandbox's ids: npx node test/e2e/support/make-class-register.ts
 */
import { readFile, writeFile } from 'node:fs/promises'

import { createSandbox } from '../../../src/sandbox/index.ts'

const folder = new URL('../../../fixtures/class-register/', import.meta.url)
/** The id in records 9, 17 and 25 that the sandbox does not have, so that V3 rejects these records. */
const NOBODY = 'deadbeef-0000-4000-8000-000000000000'
/** The codes of the register in the order of their first use. */
const LETTERS = ['/', 'L', 'I', 'M', 'O']

const sandbox = createSandbox({ seed: 1 })
const { url } = await sandbox.listen()
const { learners, events, codes } = (await (await fetch(`${url}/_sandbox/samples`)).json()) as {
  learners: string[]
  events: string[]
  codes: { id: string; code: string }[]
}
await sandbox.close()

const body = await readFile(new URL('body.txt', folder), 'utf8')
const idsOf = (name: string): (string | undefined)[] =>
  [...new Set([...body.matchAll(new RegExp(`"${name}":"([^"]+)"`, 'g'))].map(([, id]) => id))].filter(
    (id) => id !== NOBODY,
  )
const renamed = new Map([
  ...idsOf('Learner').map((id, index) => [id, learners[index]] as const),
  ...idsOf('AttendableEvent').map((id) => [id, events[0]] as const),
  ...idsOf('SchoolAttendanceCode').map(
    (id, index) => [id, codes.find(({ code }) => code === LETTERS[index])?.id] as const,
  ),
])
for (const name of ['body.txt', 'request.http', 'v3-request.json', 'response.http']) {
  const file = new URL(name, folder)
  const text = await readFile(file, 'utf8')
  await writeFile(
    file,
    text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => renamed.get(id) ?? id),
  )
}
