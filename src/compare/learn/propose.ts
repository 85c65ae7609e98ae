import { v2ErrorRules } from '../../translate/index.ts'
import type { Learned } from './learned.ts'
import { WITHHELD } from './observe-exchange.ts'

export interface LearnableSettings {
  readonly layout: string
  readonly quirks: {
    readonly dataEnvelope: boolean
    readonly msgtypeResponse: boolean
    readonly mismatch: string
  }
  readonly errorMessages: Readonly<Record<string, string>>
  readonly v3: { readonly eventType: string; readonly codeType: string }
}

interface Observation {
  readonly seen: string
  readonly count: number
}

interface Proposal {
  readonly path: string
  readonly current: string | boolean
  /**
   * `change`: the evidence supports `proposed`. `keep`: the evidence supports the current value. `contradictory`: the evidence supports
   * several values. `none`: the evidence supports no value.
   */
  readonly result: 'change' | 'keep' | 'contradictory' | 'none'
  readonly proposed?: string | boolean
  readonly evidence: readonly Observation[]
  /** A limit of the evidence, or `undefined` if there is none. */
  readonly note?: string
}

interface LearnedError {
  readonly status: number
  readonly code: string
  /** The message of V2, or `(withheld)` if the message may contain a value of a record. */
  readonly message: string
  readonly count: number
}

interface LearnedProposals {
  readonly exchanges: Readonly<Record<'batch' | 'record' | 'read', number>>
  readonly unreadable: number
  readonly proposals: readonly Proposal[]
  readonly errors: readonly LearnedError[]
}

/** Proposes settings from the counted observations. A value is proposed only if all of the evidence agrees on it. */
export function propose(learned: Learned, settings: LearnableSettings): LearnedProposals {
  const count = (name: string): number => learned.get(name) ?? 0
  const { quirks, v3 } = settings
  const typesOf = (key: 'eventType' | 'codeType'): readonly Choice[] =>
    [...learned]
      .filter(([name]) => name.startsWith(`type/${key}/`))
      .map(([name, seen]) => {
        const value = name.slice(`type/${key}/`.length)
        return [value, `Type ${value}`, seen]
      })
  const errors = toErrors(learned)
  return {
    exchanges: {
      batch: count('exchange/batch'),
      record: count('exchange/record'),
      read: count('exchange/read'),
    },
    unreadable: count('reply/unreadable'),
    proposals: [
      proposeLayout(count, settings.layout),
      proposeValue('quirks.dataEnvelope', quirks.dataEnvelope, [
        [true, 'records inside d', count('envelope/data')],
        [false, 'records without an envelope', count('envelope/plain')],
      ]),
      proposeValue('quirks.msgtypeResponse', quirks.msgtypeResponse, [
        [true, 'parts with msgtype=response', count('part/msgtype')],
        [false, 'parts without a msgtype', count('part/http')],
      ]),
      proposeMismatch(count, quirks.mismatch),
      ...proposeMessages(errors, settings.errorMessages),
      proposeValue('v3.eventType', v3.eventType, typesOf('eventType')),
      proposeValue('v3.codeType', v3.codeType, typesOf('codeType')),
    ],
    errors,
  }
}

type Choice = readonly [value: string | boolean, seen: string, count: number]
type CountOf = (name: string) => number

function proposeValue(path: string, current: string | boolean, choices: readonly Choice[]): Proposal {
  const found = choices.filter(([, , count]) => count > 0)
  const evidence = found.map(([, seen, count]) => ({ seen, count }))
  const values = [...new Set(found.map(([value]) => value))]
  const [proposed] = values
  if (proposed === undefined) return { path, current, result: 'none', evidence }
  if (values.length > 1) return { path, current, result: 'contradictory', evidence }
  if (proposed === current) return { path, current, result: 'keep', evidence }
  return { path, current, result: 'change', proposed, evidence }
}

/** Proposes the layout of batch replies, which is `auto` if V2 sends nested replies to generic OData clients only. */
function proposeLayout(count: CountOf, current: string): Proposal {
  const clients = { plain: 'plain V2 clients', generic: 'generic clients' }
  const seen = (['flat', 'nested'] as const)
    .flatMap((layout) => (['plain', 'generic'] as const).map((client) => ({ layout, client })))
    .filter(({ layout, client }) => count(`layout/${layout}/${client}`) > 0)
  const layouts = new Set(seen.map(({ layout }) => layout))
  const isByClient = seen.every(({ layout, client }) => (layout === 'nested') === (client === 'generic'))
  // The setting `auto` is correct if V2 sent nested replies to generic clients and flat replies to all others.
  const isAuto = isByClient && (layouts.size > 1 || current === 'auto')
  const choices = seen.map(({ layout, client }): Choice => [
    isAuto ? 'auto' : layout,
    `${layout} replies to ${clients[client]}`,
    count(`layout/${layout}/${client}`),
  ])
  const isFlat = !layouts.has('nested') && seen.some(({ client }) => client === 'generic')
  return { ...proposeValue('layout', current, choices), ...(isFlat && { note: NEEDS_AUTO }) }
}

