import { reopenableCodes, stateCodes } from '../lifecycle.ts'
import { damagedRecord, expectIntactBatch } from '../store/damage.ts'
import { type CommittedReopen, forAllOfKey, type ReopenOperation } from '../store/operations.ts'
import type { BatchRows, ChangeContext, Later } from './rows.ts'

/** Opens active records of a batch again that no newer one of their key forbids, and gives them to this instance. */
export function reopen(
  { instance, hasKey, ledger, write }: ChangeContext,
  { batch, positions, credentials, evenDamaged }: ReopenOperation,
  rows: BatchRows | undefined,
): Later<CommittedReopen> {
  const nothing = { lease: instance, opened: [], after: [] }
  if (rows === undefined || (rows.batch.open > 0 && rows.batch.owner !== instance)) return () => nothing
  const { partner, owner_id: owner } = rows.batch
  if (!evenDamaged) {
    expectIntactBatch(batch, rows.batch)
    if (rows.records.some(({ isIntact }) => !isIntact)) throw damagedRecord(batch)
  }
  const wanted = new Set(positions)
  const opened: number[] = []
  const keys = new Map<number, string>()
  const first = new Map<string, number>()
  for (const { position, state, isActive, key } of rows.records) {
    if (!isActive || !reopenableCodes.has(state) || !wanted.has(position)) continue
    const standing = rows.standing(key)
    if (standing !== undefined && isNewer(standing, { batch, position })) continue
    opened.push(position)
    keys.set(position, key)
    if (!first.has(key)) first.set(key, position)
    ledger.move(partner, state, stateCodes.open)
  }
  if (opened.length === 0) return () => nothing
  write.reopen(batch, opened)
  write.setOwner(batch, instance)
  write.addCounts(batch, opened.length, 0)
  if (hasKey && credentials !== undefined) {
    write.seal('credentials', { batch, owner }, Buffer.from(credentials))
  }
  // Those that are opened together wait for none of each other: the first of a key waits for all.
  const older = write.olderOpen(batch, [...first.values()])
  return () => ({
    lease: instance,
    opened,
    after: forAllOfKey(opened, (position) => keys.get(position), older()),
  })
}

interface Place {
  readonly batch: number
  readonly position: number
}

const isNewer = (one: Place, other: Place): boolean =>
  one.batch > other.batch || (one.batch === other.batch && one.position > other.position)
