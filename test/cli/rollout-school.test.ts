import { describe, expect } from 'vitest'

import { decide } from '../../src/rollout/decide.ts'
import { serve } from '../rollout/store/open-stores.ts'
import { eachDatabase } from '../support/each-database.ts'
import { rolloutFile, rolloutWith } from './rollout-file.ts'

const schools = Array.from({ length: 12 }, (_, at) => `school-${at}`)
const lists = { always: ['school-0'], never: ['school-1'] }

describe.each(eachDatabase())('rollout show --school with a journal in %s', (_name, { test }) => {
  test('names the side that the instances choose for the school, and the rule behind the choice', async (url) => {
    const { journal } = await serve(url)
    const canary = { percent: 40, ...lists }
    const show = rolloutWith(await rolloutFile(url, { partner: { stage: 'canary', canary } }))
    for (const school of schools) {
      const unit = { kind: 'batch', unit: school } as const
      const side = decide({ stage: 'canary', ...canary }, 'acme', unit, () => journal.linkSecret)
      const rule = { 'school-0': 'always', 'school-1': 'never' }[school] ?? 'percent'
      const { stdout } = await show('show', 'acme', '--school', school, '--json')
      expect(JSON.parse(stdout)).toMatchObject({ stage: 'canary', school: { school, serves: side, rule } })
    }
  })

  test('names V2 for every school at the stage shadow, and refuses a text that names no school', async (url) => {
    await serve(url)
    const show = rolloutWith(await rolloutFile(url, { partner: { stage: 'shadow' } }))
    expect((await show('show', 'acme', '--school', 'school-7')).stdout).toContain('V2 serves school-7')
    expect(JSON.parse((await show('show', 'acme', '--json')).stdout)).not.toHaveProperty('school')
    for (const name of ['', 'a,b']) expect((await show('show', 'acme', '--school', name)).status).toBe(2)
  })
})
