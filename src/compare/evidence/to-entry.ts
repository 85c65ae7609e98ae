import { addCounts, codeFingerprint, countName } from '../../rollout/evidence/count-name.ts'
import { checkBits, type EvidenceKey } from '../../rollout/evidence/evidence-key.ts'
import type { EvidenceEntry, HashedPair } from '../../rollout/evidence/evidence-store.ts'
import type { ComparedExchange, ComparedRecord } from '../live/exchange.ts'
import { delayBounds } from '../tally.ts'

/** Converts a compared exchange to evidence, which consists of counts and keyed hashes and contains no value of a record. */
export function toEntry(exchange: ComparedExchange, key: EvidenceKey): EvidenceEntry {
  const { kind, check, records, fingerprint } = exchange
  const counts = new Map<string, number>()
  const add = (...name: Parameters<typeof countName>): void => {
    addCounts(counts, [[countName(...name), 1]])
  }
  // An exchange belongs to the sample only if at least one of its records could be checked.
  if (records.some(({ verdict }) => verdict !== 'unchecked')) add('exchange', kind, check, 'compared')
  if (records.some(isOutcomeCompared)) add('schoolDay', key.today, check)
  for (const record of records) countRecord(add, exchange, record, key)
  for (const delayMs of exchange.delaysMs)
    add('delay', String(delayBounds.find((upToMs) => upToMs === null || delayMs <= upToMs)))
  const name = `${kind} ${check} ${fingerprint}`
  return {
    request: fingerprint === undefined ? undefined : key.hash('request', name),
    counts,
    pairs: pairsOf(exchange, key),
  }
}

type Add = (...name: Parameters<typeof countName>) => void

function countRecord(
  add: Add,
  { kind, check }: ComparedExchange,
  record: ComparedRecord,
  key: EvidenceKey,
): void {
  const { verdict, codeClass, day } = record
  const name = codeFingerprint(record.code ?? '')
  if (verdict === 'unchecked') {
    add('unchecked', kind, check)
    if (name !== undefined) add('code', check, name, 'unchecked')
    return
  }
  add('verdict', kind, check, verdict)
  if (codeClass !== undefined) add('codeClass', codeClass, verdict)
  add('comparedOn', key.today, verdict)
  add('comparedAt', key.hour, verdict)
  if (name !== undefined) add('code', check, name, isOutcomeCompared(record) ? 'compared' : 'seen')
  if (!isJudged(record)) return
  if (isOutcomeCompared(record)) for (const trait of new Set(record.traits)) add('trait', check, trait)
  const differences = record.differences.map(
    ({ path, kind: what, v2Class, v3Class }) => [path, what, v2Class, v3Class] as const,
  )
  for (const fields of distinct(differences)) add('difference', ...fields)
  for (const fields of distinct(record.equivalences.map(({ rule, path }) => [rule, path])))
    add('rule', ...fields)
  const counted = isDifferent(record) ? ['differs'] : []
  if (record.learner === undefined || day === undefined) add('uncounted', 'unnamed', ...counted)
  else if (!key.covers(day)) add('uncounted', 'otherPeriod', ...counted)
}

function pairsOf({ unit, check, records }: ComparedExchange, key: EvidenceKey): readonly HashedPair[] {
  const school = key.hash('school', unit)
  const pairs = new Map<string, boolean>()
  for (const record of records) {
    const { learner, day } = record
    if (!isJudged(record) || learner === undefined || day === undefined || !key.covers(day)) continue
    const name = `${learner.toLowerCase()} ${day}`
    pairs.set(name, pairs.get(name) === true || isDifferent(record))
  }
  const checks = 1 << checkBits[check]
  return [...pairs].map(([name, differs]) => ({
    hash: key.hash('pair', name),
    school,
    checks,
    differs: differs ? checks : 0,
  }))
}

const isJudged = ({ verdict }: Pick<ComparedRecord, 'verdict'>): boolean =>
  verdict !== 'unknown' && verdict !== 'unchecked'

/** Returns true if the outcome of the record was compared. For a batch whose ids differ, only the form of the reply is compared. */
const isOutcomeCompared = (record: Pick<ComparedRecord, 'verdict' | 'equivalences'>): boolean =>
  isJudged(record) && !record.equivalences.some(({ rule }) => rule === 'no-outcome-shown')

const isDifferent = ({ verdict }: Pick<ComparedRecord, 'verdict'>): boolean =>
  verdict === 'differs' || verdict === 'onlyV2' || verdict === 'onlyV3'

function distinct(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return [...new Map(rows.map((row) => [row.join('\n'), row])).values()]
}
