import { describe, expect, it, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { batchOf, confirmed, statesOf } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'
import { startInstance } from './start-instance.ts'

describe('an SQLite journal after kill -9 of its process', () => {
  it('hands exactly the open records over to the next process', async () => {
    const file = `${await makeFolder()}/journal.db`
    const killed = await startInstance(`sqlite:${file}`)
    expect(await killed.tell({ do: 'begin', keys: ['a'] })).toBe(1)
    expect(await killed.tell({ do: 'settle', batch: 1, positions: [0] })).toBe('settled')
    expect(await killed.tell({ do: 'begin', keys: ['a', 'b', 'c'] })).toBe(2)
    expect(await killed.tell({ do: 'settle', batch: 2, positions: [1] })).toBe('settled')
    expect(await killed.tell({ do: 'begin', keys: ['c', 'd'] })).toBe(3)
    await killed.kill()
    const { journal } = await openSqlite(file)
    expect(await journal.takeOver()).toMatchObject([
      { batch: 2, after: new Map([[0, []], [2, []]]) }, // prettier-ignore
      { batch: 3, after: new Map([[0, [{ batch: 2, position: 2 }]], [1, []]]) }, // prettier-ignore
    ])
    expect(await statesOf(journal, 2)).toEqual(['open', 'confirmed', 'open'])
    await journal.settle(2, [confirmed(0), confirmed(2)])
    await journal.settle(3, [confirmed(0), confirmed(1)])
    expect(await journal.balances()).toEqual([
      {
        partner: 'acme',
        received: 6,
        open: 0,
        confirmed: 6,
        refused: 0,
        unknown: 0,
        parked: 0,
        notApplied: 0,
      },
    ])
  })

  it('contains every batch and outcome that was reported as durable', async () => {
    const file = `${await makeFolder()}/journal.db`
    const killed = await startInstance(`sqlite:${file}`)
    killed.send({ do: 'hammer', name: 'one' })
    await vi.waitFor(() => expect(killed.lines.length).toBeGreaterThan(60), 60_000)
    await killed.kill()
    const { journal } = await openSqlite(file)
    const taken = (await journal.takeOver()).map(({ batch }) => batch)
    const said = killed.lines as { begun?: number; settled?: number }[]
    const begun = said.flatMap((line) => line.begun ?? [])
    const settled = new Set(said.flatMap((line) => line.settled ?? []))
    for (const batch of begun) {
      const states = await statesOf(journal, batch)
      if (settled.has(batch)) expect(states).toEqual(['confirmed', 'confirmed'])
      else expect([['confirmed', 'confirmed'], ['open', 'open']]).toContainEqual(states) // prettier-ignore
    }
    // Only the last batch can have been in progress.
    expect(taken.length).toBeLessThanOrEqual(1)
    const [balance] = await journal.balances()
    expect(balance?.received).toBe((balance?.confirmed ?? 0) + (balance?.open ?? 0))
    expect(balance?.open).toBe(taken.length * 2)
  })
})

it('an SQLite journal gives two processes distinct batch numbers, and counts each record once', async () => {
  const url = `sqlite:${await makeFolder()}/journal.db`
  const processes = await Promise.all([startInstance(url), startInstance(url)])
  processes.forEach((one, index) => one.send({ do: 'hammer', name: `process ${index}` }))
  await vi.waitFor(() => {
    for (const { lines } of processes) expect(lines.length).toBeGreaterThan(40)
  }, 60_000)
  await Promise.all(processes.map((one) => one.kill()))
  const begun = processes.map(({ lines }) =>
    (lines as { begun?: number }[]).flatMap((line) => line.begun ?? []),
  )
  expect(new Set(begun.flat()).size).toBe(begun.flat().length)
  const journal = await openJournal({ url })
  const open = (await journal.takeOver()).length
  const [balance] = await journal.balances()
  expect(balance?.received).toBeGreaterThanOrEqual(begun.flat().length * 2)
  expect(balance).toMatchObject({ confirmed: (balance?.received ?? 0) - open * 2, open: open * 2 })
  expect(await journal.begin(batchOf(['new']))).toMatchObject({ kind: 'new' })
  await journal.close()
})
