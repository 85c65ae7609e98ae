import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { learnRecordings } from '../../../src/compare/learn/index.ts'
import { toFiles } from '../../../src/compare/recording/recording-files.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { partner } from '../../partners/partner.ts'
import { markedExchange } from '../recording/exchanges.ts'

it('learns from what V2 served, and not from replies of the adapter itself', async () => {
  const folder = await makeFolder()
  for (const [number, served] of (['v2', 'v3', 'v3'] as const).entries()) {
    const own = join(folder, `00000${number}-20260907T084000Z`)
    await mkdir(own)
    for (const [name, bytes] of toFiles(
      markedExchange({ served }),
      partner('acme', { any: true }),
      undefined,
      false,
    ))
      await writeFile(join(own, name), bytes)
  }
  const learned = await learnRecordings(folder, undefined)
  expect(learned.get('exchange/batch')).toBe(1)
})
