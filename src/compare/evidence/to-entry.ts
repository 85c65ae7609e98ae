import type { EvidenceEntry, EvidenceKey, HashedPair } from '../../rollout/index.ts'
import { codeFingerprint } from '../../rollout/index.ts'
import type { CheckKind, ComparedExchange, ComparedRecord } from '../compared-exchange.ts'
import { checkBits, countName } from './count-name.ts'

/** Upper ends of the classes of delays, ms. */
export const delayClasses = [100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 300_000] as const
/** A delay that is longer than all classes. */
export const LONGER = 'longer'

/** A code is a code only in the form that the service uses; anything else may be a text of a client. */
const ERROR_CODE = /^[A-Z][A-Z0-9_]{1,39}$/
const MAX_CODE_LENGTH = 40

/** What an exchange adds to the evidence: counts and hashes, and nothing that was in it. */
export function toEntry(exchange: ComparedExchange, key: EvidenceKey): EvidenceEntry {
  const { kind, check, records, fingerprint } = exchange
  const counts = new Map<string, number>()
  const add = (...name: Parameters<typeof countName>): void => {
    const text = countName(...name)
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  add('exchange', kind, check, records.length === 0 ? 'missed' : 'compared')
  if (records.some(isShown)) add('schoolDay', key.today, check)
  for (const record of records) countRecord(add, exchange, record, key)
  for (const delayMs of exchange.delaysMs)
    add('delay', String(delayClasses.find((upTo) => delayMs <= upTo) ?? LONGER))
  // One that was missed and comes again may be compared then.
  const isNamed = fingerprint !== undefined && records.length > 0
  return {
    request: isNamed ? key.hash('request', `${kind} ${check} ${fingerprint}`) : undefined,
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
  add('verdict', kind, check, verdict)
  if (codeClass !== undefined) add('codeClass', codeClass, verdict)
  add('comparedOn', key.today, verdict)
  const seen = isShown(record) ? 'compared' : 'seen'
  const { code = '' } = record
  const name = code.length <= MAX_CODE_LENGTH ? codeFingerprint(code) : undefined
  if (name !== undefined) add('code', check, name, seen)
  for (const code of new Set(record.errorCodes))
    add('error', check, ERROR_CODE.test(code) ? code : 'other', seen)
  if (!isJudged(record)) return
  if (isShown(record)) for (const trait of new Set(record.traits)) add('trait', check, trait)
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

/** Learners and days that were judged, each once. */
function pairsOf({ unit, check, records }: ComparedExchange, key: EvidenceKey): readonly HashedPair[] {
  const school = key.hash('school', unit)
  const pairs = new Map<string, boolean>()
  for (const record of records) {
    const { learner, day } = record
    if (!isJudged(record) || learner === undefined || day === undefined || !key.covers(day)) continue
    const name = `${learner.toLowerCase()} ${day}`
    pairs.set(name, pairs.get(name) === true || isDifferent(record))
  }
  const checks = bitOf(check)
  return [...pairs].map(([name, differs]) => ({
    hash: key.hash('pair', name),
    school,
    checks,
    differs: differs ? checks : 0,
  }))
}

const bitOf = (check: CheckKind): number => 1 << checkBits[check]

/** True where both sides were known. */
const isJudged = ({ verdict }: Pick<ComparedRecord, 'verdict'>): boolean => verdict !== 'unknown'

/** True where the outcome of the record was compared: of a batch whose ids differ only the form of the reply is. */
const isShown = (record: Pick<ComparedRecord, 'verdict' | 'equivalences'>): boolean =>
  isJudged(record) && !record.equivalences.some(({ rule }) => rule === 'no-outcome-shown')

/** True where V3 is not what V2 is. */
const isDifferent = ({ verdict }: Pick<ComparedRecord, 'verdict'>): boolean =>
  verdict === 'differs' || verdict === 'onlyV2' || verdict === 'onlyV3'

function distinct(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return [...new Map(rows.map((row) => [row.join('\n'), row])).values()]
}
