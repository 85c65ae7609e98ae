import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import type { DurableJournal } from '../../src/journal/index.ts'
import { type JournalOptions, openJournalOn } from '../../src/journal/sql-journal.ts'
import { openStore } from '../../src/journal/open-store.ts'
import type { Group, Store } from '../../src/journal/store.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { startDuties } from '../support/start-duties.ts'
import { START_MS } from './batches.ts'

export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** A journal with its store, and the groups of operations that were committed together. */
export interface OpenSqlite {
  readonly journal: DurableJournal
  readonly store: Store
  readonly groups: Group[]
}

/** Opens a journal on a file and closes it at the end of the test. */
export async function openSqlite(
  file: string,
  options: Omit<JournalOptions, 'url'> = {},
): Promise<OpenSqlite> {
  const { timeoutMs = 5_000, clock } = options
  const wallMs = clock === undefined ? Date.now : () => clock.wallMs()
  const store = openStore(`sqlite:${file}`, { timeoutMs, wallMs })
  const groups: Group[] = []
  const counting: Store = {
    ...store,
    commit: (group) => {
      groups.push(group)
      return store.commit(group)
    },
  }
  const journal = await openJournalOn(counting, options)
  if (clock !== undefined) startDuties(journal.duties, clock)
  onTestFinished(() => journal.close())
  return { journal, store, groups }
}

export function createJournalClock() {
  const clock = createManualClock()
  let steppedMs = 0
  return {
    ...clock,
    wallMs: () => START_MS + steppedMs + clock.nowMs(),
    setWall: (ms: number): void => {
      steppedMs += ms
    },
  }
}

export function createJournalEvents() {
  const heard: string[] = []
  const events = {
    failed: (reason: string) => heard.push(`failed: ${reason}`),
    recovered: () => heard.push('recovered'),
    leaseLost: () => heard.push('lease lost'),
  }
  return { heard, events }
}