/** The note for the flat layout, in which the part of a created record has no `Location` (service.md 4.2). */
const NEEDS_AUTO =
  'generic clients that need nested parts or Location, such as Microsoft.OData.Client and the SAP Cloud SDK, need auto'

/**
 * Proposes a value of `quirks.mismatch`, the treatment of batches whose ids in the header and the body differ. An empty reply of V2 does
 * not show whether V2 stored the records.
 */
function proposeMismatch(count: CountOf, current: string): Proposal {
  const proposal = proposeValue('quirks.mismatch', current, [
    // A reply with parts reports outcomes, which means that V2 processed the records.
    ['post', 'batches whose ids differ, answered with parts', count('mismatch/parts')],
  ])
  const empty = count('mismatch/empty')
  if (proposal.result !== 'none' || empty === 0) return proposal
  return {
    ...proposal,
    evidence: [{ seen: 'batches whose ids differ, answered without parts', count: empty }],
    note: 'the replies do not show whether V2 stored the records; read one of them on V2',
  }
}

/** Proposes messages only for error codes that have a built-in text. For all other codes the adapter sends the text of V3. */
function proposeMessages(
  errors: readonly LearnedError[],
  configured: LearnableSettings['errorMessages'],
): readonly Proposal[] {
  const own = new Map(v2ErrorRules.map(({ to }) => [to.code, to.message]))
  const byCode = Map.groupBy(errors, ({ code }) => code)
  return [...byCode].flatMap(([code, found]) => {
    const current = configured[code] ?? own.get(code)
    if (!own.has(code) || current === undefined) return []
    const known = found.filter(({ message }) => message !== WITHHELD)
    const choices = known.map(({ message, count }): Choice => [message, `“${message}”`, count])
    return proposeValue(`errorMessages.${code}`, current, choices)
  })
}

function toErrors(learned: Learned): readonly LearnedError[] {
  return [...learned]
    .flatMap(([name, count]) => {
      const [, status, code, message] = /^error\/(\d{3})\/([^/]+)\/(.+)$/.exec(name) ?? []
      if (status === undefined || code === undefined || message === undefined) return []
      return [{ status: Number(status), code, message, count }]
    })
    .toSorted((one, other) => other.count - one.count)
}

/** Formats the proposed changes as a patch of the configuration file. Comments in the patch contain the counts and the other results. */
export function formatPatch(
  partner: string,
  { exchanges, unreadable, proposals, errors }: LearnedProposals,
): string {
  const changes = proposals.filter(({ result }) => result === 'change')
  const counted = (count: number, one: string, several = `${one}s`): string =>
    `${count} ${count === 1 ? one : several}`
  const lines = [
    `# observed: ${counted(exchanges.batch, 'batch', 'batches')}, ${counted(exchanges.record, 'single record')}, ${counted(exchanges.read, 'read')}`,
    ...(unreadable > 0 ? [`# ${counted(unreadable, 'reply', 'replies')} could not be read`] : []),
    ...(changes.length > 0
      ? ['partners:', `  - id: ${partner}`, ...patchOf(changes)]
      : ['# nothing to change']),
    ...(['keep', 'contradictory', 'none'] as const).flatMap((result) =>
      proposals.filter((one) => one.result === result).map((one) => `# ${one.path}: ${reasonOf(one)}`),
    ),
    ...errors.map(({ status, code, message, count }) => `# error ${status} ${code}: ${message} (${count})`),
  ]
  return lines.join('\n')
}

function patchOf(changes: readonly Proposal[]): readonly string[] {
  const sections = Map.groupBy(changes, ({ path }) => (path.includes('.') ? path.split('.', 1)[0] : ''))
  return [...sections].flatMap(([section = '', own]) => [
    ...(section === '' ? [] : [`    ${section}:`]),
    ...own.map((one) => {
      const name = one.path.slice(section === '' ? 0 : section.length + 1)
      const value = section === 'errorMessages' ? JSON.stringify(one.proposed) : String(one.proposed)
      return `${section === '' ? '    ' : '      '}${name}: ${value} # ${seenOf(one)}`
    }),
  ])
}

function reasonOf(one: Proposal): string {
  if (one.result === 'keep') return `${one.current} matches: ${seenOf(one)}`
  if (one.result === 'contradictory') return `not proposed, the evidence is contradictory: ${seenOf(one)}`
  return `not proposed, ${one.evidence.length === 0 ? 'no exchange showed it' : seenOf(one)}`
}

function seenOf({ evidence, note }: Proposal): string {
  const seen = evidence.map(({ seen: what, count }) => `${count} × ${what}`).join(', ')
  return note === undefined ? seen : `${seen}; ${note}`
}
