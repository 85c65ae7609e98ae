import { readFile } from 'node:fs/promises'

import { describe, expect, it } from 'vitest'

import { recordStates, type Transition, transitions } from '../../src/journal/lifecycle.ts'

const rows: readonly Transition[] = transitions
const operations = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')

const cell = (state: string | undefined): string => (state === undefined ? 'new' : `\`${state}\``)

describe('the lifecycle table of a record', () => {
  it('is the same as the table in docs/operations.md', () => {
    const table = /\| from \| to \| on \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)/.exec(operations)?.[1] ?? ''
    expect(table.trim().split('\n')).toEqual(
      rows.map(
        ({ on, from, to, active, reason }) =>
          `| ${cell(from)} | ${cell(to)} | ${on} | ${active} | ${reason} |`,
      ),
    )
  })

  it.each(recordStates)('has at most one transition from %s for each event and target state', (state) => {
    const ways = rows.filter(({ from }) => from === state).map(({ on, to }) => `${on} ${to}`)
    expect(new Set(ways).size).toBe(ways.length)
  })

  it('allows a record to be reopened and superseded in every state in which it may be active', () => {
    const active = rows.filter((one) => one.on === 'settle' && one.active === 'may be').map(({ to }) => to)
    for (const event of ['reopen', 'supersede'] as const)
      expect(rows.filter(({ on }) => on === event).map(({ from }) => from)).toEqual(active)
  })

  it('has no transition from a state in which records are never active', () => {
    const ended = rows.filter(({ active }) => active === 'never').map(({ to }) => to)
    const inactive = recordStates.filter(
      (state) => ended.includes(state) && !rows.some((one) => one.to === state && one.active !== 'never'),
    )
    expect(inactive.flatMap((state) => rows.filter(({ from }) => from === state))).toEqual([])
  })

  it('contains only states for which docs/operations.md has a row', () => {
    for (const state of recordStates) expect(operations).toContain(`| \`${state}\` | `)
  })
})
